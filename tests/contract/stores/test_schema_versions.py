"""What was stored is read and continued; databases of other schema versions and other builds.

``golden/write.py`` says how the golden database came about. Version 2 is made up.
"""

from __future__ import annotations

import errno
import json
import shutil
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    create_mock_engine,
    text,
)

from planwave.errors import InputError, PlanwaveError, SchemaTooNew, StoreError
from planwave.events import Event
from planwave.storage.backup import back_up
from planwave.storage.lock import DirectoryLock
from planwave.storage.sql import schema
from planwave.storage.sqlite import connection, migrations
from planwave.storage.sqlite.connection import DATABASE_NAME, engine_of
from planwave.storage.sqlite.migrations import SCHEMA_VERSION, Migration
from planwave.storage.sqlite.store import SqliteStore
from tests.contract.stores.golden.write import FOLDER, read

OF_COMPLETED = "94bfe6f3*"
"""The large value of the execution that completed."""


def placed(directory: Path) -> Path:
    """Put the golden database into a directory, as if its planwave had just ended."""
    shutil.copytree(FOLDER / "artifacts", directory / "artifacts")
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.executescript((FOLDER / "stored.sql").read_text("utf-8"))
    return directory


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
        found["hash"] = raw.execute("SELECT hash FROM schema_hash").fetchall()
    return found


def files(directory: Path) -> dict[str, bytes]:
    """Give a database and its log byte for byte; a reader makes an empty log where there is none."""
    names = (DATABASE_NAME, f"{DATABASE_NAME}-wal")
    paths = [directory / name for name in names]
    return {path.name: path.read_bytes() for path in paths if path.exists() and path.stat().st_size}


@pytest.mark.parametrize("read_only", [False, True], ids=["writing", "reading"])
async def test_stored_data_is_read(tmp_path: Path, read_only: bool) -> None:
    store = SqliteStore.open(placed(tmp_path), read_only)
    received = await read(store)
    assert received == json.loads((FOLDER / "stored.json").read_text("utf-8"))
    assert all(received.values()), "there is a record of every kind"
    found = [x.user_prompt for x in await store.executions(text="ÜBERSICHT")]
    assert found == ["Übersicht"]
    await store.close()


async def test_stored_executions_are_continued(tmp_path: Path) -> None:
    store = SqliteStore.open(placed(tmp_path))
    found = await store.open_executions()
    names = {x.user_prompt if x.plan_id else x.execution_id: x for x in found}
    assert set(names) == {"it stands", "paused", "queued"}
    standing = names["it stands"]
    epoch = await store.claim(standing.execution_id, queued=True)
    last = standing.last_seq + 1
    at, kind = standing.created_at, "execution.cancelled"
    end = Event(standing.execution_id, last, at, kind, None, None, {})
    await store.append(standing.execution_id, epoch, [end])
    assert set(await store.lagging_documents()) == {standing.execution_id, "paused"}
    assert list((tmp_path / "artifacts").glob(OF_COMPLETED))
    for record in await store.executions():
        if record.status in ("completed", "failed", "cancelled"):
            await store.delete_execution(record.execution_id)
    assert not list((tmp_path / "artifacts").glob(OF_COMPLETED))
    await store.close()


def made_up(at: MetaData, sql: str = "") -> str:
    """Give the hash of a database with these tables, after some SQL."""
    with closing(sqlite3.connect(":memory:")) as raw, engine_of(raw).connect() as made:
        raw.executescript(";".join([*statements_of(at), sql]))
        return schema.hash_of(made)


@cache
def statements_of(metadata: MetaData) -> list[str]:
    """Give the SQL that makes tables and their indexes."""
    written: list[str] = []

    def note(statement: Any, *_: Any) -> None:
        written.append(str(statement.compile(dialect=engine.dialect)))

    engine = create_mock_engine("sqlite://", note)
    metadata.create_all(engine, checkfirst=False)
    return written


def tables(*more: Any, where: str = "b > 0", default: str = "0") -> MetaData:
    """Give the tables of a small schema."""
    metadata = MetaData()
    Table(
        "t", metadata, Column("a", Text, primary_key=True),
        Column("b", Integer, nullable=False, server_default=text(default)),
        Index("i", "b", sqlite_where=text(where)), *more,
    )  # fmt: skip
    return metadata


def test_stated_hash_is_that_of_the_tables() -> None:
    assert made_up(schema.metadata) == schema.SCHEMA_HASH


def test_hash_changes_with_every_table_column_and_index() -> None:
    """Each part of the schema counts: taken away one by one, no two hashes are alike."""
    parts = [(table.name, "table") for table in schema.metadata.sorted_tables]
    for table in schema.metadata.sorted_tables:
        parts += [(index.name, "index") for index in table.indexes]
    removed = [f"PRAGMA foreign_keys=OFF; DROP {kind} {name};" for name, kind in parts]
    for table in schema.metadata.sorted_tables:
        removed += [
            f"ALTER TABLE {table.name} RENAME COLUMN {column.name} TO other"
            for column in table.columns
        ]
    hashes = [made_up(schema.metadata, sql) for sql in ("", *removed)]
    assert len(set(hashes)) == len(hashes)


def test_hash_changes_with_the_kind_of_a_column_or_index() -> None:
    more = Column("c", Text)
    kinds = [
        tables(), tables(where="b > 1"), tables(default="1"), tables(default="' a'"),
        tables(default="'a'"), tables(more), tables(Column("c", Text, nullable=False)),
        tables(Column("c", Integer)), tables(Column("c", Text, unique=True)),
    ]  # fmt: skip
    assert len({made_up(each) for each in kinds}) == len(kinds)


def test_hash_is_the_same_with_other_white_space_and_comments() -> None:
    plain = "CREATE TABLE t (a TEXT NOT NULL, b TEXT DEFAULT '-- x'); CREATE INDEX i ON t (a, b);"
    drawn = (
        "CREATE INDEX i -- by both\n ON t(a,b); "
        "CREATE TABLE t(a  TEXT /* the\nname */ NOT NULL,\n\tb TEXT DEFAULT '-- x') ;"
    )
    reordered = ";".join(reversed(drawn.split(";")[:2]))
    assert made_up(MetaData(), plain) == made_up(MetaData(), reordered)


ALTERATION = (
    "ALTER TABLE plans ADD COLUMN rank INTEGER DEFAULT 7 NOT NULL",
    "CREATE INDEX plans_by_rank ON plans (rank)",
)


def alter(connection: Connection) -> None:
    for statement in ALTERATION:
        connection.exec_driver_sql(statement)


def fail(connection: Connection) -> None:
    alter(connection)
    raise sqlite3.OperationalError("the step broke")


@pytest.fixture
def other_build(monkeypatch: pytest.MonkeyPatch) -> str:
    """Give this process a column and an index more, in the same version; give the hash."""
    changed = MetaData()
    for table in schema.metadata.sorted_tables:
        table.to_metadata(changed)
    column = Column("rank", Integer, nullable=False, server_default=text("7"))
    changed.tables["plans"].append_column(column)
    Index("plans_by_rank", column)
    monkeypatch.setattr(schema, "metadata", changed)
    schema_hash = made_up(changed)
    for module in (schema, migrations):
        monkeypatch.setattr(module, "SCHEMA_HASH", schema_hash)
    return schema_hash


@pytest.fixture
def version_2(other_build: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the other tables version 2, with a step from the present ones."""
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", 2)
    set_step(monkeypatch)


def set_step(
    monkeypatch: pytest.MonkeyPatch, change: Any = alter, before: str = schema.SCHEMA_HASH
) -> None:
    monkeypatch.setattr(migrations, "MIGRATIONS", (Migration(before, change),))


async def make_database(directory: Path, *statements: str) -> None:
    """Make a database of this planwave, then change it."""
    await SqliteStore.open(directory).close()
    with closing(sqlite3.connect(directory / DATABASE_NAME)) as raw:
        for statement in statements:
            raw.execute(statement)
        raw.commit()


def refused(directory: Path, *, read_only: bool) -> PlanwaveError:
    """Open a store, which is refused and leaves the files of the database byte for byte as they were."""
    before = files(directory)
    with pytest.raises(StoreError) as caught:
        SqliteStore.open(directory, read_only)
    assert files(directory) == before
    assert not (directory / "backups").exists()
    DirectoryLock(directory).release()  # the refusal let the lock go
    return caught.value


READING = pytest.mark.parametrize("read_only", [False, True], ids=["writing", "reading"])
FOREIGN = [
    "UPDATE schema_hash SET hash = 'other'",
    "DELETE FROM schema_hash",
    "DROP TABLE schema_hash",
    "PRAGMA user_version = 0",
]
"""What makes a database of this planwave one of another build, or of none."""


@READING
@pytest.mark.parametrize("statement", FOREIGN)
async def test_database_of_another_build_is_refused_unchanged(
    tmp_path: Path, read_only: bool, statement: str
) -> None:
    await make_database(tmp_path, statement)
    error = refused(tmp_path, read_only=read_only)
    assert error.code == "storage-of-another-build"
    assert "empty directory" in (error.hint or "")


@READING
@pytest.mark.parametrize("version", [1, 2, 12, 13])
async def test_database_of_a_numbered_version_before_the_release_is_refused(
    tmp_path: Path, read_only: bool, version: int
) -> None:
    changes = ("DROP TABLE schema_hash", f"PRAGMA user_version = {version}")
    await make_database(tmp_path, *changes)
    assert refused(tmp_path, read_only=read_only).code == "storage-of-another-build"


@READING
@pytest.mark.usefixtures("other_build")
async def test_changed_tables_refuse_what_was_stored_before(
    tmp_path: Path, read_only: bool
) -> None:
    assert refused(placed(tmp_path), read_only=read_only).code == "storage-of-another-build"


async def test_database_in_use_of_another_build_keeps_its_log(tmp_path: Path) -> None:
    """What a killed process left in the WAL is not even moved into the database."""
    await make_database(tmp_path, FOREIGN[0])
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as raw:
        raw.execute("INSERT INTO approved_tools VALUES ('a', 'b', 'c')")
        raw.commit()
        (tmp_path / "killed").mkdir()
        for name in files(tmp_path):
            shutil.copy(tmp_path / name, tmp_path / "killed")
    assert (tmp_path / "killed" / f"{DATABASE_NAME}-wal").stat().st_size
    for read_only in (False, True):
        refused(tmp_path / "killed", read_only=read_only)


async def test_backup_of_another_build_is_refused(tmp_path: Path) -> None:
    await make_database(tmp_path / "kept", FOREIGN[0])
    before = files(tmp_path / "kept")
    with pytest.raises(StoreError, match="another build"):
        back_up(tmp_path / "kept", tmp_path / "b.tar")
    assert files(tmp_path / "kept") == before
    assert not (tmp_path / "b.tar").exists()


async def test_tables_that_the_stated_hash_is_not_of_are_not_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "SCHEMA_HASH", "forgotten")
    with pytest.raises(RuntimeError, match="SCHEMA_HASH"):
        SqliteStore.open(tmp_path)
    assert (tmp_path / DATABASE_NAME).stat().st_size == 0 or dump(tmp_path / DATABASE_NAME)[0] == 0


@pytest.mark.usefixtures("version_2")
async def test_migrated_schema_equals_new_schema(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    await SqliteStore.open(placed(tmp_path / "old")).close()
    await SqliteStore.open(tmp_path / "new").close()
    assert shape(tmp_path / "old" / DATABASE_NAME) == shape(tmp_path / "new" / DATABASE_NAME)


@READING
@pytest.mark.usefixtures("version_2")
async def test_data_is_the_same_after_a_migration(tmp_path: Path, read_only: bool) -> None:
    store = SqliteStore.open(placed(tmp_path), read_only)
    assert await read(store) == json.loads((FOLDER / "stored.json").read_text("utf-8"))
    await store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as raw:
        assert set(raw.execute("SELECT rank FROM plans")) == {(7,)}


@pytest.mark.usefixtures("version_2")
async def test_older_database_of_another_build_is_not_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_step(monkeypatch, before="of the release")
    assert refused(placed(tmp_path), read_only=False).code == "storage-of-another-build"


@READING
@pytest.mark.usefixtures("version_2")
async def test_older_database_is_copied_before_migration(tmp_path: Path, read_only: bool) -> None:
    before = dump(placed(tmp_path) / DATABASE_NAME)
    await SqliteStore.open(tmp_path, read_only).close()
    (copy,) = (tmp_path / "backups").iterdir()
    assert copy.name.startswith("planwave-v1-")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert dump(copy) == before
    await SqliteStore.open(tmp_path).close()
    assert list((tmp_path / "backups").iterdir()) == [copy], "the second start changes nothing"


@pytest.mark.parametrize("starts", [1, 2])
async def test_current_database_is_not_copied(tmp_path: Path, starts: int) -> None:
    for _ in range(starts):
        await SqliteStore.open(tmp_path).close()
    assert not (tmp_path / "backups").exists()


@pytest.mark.usefixtures("version_2")
async def test_failed_migration_leaves_database_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dump(placed(tmp_path) / DATABASE_NAME)
    set_step(monkeypatch, fail)
    with pytest.raises(StoreError, match="the step broke") as caught:
        SqliteStore.open(tmp_path)
    assert caught.value.code == "store-unusable"
    assert dump(tmp_path / DATABASE_NAME) == before
    set_step(monkeypatch)
    await SqliteStore.open(tmp_path).close()  # the failure left neither lock nor transaction


@pytest.mark.usefixtures("version_2")
@pytest.mark.parametrize("fails", ["fsync", "sync_directory"])
async def test_migration_without_room_for_the_copy_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    before = dump(placed(tmp_path) / DATABASE_NAME)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(connection.os if fails == "fsync" else connection, fails, full)
        with pytest.raises(StoreError, match="No space") as caught:
            SqliteStore.open(tmp_path)
    assert (caught.value.hint or "").startswith("free some space")
    assert dump(tmp_path / DATABASE_NAME) == before
    assert not list((tmp_path / "backups").glob(".*"))
    await SqliteStore.open(tmp_path).close()


@pytest.mark.usefixtures("version_2")
async def test_partial_copy_is_removed_at_start(tmp_path: Path) -> None:
    (placed(tmp_path) / "backups").mkdir()
    (tmp_path / "backups" / ".planwave-v1-now.db.tmp").write_text("half")
    await SqliteStore.open(tmp_path).close()
    assert [path.name[:11] for path in (tmp_path / "backups").iterdir()] == ["planwave-v1"]


@pytest.mark.usefixtures("version_2")
async def test_older_database_that_may_not_be_changed_stays(tmp_path: Path) -> None:
    before = files(placed(tmp_path))
    with pytest.raises(InputError, match="can only be read"):
        SqliteStore.open(tmp_path, read_only=True, migrates=False)
    assert files(tmp_path) == before


@pytest.mark.usefixtures("version_2")
async def test_backup_of_older_database_has_current_schema(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    before = dump(placed(tmp_path / "kept") / DATABASE_NAME)
    created = back_up(tmp_path / "kept", tmp_path / "b.tar")
    written = json.loads((FOLDER / "stored.json").read_text("utf-8"))
    assert (created.executions, created.plans, created.damaged) == (
        len(written["executions"]),
        3,
        (),
    )
    assert dump(tmp_path / "kept" / DATABASE_NAME) == before
    shutil.unpack_archive(tmp_path / "b.tar", tmp_path / "again")
    assert dump(tmp_path / "again" / DATABASE_NAME)[0] == 2


@READING
async def test_newer_database_is_refused_unchanged(tmp_path: Path, read_only: bool) -> None:
    version = SCHEMA_VERSION + 1
    await make_database(
        tmp_path, "UPDATE schema_hash SET hash = 'newer'", f"PRAGMA user_version = {version}"
    )
    error = refused(tmp_path, read_only=read_only)
    assert isinstance(error, SchemaTooNew)
    assert f"schema {version}" in error.message
