from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import StoreError
from planwave.storage.sqlite.connection import (
    DATABASE_NAME,
    close_after_failure,
    open_for_writing,
)
from planwave.storage.sqlite.store import SqliteStore


def open_database(directory: Path) -> tuple[Path, sqlite3.Connection, object]:
    path = directory / DATABASE_NAME
    connection = open_for_writing(path)
    raw: Any = connection.connection.driver_connection
    raw.execute(
        "INSERT INTO plans (plan_id, created_at, title, user_prompt, hash, search, document) "
        "VALUES ('p', '', '', '', '', '', '{}')"
    )
    return path, raw, connection


def is_closed(raw: sqlite3.Connection) -> bool:
    try:
        raw.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False


def test_write_ahead_log_is_kept_after_failure(tmp_path: Path) -> None:
    path, raw, connection = open_database(tmp_path)
    close_after_failure(connection, path)  # type: ignore[arg-type]
    assert is_closed(raw)
    assert path.with_name(f"{path.name}-wal").stat().st_size
    with closing(sqlite3.connect(path)) as again:
        assert again.execute("SELECT plan_id FROM plans").fetchall() == [("p",)]


def test_missing_database_is_closed_after_failure(tmp_path: Path) -> None:
    path, raw, connection = open_database(tmp_path)
    for file in tmp_path.iterdir():
        file.unlink()
    close_after_failure(connection, path)  # type: ignore[arg-type]
    assert is_closed(raw)
    assert list(tmp_path.iterdir()) == []


async def test_files_are_private(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "store")
    try:
        modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "store").iterdir()}
    finally:
        await store.close()
    assert DATABASE_NAME in modes
    assert set(modes.values()) == {0o600}


def test_directory_that_cannot_be_made_is_named_without_an_error_number() -> None:
    with pytest.raises(StoreError) as caught:
        SqliteStore.open(Path("/proc/planwave"))
    assert caught.value.message == (
        "the storage directory '/proc/planwave' cannot be used: No such file or directory"
    )
