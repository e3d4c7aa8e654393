"""The store of a database of PostgreSQL: each process has one thread for writing, and threads for reading."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any, Final, Self

import psycopg
from psycopg import conninfo
from sqlalchemy import Connection, Engine, StaticPool, create_engine, select
from sqlalchemy.exc import DBAPIError

from planwave import __version__
from planwave.errors import StoreError
from planwave.storage.artifacts import ReadArtifact
from planwave.storage.postgres.migrations import migrate
from planwave.storage.postgres.transactions import PostgresTransactions
from planwave.storage.sql.errors import cause_of
from planwave.storage.sql.readers import ReaderPool
from planwave.storage.sql.schema import artifacts
from planwave.storage.sql.store import ARTIFACT_BYTES, Store
from planwave.storage.sql.writer import GroupCommitWriter

HOLDER_LEASE_S: Final = 15.0
"""How long an opening of the store counts as alive after it said so last."""
_BEATS_A_LEASE: Final = 3
_CONNECT_TIMEOUT_S: Final = 5
_WRITER_OPTIONS: Final = (
    # A process that is frozen inside a transaction would hold its locks until it is thawed.
    "-c idle_in_transaction_session_timeout=2000 -c lock_timeout=5000 -c synchronous_commit=on"
)
_PREPARE_AFTER: Final = 2
"""Uses after which a statement is prepared."""
_SERVER_VERSION: Final = 15_00_00
"""The oldest server that is supported, as ``server_version_num``."""


class PostgresStore(Store):
    """The store over a database of PostgreSQL; make one with ``PostgresStore.open``.

    ``async with`` closes it at the end. Writes go through one thread, reads through threads of their own;
    nothing blocks the event loop. Large output values are rows of a table of their own. Several stores, in several
    processes, may have one database open.
    """

    def __init__(
        self,
        readers: ReaderPool,
        writer: GroupCommitWriter,
        transactions: PostgresTransactions,
        beat: _Beat,
        artifact_bytes: int,
    ) -> None:
        super().__init__(readers, writer, artifact_bytes)
        self._threads, self._thread = readers, writer
        self._transactions, self._beat = transactions, beat
        self._closing: asyncio.Future[None] | None = None
        beat.start(self._instance_id)

    @classmethod
    def open(cls, url: str, *, artifact_bytes: int = ARTIFACT_BYTES) -> Self:
        """Open the store of a database; blocks for some tens of milliseconds.

        Its tables are made, or brought up to date, if need be.

        Args:
            url: ``postgresql://user:password@host:port/database``, with any parameters of libpq.
            artifact_bytes: The most JSON of an output value that is stored with its event.

        Raises:
            StoreError: ``store-unusable``: it cannot be reached, is too old, or has another encoding than UTF-8;
                ``storage-of-another-build``.
            SchemaTooNew: A newer planwave made the tables.
        """
        try:
            transactions = PostgresTransactions(partial(_connect, url))
        except (psycopg.Error, DBAPIError) as error:
            raise _unusable(url, error) from error
        try:
            migrate(transactions.connection)
            writer = GroupCommitWriter(transactions)
            # Other processes write too: no result is shared.
            readers = ReaderPool(_reading_engine(url))
            beat = _Beat(partial(_connect, url))
        except BaseException:
            transactions.close()
            raise
        return cls(readers, writer, transactions, beat, artifact_bytes)

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
        self._thread.stop()
        self._beat.stop()
        self._transactions.close()
        self._threads.close()


class _Beat:
    """The thread that says that an opening of the store is alive."""

    def __init__(self, connect: Any) -> None:
        self._transactions = PostgresTransactions(connect)
        self._ended = threading.Event()
        self._holder = ""
        self._thread = threading.Thread(target=self._run, name="planwave-beat", daemon=True)

    def start(self, holder: str) -> None:
        """Say it for the first time, then again and again in a thread."""
        self._holder = holder
        self._say()
        self._thread.start()

    def stop(self) -> None:
        """End the thread and withdraw: what is still claimed is free at once."""
        self._ended.set()
        self._thread.join()
        self._change("DELETE FROM holders WHERE holder_id = %s", (self._holder,))
        self._transactions.close()

    def _run(self) -> None:
        while not self._ended.wait(HOLDER_LEASE_S / _BEATS_A_LEASE):
            self._say()

    def _say(self) -> None:
        self._change(_SAY_ALIVE, (self._holder, HOLDER_LEASE_S, __version__))

    def _change(self, sql: str, values: tuple[object, ...]) -> None:
        """Commit a change; a server that does not answer is asked again by the next beat."""
        try:
            self._transactions.begin()
            self._transactions.connection.exec_driver_sql(sql, values)
            self._transactions.commit()
        except (psycopg.Error, DBAPIError):
            self._transactions.roll_back()


_SAY_ALIVE: Final = (
    "INSERT INTO holders (holder_id, expires_at, started_at, version) "
    "VALUES (%s, clock_timestamp() + make_interval(secs => %s), clock_timestamp(), %s) "
    "ON CONFLICT (holder_id) DO UPDATE SET expires_at = excluded.expires_at"
)


def _connect(url: str) -> Connection:
    """Open a connection for writing; transactions are explicit."""
    raw = psycopg.connect(
        url,
        autocommit=True,
        prepare_threshold=_PREPARE_AFTER,
        connect_timeout=_CONNECT_TIMEOUT_S,
        options=_WRITER_OPTIONS,
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
            url,
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
