"""The store of a directory: one SQLite file, one writer thread with group commit, and reader threads."""

from __future__ import annotations

import asyncio
import sqlite3
from functools import partial
from pathlib import Path
from typing import Self

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from planwave.storage.artifacts import ReadArtifact
from planwave.storage.files import read_artifact, remove_temporary_files, require_directory
from planwave.storage.lock import DirectoryLock, is_owned
from planwave.storage.ownership import make_directory
from planwave.storage.sql.readers import ReaderPool
from planwave.storage.sql.store import ARTIFACT_BYTES, Store
from planwave.storage.sql.writer import GroupCommitWriter
from planwave.storage.sqlite.connection import (
    DATABASE_NAME,
    close,
    close_after_failure,
    database_unusable,
    open_for_reading,
    open_for_writing,
    reading_engine,
)
from planwave.storage.sqlite.transactions import SqliteTransactions


class SqliteStore(Store):
    """The store over ``<directory>/planwave.db``; make one with [open][planwave.SqliteStore.open].

    ``async with`` closes it at the end; so does ``with`` in code without an event loop.

    Writes go through one thread (``writer.py``), reads through threads of their own; nothing blocks
    the event loop. Output values over ``artifact_bytes`` of JSON live in ``<directory>/artifacts``.
    """

    def __init__(
        self,
        directory: Path,
        readers: ReaderPool | None = None,
        writer: GroupCommitWriter | None = None,
        connection: Connection | None = None,
        lock: DirectoryLock | None = None,
        artifact_bytes: int = ARTIFACT_BYTES,
    ) -> None:
        if readers is None:
            raise TypeError(f"a store is opened: planwave.SqliteStore.open({str(directory)!r})")
        super().__init__(readers, writer, artifact_bytes)
        self._directory = directory
        self._path = directory / DATABASE_NAME
        self._threads = readers
        self._thread = writer
        self._connection = connection
        self._lock = lock
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    def open(
        cls,
        directory: Path | str,
        read_only: bool = False,
        *,
        artifact_bytes: int = ARTIFACT_BYTES,
        migrates: bool = True,
    ) -> Self:
        """Open the store of a directory; blocks for some milliseconds.

        Read-only, it works while another process writes, and is empty where nothing was ever
        stored; without ``migrates`` it writes nothing at all. Otherwise the directory is made if need
        be, and locked against other writers.

        Raises:
            InputError: ``storage-untrusted``: without ``migrates``, a database of an older planwave.
            StoreError: ``storage-locked`` (another process writes here), ``storage-of-another-build``,
                ``store-unusable``.
            SchemaTooNew: A newer planwave wrote the database.
        """
        directory = Path(directory)
        path = directory / DATABASE_NAME
        try:
            if read_only:
                require_directory(directory)
                return cls(directory, ReaderPool(open_for_reading(path, migrates=migrates)))
            make_directory(directory)
            lock = DirectoryLock(directory)
        except (OSError, sqlite3.Error, DBAPIError) as error:
            raise database_unusable(path, error) from error
        try:
            return cls._open_for_writing(directory, lock, artifact_bytes)
        except BaseException as error:
            lock.release()
            if isinstance(error, OSError | sqlite3.Error | DBAPIError):
                raise database_unusable(path, error) from error
            raise

    @classmethod
    def _open_for_writing(cls, directory: Path, lock: DirectoryLock, artifact_bytes: int) -> Self:
        remove_temporary_files(directory)
        path = directory / DATABASE_NAME
        connection = open_for_writing(path)
        writer = GroupCommitWriter(SqliteTransactions(connection, directory))
        readers = ReaderPool(reading_engine(path), lambda: writer.commits)
        return cls(directory, readers, writer, connection, lock, artifact_bytes)

    def _artifact_reader(self, connection: Connection) -> ReadArtifact:
        return partial(read_artifact, self._directory)

    @property
    def is_owned_elsewhere(self) -> bool:
        """Whether another process owns the directory, so that it may drive what is stored in it."""
        return self._lock is None and is_owned(self._path.parent)

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        if self._lock is not None:
            self._lock.publish_address(url, token, is_service=is_service)

    async def close(self) -> None:
        """Finish what is queued, then let the directory go.

        Every call waits for that; cancelling one does not stop it.
        """
        if self._closing is None:
            await super().close()
            self._is_closed = True
            self._closing = self._threads.run(self._close_files)
        await asyncio.shield(self._closing)
        self._threads.shutdown()

    def __enter__(self) -> Self:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self
        self._close_files()  # else its directory stays locked
        self._threads.shutdown()
        raise RuntimeError("in an event loop write: async with planwave.SqliteStore.open(…)")

    def __exit__(self, *_: object) -> None:
        asyncio.run(self.close())

    def _close_files(self) -> None:
        if self._thread is not None:
            self._thread.stop()
        self._threads.close()
        if self._connection is not None:
            if self.stats.fatal_error is None:
                close(self._connection)
            else:
                close_after_failure(self._connection, self._path)
        if self._lock is not None:
            self._lock.release()
