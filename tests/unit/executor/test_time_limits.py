"""Time limits and slots hold in every order of pause, answer, nested run, crash and resume."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from planwave.executor.options import RunOptions
from planwave.executor.past import PAUSED_BY_REQUEST, Past
from planwave.graph.capabilities import Suspension
from planwave.graph.model import Graph
from tests.fakes.catalogue import graph_of
from tests.fakes.stones import Ledger, Rig, gives
from tests.fakes.virtual_loop import virtual_time

_START = datetime(2026, 1, 1, tzinfo=UTC)


def clock() -> str:
    """Return the time of the virtual loop as events carry it."""
    now = _START + timedelta(seconds=asyncio.get_running_loop().time())
    return now.isoformat(timespec="microseconds")


def rig_of(graph: Graph, acts: dict[str, Any], options: RunOptions, **more: Any) -> Rig:
    """Return a rig whose events carry the time of the virtual loop."""
    return Rig(graph, acts, options, now=clock, **more)


def works(seconds: float) -> Any:
    """Return an act that works for some seconds."""

    async def act(inputs: Any, context: Any, *answer: Any) -> Any:
        await asyncio.sleep(seconds)
        return gives(1)

    return act


async def asks(inputs: Any, context: Any) -> Any:
    return Suspension("?")


# -- the run timeout -------------------------------------------------------------------------------


@virtual_time
async def test_a_pause_in_which_an_execution_is_taken_up_does_not_count() -> None:
    options = RunOptions(run_timeout_s=5.0)
    first = rig_of(graph_of("a"), {"a": asks}, options, journal=Ledger())
    running = asyncio.create_task(first.run())
    await asyncio.sleep(1)
    await first.execution.pause(PAUSED_BY_REQUEST)
    first.execution.interrupt(at_once=True)
    assert await running == "interrupted"
    acts = {"a": asks, "a:resume": works(4.5)}
    second = rig_of(graph_of("a"), acts, options, past=Past(first.stored))
    running = asyncio.create_task(second.run())
    await asyncio.sleep(60)
    assert second.execution.status == "paused"
    await second.execution.resume()
    (waiting,) = (e.data["request_id"] for e in first.stored if e.type == "node.waiting")
    await second.execution.answer(waiting, 1)
    assert await running == "completed", second.execution.error
