"""The records that stores keep beside events, and the ports `Store` and `FlowStore`.

One contract suite (``tests/contract``) runs over all implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from planwave.errors import StoreError
from planwave.events import Event
from planwave.providers.protocols import CallKey
from planwave.storage.event_codec import SETTLED_STATUSES


@dataclass(frozen=True, slots=True)
class FlowRecord:
    """A flow as lists show it.

    Attributes:
        version: The hash of its present graph: what is the same is the same version.
        revision: Counts its changes; 1 for a new one.
        node_count: Of its present graph.
    """

    flow_id: str
    name: str
    description: str
    version: str
    revision: int
    created_at: str
    updated_at: str
    node_count: int


@dataclass(frozen=True, slots=True)
class FlowVersion:
    """One content of a flow.

    Attributes:
        revision: Of the flow, when this content was saved first.
        created_at: When that was, UTC.
        graph: The graph document as it was saved last; None in lists.
    """

    flow_id: str
    version: str
    revision: int
    created_at: str
    node_count: int
    graph: dict[str, Any] | None = None


class FlowStore(Protocol):
    """Flows and their versions. Writes are durable on return."""

    async def save(
        self, flow: FlowRecord, graph: dict[str, Any] | None = None, *, after: int = 0
    ) -> bool:
        """Keep a flow, and where ``graph`` is given its present content.

        Args:
            flow: As it is from now on.
            graph: The document that ``flow.version`` is the hash of; a new flow has one.
            after: The revision this one follows; 0 for a new flow.

        Returns:
            Whether it was kept: not where another revision, or another flow of that id, came first.
        """
        ...

    async def get(self, flow_id: str) -> FlowRecord | None: ...
    async def version(self, flow_id: str, version: str) -> FlowVersion | None:
        """Give one version, with its graph."""
        ...

    async def page(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowRecord]:
        """Give flows, newest first; ``before`` is the last one already seen: its id, or its place.

        Raises:
            NotFound: ``before`` is nobody's id.
        """
        ...

    async def versions(
        self, flow_id: str, *, before: PageCursor | None = None, limit: int = 50
    ) -> Sequence[FlowVersion]:
        """Give the versions of a flow, newest first, without their graphs."""
        ...

    async def delete(self, flow_id: str) -> None:
        """Delete a flow with all its versions; its executions stay, they carry their graph.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``flow-in-use``: an execution of it has not ended.
        """
        ...


Projected = TypeVar("Projected")


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A stored plan: columns to search by, and ``document``, the whole of ``Plan.as_json()``.

    ``plain``: :func:`planwave.jsonio.is_plain` was found to hold of the document.
    """

    plan_id: str
    created_at: str
    user_prompt: str
    title: str
    hash: str
    document: dict[str, Any]
    plain: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class ExecutionRecord:
    """An execution as lists show it; kept up to date by the store from the events it appends.

    ``status`` is one of ``starting executing paused completed failed cancelled``.
    ``document_seq`` is the ``last_seq`` of the JSON document on disk (0: none yet). ``queued``: its
    start was accepted, so it is to be run even if the process ends before it does. ``flow_version``
    is the version of the flow ``flow_id`` that it runs; None where its graph was changed since.
    """

    execution_id: str
    plan_id: str | None
    title: str
    user_prompt: str
    status: str
    created_at: str
    started_at: str | None = None
    completed_at: str | None = None
    last_seq: int = 0
    document_seq: int = 0
    epoch: int = 1
    queued: bool = False
    flow_id: str | None = None
    flow_version: str | None = None

    @property
    def is_behind(self) -> bool:
        """Whether its document should show more events than it does."""
        return self.status in SETTLED_STATUSES and self.document_seq < self.last_seq


Projection = Callable[[ExecutionRecord, Callable[[], list[Event]]], Projected]
"""Makes something of an execution and its events, from 1 on, which it reads by calling for them."""


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """A request that makes something, kept under its idempotency key.

    Attributes:
        digest: What tells the request from another one with the same key.
        created_at: When the key was taken, UTC.
        subject: An id chosen with the key, for what the request makes: done again after a crash it
            can make the same thing once more instead of a second one.
        status: HTTP status of the answer; None while the work is under way.
        body: The answer.
        is_new: The caller has taken the key just now: it has to do the work, then
            :meth:`Store.store_response` or, where it failed, :meth:`Store.release_idempotency_key`.
    """

    digest: str
    created_at: str
    subject: str
    status: int | None = None
    body: str | None = None
    is_new: bool = False


DISK_FULL: Final = "disk-full"
STORE_BUSY: Final = "store-busy"
TRANSIENT_CODES: Final = frozenset({DISK_FULL, STORE_BUSY})
"""Codes of a ``StoreError`` that passes: nothing of the write was kept, and it may be tried again."""

STORE_OK: Final = "ok"
READ_ONLY: Final = "store-read-only"
STORE_STATUSES: Final = TRANSIENT_CODES | {STORE_OK, READ_ONLY}


class StoreStats(NamedTuple):
    """What a store has written since it was opened, and whether it can write now.

    Attributes:
        fatal_error: Why nothing more can be written before a restart, or None.
        writes: How many writes were committed.
        commits: How many commits held 1, 2, 3 to 4, 5 to 8, … writes; empty where there are none.
        transient_error: Why writes are refused for now, or None; it ends by itself.
    """

    fatal_error: BaseException | None = None
    writes: int = 0
    commits: tuple[int, ...] = ()
    transient_error: StoreError | None = None

    @property
    def status(self) -> str:
        """``ok``, or the code that refused writes carry; one of ``STORE_STATUSES``."""
        if self.fatal_error is not None:
            return READ_ONLY
        return STORE_OK if self.transient_error is None else self.transient_error.code


class PageCursor(NamedTuple):
    """A place in a list that is newest first: right behind this one, even if it is gone by now."""

    created_at: str
    id: str


class Store(Protocol):
    """Plans, executions, their events, recorded calls and answers. Writes are durable on return."""

    @property
    def stats(self) -> StoreStats: ...
    @property
    def flows(self) -> FlowStore: ...

    async def save_plan(self, plan: PlanRecord) -> None: ...
    async def plan(self, plan_id: str) -> PlanRecord | None: ...
    async def plans(
        self, *, text: str | None = None, before: str | PageCursor | None = None, limit: int = 50
    ) -> list[PlanRecord]:
        """Give plans, newest first; ``before`` is the last one already seen: its id, or its place.

        Others who ask at the same time may get the same documents; nobody is to change them.

        Raises:
            NotFound: ``before`` is nobody's id.
        """
        ...

    async def plan_statuses(self, plan_ids: Sequence[str]) -> dict[str, str]:
        """Give the status of the newest execution of each plan, leaving out plans without one."""
        ...

    async def delete_plan(self, plan_id: str) -> None:
        """Delete a plan; its executions stay, they carry their graph.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``plan-in-use``: an execution of it has not ended.
        """
        ...

    async def create_execution(
        self, record: ExecutionRecord, events: Sequence[Event], plan: PlanRecord | None = None
    ) -> None:
        """Keep a new execution with its first events in one commit.

        ``plan`` is kept in the same commit, unless there is one of its id already.
        """
        ...

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None: ...
    async def claim(self, execution_id: str, *, queued: bool | None = None) -> int:
        """Make the caller the owner: raise the epoch by one and give it. NotFound if unknown.

        ``queued`` is set in the same commit where it is given.
        """
        ...

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]: ...
    async def execution(self, execution_id: str) -> ExecutionRecord | None: ...
    async def executions(
        self,
        *,
        status: str | None = None,
        text: str | None = None,
        since: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
        plan_id: str | None = None,
        flow_id: str | None = None,
    ) -> list[ExecutionRecord]:
        """Give executions, newest first; ``since`` is a UTC time, ``before`` as for plans."""
        ...

    async def open_executions(self) -> list[ExecutionRecord]:
        """Give those to be taken up at a start, oldest first.

        They are executing or paused, or starting with ``queued``.
        """
        ...

    async def delete_execution(self, execution_id: str) -> None:
        """Delete an execution that has ended, with its events, calls, document and large values.

        It is out of sight with the first of several commits; nobody waits for more than one.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``execution-running``.
        """
        ...

    async def prune(self, before: str, limit: int) -> list[str]:
        """Delete some executions that ended before a UTC time, oldest first; give their ids."""
        ...

    async def project_each(
        self, execution_ids: Sequence[str], project: Projection[Projected]
    ) -> dict[str, Projected]:
        """Give what ``project`` makes of each of these whose document is behind its events.

        It is called in a thread, with one after the other, and reads the events itself. A connection
        for reading is held meanwhile.

        Raises:
            StoreError: ``store-unreadable``; and what ``project`` raises.
        """
        ...

    async def set_document_seqs(self, seqs: Mapping[str, int]) -> list[str]:
        """Note in one commit up to which event documents on disk go; give the ids that are unknown."""
        ...

    async def lagging_documents(self) -> list[str]:
        """Give ids of paused or ended executions whose document is behind their events."""
        ...

    async def recorded(self, key: CallKey) -> dict[str, Any] | None: ...
    async def record(self, key: CallKey, reply: dict[str, Any]) -> None: ...

    async def idempotency_record(self, key: str) -> IdempotencyRecord | None:
        """Give what is kept under an idempotency key."""
        ...

    async def claim_idempotency_key(
        self, key: str, digest: str, at: str, *, expired: str
    ) -> IdempotencyRecord:
        """Take a key for the caller, or give what is kept under it; one caller gets it.

        A key taken before ``expired`` is free again, unless the execution its request made has not
        ended; so is one whose taker died before it answered, which keeps its ``subject``.
        """
        ...

    async def store_response(self, key: str, status: int, body: str) -> None:
        """Keep the answer to the request that took a key."""
        ...

    async def release_idempotency_key(self, key: str) -> None:
        """Give back a key whose request came to nothing; one that was answered stays."""
        ...

    async def delete_expired_keys(self, expired: str) -> int:
        """Delete what :meth:`claim_idempotency_key` would not heed any more; give how many."""
        ...

    def publish_address(self, url: str, token: str | None) -> None:
        """Tell other processes where whoever holds this store is reached, and with which token."""
        ...

    async def close(self) -> None: ...
