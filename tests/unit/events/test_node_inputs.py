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


def test_inputs_are_the_values_of_the_sources_of_flow_edges() -> None:
    done = [("node.completed", each, {"outputs": GIVEN}) for each in ("a", "b", "t")]
    node_inputs = NodeInputs(state_of(*done))
    (arrival,) = node_inputs.inputs("c").arrivals
    assert arrival == ("e1", "a", "First", "output", "input", ("text", "one"))
    assert node_inputs.upstream("c") == ["a", "b"]


def test_a_join_any_has_only_the_input_of_its_winning_edge() -> None:
    started = ("node.started", "c", {"wave": 2, "via": "e2"})
    state = state_of(("node.completed", "a", {"outputs": GIVEN}), started)
    assert not NodeInputs(state).inputs("c")


def opened(path: str, key: str, name: str, **more: Any) -> tuple[str, str, dict[str, Any]]:
    opening = {"key": key, "graph": name, "inputs": "h", **more}
    return ("node.event", path, {"event_type": "run_graph", "data": opening})


def test_a_nested_node_reads_values_of_its_own_graph_run() -> None:
    state = state_of(
        opened("b", "0", "g", document=GRAPH),
        opened("b", "1", "g"),
        ("node.completed", "b[0]/a", {"outputs": GIVEN}),
        ("node.completed", "b[1]/a", {"outputs": {"output": {"type": "text", "value": "two"}}}),
    )
    node_inputs = NodeInputs(state)
    assert node_inputs.inputs("b[0]/c").arrivals == ()
    state.node("b[0]/c"), state.node("b[1]/c")
    (arrival,) = node_inputs.inputs("b[0]/c").arrivals
    assert arrival == ("e1", "a", "First", "output", "input", ("text", "one"))
    assert node_inputs.inputs("b[1]/c").one("input") == ("text", "two")
    assert node_inputs.upstream("b[1]/c") == ["b[1]/a", "b[1]/b"]
    assert node_inputs.graphs.locate("b[1]/c").graph is node_inputs.graphs.locate("b[0]/c").graph


def test_a_nested_run_at_the_second_level_has_its_own_graph() -> None:
    inner = {"nodes": [{"id": "x", "type": "t"}, {"id": "y"}], "edges": [
        {"source": "x", "target": "y", "data": {"channel": "flow"}},
    ]}  # fmt: skip
    node_inputs = NodeInputs(state_of(opened("b", "0", "g", document=GRAPH),
                           opened("b[0]/a", "k", "h", document=inner)))  # fmt: skip
    assert node_inputs.upstream("b[0]/a[k]/y") == ["b[0]/a[k]/x"]
    place = node_inputs.graphs.locate("b[0]/a[k]/x")
    assert (place.parent, place.id, place.document["type"]) == ("b[0]/a", "x", "t")
    assert node_inputs.graphs.locate("b").parent is None
    assert not node_inputs.graphs.locate("b[0]/nobody").is_known


def test_an_abandoned_run_keeps_its_graph_and_a_restarted_run_may_have_another() -> None:
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


def test_a_nested_run_without_a_stored_graph_has_no_inputs() -> None:
    """Logs of older versions have no graphs of nested runs."""
    node_inputs = NodeInputs(
        state_of(opened("b", "0", "g"), ("node.started", "b[0]/c", {"wave": 1}))
    )
    assert not node_inputs.inputs("b[0]/c")
    assert node_inputs.upstream("b[0]/c") == []
    assert node_inputs.graphs.locate("b[0]/c").document == {}


def test_unknown_nodes_have_no_inputs() -> None:
    node_inputs = NodeInputs(state_of(("node.started", "a[1]/i", {"wave": 1})))
    assert not node_inputs.inputs("a[1]/i")
    assert not node_inputs.inputs("nobody")
    assert node_inputs.upstream("nobody") == []
