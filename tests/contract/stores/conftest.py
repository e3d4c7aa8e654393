"""The stores that share one contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from planwave.storage.sql.store import Store
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    match request.param:
        case "memory":
            store: Store = MemoryStore()
        case "sqlite":
            store = SqliteStore.open(tmp_path, artifact_bytes=1_000_000)
        case _:
            from planwave.storage.postgres.store import PostgresStore

            url = request.getfixturevalue("database_url")
            store = PostgresStore.open(url, artifact_bytes=1_000_000)
    yield store
    await store.close()
