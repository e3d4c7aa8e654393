"""The store over SQL: what those of all databases share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

from sqlalchemy import Connection
from typing_extensions import Unpack

from planwave.errors import Conflict, StoreError
from planwave.events import Event
from planwave.ids import new_id
from planwave.providers.protocols import CallKey
from planwave.storage.artifacts import Artifact, ReadArtifact, offload_artifacts
from planwave.storage.errors import not_found, store_closed
from planwave.storage.event_codec import EncodedBatch, decode_events, encode_batch
from planwave.storage.execution_facts import ExecutionFacts, Spend
from planwave.storage.leadership import Leadership, SoleLeadership
from planwave.storage.notices import NoNotices, Notices
from planwave.storage.records import (
    NEWEST_FIRST,
    AnsweredRequest,
    ExecutionFilters,
    ExecutionRecord,
    ExecutionSort,
    IdempotencyRecord,
    PageCursor,
    PlanRecord,
    Projected,
    Projection,
    StoredCall,
    StoredLoad,
    StoreStats,
)
from planwave.storage.sql import deletes, idempotency, lists, queries
from planwave.storage.sql.appends import AppendOp
from planwave.storage.sql.execution_facts import add_spend, save_facts, save_labels
from planwave.storage.sql.flow_names import name_key
from planwave.storage.sql.locks import LostClaims
from planwave.storage.sql.outbox import Outbox
from planwave.storage.sql.stores.access_tokens import SqlAccessTokens
from planwave.storage.sql.stores.approved_tools import SqlApprovedTools
from planwave.storage.sql.stores.chats import SqlChats
from planwave.storage.sql.stores.input_sets import SqlInputSets
from planwave.storage.sql.stores.links import SqlLinks
from planwave.storage.sql.stores.notifications import SqlNotifications
from planwave.storage.sql.stores.revisions import SqlRevisions
from planwave.storage.sql.stores.spend import SqlSpend
from planwave.storage.sql.stores.triggers import SqlTriggers
from planwave.storage.sql.writer import WriteJob

if TYPE_CHECKING:
    from planwave.shapes.executions import WaitsForResponse
    from planwave.storage.postgres.owners import ExecutionOwners
    from planwave.storage.postgres.sessions import SharedSessions

_T = TypeVar("_T")

ARTIFACT_BYTES: Final = 1024 * 1024
"""Output values with more JSON than this are stored apart from their events."""


class Readers(Protocol):
    """Runs queries for a store."""

    async def read(self, query: Callable[[Connection], _T]) -> _T:
        """Run a query.

        Raises:
            StoreError: ``store-unreadable``.
        """
        ...

    async def read_shared(
        self, key: Hashable, query: Callable[[Connection], _T], *, keep_result: bool = True
    ) -> _T:
        """Run a query, or share the result of the same query since the last commit."""
        ...


class Writer(Protocol):
    """Commits changes for a store: ``GroupCommitWriter``, or the one connection of a database in memory."""

    outbox: Outbox
    commits: int

    @property
    def stats(self) -> StoreStats: ...

    def submit(self, job: WriteJob) -> asyncio.Future[Any]:
        """Commit a job; await the future for its result."""
        ...

    def stop_accepting(self) -> None: ...

    # Only a job may call these.

    def mark_deleted(self, execution_ids: Sequence[str]) -> None: ...

    def release_artifacts(self, digests: Iterable[str]) -> None: ...

    def forget_position(self, execution_id: str) -> None: ...

    def set_document_seqs(self, seqs: Mapping[str, int]) -> int: ...


class Store:
    """Plans, executions, events, recorded calls and idempotency keys, and the parts for all else.

    ``planwave.SqliteStore`` keeps them in a directory and ``planwave.PostgresStore`` in a database, where writes are
    durable on return, and ``planwave.MemoryStore`` in memory.

    Args:
        readers: Runs queries.
        writer: Commits changes; None for a store that is read only.
        artifact_bytes: The most JSON of an output value that is stored with its event; None for all values.

    Attributes:
        requires_approval: Whether callers of a flow start approved revisions only: which revision is live.
        notices: Notes to and from the other openings of the database; a service opens and closes them.
        leadership: Whether this opening leads among those of the database.
        is_shared: Whether other processes may write at the same time.
        now: Returns the UTC time that all processes with this store go by.
        sessions, owners: Which sessions of browsers are closed, and who drives what; None where one process does all.
    """

    requires_approval: bool = False
    is_shared: bool = False
    sessions: SharedSessions | None = None
    owners: ExecutionOwners | None = None

    def __init__(
        self,
        readers: Readers,
        writer: Writer | None,
        artifact_bytes: int | None = ARTIFACT_BYTES,
    ) -> None:
        self._readers = readers
        self._writer = writer
        self._artifact_bytes = artifact_bytes
        self._instance_id = new_id()
        self._is_closed, self._lost_claims = False, LostClaims()
        self.notices: Notices = NoNotices()
        self.leadership: Leadership = SoleLeadership()
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        read, write = self._read, self._write
        self.revisions, self.input_sets = SqlRevisions(read, write), SqlInputSets(read, write)
        self.triggers = SqlTriggers(read, write, self._instance_id)
        self.notifications = SqlNotifications(read, write, writer.outbox if writer else None)
        self.access_tokens, self.links = SqlAccessTokens(read, write), SqlLinks(read, write)
        self.approved_tools = SqlApprovedTools(read, write)
        self.chats, self.spend = SqlChats(read, write), SqlSpend(read, write)

    @property
    def commits(self) -> int:
        """How many transactions were committed since the store was opened."""
        return 0 if self._writer is None else self._writer.commits

    @property
    def stats(self) -> StoreStats:
        """The writes since the store was opened, and whether more are possible."""
        return StoreStats() if self._writer is None else self._writer.stats

    async def load(self) -> StoredLoad:
        """Return the size of the database, and what waits in it."""
        return await self._read(lists.stored_load)

    async def waits_for(self, execution_ids: Sequence[str]) -> dict[str, WaitsForResponse]:
        """Return what executions wait for that not every process can do, by id; nothing where one process has the store."""
        return {}

    async def save_plan(self, plan: PlanRecord, spent: Sequence[Spend] = ()) -> None:
        """Insert a plan, or replace the one of the same id; and what was spent on it, in the same commit.

        Raises:
            Conflict: ``name-taken``: another plan has its name.
        """
        row = queries.plan_row(plan)
        await self._write(lambda c: (queries.save_plan(c, row), add_spend(c, spent)))

    async def plan(self, plan_id: str) -> PlanRecord | None:
        row = await self._read(lambda connection: lists.PLANS.one(connection, plan_id))
        return None if row is None else self._plan(row)

    def _plan(self, row: Any) -> PlanRecord:
        return lists.plan_from_row(row, needs_approval=self.requires_approval)

    async def plans(
        self,
        *,
        text: str | None = None,
        name: str | None = None,
        named: bool | None = None,
        published: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
    ) -> list[PlanRecord]:
        """Return plans, newest first; ``before`` is the id or cursor of the last one of a page.

        ``name``: only the one with this name, whatever its case; ``named``: only flows, or with False only plans
        without a name; ``published``: only those that are published as this.

        Concurrent callers may share the same documents and must not change them.

        Raises:
            NotFound: ``before`` is an unknown id.
        """
        chosen = {
            "text": lists.search_text(text),
            "name_key": None if name is None else name_key(name),
            "named": "named" if named else None,
            "unnamed": "unnamed" if named is False else None,
            "published": None if published is None else f" {published} ",
        }

        def read(connection: Connection) -> list[PlanRecord]:
            rows = lists.PLANS.page(connection, chosen, before, limit)
            return [self._plan(row) for row in rows]

        self._check_open()
        # Not kept: with their documents, pages of plans are large.
        question = ("plans", *chosen.values(), before, limit)
        return list(await self._readers.read_shared(question, read, keep_result=False))

    async def plan_statuses(self, plan_ids: Sequence[str]) -> dict[str, str]:
        """Return the status of the newest execution of each plan; plans without one are omitted."""
        if not plan_ids:
            return {}
        statement = queries.select_newest_statuses(plan_ids)

        def read(connection: Connection) -> dict[str, str]:
            return {own: status for own, status in connection.execute(statement) if status}

        self._check_open()
        return dict(await self._readers.read_shared(("statuses", *plan_ids), read))

    async def delete_plan(self, plan_id: str, *, force: bool = False) -> None:
        """Delete a plan with all its revisions; its executions are kept, with their graphs.

        ``force`` removes what leads to its name: publication, triggers, targets, its place in tokens.

        Raises:
            NotFound: No plan has this id.
            Conflict: ``plan-in-use``: an execution of the plan has not ended; ``flow-in-use``: something
                leads to its name, and ``force`` is not set.
        """
        await self._write(lambda connection: deletes.delete_plan(connection, plan_id, force=force))

    async def create_execution(
        self, record: ExecutionRecord, events: Sequence[Event], plan: PlanRecord | None = None
    ) -> None:
        """Store a new execution with its first events in one commit.

        ``plan`` is stored in the same commit, unless a plan of this id exists.
        """
        batch, artifacts = self._encode(record.execution_id, events)
        row = None if plan is None else queries.plan_row(plan)
        step = AppendOp(record.execution_id, record.epoch, batch, record, row)
        await self._require_writer().submit(WriteJob(step, artifacts))

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        batch, artifacts = self._encode(execution_id, events)
        if batch is not None:
            job = WriteJob(AppendOp(execution_id, epoch, batch), artifacts)
            await self._require_writer().submit(job)
            if batch.notices:
                self.notifications.announce()

    async def claim(self, execution_id: str, *, queued: bool | None = None) -> int:
        """Make the caller the owner: increment the epoch and return it. NotFound if unknown.

        ``queued``, if given, is set in the same commit.
        """
        writer = self._require_writer()

        def change(connection: Connection) -> int:
            writer.forget_position(execution_id)
            return queries.raise_epoch(connection, execution_id, queued)

        return await writer.submit(WriteJob(change, execution_id=execution_id))

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        try:
            return await self._read(lambda c: self._load_events(c, execution_id, after, limit))
        except Conflict:
            if await self.execution(execution_id) is not None:
                raise
            return []  # it was deleted meanwhile, and its large results with it

    async def events_after(self, afters: Mapping[str, int]) -> dict[str, list[Event]]:
        """Return the events of several executions, each after one of its events; errors as in ``events``."""

        def read(connection: Connection) -> dict[str, list[Event]]:
            return {of: self._load_events(connection, of, after) for of, after in afters.items()}

        return await self._read(read)

    def _load_events(
        self, connection: Connection, execution_id: str, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        rows = queries.batches_after(connection, execution_id, after, limit)
        return decode_events(execution_id, rows, after, limit, self._artifact_reader(connection))

    def _artifact_reader(self, connection: Connection) -> ReadArtifact | None:
        """Return what reads large values that are stored apart; None where none are."""
        return None

    async def execution(self, execution_id: str) -> ExecutionRecord | None:
        row = await self._read(lambda connection: lists.EXECUTIONS.one(connection, execution_id))
        return None if row is None else lists.execution_from_row(row)

    async def executions(
        self,
        *,
        status: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
        sort: ExecutionSort = NEWEST_FIRST,
        **filters: Unpack[ExecutionFilters],
    ) -> list[ExecutionRecord]:
        """Return executions, newest first unless ``sort`` says otherwise; ``before`` is as for plans."""
        chosen = {"status": status, **lists.execution_choices(filters)}

        def read(connection: Connection) -> list[ExecutionRecord]:
            rows = lists.executions_page(connection, chosen, before, limit, sort)
            return list(map(lists.execution_from_row, rows))

        self._check_open()
        question = ("executions", *chosen.items(), before, limit, sort)
        return list(await self._readers.read_shared(question, read))

    async def count_executions(self, **filters: Unpack[ExecutionFilters]) -> dict[str, int]:
        """Return the number of executions by status, if any; of those with some words see ``count_by_status``."""
        chosen = lists.execution_choices(filters)
        self._check_open()
        question = ("counts", *chosen.items())
        return dict(
            await self._readers.read_shared(question, lambda c: lists.count_by_status(c, chosen))
        )

    async def label_execution(self, execution_id: str, changes: Mapping[str, Any]) -> None:
        """Change some fields of the ``ExecutionLabels`` of an execution.

        Raises:
            NotFound: No execution has this id.
        """
        if not await self._write(lambda c: save_labels(c, execution_id, changes), execution_id):
            raise not_found("execution", execution_id)

    async def count_open(self, account: str) -> int:
        """Return the number of executions of an account that have not ended, those not started included."""
        return await self._read(lambda connection: lists.count_open(connection, account))

    async def count_forks(self, execution_id: str) -> int:
        """Return the number of forks and retries of an execution, deleted ones not included."""
        return await self._read(lambda connection: lists.count_forks(connection, execution_id))

    async def open_executions(self) -> list[ExecutionRecord]:
        """Return the executions to recover at a start, oldest first: executing, paused, or queued."""
        return [lists.execution_from_row(row) for row in await self._rows(lists.OPEN_EXECUTIONS)]

    async def answered_requests(
        self, *, before: tuple[str, str, int] | None = None, limit: int = 50
    ) -> list[AnsweredRequest]:
        """Return the answered requests to people of all executions, the newest answer first.

        Answers that a timeout gave are among them. ``before`` is the position of the last one of a page.
        """
        return await self._read(lambda connection: lists.answered_page(connection, before, limit))

    async def count_answered_requests(self) -> int:
        return await self._read(lists.count_answered)

    async def delete_execution(self, execution_id: str) -> None:
        """Delete an execution that has ended, with its events, calls, document and large values.

        The first of several commits hides the execution; other writers wait for one commit at most.

        Raises:
            NotFound: No execution has this id.
            Conflict: ``execution-running``.
        """
        writer = self._require_writer()

        def change(connection: Connection) -> None:
            deletes.soft_delete_execution(connection, execution_id)
            writer.mark_deleted([execution_id])

        await writer.submit(WriteJob(change))
        await self._purge_deleted()

    async def prune(self, before: str, limit: int) -> list[str]:
        """Delete up to ``limit`` executions that ended before a UTC time; return their ids."""
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
        """Return the projections of those executions whose document is older than their events.

        ``project`` is called in a thread, for one execution after the other, and reads the events. A
        connection for reading is held meanwhile.

        Raises:
            StoreError: ``store-unreadable``; also any error of ``project``.
        """

        def read(connection: Connection) -> dict[str, Projected]:
            return {
                of.execution_id: project(
                    of, partial(self._load_events, connection, of.execution_id)
                )
                for of in lists.executions_behind(connection, execution_ids)
            }

        return await self._read(read)

    async def set_document_seqs(
        self, seqs: Mapping[str, int], facts: Mapping[str, ExecutionFacts] = MappingProxyType({})
    ) -> list[str]:
        """Set the last event of documents on disk, and what else was projected, in one commit; return unknown ids."""
        writer = self._require_writer()

        def change(connection: Connection) -> list[str]:
            save_facts(connection, facts)
            if writer.set_document_seqs(seqs) == len(seqs):
                return []
            stored_ids = queries.stored_executions(connection, seqs)
            return [execution_id for execution_id in seqs if execution_id not in stored_ids]

        return await writer.submit(WriteJob(change))

    async def lagging_documents(self) -> list[str]:
        """Return the ids of paused or ended executions whose document is older than their events."""
        return [row[0] for row in await self._rows(queries.select_lagging_documents())]

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        rows = await self._rows(queries.select_call(key))
        return json.loads(rows[0][0]) if rows else None

    async def has_calls(self, key: CallKey) -> bool:
        return bool(await self._rows(queries.select_call_of_attempt(key)))

    async def has_other(self, key: CallKey) -> bool:
        return bool(await self._rows(queries.select_other_call(key)))

    async def calls(self, execution_ids: Sequence[str]) -> dict[str, list[StoredCall]]:
        """Return what is recorded of the calls of some executions, by id; those without are left out."""
        by_execution: dict[str, list[StoredCall]] = {}
        for *key, reply in await self._rows(queries.select_calls(execution_ids)):
            call = StoredCall(CallKey(*key), json.loads(reply))
            by_execution.setdefault(call.key.execution_id, []).append(call)
        return by_execution

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        row = queries.call_row(key, reply)
        await self._write(lambda connection: queries.insert_call(connection, row))

    async def idempotency_record(self, key: str) -> IdempotencyRecord | None:
        """Return the record of an idempotency key, or None."""
        rows = await self._rows(idempotency.select_record(key))
        return idempotency.record_from_row(rows[0]) if rows else None

    async def claim_idempotency_key(
        self, key: str, digest: str, at: str, *, expired: str
    ) -> IdempotencyRecord:
        """Claim a key for the caller, or return its record; only one caller claims a key.

        A key claimed before ``expired`` is free again, unless the execution that its request created has not
        ended. A key whose process died before the response is free too, and keeps its ``subject``.
        """
        claim = partial(idempotency.claim, holder=self._instance_id)
        return await self._lost_claims.claim(
            (key,), self._write, lambda c, lost: claim(c, key, digest, at, expired, is_lost=lost)
        )

    async def store_response(self, key: str, status: int, body: str) -> None:
        """Store the response to the request that claimed a key; nothing where another process has it by now."""
        statement = idempotency.set_response(key, self._instance_id, status, body)
        await self._write(lambda connection: connection.execute(statement))

    async def release_idempotency_key(self, key: str, *, keeps_subject: bool = False) -> None:
        """Release a key whose request failed, or any process may repeat; one with a response stays."""
        free = idempotency.leave if keeps_subject else idempotency.delete_unanswered
        statement = free(key, self._instance_id)
        await self._lost_claims.release((key,), self._write(lambda c: c.execute(statement)))

    async def delete_expired_keys(self, expired: str) -> int:
        """Delete the keys that are free again; return their number."""
        forgotten, some = 0, idempotency.DELETE_BATCH_SIZE
        while some == idempotency.DELETE_BATCH_SIZE:
            some = await self._write(lambda c: idempotency.delete_expired(c, expired))
            forgotten += some
        return forgotten

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        """Publish the address and token of the API of this process, for other processes.

        Args:
            url: None withdraws the address.
            token: The bearer token of the API, None without one.
            is_service: Whether the process is a service, rather than a command that ends by itself.
        """

    def expect_close(self) -> None:
        """Give up a server that does not answer: ``close`` comes as soon as nothing waits for it any more."""

    async def close(self) -> None:
        """Refuse writes from now on."""
        if self._writer is not None:
            self._writer.stop_accepting()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _require_writer(self) -> Writer:
        if self._writer is None:
            raise StoreError("the store was opened for reading only", code="store-read-only")
        return self._writer

    async def _write(
        self, change: Callable[[Connection], Any], execution_id: str | None = None
    ) -> Any:
        return await self._require_writer().submit(WriteJob(change, execution_id=execution_id))

    def _encode(
        self, execution_id: str, events: Sequence[Event]
    ) -> tuple[EncodedBatch | None, Sequence[Artifact]]:
        """Return the row of a batch, and the large values that are stored apart from it."""
        batch, most = encode_batch(execution_id, events), self._artifact_bytes
        if batch is None or most is None or _is_within(batch.text, most):
            return batch, ()
        artifacts: list[Artifact] = []
        slim: list[Event] = []
        for event in events:
            reduced, offloaded = offload_artifacts(event, most)
            slim.append(reduced)
            artifacts += offloaded
        return (encode_batch(execution_id, slim) if artifacts else batch), artifacts

    async def _read(self, query: Callable[[Connection], _T]) -> _T:
        """Run a query.

        Raises:
            StoreError: It cannot be read, or the store was closed.
        """
        self._check_open()
        return await self._readers.read(query)

    def _check_open(self) -> None:
        if self._is_closed:
            raise store_closed()

    async def _rows(self, statement: queries.Rows) -> list[Any]:
        return await self._read(lambda connection: list(connection.execute(statement)))


def _is_within(text: str, size: int) -> bool:
    return (len(text) if text.isascii() else len(text.encode())) <= size
