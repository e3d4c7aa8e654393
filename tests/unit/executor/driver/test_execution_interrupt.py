"""Leaving a run without ending it: what is stored can be taken up again."""

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
from tests.support.graph.fake_catalog import parse_graph
from tests.support.virtual_loop import virtual_time


class Gate:
    """An act that says when it has begun and goes on when it is let."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, inputs: Any, context: Any) -> Any:
        self.begun.set()
        await self.open.wait()
        return result_with(context.node_id)


@asynccontextmanager
async def running_node(rig: ExecutionHarness, gate: Gate) -> AsyncIterator[asyncio.Task[str]]:
    """Run an execution; enter the block when its node has begun, leave it when the run has ended."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rig.run())
        await gate.begun.wait()
        yield running


def ends(rig: ExecutionHarness) -> list[str]:
    return [event.type for event in rig.stored if event.type in TERMINAL_TYPES]


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "kept nowhere"])
@virtual_time
async def test_an_interrupted_run_lets_nodes_at_work_finish_and_starts_no_other(
    durable: bool,
) -> None:
    gate = Gate()
    rig = ExecutionHarness(
        parse_graph("a b", "a>b"), {"a": gate}, journal=MemoryJournal() if durable else None
    )
    async with running_node(rig, gate) as running:
        rig.execution.interrupt()
        gate.open.set()
    assert running.result() == rig.execution.status == "interrupted"
    assert rig.event_names("node.started", "node.completed") == [
        "node.started a",
        "node.completed a",
    ]
    assert ends(rig) == []
    rig.check_sequence()


@virtual_time
async def test_a_run_that_ends_with_its_last_nodes_at_work_has_ended() -> None:
    gate = Gate()
    rig = ExecutionHarness(parse_graph("a"), {"a": gate}, journal=MemoryJournal())
    async with running_node(rig, gate) as running:
        rig.execution.interrupt()
        gate.open.set()
    assert running.result() == "completed"
    assert ends(rig) == ["execution.completed"]


@virtual_time
async def test_a_run_interrupted_at_once_drops_what_is_at_work() -> None:
    gate = Gate()
    rig = ExecutionHarness(parse_graph("a b", "a>b"), {"a": gate}, journal=MemoryJournal())
    async with running_node(rig, gate) as running:
        rig.execution.interrupt(at_once=True)
    assert running.result() == "interrupted"
    assert rig.event_names("node.completed", "node.cancelled", *TERMINAL_TYPES) == []


@virtual_time
async def test_at_once_cuts_short_a_patient_interrupt_and_not_the_other_way_round() -> None:
    gate = Gate()
    rig = ExecutionHarness(parse_graph("a"), {"a": gate}, journal=MemoryJournal())
    async with running_node(rig, gate) as running:
        rig.execution.interrupt()
        await asyncio.sleep(1)
        assert not running.done()
        rig.execution.interrupt(at_once=True)
        rig.execution.interrupt()
    assert running.result() == "interrupted"


@virtual_time
async def test_a_batch_that_is_being_stored_is_told_before_the_run_is_left() -> None:
    ledger, gate = MemoryJournal(), Gate()
    rig = ExecutionHarness(parse_graph("a"), {"a": gate}, journal=ledger)
    async with running_node(rig, gate) as running:
        ledger.hold()
        gate.open.set()
        await asyncio.sleep(1)
        rig.execution.interrupt(at_once=True)
        await asyncio.sleep(1)
        assert not running.done()
        ledger.release()
    assert running.result() == "completed"
    assert ledger.events == rig.published


@virtual_time
async def test_a_run_interrupted_before_its_first_turn_starts_no_node() -> None:
    rig = ExecutionHarness(parse_graph("a"), journal=MemoryJournal())
    rig.execution.interrupt()
    assert await rig.run() == "interrupted"
    assert rig.event_names() == ["execution.started"]


@virtual_time
async def test_who_waits_for_a_retry_or_an_answer_is_not_waited_for() -> None:
    tries = 0

    async def flaky(inputs: Any, context: Any) -> Any:
        nonlocal tries
        tries += 1
        raise NodeError("not yet", retryable=True)

    graph = parse_graph("a", policies={"a": Policy(retry=Retry(2, 1000.0))})
    rig = ExecutionHarness(graph, {"a": flaky}, journal=MemoryJournal())
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rig.run())
        await asyncio.sleep(1)
        rig.execution.interrupt()
    assert running.result() == "interrupted"
    assert (tries, loop.time()) == (1, 1)


@virtual_time
async def test_a_nested_run_is_left_with_the_node_it_belongs_to() -> None:
    gate = Gate()
    inner = parse_graph("x y", "x>y")

    async def nests(inputs: Any, context: Any) -> Any:
        await context.runtime.run_graph("k", inner, {})
        return result_with("done")

    rig = ExecutionHarness(
        parse_graph("a b", "a>b"), {"a": nests, "x": gate}, journal=MemoryJournal()
    )
    async with running_node(rig, gate) as running:
        rig.execution.interrupt()
        gate.open.set()
    assert running.result() == "interrupted"
    assert rig.event_names("node.started", "node.completed") == [
        "node.started a", "node.started a[k]/x", "node.completed a[k]/x",
    ]  # fmt: skip


@virtual_time
async def test_an_interrupted_run_can_still_be_cancelled() -> None:
    gate = Gate()
    rig = ExecutionHarness(parse_graph("a"), {"a": gate}, RunOptions(), journal=MemoryJournal())
    async with running_node(rig, gate) as running:
        rig.execution.interrupt()
        rig.execution.cancel("enough")
    assert running.result() == "cancelled"
    assert ends(rig) == ["execution.cancelled"]
