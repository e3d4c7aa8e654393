"""The records that stores hold besides events, and the ports ``Store``, ``FlowStore`` and ``RevisionStore``.

The contract suite ``tests/contract/stores`` runs over all implementations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

from planwave.errors import StoreError
from planwave.events import Event
from planwave.principals import Principal
from planwave.providers.protocols import CallKey
from planwave.storage.event_codec import SETTLED_STATUSES

if TYPE_CHECKING:
    from planwave.storage.access_tokens import AccessTokenStore
    from planwave.storage.chats import ChatStore
    from planwave.storage.notifications import NotificationStore
    from planwave.storage.triggers import TriggerStore


Projected = TypeVar("Projected")


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A stored plan: columns for search, and ``document``, the JSON of ``Plan.as_json()``.

    Attributes:
        document: The newest revision.
        name: The name, for which it is a flow; None for a plan without one. Unique without regard to case.
        description: The purpose of a flow: what it says to callers, and the goal of its executions.
        published: What a flow is published as.
        live_revision: The revision that callers of a flow start: the newest one without errors; None
            without one.
        edits: The number of times the record was changed, also without a new revision.
        author: The author of the current revision: ``person``, ``planner`` or ``api``; None in a
            plan that was never changed.
        note: The author's note on the current revision.
        updated_at: The time of the current revision, UTC; None in a plan that was never changed.
        edited_by: Who made the newest revision; None where an older planwave did.
        plain: Whether :func:`planwave.jsonio.is_plain` is known to be true of the document.
    """

    plan_id: str
    created_at: str
    user_prompt: str
    title: str
    hash: str
    document: dict[str, Any]
    edits: int = 0
    author: str | None = None
    note: str = ""
    updated_at: str | None = None
    edited_by: Principal | None = None
    name: str | None = None
    description: str = ""
    published: tuple[str, ...] = ()
    live_revision: int | None = 1
    plain: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class PlanRevision:
    """One revision of a plan.

    Attributes:
        revision: Its number, from 1 on.
        hash: The hash of its graph.
        author: ``person``, ``planner`` or ``api``.
        note: The author's note.
        created_at: The time of the change, UTC.
        node_count: The number of nodes.
        error_count: The number of errors in the graph; with any, it is a draft.
        document: ``{"nodes", "edges", "diagnostics"}``; None in lists.
        created_by: Who made it; None where an older planwave did.
    """

    plan_id: str
    revision: int
    hash: str
    title: str
    author: str
    note: str
    created_at: str
    node_count: int
    error_count: int
    document: dict[str, Any] | None = None
    created_by: Principal | None = None


class RevisionStore(Protocol):
    """Changes of plans, and the revisions before the current one. Writes are durable on return."""

    async def save(
        self,
        plan: PlanRecord,
        superseded: PlanRevision | None = None,
        *,
        after: int,
        most: int | None = None,
        force: bool = False,
    ) -> bool: ...

    async def get(self, plan_id: str, revision: int) -> PlanRevision | None:
        """Return a revision before the current one, with its document."""
        ...

    async def page(
        self, plan_id: str, *, before: int | None = None, limit: int = 50
    ) -> Sequence[PlanRevision]:
        """Return revisions before the current one, newest first, without their documents.

        ``before``: only those with a lower number.
        """
        ...


@dataclass(frozen=True, slots=True)
class ExecutionRecord:
    """An execution as lists show it; the store updates it from appended events.

    ``status`` is one of ``starting executing paused completed failed cancelled``.
    ``document_seq`` is the ``last_seq`` of the JSON document on disk (0: none yet). ``queued``: the
    execution was accepted for running, and runs even after a restart. ``revision`` is that of the plan;
    None if the graph of the execution was changed. ``flow`` is the name that the plan had where the
    execution was started as a flow; None for one of a plan. ``created_by`` is who
    created it; None where an older planwave did. ``parent_id`` is the execution that it is a fork of.
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
    revision: int | None = None
    flow: str | None = None
    created_by: Principal | None = None
    parent_id: str | None = None

    @property
    def flow_id(self) -> str | None:
        """The id of the flow as which it was started; None for one of a plan."""
        return None if self.flow is None else self.plan_id

    @property
    def is_behind(self) -> bool:
        """Whether the JSON document on disk is older than the events."""
        return self.status in SETTLED_STATUSES and self.document_seq < self.last_seq


Projection = Callable[[ExecutionRecord, Callable[[], list[Event]]], Projected]
"""Computes a value from an execution; the second argument reads its events, from 1 on."""


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """A request with an idempotency key, and its response.

    Attributes:
        digest: The hash of the request, to detect another request with the same key.
        created_at: The time the key was claimed, UTC.
        subject: The id for the object that the request creates, chosen with the key; a repetition
            after a crash creates the same object instead of a second one.
        status: The HTTP status of the response; None while the request runs.
        body: The body of the response.
        is_new: Whether the caller has just claimed the key: it must process the request, then call
            :meth:`Store.store_response` or, after a failure,
            :meth:`Store.release_idempotency_key`.
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
"""Codes of a transient ``StoreError``: nothing was written, and the write can be retried."""

STORE_OK: Final = "ok"
READ_ONLY: Final = "store-read-only"
STORE_STATUSES: Final = TRANSIENT_CODES | {STORE_OK, READ_ONLY}


class StoreStats(NamedTuple):
    """The writes of a store since it was opened, and whether it can write now.

    Attributes:
        fatal_error: The error after which the store is read-only until a restart, or None.
        writes: The number of committed writes.
        commits: The numbers of commits with 1, 2, 3 to 4, 5 to 8, … writes.
        transient_error: The error that prevents writes for now, or None.
    """

    fatal_error: BaseException | None = None
    writes: int = 0
    commits: tuple[int, ...] = ()
    transient_error: StoreError | None = None

    @property
    def status(self) -> str:
        """``ok``, or the code of the error of writes; one of ``STORE_STATUSES``."""
        if self.fatal_error is not None:
            return READ_ONLY
        return STORE_OK if self.transient_error is None else self.transient_error.code


class PageCursor(NamedTuple):
    """A position in a list, newest first: after this item, even if it was deleted since."""

    created_at: str
    id: str


class AnsweredRequest(NamedTuple):
    """Where the answer to a request of a person is: ``answer`` and ``request`` are events' ``seq``.

    Lists are sorted by the first three fields, which are a position in them too.
    """

    at: str
    execution_id: str
    answer: int
    request: int


Reply = TypeVar("Reply")


class RecordedCalls(dict[tuple[str, str, int], dict[tuple[int, str], Reply]]):
    """Recorded replies in memory: by execution, path and attempt, then by number and request."""

    def find(self, key: CallKey) -> Reply | None:
        """Return the reply to a request, or None."""
        return self.get(key[:3], {}).get(key[3:])

    def has_calls(self, key: CallKey) -> bool:
        """Return whether any call of the attempt of a call is recorded."""
        return key[:3] in self

    def has_other(self, key: CallKey) -> bool:
        """Return whether another request is recorded under the number of a call."""
        return any(
            ordinal == key.ordinal and not request.startswith(key.request_hash)
            for ordinal, request in self.get(key[:3], ())
        )

    def add(self, key: CallKey, reply: Reply) -> None:
        """Record a reply, unless one is recorded."""
        self.setdefault(key[:3], {}).setdefault(key[3:], reply)

    def of(self, execution_ids: Sequence[str]) -> Iterator[tuple[CallKey, Reply]]:
        """Yield what is recorded of some executions."""
        for attempt, replies in self.items():
            if attempt[0] in execution_ids:
                yield from ((CallKey(*attempt, *call), reply) for call, reply in replies.items())


class StoredCall(NamedTuple):
    """One recorded call, or what is recorded beside one; see ``Recorder``."""

    key: CallKey
    reply: dict[str, Any]


class ApprovedToolStore(Protocol):
    """How the tools of MCP servers were described when a person last approved a call of each."""

    async def fingerprint(self, server: str, tool: str) -> str | None:
        """Return the fingerprint of a tool; None if no call of it was ever approved."""
        ...

    async def approve(self, server: str, tool: str, fingerprint: str) -> None:
        """Store the fingerprint of a tool; durable on return."""
        ...


class Store(Protocol):
    """Plans, executions, events, recorded calls and idempotency keys. Writes are durable on return."""

    @property
    def stats(self) -> StoreStats: ...
    @property
    def revisions(self) -> RevisionStore: ...
    @property
    def triggers(self) -> TriggerStore: ...
    @property
    def notifications(self) -> NotificationStore: ...
    @property
    def access_tokens(self) -> AccessTokenStore: ...
    @property
    def approved_tools(self) -> ApprovedToolStore: ...
    @property
    def chats(self) -> ChatStore: ...

    async def save_plan(self, plan: PlanRecord) -> None: ...
    async def plan(self, plan_id: str) -> PlanRecord | None: ...
    async def flow_named(self, name: str) -> PlanRecord | None:
        """Return the plan with a name, whatever its case."""
        ...

    async def plans(
        self,
        *,
        text: str | None = None,
        named: bool = False,
        published: str | None = None,
        before: str | PageCursor | None = None,
        limit: int = 50,
    ) -> list[PlanRecord]:
        """Return plans, newest first; ``before`` is the id or cursor of the last one of a page.

        ``named``: only flows; ``published``: only those that are published as this.

        Concurrent callers may share the same documents and must not change them.

        Raises:
            NotFound: ``before`` is an unknown id.
        """
        ...

    async def plan_statuses(self, plan_ids: Sequence[str]) -> dict[str, str]:
        """Return the status of the newest execution of each plan; plans without one are omitted."""
        ...

    async def delete_plan(self, plan_id: str, *, force: bool = False) -> None:
        """Delete a plan with all its revisions; its executions are kept, with their graphs.

        ``force`` removes what leads to its name: publication, triggers, targets, its place in tokens.

        Raises:
            NotFound: No plan has this id.
            Conflict: ``plan-in-use``: an execution of the plan has not ended; ``flow-in-use``: something
                leads to its name, and ``force`` is not set.
        """
        ...

    async def create_execution(
        self, record: ExecutionRecord, events: Sequence[Event], plan: PlanRecord | None = None
    ) -> None:
        """Store a new execution with its first events in one commit.

        ``plan`` is stored in the same commit, unless a plan of this id exists.
        """
        ...

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None: ...
    async def claim(self, execution_id: str, *, queued: bool | None = None) -> int:
        """Make the caller the owner: increment the epoch and return it. NotFound if unknown.

        ``queued``, if given, is set in the same commit.
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
        as_flow: bool = False,
    ) -> list[ExecutionRecord]:
        """Return executions, newest first; ``since`` is a UTC time, ``before`` as for plans.

        ``as_flow``: only those that were started as a flow.
        """
        ...

    async def count_open(self, account: str) -> int:
        """Return the number of executions of an account that have not ended, those not started included."""
        ...

    async def count_forks(self, execution_id: str) -> int:
        """Return the number of forks and retries of an execution, deleted ones not included."""
        ...

    async def count_executions(
        self,
        *,
        text: str | None = None,
        since: str | None = None,
        plan_id: str | None = None,
        as_flow: bool = False,
    ) -> dict[str, int]:
        """Return the number of executions by status; statuses that none has are left out."""
        ...

    async def open_executions(self) -> list[ExecutionRecord]:
        """Return the executions to recover at a start, oldest first.

        They are executing or paused, or starting with ``queued``.
        """
        ...

    async def answered_requests(
        self, *, before: tuple[str, str, int] | None = None, limit: int = 50
    ) -> list[AnsweredRequest]:
        """Return the answered requests to people of all executions, the newest answer first.

        Answers that a timeout gave are among them. ``before`` is the position of the last one of a
        page.
        """
        ...

    async def count_answered_requests(self) -> int: ...

    async def delete_execution(self, execution_id: str) -> None:
        """Delete an execution that has ended, with its events, calls, document and large values.

        The first of several commits hides the execution; other writers wait for one commit at most.

        Raises:
            NotFound: No execution has this id.
            Conflict: ``execution-running``.
        """
        ...

    async def prune(self, before: str, limit: int) -> list[str]:
        """Delete up to ``limit`` executions that ended before a UTC time; return their ids."""
        ...

    async def project_each(
        self, execution_ids: Sequence[str], project: Projection[Projected]
    ) -> dict[str, Projected]:
        """Return the projections of those executions whose document is older than their events.

        ``project`` is called in a thread, for one execution after the other, and reads the events. A
        connection for reading is held meanwhile.

        Raises:
            StoreError: ``store-unreadable``; also any error of ``project``.
        """
        ...

    async def set_document_seqs(self, seqs: Mapping[str, int]) -> list[str]:
        """Set the last event of documents on disk, in one commit; return unknown ids."""
        ...

    async def lagging_documents(self) -> list[str]:
        """Return the ids of paused or ended executions whose document is older than their events."""
        ...

    async def recorded(self, key: CallKey) -> dict[str, Any] | None: ...
    async def has_calls(self, key: CallKey) -> bool: ...
    async def has_other(self, key: CallKey) -> bool: ...
    async def record(self, key: CallKey, reply: dict[str, Any]) -> None: ...
    async def calls(self, execution_ids: Sequence[str]) -> dict[str, list[StoredCall]]:
        """Return what is recorded of the calls of some executions, by id; those without are left out."""
        ...

    async def idempotency_record(self, key: str) -> IdempotencyRecord | None:
        """Return the record of an idempotency key, or None."""
        ...

    async def claim_idempotency_key(
        self, key: str, digest: str, at: str, *, expired: str
    ) -> IdempotencyRecord:
        """Claim a key for the caller, or return its record; only one caller claims a key.

        A key claimed before ``expired`` is free again, unless the execution that its request created
        has not ended. A key whose process died before the response is free too, and keeps its
        ``subject``.
        """
        ...

    async def store_response(self, key: str, status: int, body: str) -> None:
        """Store the response to the request that claimed a key."""
        ...

    async def release_idempotency_key(self, key: str) -> None:
        """Release a key whose request failed; a key with a response stays."""
        ...

    async def delete_expired_keys(self, expired: str) -> int:
        """Delete the keys that are free again; return their number."""
        ...

    def publish_address(
        self, url: str | None, token: str | None = None, *, is_service: bool = True
    ) -> None:
        """Publish the address and token of the API of this process, for other processes.

        Args:
            url: None withdraws the address.
            token: The bearer token of the API, None without one.
            is_service: Whether the process is a service, rather than a command that ends by itself.
        """
        ...

    async def close(self) -> None: ...
