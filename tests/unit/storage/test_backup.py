from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import tarfile
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import InputError, NotFound, SchemaTooNew, StoreError
from planwave.events import Event
from planwave.ids import new_id
from planwave.storage import backup
from planwave.storage.backup import back_up
from planwave.storage.documents import build_document
from planwave.storage.links import LinkRecord
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.sqlite.store import SqliteStore
from tests.support.storage.documents import write_document

AT = "2026-01-01T00:00:00.000000+00:00"
LARGE = "ü" * 2_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    created = SqliteStore.open(tmp_path / "kept", artifact_bytes=1_000)
    yield created
    await created.close()


async def store_execution(store: SqliteStore, value: Any = LARGE, *, end: str = "completed") -> str:
    """Keep an execution with one result and, once it has paused or ended, its document."""
    name = new_id()
    outputs = {"output": {"type": "text", "value": value}}
    events = [
        Event(name, 1, AT, "execution.created", None, None, {"goal": "g"}),
        Event(name, 2, AT, "node.completed", "a", 1, {"outputs": outputs, "duration_s": 1}),
        Event(name, 3, AT, f"execution.{end}", None, None, {}),
    ]
    await store.create_execution(ExecutionRecord(name, "p", "t", "g", "starting", AT), events)
    record = await store.execution(name)
    assert record is not None
    if end != "started":
        await write_document(store._directory, name, build_document(events, record))
        await store.set_document_seqs({name: 3})
    return name


def unpacked(file: Path) -> Path:
    directory = file.parent / "restored"
    directory.mkdir()
    with tarfile.open(file) as tar:
        tar.extractall(directory, filter="data")
    return directory


async def test_backup_during_writes_restores_a_consistent_state(
    store: SqliteStore, tmp_path: Path
) -> None:
    await store.save_plan(PlanRecord("p", AT, "g", "t", "h", {"nodes": []}))
    flow = PlanRecord("f", AT, "", "t", "h", {"nodes": []}, name="n")
    await store.save_plan(flow)
    done = await store_execution(store)
    created = await asyncio.to_thread(back_up, tmp_path / "kept", tmp_path / "b.tar")
    later = await store_execution(store)
    assert (created.plans, created.flows, created.executions) == (1, 1, 1)
    assert (created.documents, created.artifacts) == (1, 1)
    assert (created.damaged, created.size) == ((), (tmp_path / "b.tar").stat().st_size)

    directory = unpacked(tmp_path / "b.tar")
    again = SqliteStore.open(directory)
    assert await again.executions() == [await store.execution(done)]
    assert await again.events(done) == await store.events(done)
    assert await again.plans(named=True) == [flow]
    assert await again.plan("p") == await store.plan("p")
    assert await again.execution(later) is None
    assert await again.lagging_documents() == []
    stored = tmp_path / "kept"
    for name in (f"{done}.json", *(f"artifacts/{a.name}" for a in stored.glob("artifacts/*"))):
        assert (directory / name).read_bytes() == (stored / name).read_bytes()
    await again.close()


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz"])
async def test_backup_is_one_private_file(store: SqliteStore, tmp_path: Path, name: str) -> None:
    await store_execution(store)
    (tmp_path / name).write_text("an older backup")
    back_up(tmp_path / "kept", tmp_path / name)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == sorted([name, "kept"])
    with tarfile.open(tmp_path / name) as tar:
        assert {entry.mode for entry in tar} == {0o600}
        assert tar.getnames()[-1] == "planwave.db"
        assert len(tar.getnames()) == 3


async def test_unfinished_documents_lag_after_restore(store: SqliteStore, tmp_path: Path) -> None:
    paused = await store_execution(store, end="paused")
    broken, linked, whole = (
        await store_execution(store),
        await store_execution(store),
        await store_execution(store),
    )
    stored = tmp_path / "kept"
    (stored / f"{broken}.json").write_text('{"execution_id": 7')
    (stored / f"{linked}.json").rename(tmp_path / "elsewhere.json")
    (stored / f"{linked}.json").symlink_to(tmp_path / "elsewhere.json")
    assert back_up(stored, tmp_path / "b.tar").documents == 1
    again = SqliteStore.open(unpacked(tmp_path / "b.tar"))
    assert await again.lagging_documents() == [paused, broken, linked]
    record = await again.execution(whole)
    assert record is not None
    assert record.document_seq == 3
    await again.close()


async def test_execution_deleted_during_backup_is_left_out(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_execution(store, "small")
    doomed = await store_execution(store)
    copy, reached, go = backup._copy_database, threading.Event(), threading.Event()

    def slowly(living: sqlite3.Connection, target: Path) -> None:
        copy(living, target)
        reached.set()
        assert go.wait(60)

    monkeypatch.setattr(backup, "_copy_database", slowly)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(asyncio.to_thread(back_up, tmp_path / "kept", tmp_path / "b.tar"))
        await asyncio.to_thread(reached.wait, 60)
        await store.delete_execution(doomed)
        go.set()
    created = task.result()
    assert (created.executions, created.artifacts, created.damaged) == (1, 0, ())


@pytest.mark.parametrize("damage", ["gone", "changed"])
async def test_damaged_artifact_is_reported(
    store: SqliteStore, tmp_path: Path, damage: str
) -> None:
    hurt = await store_execution(store)
    await store_execution(store, LARGE * 2)
    outputs = (await store.events(hurt))[1].data["outputs"]
    (path,) = (
        p for p in (tmp_path / "kept/artifacts").iterdir()
        if json.loads(p.read_text()) == outputs["output"]["value"]
    )  # fmt: skip
    path.unlink() if damage == "gone" else path.write_text('"other"')
    created = back_up(tmp_path / "kept", tmp_path / "b.tar")
    assert created.damaged == (path.stem,)
    assert (created.executions, created.artifacts) == (2, 1)


async def test_damaged_database_is_not_backed_up(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "kept")
    for _ in range(40):
        await store_execution(store, "x" * 500)
    await store.close()
    database = tmp_path / "kept" / "planwave.db"
    content = bytearray(database.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xff" * 4096
    database.write_bytes(content)
    (tmp_path / "b.tar").write_text("the last good one")
    with pytest.raises(StoreError) as refused:
        back_up(tmp_path / "kept", tmp_path / "b.tar")
    assert refused.value.code in ("store-damaged", "backup-failed")
    assert (tmp_path / "b.tar").read_text() == "the last good one"
    assert sorted(os.listdir(tmp_path)) == ["b.tar", "kept"]


async def test_unreadable_backup_is_removed(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_execution(store)
    leave = backup._BackupArchive.__exit__

    def flip(package: backup._BackupArchive, *error: object) -> None:
        leave(package, *error)
        content = package._path.read_bytes()
        package._path.write_bytes(content.replace(b"\xc3\xbc", b"\xc3\xa4", 1))

    monkeypatch.setattr(backup._BackupArchive, "__exit__", flip)
    with pytest.raises(StoreError, match="read back") as refused:
        back_up(tmp_path / "kept", tmp_path / "b.tar")
    assert refused.value.code == "backup-failed"
    assert os.listdir(tmp_path) == ["kept"]


async def test_full_disk_leaves_no_partial_backup(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_execution(store)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup, "_pack_documents", full)
    with pytest.raises(StoreError, match="No space left") as refused:
        back_up(tmp_path / "kept", tmp_path / "b.tar")
    assert refused.value.code == "backup-failed"
    assert os.listdir(tmp_path) == ["kept"]


def test_missing_storage_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        back_up(tmp_path, tmp_path / "b.tar")


@pytest.mark.parametrize("name", ["", "no/such/b.tar"])
async def test_invalid_backup_path_is_rejected(
    store: SqliteStore, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match="cannot be a backup"):
        back_up(tmp_path / "kept", tmp_path / name)


@pytest.mark.parametrize("name", ["planwave.db", "planwave.lock", "b.tar", "artifacts/b.tar"])
@pytest.mark.parametrize("way", ["kept", "link", "kept/../kept"])
async def test_backup_inside_storage_is_rejected(
    store: SqliteStore, tmp_path: Path, way: str, name: str
) -> None:
    done = await store_execution(store)
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    with pytest.raises(InputError, match="within the directory to back up"):
        back_up(tmp_path / "kept", tmp_path / way / name)
    assert (tmp_path / "kept/planwave.db").read_bytes().startswith(b"SQLite format 3")
    assert await store.execution(done) is not None


async def test_newer_database_is_not_changed(store: SqliteStore, tmp_path: Path) -> None:
    raw = sqlite3.connect(tmp_path / "kept/planwave.db")
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(SchemaTooNew):
        back_up(tmp_path / "kept", tmp_path / "b.tar")
    assert os.listdir(tmp_path) == ["kept"]


KEEP = """
import asyncio, os, pathlib, sys
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.store import SqliteStore

async def main():
    store = SqliteStore.open(pathlib.Path(sys.argv[1]))
    record = ExecutionRecord("x1", None, "t", "g", "starting", "2026-01-01")
    await store.create_execution(record, [])
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


async def test_storage_of_killed_process_is_backed_up_with_its_log(tmp_path: Path) -> None:
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KEEP, str(tmp_path / "kept")
    )
    assert await killed.wait() == -9
    assert (tmp_path / "kept/planwave.db-wal").stat().st_size
    assert back_up(tmp_path / "kept", tmp_path / "b.tar").executions == 1


async def test_a_backup_has_no_links(store: SqliteStore, tmp_path: Path) -> None:
    """One that is revoked or used after the backup would open something again."""
    of = await store_execution(store)
    link = LinkRecord("l", "d", "result", of, AT, "2999-01-01T00:00:00.000000+00:00")
    await store.links.create(link)
    await asyncio.to_thread(back_up, tmp_path / "kept", tmp_path / "b.tar")
    assert await store.links.by_digest("d") == link
    async with SqliteStore.open(unpacked(tmp_path / "b.tar")) as restored:
        assert await restored.execution(of) is not None
        assert await restored.links.by_digest("d") is None


async def test_a_link_that_has_ended_stays_so_in_a_backup(
    store: SqliteStore, tmp_path: Path
) -> None:
    """A notification that waits would make it anew: its key is derived, and the same each time."""
    of = await store_execution(store)
    link = LinkRecord("l", "d", "request", of, AT, "2999-01-01T00:00:00.000000+00:00", "r1", "ops")
    await store.links.create(link)
    assert await store.links.end("l", "revoked")
    await asyncio.to_thread(back_up, tmp_path / "kept", tmp_path / "b.tar")
    async with SqliteStore.open(unpacked(tmp_path / "b.tar")) as restored:
        await restored.links.create(replace(link, link_id="m"))
        kept = await restored.links.by_digest("d")
        assert kept is not None
        assert (kept.link_id, kept.ended) == ("l", "revoked")
