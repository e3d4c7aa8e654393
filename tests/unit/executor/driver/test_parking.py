"""When nodes that only wait for what is inside them are parked, whatever the store takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from planwave.events import Event
from planwave.graph.protocols import Suspension
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.graph.fake_catalog import parse_graph
from tests.support.virtual_loop import virtual_time


class SlowLedger(MemoryJournal):
    """A store that takes a second for each commit."""

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        await asyncio.sleep(1)
        await super().append(execution_id, epoch, events)


class Asking(ExecutionHarness):
    """A node that runs a graph that asks for each of three keys, two at a time; all are answered.

    The first two requests are left open until the third is there.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(parse_graph("a"), {"a": self._loop, "q": self._ask}, **more)
        self.open: list[str] = []

    async def _ask(self, inputs: Any, context: Any) -> Any:
        return Suspension({"for": context.path})

    async def _loop(self, inputs: Any, context: Any) -> Any:
        keys = iter("012")

        async def work() -> None:
            for key in keys:
                await context.runtime.run_graph(key, parse_graph("q"), {})

        async with asyncio.TaskGroup() as workers:
            workers.create_task(work())
            workers.create_task(work())
        return result_with(1)

    def _record(self, events: list[Event]) -> None:
        super()._record(events)
        for event in events:
            if event.type == "node.waiting":
                self.open.append(event.data["request_id"])
            elif event.type == "node.parked" and len(self.open) == 2:
                self.execution.answer(self.open[1], "yes")
            elif event.type == "node.parked" and len(self.open) == 3:
                self.execution.answer(self.open[0], "yes")
                self.execution.answer(self.open[2], "yes")


@virtual_time
async def test_a_node_is_not_parked_before_it_has_what_came_of_its_nested_runs() -> None:
    for journal in (None, MemoryJournal(), SlowLedger()):
        rig = Asking(journal=journal)
        assert await rig.run() == "completed"
        told = rig.event_names("node.waiting", "node.answered", "node.parked", "node.unparked")
        assert told[:7] == [
            "node.waiting a[0]/q", "node.waiting a[1]/q", "node.parked a",
            "node.answered a[1]/q", "node.unparked a", "node.waiting a[2]/q", "node.parked a",
        ]  # fmt: skip
