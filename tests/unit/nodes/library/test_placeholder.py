"""A placeholder stands wherever a step can stand, says that it cannot run, and causes no other finding.

Generated from the examples of all types: each of their nodes is replaced, and each of their ports is wired.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import planwave
from planwave.errors import GraphInvalid, PermanentError
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.editing.editor import PlanContent, apply_operations
from planwave.graph.model import Node
from planwave.graph.operations import Rename
from planwave.graph.reading.documents import read_graph
from planwave.nodes.library import LIBRARY
from planwave.nodes.library.placeholder import Placeholder
from planwave.nodes.registry import Registry
from planwave.planner.capabilities import PlanRules, plannable_types, type_cards
from planwave.planner.plan_check import PlanCheck
from tests.support.graph.builders import make_edge
from tests.support.llm.fake_providers import ListedProviders
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import context_for, make_inputs

REGISTRY = Registry(LIBRARY, providers=ListedProviders({"openai": ["m", "n"]}))
EXAMPLES: Mapping[str, Any] = {
    name: json.loads(json.dumps(REGISTRY.describe(name)["example"])) for name in REGISTRY.names()
}
DATA = {
    "kind": "n8n-nodes-base.slack",
    "name": "Send",
    "parameters": {"text": "={{ $json.text }}", "deep": [{"to": "{% for x in y %}"}]},
    "code": "return `{{ ${x} }}`; // {# {%",
}


OWN_HANDLES = {"approval": "approve", "conditional": "de", "inner": "short"}
"""A handle of the example of a type whose nodes name their outputs."""


def found(document: Mapping[str, Any], registry: Registry = REGISTRY) -> list[Diagnostic]:
    return read_and_check(json.dumps(document), registry)[1]


def keys(findings: list[Diagnostic]) -> set[tuple[str, str]]:
    return {(each.code, each.pointer) for each in findings}


def placeholder(node_id: str, data: Mapping[str, Any] = DATA) -> dict[str, Any]:
    return {"id": node_id, "type": "placeholder", "data": data}


def graphs_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield a graph document and all documents of graphs inside it."""
    for each in value if isinstance(value, list) else ():
        yield from graphs_in(each)
    if isinstance(value, dict):
        if isinstance(value.get("nodes"), list):
            yield value
        for each in value.values():
            yield from graphs_in(each)


def replaced(node: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: each for name, each in node.items() if name in ("id", "name", "policy", "ui")}
    return {**kept, "type": "placeholder", "data": {**DATA, "kind": str(node["type"])}}


@pytest.mark.parametrize("name", REGISTRY.names())
def test_in_place_of_any_step_there_is_one_finding_and_it_names_the_step(name: str) -> None:
    for graph in graphs_in(EXAMPLES[name]):
        for number, node in enumerate(graph["nodes"]):
            nodes = [*graph["nodes"]]
            nodes[number] = replaced(node)
            after = found({**graph, "nodes": nodes})
            new = keys(after) - keys(found(graph)) | {("placeholder", f"/nodes/{number}")}
            assert new == {("placeholder", f"/nodes/{number}")}, (node, after)
            (own,) = [each for each in after if each.pointer == f"/nodes/{number}"]
            assert own.severity == "error"
            assert own.node == node["id"]
            assert f"was {node['type']}, which has no counterpart here" in own.message


@pytest.mark.parametrize("name", REGISTRY.names())
def test_a_placeholder_that_is_wired_to_any_port_gives_no_other_finding(name: str) -> None:
    graph = EXAMPLES[name]
    sample = next(node for node in graph["nodes"] if node["type"] == name)
    facts = REGISTRY.type_info(name)
    assert facts is not None
    wired = {edge.get("targetHandle") for edge in graph["edges"] if edge["target"] == sample["id"]}
    where = ("placeholder", f"/nodes/{len(graph['nodes'])}")
    for port in facts.inputs:
        handle = re.sub(r"\{\w+\}", "0", port.name)
        if port.multiple or handle not in wired:
            edge = edge_document("p", "output", sample["id"], handle, port.channel)
            assert with_placeholder(graph, edge) == {where}, port
    for port in facts.outputs:
        handle = OWN_HANDLES.get(name) or re.sub(r"\{\w+\}", "0", port.name)
        edge = edge_document(sample["id"], handle, "p", "any", port.channel)
        assert with_placeholder(graph, edge) == {where}, port


def edge_document(source: str, out: str, target: str, into: str, channel: str) -> dict[str, Any]:
    ends = {"source": source, "sourceHandle": out, "target": target, "targetHandle": into}
    return {**ends, "data": {"channel": channel}}


def wired_to(
    node: Mapping[str, Any], graph: Mapping[str, Any], edge: Mapping[str, Any]
) -> dict[str, Any]:
    nodes, edges = [*graph["nodes"], node], [*graph["edges"], edge]
    return {"nodes": nodes, "edges": edges}


def with_placeholder(graph: Mapping[str, Any], edge: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return what is new in an example with one edge and the placeholder at its other end.

    What a wire of any other step would cause, such as a second graph to run, is not counted.
    """
    wired = wired_to({"id": "p", "type": "text", "data": {"text": "x"}}, graph, edge)
    by_any_step = {key for key in keys(found(wired)) if key[1].startswith("/nodes")}
    within = wired_to(placeholder("p"), graph, edge)
    return keys(found(within)) - keys(found(graph)) - by_any_step


def test_the_sentence_says_what_it_was_and_what_to_do() -> None:
    (finding,) = found(graph_document(placeholder("send")))
    assert finding.as_json() == {
        "code": "placeholder",
        "severity": "error",
        "message": "node 'send': step 'Send' was n8n-nodes-base.slack, which has no counterpart here",
        "pointer": "/nodes/0",
        "node": "send",
        "hint": "replace it by steps that do the same, or remove it",
    }


@pytest.mark.parametrize(
    ("holder", "field"), [("loop", "body"), ("while", "body"), ("inner", "graph")]
)
def test_inside_a_graph_of_a_node_it_is_found_too(holder: str, field: str) -> None:
    more: dict[str, Any] = {"loop": {"items": [1]}, "while": {"condition": "index < 1"}}.get(
        holder, {}
    )
    body = graph_document(placeholder("send"))
    deep = graph_document(node_document("outer", holder, **{field: body}, **more))
    (finding,) = found(graph_document(node_document("top", holder, **{field: deep}, **more)))
    assert finding.code == "placeholder"
    assert finding.node == "top"
    assert "step 'Send' was n8n-nodes-base.slack" in finding.message
    with pytest.raises(GraphInvalid, match="no counterpart"):
        planwave.build(deep, registry=REGISTRY)


def test_what_reads_its_results_has_no_finding() -> None:
    text = (
        '{{ nodes["p"].output.foo[0] }} {{ nodes["p"].error }} {{ nodes.p["true"] }} {{ input.a }}'
    )
    graph = graph_document(
        placeholder("p"),
        node_document("t", "text", text=text),
        edges=[("p", "t")],
    )
    assert [each.code for each in found(graph)] == ["placeholder"]


def test_its_branches_exclude_each_other() -> None:
    nodes = [
        placeholder("p"),
        node_document("a", "text", text="a"),
        node_document("b", "text", text="b"),
        node_document("t", "text"),
    ]
    edges = [
        edge_document("p", "true", "a", "input", "flow"),
        edge_document("p", "false", "b", "input", "flow"),
        edge_document("a", "output", "t", "text", "flow"),
        edge_document("b", "output", "t", "text", "flow"),
    ]
    assert [each.code for each in found({"nodes": nodes, "edges": edges})] == ["placeholder"]


def test_braces_in_it_are_text_and_a_rename_leaves_them() -> None:
    data = {**DATA, "parameters": {"text": '{{ nodes["before"].output }}'}}
    document = graph_document(
        node_document("before", "text", text="x"),
        placeholder("p", data),
        edges=[("before", "p")],
    )
    assert [each.code for each in found(document)] == ["placeholder"]
    rename = Rename("before", "earlier")
    content = apply_operations(PlanContent("", document), [rename], REGISTRY)
    assert content.graph["nodes"][1]["data"] == data


def test_wrong_data_are_found_as_those_of_any_type() -> None:
    codes = [each.code for each in found(graph_document(placeholder("p", {})))]
    assert codes == ["missing-required-input"]
    more = graph_document(placeholder("p", {"kind": "x", "secret": "y"}))
    assert [each.code for each in found(more)] == ["invalid-data"]


async def test_no_run_gets_past_it_even_without_a_check() -> None:
    context = context_for(Node("p", "placeholder", "P"))
    with pytest.raises(PermanentError, match="step 'Send' was") as refused:
        await Placeholder().execute(DATA, make_inputs({}), context)  # type: ignore[misc]
    assert refused.value.code == "placeholder"
    with pytest.raises(PermanentError, match="step 'Send' was"):
        await Placeholder().materialize(DATA, "tools", context)


def test_no_plan_of_a_model_has_one_even_where_the_operator_names_it() -> None:
    rules = PlanRules(node_types=("placeholder", "text"))
    assert plannable_types(REGISTRY, rules) == ["text"]
    assert "placeholder" not in plannable_types(REGISTRY)
    assert "placeholder" not in {
        card.name for card in type_cards(REGISTRY, plannable_types(REGISTRY))
    }
    graph, _ = read_graph(graph_document(placeholder("p")))
    refused = PlanCheck(REGISTRY, rules, plannable_types(REGISTRY, rules)).findings(graph)
    assert "type-not-allowed" in {each.code for each in refused}


def test_editors_are_shown_its_handles_by_channel() -> None:
    edges = (
        make_edge("p", "a", source_handle="tools", target_handle="tools", channel="link"),
        make_edge("s", "p", target_handle="main"),
        make_edge("m", "p", target_handle="main", channel="link"),
    )
    graph, _ = read_graph(graph_document(placeholder("p")))
    graph = type(graph)(graph.nodes, edges)
    ports = REGISTRY.node_ports(graph)["p"]
    assert [(each["name"], each["channel"]) for each in ports["inputs"]] == [
        ("input", "flow"),
        ("main", "flow"),
        ("main", "link"),
    ]
    assert [(each["name"], each["channel"]) for each in ports["outputs"]] == [
        ("output", "flow"),
        ("tools", "link"),
    ]
