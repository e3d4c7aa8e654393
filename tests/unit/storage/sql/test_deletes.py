from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import StoreError
from planwave.events import Event
from planwave.storage.records import ExecutionRecord
from planwave.storage.sql import deletes
from planwave.storage.sqlite.store import SqliteStore

AT = "2026-01-01T00:00:00.000000Z"
LATER = "2026-01-02"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    created = SqliteStore.open(tmp_path, artifact_bytes=100)
    yield created
    await created.close()


def result(name: str, seq: int, value: str) -> Event:
    outputs = {"output": {"type": "text", "value": value}}
    return Event(name, seq, AT, "node.completed", "a", 1, {"outputs": outputs})


def end(name: str, seq: int) -> Event:
    return Event(name, seq, AT, "execution.completed", None, None, {})


def record(name: str) -> ExecutionRecord:
    return ExecutionRecord(name, "p", "t", "g", "starting", AT)


async def store_execution(store: SqliteStore, name: str, *values: str) -> None:
    """Keep an execution that ended, with these results, each in a batch of its own."""
    await store.create_execution(record(name), [])
    for seq, value in enumerate(values, 1):
        await store.append(name, 1, [result(name, seq, value)])
    await store.append(name, 1, [end(name, len(values) + 1)])


def artifacts(directory: Path) -> int:
    return len(list((directory / "artifacts").glob("*.json")))


def rows(directory: Path) -> dict[str, int]:
    """Count what a database holds."""
    raw = sqlite3.connect(directory / "planwave.db")
    tables = ("executions", "execution_texts", "batches", "calls", "artifact_uses")
    found = {t: raw.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}  # noqa: S608
    raw.close()
    return found


async def test_artifact_is_removed_with_its_last_execution(
    store: SqliteStore, tmp_path: Path
) -> None:
    await store_execution(store, "x1", "a" * 100, "b" * 100, "a" * 100)
    await store_execution(store, "x2", "b" * 100, "small")
    assert artifacts(tmp_path) == 2
    await store.delete_execution("x1")
    assert artifacts(tmp_path) == 1
    assert (await store.events("x2"))[0] == result("x2", 1, "b" * 100)
    await store.delete_execution("x2")
    assert artifacts(tmp_path) == 0
    assert set(rows(tmp_path).values()) == {0}


async def test_artifact_written_during_deletion_is_kept(
    store: SqliteStore,
) -> None:
    await store_execution(store, "x1", "a" * 100)
    await store.create_execution(record("x2"), [])
    await store._write(lambda connection: deletes.soft_delete_execution(connection, "x1"))
    before = store.commits
    async with asyncio.TaskGroup() as group:
        group.create_task(store._purge_deleted())
        group.create_task(store.append("x2", 1, [result("x2", 1, "a" * 100)]))
    assert store.commits == before + 1
    assert await store.events("x2") == [result("x2", 1, "a" * 100)]


async def test_other_writes_run_during_a_deletion(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletes, "_ROWS", 5)
    await store_execution(store, "x1", *["small"] * 50)
    await store.create_execution(record("x2"), [])
    seq = 0
    async with asyncio.TaskGroup() as group:
        deletion = group.create_task(store.delete_execution("x1"))
        while not deletion.done():
            seq += 1
            await store.append("x2", 1, [result("x2", seq, "v")])
    assert seq >= 10


async def test_interrupted_deletion_is_hidden_and_completed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = SqliteStore.open(tmp_path, artifact_bytes=100)
    await store_execution(first, "x1", "a" * 100, "b")
    await store_execution(first, "x2", "b")

    def cut_off(_: Any) -> None:
        raise StoreError("the process was killed")

    with monkeypatch.context() as patch:
        patch.setattr(deletes, "purge", cut_off)
        with pytest.raises(StoreError, match="killed"):
            await first.delete_execution("x1")
    await first.close()
    again = SqliteStore.open(tmp_path, artifact_bytes=100)
    assert [x.execution_id for x in await again.executions()] == ["x2"]
    assert (await again.execution("x1"), await again.events("x1")) == (None, [])
    assert await again.lagging_documents() == ["x2"]
    await again.create_execution(record("x1"), [])
    assert rows(tmp_path)["executions"] == 3
    assert await again.prune(LATER, 9) == ["x2"]
    await again.close()
    assert rows(tmp_path) == {
        "executions": 1, "execution_texts": 1, "batches": 0, "calls": 0, "artifact_uses": 0,
    }  # fmt: skip
    assert artifacts(tmp_path) == 0


async def test_rolled_back_deletion_keeps_artifacts(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_execution(store, "x1", "a" * 100)
    raw = store._writer._transactions._raw  # type: ignore[union-attr]
    raw.execute(
        "CREATE TEMP TRIGGER no BEFORE DELETE ON executions BEGIN SELECT raise(ABORT, 'no'); END"
    )
    with pytest.raises(StoreError):
        await store.delete_execution("x1")
    assert artifacts(tmp_path) == 1
    raw.execute("DROP TRIGGER no")
    await store_execution(store, "x2", "b")
    await store.delete_execution("x2")
    assert artifacts(tmp_path) == 0
