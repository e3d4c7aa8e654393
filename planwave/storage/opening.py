"""How a database is opened: brought to the present schema, or read as it stands."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from planwave.storage import schema
from planwave.storage.files import MIGRATION_BACKUP_DIR, sync_directory
from planwave.storage.lock import DirectoryLock

_log = logging.getLogger(__name__)

_PRIVATE_DIRECTORY_MODE: Final = 0o700
_PRIVATE_MODE: Final = 0o600


def open_for_writing(path: Path) -> tuple[sqlite3.Connection, Connection]:
    """Open a database for writing, brought to the present schema.

    Before an older one is changed it is copied to ``backups/``, where the copy stays.

    Raises:
        OSError: There is no room for the copy; the database is as it was.
        SchemaTooNew: A newer planwave wrote it.
        sqlite3.Error, sqlalchemy.exc.DBAPIError: It cannot be opened or written.
    """
    _create_private_file(path)
    raw = schema.writing_connection(path)
    connection = schema.engine_of(raw).connect()
    try:
        version = schema.version_of(connection)
        if 0 < version < schema.SCHEMA_VERSION:
            copy = _copy_before_migration(raw, path, version)
            _log.info("schema %d becomes %d; copy: %s", version, schema.SCHEMA_VERSION, copy)
        schema.migrate(connection)
    except BaseException:
        close(connection)
        raise
    return raw, connection


def _create_private_file(path: Path) -> None:
    """Make a new database's file for nobody else to read; its log is made like it."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE_MODE))


def close(connection: Connection) -> None:
    """Close a connection for writing."""
    connection.close()
    connection.engine.dispose()


def close_after_failure(connection: Connection, path: Path) -> None:
    """Close a connection for writing whose disk has failed, leaving its log as it is.

    The last connection that closes moves the log into the database, and reads it without looking
    at its checksums; what is in it nobody knows any more. The next opening looks. So this one is
    not to be the last: one that cannot write outlives it.
    """
    with suppress(sqlite3.Error):
        with closing(schema.reading_connection(path)) as last:
            last.execute("SELECT 1 FROM executions LIMIT 1").fetchone()  # takes its place
            close(connection)
        return
    close(connection)


def _copy_before_migration(raw: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy a database as it is; whole and durable on return, or not there.

    Raises:
        OSError, sqlite3.Error: It cannot be written.
    """
    folder = path.parent / MIGRATION_BACKUP_DIR
    folder.mkdir(mode=_PRIVATE_DIRECTORY_MODE, exist_ok=True)
    name = f"{path.stem}-v{version}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.db"
    unfinished = folder / f".{name}.tmp"
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_MODE))
        with closing(sqlite3.connect(unfinished)) as copy:
            raw.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, whole in itself
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(folder / name)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_directory(folder)
    sync_directory(path.parent)
    return folder / name


def open_for_reading(path: Path) -> Engine:
    """Give an engine for reading; an older database is brought up to date first.

    Raises:
        StoreError: ``storage-locked``: an older planwave is writing.
        SchemaTooNew: A newer planwave wrote it.
        OSError, sqlalchemy.exc.DBAPIError: It cannot be read.
    """
    if not path.exists():
        return schema.empty_engine()
    engine = schema.reading_engine(path)
    try:
        version = _version_of(engine)
    except DBAPIError:
        engine.dispose()
        if schema.has_wal(path):
            raise
        # A disk that is full or read-only has no place for what readers and a writer share.
        engine = schema.reading_engine(path, unchanging=True)
        version = _version_of(engine)
    if version == 0:  # a writer has made the file, but no table yet
        engine.dispose()
        return schema.empty_engine()
    if version < schema.SCHEMA_VERSION:
        engine.dispose()
        lock = DirectoryLock(path.parent)
        try:
            close(open_for_writing(path)[1])
        finally:
            lock.release()
        engine = schema.reading_engine(path)
    return engine


def _version_of(engine: Engine) -> int:
    with engine.connect() as connection:
        return schema.version_of(connection)
