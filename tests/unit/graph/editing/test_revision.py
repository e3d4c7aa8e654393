"""What of a graph may change while it is run."""

from __future__ import annotations

import pytest

from planwave.graph.editing.revision import (
    Progress,
    changed_graph,
    frozen_nodes,
    graph_change,
    revision_findings,
)
from planwave.graph.model import Graph, Node, Policy
from tests.support.graph.builders import make_graph, text_node
from tests.support.graph.fake_node_types import FakeNodeTypes, parse_graph
from tests.support.llm.fake_providers import library_registry

PLAN = parse_graph("a b c d", "a>b", "b>c", "c>d")


def codes(before: Graph, after: Graph, progress: Progress) -> list[tuple[str, str | None]]:
    found = revision_findings(before, after, progress, FakeNodeTypes())
    return [(each.code, each.node) for each in found]


def test_what_never_began_may_change() -> None:
    begun = Progress({"a": "completed", "b": "running"})
    assert codes(PLAN, parse_graph("a b x", "a>b", "a>x"), begun) == []
    assert codes(PLAN, parse_graph("a b d c", "a>b", "b>d", "d>c"), begun) == []


def test_what_has_begun_stays_with_its_inputs() -> None:
    begun = Progress({"a": "completed", "b": "running"})
    found = codes(PLAN, parse_graph("b c d", "b>c", "c>d"), begun)
    assert sorted(found) == [("frozen-input", "b"), ("frozen-node", "a")]
    assert codes(PLAN, parse_graph("a b:plain c d", "a>b"), begun) == [("frozen-node", "b")]
    assert codes(PLAN, parse_graph("x a b", "a>b", "x>b"), begun) == [("frozen-input", "b")]


def test_what_decided_what_a_step_was_given_stays() -> None:
    graph = parse_graph("a skipped far c", "a>c", "skipped>c", "far>skipped")
    begun = Progress({"a": "completed", "c": "running"})
    assert set(frozen_nodes(graph, begun)) == {"a", "c", "skipped", "far"}
    linked = parse_graph("tools agent", "tools~agent.tools")
    assert set(frozen_nodes(linked, Progress({"agent": "running"}))) == {"tools", "agent"}


def test_the_sources_of_a_race_that_another_one_has_won_stay_open() -> None:
    policies = {"c": Policy(join="any")}
    graph = parse_graph("a b c", "a>c", "b>c", policies=policies)
    begun = Progress({"a": "completed", "c": "running"}, winners={"c": "e1"})
    assert set(frozen_nodes(graph, begun)) == {"a", "c"}
    assert codes(graph, parse_graph("a c", "a>c", policies=policies), begun) == []
    assert codes(graph, parse_graph("b c", policies=policies), begun)


def test_a_failed_step_may_be_dropped_and_not_be_changed() -> None:
    failed = Progress({"a": "completed", "b": "failed"}, {"b"})
    assert codes(PLAN, parse_graph("a x c d", "a>x", "x>c", "c>d"), failed) == []
    assert codes(PLAN, parse_graph("a b:plain c d", "a>b"), failed) == [("frozen-node", "b")]


def test_the_id_of_a_dropped_step_is_not_used_again() -> None:
    progress = Progress({"a": "completed"}, used={"x"})
    assert codes(PLAN, parse_graph("a b c d x", "a>b", "b>c", "c>d"), progress) == [
        ("used-id", "x")
    ]
    assert codes(PLAN, parse_graph("a b c d y", "a>b", "b>c", "c>d"), progress) == []


def test_a_step_that_ran_cannot_become_one_that_others_only_use() -> None:
    graph, linked = parse_graph("a b", "a>b"), parse_graph("a b c", "a~c.tools")
    found = codes(graph, linked, Progress({"a": "completed"}))
    assert found == [("frozen-node", "a")]


def test_the_ways_that_a_step_chooses_from_stay_once_it_has_begun() -> None:
    plan = parse_graph("a:fork b c", "a.way-1>b", "a.way-2>c")
    running = Progress({"a": "running"})
    other_way = parse_graph("a:fork b d", "a.way-1>b", "a.way-3>d")
    assert codes(plan, other_way, running) == [("frozen-node", "a")]
    assert codes(plan, other_way, Progress({})) == []
    other_step = parse_graph("a:fork b d", "a.way-1>b", "a.way-2>d")
    assert codes(plan, other_step, running) == []
    nothing_after = parse_graph("a:fork d")
    assert codes(plan, nothing_after, running) == []


def test_a_step_that_gives_the_reply_stays_although_it_has_not_begun() -> None:
    plan = parse_graph("a b r:reply", "a>b", "b>r")
    begun = Progress({"a": "running"})
    for after in (parse_graph("a b", "a>b"), parse_graph("a b r:plain", "a>b", "b>r")):
        (found,) = revision_findings(plan, after, begun, FakeNodeTypes())
        assert (found.code, found.node) == ("frozen-node", "r")
        assert found.hint is not None
        assert "change the steps before it" in found.hint
    assert codes(plan, parse_graph("a x r:reply", "a>x", "x>r"), begun) == []
    assert codes(plan, parse_graph("a b r:reply", "a>b", "a>r", "b>r"), begun) == []
    failed = Progress({"a": "completed", "b": "completed", "r": "failed"}, {"r"})
    assert codes(plan, parse_graph("a b x", "a>b", "b>x"), failed) == []


def test_what_gives_the_reply_inside_another_step_stays_and_the_rest_of_that_may_change() -> None:
    catalogue = library_registry()

    def graph(status: int, items: str = "[1]", *more: str) -> Graph:
        replies = {"id": "r", "type": "webhook_reply", "data": {"status": status}}
        others = [{"id": each, "type": "text", "data": {"text": "x"}} for each in more]
        body = {"nodes": [replies, *others], "edges": []}
        return make_graph(Node("l", "loop", "L", data={"items": items, "body": body}))

    def told(after: Graph) -> list[str]:
        found = revision_findings(graph(200), after, Progress({}), catalogue)
        return [each.code for each in found]

    assert told(graph(404)) == told(make_graph(text_node("a"))) == ["frozen-node"]
    assert told(graph(200, "[1, 2]")) == told(graph(200, "[1]", "more")) == []


def test_the_same_graph_is_no_change() -> None:
    moved = Graph(tuple(each._replace(ui={"x": 1}) for each in PLAN.nodes), PLAN.edges)
    for after in (PLAN, moved):
        assert codes(PLAN, after, Progress({})) == [("nothing-changed", None)]


@pytest.mark.parametrize(
    "after",
    [PLAN, parse_graph("a"), parse_graph("d x a", "d>x", "x>a"), parse_graph("a:plain b", "a>b")],
)
def test_a_change_makes_the_graph_that_it_was_made_from(after: Graph) -> None:
    change = graph_change(PLAN.document, after.document)
    changed = changed_graph(PLAN.document, change)
    for kind in ("nodes", "edges"):
        by_id = {each["id"]: each for each in changed[kind]}
        assert by_id == {each["id"]: each for each in after.document[kind]}
