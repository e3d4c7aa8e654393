"""Interrupting a run without ending it, so that it can be resumed from the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.executor.options import RunOptions
from planwave.graph.model import Policy, Retry
from tests.support.engine.generic_nodes import (
    TERMINAL_TYPES,
    ExecutionHarness,
    MemoryJournal,
    result_with,
)
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time


class Gate:
    """A node that signals its start and continues when the test opens the gate."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, inputs: Any, context: Any) -> Any:
        self.begun.set()
        await self.open.wait()
        return result_with(context.node_id)


@asynccontextmanager
async def running_node(harness: ExecutionHarness, gate: Gate) -> AsyncIterator[asyncio.Task[str]]:
    """Run an execution; enter the block when its node has started, leave it when the run has ended."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(harness.run())
        await gate.begun.wait()
        yield running


def ends(harness: ExecutionHarness) -> list[str]:
    return [event.type for event in harness.stored if event.type in TERMINAL_TYPES]


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "kept nowhere"])
@virtual_time
async def test_an_interrupted_run_lets_running_nodes_finish_and_starts_no_more(
    durable: bool,
) -> None:
    gate = Gate()
    harness = ExecutionHarness(
        parse_graph("a b", "a>b"), {"a": gate}, journal=MemoryJournal() if durable else None
    )
    async with running_node(harness, gate) as running:
        harness.execution.interrupt()
        gate.open.set()
    assert running.result() == harness.execution.status == "interrupted"
    assert harness.event_names("node.started", "node.completed") == [
        "node.started a",
        "node.completed a",
    ]
    assert ends(harness) == []
    harness.check_sequence()


@virtual_time
async def test_an_interrupted_run_whose_last_node_finishes_is_completed() -> None:
    gate = Gate()
    harness = ExecutionHarness(parse_graph("a"), {"a": gate}, journal=MemoryJournal())
    async with running_node(harness, gate) as running:
        harness.execution.interrupt()
        gate.open.set()
    assert running.result() == "completed"
    assert ends(harness) == ["execution.completed"]


@virtual_time
async def test_an_interrupt_at_once_cancels_running_nodes_without_events() -> None:
    gate = Gate()
    harness = ExecutionHarness(parse_graph("a b", "a>b"), {"a": gate}, journal=MemoryJournal())
    async with running_node(harness, gate) as running:
        harness.execution.interrupt(at_once=True)
    assert running.result() == "interrupted"
    assert harness.event_names("node.completed", "node.cancelled", *TERMINAL_TYPES) == []


@virtual_time
async def test_an_interrupt_at_once_replaces_a_patient_one_and_not_the_reverse() -> None:
    gate = Gate()
    harness = ExecutionHarness(parse_graph("a"), {"a": gate}, journal=MemoryJournal())
    async with running_node(harness, gate) as running:
        harness.execution.interrupt()
        await asyncio.sleep(1)
        assert not running.done()
        harness.execution.interrupt(at_once=True)
        harness.execution.interrupt()
    assert running.result() == "interrupted"


@virtual_time
async def test_an_interrupt_waits_for_the_batch_that_is_being_stored() -> None:
    ledger, gate = MemoryJournal(), Gate()
    harness = ExecutionHarness(parse_graph("a"), {"a": gate}, journal=ledger)
    async with running_node(harness, gate) as running:
        ledger.hold()
        gate.open.set()
        await asyncio.sleep(1)
        harness.execution.interrupt(at_once=True)
        await asyncio.sleep(1)
        assert not running.done()
        ledger.release()
    assert running.result() == "completed"
    assert ledger.appended == harness.published


@virtual_time
async def test_a_run_interrupted_before_its_first_turn_starts_no_node() -> None:
    harness = ExecutionHarness(parse_graph("a"), journal=MemoryJournal())
    harness.execution.interrupt()
    assert await harness.run() == "interrupted"
    assert harness.event_names() == ["execution.started"]


@virtual_time
async def test_an_interrupt_does_not_wait_for_retry_delays() -> None:
    tries = 0

    async def flaky(inputs: Any, context: Any) -> Any:
        nonlocal tries
        tries += 1
        raise NodeError("not yet", retryable=True)

    graph = parse_graph("a", policies={"a": Policy(retry=Retry(2, 1000.0))})
    harness = ExecutionHarness(graph, {"a": flaky}, journal=MemoryJournal())
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(harness.run())
        await asyncio.sleep(1)
        harness.execution.interrupt()
    assert running.result() == "interrupted"
    assert (tries, loop.time()) == (1, 1)


@virtual_time
async def test_an_interrupt_leaves_a_nested_run_after_its_running_node() -> None:
    gate = Gate()
    inner = parse_graph("x y", "x>y")

    async def nests(inputs: Any, context: Any) -> Any:
        await context.runtime.run_graph("k", inner, {})
        return result_with("done")

    harness = ExecutionHarness(
        parse_graph("a b", "a>b"), {"a": nests, "x": gate}, journal=MemoryJournal()
    )
    async with running_node(harness, gate) as running:
        harness.execution.interrupt()
        gate.open.set()
    assert running.result() == "interrupted"
    assert harness.event_names("node.started", "node.completed") == [
        "node.started a", "node.started a[k]/x", "node.completed a[k]/x",
    ]  # fmt: skip


@virtual_time
async def test_an_interrupted_run_can_still_be_cancelled() -> None:
    gate = Gate()
    harness = ExecutionHarness(parse_graph("a"), {"a": gate}, RunOptions(), journal=MemoryJournal())
    async with running_node(harness, gate) as running:
        harness.execution.interrupt()
        harness.execution.cancel("enough")
    assert running.result() == "cancelled"
    assert ends(harness) == ["execution.cancelled"]
