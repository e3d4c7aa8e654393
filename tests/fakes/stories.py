"""What the events tell of an execution of stones, up to any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from planwave.errors import NodeError
from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.capabilities import Suspension
from planwave.graph.model import Graph
from tests.fakes.stones import Rig

AT = "2026-01-01T00:00:00.000000+00:00"
EAGER = RunOptions()


class Watched(Rig):
    """A rig whose execution is told something once it can only wait; it is cancelled by default."""

    def __init__(self, *given: Any, then: Callable[[Rig, Event], None] | None, **more: Any) -> None:
        super().__init__(*given, **more)
        self.then = then

    def _hear(self, events: list[Event]) -> None:
        super()._hear(events)
        for event in events:
            if self.then is not None:
                self.then(self, event)
            elif event.type == "execution.paused":
                self.execution.cancel("nobody answers")


def created(graph: Graph, options: RunOptions = EAGER, inputs: Any = None) -> Event:
    """The first event of an execution."""
    facts = {"graph": graph.to_document(), "options": options.as_json(), "inputs": inputs}
    return Event("x1", 1, AT, "execution.created", None, None, facts)


async def events_of(
    graph: Graph,
    acts: Mapping[str, Any] | None = None,
    options: RunOptions = EAGER,
    *,
    inputs: Mapping[str, Any] | None = None,
    until: Callable[[Event], bool] = lambda _: False,
    then: Callable[[Rig, Event], None] | None = None,
) -> list[Event]:
    """Run a graph and give its events, up to the first that ``until`` holds for."""
    told = [created(graph, options, inputs)]
    rig = Watched(graph, acts, options, inputs=inputs, last_seq=1, then=then)
    await rig.run()
    for event in rig.stored:
        told.append(event)
        if until(event):
            break
    return told


def after(kind: str, path: str | None = None) -> Callable[[Event], bool]:
    return lambda event: (event.type, event.path) == (kind, path)


def boom(*_: Any) -> Any:
    raise NodeError("boom")


def suspends(*_: Any) -> Any:
    async def ask() -> Suspension:
        return Suspension("which one?")

    return ask()
