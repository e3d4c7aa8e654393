"""The store of a database of PostgreSQL: each process has one thread for writing, and threads for reading."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

import psycopg
from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.exc import DBAPIError, ProgrammingError

from planwave.errors import Conflict, StoreError
from planwave.events import Event
from planwave.providers.protocols import CallKey
from planwave.storage.artifacts import ReadArtifact
from planwave.storage.errors import stale_epoch
from planwave.storage.event_codec import decode_events, storable_text
from planwave.storage.lock import DirectoryLock
from planwave.storage.notices import events_note
from planwave.storage.ownership import make_directory
from planwave.storage.postgres.connection import (
    Interruption,
    connect,
    connect_raw,
    database_unusable,
    reading_engine,
)
from planwave.storage.postgres.holder import LEASE_S, Holder
from planwave.storage.postgres.leader_lock import LeaderLock
from planwave.storage.postgres.migrations import (
    MIGRATIONS,
    Migration,
    migrate,
    require_current,
    schema_state,
    schema_too_new,
)
from planwave.storage.postgres.notices import PostgresNotices
from planwave.storage.postgres.owners import ExecutionOwners, waits_for
from planwave.storage.postgres.sessions import SharedSessions
from planwave.storage.postgres.transactions import PostgresTransactions
from planwave.storage.records import STORE_UNREACHABLE, ExecutionRecord, PlanRecord, StoreStats
from planwave.storage.sql.errors import no_answer
from planwave.storage.sql.queries import call_row, insert_call
from planwave.storage.sql.readers import ReaderPool
from planwave.storage.sql.schema import artifacts
from planwave.storage.sql.store import ARTIFACT_BYTES, Store
from planwave.storage.sql.writer import GroupCommitWriter

if TYPE_CHECKING:
    from planwave.shapes.executions import WaitsForResponse

_T = TypeVar("_T")

LATE_APPEND_S: Final = 1.0
"""After so long an append is late: half of the shortest time in which another process takes over."""
_WRITER_LOCK_TIMEOUT_MS: Final = 10
"""Short: the writer tries a job that did not get its locks again, and commits others meanwhile."""
READ_S: Final = 20.0
"""How long a query may take."""
SILENT_S: Final = 6.0
"""After so long without an answer to a write or a beat the server counts as unreachable; the write still waits."""
_BATCHES_AFTER: Final = text(
    "SELECT e.execution_id, b.first, b.events "
    "FROM unnest(CAST(:ids AS text[]), CAST(:nexts AS int[])) AS asked(execution_id, next) "
    "JOIN executions e ON e.execution_id = asked.execution_id "
    "JOIN batches b ON b.execution = e.key AND b.first >= coalesce((SELECT max(begun.first) FROM batches begun "
    "WHERE begun.execution = e.key AND begun.first <= asked.next), 0) ORDER BY b.execution, b.first"
)
"""By arrays: a statement of as many values as executions would be compiled anew each time, for 2 to 4 ms."""
CLOSE_S: Final = 3.0
"""How long a store that closes waits for the server; what it has not answered by then stays as it is stored."""


class PostgresStore(Store):
    """The store over a database of PostgreSQL; make one with ``PostgresStore.open``.

    ``async with`` closes it at the end. Writes go through one thread, reads through threads of their own;
    nothing blocks the event loop. Large output values are rows of a table of their own. Several stores, in several
    processes, may have one database open.

    Attributes:
        migrations: The steps to the schema version that this store knows.
    """

    is_shared = True
    migrations: ClassVar[tuple[Migration, ...]] = MIGRATIONS

    def __init__(
        self,
        readers: ReaderPool,
        interruption: Interruption,
        writer: GroupCommitWriter | None = None,
        transactions: PostgresTransactions | None = None,
        artifact_bytes: int = ARTIFACT_BYTES,
    ) -> None:
        super().__init__(readers, writer, artifact_bytes)
        self._threads, self._thread, self._transactions = readers, writer, transactions
        self._interruption = interruption
        self._unanswered: set[str] = set()
        self._holder: Holder | None = None
        self._leader_lock: LeaderLock | None = None
        self._lock: DirectoryLock | None = None
        self._closing: asyncio.Future[None] | None = None
        self._is_expected, self._has_closed = False, threading.Event()

    @classmethod
    def open(
        cls,
        url: str,
        read_only: bool = False,
        *,
        directory: Path | None = None,
        artifact_bytes: int = ARTIFACT_BYTES,
        lease_s: float = LEASE_S,
        is_carried: bool = False,
        capabilities: Collection[str] = (),
    ) -> Self:
        """Open the store of a database, its tables up to date; blocks for some tens of milliseconds.

        Args:
            url: ``postgresql://user:password@host:port/database``, with any parameters of libpq.
            read_only: Whether nothing is written.
            directory: The directory of the one process that drives the executions of the database: it
                owns both, and publishes its address in the directory. None for a process that does not.
            artifact_bytes: The most JSON of an output value that is stored with its event.
            lease_s: How long keys and deliveries stay claimed by a process that was killed or frozen.
            is_carried: Whether a carrier hands executions to several processes: the store has ``owners`` then.
            capabilities: What this process can do for executions that others may not.

        Raises:
            StoreError: ``database-unusable``: it cannot be reached, or is too old; ``storage-of-another-build``;
                ``storage-locked``: another process drives its executions, or owns the directory.
            SchemaTooNew: A newer planwave made the tables, and does without those that this one knows.
        """
        interruption, wait_ms = Interruption(), _WRITER_LOCK_TIMEOUT_MS
        try:
            for_writer = partial(connect, url, interruption, lock_timeout_ms=wait_ms)
            transactions = PostgresTransactions(for_writer, is_carried=is_carried)
            try:
                lock = _prepare(transactions.connection, read_only, directory, cls.migrations)
            except BaseException:
                transactions.close()
                raise
            # Other processes write too: no result is shared.
            readers = _VersionedReaders(reading_engine(url, interruption), len(cls.migrations) + 1)
            if read_only:
                transactions.close()
                return cls(readers, interruption)
            writer = GroupCommitWriter(transactions)
            store = cls(readers, interruption, writer, transactions, artifact_bytes)
            store._lock = lock
            drives = directory is not None and not is_carried
            store._hold(url, writer, lease_s, drives=drives, capabilities=capabilities)
        except (psycopg.Error, DBAPIError) as error:
            raise database_unusable(url, error) from error
        return store

    def _hold(
        self,
        url: str,
        writer: GroupCommitWriter,
        lease_s: float,
        *,
        drives: bool,
        capabilities: Collection[str],
    ) -> None:
        """Say from now on that this opening is alive, and that it leads if it drives; close it if that fails.

        Raises:
            StoreError: ``storage-locked``.
            SchemaTooNew: The tables are not for this version any more.
            psycopg.Error, sqlalchemy.exc.DBAPIError: The server does not answer.
        """
        self.notices = PostgresNotices(url, self._instance_id)
        self.sessions = SharedSessions(self._read, self._write, self.notices)
        if self._transactions is not None and self._transactions.is_carried:
            self.owners = ExecutionOwners(self._read, self._write, self._instance_id, self.notices)
        lock = LeaderLock(partial(connect_raw, url, self._interruption), drives=drives)
        self._leader_lock = self.leadership = lock
        try:
            lock.require()
            self._holder = Holder(
                PostgresTransactions(partial(connect, url, self._interruption)),
                self._instance_id,
                lease_s,
                migrations=self.migrations,
                capabilities=capabilities,
                on_too_old=writer.fail,
            )
            self._holder.start()
            self.now = self._holder.clock.now
        except BaseException:
            self._close_all()
            raise

    @property
    def common_schema(self) -> int:
        """The schema version that every process of the database knows; forms that need a newer one are not written."""
        return len(self.migrations) + 1 if self._holder is None else self._holder.oldest

    async def create_execution(
        self, record: ExecutionRecord, events: Sequence[Event], plan: PlanRecord | None = None
    ) -> None:
        """Store a new execution; see ``Store.create_execution``.

        It is tried again once where the server gave no answer. What was stored by a commit without an answer is done.
        """
        own = record.execution_id
        try:
            await super().create_execution(record, events, plan)
        except StoreError as error:
            if error.code == STORE_UNREACHABLE and own not in self._unanswered:
                # Whether it is stored is found out before the caller lets a key go, under which it is repeated.
                self._unanswered.add(own)
                return await self.create_execution(record, events, plan)
            if own not in self._unanswered or not await self._is_created(error, record, events):
                raise
        return self._unanswered.discard(own)

    async def _is_created(
        self, error: StoreError, record: ExecutionRecord, events: Sequence[Event]
    ) -> bool:
        """Whether an execution that is stored already has this creation, to the letter."""
        if error.code != "duplicate-execution":
            return False
        stored = await self.execution(record.execution_id)
        if stored is None or stored.created_at != record.created_at:
            return False
        first = await self.events(record.execution_id, limit=len(events))
        return self._encode(record.execution_id, first) == self._encode(record.execution_id, events)

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
        if self.owners is not None and events:
            self.notices.publish("events", events_note(execution_id, events[-1].seq))

    async def claim(self, execution_id: str, *, queued: bool | None = None) -> int:
        """Raise the epoch; see ``Store.claim``.

        Raises:
            Conflict: ``driven-elsewhere``: a carrier gave the execution to another process.
        """
        if self.owners is None:
            return await super().claim(execution_id, queued=queued)
        return await self.owners.claim(execution_id, queued)

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        """Record a call; see ``Store.record``.

        Raises:
            StaleEpoch: Another process drives the execution by now, and may make the call: that is not made here.
        """
        if (owned := self.owners) is None:
            return await super().record(key, reply)
        row = call_row(key, reply)

        def change(connection: Connection) -> None:
            owned.require_own(connection, key.execution_id)
            insert_call(connection, row)

        return await self._write(change, key.execution_id)

    async def waits_for(self, execution_ids: Sequence[str]) -> dict[str, WaitsForResponse]:
        return await self._read(lambda connection: waits_for(connection, execution_ids))

    @property
    def stats(self) -> StoreStats:
        """The writes since the store was opened, and whether more are possible."""
        if (silent_s := self._silent_s) <= SILENT_S:
            return super().stats
        return super().stats._replace(transient_error=no_answer(silent_s))

    @property
    def _silent_s(self) -> float:
        if self._thread is None or self._holder is None:
            return 0.0
        # Where nothing is to be written, only the beat shows it.
        return max(self._thread.busy_s, self._holder.silent_s)

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        if self._lock is not None:
            self._lock.publish_address(url, token, is_service=is_service)

    async def events_after(self, afters: Mapping[str, int]) -> dict[str, list[Event]]:
        """Return the events of several executions by one query; see ``Store.events_after``."""
        asked = {
            "ids": [storable_text(of) for of in afters],
            "nexts": [after + 1 for after in afters.values()],
        }

        def read(connection: Connection) -> dict[str, list[Event]]:
            found: dict[str, list[tuple[int, str]]] = defaultdict(list)
            for of, first, events in connection.execute(_BATCHES_AFTER, asked):
                found[of].append((first, events))
            artifacts = self._artifact_reader(connection)
            return {
                of: decode_events(of, rows, afters[of], None, artifacts)
                for of, rows in found.items()
            }

        return await self._read(read)

    def _artifact_reader(self, connection: Connection) -> ReadArtifact:
        def read(digest: str) -> bytes | None:
            own = select(artifacts.c.content).where(artifacts.c.digest == digest)
            return connection.execute(own).scalar()

        return read

    def expect_close(self) -> None:
        """Give up a server that does not answer; see ``Store.expect_close``."""
        if not self._is_expected:
            self._is_expected = True
            threading.Thread(target=self._give_up_silence, daemon=True).start()

    def _give_up_silence(self) -> None:
        while not self._has_closed.wait(CLOSE_S / 4):
            if self._silent_s > CLOSE_S:
                return self._interruption.end_waits()

    async def close(self) -> None:
        """Finish what is queued, then close the connections; a server that does not answer is given up.

        Every call waits for that; cancelling one does not stop it.
        """
        if self._closing is None:
            await super().close()
            self._is_closed = True
            # Not in a thread of the readers: all of them may wait for the server.
            self._closing = asyncio.get_running_loop().run_in_executor(None, self._close_all)
        await asyncio.shield(self._closing)

    def _close_all(self) -> None:
        """Close the connections and end the threads, within about ``CLOSE_S``; blocking."""
        giving_up = threading.Timer(CLOSE_S, self._interruption.end_waits)
        giving_up.daemon = True
        giving_up.start()
        if self._thread is not None:
            self._thread.stop_accepting()
            self._thread.stop()
        if self._holder is not None:
            self._holder.stop()
        if self._leader_lock is not None:
            self._leader_lock.close()
        if self._transactions is not None:
            self._transactions.close()
        self._threads.shutdown()
        self._threads.close()
        if self._lock is not None:
            self._lock.release()
        giving_up.cancel()
        self._has_closed.set()


class _VersionedReaders(ReaderPool):
    """Readers that find out why they cannot read: newer processes may do without the tables and forms of this version.

    They wait only for those that say that they are alive, which an opening that only reads does not.

    Args:
        engine: Opens connections for reading.
        known: The schema version of this process.
    """

    def __init__(self, engine: Engine, known: int) -> None:
        super().__init__(engine, timeout_s=READ_S)
        self._known = known

    def _run_query(self, query: Callable[[Connection], _T]) -> _T:
        try:
            return super()._run_query(query)
        except (Conflict, ProgrammingError) as error:
            state = super()._run_query(schema_state)
            if state.oldest > self._known:
                raise schema_too_new(state, self._known) from error
            raise


def _prepare(
    connection: Connection,
    read_only: bool,
    directory: Path | None,
    migrations: Sequence[Migration],
) -> DirectoryLock | None:
    """Bring the tables up to date, or only check them; lock the directory, if there is one.

    Raises:
        SchemaTooNew, StoreError: See ``PostgresStore.open``.
    """
    if read_only:
        require_current(connection, migrations)
        return None
    migrate(connection, migrations)
    return None if directory is None else _own(directory)


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
