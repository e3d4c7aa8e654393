"""Databases as every schema version wrote them; ``golden/write.py`` says how they came about.

No released planwave wrote version 2: ``v2.sql`` is ``v1.sql`` after the first step.
"""

from __future__ import annotations

import errno
import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import SchemaTooNew, StoreError
from planwave.events import Event
from planwave.providers.protocols import CallKey
from planwave.storage.backup import back_up
from planwave.storage.documents import DOCUMENT_VERSION, build_document
from planwave.storage.lock import DirectoryLock
from planwave.storage.records import AnsweredRequest
from planwave.storage.sqlite import connection, migrations
from planwave.storage.sqlite.connection import DATABASE_NAME
from planwave.storage.sqlite.migrations import SCHEMA_VERSION
from planwave.storage.sqlite.store import SqliteStore

GOLDEN = Path(__file__).parent / "golden"
VERSIONS = range(1, 13)
"""Versions with a golden database; 13 only adds columns and tables to version 12."""
OLDER = VERSIONS
CALL = CallKey("paid", "a", 1, 0, "hash")


def placed(directory: Path, version: int) -> Path:
    """Put a golden database into a directory, as if that planwave had just ended."""
    shutil.copytree(GOLDEN / "artifacts", directory / "artifacts")
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.executescript((GOLDEN / f"v{version}.sql").read_text("utf-8"))
    return directory


def read_by(version: int) -> dict[str, Any]:
    """Give what the planwave of that version read from it."""
    name = f"v{1 if version == 2 else version}.json"
    return json.loads((GOLDEN / name).read_text("utf-8"))


def dump(path: Path) -> tuple[int, list[str]]:
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("PRAGMA user_version").fetchone()[0], list(raw.iterdump())


def shape(path: Path) -> dict[str, Any]:
    """Give all columns, indexes and references of a database."""
    with closing(sqlite3.connect(path)) as raw:
        rows = raw.execute("SELECT name FROM sqlite_master WHERE type='table'")
        found: dict[str, Any] = {"version": raw.execute("PRAGMA user_version").fetchone()}
        for (table,) in rows.fetchall():
            found[table] = [
                raw.execute(f"PRAGMA {fact}({table})").fetchall()
                for fact in ("table_xinfo", "foreign_key_list")
            ]
            for _, index, is_unique, *_ in raw.execute(f"PRAGMA index_list({table})").fetchall():
                columns = raw.execute(f"PRAGMA index_xinfo({index})").fetchall()
                found[index] = (is_unique, columns)
    return found


def differs(written: Any, read: Any, where: str = "") -> list[str]:
    """Name what was written and is not read; there may be more fields and sentences by now."""
    if where == "/schema_version":  # documents are computed from the events
        written = DOCUMENT_VERSION
    if where == "/execution_logs":
        output = iter(read)
        return [
            f"{where}: {line!r} is gone, or elsewhere" for line in written if line not in output
        ]
    if isinstance(written, dict) and isinstance(read, dict):
        return [
            found
            for name, value in written.items()
            for found in differs(value, read.get(name, "missing"), f"{where}/{name}")
        ]
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        pairs = enumerate(zip(written, read, strict=True))
        return [found for n, (a, b) in pairs for found in differs(a, b, f"{where}/{n}")]
    return [] if written == read else [f"{where}: {written!r} is read as {read!r}"]


def as_written_now(document: dict[str, Any]) -> dict[str, Any]:
    """Give a document of version 1 as version 2: its nodes have the text of an error beside it."""
    if document["schema_version"] == 2:
        return document
    errors = [node["error"] for node in document["nodes"]]
    nodes = [
        {**node, "error": error and error["message"], "error_detail": error}
        for node, error in zip(document["nodes"], errors, strict=True)
    ]
    return {**document, "schema_version": 2, "nodes": nodes}


async def flows_of(store: SqliteStore) -> list[dict[str, Any]]:
    """Give all flows, with their versions."""
    found = [asdict(flow) for flow in await store.flows.page()]
    for flow in found:
        listed = await store.flows.versions(flow["plan_id"])
        versions = [await store.flows.version(flow["plan_id"], each.version) for each in listed]
        flow["versions"] = [asdict(each) for each in versions if each is not None]
    return found


async def revisions_of(store: SqliteStore) -> list[dict[str, Any]]:
    """Give the revisions of all plans before the current ones."""
    found: list[dict[str, Any]] = []
    for plan in await store.plans():
        for each in await store.revisions.page(plan.plan_id):
            revision = await store.revisions.get(plan.plan_id, each.revision)
            assert revision is not None
            found.append(asdict(revision))
    return found


async def triggers_of(store: SqliteStore) -> list[dict[str, Any]]:
    """Give all triggers, with their deliveries."""
    found = [asdict(each) for each in await store.triggers.page()]
    for each in found:
        own = await store.triggers.deliveries([each["trigger_id"]])
        each["deliveries"] = [asdict(d) for d in own.get(each["trigger_id"], ())]
    return found


async def notifications_of(store: SqliteStore) -> list[dict[str, Any]]:
    """Give all notifications, with their targets."""
    targets = {each.target_id: asdict(each) for each in await store.notifications.targets()}
    found = [asdict(each) for each in await store.notifications.page()]
    return json.loads(json.dumps([{**each, "to": targets[each["target_id"]]} for each in found]))


def notifications_in(written: dict[str, Any]) -> list[dict[str, Any]]:
    targets = {each["target_id"]: each for each in written.get("notification_targets", [])}
    return [{**each, "to": targets[each["target_id"]]} for each in written.get("notifications", [])]


async def chats_of(store: SqliteStore) -> list[dict[str, Any]]:
    """Give all chats, with their messages."""
    found = [asdict(each) for each in await store.chats.page()]
    for each in found:
        own = await store.chats.messages(each["chat_id"])
        each["messages"] = [asdict(message) for message in own]
    return found


def test_every_schema_version_has_its_golden_database() -> None:
    assert {path.name for path in GOLDEN.glob("v*.sql")} == {f"v{v}.sql" for v in VERSIONS}


@pytest.mark.parametrize("read_only", [False, True], ids=["writing", "reading"])
@pytest.mark.parametrize("version", VERSIONS)
async def test_f30_data_of_every_version_is_read(
    tmp_path: Path, version: int, read_only: bool
) -> None:
    store = SqliteStore.open(placed(tmp_path, version), read_only, artifact_bytes=1_000)
    written = read_by(version)
    plans = [asdict(plan) for plan in await store.plans()]
    executions = await store.executions()
    assert differs(written["plans"], plans) == []
    assert differs(written["executions"], [asdict(record) for record in executions]) == []
    assert {record.status for record in executions} >= {"completed", "failed", "executing"}
    flows = json.loads(json.dumps(await flows_of(store)))
    assert differs(written.get("flows", []), flows) == []
    assert differs(written.get("revisions", []), await revisions_of(store)) == []
    assert differs(written.get("triggers", []), await triggers_of(store)) == []
    assert differs(notifications_in(written), await notifications_of(store)) == []
    tokens = json.loads(json.dumps([asdict(each) for each in await store.access_tokens.all()]))
    assert differs(written.get("access_tokens", []), tokens) == []
    assert differs(written.get("chats", []), await chats_of(store)) == []
    turns = [asdict(each) for each in await store.chats.turns("k", limit=9)]
    assert differs(written.get("turns", []), turns) == []
    for record in executions:
        events = await store.events(record.execution_id)
        received = [event._asdict() for event in events]
        assert received == written["events"][record.execution_id]
        document = json.loads(json.dumps(build_document(events, record)))
        before = written["documents"][record.execution_id]
        assert differs(as_written_now(before), document) == []
    assert await store.recorded(CALL) == written["call"]
    assert [x.execution_id for x in await store.executions(text="ÜBERSICHT")] == [
        x["execution_id"] for x in written["executions"] if x["user_prompt"] == "Übersicht"
    ]
    await store.close()


@pytest.mark.parametrize("version", VERSIONS)
async def test_f30_database_of_every_version_is_continued(tmp_path: Path, version: int) -> None:
    store = SqliteStore.open(placed(tmp_path, version), artifact_bytes=1_000)
    found = await store.open_executions()
    names = {x.user_prompt if x.plan_id else x.execution_id: x for x in found}
    assert set(names) == {"it stands", "paused"} | ({"queued"} if version >= 4 else set())
    standing = names["it stands"]
    epoch = await store.claim(standing.execution_id, queued=True)
    last = standing.last_seq + 1
    at, kind = standing.created_at, "execution.cancelled"
    end = Event(standing.execution_id, last, at, kind, None, None, {})
    await store.append(standing.execution_id, epoch, [end])
    assert set(await store.lagging_documents()) == {standing.execution_id, "paused"}
    for record in await store.executions():
        if record.status in ("completed", "failed", "cancelled"):
            await store.delete_execution(record.execution_id)
    assert not list((tmp_path / "artifacts").glob("94bfe6f3*"))  # of the one that completed
    await store.close()


@pytest.mark.parametrize("version", OLDER)
async def test_f30_migrated_schema_equals_new_schema(tmp_path: Path, version: int) -> None:
    (tmp_path / "old").mkdir()
    await SqliteStore.open(placed(tmp_path / "old", version)).close()
    await SqliteStore.open(tmp_path / "new").close()
    assert shape(tmp_path / "old" / DATABASE_NAME) == shape(tmp_path / "new" / DATABASE_NAME)


async def test_answers_of_version_6_are_listed_after_the_migration(tmp_path: Path) -> None:
    store = SqliteStore.open(placed(tmp_path, 6))
    record = await store.execution("paused")
    assert record is not None
    epoch = await store.claim("paused")
    seq = record.last_seq + 1
    answer = {"request_id": "r4", "answer": "both"}
    at, path = "2026-01-02T03:04:07.000000Z", "first"
    await store.append(
        "paused", epoch, [Event("paused", seq, at, "node.answered", path, 1, answer)]
    )
    listed = await store.answered_requests()
    assert listed == [AnsweredRequest(at, "paused", seq, 4)]
    await store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as raw:
        raw.execute("UPDATE batches SET events = '[[1, \"node.answered\"' WHERE id = 1")
        for table in (
            "answered_requests", "deliveries", "triggers", "notification_targets", "notifications",
            "chat_messages", "chat_turns", "chats", "access_tokens",
        ):  # fmt: skip
            raw.execute(f"DROP TABLE {table}")
        raw.execute("PRAGMA user_version = 6")
        raw.commit()
    store = SqliteStore.open(tmp_path)
    assert await store.answered_requests() == listed
    await store.close()


@pytest.mark.parametrize("read_only", [False, True], ids=["writing", "reading"])
@pytest.mark.parametrize("version", OLDER)
async def test_f30_older_database_is_copied_before_migration(
    tmp_path: Path, version: int, read_only: bool
) -> None:
    before = dump(placed(tmp_path, version) / DATABASE_NAME)
    await SqliteStore.open(tmp_path, read_only).close()
    (copy,) = (tmp_path / "backups").iterdir()
    assert copy.name.startswith(f"planwave-v{version}-")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert dump(copy) == before
    await SqliteStore.open(tmp_path).close()
    assert list((tmp_path / "backups").iterdir()) == [copy], "the second start changes nothing"


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION])
async def test_current_database_is_not_copied(tmp_path: Path, version: int) -> None:
    if version:
        await SqliteStore.open(tmp_path).close()
    await SqliteStore.open(tmp_path).close()
    assert not (tmp_path / "backups").exists()


def _fails(*_: object) -> None:
    raise sqlite3.OperationalError("the step broke")


@pytest.mark.parametrize("version", OLDER)
async def test_f30_failed_migration_leaves_database_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    before = dump(placed(tmp_path, version) / DATABASE_NAME)
    steps: Sequence[Callable[..., None]] = (*migrations.MIGRATIONS[:-1], _fails)
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "MIGRATIONS", steps)
        with pytest.raises(StoreError, match="the step broke") as refused:
            SqliteStore.open(tmp_path)
    assert refused.value.code == "store-unusable"
    assert dump(tmp_path / DATABASE_NAME) == before
    await SqliteStore.open(tmp_path).close()  # the failure left neither lock nor transaction


@pytest.mark.parametrize("fails", ["fsync", "sync_directory"])
async def test_migration_without_room_for_the_copy_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    before = dump(placed(tmp_path, 1) / DATABASE_NAME)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(connection.os if fails == "fsync" else connection, fails, full)
        with pytest.raises(StoreError, match="No space") as refused:
            SqliteStore.open(tmp_path)
    assert (refused.value.hint or "").startswith("free some space")
    assert dump(tmp_path / DATABASE_NAME) == before
    assert not list((tmp_path / "backups").glob(".*"))
    await SqliteStore.open(tmp_path).close()


async def test_partial_copy_is_removed_at_start(tmp_path: Path) -> None:
    (placed(tmp_path, 1) / "backups").mkdir()
    (tmp_path / "backups" / ".planwave-v1-now.db.tmp").write_text("half")
    await SqliteStore.open(tmp_path).close()
    assert [path.name[:11] for path in (tmp_path / "backups").iterdir()] == ["planwave-v1"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_f30_backup_of_older_database_has_current_schema(
    tmp_path: Path, version: int
) -> None:
    (tmp_path / "kept").mkdir()
    before = dump(placed(tmp_path / "kept", version) / DATABASE_NAME)
    created = back_up(tmp_path / "kept", tmp_path / "b.tar")
    assert (created.executions, created.plans, created.damaged) == (
        len(read_by(version)["executions"]),
        3,
        (),
    )
    assert dump(tmp_path / "kept" / DATABASE_NAME) == before
    shutil.unpack_archive(tmp_path / "b.tar", tmp_path / "again")
    assert dump(tmp_path / "again" / DATABASE_NAME)[0] == SCHEMA_VERSION


@pytest.mark.parametrize("read_only", [False, True], ids=["writing", "reading"])
async def test_f30_newer_database_is_rejected_unchanged(tmp_path: Path, read_only: bool) -> None:
    await SqliteStore.open(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as raw:
        raw.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = dump(tmp_path / DATABASE_NAME)
    with pytest.raises(SchemaTooNew, match=f"schema {SCHEMA_VERSION + 1}"):
        SqliteStore.open(tmp_path, read_only)
    assert dump(tmp_path / DATABASE_NAME) == before
    assert not (tmp_path / "backups").exists()
    DirectoryLock(tmp_path).release()  # the refusal let the lock go
