"""The store on SQLite: one file, one writing thread with group commit, readers beside it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from planwave.errors import StoreError
from planwave.events import Event
from planwave.providers.api import CallKey
from planwave.storage import queries, schema
from planwave.storage.faults import cause_of
from planwave.storage.files import Artifact, bring_back, put_aside, remove_unfinished
from planwave.storage.lock import DirectoryLock
from planwave.storage.records import ExecutionRecord, PlanRecord
from planwave.storage.rows import EventRows, closed, event_of, event_rows, no_execution
from planwave.storage.schema import executions, plans
from planwave.storage.writer import GroupCommit, Job, Step

_T = TypeVar("_T")

ARTIFACT_BYTES: Final = 1024 * 1024
"""Output values with more JSON than this are kept in files of their own."""

_READERS: Final = 2


class SqliteStore:
    """The ``Store`` port over ``<directory>/planwave.db``; make one with :meth:`open`.

    Writes go through one thread (``writer.py``), reads through threads of their own; nothing blocks
    the event loop. Output values over ``artifact_bytes`` of JSON live in ``<directory>/artifacts``.
    """

    def __init__(
        self,
        directory: Path,
        readers: Engine,
        writer: GroupCommit | None,
        *,
        lock: DirectoryLock | None = None,
        artifact_bytes: int = ARTIFACT_BYTES,
    ) -> None:
        self._directory = directory
        self._readers = readers
        self._writer = writer
        self._lock = lock
        self._artifact_bytes = artifact_bytes
        self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="planwave-reader")
        self._closing: asyncio.Future[None] | None = None
        self._connection: Connection | None = None

    @classmethod
    def open(
        cls, directory: Path, read_only: bool = False, *, artifact_bytes: int = ARTIFACT_BYTES
    ) -> Self:
        """Open the store of a directory; blocks for some milliseconds.

        Read-only, it works while another process writes, and is empty where nothing was ever
        stored. Otherwise the directory is made if need be, and locked against other writers.

        Raises:
            StoreError: ``storage-locked`` (another process writes here), ``store-unusable``.
            SchemaTooNew: A newer planwave wrote the database.
        """
        path = directory / schema.DATABASE_NAME
        try:
            if read_only:
                return cls(directory, _engine_for_reading(path), None)
            directory.mkdir(parents=True, exist_ok=True)
            lock = DirectoryLock(directory)
        except (OSError, sqlite3.Error, DBAPIError) as error:
            raise schema.unusable(path, error) from error
        try:
            return cls._open_for_writing(directory, lock, artifact_bytes)
        except BaseException as error:
            lock.release()
            if isinstance(error, OSError | sqlite3.Error | DBAPIError):
                raise schema.unusable(path, error) from error
            raise

    @classmethod
    def _open_for_writing(cls, directory: Path, lock: DirectoryLock, artifact_bytes: int) -> Self:
        remove_unfinished(directory)
        path = directory / schema.DATABASE_NAME
        raw = schema.writing_connection(path)
        connection = schema.engine_of(raw).connect()
        try:
            schema.migrate(connection)
        except BaseException:
            connection.close()
            connection.engine.dispose()
            raise
        writer = GroupCommit(connection, raw, directory)
        readers = schema.reading_engine(path)
        store = cls(directory, readers, writer, lock=lock, artifact_bytes=artifact_bytes)
        store._connection = connection
        return store

    @property
    def commits(self) -> int:
        """How many transactions were committed since the store was opened."""
        return 0 if self._writer is None else self._writer.commits

    async def save_plan(self, plan: PlanRecord) -> None:
        statement = queries.keeping_plan(plan)
        await self._write(lambda connection: connection.execute(statement))

    async def plan(self, plan_id: str) -> PlanRecord | None:
        found = await self._rows(queries.plans_like().where(plans.c.plan_id == plan_id))
        return queries.plan_of(found[0]) if found else None

    async def plans(
        self, *, text: str | None = None, before: str | None = None, limit: int = 50
    ) -> list[PlanRecord]:
        found = queries.plans_like(text)
        return await self._read(
            lambda connection: queries.page_of(
                connection, found, plans, before, limit, queries.plan_of
            )
        )

    async def create_execution(self, record: ExecutionRecord, events: Sequence[Event]) -> None:
        batch, artifacts = self._prepared(record.execution_id, events)
        writer = self._writing()

        def create(connection: Connection) -> None:
            queries.insert_execution(connection, record)
            if batch is not None:
                writer.append_now([Step(record.execution_id, record.epoch, batch)])

        await writer.submit(Job(create, artifacts))

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        batch, artifacts = self._prepared(execution_id, events)
        if batch is not None:
            await self._writing().submit(Job(Step(execution_id, epoch, batch), artifacts))

    async def claim(self, execution_id: str) -> int:
        writer = self._writing()

        def change(connection: Connection) -> int:
            writer.forget(execution_id)
            epoch = connection.execute(queries.claiming(execution_id)).scalar_one_or_none()
            if epoch is None:
                raise no_execution(execution_id)
            return epoch

        return await writer.submit(Job(change))

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        def read(connection: Connection) -> list[Event]:
            found: list[Event] = []
            for row in connection.execute(queries.events_after(execution_id, after, limit)):
                event = event_of(execution_id, row)
                # A cheap look first: hardly any event has values kept aside.
                aside = '"artifact":' in row.data
                found.append(bring_back(event, self._directory) if aside else event)
            return found

        return await self._read(read)

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        own = executions.c.execution_id == execution_id
        found = await self._rows(queries.executions_like().where(own))
        return queries.execution_of(found[0]) if found else None

    async def executions(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        since: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[ExecutionRecord]:
        found = queries.executions_like(status, text, since)
        return await self._read(
            lambda connection: queries.page_of(
                connection, found, executions, before, limit, queries.execution_of
            )
        )

    async def set_document_seq(self, execution_id: str, seq: int) -> None:
        def change(connection: Connection) -> None:
            if connection.execute(queries.noting_document(execution_id, seq)).rowcount == 0:
                raise no_execution(execution_id)

        await self._write(change)

    async def lagging_documents(self) -> list[str]:
        return [row[0] for row in await self._rows(queries.behind_their_events())]

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        found = await self._rows(queries.call_of(key))
        return json.loads(found[0][0]) if found else None

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        statement = queries.keeping_call(key, reply)
        await self._write(lambda connection: connection.execute(statement))

    async def close(self) -> None:
        """Finish what is queued, then let the directory go.

        Every call waits for that; cancelling one does not stop it.
        """
        if self._closing is None:
            if self._writer is not None:
                self._writer.refuse()
            loop = asyncio.get_running_loop()
            self._closing = loop.run_in_executor(self._threads, self._stop)
        await asyncio.shield(self._closing)
        self._threads.shutdown()

    def _stop(self) -> None:
        if self._writer is not None:
            self._writer.stop()
        self._readers.dispose()
        if self._connection is not None:
            self._connection.close()
            self._connection.engine.dispose()
        if self._lock is not None:
            self._lock.release()

    def _writing(self) -> GroupCommit:
        if self._writer is None:
            raise StoreError("the store was opened for reading only", code="store-read-only")
        return self._writer

    async def _write(self, change: Callable[[Connection], Any]) -> Any:
        return await self._writing().submit(Job(change))

    def _prepared(
        self, execution_id: str, batch: Sequence[Event]
    ) -> tuple[EventRows | None, Sequence[Artifact]]:
        """Give the rows of a batch, and the large values that go to files before it."""
        rows = event_rows(execution_id, batch)
        if rows is None or rows.longest <= self._artifact_bytes:
            return rows, ()
        artifacts: list[Artifact] = []
        slim: list[Event] = []
        for event in batch:
            kept, aside = put_aside(event, self._artifact_bytes)
            slim.append(kept)
            artifacts += aside
        return event_rows(execution_id, slim), artifacts

    async def _read(self, query: Callable[[Connection], _T]) -> _T:
        """Run a query in a reader thread.

        Raises:
            StoreError: It cannot be read, or the store was closed.
        """
        if self._closing is not None:
            raise closed()

        def read() -> _T:
            with self._readers.connect() as connection:
                return query(connection)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, read)
        except DBAPIError as error:
            cause = cause_of(error)
            raise StoreError(
                f"the store cannot be read: {cause}", code="store-unreadable"
            ) from error

    async def _rows(self, statement: queries.Rows) -> list[Any]:
        return await self._read(lambda connection: list(connection.execute(statement)))


def _engine_for_reading(path: Path) -> Engine:
    if not path.exists():
        return schema.empty_engine()
    engine = schema.reading_engine(path)
    try:
        version = _version_of(engine)
    except DBAPIError:
        engine.dispose()
        if schema.has_log(path):
            raise
        # A disk that is full or read-only has no place for what readers and a writer share.
        engine = schema.reading_engine(path, unchanging=True)
        version = _version_of(engine)
    if version == 0:  # a writer has made the file, but no table yet
        engine.dispose()
        return schema.empty_engine()
    return engine


def _version_of(engine: Engine) -> int:
    with engine.connect() as connection:
        return schema.version_of(connection)
