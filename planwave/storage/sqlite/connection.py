"""Opening and closing a database: for writing, with the current schema, or for reading."""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, StaticPool, create_engine
from sqlalchemy.exc import DBAPIError

from planwave.errors import StoreError, reason_of
from planwave.storage.files import MIGRATION_BACKUP_DIR, sync_directory
from planwave.storage.lock import DirectoryLock
from planwave.storage.ownership import untrusted_error
from planwave.storage.sql.errors import cause_of, is_recoverable
from planwave.storage.sql.schema import create_tables
from planwave.storage.sqlite import migrations

DATABASE_NAME: Final = "planwave.db"
BUSY_MS: Final = 5_000
"""Wait for a lock of another program (a database browser), in ms."""


def writing_connection(path: Path) -> sqlite3.Connection:
    """Open a database for writing: WAL, ``synchronous=FULL``, foreign keys, own transactions."""
    raw = sqlite3.connect(
        path,
        timeout=BUSY_MS / 1_000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.execute("PRAGMA synchronous=FULL")
        raw.execute("PRAGMA foreign_keys=ON")
    except sqlite3.Error:
        raw.close()
        raise
    return raw


def reading_connection(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    """Open a database that another connection, here or in another process, may be writing.

    Args:
        path: The database.
        immutable: No process writes; then SQLite needs no lock files.
    """
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if immutable else ''}",
        uri=True,
        timeout=BUSY_MS / 1_000,
        check_same_thread=False,
    )


def engine_of(raw: sqlite3.Connection) -> Engine:
    """Return an engine with this connection only; transactions are explicit."""
    return create_engine(
        "sqlite://", creator=lambda: raw, poolclass=StaticPool, isolation_level="AUTOCOMMIT"
    )


def reading_engine(path: Path, *, immutable: bool = False) -> Engine:
    """Return an engine for reading from several threads; see ``reading_connection``."""
    return create_engine(
        f"sqlite:///{path}", creator=lambda: reading_connection(path, immutable=immutable)
    )


def has_wal(path: Path) -> bool:
    """Return whether a database has a WAL: a process is writing, or its writer was killed.

    The last connection of a database removes the WAL when it closes.
    """
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def empty_engine() -> Engine:
    """Return an engine over empty tables, for a directory without a database."""
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
    with engine.begin() as connection:
        create_tables(connection)
    return engine


def database_unusable(path: Path, error: Exception) -> StoreError:
    """Return the error for a database that cannot be opened."""
    cause = cause_of(error)
    hint = "restore it from a copy"
    if is_recoverable(cause):
        hint = "free some space"
    elif isinstance(cause, OSError):
        hint = "check the owner and permissions of its directory"
    return StoreError(
        f"{str(path)!r} cannot be opened as a database: {reason_of(cause)}",
        code="store-unusable",
        hint=f"{hint}, or choose another directory",
    )


_log = logging.getLogger(__name__)

_PRIVATE_DIRECTORY_MODE: Final = 0o700
_PRIVATE_MODE: Final = 0o600


def open_for_writing(path: Path) -> Connection:
    """Open a database for writing, brought to the present schema.

    Before an older one is changed it is copied to ``backups/``, where the copy stays.

    Raises:
        OSError: There is no room for the copy; the database is as it was.
        SchemaTooNew: A newer planwave wrote it.
        StoreError: ``storage-of-another-build``.
        sqlite3.Error, sqlalchemy.exc.DBAPIError: It cannot be opened or written.
    """
    _require_known_schema(path)
    _create_private_file(path)
    raw = writing_connection(path)
    connection = engine_of(raw).connect()
    try:
        version = migrations.version_of(connection)
        if 0 < version < migrations.SCHEMA_VERSION:
            copy = _copy_before_migration(raw, path, version)
            _log.info("schema %d becomes %d; copy: %s", version, migrations.SCHEMA_VERSION, copy)
        migrations.migrate(connection)
    except BaseException:
        close(connection)
        raise
    return connection


def _require_known_schema(path: Path) -> None:
    """Refuse a database of another planwave before a connection for writing changes a byte of its files.

    Raises:
        SchemaTooNew, StoreError: See ``version_of``.
    """
    with suppress(
        OSError, sqlite3.Error, DBAPIError
    ):  # the connection for writing says what is wrong
        if path.stat().st_size > 0:
            engine = engine_of(reading_connection(path))
            try:
                _version_of(engine)
            finally:
                engine.dispose()


def _create_private_file(path: Path) -> None:
    """Create the file of a new database with private mode; its WAL gets the same mode."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE_MODE))


def close(connection: Connection) -> None:
    """Close a connection for writing."""
    connection.close()
    connection.engine.dispose()


def close_after_failure(connection: Connection, path: Path) -> None:
    """Close a connection for writing after a disk error, without a checkpoint of the WAL.

    The last connection to close copies the WAL into the database without verifying its checksums,
    and after a disk error its content is unknown. The next opening verifies them. Therefore a
    read-only connection stays open until this one is closed.
    """
    with suppress(sqlite3.Error):
        with closing(reading_connection(path)) as last:
            last.execute("SELECT 1 FROM executions LIMIT 1").fetchone()  # opens the database
            close(connection)
        return
    close(connection)


def _copy_before_migration(raw: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy a database atomically; durable on return.

    Raises:
        OSError, sqlite3.Error: The copy cannot be written.
    """
    folder = path.parent / MIGRATION_BACKUP_DIR
    folder.mkdir(mode=_PRIVATE_DIRECTORY_MODE, exist_ok=True)
    name = f"{path.stem}-v{version}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.db"
    unfinished = folder / f".{name}.tmp"
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_MODE))
        with closing(sqlite3.connect(unfinished)) as copy:
            raw.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")  # one file without a WAL
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(folder / name)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_directory(folder)
    sync_directory(path.parent)
    return folder / name


def open_for_reading(path: Path, *, migrates: bool = True) -> Engine:
    """Return an engine for reading; an older database is migrated first.

    Raises:
        InputError: ``storage-untrusted``: an older database may not be migrated.
        StoreError: ``storage-locked``: an older planwave is writing.
        SchemaTooNew: A newer planwave wrote the database.
        StoreError: ``storage-of-another-build``.
        OSError, sqlalchemy.exc.DBAPIError: The database cannot be read.
    """
    if not path.exists():
        return empty_engine()
    if not path.is_file():  # to open a pipe would wait for its other end
        raise OSError(errno.EINVAL, "it is no file", str(path))
    engine = reading_engine(path)
    try:
        version = _version_of(engine)
    except DBAPIError:
        engine.dispose()
        if has_wal(path):
            raise
        # On a full or read-only disk SQLite cannot create the shared memory file.
        engine = reading_engine(path, immutable=True)
        version = _version_of(engine)
    if version == 0:  # a writer has created the file, but no table yet
        engine.dispose()
        return empty_engine()
    if version < migrations.SCHEMA_VERSION:
        engine.dispose()
        if not migrates:
            raise untrusted_error(path.parent)
        lock = DirectoryLock(path.parent)
        try:
            close(open_for_writing(path))
        finally:
            lock.release()
        engine = reading_engine(path)
    return engine


def _version_of(engine: Engine) -> int:
    with engine.connect() as connection:
        return migrations.version_of(connection)
