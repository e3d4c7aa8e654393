"""Queries: stored plans, flows and executions, read without running anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Self

from planwave.errors import InputError, NotFound
from planwave.events import Event, ExecutionState, fold
from planwave.service.flows.flow_queries import FlowQueries
from planwave.service.plans.documents import load_plan
from planwave.service.plans.revisions import RevisionQueries
from planwave.service.queries.answered import AnsweredRequests
from planwave.service.queries.diff import diff
from planwave.service.queries.digest import (
    DigestCache,
    ExecutionDigest,
    PendingRequest,
    pending_requests,
)
from planwave.service.queries.explain import explain
from planwave.service.streaming.stored_execution import load_events, load_record, load_state
from planwave.storage.backup import back_up
from planwave.storage.documents import (
    build_document,
    build_node_document,
    document_pieces,
    open_document,
)
from planwave.storage.event_codec import ACTIVE_STATUSES
from planwave.storage.records import ExecutionRecord, PageCursor, PlanRecord, StoredCall

if TYPE_CHECKING:
    from planwave.shapes.common import PlanStatus
    from planwave.shapes.executions import (
        DifferenceResponse,
        DocumentNode,
        DocumentResponse,
        ExecutionCounts,
        ExplainResponse,
    )
    from planwave.storage.backup import Backup
    from planwave.storage.sqlite.sql_store import Store

_PAGE: Final = 500
"""Executions read at once."""
_MAX_READABLE: Final = 10_000
"""Executions whose events are known to be readable, and are not read for each copy of a document."""


class QueryService:
    """Reads plans, flows and executions of one store.

    Args:
        store: Where they are kept; closed together with this.
        directory: Where JSON documents lie, or None where none are written.
        live_state: Returns the state of an execution that this process runs or watches, or None.
    """

    def __init__(
        self,
        store: Store,
        directory: Path | None,
        live_state: Callable[[str], ExecutionState | None] = lambda _: None,
    ) -> None:
        self._store = store
        self.directory = directory
        self._readable: dict[str, int] = {}
        self.digests = DigestCache(store, live_state).of
        self.answered_requests = AnsweredRequests(store).page
        flows = FlowQueries(store)
        self.flow = flows.flow
        self.flow_to_start = flows.flow_to_start
        self.startable = flows.startable
        self.flows = flows.flows
        self.flow_summaries = flows.flow_summaries
        self.published_flows = flows.published_flows
        revisions = RevisionQueries(store)
        self.plan_revisions = revisions.plan_revisions
        self.plan_revision = revisions.plan_revision
        self.diff_revisions = revisions.diff_revisions

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store; all writes are durable then."""
        await self._store.close()

    async def plan(self, plan_id: str) -> PlanRecord:
        """Return a stored plan.

        Raises:
            NotFound: There is none of that id.
        """
        return await load_plan(self._store, plan_id)

    async def plans(
        self,
        *,
        text: str | None = None,
        name: str | None = None,
        named: bool | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
    ) -> list[PlanRecord]:
        """Return plans, newest first, each in its newest revision.

        Args:
            text: Only those with this in name, title, description or goal.
            name: Only the one with this name, whatever its case.
            named: Only flows; False: only those without a name.
            before: The last one already seen: its id, or its place.
            limit: How many at most.
        """
        return await self._store.plans(
            text=text, name=name, named=named, before=before, limit=limit
        )

    async def execution(self, execution_id: str) -> ExecutionRecord:
        """Return the record of an execution.

        Raises:
            NotFound: There is none of that id.
        """
        return await load_record(self._store, execution_id)

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
        waiting: bool = False,
    ) -> list[ExecutionRecord]:
        """Return executions, newest first.

        Args:
            status: Only those that are this.
            text: Only those with this in title or goal, whatever its case.
            since: Only those made at this time or later, ISO 8601 (without zone: UTC).
            before: The last one already seen: its id, or its place.
            limit: How many at most.
            plan_id: Only those of this plan.
            as_flow: Only those that were started as a flow.
            waiting: Only those with an open request to people; they are executing or paused.

        Raises:
            InputError: ``invalid-time``.
            NotFound: No execution has the id ``before``.
        """
        filters = _filters(text, since, plan_id, as_flow)
        if not waiting:
            return await self._store.executions(
                status=status, before=before, limit=limit, **filters
            )
        statuses = [each for each in ACTIVE_STATUSES if status in (None, each)]
        found = await self._waiting_executions(statuses, before, filters)
        found.sort(key=lambda each: (each.created_at, each.execution_id), reverse=True)
        return found[:limit]

    async def count_executions(
        self,
        *,
        text: str | None = None,
        since: str | None = None,
        plan_id: str | None = None,
        as_flow: bool = False,
    ) -> ExecutionCounts:
        """Return the number of executions: ``total``, by status, and of those ``waiting``.

        The filters are those of :meth:`executions`.

        Raises:
            InputError: ``invalid-time``.
        """
        filters = _filters(text, since, plan_id, as_flow)
        counts = await self._store.count_executions(**filters)
        waiting = await self._waiting_executions(ACTIVE_STATUSES, None, filters)
        return {
            "total": sum(counts.values()),
            "waiting": len(waiting),
            "starting": counts.get("starting", 0),
            "executing": counts.get("executing", 0),
            "paused": counts.get("paused", 0),
            "completed": counts.get("completed", 0),
            "failed": counts.get("failed", 0),
            "cancelled": counts.get("cancelled", 0),
        }

    async def _waiting_executions(
        self,
        statuses: Sequence[str],
        before: str | PageCursor | None,
        filters: Mapping[str, Any],
    ) -> list[ExecutionRecord]:
        """Return the executions of these statuses that wait for a person."""
        records = await self._all_executions(statuses, before, filters)
        digests = await self.digests(records, most_events=inf)
        return [each for each in records if _is_waiting(digests.get(each.execution_id))]

    async def pending_requests(self) -> list[PendingRequest]:
        """Return the open requests to people of all executions, the soonest deadline first."""
        records = await self._all_executions(ACTIVE_STATUSES, None, {})
        return pending_requests(records, await self.digests(records, most_events=inf))

    async def _all_executions(
        self,
        statuses: Sequence[str],
        before: str | PageCursor | None,
        filters: Mapping[str, Any],
    ) -> list[ExecutionRecord]:
        """Return all executions of these statuses, page by page from the store.

        The status of one may change between two reads: it is returned once, as it was read last.
        """
        records: dict[str, ExecutionRecord] = {}
        for status in statuses:
            last = before
            while page := await self._store.executions(
                status=status, before=last, limit=_PAGE, **filters
            ):
                records.update((each.execution_id, each) for each in page)
                last = PageCursor(page[-1].created_at, page[-1].execution_id)
        return list(records.values())

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Event]:
        """Return the stored events of an execution with ``seq`` above ``after``, at most ``limit``.

        Raises:
            NotFound: There is no execution of that id.
            Conflict: ``unreadable``: the stored events were changed from outside.
        """
        return await load_events(self._store, execution_id, after=after, limit=limit)

    async def state(self, execution_id: str) -> ExecutionState:
        """Return the state of an execution; the caller must not change it.

        Raises:
            NotFound: There is none of that id.
        """
        return await load_state(self._store, execution_id)

    async def explain(self, execution_id: str, path: str) -> ExplainResponse:
        """Explain why a node ran, did not run, or waits; see :func:`planwave.service.queries.explain.explain`.

        Raises:
            NotFound: There is no execution of that id, or no node of that path in it.
        """
        events = await self.events(execution_id)
        return await asyncio.to_thread(explain, events, path)

    async def diff(self, a: str, b: str) -> DifferenceResponse:
        """Return the differences between two executions; see :func:`planwave.service.queries.diff.diff`.

        Raises:
            NotFound: There is no execution of one of these ids.
        """
        first = await self.events(a)
        second = first if a == b else await self.events(b)
        return await asyncio.to_thread(lambda: diff(fold(first), fold(second)))

    async def document(self, execution_id: str) -> DocumentResponse:
        """Return the JSON document of an execution, projected from its present events."""
        record = await self.execution(execution_id)
        events = await self._store.events(execution_id)
        calls = await self._calls_of(execution_id)
        return await asyncio.to_thread(build_document, events, record, calls)

    async def document_file(self, execution_id: str) -> BinaryIO | None:
        """Open the stored JSON document of an execution; None if it is older than the events.

        Raises:
            NotFound: There is no execution of that id.
            Conflict: ``unreadable``: the events beside it were changed from outside.
        """
        record = await self.execution(execution_id)
        if self.directory is None or record.document_seq != record.last_seq:
            return None
        if self._readable.get(execution_id) != record.last_seq:
            await self.state(execution_id)
            if len(self._readable) >= _MAX_READABLE:
                self._readable.clear()
            self._readable[execution_id] = record.last_seq
        return await asyncio.to_thread(open_document, self.directory, execution_id)

    async def document_pieces(
        self, execution_id: str, names: Collection[str] | None = None
    ) -> Iterator[bytes]:
        """Return the JSON of the document, or of some of its members, piece by piece.

        It is computed from the present events as the pieces are taken, best in a thread.
        """
        record = await self.execution(execution_id)
        events = await self.events(execution_id)
        calls = await self._calls_of(execution_id)
        return document_pieces(events, record, calls, names)

    async def _calls_of(self, execution_id: str) -> Sequence[StoredCall]:
        return (await self._store.calls([execution_id])).get(execution_id, ())

    async def node_document(
        self, execution_id: str, path: str, whole_call: int | None = None
    ) -> DocumentNode:
        """Return the part of the document of an execution that is about one node.

        Args:
            execution_id: The execution.
            path: The path of the node.
            whole_call: The number of the calls whose requests and results are whole, however large.

        Raises:
            NotFound: There is no execution of that id, or no node of that path in it.
        """
        events = await self.events(execution_id)
        calls = await self._calls_of(execution_id)
        document = await asyncio.to_thread(build_node_document, events, path, calls, whole_call)
        if document is None:
            raise NotFound(
                f"execution {execution_id!r} has no node {path!r}",
                hint="name a node of the execution; one that is nested is there once it started",
            )
        return document

    def document_path(self, execution_id: str) -> Path | None:
        """Return the path of an execution's document, written once it has paused or ended."""
        return None if self.directory is None else self.directory / f"{execution_id}.json"

    async def backup(self, file: Path) -> Backup:
        """Write all that is kept into one tar file; see :func:`planwave.storage.backup.back_up`.

        Works while another process writes. Errors are those of ``back_up``.
        """
        if self.directory is None:
            raise NotFound("nothing is kept on disk here, so there is nothing to back up")
        return await asyncio.to_thread(back_up, self.directory, file)

    async def plan_status(self, plan_id: str) -> PlanStatus:
        """Return the status of a plan: that of its newest execution, ``draft`` without one."""
        return (await self.plan_statuses([plan_id]))[plan_id]

    async def plan_statuses(self, plan_ids: Sequence[str]) -> dict[str, PlanStatus]:
        """Return the status of each plan, with one query for all."""
        newest = await self._store.plan_statuses(plan_ids)
        return {
            plan_id: status_of_plan(newest[plan_id]) if plan_id in newest else "draft"
            for plan_id in plan_ids
        }


def _filters(
    text: str | None, since: str | None, plan_id: str | None, as_flow: bool
) -> dict[str, Any]:
    """Return the filters of a list of executions as the store takes them."""
    time = None if since is None else utc_time(since)
    return {"text": text, "since": time, "plan_id": plan_id, "as_flow": as_flow}


def _is_waiting(digest: ExecutionDigest | None) -> bool:
    return digest is not None and bool(digest.requests)


def utc_time(text: str) -> str:
    """Return a time in the format of the store, in which texts compare as times.

    Raises:
        InputError: ``invalid-time``: it is not ISO 8601.
    """
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{text!r} is not a time",
            code="invalid-time",
            hint="write it like 2026-01-31T12:00:00Z or 2026-01-31",
        ) from error
    return moment.isoformat(timespec="microseconds")


def status_of_plan(execution_status: str) -> PlanStatus:
    """Return the plan status for an execution status."""
    if execution_status in ("starting", "executing", "paused"):
        return "executing"
    return "completed" if execution_status == "completed" else "failed"
