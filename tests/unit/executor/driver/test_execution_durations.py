"""How long a node has run: the sum of its stretches, without what it waited for answers."""

from __future__ import annotations

import asyncio
from typing import Any

from planwave.errors import NodeError
from planwave.events import Event, fold
from planwave.executor.recovery.history import History
from planwave.graph.model import Graph, Policy, Retry
from planwave.graph.protocols import Suspension
from tests.support.engine.generic_nodes import ExecutionHarness, MemoryJournal, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

WAITED_S = 1_000.0


async def works_then_asks(inputs: Any, context: Any) -> Any:
    await asyncio.sleep(2)
    return Suspension("go on?")


async def goes_on(inputs: Any, context: Any, state: Any, answer: Any) -> Any:
    await asyncio.sleep(3)
    return result_with(answer)


async def runs_one_that_asks(inputs: Any, context: Any) -> Any:
    await asyncio.sleep(1)
    await context.runtime.run_graph("k", parse_graph("q"), {})
    await asyncio.sleep(0.5)
    return result_with(1)


async def at_rest(graph: Graph, acts: dict[str, Any]) -> list[Event]:
    """Run a graph; another process answers each request of the stored execution. Return all events."""
    stored: list[Event] = []
    for _ in range(5):
        past = History(stored) if stored else None
        harness = ExecutionHarness(
            graph, acts, journal=MemoryJournal(), history=past, parks="always"
        )
        if stored:
            request_ids = [e.data["request_id"] for e in stored if e.type == "node.waiting"]
            answered = harness.execution.answer(request_ids[-1], "yes")
            assert await harness.run() in ("paused", "completed")
            await answered
        else:
            assert await harness.run() == "paused"
        stored += harness.stored
        if stored[-1].type == "execution.completed":
            return stored
        await asyncio.sleep(WAITED_S)
    raise AssertionError("it never ends")


ACTS = {"a": works_then_asks, "a:resume": goes_on, "p": runs_one_that_asks, "q": works_then_asks}
ACTS["q:resume"] = goes_on


@virtual_time
async def test_the_duration_does_not_count_waiting_for_an_answer() -> None:
    harness = ExecutionHarness(parse_graph("a"), ACTS, journal=MemoryJournal())
    harness.answer_every_request(WAITED_S, "yes")
    assert await harness.run() == "completed"
    for events in (harness.stored, await at_rest(parse_graph("a"), ACTS)):
        assert [e.data["duration_s"] for e in events if e.type == "node.waiting"] == [2.0]
        assert fold(events).nodes["a"].duration_s == 5.0


@virtual_time
async def test_the_duration_does_not_count_parked_time() -> None:
    harness = ExecutionHarness(parse_graph("p"), ACTS, journal=MemoryJournal())
    harness.answer_every_request(WAITED_S, "yes")
    assert await harness.run() == "completed"
    # It is executed again from the top; in memory, its nested run continues at once.
    in_memory, taken_up = 3.0 + 3.0 + 0.5, 3.0 + 1.0 + 3.0 + 0.5
    both = [(harness.stored, in_memory), (await at_rest(parse_graph("p"), ACTS), taken_up)]
    for events, seconds in both:
        nodes = fold(events).nodes
        assert nodes["p[k]/q"].duration_s == 5.0
        parked = [e.data["duration_s"] for e in events if e.type == "node.parked"]
        assert parked == [3.0], "a second of its own, then two of the nested run"
        assert nodes["p"].duration_s == seconds


@virtual_time
async def test_a_waiting_node_has_the_duration_until_its_request() -> None:
    harness = ExecutionHarness(parse_graph("a"), ACTS, journal=MemoryJournal(), parks="always")
    assert await harness.run() == "paused"
    assert fold(harness.stored).nodes["a"].duration_s == 2.0


@virtual_time
async def test_the_duration_is_that_of_the_last_attempt() -> None:
    async def fails_once(inputs: Any, context: Any) -> Any:
        await asyncio.sleep(4)
        if context.attempt == 1:
            raise NodeError("not yet", retryable=True)
        return result_with(1)

    graph = parse_graph("a", policies={"a": Policy(retry=Retry(2, 60.0))})
    harness = ExecutionHarness(graph, {"a": fails_once})
    assert await harness.run() == "completed"
    assert harness.data_of("node.completed")[0]["duration_s"] == 4.0


async def loads_then_works(inputs: Any, context: Any) -> Any:
    await asyncio.sleep(0.5)
    async with context.task_group() as group:
        for _ in range(2):
            group.create_task(_load(context))
    await asyncio.sleep(0.5)
    return result_with(f"{context.time_left_s():.1f}")


async def _load(context: Any) -> None:
    with context.loading():
        await asyncio.sleep(3)


@virtual_time
async def test_neither_duration_nor_time_limit_count_what_is_loaded_once() -> None:
    graph = parse_graph("a", policies={"a": Policy(timeout_s=1.5)})
    harness = ExecutionHarness(graph, {"a": loads_then_works})
    assert await harness.run() == "completed", harness.execution.error
    node = fold(harness.stored).nodes["a"]
    assert node.duration_s == 1.0
    assert node.outputs is not None
    assert node.outputs["output"]["value"] == "0.5"


@virtual_time
async def test_the_time_limit_holds_again_after_the_loading() -> None:
    graph = parse_graph("a", policies={"a": Policy(timeout_s=0.8)})
    harness = ExecutionHarness(graph, {"a": loads_then_works})
    assert await harness.run() == "failed"
    node = fold(harness.stored).nodes["a"]
    assert node.error is not None
    assert node.error["code"] == "node-timeout"
    assert node.duration_s == 0.8
