"""How many nodes work at once, in which order, and what does not count as work."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planwave.errors import InputError, NodeError
from planwave.executor.options import RunOptions
from planwave.graph.model import Policy, Retry
from tests.support.engine.behaviors import asks
from tests.support.engine.generic_nodes import ExecutionHarness, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import DeadlockDetected, VirtualLoop, virtual_time

Inputs = Context = Any


class Work:
    """Counts the nodes that run at the same time."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.order: list[str] = []

    async def __call__(self, inputs: Inputs, context: Context) -> Any:
        self.order.append(context.node_id)
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(1)
        self.now -= 1
        return result_with(1)


@virtual_time
async def test_as_many_nodes_run_at_once_as_there_are_slots() -> None:
    barrier = asyncio.Barrier(3)

    async def meets(inputs: Inputs, context: Context) -> Any:
        await barrier.wait()
        return result_with(1)

    names = "a b c d e f"
    harness = ExecutionHarness(
        parse_graph(names), dict.fromkeys(names.split(), meets), RunOptions(max_parallel=3)
    )
    assert await harness.run() == "completed"


def test_never_more_nodes_run_at_once_than_there_are_slots() -> None:
    async def scene() -> None:
        barrier = asyncio.Barrier(4)

        async def meets(inputs: Inputs, context: Context) -> Any:
            await barrier.wait()
            return result_with(1)

        acts = dict.fromkeys("abcd", meets)
        await ExecutionHarness(parse_graph("a b c d"), acts, RunOptions(max_parallel=3)).run()

    with (
        asyncio.Runner(loop_factory=VirtualLoop) as runner,
        pytest.raises(DeadlockDetected),
    ):
        runner.run(scene())


@virtual_time
async def test_slots_go_to_the_nodes_that_were_ready_first() -> None:
    work = Work()
    names = "c a b z y"
    graph = parse_graph(names, "c>z", "a>y")
    harness = ExecutionHarness(
        graph, dict.fromkeys(names.split(), work), RunOptions(max_parallel=1)
    )
    assert await harness.run() == "completed"
    assert work.most == 1
    assert work.order == ["c", "a", "b", "z", "y"]
    assert harness.event_names("node.started") == [f"node.started {n}" for n in work.order]


@virtual_time
async def test_a_node_holds_no_slot_during_its_nested_run() -> None:
    async def nests(inputs: Inputs, context: Context) -> Any:
        inner = parse_graph("i")
        await context.runtime.run_graph("1", inner, {})
        await context.runtime.run_graph("2", inner, {})
        return result_with(1)

    work = Work()
    acts = {"a": nests, "b": nests, "i": work}
    harness = ExecutionHarness(parse_graph("a b"), acts, RunOptions(max_parallel=1))
    assert await harness.run() == "completed"
    assert (work.most, len(work.order)) == (1, 4)
    assert asyncio.get_running_loop().time() == 4


@virtual_time
async def test_a_node_resumes_after_its_nested_run_before_queued_nodes_start() -> None:
    async def nests(inputs: Inputs, context: Context) -> Any:
        await context.runtime.run_graph("k", parse_graph("i"), {})
        return result_with(1)

    work = Work()
    acts = {"a": nests, "b": work, "c": work, "i": work}
    harness = ExecutionHarness(parse_graph("a b c"), acts, RunOptions(max_parallel=1))
    assert await harness.run() == "completed"
    names = harness.event_names("node.started", "node.completed")
    assert names.index("node.completed a") == names.index("node.completed a[k]/i") + 1


@virtual_time
async def test_a_node_takes_its_slot_again_after_the_last_of_two_nested_runs() -> None:
    work = Work()

    async def nests(inputs: Inputs, context: Context) -> Any:
        async with asyncio.TaskGroup() as group:
            group.create_task(context.runtime.run_graph("1", parse_graph("i"), {}))
            group.create_task(context.runtime.run_graph("2", parse_graph("i j", "i>j"), {}))
        return await work(inputs, context)

    acts = {"a": nests, "b": nests, "i": work, "j": work}
    harness = ExecutionHarness(parse_graph("a b"), acts, RunOptions(max_parallel=2))
    assert await harness.run() == "completed"
    assert work.most == 2


@virtual_time
async def test_a_node_holds_no_slot_during_a_retry_delay_or_while_it_waits() -> None:
    async def shaky(inputs: Inputs, context: Context) -> Any:
        if context.attempt == 1:
            raise NodeError("shaky", retryable=True)
        return result_with(1)

    graph = parse_graph("a w b", policies={"a": Policy(retry=Retry(2, 100))})
    work = Work()
    harness = ExecutionHarness(
        graph, {"a": shaky, "w": asks(), "b": work}, RunOptions(max_parallel=1)
    )
    loop = asyncio.get_running_loop()

    def answer() -> None:
        assert harness.execution.status == "executing"  # a will come back by itself
        harness.execution.answer(harness.request_id(), 1)

    loop.call_later(50, answer)
    assert await harness.run() == "completed"
    completed = harness.event_names("node.completed")
    assert completed == ["node.completed b", "node.completed w", "node.completed a"]
    assert harness.data_of("execution.paused") == []


@virtual_time
async def test_a_queued_node_that_is_cancelled_never_starts() -> None:
    work = Work()
    harness = ExecutionHarness(
        parse_graph("a b"), {"a": work, "b": work}, RunOptions(max_parallel=1)
    )
    asyncio.get_running_loop().call_later(0.5, harness.execution.cancel, "enough")
    assert await harness.run() == "cancelled"
    assert work.order == ["a"]
    assert harness.event_names("node.started") == ["node.started a"]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_run_without_slots_is_rejected(limit: int) -> None:
    with pytest.raises(InputError, match="max_parallel"):
        ExecutionHarness(parse_graph("a"), options=RunOptions(max_parallel=limit))


@virtual_time
async def test_a_node_gets_simultaneous_results_of_nested_runs_in_one_slot() -> None:
    async def both(inputs: Inputs, context: Context) -> Any:
        given = {"i": {"output": 1}}  # nothing of it is left to run
        async with asyncio.TaskGroup() as group:
            for key in "12":
                group.create_task(context.runtime.run_graph(key, parse_graph("i"), given))
        return result_with(1)

    harness = ExecutionHarness(
        parse_graph("a b"), {"a": both, "b": both}, RunOptions(max_parallel=1)
    )
    assert await harness.run() == "completed"


@virtual_time
async def test_a_node_that_is_cancelled_while_it_is_queued_is_not_waited_for() -> None:
    """It waits for the running place, which nobody grants; the other node waits for a person."""
    acts = {"a": asks(), "b": asks()}
    harness = ExecutionHarness(parse_graph("a b"), acts, on_place=lambda change: None)
    harness.answer_after(1)
    asyncio.get_running_loop().call_later(2, harness.execution.cancel_node, "a", "enough")
    harness.interrupt_after(3)
    assert await harness.run() == "interrupted"
    told = harness.event_names("execution.paused", "execution.resumed", "node.cancelled")
    assert told == [
        "execution.paused",
        "execution.resumed",
        "node.cancelled a",
        "execution.paused",
    ]
