from __future__ import annotations

import asyncio
import errno
import json
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import Conflict, PlanwaveError, StoreError
from planwave.events import Event
from planwave.storage.artifacts import ReadArtifact, load_artifacts
from planwave.storage.lock import read_owner
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite import connection
from planwave.storage.sqlite.store import SqliteStore
from tests.support.polling import until

AT = "2026-01-01T00:00:00.000000Z"


def log(seq: int, of: str = "x1", **data: Any) -> Event:
    return Event(of, seq, AT, "node.log", "a", 1, data)


def result(seq: int, value: Any, of: str = "x1") -> Event:
    outputs = {"output": {"type": "text", "value": value}, "other": {"type": "json", "value": 1}}
    return Event(of, seq, AT, "node.completed", "a", 1, {"outputs": outputs, "duration_s": 1})


def record(name: str = "x1") -> ExecutionRecord:
    return ExecutionRecord(name, None, "t", "g", "starting", AT)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    created = SqliteStore.open(tmp_path, artifact_bytes=1_000)
    yield created
    await created.close()


async def test_data_is_there_after_reopening(tmp_path: Path) -> None:
    first = SqliteStore.open(tmp_path)
    await first.create_execution(record(), [log(1), log(2)])
    assert await first.claim("x1") == 2
    await first.close()
    again = SqliteStore.open(tmp_path)
    assert [e.seq for e in await again.events("x1")] == [1, 2]
    await again.append("x1", 2, [log(3)])
    with pytest.raises(StoreError):
        await again.append("x1", 1, [log(4)])
    await again.close()


async def test_concurrent_writes_share_one_commit(store: SqliteStore) -> None:
    for n in range(50):
        await store.create_execution(record(f"x{n}"), [])
    before = store.commits
    async with asyncio.TaskGroup() as group:
        for n in range(50):
            group.create_task(store.append(f"x{n}", 1, [log(1, f"x{n}")]))
    assert store.commits - before == 1


async def test_writes_and_commits_are_counted(store: SqliteStore) -> None:
    assert (store.stats.writes, sum(store.stats.commits)) == (0, 0)
    async with asyncio.TaskGroup() as group:
        for n in range(5):
            group.create_task(store.create_execution(record(f"x{n}"), []))
    await store.append("x0", 1, [log(1, "x0")])
    async with asyncio.TaskGroup() as group:
        group.create_task(swallowed(store.append("x0", 1, [log(9, "x0")])))
        group.create_task(store.append("x1", 1, [log(1, "x1")]))
    assert store.stats.writes == 7, "the one that did not fit was not written"
    assert store.stats.commits[:5] == (2, 0, 0, 1, 0)
    assert store.stats.fatal_error is None


async def test_commit_count_matches_sqlite(store: SqliteStore) -> None:
    raw = store._writer._transactions._raw  # type: ignore[union-attr]
    statements: list[str] = []
    raw.set_trace_callback(statements.append)
    before = store.commits
    await store.create_execution(record(), [log(1)])
    await store.append("x1", 1, [log(seq) for seq in range(2, 202)])
    raw.set_trace_callback(None)
    assert statements.count("COMMIT") == store.commits - before == 2
    assert raw.execute("PRAGMA synchronous").fetchone() == (2,)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert raw.execute("PRAGMA foreign_keys").fetchone() == (1,)
    assert len(await store.events("x1")) == 201


async def test_reads_do_not_wait_for_a_slow_commit(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create_execution(record(), [])
    writer = store._writer
    assert writer is not None
    gate = threading.Event()
    commit = writer._transactions.commit

    def slow() -> None:
        gate.wait(60)
        commit()

    monkeypatch.setattr(writer._transactions, "commit", slow)
    async with asyncio.TaskGroup() as group:
        append = group.create_task(store.append("x1", 1, [log(1)]))
        assert await store.events("x1") == []  # reads do not queue behind the writer
        assert not append.done()
        gate.set()
    assert len(await store.events("x1")) == 1


class FailingDisk(sqlite3.OperationalError):
    sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC


async def test_failed_commit_makes_store_read_only(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create_execution(record(), [log(1)])
    writer = store._writer
    assert writer is not None

    def fail() -> None:
        raise FailingDisk("disk I/O error")

    monkeypatch.setattr(writer._transactions, "commit", fail)
    with pytest.raises(StoreError, match="disk I/O error"):
        await store.append("x1", 1, [log(2)])
    monkeypatch.undo()
    for _ in range(2):
        with pytest.raises(StoreError) as refused:
            await store.append("x1", 1, [log(2)])
        assert refused.value.code == "store-read-only"
    assert [e.seq for e in await store.events("x1")] == [1]
    assert isinstance(store.stats.fatal_error, FailingDisk)


async def test_writes_queued_behind_a_failed_commit_are_rejected(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create_execution(record("x1"), [])
    await store.create_execution(record("x2"), [])
    writer = store._writer
    assert writer is not None
    entered, gate = threading.Event(), threading.Event()

    def fail() -> None:
        entered.set()
        gate.wait(60)
        raise FailingDisk("disk I/O error")

    monkeypatch.setattr(writer._transactions, "commit", fail)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(swallowed(store.append("x1", 1, [log(1)])))
        await asyncio.to_thread(entered.wait, 60)
        second = group.create_task(swallowed(store.append("x2", 1, [log(1, "x2")])))
        await asyncio.sleep(0)
        gate.set()
    assert (first.result(), second.result()) == ("store-failed", "store-read-only")


async def test_disk_failure_while_handling_errors_is_detected(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create_execution(record("x1"), [])
    writer = store._writer
    assert writer is not None

    def fail() -> None:
        raise FailingDisk("disk I/O error")

    monkeypatch.setattr(writer._transactions, "commit", fail)
    results = [
        await swallowed(store.append("x1", 1, [log(7)])),
        await swallowed(store.append("x1", 1, [log(1)])),
    ]
    assert results == ["seq-gap", "store-read-only"]


async def test_foreign_lock_is_reported_as_busy(store: SqliteStore, tmp_path: Path) -> None:
    await store.create_execution(record("x1"), [])
    store._writer._transactions._raw.execute("PRAGMA busy_timeout = 1")  # type: ignore[union-attr]
    other = sqlite3.connect(tmp_path / "planwave.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert await swallowed(store.append("x1", 1, [log(1)])) == "store-busy"
    other.execute("ROLLBACK")
    other.close()
    await store.append("x1", 1, [log(1)])


async def test_full_disk_rejects_and_recovers(store: SqliteStore) -> None:
    await store.create_execution(record(), [log(1)])
    raw = store._writer._transactions._raw  # type: ignore[union-attr]
    pages = raw.execute("PRAGMA page_count").fetchone()[0]
    raw.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError) as refused:
        await store.append("x1", 1, [log(2, message="x" * 100_000)])
    assert refused.value.code == "disk-full"
    raw.execute("PRAGMA max_page_count = 1000000")
    await store.append("x1", 1, [log(2, message="x" * 100_000)])
    assert [e.seq for e in await store.events("x1")] == [1, 2]


class Refusal(sqlite3.OperationalError):
    def __init__(self, code: int) -> None:
        super().__init__("not now")
        self.sqlite_errorcode = code


def refuse(store: SqliteStore, patched: pytest.MonkeyPatch, code: int) -> None:
    """Have every commit fail."""

    def fail() -> None:
        raise Refusal(code)

    patched.setattr(store._writer._transactions, "commit", fail)


@pytest.mark.parametrize(
    ("code", "status"),
    [(sqlite3.SQLITE_FULL, "disk-full"), (sqlite3.SQLITE_BUSY, "store-busy")],
)
async def test_transient_error_is_reported_until_a_write_succeeds(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, code: int, status: str
) -> None:
    await store.create_execution(record(), [])
    with monkeypatch.context() as patched:
        patched.setattr("planwave.storage.sql.writer._PROBE_INTERVAL_S", 60)
        refuse(store, patched, code)
        assert await swallowed(store.append("x1", 1, [log(1)])) == status
        assert (store.stats.status, store.stats.fatal_error) == (status, None)
    await store.append("x1", 1, [log(1)])
    assert store.stats == store.stats._replace(transient_error=None)
    assert store.stats.status == "ok"


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY])
async def test_transient_error_ends_without_writes(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr("planwave.storage.sql.writer._PROBE_INTERVAL_S", 0.01)
    await store.create_execution(record(), [])
    before = store.stats.writes
    with monkeypatch.context() as patched:
        refuse(store, patched, code)
        assert await swallowed(store.append("x1", 1, [log(1)])) is not None
        assert store.stats.transient_error is not None
    await until(lambda: store.stats.status == "ok")
    assert store.stats.writes == before, "to look is no write"
    assert await store.events("x1") == []


async def test_nearly_full_disk_stays_full(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planwave.storage.sql.writer._PROBE_INTERVAL_S", 0.01)
    looked: list[Path] = []

    def hardly_any(directory: Path) -> int:
        looked.append(directory)
        return 4096

    await store.create_execution(record(), [])
    with monkeypatch.context() as patched:
        patched.setattr("planwave.storage.sqlite.transactions.free_bytes", hardly_any)
        with monkeypatch.context() as failing:
            refuse(store, failing, sqlite3.SQLITE_FULL)
            assert await swallowed(store.append("x1", 1, [log(1)])) == "disk-full"
        await until(lambda: len(looked) >= 3)
        assert store.stats.status == "disk-full"
    await until(lambda: store.stats.status == "ok")


async def test_disk_failure_during_probe_makes_store_read_only(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planwave.storage.sql.writer._PROBE_INTERVAL_S", 0.01)
    await store.create_execution(record(), [])
    with monkeypatch.context() as patched:
        refuse(store, patched, sqlite3.SQLITE_BUSY)
        assert await swallowed(store.append("x1", 1, [log(1)])) == "store-busy"
        refuse(store, patched, sqlite3.SQLITE_IOERR_FSYNC)
        await until(lambda: store.stats.status == "store-read-only")
    assert store.stats.transient_error is None
    assert await swallowed(store.append("x1", 1, [log(1)])) == "store-read-only"


async def test_artifact_without_room_is_a_transient_error(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.create_execution(record(), [])

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("planwave.storage.sql.writer._PROBE_INTERVAL_S", 60)
        patched.setattr("planwave.storage.sqlite.transactions.write_artifact", full)
        assert await swallowed(store.append("x1", 1, [result(1, "x" * 2_000)])) == "disk-full"
        assert store.stats.status == "disk-full"
    await store.append("x1", 1, [result(1, "x" * 2_000)])
    assert store.stats.status == "ok"


async def test_invalid_unicode_round_trips(store: SqliteStore) -> None:
    odd = log(1)._replace(path="\ud800", at="\x00")
    await store.create_execution(record("x1"), [odd])
    assert await store.events("x1") == [odd]


async def test_invalid_record_fails_alone(store: SqliteStore) -> None:
    odd = ExecutionRecord("x2", None, 7, "g", "starting", AT)  # type: ignore[arg-type]
    assert await swallowed(store.create_execution(odd, [])) == "not-storable"
    await store.create_execution(record("x2"), [log(1, "x2")])
    assert len(await store.events("x2")) == 1


async def swallowed(append: Any) -> str | None:
    try:
        await append
    except StoreError as error:
        return error.code
    return None


async def test_large_results_are_stored_as_artifacts(store: SqliteStore, tmp_path: Path) -> None:
    large = "ü" * 1_000
    sent = [result(1, large), result(2, "small"), result(3, large)]
    await store.create_execution(record(), sent[:1])
    await store.append("x1", 1, sent[1:])
    assert await store.events("x1") == sent
    (stored,) = (tmp_path / "artifacts").iterdir()
    assert json.loads(stored.read_text()) == large
    rows = sqlite3.connect(tmp_path / "planwave.db")
    ((_, _, data, *_),) = json.loads(rows.execute("SELECT events FROM batches").fetchone()[0])
    rows.close()
    assert data["outputs"] == {
        "output": {"type": "text", "artifact": stored.stem, "bytes": 2_002},
        "other": {"type": "json", "value": 1},
    }


@pytest.mark.parametrize(
    ("damage", "kind", "code"),
    [
        (lambda kept: kept.unlink(), Conflict, "unreadable"),
        (lambda kept: kept.write_text('"forged"'), Conflict, "unreadable"),
        (lambda kept: (kept.unlink(), kept.mkdir()), StoreError, "store-unreadable"),
    ],
)
async def test_damaged_artifact_is_detected(
    store: SqliteStore,
    tmp_path: Path,
    damage: Callable[[Path], Any],
    kind: type[PlanwaveError],
    code: str,
) -> None:
    await store.create_execution(record(), [result(1, "x" * 2_000)])
    (kept,) = (tmp_path / "artifacts").iterdir()
    damage(kept)
    with pytest.raises(kind) as refused:
        await store.events("x1")
    assert refused.value.code == code


async def test_execution_deleted_during_read_has_no_events(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = ExecutionRecord("x1", None, "t", "g", "completed", AT)
    await store.create_execution(ended, [result(1, "x" * 2_000)])
    loop = asyncio.get_running_loop()

    def deleted_before(event: Event, read: ReadArtifact) -> Event:
        asyncio.run_coroutine_threadsafe(store.delete_execution("x1"), loop).result()
        return load_artifacts(event, read)

    monkeypatch.setattr("planwave.storage.event_codec.load_artifacts", deleted_before)
    assert await store.events("x1") == []


async def test_result_resembling_an_artifact_is_kept(store: SqliteStore) -> None:
    sent = result(1, {"artifact": "../../etc/passwd", "type": "x"})
    await store.create_execution(record(), [sent])
    assert await store.events("x1") == [sent]


async def test_failed_artifact_write_fails_alone(store: SqliteStore, tmp_path: Path) -> None:
    await store.create_execution(record("x1"), [])
    await store.create_execution(record("x2"), [])
    (tmp_path / "artifacts").write_text("a file where the folder should be")
    async with asyncio.TaskGroup() as group:
        good = group.create_task(store.append("x1", 1, [log(1)]))
        bad = group.create_task(swallowed(store.append("x2", 1, [result(1, "x" * 2_000, "x2")])))
    assert (good.result(), bad.result()) == (None, "store-failed")
    assert [len(await store.events(name)) for name in ("x1", "x2")] == [1, 0]


@pytest.mark.parametrize(
    ("error", "after"),
    [
        (OSError(errno.EIO, "disk I/O error"), "store-read-only"),
        (OSError(errno.EDQUOT, "quota exceeded"), None),
        (MemoryError(), None),
    ],
)
async def test_any_artifact_error_is_reported_to_its_writer(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, error: Exception, after: str | None
) -> None:
    await store.create_execution(record(), [])

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr("planwave.storage.sqlite.transactions.write_artifact", fail)
    async with asyncio.timeout(60):
        assert await swallowed(store.append("x1", 1, [result(1, "x" * 2_000)])) is not None
        monkeypatch.undo()
        assert await swallowed(store.append("x1", 1, [log(1)])) == after


async def test_reader_sees_writes_of_another_store(store: SqliteStore, tmp_path: Path) -> None:
    await store.create_execution(record(), [log(1)])
    reader = SqliteStore.open(tmp_path, read_only=True)
    assert len(await reader.events("x1")) == 1
    await store.append("x1", 1, [log(2)])
    assert len(await reader.events("x1")) == 2
    with pytest.raises(StoreError) as refused:
        await reader.append("x1", 1, [log(3)])
    assert refused.value.code == "store-read-only"
    await reader.close()


async def test_reader_needs_no_write_access(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = SqliteStore.open(tmp_path)
    await writer.create_execution(record(), [log(1)])
    await writer.close()
    connected = connection.reading_connection

    def on_a_full_disk(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
        if not immutable:
            raise sqlite3.OperationalError("disk I/O error")
        return connected(path, immutable=immutable)

    monkeypatch.setattr(connection, "reading_connection", on_a_full_disk)
    log_file = tmp_path / "planwave.db-wal"
    log_file.touch()  # left by SQLite's own try
    reader = SqliteStore.open(tmp_path, read_only=True)
    assert len(await reader.events("x1")) == 1
    await reader.close()
    log_file.write_bytes(b"what a reader must not overlook")
    with pytest.raises(StoreError) as refused:
        SqliteStore.open(tmp_path, read_only=True)
    assert refused.value.code == "store-unusable"


async def test_reader_of_missing_directory_is_empty(tmp_path: Path) -> None:
    reader = SqliteStore.open(tmp_path / "nothing", read_only=True)
    assert await reader.executions() == []
    assert await reader.plans() == []
    assert await reader.execution("x1") is None
    await reader.close()
    assert os.listdir(tmp_path) == []


async def test_second_writer_is_rejected_with_owner(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"pid {os.getpid()}") as refused:
        SqliteStore.open(tmp_path)
    assert refused.value.code == "storage-locked"
    assert (tmp_path / "planwave.lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("read_only", [False, True])
def test_invalid_database_is_rejected(tmp_path: Path, read_only: bool) -> None:
    (tmp_path / "planwave.db").write_text("no database at all, but long enough to look at" * 50)
    with pytest.raises(StoreError, match=r"planwave\.db") as refused:
        SqliteStore.open(tmp_path, read_only)
    assert refused.value.code == "store-unusable"
    assert len(refused.value.message.splitlines()) == 1


def test_unusable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    with pytest.raises(StoreError, match="file") as refused:
        SqliteStore.open(tmp_path / "file")
    assert refused.value.code == "store-unusable"
    assert "permissions" in (refused.value.hint or "")


def test_full_disk_at_open_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    with pytest.raises(StoreError, match="No space") as refused:
        SqliteStore.open(tmp_path)
    assert (refused.value.hint or "").startswith("free some space")


async def test_temporary_files_are_removed_at_open(tmp_path: Path) -> None:
    (tmp_path / ".x.json.1.tmp").write_text("half")
    await SqliteStore.open(tmp_path).close()
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


async def test_unremovable_temporary_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".x.json.1.tmp").mkdir()
    with pytest.raises(StoreError, match=r"\.x\.json\.1\.tmp") as refused:
        SqliteStore.open(tmp_path)
    assert refused.value.code == "store-unusable"
    (tmp_path / ".x.json.1.tmp").rmdir()
    await SqliteStore.open(tmp_path).close()


async def test_store_can_be_closed_concurrently(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    await store.create_execution(record(), [])
    async with asyncio.TaskGroup() as group:
        append = group.create_task(store.append("x1", 1, [log(1)]))
        await asyncio.sleep(0)
        for _ in range(3):
            group.create_task(store.close())
    assert append.done()
    await SqliteStore.open(tmp_path).close()


async def test_write_during_close_is_rejected(
    store: SqliteStore,
) -> None:
    await store.create_execution(record(), [])
    async with asyncio.TaskGroup() as group:
        group.create_task(store.close())
        await asyncio.sleep(0)
        assert await swallowed(store.append("x1", 1, [log(1)])) == "store-closed"


async def test_cancelled_close_still_closes(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = SqliteStore.open(tmp_path)
    closing = asyncio.ensure_future(store.close())  # noqa: TID251 - cancelled below
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    await store.close()
    await SqliteStore.open(tmp_path).close()
    assert set(threading.enumerate()) <= before


async def test_closed_store_leaves_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = SqliteStore.open(tmp_path)
    await store.create_execution(record(), [log(1)])
    await store.events("x1")
    await store.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(StoreError):
        await store.events("x1")


def test_appends_of_a_finished_event_loop_are_stored(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)

    async def leave() -> None:
        await store.create_execution(record(), [])
        task = asyncio.ensure_future(store.append("x1", 1, [log(1)]))  # noqa: TID251 - left behind
        await asyncio.sleep(0)
        task.cancel()

    async def look() -> int:
        found = len(await store.events("x1"))
        await store.append("x1", 1, [log(2)])
        await store.close()
        return found

    asyncio.run(leave())
    assert asyncio.run(look()) in (0, 1)
    reader = SqliteStore.open(tmp_path, read_only=True)

    async def count() -> list[int]:
        seqs = [e.seq for e in await reader.events("x1")]
        await reader.close()
        return seqs

    assert asyncio.run(count()) == [1, 2]


async def test_lock_has_published_address_until_closed(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path)
    store.publish_address("http://127.0.0.1:8000", "secret")
    assert read_owner(tmp_path) == {
        "pid": os.getpid(),
        "url": "http://127.0.0.1:8000",
        "token": "secret",
    }
    assert (tmp_path / "planwave.lock").stat().st_mode & 0o777 == 0o600
    await store.close()
    store.publish_address("http://127.0.0.1:8001", None)
    assert read_owner(tmp_path) is None
