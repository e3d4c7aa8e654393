from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from planwave.errors import StoreError
from planwave.storage.records import ExecutionRecord
from planwave.storage.sql.readers import ReaderPool
from planwave.storage.sqlite.connection import empty_engine
from planwave.storage.sqlite.store import SqliteStore

AT = "2026-01-01T00:00:00.000000Z"


class Counting:
    """A query that counts its runs, and waits for leave."""

    def __init__(self) -> None:
        self.runs = 0
        self.begun = threading.Semaphore(0)
        self.leave = threading.Event()
        self.leave.set()
        self.fails = False

    def __call__(self, _: Connection) -> int:
        self.runs += 1
        self.begun.release()
        assert self.leave.wait(10)
        if self.fails:
            raise StoreError("no")
        return self.runs


class Version:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def query() -> Counting:
    return Counting()


@pytest.fixture
def version() -> Version:
    return Version()


@pytest.fixture
async def readers(version: Version) -> AsyncIterator[ReaderPool]:
    created = ReaderPool(empty_engine(), version)
    yield created
    await created.run(created.close)
    created.shutdown()


async def test_equal_reads_between_commits_share_one_query(
    readers: ReaderPool, query: Counting, version: Version
) -> None:
    query.leave.clear()
    async with asyncio.TaskGroup() as group:
        requested = [group.create_task(readers.read_shared("q", query)) for _ in range(50)]
        await readers.run(query.begun.acquire)
        query.leave.set()
    assert {task.result() for task in requested} == {1}
    assert await readers.read_shared("q", query) == 1
    assert await readers.read_shared("other", query) == 2
    version.now += 1
    assert await readers.read_shared("q", query) == 3


async def test_read_after_commit_does_not_share_an_earlier_query(
    readers: ReaderPool, query: Counting, version: Version
) -> None:
    query.leave.clear()
    async with asyncio.TaskGroup() as group:
        before = group.create_task(readers.read_shared("q", query))
        await readers.run(query.begun.acquire)
        version.now += 1
        after = group.create_task(readers.read_shared("q", query))
        await readers.run(query.begun.acquire)
        query.leave.set()
    assert query.runs == 2
    assert before.done()
    assert after.done()


async def test_cancelled_read_does_not_affect_shared_readers(
    readers: ReaderPool, query: Counting
) -> None:
    query.leave.clear()
    async with asyncio.TaskGroup() as group:
        leaving, staying = (group.create_task(readers.read_shared("q", query)) for _ in range(2))
        await readers.run(query.begun.acquire)
        leaving.cancel()
        query.leave.set()
    assert leaving.cancelled()
    assert staying.result() == 1


async def test_failed_query_is_not_cached(readers: ReaderPool, query: Counting) -> None:
    query.fails = True
    with pytest.raises(StoreError):
        await readers.read_shared("q", query)
    query.fails = False
    assert await readers.read_shared("q", query) == 2


async def test_cache_is_bounded(readers: ReaderPool, query: Counting) -> None:
    for question in range(20):
        await readers.read_shared(question, query)
    assert await readers.read_shared(19, query) == 20
    assert await readers.read_shared(0, query) == 21


async def test_uncached_result_is_shared_only_while_running(
    readers: ReaderPool, query: Counting
) -> None:
    query.leave.clear()
    async with asyncio.TaskGroup() as group:
        requested = [
            group.create_task(readers.read_shared("q", query, keep_result=False)) for _ in range(9)
        ]
        await readers.run(query.begun.acquire)
        query.leave.set()
    assert {task.result() for task in requested} == {1}
    assert not readers._shared_results
    assert await readers.read_shared("q", query, keep_result=False) == 2


async def test_read_only_store_shares_nothing(query: Counting) -> None:
    alone = ReaderPool(empty_engine())
    assert [await alone.read_shared("q", query) for _ in range(2)] == [1, 2]
    await alone.run(alone.close)
    alone.shutdown()


async def test_shared_list_is_copied(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    await store.create_execution(ExecutionRecord("x1", None, "t", "g", "starting", AT), [])
    (await store.executions()).clear()
    assert [x.execution_id for x in await store.executions()] == ["x1"]
    await store.create_execution(ExecutionRecord("x2", None, "t", "g", "starting", AT), [])
    assert len(await store.executions()) == 2
    await store.close()
    with pytest.raises(StoreError) as refused:
        await store.executions()
    assert refused.value.code == "store-closed"
