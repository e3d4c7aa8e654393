"""Time limits and slots hold in every order of pause, answer, nested run, crash and resume."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.events.types import REQUESTED
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.graph.model import Graph, Policy
from planwave.graph.protocols import Suspension
from tests.support.engine.behaviors import asks, returns_after
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

_START = datetime(2026, 1, 1, tzinfo=UTC)


def clock() -> str:
    """Return the time of the virtual loop as events carry it."""
    now = _START + timedelta(seconds=asyncio.get_running_loop().time())
    return now.isoformat(timespec="microseconds")


def harness_of(
    graph: Graph, acts: dict[str, Any], options: RunOptions, **more: Any
) -> ExecutionHarness:
    """Return a harness whose events carry the time of the virtual loop."""
    return ExecutionHarness(graph, acts, options, now=clock, **more)


# -- the run timeout -------------------------------------------------------------------------------


@virtual_time
async def test_a_pause_over_a_restart_does_not_count_for_the_run_timeout() -> None:
    options = RunOptions(run_timeout_s=5.0)
    first = harness_of(parse_graph("a"), {"a": asks()}, options, journal=MemoryJournal())
    running = asyncio.get_running_loop().create_task(first.run())
    await asyncio.sleep(1)
    await first.execution.pause(REQUESTED)
    first.execution.interrupt(at_once=True)
    assert await running == "interrupted"
    acts = {"a": asks(), "a:resume": returns_after(4.5)}
    second = harness_of(parse_graph("a"), acts, options, history=History(first.stored))
    running = asyncio.get_running_loop().create_task(second.run())
    await asyncio.sleep(60)
    assert second.execution.status == "paused"
    await second.execution.resume()
    await second.execution.answer(first.request_id(), 1)
    assert await running == "completed", second.execution.error


# -- an attempt's own time -------------------------------------------------------------------------


def outer_of(seconds: float) -> Any:
    """Return an act that runs the graph of the node ``i``, then works for some seconds."""

    async def act(inputs: Any, context: Any) -> Any:
        await context.runtime.run_graph("k", parse_graph("i"), {})
        await asyncio.sleep(seconds)
        return result_with(1)

    return act


@pytest.mark.parametrize(("own_s", "ends"), [(2.5, "completed"), (3.5, "failed")])
@virtual_time
async def test_own_time_does_not_count_a_pause_during_a_nested_run(own_s: float, ends: str) -> None:
    options = RunOptions(node_timeout_s=3.0)
    harness = harness_of(parse_graph("a"), {"a": outer_of(own_s), "i": returns_after(2)}, options)
    running = asyncio.get_running_loop().create_task(harness.run())
    await asyncio.sleep(1)
    await harness.execution.pause()
    await asyncio.sleep(100)
    await harness.execution.resume()
    assert await running == ends, harness.execution.error


@virtual_time
async def test_own_time_does_not_count_waiting_for_a_slot_after_a_nested_run() -> None:
    async def outer(inputs: Any, context: Any) -> Any:
        with context.own_work(), contextlib.suppress(NodeError):  # so it is not parked
            await context.runtime.run_graph("k", parse_graph("i"), {})
        await asyncio.sleep(2.5)
        return result_with(1)

    graph = parse_graph("a b c", "b>c", policies={"c": Policy(timeout_s=50.0)})
    acts = {"a": outer, "b": returns_after(1), "c": returns_after(40), "i": asks()}
    harness = harness_of(graph, acts, RunOptions(node_timeout_s=3.0, max_parallel=1))
    running = asyncio.get_running_loop().create_task(harness.run())
    await asyncio.sleep(2)  # c has the slot from now on
    await harness.execution.cancel_node("a[k]/i", "enough")
    assert await running == "completed", harness.execution.error
    assert asyncio.get_running_loop().time() == 43.5


@pytest.mark.parametrize("is_taken_up", [False, True])
@pytest.mark.parametrize(("own_s", "ends"), [(0.9, "completed"), (1.1, "failed")])
@virtual_time
async def test_own_time_before_a_wait_counts_after_it_also_over_a_restart(
    own_s: float, ends: str, is_taken_up: bool
) -> None:
    async def works_then_asks(inputs: Any, context: Any) -> Any:
        await outer_of(2)(inputs, context)
        return Suspension("?")

    acts = {"a": works_then_asks, "i": returns_after(2.9), "a:resume": returns_after(own_s)}
    graph, options = parse_graph("a"), RunOptions(node_timeout_s=3.0)
    harness = harness_of(
        graph, acts, options, journal=MemoryJournal(), parks="always" if is_taken_up else "never"
    )
    running = asyncio.get_running_loop().create_task(harness.run())
    await asyncio.sleep(10)
    (waiting,) = harness.data_of("node.waiting")
    assert (waiting["duration_s"], waiting["own_time_s"]) == (4.9, 2.0)
    if is_taken_up:
        assert await running == "paused"
        harness = harness_of(graph, acts, options, history=History(harness.stored))
        running = asyncio.get_running_loop().create_task(harness.run())
        await asyncio.sleep(0)
    await harness.execution.answer(waiting["request_id"], 1)
    assert await running == ends, harness.execution.error
    if ends == "failed":
        assert harness.data_of("node.failed", "a")[0]["error"]["code"] == "node-timeout"


@virtual_time
async def test_a_wait_stored_without_own_time_counts_the_whole_duration() -> None:
    async def works_then_asks(inputs: Any, context: Any) -> Any:
        await asyncio.sleep(2)
        return Suspension("?")

    acts = {"a": works_then_asks, "a:resume": returns_after(1.1)}
    options = RunOptions(node_timeout_s=3.0)
    first = harness_of(parse_graph("a"), acts, options, journal=MemoryJournal(), parks="always")
    assert await first.run() == "paused"
    for event in first.stored:
        event.data.pop("own_time_s", None)
    harness = harness_of(parse_graph("a"), acts, options, history=History(first.stored))
    answered = harness.execution.answer(first.request_id(), 1)
    assert await harness.run() == "failed"
    await answered


# -- slots -----------------------------------------------------------------------------------------


class Work:
    """Counts the nodes at their own work at the same time."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self, seconds: float) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.now -= 1


@pytest.mark.parametrize("is_beside", [False, True])
@virtual_time
async def test_a_node_with_own_work_beside_nested_runs_holds_a_slot(is_beside: bool) -> None:
    work = Work()

    async def outer(inputs: Any, context: Any) -> Any:
        async def one(key: str, own_s: float) -> None:
            if key != "y" or not is_beside:
                await context.runtime.run_graph(key, parse_graph(key), {})
            if own_s:
                with context.own_work():
                    await work(own_s)

        async with asyncio.TaskGroup() as group:
            group.create_task(one("x", 10))
            group.create_task(one("y", 5 if is_beside else 0))
        return result_with(1)

    async def inner(inputs: Any, context: Any) -> Any:
        await work(5)
        return result_with(1)

    harness = harness_of(
        parse_graph("a"), {"a": outer, "x": inner, "y": inner}, RunOptions(max_parallel=1)
    )
    assert await harness.run() == "completed"
    assert work.most == 1
    assert asyncio.get_running_loop().time() == 20


@virtual_time
async def test_a_node_that_waits_for_the_second_of_two_nested_runs_holds_no_slot() -> None:
    async def outer(inputs: Any, context: Any) -> Any:
        second = asyncio.get_running_loop().create_task(
            context.runtime.run_graph("y", parse_graph("y"), {})
        )
        await context.runtime.run_graph("x", parse_graph("x"), {})
        await second
        return result_with(1)

    options = RunOptions(max_parallel=1, node_timeout_s=6.0)
    harness = harness_of(
        parse_graph("a"), {"a": outer, "x": returns_after(5), "y": returns_after(5)}, options
    )
    assert await harness.run() == "completed", harness.execution.error


@virtual_time
async def test_a_nested_run_inside_a_once_call_gets_a_slot() -> None:
    async def outer(inputs: Any, context: Any) -> Any:
        async def runs() -> Any:
            await context.runtime.run_graph("x", parse_graph("x"), {})

        await context.runtime.once("value", runs)
        return result_with(1)

    options = RunOptions(max_parallel=1, node_timeout_s=6.0)
    harness = harness_of(parse_graph("a"), {"a": outer, "x": returns_after(5)}, options)
    assert await harness.run() == "completed", harness.execution.error
