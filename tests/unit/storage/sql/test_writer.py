"""What a write that waits for a lock of another process may hold up: itself, and what follows it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Generator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from planwave.errors import PlanwaveError
from planwave.events import Event
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.records import ExecutionRecord, PlanRecord

AT = "2026-01-01T00:00:00.000000Z"
SOON_S = 2.0


def log(seq: int, of: str) -> Event:
    return Event(of, seq, AT, "node.log", "a", 1, {})


def plan(name: str) -> PlanRecord:
    return PlanRecord(name, AT, "g", "t", "h", {})


async def outcome(of: Awaitable[Any]) -> Any:
    """Return the result, or the code of the error."""
    try:
        return await of
    except PlanwaveError as error:
        return error.code


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[PostgresStore]:
    async with PostgresStore.open(database_url) as opened:
        for name in ("x1", "x2"):
            record = ExecutionRecord(name, None, "t", "g", "starting", AT)
            await opened.create_execution(record, [])
        yield opened


@contextmanager
def locked(url: str, statement: str) -> Generator[psycopg.Connection[Any]]:
    """Hold what a statement locks, to the end of the block or of the transaction."""
    with psycopg.connect(url) as other:
        other.execute(statement)  # pyright: ignore[reportArgumentType]
        yield other
        other.rollback()


ROW = "SELECT 1 FROM executions WHERE execution_id = 'x1' FOR UPDATE"
NAME = "SELECT pg_advisory_xact_lock(hashtextextended('plan\x1fp1', 0))"


async def test_a_row_that_is_locked_elsewhere_delays_only_appends_to_it(
    store: PostgresStore, database_url: str
) -> None:
    async with asyncio.TaskGroup() as group:
        with locked(database_url, ROW):
            waiting = [group.create_task(store.append("x1", 1, [log(n, "x1")])) for n in (1, 2)]
            began = time.monotonic()
            for seq in range(1, 11):
                await store.append("x2", 1, [log(seq, "x2")])
                if seq == 5:
                    waiting.append(group.create_task(store.append("x1", 1, [log(3, "x1")])))
            assert time.monotonic() - began < SOON_S
            assert not any(each.done() for each in waiting)
            assert store.stats.status == "ok"
    assert [each.seq for each in await store.events("x1")] == [1, 2, 3]
    assert store.stats.writes == 2 + 10 + 3


async def test_a_name_that_is_locked_elsewhere_delays_only_that_write(
    store: PostgresStore, database_url: str
) -> None:
    async with asyncio.TaskGroup() as group:
        with locked(database_url, NAME):
            waiting = group.create_task(store.save_plan(plan("p1")))
            began = time.monotonic()
            await store.save_plan(plan("p2"))
            await store.append("x1", 1, [log(1, "x1")])
            assert time.monotonic() - began < SOON_S
            assert not waiting.done()
    assert {each.plan_id for each in await store.plans()} == {"p1", "p2"}


async def test_an_execution_that_is_claimed_at_once_is_claimed_after_its_creation(
    store: PostgresStore, database_url: str
) -> None:
    record = ExecutionRecord("x3", "p1", "t", "g", "starting", AT)
    async with asyncio.TaskGroup() as group:
        with locked(database_url, NAME):
            group.create_task(store.create_execution(record, [log(1, "x3")]))
            await asyncio.sleep(0.1)
            claimed = group.create_task(store.claim("x3"))
            await asyncio.sleep(0.1)
    assert claimed.result() == 2


async def test_a_lock_that_is_held_for_too_long_fails_what_needs_it_and_nothing_else(
    store: PostgresStore, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planwave.storage.sql.writer._LOCK_WAIT_S", 0.2)
    with locked(database_url, ROW):
        async with asyncio.TaskGroup() as group:
            # The second one would leave a gap.
            waiting = [
                group.create_task(outcome(store.append("x1", 1, [log(n, "x1")]))) for n in (1, 2)
            ]
            other = group.create_task(outcome(store.append("x2", 1, [log(1, "x2")])))
        assert [each.result() for each in waiting] == ["store-busy"] * 2
        assert other.result() is None
        assert store.stats.status == "ok"
        with pytest.raises(PlanwaveError) as refused:
            await store.append("x1", 1, [log(1, "x1")])
        assert "another transaction holds a lock" in str(refused.value.hint)
    await store.append("x1", 1, [log(1, "x1")])


async def test_many_writes_that_wait_let_others_pass(
    store: PostgresStore, database_url: str
) -> None:
    async with asyncio.TaskGroup() as group:
        with locked(database_url, NAME):
            waiting = [group.create_task(store.save_plan(plan("p1"))) for _ in range(30)]
            began = time.monotonic()
            for seq in range(1, 11):
                await store.append("x2", 1, [log(seq, "x2")])
            assert time.monotonic() - began < SOON_S
            assert not any(each.done() for each in waiting)


async def test_a_store_that_is_closed_writes_what_waits_for_a_lock(
    store: PostgresStore, database_url: str
) -> None:
    async with asyncio.TaskGroup() as group:
        with locked(database_url, ROW):
            appended = group.create_task(store.append("x1", 1, [log(1, "x1")]))
            closed = group.create_task(store.close())
            await asyncio.sleep(0.2)
            assert not closed.done()
    assert appended.result() is None
    async with PostgresStore.open(database_url, read_only=True) as after:
        assert [each.seq for each in await after.events("x1")] == [1]
