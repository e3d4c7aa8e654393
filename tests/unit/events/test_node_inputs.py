from __future__ import annotations

from typing import Any

from planwave.events import ExecutionState, fold
from planwave.events.node_inputs import NodeInputs
from tests.support.engine.event_story import numbered_events

GRAPH: dict[str, Any] = {
    "nodes": [{"id": "a", "name": "First"}, {"id": "b"}, {"id": "c"}, {"id": "t"}],
    "edges": [
        {"id": "e1", "source": "a", "target": "c", "data": {"channel": "flow"}},
        {"id": "e2", "source": "b", "sourceHandle": "no", "target": "c", "targetHandle": "x",
         "data": {"channel": "flow"}},
        {"id": "e3", "source": "t", "target": "c", "data": {"channel": "link"}},
    ],
}  # fmt: skip
GIVEN = {"output": {"type": "text", "value": "one"}}


def state_of(*facts: tuple[str, str, dict[str, Any]]) -> ExecutionState:
    return fold(numbered_events([("execution.created", None, {"graph": GRAPH}), *facts]))


def test_what_arrived_is_what_sources_gave_on_the_handles_of_flow_edges() -> None:
    done = [("node.completed", each, {"outputs": GIVEN}) for each in ("a", "b", "t")]
    feeds = NodeInputs(state_of(*done))
    (arrival,) = feeds.inputs("c").arrivals
    assert arrival == ("e1", "a", "First", "output", "input", ("text", "one"))
    assert feeds.upstream("c") == ["a", "b"]


def test_of_a_winner_its_value_alone_is_read() -> None:
    started = ("node.started", "c", {"wave": 2, "via": "e2"})
    state = state_of(("node.completed", "a", {"outputs": GIVEN}), started)
    assert not NodeInputs(state).inputs("c")


def opened(path: str, key: str, name: str, **more: Any) -> tuple[str, str, dict[str, Any]]:
    said = {"key": key, "graph": name, "inputs": "h", **more}
    return ("node.event", path, {"event_type": "run_graph", "data": said})


def test_a_nested_node_reads_what_the_nodes_beside_it_gave() -> None:
    state = state_of(
        opened("b", "0", "g", document=GRAPH),
        opened("b", "1", "g"),
        ("node.completed", "b[0]/a", {"outputs": GIVEN}),
        ("node.completed", "b[1]/a", {"outputs": {"output": {"type": "text", "value": "two"}}}),
    )
    feeds = NodeInputs(state)
    assert feeds.inputs("b[0]/c").arrivals == ()
    state.node("b[0]/c"), state.node("b[1]/c")
    (arrival,) = feeds.inputs("b[0]/c").arrivals
    assert arrival == ("e1", "a", "First", "output", "input", ("text", "one"))
    assert feeds.inputs("b[1]/c").one("input") == ("text", "two")
    assert feeds.upstream("b[1]/c") == ["b[1]/a", "b[1]/b"]
    assert feeds.graphs.locate("b[1]/c").graph is feeds.graphs.locate("b[0]/c").graph


def test_a_run_inside_a_run_has_a_graph_of_its_own() -> None:
    inner = {"nodes": [{"id": "x", "type": "t"}, {"id": "y"}], "edges": [
        {"source": "x", "target": "y", "data": {"channel": "flow"}},
    ]}  # fmt: skip
    feeds = NodeInputs(state_of(opened("b", "0", "g", document=GRAPH),
                           opened("b[0]/a", "k", "h", document=inner)))  # fmt: skip
    assert feeds.upstream("b[0]/a[k]/y") == ["b[0]/a[k]/x"]
    place = feeds.graphs.locate("b[0]/a[k]/x")
    assert (place.parent, place.id, place.document["type"]) == ("b[0]/a", "x", "t")
    assert feeds.graphs.locate("b").parent is None
    assert not feeds.graphs.locate("b[0]/nobody").is_known


def test_a_run_that_is_let_go_of_keeps_its_graph_and_one_made_anew_may_have_another() -> None:
    other = {"nodes": [{"id": "a", "type": "other"}], "edges": []}
    dropped = (
        "node.event",
        "b",
        {"event_type": "run_graph", "data": {"key": "0", "dropped": True}},
    )
    state = state_of(opened("b", "0", "g", document=GRAPH), dropped)
    assert NodeInputs(state).upstream("b[0]/c") == ["b[0]/a", "b[0]/b"]
    state = state_of(opened("b", "0", "g", document=GRAPH), opened("b", "0", "h", document=other))
    assert NodeInputs(state).graphs.locate("b[0]/a").document["type"] == "other"


def test_of_a_graph_that_was_never_told_nothing_is_known() -> None:
    """As in logs of before graphs were told."""
    feeds = NodeInputs(state_of(opened("b", "0", "g"), ("node.started", "b[0]/c", {"wave": 1})))
    assert not feeds.inputs("b[0]/c")
    assert feeds.upstream("b[0]/c") == []
    assert feeds.graphs.locate("b[0]/c").document == {}


def test_nothing_is_known_of_nodes_of_nested_runs_or_of_none() -> None:
    feeds = NodeInputs(state_of(("node.started", "a[1]/i", {"wave": 1})))
    assert not feeds.inputs("a[1]/i")
    assert not feeds.inputs("nobody")
    assert feeds.upstream("nobody") == []
