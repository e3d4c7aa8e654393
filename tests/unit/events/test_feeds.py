from __future__ import annotations

from typing import Any

from planwave.events import Event, ExecutionState, fold
from planwave.events.feeds import Feeds

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
    told = [("execution.created", None, {"graph": GRAPH}), *facts]
    return fold(Event("x1", n, "t", kind, path, 1, d) for n, (kind, path, d) in enumerate(told, 1))


def test_what_arrived_is_what_sources_gave_on_the_handles_of_flow_edges() -> None:
    done = [("node.completed", each, {"outputs": GIVEN}) for each in ("a", "b", "t")]
    feeds = Feeds(state_of(*done))
    (arrival,) = feeds.inputs("c").arrivals
    assert arrival == ("e1", "a", "First", "output", "input", ("text", "one"))
    assert feeds.sources("c") == ["a", "b"]


def test_of_a_winner_its_value_alone_is_read() -> None:
    started = ("node.started", "c", {"wave": 2, "via": "e2"})
    state = state_of(("node.completed", "a", {"outputs": GIVEN}), started)
    assert not Feeds(state).inputs("c")


def test_nothing_is_known_of_nodes_of_nested_runs_or_of_none() -> None:
    feeds = Feeds(state_of(("node.started", "a[1]/i", {"wave": 1})))
    assert not feeds.inputs("a[1]/i")
    assert not feeds.inputs("nobody")
    assert feeds.sources("nobody") == []
