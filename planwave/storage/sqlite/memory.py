"""The store in memory: writing and reading on the caller's thread, for nothing waits for a disk.

A call returns with its commit and suspends nowhere, so that tests in virtual time stay deterministic.
"""

from __future__ import annotations

import asyncio
import sqlite3
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache, partial
from threading import RLock
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, NullPool, Row, create_engine
from sqlalchemy.exc import DBAPIError

from planwave.storage.errors import store_closed
from planwave.storage.event_codec import decode_events
from planwave.storage.records import ExecutionRecord, Projected, Projection, StoreStats
from planwave.storage.sql import queries
from planwave.storage.sql.appends import AppendOp
from planwave.storage.sql.errors import cause_of, to_store_error, unreadable
from planwave.storage.sql.lists import executions_behind
from planwave.storage.sql.schema import create_tables
from planwave.storage.sql.store import Store
from planwave.storage.sql.writer import WriteJob
from planwave.storage.sqlite.connection import engine_of
from planwave.storage.sqlite.transactions import SqliteTransactions

_T = TypeVar("_T")


class InlineConnection:
    """The one connection of a database in memory, for reading and writing, one thread at a time.

    ``commits`` counts finished transactions. The connection is closed when nothing refers to this any more.
    """

    def __init__(self) -> None:
        self._connection = _engine().connect()
        self._transactions = SqliteTransactions(self._connection, None)
        self._lock = RLock()
        self.outbox = self._transactions.outbox
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
                self._transactions.begin()
                job.future.set_result(self._apply(job.change))
                self._transactions.commit()
            except BaseException as error:
                self._transactions.roll_back()
                if isinstance(error, Exception):
                    raise to_store_error(cause_of(error)) from error
                raise
            self.commits += 1
        return job.future

    def _apply(self, change: AppendOp | Callable[[Connection], Any]) -> Any:
        if isinstance(change, AppendOp):
            return self._transactions.append((change,))
        return change(self._connection)

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

    # Only a job may call these.

    def mark_deleted(self, execution_ids: Sequence[str]) -> None:
        """Forget deleted executions."""
        for execution_id in execution_ids:
            self.forget_position(execution_id)

    def release_artifacts(self, digests: Iterable[str]) -> None:
        """Do nothing: all values are stored with their events."""

    def forget_position(self, execution_id: str) -> None:
        """Drop the cached position of an execution."""
        self._transactions.forget_position(execution_id)

    def set_document_seqs(self, seqs: Mapping[str, int]) -> int:
        """Set the last event of documents; return how many executions there are of these."""
        return self._transactions.set_document_seqs(seqs)


class MemoryStore(Store):
    """A store in memory, for tests and for runs that need no durability.

    All is stored as on disk, so reads return copies, and values that are not JSON are rejected. Only
    [project_each][planwave.MemoryStore.project_each] suspends. No file is written. After ``close`` it can still
    be read.
    """

    def __init__(self) -> None:
        self._inline = InlineConnection()
        super().__init__(self._inline, self._inline, artifact_bytes=None)

    async def project_each(
        self, execution_ids: Sequence[str], project: Projection[Projected]
    ) -> dict[str, Projected]:
        """Compute the projections in a thread, as on disk, but read the rows of the events before."""

        def read(connection: Connection) -> list[tuple[ExecutionRecord, Sequence[Row[int, str]]]]:
            return [
                (of, queries.batches_after(connection, of.execution_id, 0, None))
                for of in executions_behind(connection, execution_ids)
            ]

        if self._inline.is_closed:
            raise store_closed()
        behind = await self._read(read)

        def project_all() -> dict[str, Projected]:
            return {
                of.execution_id: project(of, partial(decode_events, of.execution_id, rows, 0, None))
                for of, rows in behind
            }

        return await asyncio.to_thread(project_all)


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
