"""The driver: one mailbox, one batch per turn, and nothing published before it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from planwave.errors import Gone, InvalidTransition, StoreError
from planwave.executor.driver.attempt_tasks import GRACE_S
from planwave.executor.options import RunOptions
from planwave.graph.model import Policy, Retry
from tests.support.engine.behaviors import asks, fails_with, forever, returns_after
from tests.support.engine.generic_nodes import (
    TERMINAL_TYPES,
    ExecutionHarness,
    MemoryJournal,
    result_with,
)
from tests.support.graph.fake_catalog import parse_graph
from tests.support.virtual_loop import virtual_time

LONG = 1000.0
TWICE = Policy(retry=Retry(2, 1.0))


async def until(rig: ExecutionHarness, event: str) -> None:
    """Let the loop turn until an event was published."""
    await until_true(lambda: event in rig.event_names(), event)


async def until_true(holds: Callable[[], object], what: str = "it") -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{what} never came")


# -- events and batches


@virtual_time
async def test_events_are_numbered_without_gaps_and_end_with_one_terminal_event() -> None:
    rig = ExecutionHarness(parse_graph("a b c d", "a>b", "a>c", "b>d", "c>d"), last_seq=3)
    assert await rig.run() == "completed"
    rig.check_sequence(first=4)
    assert rig.event_names() == [
        "execution.started", "wave.started", "node.started a",
        "node.completed a", "wave.completed", "wave.started", "node.started b", "node.started c",
        "node.completed b", "node.completed c", "wave.completed", "wave.started", "node.started d",
        "node.completed d", "wave.completed", "execution.completed",
    ]  # fmt: skip
    assert rig.data_of("execution.started") == [{"waves": 3}]
    assert rig.data_of("wave.started") == [
        {"wave": 1, "nodes": ["a"]},
        {"wave": 2, "nodes": ["b", "c"]},
        {"wave": 3, "nodes": ["d"]},
    ]
    assert set(rig.execution.outputs) == set("abcd")


@virtual_time
async def test_a_result_and_the_starts_that_follow_are_one_batch() -> None:
    ledger = MemoryJournal()
    rig = ExecutionHarness(parse_graph("a b", "a>b"), journal=ledger)
    assert await rig.run() == "completed"
    batches = [[f"{e.type} {e.path}" for e in batch] for batch in ledger.batches]
    (together,) = [b for b in batches if "node.completed a" in b]
    assert "node.started b" in together
    assert ledger.events == rig.published


@virtual_time
async def test_events_are_durable_before_they_are_published_and_before_nodes_start() -> None:
    ledger = MemoryJournal(hold=True)
    ran: list[str] = []

    async def act(inputs: Any, context: Any) -> Any:
        ran.append(context.node_id)
        return result_with(1)

    rig = ExecutionHarness(parse_graph("a b", "a>b"), {"a": act, "b": act}, journal=ledger)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.run())
        for _ in range(20):
            await asyncio.sleep(0)
        assert (ledger.appends_started, rig.published, ran) == (1, [], [])
        ledger.release()
        await until_true(lambda: ran)
        ledger.hold()
        for _ in range(20):
            await asyncio.sleep(0)
        assert (ledger.appends_started, ran) == (2, ["a"])
        assert "node.completed a" not in rig.event_names()
        ledger.release()
    assert running.result() == "completed"
    assert ran == ["a", "b"]


@virtual_time
async def test_a_failed_append_ends_the_run_and_its_batch_is_not_published() -> None:
    ledger = MemoryJournal(fail_at=2)
    cleaned: list[str] = []

    async def busy(inputs: Any, context: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("busy")

    rig = ExecutionHarness(parse_graph("a b c", "a>b"), {"c": busy}, journal=ledger)
    subscription = rig.execution.events()
    with pytest.raises(StoreError, match="the disk is full"):
        await rig.run()
    assert cleaned == ["busy"]
    assert rig.published == ledger.events
    assert "node.completed a" not in rig.event_names()
    assert [e async for e in subscription] == rig.published


@virtual_time
async def test_an_empty_graph_completes() -> None:
    rig = ExecutionHarness(parse_graph(""))
    assert await rig.run() == "completed"
    assert rig.event_names() == ["execution.started", "execution.completed"]


def test_a_graph_with_a_cycle_cannot_be_executed() -> None:
    with pytest.raises(InvalidTransition):
        ExecutionHarness(parse_graph("a b", "a>b", "b>a"))


@virtual_time
async def test_the_task_of_a_node_has_the_id_of_the_node_as_name() -> None:
    async def named(inputs: Any, context: Any) -> Any:
        task = asyncio.current_task()
        return result_with(None if task is None else task.get_name())

    rig = ExecutionHarness(parse_graph("a b", "a>b"), {"a": named, "b": named})
    assert await rig.run() == "completed"
    given = {node: outputs["output"].value for node, outputs in rig.execution.outputs.items()}
    assert given == {"a": "a", "b": "b"}


@virtual_time
async def test_the_start_event_lists_linked_and_unreached_nodes() -> None:
    graph = parse_graph("d:door e:door a b g x", "d>a", "e>b", "g~a")
    rig = ExecutionHarness(graph, inputs={"d": {"output": 1}})
    assert await rig.run() == "completed"
    (data,) = rig.data_of("execution.started")
    assert data["linked"] == ["g"]
    assert data["not_reached"] == ["b", "x"]
    assert rig.data_of("node.skipped", "e") == [{"reason": "another entry was chosen"}]


@virtual_time
async def test_a_skipped_required_input_is_named() -> None:
    rig = ExecutionHarness(parse_graph("a b:picky", "a.x>b.need", "a>b.other"))
    assert await rig.run() == "completed"
    assert rig.data_of("node.skipped", "b") == [
        {"reason": "a required input was skipped", "handle": "need"}
    ]


@virtual_time
async def test_a_blocked_node_names_the_first_failure() -> None:
    rig = ExecutionHarness(parse_graph("a b c d", "a>b", "b>c"), {"a": fails_with("no luck")})
    assert await rig.run() == "failed"
    cause = {"node": "a", "error": {"code": "node-failed", "message": "no luck"}}
    assert rig.data_of("node.blocked") == [{"cause": cause}, {"cause": cause}]
    assert "node.completed d" in rig.event_names()
    assert rig.data_of("execution.failed") == [
        {
            "error": {
                "code": "node-failed",
                "message": "node 'a' failed: no luck",
                "node": "a",
            },
            "failures": ["a"],
        }
    ]
    assert rig.execution.error is not None


@virtual_time
async def test_a_stopped_run_cancels_pending_nodes_and_lets_running_ones_finish() -> None:
    acts = {"a": returns_after(5), "b": fails_with(after_s=1), "w": asks()}
    rig = ExecutionHarness(
        parse_graph("a b c w", "a>c", "b>c"), acts, RunOptions(on_failure="stop")
    )
    assert await rig.run() == "failed"
    assert "node.completed a" in rig.event_names()
    assert rig.data_of("node.cancelled", "w") == [{"cause": "node-failed: boom"}]
    assert rig.event_names("node.blocked") == ["node.blocked c"]


# -- cancelling


class Stubborn:
    """A node that ignores its cancellation until the test releases it."""

    def __init__(self) -> None:
        self.swallowed = 0
        self.release = asyncio.Event()

    async def __call__(self, inputs: Any, context: Any) -> Any:
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.swallowed += 1
        return result_with("too late")


def check_cancelled(rig: ExecutionHarness) -> None:
    assert rig.execution.status == "cancelled"
    assert rig.data_of("execution.cancelled") == [{"cause": "enough"}]
    rig.check_sequence()


@virtual_time
async def test_a_run_cancelled_before_it_starts_runs_nothing() -> None:
    rig = ExecutionHarness(parse_graph("a b", "a>b"), {"a": forever})
    rig.execution.cancel("enough")
    assert await rig.run() == "cancelled"
    check_cancelled(rig)
    assert rig.event_names("node.started", "node.completed") == []
    assert sorted(rig.event_names("node.cancelled")) == ["node.cancelled a", "node.cancelled b"]


@pytest.mark.parametrize("durable", [False, True])
@virtual_time
async def test_a_run_cancelled_while_nodes_run_ends_at_once(durable: bool) -> None:
    rig = ExecutionHarness(
        parse_graph("a b c d", "a>c", "b>d"),
        {"a": forever},
        journal=MemoryJournal() if durable else None,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.run())
        await until(rig, "node.completed d")
        rig.execution.cancel("enough")
    check_cancelled(rig)
    assert sorted(rig.event_names("node.cancelled")) == ["node.cancelled a", "node.cancelled c"]
    assert asyncio.get_running_loop().time() == 0


@virtual_time
async def test_a_node_that_ignores_its_cancellation_delays_the_end_by_less_than_two_seconds() -> (
    None
):
    stubborn = Stubborn()
    rig = ExecutionHarness(parse_graph("a b", "a>b"), {"a": stubborn})
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.run())
        await until(rig, "node.started a")
        await asyncio.sleep(0)
        rig.execution.cancel("enough")
    assert asyncio.get_running_loop().time() == GRACE_S < 2.0
    assert stubborn.swallowed == 1
    check_cancelled(rig)
    before = list(rig.published)
    stubborn.release.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert rig.published == before
    assert "a" not in rig.execution.outputs


@virtual_time
async def test_a_run_cancelled_during_a_retry_delay_ends_at_once() -> None:
    rig = ExecutionHarness(
        parse_graph("a", policies={"a": Policy(retry=Retry(3, LONG))}),
        {"a": fails_with(retryable=True)},
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.run())
        await until(rig, "node.retrying a")
        rig.execution.cancel("enough")
    check_cancelled(rig)
    assert rig.event_names("node.cancelled") == ["node.cancelled a"]
    assert asyncio.get_running_loop().time() == 0


@virtual_time
async def test_a_run_cancelled_while_a_node_waits_closes_the_request() -> None:
    rig = ExecutionHarness(parse_graph("a b", "a>b"), {"a": asks()})
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.run())
        await until(rig, "execution.paused")
        assert rig.execution.status == "paused"
        request = rig.request_id()
        rig.execution.cancel("enough")
    check_cancelled(rig)
    with pytest.raises(Gone):
        rig.execution.answer(request, "late")


@pytest.mark.parametrize("cancel_first", [False, True])
@virtual_time
async def test_the_order_in_the_mailbox_decides_between_finish_and_cancel(
    cancel_first: bool,
) -> None:
    rig = ExecutionHarness(parse_graph("a"), journal=(ledger := MemoryJournal()))

    async def act(inputs: Any, context: Any) -> Any:
        if cancel_first:
            rig.execution.cancel("enough")
        else:
            asyncio.get_running_loop().call_soon(rig.execution.cancel, "enough")
        ledger.release()
        return result_with(1)

    rig.behaviors["a"] = act
    assert await rig.run() == ("cancelled" if cancel_first else "completed")
    rig.check_sequence()


@virtual_time
async def test_a_cancel_behind_the_last_result_in_one_batch_is_too_late() -> None:
    ledger = MemoryJournal()
    rig = ExecutionHarness(
        parse_graph("a b"), {"a": returns_after(1), "b": returns_after(2)}, journal=ledger
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.run())
        await asyncio.sleep(0.5)
        ledger.hold()
        await asyncio.sleep(2)  # a's end is being stored, b's end is in the mailbox
        rig.execution.cancel("enough")
        ledger.release()
    assert running.result() == "completed"
    rig.check_sequence()


@virtual_time
async def test_an_answer_behind_a_cancel_in_one_batch_is_dropped() -> None:
    rig = ExecutionHarness(parse_graph("a"), {"a": asks()}, journal=MemoryJournal())
    async with asyncio.TaskGroup() as group:
        group.create_task(rig.run())
        await until(rig, "execution.paused")
        rig.execution.cancel("enough")
        rig.execution.answer(rig.request_id(), "too late")
    check_cancelled(rig)
    assert rig.data_of("node.answered") == []


@virtual_time
async def test_an_answer_behind_a_stopping_failure_in_one_batch_is_dropped() -> None:
    ledger = MemoryJournal()
    acts = {"a": asks(), "b": fails_with(after_s=2), "c": returns_after(1)}
    rig = ExecutionHarness(
        parse_graph("a b c"), acts, RunOptions(on_failure="stop"), journal=ledger
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(rig.run())
        await asyncio.sleep(0.5)
        ledger.hold()
        await asyncio.sleep(2)  # c's end is being stored, b's failure is in the mailbox
        rig.execution.answer(rig.request_id(), "too late")
        ledger.release()
    assert running.result() == "failed"
    assert rig.data_of("node.cancelled", "a") == [{"cause": "node-failed: boom"}]


@virtual_time
async def test_cancelling_the_driver_ends_its_tasks_and_starts_no_more_nodes() -> None:
    ran: list[str] = []

    async def act(inputs: Any, context: Any) -> Any:
        ran.append(context.node_id)
        await asyncio.Event().wait()

    rig = ExecutionHarness(parse_graph("a b"), {"a": act, "b": act}, RunOptions(max_parallel=1))
    running = asyncio.get_running_loop().create_task(rig.run())
    await until_true(lambda: ran)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ran == ["a"]
    assert not any(e.type in TERMINAL_TYPES for e in rig.published)


@virtual_time
async def test_an_error_of_a_listener_ends_the_run() -> None:
    rig = ExecutionHarness(parse_graph("a b", "a>b"))

    def breaks(events: list[Any]) -> None:
        if any(e.type == "node.completed" for e in events):
            raise ValueError("listener")

    rig.execution.publisher._on_events = breaks
    with pytest.raises(ValueError, match="listener"):
        await rig.run()


_marked: ContextVar[str] = ContextVar("marked", default="unset")


@pytest.mark.parametrize("has_journal", [False, True])
@virtual_time
async def test_context_variables_set_by_a_node_reach_no_other_node(has_journal: bool) -> None:
    seen: list[str] = []

    async def marks(inputs: Any, context: Any) -> Any:
        seen.append(_marked.get())
        _marked.set(context.path)
        return result_with(1)

    async def nests(inputs: Any, context: Any) -> Any:
        await marks(inputs, context)
        await context.runtime.run_graph("k", parse_graph("i j", "i>j"), {})
        return result_with(1)

    _marked.set("caller")
    acts = {"a": marks, "b": nests, "c": marks, "i": marks, "j": marks}
    graph = parse_graph("a b c", "a>b", "b>c")
    rig = ExecutionHarness(graph, acts, journal=MemoryJournal() if has_journal else None)
    assert await rig.run() == "completed"
    assert seen == ["caller"] * 5
