"""The driver: one mailbox, one batch per turn, and nothing published before it is durable."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from planwave.errors import Gone, InvalidTransition, NodeError, StoreError
from planwave.events import Event
from planwave.executor.driver.attempt_tasks import GRACE_S
from planwave.executor.driver.execution import Execution
from planwave.executor.driver.run_state import RunState
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.state import Attempt, GraphRun, NestedRun, NodeRun
from planwave.graph.model import Policy, Retry
from tests.support.engine.behaviors import asks, fails_with, forever, returns_after
from tests.support.engine.generic_nodes import (
    TERMINAL_TYPES,
    ExecutionHarness,
    GenericNodeTypes,
    MemoryJournal,
    result_with,
)
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

LONG = 1000.0
RUNS = 10
TWICE = Policy(retry=Retry(2, 1.0))


async def until(harness: ExecutionHarness, event: str) -> None:
    """Let the loop turn until an event was published."""
    await until_true(lambda: event in harness.event_names(), event)


async def until_true(holds: Callable[[], object], what: str = "it") -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{what} never came")


# -- events and batches


@virtual_time
async def test_events_are_numbered_without_gaps_and_end_with_one_terminal_event() -> None:
    harness = ExecutionHarness(parse_graph("a b c d", "a>b", "a>c", "b>d", "c>d"), last_seq=3)
    assert await harness.run() == "completed"
    harness.check_sequence(first=4)
    assert harness.event_names() == [
        "execution.started", "wave.started", "node.started a",
        "node.completed a", "wave.completed", "wave.started", "node.started b", "node.started c",
        "node.completed b", "node.completed c", "wave.completed", "wave.started", "node.started d",
        "node.completed d", "wave.completed", "execution.completed",
    ]  # fmt: skip
    assert harness.data_of("execution.started") == [{"waves": 3}]
    assert harness.data_of("wave.started") == [
        {"wave": 1, "nodes": ["a"]},
        {"wave": 2, "nodes": ["b", "c"]},
        {"wave": 3, "nodes": ["d"]},
    ]
    assert set(harness.execution.outputs) == set("abcd")


@virtual_time
async def test_a_result_and_the_starts_that_follow_are_one_batch() -> None:
    ledger = MemoryJournal()
    harness = ExecutionHarness(parse_graph("a b", "a>b"), journal=ledger)
    assert await harness.run() == "completed"
    batches = [[f"{e.type} {e.path}" for e in batch] for batch in ledger.batches]
    (together,) = [b for b in batches if "node.completed a" in b]
    assert "node.started b" in together
    assert ledger.appended == harness.published


@virtual_time
async def test_events_are_durable_before_they_are_published_and_before_nodes_start() -> None:
    ledger = MemoryJournal(hold=True)
    ran: list[str] = []

    async def act(inputs: Any, context: Any) -> Any:
        ran.append(context.node_id)
        return result_with(1)

    harness = ExecutionHarness(parse_graph("a b", "a>b"), {"a": act, "b": act}, journal=ledger)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(harness.run())
        for _ in range(20):
            await asyncio.sleep(0)
        assert (ledger.appends_started, harness.published, ran) == (1, [], [])
        ledger.release()
        await until_true(lambda: ran)
        ledger.hold()
        for _ in range(20):
            await asyncio.sleep(0)
        assert (ledger.appends_started, ran) == (2, ["a"])
        assert "node.completed a" not in harness.event_names()
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

    harness = ExecutionHarness(parse_graph("a b c", "a>b"), {"c": busy}, journal=ledger)
    subscription = harness.execution.events()
    with pytest.raises(StoreError, match="the disk is full"):
        await harness.run()
    assert cleaned == ["busy"]
    assert harness.published == ledger.appended
    assert "node.completed a" not in harness.event_names()
    assert [e async for e in subscription] == harness.published


@virtual_time
async def test_an_empty_graph_completes() -> None:
    harness = ExecutionHarness(parse_graph(""))
    assert await harness.run() == "completed"
    assert harness.event_names() == ["execution.started", "execution.completed"]


def test_a_graph_with_a_cycle_cannot_be_executed() -> None:
    with pytest.raises(InvalidTransition):
        ExecutionHarness(parse_graph("a b", "a>b", "b>a"))


@virtual_time
async def test_the_task_of_a_node_is_named_after_its_execution_and_its_path() -> None:
    async def named(inputs: Any, context: Any) -> Any:
        task = asyncio.current_task()
        return result_with(None if task is None else task.get_name())

    harness = ExecutionHarness(parse_graph("a b", "a>b"), {"a": named, "b": named})
    assert await harness.run() == "completed"
    given = {node: outputs["output"].value for node, outputs in harness.execution.outputs.items()}
    assert given == {"a": "node of x1 a", "b": "node of x1 b"}


@virtual_time
async def test_the_start_event_lists_linked_and_unreached_nodes() -> None:
    graph = parse_graph("d:door e:door a b g x", "d>a", "e>b", "g~a")
    harness = ExecutionHarness(graph, inputs={"d": {"output": 1}})
    assert await harness.run() == "completed"
    (data,) = harness.data_of("execution.started")
    assert data["linked"] == ["g"]
    assert data["not_reached"] == ["b", "x"]
    assert harness.data_of("node.skipped", "e") == [{"reason": "another entry was chosen"}]


@virtual_time
async def test_a_skipped_required_input_is_named() -> None:
    harness = ExecutionHarness(parse_graph("a b:picky", "a.x>b.need", "a>b.other"))
    assert await harness.run() == "completed"
    assert harness.data_of("node.skipped", "b") == [
        {"reason": "a required input was skipped", "handle": "need"}
    ]


@virtual_time
async def test_a_blocked_node_names_the_first_failure() -> None:
    harness = ExecutionHarness(parse_graph("a b c d", "a>b", "b>c"), {"a": fails_with("no luck")})
    assert await harness.run() == "failed"
    cause = {"node": "a", "error": {"code": "node-failed", "message": "no luck"}}
    assert harness.data_of("node.blocked") == [{"cause": cause}, {"cause": cause}]
    assert "node.completed d" in harness.event_names()
    assert harness.data_of("execution.failed") == [
        {
            "error": {
                "code": "node-failed",
                "message": "node 'a' failed: no luck",
                "node": "a",
            },
            "failures": ["a"],
        }
    ]
    assert harness.execution.error is not None


@virtual_time
async def test_a_stopped_run_cancels_pending_nodes_and_lets_running_ones_finish() -> None:
    acts = {"a": returns_after(5), "b": fails_with(after_s=1), "w": asks()}
    harness = ExecutionHarness(
        parse_graph("a b c w", "a>c", "b>c"), acts, RunOptions(on_failure="stop")
    )
    assert await harness.run() == "failed"
    assert "node.completed a" in harness.event_names()
    assert harness.data_of("node.cancelled", "w") == [{"cause": "node-failed: boom"}]
    assert harness.event_names("node.blocked") == ["node.blocked c"]


@virtual_time
async def test_what_waits_for_a_slot_when_a_run_stops_does_not_begin() -> None:
    """A retry and an answered node that wait for one have begun, so they finish."""

    async def fail_once(inputs: Any, context: Any) -> Any:
        if context.attempt == 1:
            await fails_with(retryable=True, after_s=1)(inputs, context)
        return await returns_after(0)(inputs, context)

    acts = {
        "again": fail_once,
        "asked": asks(),
        "busy": returns_after(3),
        "bad": fails_with(after_s=1.5),
    }
    graph = parse_graph("again asked busy bad late", policies={"again": Policy(retry=Retry(2, 0))})
    options = RunOptions(on_failure="stop", max_parallel=2)
    harness = ExecutionHarness(graph, acts, options, journal=MemoryJournal())
    harness.answer_after(2)
    assert await harness.run() == "failed"
    assert harness.event_names("node.completed", "node.cancelled") == [
        "node.cancelled late",
        "node.completed again",
        "node.completed asked",
        "node.completed busy",
    ]
    (late,) = (each for each in harness.stored if each.path == "late")
    assert (late.data, late.attempt) == ({"cause": "node-failed: boom"}, None)


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


def check_cancelled(harness: ExecutionHarness) -> None:
    assert harness.execution.status == "cancelled"
    assert harness.data_of("execution.cancelled") == [{"cause": "enough"}]
    harness.check_sequence()


@virtual_time
async def test_a_run_cancelled_before_it_starts_runs_nothing() -> None:
    harness = ExecutionHarness(parse_graph("a b", "a>b"), {"a": forever})
    harness.execution.cancel("enough")
    assert await harness.run() == "cancelled"
    check_cancelled(harness)
    assert harness.event_names("node.started", "node.completed") == []
    assert sorted(harness.event_names("node.cancelled")) == ["node.cancelled a", "node.cancelled b"]


@pytest.mark.parametrize("durable", [False, True])
@virtual_time
async def test_a_run_cancelled_while_nodes_run_ends_at_once(durable: bool) -> None:
    harness = ExecutionHarness(
        parse_graph("a b c d", "a>c", "b>d"),
        {"a": forever},
        journal=MemoryJournal() if durable else None,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(harness.run())
        await until(harness, "node.completed d")
        harness.execution.cancel("enough")
    check_cancelled(harness)
    assert sorted(harness.event_names("node.cancelled")) == ["node.cancelled a", "node.cancelled c"]
    assert asyncio.get_running_loop().time() == 0


@virtual_time
async def test_a_node_that_ignores_its_cancellation_delays_the_end_by_less_than_two_seconds() -> (
    None
):
    stubborn = Stubborn()
    harness = ExecutionHarness(parse_graph("a b", "a>b"), {"a": stubborn})
    async with asyncio.TaskGroup() as group:
        group.create_task(harness.run())
        await until(harness, "node.started a")
        await asyncio.sleep(0)
        harness.execution.cancel("enough")
    assert asyncio.get_running_loop().time() == GRACE_S < 2.0
    assert stubborn.swallowed == 1
    check_cancelled(harness)
    before = list(harness.published)
    stubborn.release.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert harness.published == before
    assert "a" not in harness.execution.outputs


@virtual_time
async def test_a_run_cancelled_during_a_retry_delay_ends_at_once() -> None:
    harness = ExecutionHarness(
        parse_graph("a", policies={"a": Policy(retry=Retry(3, LONG))}),
        {"a": fails_with(retryable=True)},
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(harness.run())
        await until(harness, "node.retrying a")
        harness.execution.cancel("enough")
    check_cancelled(harness)
    assert harness.event_names("node.cancelled") == ["node.cancelled a"]
    assert asyncio.get_running_loop().time() == 0


@virtual_time
async def test_a_run_cancelled_while_a_node_waits_closes_the_request() -> None:
    harness = ExecutionHarness(parse_graph("a b", "a>b"), {"a": asks()})
    async with asyncio.TaskGroup() as group:
        group.create_task(harness.run())
        await until(harness, "execution.paused")
        assert harness.execution.status == "paused"
        request = harness.request_id()
        harness.execution.cancel("enough")
    check_cancelled(harness)
    with pytest.raises(Gone):
        harness.execution.answer(request, "late")


@pytest.mark.parametrize("cancel_first", [False, True])
@virtual_time
async def test_the_order_in_the_mailbox_decides_between_finish_and_cancel(
    cancel_first: bool,
) -> None:
    harness = ExecutionHarness(parse_graph("a"), journal=(ledger := MemoryJournal()))

    async def act(inputs: Any, context: Any) -> Any:
        if cancel_first:
            harness.execution.cancel("enough")
        else:
            asyncio.get_running_loop().call_soon(harness.execution.cancel, "enough")
        ledger.release()
        return result_with(1)

    harness.behaviors["a"] = act
    assert await harness.run() == ("cancelled" if cancel_first else "completed")
    harness.check_sequence()


@virtual_time
async def test_a_cancel_behind_the_last_result_in_one_batch_is_too_late() -> None:
    ledger = MemoryJournal()
    harness = ExecutionHarness(
        parse_graph("a b"), {"a": returns_after(1), "b": returns_after(2)}, journal=ledger
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(harness.run())
        await asyncio.sleep(0.5)
        ledger.hold()
        await asyncio.sleep(2)  # a's end is being stored, b's end is in the mailbox
        harness.execution.cancel("enough")
        ledger.release()
    assert running.result() == "completed"
    harness.check_sequence()


@virtual_time
async def test_an_answer_behind_a_cancel_in_one_batch_is_dropped() -> None:
    harness = ExecutionHarness(parse_graph("a"), {"a": asks()}, journal=MemoryJournal())
    async with asyncio.TaskGroup() as group:
        group.create_task(harness.run())
        await until(harness, "execution.paused")
        harness.execution.cancel("enough")
        harness.execution.answer(harness.request_id(), "too late")
    check_cancelled(harness)
    assert harness.data_of("node.answered") == []


@virtual_time
async def test_an_answer_behind_a_stopping_failure_in_one_batch_is_dropped() -> None:
    ledger = MemoryJournal()
    acts = {"a": asks(), "b": fails_with(after_s=2), "c": returns_after(1)}
    harness = ExecutionHarness(
        parse_graph("a b c"), acts, RunOptions(on_failure="stop"), journal=ledger
    )
    async with asyncio.TaskGroup() as group:
        running = group.create_task(harness.run())
        await asyncio.sleep(0.5)
        ledger.hold()
        await asyncio.sleep(2)  # c's end is being stored, b's failure is in the mailbox
        harness.execution.answer(harness.request_id(), "too late")
        ledger.release()
    assert running.result() == "failed"
    assert harness.data_of("node.cancelled", "a") == [{"cause": "node-failed: boom"}]


@virtual_time
async def test_cancelling_the_driver_ends_its_tasks_and_starts_no_more_nodes() -> None:
    ran: list[str] = []

    async def act(inputs: Any, context: Any) -> Any:
        ran.append(context.node_id)
        await asyncio.Event().wait()

    harness = ExecutionHarness(parse_graph("a b"), {"a": act, "b": act}, RunOptions(max_parallel=1))
    running = asyncio.get_running_loop().create_task(harness.run())
    await until_true(lambda: ran)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ran == ["a"]
    assert not any(e.type in TERMINAL_TYPES for e in harness.published)


@virtual_time
async def test_an_error_of_a_listener_ends_the_run() -> None:
    harness = ExecutionHarness(parse_graph("a b", "a>b"))

    def breaks(events: list[Any]) -> None:
        if any(e.type == "node.completed" for e in events):
            raise ValueError("listener")

    harness.execution.publisher._on_events = breaks
    with pytest.raises(ValueError, match="listener"):
        await harness.run()


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
    harness = ExecutionHarness(graph, acts, journal=MemoryJournal() if has_journal else None)
    assert await harness.run() == "completed"
    assert seen == ["caller"] * 5


async def _works(*_: Any) -> Any:
    await asyncio.sleep(0)
    return result_with("x")


async def _nests(_: Any, context: Any, *__: Any) -> Any:
    """Run two graphs and keep a value; fail at first, so that another attempt does the same."""
    for key in "kl":
        await context.runtime.run_graph(key, parse_graph("i j", "i>j"), {})
    await context.runtime.once("v", _works)
    if context.attempt == 1:
        raise NodeError("again", retryable=True)
    return await _works()


@pytest.mark.parametrize(
    ("outcome", "acts"),
    [
        ("completed", {}),
        ("failed", {"n9": fails_with()}),
        ("cancelled", {"n9": forever}),
        ("interrupted", {"n9": forever}),
        ("completed", {"n9": _nests, "n20": _nests}),
        ("cancelled", {"n9": _nests, "j": forever}),
        ("interrupted", {"n9": _nests, "j": forever}),
        ("failed", {"n9": _nests, "j": fails_with()}),
        ("cancelled", {"n9": asks()}),
        ("interrupted", {"n9": _nests, "j": asks()}),
    ],
)
@virtual_time
async def test_a_finished_execution_leaves_nothing_to_the_garbage_collector(
    outcome: str, acts: dict[str, Any]
) -> None:
    nodes = [f"n{number}" for number in range(30)]
    edges = [f"{one}>{two}" for one, two in pairwise(nodes)]
    policies = dict.fromkeys(nodes, TWICE)

    async def run_once() -> None:
        graph = parse_graph(" ".join(nodes), *edges, policies=policies)
        program = Program(graph, GenericNodeTypes({**dict.fromkeys(nodes, _works), **acts}))
        execution = Execution(program, execution_id="x1")
        call_later = asyncio.get_running_loop().call_later
        if outcome == "cancelled":
            call_later(5, execution.cancel, "enough")
        elif outcome == "interrupted":
            call_later(5, partial(execution.interrupt, at_once=True))
        assert await execution.run() == outcome

    await run_once()  # what is made once
    gc.freeze()  # else each collection reads all modules of the process
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(RUNS):
            await run_once()
        gc.collect()
        kinds = (Attempt, GraphRun, NodeRun, NestedRun, Program, RunState, Event, asyncio.Task)
        left = Counter(type(each).__name__ for each in gc.garbage if isinstance(each, kinds))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()
    # One or two may be what an earlier test of this process has let go only now.
    assert [kind for kind, count in left.items() if count >= RUNS] == []
