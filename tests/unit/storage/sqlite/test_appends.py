from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import StoreError
from planwave.events import Event
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sql import deletes
from planwave.storage.sqlite.appends import MultiRowStatement
from planwave.storage.sqlite.store import SqliteStore


def at(seq: int) -> str:
    return f"2026-01-01T00:00:{seq:02}.000000Z"


def event(of: str, seq: int, kind: str = "node.log") -> Event:
    return Event(of, seq, at(seq), kind, None, None, {"of": of, "seq": seq})


def record(name: str) -> ExecutionRecord:
    return ExecutionRecord(name, f"p {name}", f"title {name}", "g", "starting", at(0))


def plan(name: str) -> PlanRecord:
    return PlanRecord(f"p {name}", at(0), "g", "t", "h", {})


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    created = SqliteStore.open(tmp_path)
    yield created
    await created.close()


def raw_of(store: SqliteStore) -> sqlite3.Connection:
    return store._writer._transactions._raw  # type: ignore[union-attr]


async def create(store: SqliteStore, name: str) -> None:
    await store.create_execution(record(name), [event(name, 1, "execution.created")], plan(name))


async def create_ended(store: SqliteStore, name: str) -> None:
    await create(store, name)
    await store.append(name, 1, [event(name, 2, "execution.completed")])


async def at_once(store: SqliteStore, *writes: Coroutine[Any, Any, Any]) -> list[str | None]:
    """Write in one batch; give the code of each error."""

    async def tell(write: Coroutine[Any, Any, Any]) -> str | None:
        try:
            await write
        except StoreError as error:
            return error.code
        return None

    before = store.commits
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(tell(write)) for write in writes]
    assert store.commits == before + 1
    return [task.result() for task in tasks]


async def whole(store: SqliteStore, name: str, last: int) -> bool:
    """Say whether an execution has its own record and events, up to this one, and no others."""
    found = await store.execution(name)
    events = await store.events(name)
    own = found is not None and (found.title, found.last_seq) == (f"title {name}", last)
    return own and [e.data for e in events] == [{"of": name, "seq": n + 1} for n in range(last)]


@pytest.mark.parametrize("count", [2, 100])
async def test_batch_uses_a_constant_number_of_statements(store: SqliteStore, count: int) -> None:
    statements: list[str] = []
    names = [f"x{n}" for n in range(count)]
    await create_ended(store, "before")
    raw_of(store).set_trace_callback(lambda text: statements.append(" ".join(text.split()[:3])))
    await at_once(store, *(create(store, name) for name in names))
    kinds = ("execution.started", "node.log", "execution.completed")
    for seq, kind in enumerate(kinds, 2):
        await at_once(store, *(store.append(name, 1, [event(name, seq, kind)]) for name in names))
    await at_once(store, store.set_document_seqs(dict.fromkeys(names, 4)))
    raw_of(store).set_trace_callback(None)
    begin, insert = "BEGIN IMMEDIATE", "INSERT INTO batches"
    assert statements == [
        begin, "INSERT INTO plans", "INSERT INTO executions", "INSERT INTO execution_texts", insert,
        "COMMIT",
        begin, insert, "UPDATE executions SET", "COMMIT",
        begin, insert, "COMMIT",
        begin, insert, "UPDATE executions SET", "COMMIT",
        begin, "UPDATE executions SET", "COMMIT",
    ]  # fmt: skip
    assert [await whole(store, name, 4) for name in names] == [True] * count
    assert await store.lagging_documents() == ["before"]


@pytest.mark.parametrize("others", [0, 1, 5])
async def test_batched_status_changes_equal_single_ones(store: SqliteStore, others: int) -> None:
    kinds = ["started", "paused", "started", "failed", "paused", "failed", "resumed"]
    names = ["x1", *(f"y{n}" for n in range(others))]
    for name in ("slow", *names):
        await create(store, name)

    def changes(name: str, count: int) -> list[Coroutine[Any, Any, None]]:
        received = (
            event(name, seq, f"execution.{kind}") for seq, kind in enumerate(kinds[:count], 2)
        )
        return [store.append(name, 1, [each]) for each in received]

    for change in changes("slow", len(kinds)):
        await change
    first, *rest = changes("x1", len(kinds))
    codes = await at_once(store, first, *(changes(name, 1)[0] for name in names[1:]), *rest)
    assert codes == [None] * len(codes)
    assert await stands(store, "x1") == await stands(store, "slow")
    assert await stands(store, "x1") == ("executing", at(2), at(7))
    for name in names[1:]:
        assert await stands(store, name) == ("executing", at(2), None)


async def stands(store: SqliteStore, name: str) -> tuple[str, str | None, str | None]:
    found = await store.execution(name)
    assert found is not None
    return found.status, found.started_at, found.completed_at


async def test_started_at_is_kept_in_batched_updates(store: SqliteStore) -> None:
    for name in ("x1", "x2"):
        await create(store, name)
        await store.append(name, 1, [event(name, 2, "execution.started")])
    kinds = ("paused", "started")  # the second would be an odd one
    for seq, kind in enumerate(kinds, 3):
        await at_once(
            store,
            *(store.append(n, 1, [event(n, seq, f"execution.{kind}")]) for n in ("x1", "x2")),
        )
    for name in ("x1", "x2"):
        assert await stands(store, name) == ("executing", at(2), None)


async def test_execution_can_be_created_and_ended_in_one_batch(store: SqliteStore) -> None:
    await at_once(
        store,
        create(store, "x1"),
        store.append("x1", 1, [event("x1", 2, "execution.started")]),
        create(store, "x2"),
        store.append("x1", 1, [event("x1", 3, "execution.completed")]),
        store.append("x1", 1, [event("x1", 4)]),
    )
    assert await stands(store, "x1") == ("completed", at(2), at(3))
    assert await whole(store, "x1", 4)
    assert await whole(store, "x2", 1)
    await store.append("x1", 1, [event("x1", 5)])
    assert await whole(store, "x1", 5)


async def test_duplicate_execution_fails_alone(store: SqliteStore) -> None:
    await create(store, "before")
    names = ["x1", "x2", "x1", "x3", "before", "x4"]
    codes = await at_once(store, *(create(store, name) for name in names))
    twice = "duplicate-execution"
    assert codes == [None, None, twice, None, twice, None]
    for name in ("before", "x1", "x2", "x3", "x4"):
        await store.append(name, 1, [event(name, 2)])
    assert [await whole(store, name, 2) for name in ("before", "x1", "x2", "x3", "x4")] == [
        True
    ] * 5


async def test_failed_write_does_not_shift_keys(
    store: SqliteStore,
) -> None:
    await create(store, "before")
    codes = await at_once(
        store,
        create(store, "x1"),
        store.append("before", 1, [event("before", 9)]),
        create(store, "x2"),
        store.append("nobody", 1, [event("nobody", 1)]),
        store.append("before", 1, [event("before", 2)]),
    )
    assert codes == [None, "seq-gap", None, "unknown-execution", None]
    await create(store, "x3")
    assert [await whole(store, name, 1) for name in ("x1", "x2", "x3")] == [True] * 3
    assert await whole(store, "before", 2)


async def test_executions_are_stored_after_a_rolled_back_batch(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(sqlite3.OperationalError):
        sqlite_errorcode = sqlite3.SQLITE_FULL

    def fail() -> None:
        raise Full("database or disk is full")

    await create(store, "before")
    with monkeypatch.context() as patched:
        patched.setattr(store._writer._transactions, "commit", fail)
        for name in ("x1", "x2"):
            with pytest.raises(StoreError, match="full"):
                await create(store, name)
    await at_once(store, *(create(store, name) for name in ("x1", "x2", "x3")))
    assert await store.plan("p x2") == plan("x2")
    assert [await whole(store, name, 1) for name in ("before", "x1", "x2", "x3")] == [True] * 4


async def test_keys_taken_by_others_are_skipped(store: SqliteStore) -> None:
    await create(store, "x1")
    for n in range(20):
        raw_of(store).execute(
            "INSERT INTO executions (key, execution_id, status, created_at, document_seq, epoch) "
            "SELECT max(key) + 1, ?, 'starting', '', 0, 1 FROM executions",
            (f"stranger {n}",),
        )
    assert await at_once(store, create(store, "x2"), create(store, "x3")) == [None, None]
    assert [await whole(store, name, 1) for name in ("x1", "x2", "x3")] == [True] * 3


@pytest.mark.parametrize("reopened", [False, True])
async def test_key_of_deleted_execution_is_reused_only_after_purge(
    tmp_path: Path, reopened: bool
) -> None:
    async def again(store: SqliteStore) -> SqliteStore:
        if not reopened:
            return store
        await store.close()
        return SqliteStore.open(tmp_path)

    store = SqliteStore.open(tmp_path)
    await create_ended(store, "x1")
    await create_ended(store, "last")

    def hide(connection: Any) -> None:
        deletes.soft_delete_execution(connection, "last")
        store._writer.mark_deleted(["last"])  # type: ignore[union-attr]

    await store._write(hide)
    store = await again(store)
    await create_ended(store, "x2")
    assert await whole(store, "x2", 2)
    await store.delete_execution("x2")  # sweeps both
    assert raw_of(store).execute("SELECT count(*) FROM batches").fetchone() == (2,)
    store = await again(store)
    await create_ended(store, "x3")
    assert await whole(store, "x3", 2)
    assert await whole(store, "x1", 2)
    await store.close()


async def test_write_between_creations_sees_earlier_ones(store: SqliteStore) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(create(store, "x1"))
        noted = group.create_task(store.set_document_seqs({"x1": 1, "x2": 1}))
        group.create_task(create(store, "x2"))
        again = group.create_task(store.set_document_seqs({"x1": 0, "x2": 0}))
    assert noted.result() == ["x2"]
    assert again.result() == []
    found = [await store.execution(name) for name in ("x1", "x2")]
    assert [each and each.document_seq for each in found] == [1, 0]
    assert store.commits == 1


INSERT = MultiRowStatement.insert("kept", "key, text")
KEEP_FIRST = MultiRowStatement.insert("kept", "key, text", "ON CONFLICT DO NOTHING")
SET = MultiRowStatement(
    2,
    "UPDATE kept SET text = ? WHERE key = ?",
    "UPDATE kept SET text = column1 FROM (VALUES {}) WHERE key = column2",
)
MOST = 256
ANY_NUMBER = [0, 1, 2, 3, 4, 5, 63, 64, 65, MOST - 1, MOST, MOST + 1, 3 * MOST - 5]


@pytest.fixture
def raw() -> Iterator[sqlite3.Connection]:
    created = sqlite3.connect(":memory:", isolation_level=None)
    created.execute("CREATE TABLE kept (key INTEGER PRIMARY KEY, text TEXT)")
    yield created
    created.close()


def rows_of(raw: sqlite3.Connection) -> list[tuple[int, str | None]]:
    return raw.execute("SELECT key, text FROM kept ORDER BY key").fetchall()


@pytest.mark.parametrize("count", ANY_NUMBER)
def test_every_row_is_written_once(raw: sqlite3.Connection, count: int) -> None:
    keys = range(1, count + 1)
    assert INSERT.run(raw, [value for key in keys for value in (key, None)]) == count
    assert rows_of(raw) == [(key, None) for key in keys]
    assert SET.run(raw, [value for key in keys for value in (f"t{key}", key)]) == count
    assert rows_of(raw) == [(key, f"t{key}") for key in keys]


@pytest.mark.parametrize("count", ANY_NUMBER)
def test_rows_are_written_in_few_statements(raw: sqlite3.Connection, count: int) -> None:
    statements: list[str] = []
    raw.set_trace_callback(statements.append)
    INSERT.run(raw, [value for key in range(count) for value in (key, "t")])
    assert len(statements) == -(-count // MOST)


def test_first_of_duplicate_rows_is_kept(raw: sqlite3.Connection) -> None:
    INSERT.run(raw, [1, "old"])
    assert KEEP_FIRST.run(raw, [1, "new", 2, "first", 2, "second"]) == 1
    assert KEEP_FIRST.run(raw, [2, "third"]) == 0
    assert rows_of(raw) == [(1, "old"), (2, "first")]


def test_rejected_row_rejects_its_statement(raw: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.IntegrityError, match=r"kept\.key"):
        INSERT.run(raw, [1, "a", 2, "b", 1, "c"])
    assert rows_of(raw) == []
