"""Queries: executions, read and watched without running anything, and all that is kept in a store."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from copy import copy
from datetime import UTC, datetime
from functools import wraps
from math import inf
from pathlib import Path
from types import CoroutineType
from typing import TYPE_CHECKING, Any, BinaryIO, Concatenate, Final, ParamSpec, Self, TypeVar

from typing_extensions import Unpack

from planwave.errors import InputError, ShuttingDown
from planwave.events import ENDED_STATUS, Event, ExecutionState, OpenRequest, fold
from planwave.events.types import public_event
from planwave.service.flows.flow_queries import FlowQueries
from planwave.service.plans.revisions import PlanQueries, RevisionQueries
from planwave.service.queries.answered import AnsweredRequests
from planwave.service.queries.diff import diff
from planwave.service.queries.digest import (
    DigestCache,
    ExecutionDigest,
    PendingRequest,
    pending_requests,
)
from planwave.service.queries.explain import explain, missing_node
from planwave.service.streaming.stored_execution import load_events, load_record, load_state
from planwave.service.streaming.subscriber_queue import BacklogLimits
from planwave.service.streaming.subscriptions import ExecutionSubscription, LiveExecutions
from planwave.storage.documents import (
    build_document,
    build_node_document,
    document_pieces,
    open_document,
)
from planwave.storage.event_codec import ACTIVE_STATUSES
from planwave.storage.lock import is_owned
from planwave.storage.records import (
    COUNTED_MATCHES,
    NEWEST_FIRST,
    ExecutionFilters,
    ExecutionRecord,
    ExecutionSort,
    PageCursor,
    StoredCall,
    is_interrupted,
)

if TYPE_CHECKING:
    from planwave.service.dependencies import Observer
    from planwave.shapes.executions import (
        DifferenceResponse,
        DocumentNode,
        DocumentResponse,
        ExecutionCounts,
        ExplainResponse,
        WaitsForResponse,
    )
    from planwave.storage.sql.store import Store

_PAGE: Final = 500
"""Executions read at once."""
_MAX_READABLE: Final = 10_000
"""Executions whose events are known to be readable, and are not read for each copy of a document."""


_Self = TypeVar("_Self", bound="ExecutionQueries")
_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


def _after_document(
    read: Callable[Concatenate[_Self, str, _Args], Awaitable[_Result]],
) -> Callable[Concatenate[_Self, str, _Args], CoroutineType[Any, Any, _Result]]:
    """Return a read of one execution that gives an end only once its document is in place."""

    @wraps(read)
    async def read_after_document(
        self: _Self, execution_id: str, /, *args: _Args.args, **kwargs: _Args.kwargs
    ) -> _Result:
        result = await read(self, execution_id, *args, **kwargs)
        await self.wait_end_written(execution_id)
        return result

    return read_after_document


class ExecutionQueries:
    """The executions of a store, for reading and watching.

    What only the operator sees (see ``public_event``) is left out of all that they return, unless
    they are those of ``for_operator``.

    Args:
        store: Where they are kept.
        directory: Where JSON documents lie, or None where none are written.
        wait_written: Waits until the document of an execution is written, if it is about to be; None
            where this process writes none.
        observers: What follows deliveries to subscribers.

    Attributes:
        live_executions: The projections of those that run or are watched in this process.
        digests: What lists show of executions beyond their records.
        answered_requests: The requests that people have answered.
    """

    def __init__(
        self,
        store: Store,
        directory: Path | None,
        wait_written: Callable[[str], Awaitable[None]] | None = None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._store = store
        self._directory = directory
        self._wait_written = wait_written
        self._readable: dict[str, int] = {}
        self._for_operator = False
        self.live_executions = LiveExecutions(store, observers)
        self.digests = DigestCache(store, self.live_executions.state_of)
        self.answered_requests = AnsweredRequests(store)

    def for_operator(self) -> Self:
        """Return the same queries with what only the operator sees, such as tracebacks."""
        queries = copy(self)
        queries._for_operator = True
        return queries

    async def _events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Event]:
        """Return stored events as the caller sees them; see ``load_events``."""
        events = await load_events(self._store, execution_id, after=after, limit=limit)
        return events if self._for_operator else list(map(public_event, events))

    async def wait_end_written(self, execution_id: str) -> None:
        """Wait until the document of an execution is written, if it has ended and that is due.

        Whoever is told of the end by a read is told after this.
        """
        if self._wait_written is None:
            return
        record = await self._store.execution(execution_id)
        if record is None or not record.is_behind or record.status not in ENDED_STATUS:
            return
        live = self.live_executions.get(execution_id)
        if live is not None and not live.is_over and not live.is_unscheduled:
            await live.finished.wait()  # its last event is stored, and published in a moment
        await self._wait_written(execution_id)

    @_after_document
    async def get(self, execution_id: str) -> ExecutionRecord:
        """Return the record of an execution.

        Raises:
            NotFound: There is none of that id.
        """
        return await load_record(self._store, execution_id)

    async def list(
        self,
        *,
        status: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
        waiting: bool = False,
        sort: ExecutionSort = NEWEST_FIRST,
        **filters: Unpack[ExecutionFilters],
    ) -> Sequence[ExecutionRecord]:
        """Return executions, newest first unless ``sort`` says otherwise.

        Args:
            status: Only those that are this.
            before: The last one already seen: its id, or its place.
            limit: How many at most.
            waiting: Only those with an open request to people; they are executing or paused.
            sort: The order.
            filters: Times are ISO 8601 (without zone: UTC).

        Raises:
            InputError: ``invalid-time``.
            NotFound: No execution has the id ``before``.
        """
        chosen = _with_utc_times(filters)
        if not waiting:
            return await self._store.executions(
                status=status, before=before, limit=limit, sort=sort, **chosen
            )
        statuses = [each for each in ACTIVE_STATUSES if status in (None, each)]
        places = {
            _place(sort.cursor_after(each)): each for each in await self._waiting(statuses, chosen)
        }
        if isinstance(before, str):
            before = sort.cursor_after(await load_record(self._store, before))
        if before is not None:
            seen = _place(before)
            places = {
                place: each
                for place, each in places.items()
                if (place < seen if sort.descending else place > seen)
            }
        return [places[each] for each in sorted(places, reverse=sort.descending)][:limit]

    async def count(self, **filters: Unpack[ExecutionFilters]) -> ExecutionCounts:
        """Return the number of executions: ``total``, by status, and of those ``waiting``.

        The filters are those of ``list``.

        Raises:
            InputError: ``invalid-time``.
        """
        chosen = _with_utc_times(filters)
        counts = await self._store.count_executions(**chosen)
        waiting = await self._waiting(ACTIVE_STATUSES, chosen)
        total = sum(counts.values())
        return {
            "total": total,
            "at_least": bool(filters.get("text")) and total >= COUNTED_MATCHES,
            "waiting": len(waiting),
            "starting": counts.get("starting", 0),
            "executing": counts.get("executing", 0),
            "paused": counts.get("paused", 0),
            "completed": counts.get("completed", 0),
            "failed": counts.get("failed", 0),
            "cancelled": counts.get("cancelled", 0),
        }

    async def _waiting(
        self, statuses: Sequence[str], filters: ExecutionFilters
    ) -> list[ExecutionRecord]:
        """Return the executions of these statuses that wait for a person."""
        records = await self._all(statuses, filters)
        digests = await self.digests.of(records, most_events=inf)
        return [each for each in records if _is_waiting(digests.get(each.execution_id))]

    async def pending_requests(self, most_events: float = inf) -> Sequence[PendingRequest]:
        """Return the open requests to people of all executions, the soonest deadline first.

        Args:
            most_events: Read no more than about so many events; what needs more is left out until a later call.
        """
        records = await self._all(ACTIVE_STATUSES, {})
        return pending_requests(records, await self.digests.of(records, most_events=most_events))

    async def _all(
        self,
        statuses: Sequence[str],
        filters: ExecutionFilters,
    ) -> list[ExecutionRecord]:
        """Return all executions of these statuses, page by page from the store.

        The status of one may change between two reads: it is returned once, as it was read last.
        """
        records: dict[str, ExecutionRecord] = {}
        for status in statuses:
            last: PageCursor | None = None
            while page := await self._store.executions(
                status=status, before=last, limit=_PAGE, **filters
            ):
                records.update((each.execution_id, each) for each in page)
                last = PageCursor(page[-1].created_at, page[-1].execution_id)
        return list(records.values())

    @_after_document
    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> Sequence[Event]:
        """Return the stored events of an execution with ``seq`` above ``after``, at most ``limit``.

        Raises:
            NotFound: There is no execution of that id.
            Conflict: ``unreadable``: the stored events were changed from outside.
        """
        return await self._events(execution_id, after=after, limit=limit)

    @_after_document
    async def state(self, execution_id: str) -> ExecutionState:
        """Return the present state of an execution, with the streamed text if it runs here.

        The caller must not change it.

        Raises:
            NotFound: There is none of that id.
        """
        return await self.live_executions.state(execution_id)

    @_after_document
    async def requests(self, execution_id: str) -> Sequence[OpenRequest]:
        """Return the open requests of an execution, oldest first.

        Raises:
            NotFound: There is none of that id.
        """
        return list((await self.live_executions.state(execution_id)).requests.values())

    @_after_document
    async def explain(self, execution_id: str, path: str) -> ExplainResponse:
        """Explain why a node ran, did not run, or waits; see ``planwave.service.queries.explain.explain``.

        Raises:
            NotFound: There is no execution of that id, or no node of that path in it.
        """
        events = await self._events(execution_id)
        return await asyncio.to_thread(explain, events, path)

    @_after_document
    async def diff(self, execution_id: str, other_id: str) -> DifferenceResponse:
        """Return the differences between two executions; see ``planwave.service.queries.diff.diff``.

        Raises:
            NotFound: There is no execution of one of these ids.
        """
        first = await self._events(execution_id)
        second = first if other_id == execution_id else await self.events(other_id)
        return await asyncio.to_thread(lambda: diff(fold(first), fold(second)))

    async def interrupted(self, records: Sequence[ExecutionRecord]) -> Collection[str]:
        """Return the ids of those that were cut off: their status says that they run, and nobody runs them.

        They go on once they are resumed.
        """
        cut_off: list[str] = []
        for record in filter(self._is_cut_off, records):
            latest = await self._store.execution(record.execution_id)
            if latest is not None and self._is_cut_off(latest):  # it may have gone on or ended
                cut_off.append(record.execution_id)
        return cut_off

    async def waits_for(self, records: Sequence[ExecutionRecord]) -> Mapping[str, WaitsForResponse]:
        """Return what executions wait for that not every process can do, by id; others are left out."""
        may = [
            each.execution_id
            for each in records
            if each.needs is not None and each.status in ("starting", "executing")
        ]
        return await self._store.waits_for(may) if may else {}

    def _is_cut_off(self, record: ExecutionRecord) -> bool:
        may_be = is_interrupted(record.status, is_owned=False, was_accepted=record.queued)
        return may_be and not self._may_be_running(record)

    def _may_be_running(self, record: ExecutionRecord) -> bool:
        """Return whether a live process may be running an execution."""
        return self._directory is None or is_owned(self._directory)

    @_after_document
    async def document(self, execution_id: str) -> DocumentResponse:
        """Return the JSON document of an execution, projected from its present events."""
        record = await load_record(self._store, execution_id)
        events = await self._events(execution_id)
        calls = await self._calls_of(execution_id)
        document = await asyncio.to_thread(build_document, events, record, calls)
        if await self.interrupted([record]):
            document["interrupted"] = True
        return document

    @_after_document
    async def document_file(self, execution_id: str) -> BinaryIO | None:
        """Open the stored JSON document of an execution; None if it is older than the events.

        It is the operator's; everybody else has the document computed from the events.

        Raises:
            NotFound: There is no execution of that id.
            Conflict: ``unreadable``: the events beside it were changed from outside.
        """
        record = await load_record(self._store, execution_id)
        if (
            not self._for_operator
            or self._directory is None
            or record.document_seq != record.last_seq
        ):
            return None
        if self._readable.get(execution_id) != record.last_seq:
            await load_state(self._store, execution_id)
            if len(self._readable) >= _MAX_READABLE:
                self._readable.clear()
            self._readable[execution_id] = record.last_seq
        return await asyncio.to_thread(open_document, self._directory, execution_id)

    @_after_document
    async def document_pieces(
        self, execution_id: str, names: Collection[str] | None = None
    ) -> Iterator[bytes]:
        """Return the JSON of the document, or of some of its members, piece by piece.

        It is computed from the present events as the pieces are taken, best in a thread.
        """
        record = await load_record(self._store, execution_id)
        events = await self._events(execution_id)
        calls = await self._calls_of(execution_id)
        is_cut_off = bool(await self.interrupted([record]))
        return document_pieces(events, record, calls, names, is_interrupted=is_cut_off)

    async def _calls_of(self, execution_id: str) -> Sequence[StoredCall]:
        return (await self._store.calls([execution_id])).get(execution_id, ())

    @_after_document
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
        events = await self._events(execution_id)
        calls = await self._calls_of(execution_id)
        document = await asyncio.to_thread(build_node_document, events, path, calls, whole_call)
        if document is None:
            raise await asyncio.to_thread(lambda: missing_node(fold(events), path))
        return document

    def document_path(self, execution_id: str) -> Path | None:
        """Return the path of an execution's document, written once it has paused or ended."""
        return None if self._directory is None else self._directory / f"{execution_id}.json"

    @asynccontextmanager
    async def subscribe(
        self,
        execution_id: str,
        after: int | None = None,
        limits: BacklogLimits = BacklogLimits(),  # noqa: B008 - immutable
        *,
        with_snapshot: bool = False,
    ) -> AsyncGenerator[ExecutionSubscription]:
        """Follow an execution in frames; iterate what this gives.

        Args:
            execution_id: A stored execution, whatever its status.
            after: The last ``seq`` already known; None for what happens from now on.
            limits: How far this subscriber may fall behind.
            with_snapshot: Also give the whole state at the moment from which on it is live.

        Raises:
            NotFound: There is none of that id.
            ShuttingDown: The service is going down; also while iterating.
            SlowConsumer: While iterating.
        """
        await self._check_watchable(execution_id)
        async with self.live_executions.subscribe(
            execution_id,
            after,
            limits,
            with_snapshot=with_snapshot,
            for_operator=self._for_operator,
        ) as following:
            yield following

    async def watch(self, execution_id: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """Yield every stored event above ``after`` and streamed text, as it happens, to the end."""
        async with self.subscribe(execution_id, after) as following:
            async for frame in following:
                for event in frame.events:
                    yield event

    async def status_updates(self, execution_id: str, interval_s: float) -> AsyncGenerator[bytes]:
        """Yield ``{status, node_states, logs, wave}`` as JSON now, then at an interval, to the end.

        ``logs`` are the last 10 sentences, ``wave`` is ``{current, total}``. The last one has the
        final status and comes as soon as the document of the execution is written.

        Raises:
            NotFound, ShuttingDown: As in ``subscribe``.
        """
        await self._check_watchable(execution_id)
        async with self.live_executions.acquire(execution_id) as live:
            live.polls += 1
            try:
                while True:
                    if (is_over := live.is_over) and self._wait_written is not None:
                        await self._wait_written(execution_id)
                    yield live.status_summary()
                    if is_over:
                        return
                    await live.wait_for_end(interval_s)
                    if live.disconnect_reason is not None and not live.is_over:
                        raise live.disconnect_reason.with_traceback(None)
            finally:
                live.polls -= 1

    async def _check_watchable(self, execution_id: str) -> None:
        if self.live_executions.streams_closed:
            raise ShuttingDown
        if self.live_executions.get(execution_id) is None:
            await load_record(self._store, execution_id)


def _with_utc_times(filters: ExecutionFilters) -> ExecutionFilters:
    """Return the filters of a list of executions as the store takes them.

    Raises:
        InputError: ``invalid-time``.
    """
    since, until = filters.get("since"), filters.get("until")
    return {
        **filters,
        "since": None if since is None else utc_time(since),
        "until": None if until is None else utc_time(until),
    }


def _place(cursor: PageCursor) -> tuple[Any, str, str]:
    """Return what positions of one list compare by."""
    return "" if cursor.value is None else cursor.value, cursor.created_at, cursor.id


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


class History:
    """The plans, flows and executions of a store, for reading only by the operator.

    An async context manager.

    Attributes:
        triggers, access_tokens, links, notifications: What the store has of these, not to be changed here.

    Args:
        store: Where they are kept; closed together with this.
        directory: Where JSON documents lie, or None where none are written.
    """

    def __init__(self, store: Store, directory: Path | None) -> None:
        self._store = store
        self.triggers, self.access_tokens = store.triggers, store.access_tokens
        self.links, self.notifications = store.links, store.notifications
        self.plans = PlanQueries(store)
        self.revisions = RevisionQueries(store)
        self.flows = FlowQueries(store)
        self.executions = ExecutionQueries(store, directory).for_operator()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()
