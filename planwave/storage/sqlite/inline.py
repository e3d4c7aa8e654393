"""Writing and reading on the caller's thread, for a database in memory: nothing waits for a disk.

A call returns with its commit and suspends nowhere, so that tests in virtual time stay deterministic.
"""

from __future__ import annotations

import asyncio
import sqlite3
import weakref
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from functools import cache
from threading import RLock
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from planwave.storage.errors import store_closed
from planwave.storage.records import StoreStats
from planwave.storage.sqlite.appends import AppendOp, ExecutionPositions
from planwave.storage.sqlite.connection import engine_of
from planwave.storage.sqlite.errors import cause_of, to_store_error, unreadable
from planwave.storage.sqlite.schema import create_tables
from planwave.storage.sqlite.writer import WriteJob

_T = TypeVar("_T")


class InlineConnection:
    """The one connection of a database in memory, for reading and writing, one thread at a time.

    ``commits`` counts finished transactions. The connection is closed when nothing refers to this any more.
    """

    def __init__(self) -> None:
        self._connection = _engine().connect()
        raw: Any = self._connection.connection.driver_connection
        self._raw: sqlite3.Connection = raw
        self._lock = RLock()
        self._positions = ExecutionPositions(raw)
        self.outbox = self._positions.outbox
        self.is_closed = False
        self.commits = 0
        weakref.finalize(self, self._connection.close)

    @property
    def stats(self) -> StoreStats:
        """The number of writes; more are always possible."""
        return StoreStats(writes=self.commits, commits=(self.commits,))

    def submit(self, job: WriteJob) -> asyncio.Future[Any]:
        """Do a job in a transaction of its own; the future has the result already.

        Raises:
            StoreError: The store was closed, or this cannot be stored.
        """
        if self.is_closed:
            raise store_closed()
        with self._lock:
            try:
                self._raw.execute("BEGIN")
                job.future.set_result(self._apply(job.change))
                self._raw.execute("COMMIT")
            except BaseException as error:
                self._roll_back()
                if isinstance(error, Exception):
                    raise to_store_error(cause_of(error)) from error
                raise
            self.commits += 1
        return job.future

    def _apply(self, change: AppendOp | Callable[[Connection], Any]) -> Any:
        if isinstance(change, AppendOp):
            return self._positions.append((change,))
        return change(self._connection)

    def _roll_back(self) -> None:
        self._positions.clear()
        with suppress(sqlite3.Error):
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")

    async def read(self, query: Callable[[Connection], _T]) -> _T:
        """Run a query.

        Raises:
            StoreError: ``store-unreadable``.
        """
        with self._lock:
            try:
                return query(self._connection)
            except DBAPIError as error:
                raise unreadable(error) from error

    async def read_shared(
        self, key: Hashable, query: Callable[[Connection], _T], *, keep_result: bool = True
    ) -> _T:
        """Run a query; no other caller can be at the same one meanwhile."""
        return await self.read(query)

    def stop_accepting(self) -> None:
        """Reject further jobs."""
        self.is_closed = True

    def mark_deleted(self, execution_ids: Iterable[str]) -> None:
        """Forget deleted executions; only a job may call this."""
        for execution_id in execution_ids:
            self.forget_position(execution_id)

    def release_artifacts(self, digests: Iterable[str]) -> None:
        """Do nothing: all values are in the database."""

    def forget_position(self, execution_id: str) -> None:
        """Drop the cached position of an execution; only a job may call this."""
        self._positions.forget(execution_id)


@cache
def _engine() -> Engine:
    """Return an engine that opens a database of its own for each connection.

    All of them share it, because it caches the SQL of the statements.
    """
    return create_engine(
        "sqlite://", creator=_open_copy, poolclass=NullPool, isolation_level="AUTOCOMMIT"
    )


def _open_copy() -> sqlite3.Connection:
    raw = _open()
    _template().backup(raw)
    raw.execute("PRAGMA foreign_keys=ON")
    raw.execute("PRAGMA temp_store=MEMORY")  # no file for large sorts either
    return raw


def _open() -> sqlite3.Connection:
    return sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False, cached_statements=256
    )


@cache
def _template() -> sqlite3.Connection:
    """Return a database with empty tables: a copy takes a fifth of the time to make them."""
    raw = _open()
    with engine_of(raw).connect() as connection:
        create_tables(connection)
    return raw
