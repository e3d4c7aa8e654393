"""The stores that share one contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, cast

import pytest

from planwave.storage.sql.store import Store
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore
from tests.support.storage.two_stores import TakingTurns

ONE_PROCESS: Final = ("memory", "sqlite", "postgres")
ARTIFACT_BYTES: Final = 1_000_000


def opened(kind: str, request: pytest.FixtureRequest, directory: Path) -> Store:
    """Open a store; ``two stores`` are two openings of one database that take turns."""
    if kind == "memory":
        return MemoryStore()
    if kind == "sqlite":
        return SqliteStore.open(directory, artifact_bytes=ARTIFACT_BYTES)
    url = request.getfixturevalue("database_url")
    from planwave.storage.postgres.store import PostgresStore

    stores = [
        PostgresStore.open(url, artifact_bytes=ARTIFACT_BYTES)
        for _ in range(2 if kind == "two stores" else 1)
    ]
    return stores[0] if len(stores) == 1 else cast("Store", TakingTurns(*stores))


@pytest.fixture(params=[*ONE_PROCESS, "two stores"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store = opened(request.param, request, tmp_path)
    yield store
    await store.close()


@pytest.fixture(params=ONE_PROCESS)
async def one_process_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store for the order of writes that do not wait for each other: it is that of one process."""
    store = opened(request.param, request, tmp_path)
    yield store
    await store.close()
