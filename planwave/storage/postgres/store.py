"""The store of a database of PostgreSQL: each process has one thread for writing, and threads for reading."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self

import psycopg
from psycopg import conninfo
from sqlalchemy import Connection, Engine, StaticPool, create_engine, select
from sqlalchemy.exc import DBAPIError

from planwave.errors import StoreError
from planwave.events import Event
from planwave.storage.artifacts import ReadArtifact
from planwave.storage.errors import stale_epoch
from planwave.storage.lock import DirectoryLock
from planwave.storage.ownership import make_directory
from planwave.storage.postgres.holder import Holder
from planwave.storage.postgres.migrations import migrate, require_current
from planwave.storage.postgres.transactions import PostgresTransactions
from planwave.storage.sql.errors import cause_of
from planwave.storage.sql.readers import ReaderPool
from planwave.storage.sql.schema import artifacts
from planwave.storage.sql.store import ARTIFACT_BYTES, Store
from planwave.storage.sql.writer import GroupCommitWriter

LATE_APPEND_S: Final = 1.0
"""After so long an append is late: half of the shortest time in which another process takes over."""
_CONNECT_TIMEOUT_S: Final = 5
_WRITER_OPTIONS: Final = (
    # A process that is frozen inside a transaction would hold its locks until it is thawed.
    "-c idle_in_transaction_session_timeout=2000 -c lock_timeout=5000 -c synchronous_commit=on"
)
_DEAD_PEER: Final = {
    "keepalives_idle": 2,
    "keepalives_interval": 2,
    "keepalives_count": 2,
    "tcp_user_timeout": 6_000,
}
"""Parameters of libpq, s and ms: when a server that no longer answers, as after a broken network, is given up."""
_PREPARE_AFTER: Final = 2
"""Uses after which a statement is prepared."""
_SERVER_VERSION: Final = 15_00_00
"""The oldest server that is supported, in the form in which libpq gives a version."""


class PostgresStore(Store):
    """The store over a database of PostgreSQL; make one with ``PostgresStore.open``.

    ``async with`` closes it at the end. Writes go through one thread, reads through threads of their own;
    nothing blocks the event loop. Large output values are rows of a table of their own. Several stores, in several
    processes, may have one database open.
    """

    def __init__(
        self,
        readers: ReaderPool,
        writer: GroupCommitWriter | None = None,
        transactions: PostgresTransactions | None = None,
        artifact_bytes: int = ARTIFACT_BYTES,
    ) -> None:
        super().__init__(readers, writer, artifact_bytes)
        self._threads, self._thread, self._transactions = readers, writer, transactions
        self._holder: Holder | None = None
        self._lock: DirectoryLock | None = None
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    def open(
        cls,
        url: str,
        read_only: bool = False,
        *,
        directory: Path | None = None,
        artifact_bytes: int = ARTIFACT_BYTES,
    ) -> Self:
        """Open the store of a database; blocks for some tens of milliseconds.

        Its tables are made, or brought up to date, if need be.

        Args:
            url: ``postgresql://user:password@host:port/database``, with any parameters of libpq.
            read_only: Whether nothing is written.
            directory: The directory of the one process that drives the executions of the database: it
                owns both, and publishes its address in the directory. None for a process that does not.
            artifact_bytes: The most JSON of an output value that is stored with its event.

        Raises:
            StoreError: ``store-unusable``: it cannot be reached, is too old, or has another encoding than UTF-8;
                ``storage-of-another-build``; ``storage-locked``: another process drives its executions, or
                owns the directory.
            SchemaTooNew: A newer planwave made the tables.
        """
        try:
            transactions = PostgresTransactions(partial(_connect, url))
            lock = None
            try:
                if read_only:
                    require_current(transactions.connection)
                else:
                    migrate(transactions.connection)
                    lock = None if directory is None else _own(directory)
            except BaseException:
                transactions.close()
                raise
            # Other processes write too: no result is shared.
            readers = ReaderPool(_reading_engine(url))
            if read_only:
                transactions.close()
                return cls(readers)
            store = cls(readers, GroupCommitWriter(transactions), transactions, artifact_bytes)
            store._lock = lock
            store._hold(partial(_connect, url), drives=directory is not None)
        except (psycopg.Error, DBAPIError) as error:
            raise _unusable(url, error) from error
        return store

    def _hold(self, connect: Callable[[], Connection], *, drives: bool) -> None:
        """Say from now on that this opening is alive; close it if that fails.

        Raises:
            StoreError: ``storage-locked``.
            psycopg.Error, sqlalchemy.exc.DBAPIError: The server does not answer.
        """
        try:
            self._holder = Holder(PostgresTransactions(connect), self._instance_id)
            self._holder.start(drives=drives)
        except BaseException:
            self._close_connections()
            self._threads.shutdown()
            raise

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        """Append events; see ``Store.append``.

        Where the answer took so long that another process may own the execution by now, that is looked
        up before the caller goes on: it would begin what the other one has begun.

        Raises:
            StaleEpoch: Another process owns the execution.
        """
        began = monotonic()
        await super().append(execution_id, epoch, events)
        if monotonic() - began > LATE_APPEND_S:
            record = await self.execution(execution_id)
            if record is not None and record.epoch > epoch:
                raise stale_epoch(execution_id, epoch, record.epoch)

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        if self._lock is not None:
            self._lock.publish_address(url, token, is_service=is_service)

    async def size(self) -> int:
        """Return the bytes of the database."""
        query = "SELECT pg_database_size(current_database())"
        return await self._read(lambda connection: connection.exec_driver_sql(query).scalar_one())

    def _artifact_reader(self, connection: Connection) -> ReadArtifact:
        def read(digest: str) -> bytes | None:
            own = select(artifacts.c.content).where(artifacts.c.digest == digest)
            return connection.execute(own).scalar()

        return read

    async def close(self) -> None:
        """Finish what is queued, then close the connections.

        Every call waits for that; cancelling one does not stop it.
        """
        if self._closing is None:
            await super().close()
            self._is_closed = True
            self._closing = self._threads.run(self._close_connections)
        await asyncio.shield(self._closing)
        self._threads.shutdown()

    def _close_connections(self) -> None:
        if self._thread is not None:
            self._thread.stop_accepting()
            self._thread.stop()
        if self._holder is not None:
            self._holder.stop()
        if self._transactions is not None:
            self._transactions.close()
        self._threads.close()
        if self._lock is not None:
            self._lock.release()


def _own(directory: Path) -> DirectoryLock:
    """Lock a directory, which is made if need be.

    Raises:
        StoreError: ``storage-locked``, ``store-unusable``.
    """
    try:
        make_directory(directory)
        return DirectoryLock(directory)
    except OSError as error:
        raise StoreError(
            f"the directory {str(directory)!r} cannot be used: {error.strerror}",
            code="store-unusable",
            hint="check its owner and permissions, or choose another directory",
        ) from error


def _connect(url: str) -> Connection:
    """Open a connection for writing; transactions are explicit."""
    raw = psycopg.connect(
        conninfo.make_conninfo(url, options=_WRITER_OPTIONS, **_DEAD_PEER),
        autocommit=True,
        prepare_threshold=_PREPARE_AFTER,
        connect_timeout=_CONNECT_TIMEOUT_S,
    )
    try:
        _require_usable(url, raw)
    except StoreError:
        raw.close()
        raise
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: raw,
        poolclass=StaticPool,
        isolation_level="AUTOCOMMIT",
    )
    return engine.connect()


def _reading_engine(url: str) -> Engine:
    return create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(
            conninfo.make_conninfo(url, **_DEAD_PEER),
            autocommit=True,
            prepare_threshold=_PREPARE_AFTER,
            connect_timeout=_CONNECT_TIMEOUT_S,
        ),
        isolation_level="AUTOCOMMIT",
        pool_pre_ping=True,
    )


def _require_usable(url: str, raw: psycopg.Connection[Any]) -> None:
    """Check version and encoding of a database.

    Raises:
        StoreError: ``store-unusable``.
    """
    version, encoding = raw.info.server_version, raw.info.parameter_status("server_encoding")
    if version < _SERVER_VERSION:
        what = f"its version is {version // 10_000}, and 15 or newer is needed"
        raise _cannot_use(url, what, "upgrade the server")
    if encoding != "UTF8":
        what = f"its encoding is {encoding}"
        raise _cannot_use(url, what, "create the database with ENCODING 'UTF8'")


def _unusable(url: str, error: Exception) -> StoreError:
    reason = str(cause_of(error)).strip().splitlines()[0]
    return _cannot_use(url, reason, "check database_url, and that the server runs")


def _cannot_use(url: str, reason: str, hint: str) -> StoreError:
    where = conninfo.conninfo_to_dict(url)
    named = f"{where.get('dbname', '')!r} on {where.get('host', 'the local socket')}"
    return StoreError(
        f"the database {named} cannot be used: {reason}", code="store-unusable", hint=hint
    )
