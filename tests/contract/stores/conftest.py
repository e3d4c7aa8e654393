"""The stores that share one contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from planwave.storage.sqlite.sql_store import MemoryStore, Store
from planwave.storage.sqlite.store import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    is_memory = request.param == "memory"
    store = MemoryStore() if is_memory else SqliteStore.open(tmp_path, artifact_bytes=1_000_000)
    yield store
    await store.close()
