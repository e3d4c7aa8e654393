"""What every store gives to those who write documents of executions."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from planwave.errors import StoreError
from planwave.events import Event
from planwave.storage.records import ExecutionRecord
from planwave.storage.sql.store import Store
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore

AT = "2026-01-01T00:00:00.000000Z"
LARGE = "x" * 2_000
Read = Callable[[], list[Event]]


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    created: Store = MemoryStore()
    if request.param == "sqlite":
        created = SqliteStore.open(tmp_path, artifact_bytes=1_000)
    yield created
    await created.close()


async def keep(store: Store, name: str, kind: str) -> None:
    """Keep an execution with a large result that stands as an event says."""
    outputs = {"output": {"type": "text", "value": LARGE}}
    events = [
        Event(name, 1, AT, "execution.created", None, None, {"goal": "g"}),
        Event(name, 2, AT, "node.completed", "a", 1, {"outputs": outputs, "duration_s": 1}),
        Event(name, 3, AT, f"execution.{kind}", None, None, {}),
    ]
    await store.create_execution(ExecutionRecord(name, None, "t", "g", "starting", AT), events)


async def test_lagging_documents_are_projected_in_a_thread(store: Store) -> None:
    kinds = ("started", "paused", "completed", "failed", "cancelled", "shown")
    for kind in kinds:
        await keep(store, kind, "completed" if kind == "shown" else kind)
    await store.set_document_seqs({"shown": 3, "failed": 2})
    requested = ["nobody", *reversed(kinds), "paused"]

    def project(record: ExecutionRecord, read: Read) -> tuple[str, int, str, threading.Thread]:
        events = read()
        value = events[1].data["outputs"]["output"]["value"]
        return record.status, len(events), value, threading.current_thread()

    found = await store.project_each(requested, project)
    assert {name: each[:3] for name, each in found.items()} == {
        name: (name, 3, LARGE) for name in ("cancelled", "failed", "completed", "paused")
    }
    assert threading.main_thread() not in {each[3] for each in found.values()}


async def test_projection_error_is_raised(store: Store) -> None:
    await keep(store, "x1", "completed")

    def project(record: ExecutionRecord, _: Read) -> None:
        raise ZeroDivisionError(record.execution_id)

    with pytest.raises(ZeroDivisionError, match="x1"):
        await store.project_each(["x1"], project)


async def test_closed_store_projects_nothing(store: Store) -> None:
    await keep(store, "x1", "completed")
    await store.close()
    with pytest.raises(StoreError):
        await store.project_each(["x1"], lambda record, _: record)
