"""The clients of executions, of one process and of several."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from planwave.errors import Conflict
from planwave.service.streaming import followers as module
from planwave.service.streaming.followers import Followers
from planwave.storage.postgres.store import PostgresStore
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.polling import until
from tests.support.storage.postgres_server import PostgresServer


class Executions:
    """Notes what is cancelled."""

    def __init__(self) -> None:
        self.tasks = asyncio.TaskGroup()
        self.cancelled: list[str] = []

    async def cancel(self, execution_id: str, cause: str) -> None:
        self.cancelled.append(execution_id)
        if execution_id == "ended":
            raise Conflict("it has ended")


@asynccontextmanager
async def opened(*stores: Any) -> AsyncGenerator[list[tuple[Followers, Executions]]]:
    async with AsyncExitStack() as stack:
        found: list[tuple[Followers, Executions]] = []
        for store in stores:
            await stack.enter_async_context(store)
            executions = Executions()
            await stack.enter_async_context(executions.tasks)
            found.append((Followers(store, executions), executions))  # type: ignore[arg-type]
        yield found


async def test_the_last_client_of_one_process_is_told_so() -> None:
    async with opened(MemoryStore()) as ((clients, _),):
        for _ in range(2):
            await clients.join("x")
        assert not await clients.leave("x")
        assert clients.has_clients("x")
        assert await clients.leave("x")
        assert not clients.has_clients("x")


async def test_the_last_client_of_all_processes_is_told_so(database_url: str) -> None:
    stores = [PostgresStore.open(database_url, is_carried=True) for _ in range(2)]
    async with opened(*stores) as ((one, _), (other, _)):
        await one.join("x")
        await other.join("x")
        assert not await one.leave("x")
        await one.join("x")
        assert not await other.leave("x")
        assert await one.leave("x")


async def test_what_a_process_that_is_gone_followed_is_cancelled_once(
    database_url: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SWEEP_S", 0.1)
    stores = [PostgresStore.open(database_url, is_carried=True) for _ in range(2)]
    async with opened(*stores) as ((gone, _), (other, executions)):
        for each in ("lost", "ended", "kept"):
            await gone.join(each)
        await other.join("kept")
        async with other.sweeping():
            await asyncio.sleep(0.5)
            assert executions.cancelled == []
            stores[0]._holder._ended.set()  # type: ignore[union-attr] - as if it were killed
            expired = "UPDATE holders SET expires_at = clock_timestamp() - interval '1 s' WHERE holder_id = '{}'"
            postgres.execute(
                expired.format(stores[0]._instance_id), database_url.rpartition("/")[2]
            )
            await until(lambda: sorted(executions.cancelled) == ["ended", "lost"])
            await asyncio.sleep(0.5)
        assert sorted(executions.cancelled) == ["ended", "lost"]
        assert await other.leave("kept"), "nobody else follows it"


async def test_a_client_counts_within_its_block_where_it_matters(database_url: str) -> None:
    store = PostgresStore.open(database_url, is_carried=True)
    async with opened(store) as ((clients, _),):
        async with clients.following("x", counts=False):
            assert not clients.has_clients("x")
        async with clients.following("x"):
            assert clients.has_clients("x")
        await until(lambda: not clients.has_clients("x"))
