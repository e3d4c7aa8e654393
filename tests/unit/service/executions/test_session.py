"""The life of an execution without a queue: as a process runs it that has the store and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from planwave.errors import Conflict, LimitExceeded, StoreError
from planwave.events import ENDED_STATUS, Event, fold
from planwave.graph.model import Graph, Node
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.session import ExecutionSession
from planwave.service.service import Service
from planwave.settings import Limits
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.service.dependencies import LastingStore, dependencies

AT = "2026-01-01T00:00:00.000000+00:00"
CHAIN = make_graph(text_node("a", "one"), text_node("b", "{{ input }}!"), edges=[("a", "b")])
HELD = make_graph(Node("h", "held", "H"))


@asynccontextmanager
async def stored(
    graph: Graph, *types: Any, **more: Any
) -> AsyncGenerator[tuple[ServiceDependencies, str]]:
    """Create an execution by a service that goes down before it starts it."""
    parts = dependencies(graph, store=LastingStore(), types=types, **more)
    async with Service(parts) as service:
        created = await service.executions.create(make_plan(graph))
    yield parts, created.execution_id


async def events_of(parts: ServiceDependencies, execution_id: str) -> list[Event]:
    return [*await parts.store.events(execution_id)]


async def test_a_session_brings_a_stored_execution_to_its_end() -> None:
    async with stored(CHAIN) as (parts, own):
        session = ExecutionSession(parts, own)
        await session.load()
        session.bind()
        assert (session.is_started, session.hash_to_approve()) == (False, None)
        execution = await session.prepare(parts.store)
        assert await session.drive() == "completed"
        assert execution.outputs["b"]["output"].value == "one!"
        record = await parts.store.execution(own)
        assert record is not None
        assert (record.status, record.epoch) == ("completed", 2)


async def test_a_session_that_was_cancelled_before_its_turn_is_cancelled_in_it() -> None:
    async with stored(CHAIN) as (parts, own):
        session = ExecutionSession(parts, own)
        session.cancel("enough")
        await session.load()
        await session.prepare(parts.store)
        assert await session.drive() == "cancelled"
        assert fold(await events_of(parts, own)).cause == "enough"


async def test_a_session_takes_over_what_another_one_drives() -> None:
    held = HeldNode()
    async with stored(HELD, held) as (parts, own):
        first = ExecutionSession(parts, own)
        await first.load()
        await first.prepare(parts.store)
        second = ExecutionSession(parts, own, is_recovery=True)

        async def drive_too_long() -> None:
            with pytest.raises(StoreError) as late:
                await first.drive()
            assert late.value.code == "late-writer"

        async with asyncio.TaskGroup() as group:
            group.create_task(drive_too_long())
            await held.started.wait()
            await second.load()
            assert (first.epoch, second.epoch, second.is_started) == (2, 3, True)
            held.release.set()
        await second.prepare(parts.store)
        assert await second.drive() == "completed"
        (resumed,) = [e for e in await events_of(parts, own) if e.type == "execution.resumed"]
        assert resumed.data == {"reason": "recovery", "epoch": 3}


@pytest.mark.parametrize("status", sorted(ENDED_STATUS))
async def test_an_execution_that_has_ended_is_not_loaded(status: str) -> None:
    async with stored(CHAIN) as (parts, own):
        data = {"error": {"code": "x", "message": "x"}} if status == "failed" else {}
        end = Event(own, 2, AT, f"execution.{status}", None, None, data)
        await parts.store.append(own, 1, [end])
        with pytest.raises(Conflict, match=f"execution {own} is already {status}") as ended:
            await ExecutionSession(parts, own).load()
        assert ended.value.code == "already-ended"


async def test_recoveries_without_progress_are_counted_over_sessions() -> None:
    async with stored(HELD, HeldNode(), limits=Limits(recoveries=2)) as (parts, own):
        for _ in range(2):
            await ExecutionSession(parts, own, is_recovery=True).load()
        with pytest.raises(LimitExceeded, match="recoveries without any progress"):
            await ExecutionSession(parts, own, is_recovery=True).load()
        await ExecutionSession(parts, own).load()  # a command is no recovery


@pytest.mark.parametrize(
    ("is_started", "status", "text"),
    [(False, "failed", "the provider is off"), (True, "paused", "set aside: the provider is off")],
)
async def test_what_cannot_run_ends_or_is_set_aside(
    is_started: bool, status: str, text: str
) -> None:
    async with stored(CHAIN) as (parts, own):
        if is_started:
            started = Event(own, 2, AT, "execution.started", None, None, {"waves": 2})
            await parts.store.append(own, 1, [started])
        state = fold(await events_of(parts, own))
        event = await ExecutionSession(parts, own).refuse(
            Conflict("the provider is off"), state, AT
        )
        refused = fold(await events_of(parts, own))
        assert (refused.status, refused.last_seq) == (status, event.seq)
        assert text in (refused.reason or str(refused.error))


async def test_an_execution_at_rest_is_cancelled_without_its_node_types() -> None:
    async with stored(HELD, HeldNode()) as (parts, own):
        without = dependencies(store=parts.store)
        state = fold(await events_of(parts, own))
        events = await ExecutionSession(without, own).cancel_at_rest(state, "enough", AT)
        assert [event.type for event in events] == ["node.cancelled", "execution.cancelled"]
        with pytest.raises(Conflict, match="is already cancelled"):
            await ExecutionSession(without, own).cancel_at_rest(state, "again", AT)
