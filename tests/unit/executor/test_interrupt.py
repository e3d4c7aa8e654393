"""Leaving a run without ending it: what is stored can be taken up again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.executor.options import RunOptions
from planwave.graph.model import Policy, Retry
from tests.fakes.catalogue import graph_of
from tests.fakes.stones import ENDS, Ledger, Rig, gives
from tests.fakes.virtual_loop import virtual_time


class Gate:
    """An act that says when it has begun and goes on when it is let."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, inputs: Any, context: Any) -> Any:
        self.begun.set()
        await self.open.wait()
        return gives(context.node_id)


def ends(rig: Rig) -> list[str]:
    return [event.type for event in rig.stored if event.type in ENDS]


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "kept nowhere"])
@virtual_time
async def test_an_interrupted_run_lets_nodes_at_work_finish_and_starts_no_other(
    durable: bool,
) -> None:
    gate = Gate()
    rig = Rig(graph_of("a b", "a>b"), {"a": gate}, journal=Ledger() if durable else None)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rig.run())
        await gate.begun.wait()
        rig.execution.interrupt()
        gate.open.set()
    assert running.result() == rig.execution.status == "interrupted"
    assert rig.tale("node.started", "node.completed") == ["node.started a", "node.completed a"]
    assert ends(rig) == []
    rig.check_numbers()


@virtual_time
async def test_a_run_that_ends_with_its_last_nodes_at_work_has_ended() -> None:
    gate = Gate()
    rig = Rig(graph_of("a"), {"a": gate}, journal=Ledger())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rig.run())
        await gate.begun.wait()
        rig.execution.interrupt()
        gate.open.set()
    assert running.result() == "completed"
    assert ends(rig) == ["execution.completed"]


@virtual_time
async def test_a_run_interrupted_at_once_drops_what_is_at_work() -> None:
    gate = Gate()
    rig = Rig(graph_of("a b", "a>b"), {"a": gate}, journal=Ledger())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rig.run())
        await gate.begun.wait()
        rig.execution.interrupt(at_once=True)
    assert running.result() == "interrupted"
    assert rig.tale("node.completed", "node.cancelled", *ENDS) == []


@virtual_time
async def test_at_once_cuts_short_a_patient_interrupt_and_not_the_other_way_round() -> None:
    gate = Gate()
    rig = Rig(graph_of("a"), {"a": gate}, journal=Ledger())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rig.run())
        await gate.begun.wait()
        rig.execution.interrupt()
        await asyncio.sleep(1)
        assert not running.done()
        rig.execution.interrupt(at_once=True)
        rig.execution.interrupt()
    assert running.result() == "interrupted"


@virtual_time
async def test_a_batch_that_is_being_stored_is_told_before_the_run_is_left() -> None:
    ledger, gate = Ledger(), Gate()
    rig = Rig(graph_of("a"), {"a": gate}, journal=ledger)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rig.run())
        await gate.begun.wait()
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
    rig = Rig(graph_of("a"), journal=Ledger())
    rig.execution.interrupt()
    assert await rig.run() == "interrupted"
    assert rig.tale() == ["execution.started"]


@virtual_time
async def test_who_waits_for_a_retry_or_an_answer_is_not_waited_for() -> None:
    tries = 0

    async def flaky(inputs: Any, context: Any) -> Any:
        nonlocal tries
        tries += 1
        raise NodeError("not yet", retryable=True)

    graph = graph_of("a", policies={"a": Policy(retry=Retry(2, 1000.0))})
    rig = Rig(graph, {"a": flaky}, journal=Ledger())
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
    inner = graph_of("x y", "x>y")

    async def nests(inputs: Any, context: Any) -> Any:
        await context.runtime.run_graph("k", inner, {})
        return gives("done")

    rig = Rig(graph_of("a b", "a>b"), {"a": nests, "x": gate}, journal=Ledger())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rig.run())
        await gate.begun.wait()
        rig.execution.interrupt()
        gate.open.set()
    assert running.result() == "interrupted"
    assert rig.tale("node.started", "node.completed") == [
        "node.started a", "node.started a[k]/x", "node.completed a[k]/x",
    ]  # fmt: skip


@virtual_time
async def test_an_interrupted_run_can_still_be_cancelled() -> None:
    gate = Gate()
    rig = Rig(graph_of("a"), {"a": gate}, RunOptions(), journal=Ledger())
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(rig.run())
        await gate.begun.wait()
        rig.execution.interrupt()
        rig.execution.cancel("enough")
    assert running.result() == "cancelled"
    assert ends(rig) == ["execution.cancelled"]
