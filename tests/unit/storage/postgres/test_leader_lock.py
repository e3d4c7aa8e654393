"""The lock of the process that leads, on a real server: one has it, and who loses it hears of that first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import psycopg
import pytest

from planwave.errors import StoreError
from planwave.storage.postgres.leader_lock import LEADER_KEY
from planwave.storage.postgres.store import PostgresStore
from tests.support.polling import until
from tests.support.scale.relay import Relay
from tests.support.storage.postgres_server import PostgresServer


def end_leader(postgres: PostgresServer) -> None:
    """End the session that has the lock."""
    postgres.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    )


@contextmanager
def rival(url: str) -> Generator[None]:
    """A session that waits for the lock, and has it as soon as the one before ends."""
    connection = psycopg.connect(url, autocommit=True)
    connection.pgconn.send_query(f"SELECT pg_advisory_lock({LEADER_KEY})".encode())
    yield
    connection.close()


async def test_one_leads_and_another_one_follows_it(database_url: str) -> None:
    first, second = PostgresStore.open(database_url), PostgresStore.open(database_url)
    first.leadership.open()
    async with asyncio.timeout(5):
        await first.leadership.gained()
    second.leadership.open()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2.5):
            await second.leadership.gained()
    assert (first.leadership.leads, second.leadership.leads) == (True, False)
    await first.close()
    assert not first.leadership.leads
    async with asyncio.timeout(5):
        await second.leadership.gained()
    await second.close()


async def test_who_loses_its_session_stops_before_another_one_begins(
    postgres: PostgresServer, database_url: str
) -> None:
    stores = PostgresStore.open(database_url), PostgresStore.open(database_url)
    log: list[tuple[str, float]] = []

    async def follow(name: str, store: PostgresStore) -> None:
        while True:
            await store.leadership.gained()
            log.append((f"{name} begins", monotonic()))
            await store.leadership.lost()
            log.append((f"{name} ends", monotonic()))

    async with asyncio.TaskGroup() as tasks:
        following = [
            tasks.create_task(follow(name, store)) for name, store in zip("ab", stores, strict=True)
        ]
        for store in stores:
            store.leadership.open()
        await until(lambda: log)
        for wanted in (3, 5, 7):
            await asyncio.to_thread(end_leader, postgres)
            await until(lambda wanted=wanted: len(log) >= wanted)
        for task in following:
            task.cancel()
    assert [what.split()[1] for what, _ in log[:7]] == ["begins", "ends"] * 3 + ["begins"]
    for store in stores:
        await store.close()


async def test_who_is_cut_off_stops_before_the_server_gives_the_lock_away(
    postgres: PostgresServer, database_url: str
) -> None:
    with Relay(postgres.port) as relay:
        cut_off = PostgresStore.open(database_url.replace(f":{postgres.port}/", f":{relay.port}/"))
        cut_off.leadership.open()
        await cut_off.leadership.gained()
        other = PostgresStore.open(database_url)
        other.leadership.open()
        began = monotonic()
        relay.cut()
        async with asyncio.timeout(4):
            await cut_off.leadership.lost()
        assert not other.leadership.leads
        async with asyncio.timeout(7):
            await other.leadership.gained()
        assert monotonic() - began < 7
        await cut_off.close()
    await other.close()


async def test_who_stands_still_lets_another_one_lead(database_url: str) -> None:
    stuck, other = PostgresStore.open(database_url), PostgresStore.open(database_url)
    stuck.leadership.open()
    await stuck.leadership.gained()
    other.leadership.open()
    time.sleep(5)  # noqa: ASYNC251 - the loop is to stand still
    async with asyncio.timeout(4):
        await stuck.leadership.lost()
        await until(lambda: stuck.leadership.leads or other.leadership.leads)
    for store in (stuck, other):
        await store.close()


async def test_one_that_drives_is_the_only_one_and_leads_from_its_start(
    database_url: str, tmp_path: Path
) -> None:
    store = PostgresStore.open(database_url, directory=tmp_path / "one")
    store.leadership.open()
    assert store.leadership.leads
    with pytest.raises(StoreError) as refused:
        PostgresStore.open(database_url, directory=tmp_path / "two")
    assert refused.value.code == "storage-locked"
    assert "temporal" in (refused.value.hint or "")
    await store.close()
    again = PostgresStore.open(database_url, directory=tmp_path / "two")
    await again.close()


async def test_one_that_drives_takes_the_lock_again_after_it_lost_its_session(
    postgres: PostgresServer, database_url: str, tmp_path: Path
) -> None:
    store = PostgresStore.open(database_url, directory=tmp_path)
    displaced: list[str] = []
    store.leadership.on_displaced.append(lambda: displaced.append("displaced"))
    store.leadership.open()
    await asyncio.to_thread(end_leader, postgres)
    await store.leadership.lost()
    await store.leadership.gained()
    assert displaced == []
    await store.close()


async def test_one_that_drives_hears_that_another_one_has_the_lock(
    postgres: PostgresServer, database_url: str, tmp_path: Path
) -> None:
    """It used to go on for ever: both drove the same executions."""
    store = PostgresStore.open(database_url, directory=tmp_path)
    displaced: list[str] = []
    store.leadership.on_displaced.append(lambda: displaced.append("displaced"))
    store.leadership.open()
    with rival(database_url):
        await asyncio.to_thread(end_leader, postgres)
        began = monotonic()
        await until(lambda: displaced)
        assert monotonic() - began < 8
        assert not store.leadership.leads
    await store.close()
