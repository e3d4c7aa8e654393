"""Replies whose steps say themselves what they depend on: the graph that they make, and every mistake in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.model import Edge
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry
from planwave.planner.capabilities import plan_schema
from planwave.planner.graph_builder import ModelDefaults, build_graph
from planwave.planner.progress import PlanScanner
from planwave.planner.reply_parser import ParseContext, ParseResult, read_reply
from planwave.planner.reply_schema import parse_reply
from tests.support.llm.fake_providers import FakeProviders
from tests.support.llm.planner_replies import (
    planner_reply,
    reply_edge,
    reply_node,
    reply_step,
    step_reply,
)

CONTEXT = ParseContext(
    Registry(LIBRARY, providers=FakeProviders()), FakeProviders(), ModelDefaults("openai", "gpt")
)
CHOICE = {"type": "if", "data": {"conditions": [{"operator": "contains", "value": "x"}]}}


def read(text: str) -> ParseResult:
    return read_reply(text, CONTEXT)


def ends(reading: ParseResult) -> list[tuple[str, ...]]:
    assert reading.graph is not None, reading.diagnostics
    return [_ends(edge) for edge in reading.graph.edges]


def _ends(edge: Edge) -> tuple[str, ...]:
    return edge.source, edge.source_handle, edge.target, edge.target_handle, edge.channel


class RandomPlan(NamedTuple):
    """A plan in both shapes, and its edges."""

    steps: str
    nodes_and_edges: str
    edges: list[tuple[str, ...]]


@st.composite
def plans(draw: st.DrawFn) -> RandomPlan:
    """Draw a graph without cycles: agents and choices, each depending on some that stand before."""
    kinds = draw(st.lists(st.sampled_from(["agent", "if"]), min_size=1, max_size=9))
    steps: list[Any] = []
    nodes: list[Any] = []
    edges: list[Any] = []
    for number, kind in enumerate(kinds):
        node_id = f"s{number}"
        before = range(number) if kind == "agent" else range(min(number, 1))
        sources = draw(st.lists(st.sampled_from([*before]), unique=True)) if before else []
        if kind == "if" and not sources and number:
            sources = [0]
        more: dict[str, Any] = dict(CHOICE) if kind == "if" else {"type": "agent"}
        named: list[Any] = []
        for source in sources:
            handles = ["condition-0", "false"] if kinds[source] == "if" else ["output"]
            handle = draw(st.sampled_from(handles))
            edges.append(reply_edge(f"s{source}", node_id, source_handle=handle))
            if handle != "output" or draw(st.booleans()):
                named.append({"step": f"s{source}", "handle": handle})
        depends_on = [f"s{source}" for source in sources if draw(st.booleans())]
        depends_on += [f"s{source}" for source in sources if f"s{source}" not in depends_on]
        steps.append(reply_step(node_id, *depends_on, **more, **({"from": named} if named else {})))
        nodes.append(reply_node(node_id, **more))
    expected = [(e["source"], e["source_handle"], e["target"], "input", "flow") for e in edges]
    return RandomPlan(step_reply(*steps), planner_reply(*nodes, edges=edges), expected)


@given(plans())
def test_any_graph_without_cycles_is_read_as_it_was_written_in_either_shape(
    plan: RandomPlan,
) -> None:
    new, old = read(plan.steps), read(plan.nodes_and_edges)
    if new.graph is None or old.graph is None:  # a choice without an input, in both
        assert [d.code for d in new.diagnostics] == [d.code for d in old.diagnostics]
        return
    assert new.graph.nodes == old.graph.nodes
    assert sorted(ends(new)) == sorted(ends(old)) == sorted(plan.edges)


@given(plans(), st.integers(1, 40))
def test_the_reported_edges_are_those_of_the_plan(plan: RandomPlan, size: int) -> None:
    scanner = PlanScanner()
    pieces = [plan.steps[at : at + size] for at in range(0, len(plan.steps), size)]
    heard = [each for piece in pieces for each in scanner.feed(piece)] + [*scanner.finish()]
    pairs = [(each.data["source"], each.data["target"]) for each in heard if each.kind == "edge"]
    assert sorted(pairs) == sorted((edge[0], edge[2]) for edge in plan.edges)
    seen: set[str] = set()
    for each in heard:
        if each.kind == "node":
            seen.add(each.data["id"])
        elif each.kind == "edge":
            assert {each.data["source"], each.data["target"]} <= seen


@given(plans())
def test_what_is_read_fits_the_schema_that_models_are_given(plan: RandomPlan) -> None:
    schema = plan_schema(CONTEXT.catalogue, ["agent", "if"])
    assert jsonschema_rs.is_valid(schema, json.loads(plan.steps))


def drafted_edges(*steps: Any) -> Sequence[Any]:
    plan, findings = parse_reply({"steps": [*steps]})
    assert plan is not None, findings
    draft = build_graph(plan, CONTEXT.catalogue, CONTEXT.providers, CONTEXT.defaults)
    return draft.document["edges"]


def test_a_step_that_depends_on_a_tool_is_linked_with_it() -> None:
    tool = reply_step("search", type="tool", data={"name": "search"})
    link = {
        "source": "search",
        "sourceHandle": "tools",
        "target": "answer",
        "targetHandle": "tools",
        "data": {"channel": "link"},
    }
    assert drafted_edges(tool, reply_step("answer", "search")) == [link]
    said = {"from": [{"step": "search", "handle": "tools", "input": "tools"}]}
    assert drafted_edges(tool, reply_step("answer", **said)) == [link]
    scanner = PlanScanner(is_linked=lambda node_type: node_type == "tool")
    heard = [*scanner.feed(step_reply(tool, reply_step("answer", "search")))]
    assert heard[-1].data["channel"] == "link"


def test_what_a_step_names_twice_it_reads_once() -> None:
    steps = (
        reply_step("a", **CHOICE),
        reply_step("b", "a", "a", **{"from": [{"step": "a", "handle": "false"}] * 2}),
        reply_step("c", "b", "b"),
    )
    assert ends(read(step_reply(*steps))) == [
        ("a", "false", "b", "input", "flow"),
        ("b", "output", "c", "input", "flow"),
    ]


def test_an_output_that_is_not_said_is_the_only_one() -> None:
    step = reply_step("a", type="approval", data={"prompt": "Go on?", "actions": ["yes", "no"]})
    reading = read(step_reply(step, reply_step("b", "a")))
    assert [d.code for d in reading.diagnostics] == ["unknown-handle"], "it has two"
    assert reading.diagnostics[0].pointer == "/steps/1/depends_on/0"


FAULTY: list[tuple[list[Any], list[tuple[str, str]]]] = [
    ([reply_step("a"), reply_step("b", "ghost")], [("dangling-edge", "/steps/1/depends_on/0")]),
    ([reply_step("a", "a")], [("flow-cycle", "/steps/0")]),
    ([reply_step("a", "b"), reply_step("b", "a")], [("flow-cycle", "/steps/0")]),
    ([reply_step("a"), reply_step("a", "a")], [("duplicate-id", "/steps/1/id"), ("flow-cycle", "/steps/1")]),
    ([reply_step("a"), {"id": "b", "depends_on": "a"}], [("invalid-field", "/steps/1/depends_on")]),
    ([reply_step("a"), {"id": "b", "depends_on": ["a", 3]}],
     [("invalid-field", "/steps/1/depends_on/1")]),
    ([reply_step("a"), reply_step("b", **{"from": [{"step": "a", "port": "x"}]})],
     [("unknown-field", "/steps/1/from/0/port")]),
    ([reply_step("a"), reply_step("b", **{"from": [{"handle": "output"}]})],
     [("missing-field", "/steps/1/from/0/step")]),
    ([reply_step("a"), reply_step("b", **{"from": [{"step": "a", "handle": "otput"}]})],
     [("unknown-handle", "/steps/1/from/0")]),
    ([reply_step("a"), reply_step("b", **{"from": [{"step": "a", "handle": "output", "input": "x"}]})],
     [("unknown-handle", "/steps/1/from/0")]),
    ([{**reply_step("a"), "id": 4}, reply_step("b", "a")], [("invalid-field", "/steps/0/id")]),
    ([reply_step("a", type="agnt")], [("unknown-node-type", "/steps/0/type")]),
    ([], [("empty-plan", "/steps")]),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "expected"), FAULTY, ids=str)
def test_each_mistake_is_reported_once_where_the_reply_has_it(
    steps: list[Any], expected: list[tuple[str, str]]
) -> None:
    found = [d for d in read(step_reply(*steps)).diagnostics if d.severity == "error"]
    assert sorted((d.code, d.pointer) for d in found) == sorted(expected)


def test_a_step_may_depend_on_one_that_stands_later_if_there_is_no_cycle() -> None:
    reading = read(step_reply(reply_step("b", "a"), reply_step("a")))
    assert ends(reading) == [("a", "output", "b", "input", "flow")]


def test_mistakes_inside_a_step_are_reported_where_the_reply_has_them() -> None:
    body = {"steps": [reply_step("x"), reply_step("y", "z")]}
    loop = reply_step("each", "first", type="loop", data={"items": ["x"], "body": body})
    reading = read(step_reply(reply_step("first"), loop))
    (error,) = [d for d in reading.diagnostics if d.severity == "error"]
    assert (error.code, error.pointer) == (
        "dangling-edge",
        "/steps/1/data/body/steps/1/depends_on/0",
    )
    body["steps"][1] = reply_step("y", "x")
    graph = read(step_reply(reply_step("first"), loop)).graph
    assert graph is not None
    (edge,) = graph.by_id["each"].data["body"]["edges"]
    assert (edge["source"], edge["target"]) == ("x", "y")


def test_the_findings_of_a_valid_plan_have_the_places_of_its_graph() -> None:
    step = reply_step("a", "b", type="llm", data={"prompt": "x"})
    reading = read(step_reply(reply_step("b"), step))
    assert reading.graph is not None
    assert [(d.code, d.pointer.split("/")[1]) for d in reading.diagnostics] == [
        ("unused-input", "nodes")
    ]


@pytest.mark.parametrize("extra", [{}, {"edges": []}, {"edges": [reply_edge("a", "b")]}])
def test_nodes_that_say_what_they_depend_on_need_no_edges(extra: dict[str, Any]) -> None:
    nodes = [reply_node("a"), reply_step("b", "a")]
    reading = read(json.dumps({"nodes": nodes, **extra}))
    assert ends(reading) == [("a", "output", "b", "input", "flow")]


def test_a_reply_without_any_list_is_told_of_steps() -> None:
    (finding,) = read('{"title": "x"}').diagnostics
    assert (finding.code, finding.pointer) == ("missing-field", "/steps")
    (finding,) = read('{"steps": [{"id": "a", "kind": "llm"}]}').diagnostics
    assert "depends_on, from" in str(finding.hint)
    _, (finding,) = parse_reply({"steps": [{"id": "a"}], "other": 1})
    assert finding.hint == "fields known there: title, steps, edges"
