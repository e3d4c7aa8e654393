"""The store on SQLite: one file, one writer thread with group commit, and reader threads."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from planwave.errors import Conflict, StoreError
from planwave.events import Event
from planwave.ids import new_id
from planwave.providers.protocols import CallKey
from planwave.storage.errors import not_found, store_closed
from planwave.storage.event_codec import EncodedBatch, decode_events, encode_batch
from planwave.storage.files import (
    Artifact,
    offload_artifacts,
    remove_temporary_files,
    require_directory,
)
from planwave.storage.lock import DirectoryLock
from planwave.storage.ownership import make_directory
from planwave.storage.records import (
    AnsweredRequest,
    ExecutionRecord,
    IdempotencyRecord,
    PageCursor,
    PlanRecord,
    Projected,
    Projection,
    StoredCall,
    StoreStats,
)
from planwave.storage.sqlite import deletes, idempotency, queries
from planwave.storage.sqlite.appends import AppendOp
from planwave.storage.sqlite.connection import (
    DATABASE_NAME,
    close,
    close_after_failure,
    database_unusable,
    open_for_reading,
    open_for_writing,
    reading_engine,
)
from planwave.storage.sqlite.flow_names import name_key
from planwave.storage.sqlite.lists import (
    EXECUTIONS,
    OPEN_EXECUTIONS,
    PLANS,
    answered_page,
    count_answered,
    count_by_status,
    count_forks,
    count_open,
    execution_from_row,
    plan_from_row,
    search_text,
)
from planwave.storage.sqlite.readers import ReaderPool
from planwave.storage.sqlite.stores.access_tokens import SqliteAccessTokens
from planwave.storage.sqlite.stores.approved_tools import SqliteApprovedTools
from planwave.storage.sqlite.stores.chats import SqliteChats
from planwave.storage.sqlite.stores.notifications import SqliteNotifications
from planwave.storage.sqlite.stores.revisions import SqliteRevisions
from planwave.storage.sqlite.stores.triggers import SqliteTriggers
from planwave.storage.sqlite.writer import GroupCommitWriter, WriteJob

_T = TypeVar("_T")

ARTIFACT_BYTES: Final = 1024 * 1024
"""Output values with more JSON than this are kept in files of their own."""


class SqliteStore:
    """The ``Store`` port over ``<directory>/planwave.db``; make one with :meth:`open`.

    ``async with`` closes it at the end; so does ``with`` in code without an event loop.

    Writes go through one thread (``writer.py``), reads through threads of their own; nothing blocks
    the event loop. Output values over ``artifact_bytes`` of JSON live in ``<directory>/artifacts``.
    """

    def __init__(
        self,
        directory: Path,
        readers: ReaderPool | None = None,
        writer: GroupCommitWriter | None = None,
        *,
        lock: DirectoryLock | None = None,
        artifact_bytes: int = ARTIFACT_BYTES,
    ) -> None:
        if readers is None:
            raise TypeError(f"a store is opened: planwave.SqliteStore.open({str(directory)!r})")
        self._directory = directory
        self._readers = readers
        self._writer = writer
        self._lock = lock
        self._artifact_bytes = artifact_bytes
        self._closing: asyncio.Future[None] | None = None
        self._connection: Connection | None = None
        self._instance_id = new_id()
        self._revisions = SqliteRevisions(self._read, self._write)
        self._triggers = SqliteTriggers(self._read, self._write, self._instance_id)
        outbox = None if writer is None else writer.outbox
        self._notifications = SqliteNotifications(self._read, self._write, outbox)
        self._access_tokens = SqliteAccessTokens(self._read, self._write)
        self._approved_tools = SqliteApprovedTools(self._read, self._write)
        self._chats = SqliteChats(self._read, self._write)

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
                return cls(directory, ReaderPool(open_for_reading(path, migrates=migrates)), None)
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
        raw, connection = open_for_writing(path)
        writer = GroupCommitWriter(connection, raw, directory)
        readers = ReaderPool(reading_engine(path), lambda: writer.commits)
        store = cls(directory, readers, writer, lock=lock, artifact_bytes=artifact_bytes)
        store._connection = connection
        return store

    @property
    def commits(self) -> int:
        """How many transactions were committed since the store was opened."""
        return 0 if self._writer is None else self._writer.commits

    @property
    def stats(self) -> StoreStats:
        return StoreStats() if self._writer is None else self._writer.stats

    @property
    def revisions(self) -> SqliteRevisions:
        return self._revisions

    @property
    def triggers(self) -> SqliteTriggers:
        return self._triggers

    @property
    def notifications(self) -> SqliteNotifications:
        return self._notifications

    @property
    def access_tokens(self) -> SqliteAccessTokens:
        return self._access_tokens

    @property
    def approved_tools(self) -> SqliteApprovedTools:
        return self._approved_tools

    @property
    def chats(self) -> SqliteChats:
        return self._chats

    async def save_plan(self, plan: PlanRecord) -> None:
        row = queries.plan_row(plan)
        await self._write(lambda connection: queries.save_plan(connection, row))

    async def plan(self, plan_id: str) -> PlanRecord | None:
        found = await self._read(lambda connection: PLANS.one(connection, plan_id))
        return None if found is None else plan_from_row(found)

    async def flow_named(self, name: str) -> PlanRecord | None:
        chosen = {"name_key": name_key(name)}
        rows = await self._read(lambda connection: PLANS.page(connection, chosen, None, 1))
        return plan_from_row(rows[0]) if rows else None

    async def plans(
        self,
        *,
        text: str | None = None,
        named: bool = False,
        published: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
    ) -> list[PlanRecord]:
        chosen = {
            "text": search_text(text),
            "named": "named" if named else None,
            "published": None if published is None else f" {published} ",
        }

        def read(connection: Connection) -> list[PlanRecord]:
            rows = PLANS.page(connection, chosen, before, limit)
            return [plan_from_row(row) for row in rows]

        self._check_open()
        # Not kept: with their documents, pages of plans are large.
        question = ("plans", *chosen.values(), before, limit)
        return list(await self._readers.read_shared(question, read, keep_result=False))

    async def plan_statuses(self, plan_ids: Sequence[str]) -> dict[str, str]:
        statement = queries.select_newest_statuses(plan_ids)

        def read(connection: Connection) -> dict[str, str]:
            found = connection.execute(statement)
            return {plan_id: status for plan_id, status in found if status is not None}

        self._check_open()
        return dict(await self._readers.read_shared(("statuses", *plan_ids), read))

    async def delete_plan(self, plan_id: str, *, force: bool = False) -> None:
        await self._write(lambda connection: deletes.delete_plan(connection, plan_id, force=force))

    async def create_execution(
        self, record: ExecutionRecord, events: Sequence[Event], plan: PlanRecord | None = None
    ) -> None:
        batch, artifacts = self._encode(record.execution_id, events)
        row = None if plan is None else queries.plan_row(plan)
        step = AppendOp(record.execution_id, record.epoch, batch, record, row)
        await self._require_writer().submit(WriteJob(step, artifacts))

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        batch, artifacts = self._encode(execution_id, events)
        if batch is not None:
            await self._require_writer().submit(
                WriteJob(AppendOp(execution_id, epoch, batch), artifacts)
            )
            if batch.notices:
                self._notifications.announce()

    async def claim(self, execution_id: str, *, queued: bool | None = None) -> int:
        writer = self._require_writer()

        def change(connection: Connection) -> int:
            writer.forget_position(execution_id)
            epoch = connection.execute(
                queries.raise_epoch(execution_id, queued)
            ).scalar_one_or_none()
            if epoch is None:
                raise not_found("execution", execution_id)
            return epoch

        return await writer.submit(WriteJob(change))

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        try:
            return await self._read(lambda c: self._load_events(c, execution_id, after, limit))
        except Conflict:
            if await self.execution(execution_id) is not None:
                raise
            return []  # it was deleted meanwhile, and its large results with it

    def _load_events(
        self, connection: Connection, execution_id: str, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        rows = queries.batches_after(connection, execution_id, after, limit)
        return decode_events(execution_id, rows, after, limit, self._directory)

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        found = await self._read(lambda connection: EXECUTIONS.one(connection, execution_id))
        return None if found is None else execution_from_row(found)

    async def executions(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        since: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
        plan_id: str | None = None,
        as_flow: bool = False,
    ) -> list[ExecutionRecord]:
        chosen = {
            "status": status,
            "text": search_text(text),
            "since": since,
            "plan_id": plan_id,
            "as_flow": "flow" if as_flow else None,
        }

        def read(connection: Connection) -> list[ExecutionRecord]:
            rows = EXECUTIONS.page(connection, chosen, before, limit)
            return [execution_from_row(row) for row in rows]

        question = ("executions", *chosen.values(), before, limit)
        self._check_open()
        return list(await self._readers.read_shared(question, read))

    async def count_executions(
        self,
        *,
        text: str | None = None,
        since: str | None = None,
        plan_id: str | None = None,
        as_flow: bool = False,
    ) -> dict[str, int]:
        chosen = {
            "text": search_text(text),
            "since": since,
            "plan_id": plan_id,
            "as_flow": "flow" if as_flow else None,
        }
        self._check_open()
        question = ("counts", *chosen.values())
        counted = self._readers.read_shared(question, lambda c: count_by_status(c, chosen))
        return dict(await counted)

    async def count_open(self, account: str) -> int:
        self._check_open()
        return await self._readers.read(lambda connection: count_open(connection, account))

    async def count_forks(self, execution_id: str) -> int:
        self._check_open()
        return await self._readers.read(lambda connection: count_forks(connection, execution_id))

    async def open_executions(self) -> list[ExecutionRecord]:
        return [execution_from_row(row) for row in await self._rows(OPEN_EXECUTIONS)]

    async def answered_requests(
        self, *, before: tuple[str, str, int] | None = None, limit: int = 50
    ) -> list[AnsweredRequest]:
        return await self._read(lambda connection: answered_page(connection, before, limit))

    async def count_answered_requests(self) -> int:
        return await self._read(count_answered)

    async def delete_execution(self, execution_id: str) -> None:
        writer = self._require_writer()

        def change(connection: Connection) -> None:
            deletes.soft_delete_execution(connection, execution_id)
            writer.mark_deleted([execution_id])

        await writer.submit(WriteJob(change))
        await self._purge_deleted()

    async def prune(self, before: str, limit: int) -> list[str]:
        writer = self._require_writer()

        def change(connection: Connection) -> list[str]:
            ids = deletes.soft_delete_ended(connection, before, limit)
            writer.mark_deleted(ids)
            return ids

        ids = await writer.submit(WriteJob(change))
        await self._purge_deleted()
        return ids

    async def _purge_deleted(self) -> None:
        """Remove what is deleted, piece by piece."""
        writer, is_done = self._require_writer(), False

        def change(connection: Connection) -> bool:
            swept = deletes.purge(connection)
            writer.release_artifacts(swept.digests)
            return swept.is_done

        while not is_done:
            is_done = await writer.submit(WriteJob(change))

    async def project_each(
        self, execution_ids: Sequence[str], project: Projection[Projected]
    ) -> dict[str, Projected]:
        def read(connection: Connection) -> dict[str, Projected]:
            rows = (EXECUTIONS.one(connection, each) for each in execution_ids)
            found = (execution_from_row(row) for row in rows if row is not None)
            return {
                of.execution_id: project(
                    of, partial(self._load_events, connection, of.execution_id)
                )
                for of in found
                if of.is_behind
            }

        return await self._read(read)

    async def set_document_seqs(self, seqs: Mapping[str, int]) -> list[str]:
        return await self._write(lambda connection: queries.update_document_seqs(connection, seqs))

    async def lagging_documents(self) -> list[str]:
        return [row[0] for row in await self._rows(queries.select_lagging_documents())]

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        found = await self._rows(queries.select_call(key))
        return json.loads(found[0][0]) if found else None

    async def has_calls(self, key: CallKey) -> bool:
        return bool(await self._rows(queries.select_call_of_attempt(key)))

    async def has_other(self, key: CallKey) -> bool:
        return bool(await self._rows(queries.select_other_call(key)))

    async def calls(self, execution_ids: Sequence[str]) -> dict[str, list[StoredCall]]:
        found: dict[str, list[StoredCall]] = {}
        for *key, reply in await self._rows(queries.select_calls(execution_ids)):
            call = StoredCall(CallKey(*key), json.loads(reply))
            found.setdefault(call.key.execution_id, []).append(call)
        return found

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        statement = queries.insert_call(key, reply)
        await self._write(lambda connection: connection.execute(statement))

    async def idempotency_record(self, key: str) -> IdempotencyRecord | None:
        found = await self._rows(idempotency.select_record(key))
        return idempotency.record_from_row(found[0]) if found else None

    async def claim_idempotency_key(
        self, key: str, digest: str, at: str, *, expired: str
    ) -> IdempotencyRecord:
        holder = self._instance_id
        return await self._write(
            lambda connection: idempotency.claim(connection, key, digest, at, expired, holder)
        )

    async def store_response(self, key: str, status: int, body: str) -> None:
        statement = idempotency.set_response(key, status, body)
        await self._write(lambda connection: connection.execute(statement))

    async def release_idempotency_key(self, key: str) -> None:
        statement = idempotency.delete_unanswered(key)
        await self._write(lambda connection: connection.execute(statement))

    async def delete_expired_keys(self, expired: str) -> int:
        forgotten = 0
        while True:
            some = await self._write(
                lambda connection: idempotency.delete_expired(connection, expired)
            )
            forgotten += some
            if some < idempotency.DELETE_BATCH_SIZE:
                return forgotten

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        owner: dict[str, Any] = {"pid": os.getpid()}
        if url is not None:
            owner |= {"url": url, "token": token}
            if not is_service:
                owner["is_service"] = False
        if self._lock is not None:
            self._lock.write_owner(owner)

    async def close(self) -> None:
        """Finish what is queued, then let the directory go.

        Every call waits for that; cancelling one does not stop it.
        """
        if self._closing is None:
            if self._writer is not None:
                self._writer.stop_accepting()
            self._closing = self._readers.run(self._close_files)
        await asyncio.shield(self._closing)
        self._readers.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __enter__(self) -> Self:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self
        self._close_files()  # else its directory stays locked
        self._readers.shutdown()
        raise RuntimeError("in an event loop write: async with planwave.SqliteStore.open(…)")

    def __exit__(self, *_: object) -> None:
        asyncio.run(self.close())

    def _close_files(self) -> None:
        if self._writer is not None:
            self._writer.stop()
        self._readers.close()
        if self._connection is not None:
            if self.stats.fatal_error is None:
                close(self._connection)
            else:
                close_after_failure(self._connection, self._directory / DATABASE_NAME)
        if self._lock is not None:
            self._lock.release()

    def _require_writer(self) -> GroupCommitWriter:
        if self._writer is None:
            raise StoreError("the store was opened for reading only", code="store-read-only")
        return self._writer

    async def _write(self, change: Callable[[Connection], Any]) -> Any:
        return await self._require_writer().submit(WriteJob(change))

    def _encode(
        self, execution_id: str, events: Sequence[Event]
    ) -> tuple[EncodedBatch | None, Sequence[Artifact]]:
        """Return the row of a batch, and the large values to write to files first."""
        batch = encode_batch(execution_id, events)
        if batch is None or _utf8_size(batch.text) <= self._artifact_bytes:
            return batch, ()
        artifacts: list[Artifact] = []
        slim: list[Event] = []
        for event in events:
            reduced, offloaded = offload_artifacts(event, self._artifact_bytes)
            slim.append(reduced)
            artifacts += offloaded
        return (encode_batch(execution_id, slim) if artifacts else batch), artifacts

    async def _read(self, query: Callable[[Connection], _T]) -> _T:
        """Run a query in a reader thread.

        Raises:
            StoreError: It cannot be read, or the store was closed.
        """
        self._check_open()
        return await self._readers.read(query)

    def _check_open(self) -> None:
        if self._closing is not None:
            raise store_closed()

    async def _rows(self, statement: queries.Rows) -> list[Any]:
        return await self._read(lambda connection: list(connection.execute(statement)))


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
