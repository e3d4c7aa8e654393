from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from planwave.storage.sqlite.connection import (
    DATABASE_NAME,
    close,
    close_after_failure,
    open_for_writing,
)
from planwave.storage.sqlite.migrations import SCHEMA_VERSION
from planwave.storage.sqlite.store import SqliteStore


def opened(directory: Path) -> tuple[Path, sqlite3.Connection, object]:
    path = directory / DATABASE_NAME
    raw, connection = open_for_writing(path)
    raw.execute("INSERT INTO plans VALUES ('p', '', '', '', '', '', '{}')")
    return path, raw, connection


def is_closed(raw: sqlite3.Connection) -> bool:
    try:
        raw.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False


def test_after_a_fault_the_log_stays_for_the_next_opening(tmp_path: Path) -> None:
    path, raw, connection = opened(tmp_path)
    close_after_failure(connection, path)  # type: ignore[arg-type]
    assert is_closed(raw)
    assert path.with_name(f"{path.name}-wal").stat().st_size
    with closing(sqlite3.connect(path)) as again:
        assert again.execute("SELECT plan_id FROM plans").fetchall() == [("p",)]


def test_after_a_fault_a_database_that_is_gone_is_let_go_as_well(tmp_path: Path) -> None:
    path, raw, connection = opened(tmp_path)
    for file in tmp_path.iterdir():
        file.unlink()
    close_after_failure(connection, path)  # type: ignore[arg-type]
    assert is_closed(raw)
    assert list(tmp_path.iterdir()) == []


def test_a_new_database_has_the_present_schema(tmp_path: Path) -> None:
    _, raw, connection = opened(tmp_path)
    assert raw.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    close(connection)  # type: ignore[arg-type]


async def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "store")
    try:
        modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "store").iterdir()}
    finally:
        await store.close()
    assert DATABASE_NAME in modes
    assert set(modes.values()) == {0o600}
