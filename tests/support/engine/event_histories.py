"""The events of executions of generic nodes, up to any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from planwave.errors import NodeError
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.model import Graph
from planwave.graph.protocols import Suspension
from tests.support.engine.generic_nodes import ExecutionHarness

TIMESTAMP = "2026-01-01T00:00:00.000000+00:00"
EAGER_OPTIONS = RunOptions()


def created_event(graph: Graph, options: RunOptions = EAGER_OPTIONS, inputs: Any = None) -> Event:
    """The first event of an execution."""
    facts = {"graph": graph.to_document(), "options": options.as_json(), "inputs": inputs}
    return Event("x1", 1, TIMESTAMP, "execution.created", None, None, facts)


async def run_events(
    graph: Graph,
    behaviors: Mapping[str, Any] | None = None,
    options: RunOptions = EAGER_OPTIONS,
    *,
    inputs: Mapping[str, Any] | None = None,
    until: Callable[[Event], bool] = lambda _: False,
    on_event: Callable[[ExecutionHarness, Event], None] | None = None,
) -> list[Event]:
    """Run a graph; return its events up to the first for which ``until`` holds.

    An execution that can only wait is cancelled, unless ``on_event`` does something else.
    """
    events = [created_event(graph, options, inputs)]
    harness = ExecutionHarness(graph, behaviors, options, inputs=inputs, last_seq=1)

    def cancel_when_paused(event: Event) -> None:
        if event.type == "execution.paused":
            harness.execution.cancel("nobody answers")

    harness.listeners.append(cancel_when_paused if on_event is None else partial(on_event, harness))
    await harness.run()
    for event in harness.stored:
        events.append(event)
        if until(event):
            break
    return events


def is_event(kind: str, path: str | None = None) -> Callable[[Event], bool]:
    return lambda event: (event.type, event.path) == (kind, path)


def raise_error(*_: Any) -> Any:
    raise NodeError("boom")


def suspend(*_: Any) -> Any:
    async def ask() -> Suspension:
        return Suspension("which one?")

    return ask()
