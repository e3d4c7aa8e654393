"""The records that the store holds besides events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypedDict, TypeVar

from planwave.errors import StoreError
from planwave.events import Event
from planwave.principals import Principal, principal_json
from planwave.providers.protocols import CallKey
from planwave.storage.event_codec import SETTLED_STATUSES

if TYPE_CHECKING:
    from planwave.shapes.common import Author, ExecutionStatus, Outcome, Publication
    from planwave.shapes.plans import ApprovalResponse

Projected = TypeVar("Projected")


class Approval(NamedTuple):
    """The approval of what a plan has under one hash.

    Attributes:
        at: When it was given, UTC.
        by: Who gave it.
    """

    at: str
    by: Principal | None

    def as_json(self) -> ApprovalResponse:
        """Return the approval in the JSON form of the API, in which it is stored too."""
        return {"at": self.at, "by": principal_json(self.by)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Approval:
        """Return the approval that ``as_json`` wrote."""
        return cls(document["at"], Principal.from_json(document["by"]))


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """A stored plan: columns for search, and ``document``, the JSON of ``Plan.as_json()``.

    Attributes:
        document: The newest revision.
        name: The name, for which it is a flow; None for a plan without one. Unique without regard to case.
        description: The purpose of a flow: what it says to callers, and the goal of its executions.
        published: What a flow is published as.
        sound_revision: The newest revision without errors; None without one.
        approvals: The approvals of its revisions, by the hash of the graph.
        approved_revision: The newest revision without errors whose hash is approved; None without one.
        needs_approval: Whether callers of a flow start approved revisions only, where it was read.
        edits: The number of times the record was changed, also without a new revision.
        author: The author of the current revision: ``person``, ``planner`` or ``api``; None in a
            plan that was never changed.
        note: The author's note on the current revision.
        updated_at: The time of the current revision, UTC; None in a plan that was never changed.
        edited_by: Who made the newest revision; None where an older planwave did.
        plain: Whether ``planwave.jsonio.is_plain`` is known to be true of the document.
    """

    plan_id: str
    created_at: str
    user_prompt: str
    title: str
    hash: str
    document: dict[str, Any]
    edits: int = 0
    author: Author | None = None
    note: str = ""
    updated_at: str | None = None
    edited_by: Principal | None = None
    name: str | None = None
    description: str = ""
    published: tuple[Publication, ...] = ()
    sound_revision: int | None = 1
    approvals: Mapping[str, Approval] = field(default_factory=dict[str, Approval])
    approved_revision: int | None = None
    needs_approval: bool = field(default=False, compare=False)
    plain: bool = field(default=False, compare=False)

    @property
    def live_revision(self) -> int | None:
        """The revision that callers of a flow start; None without one."""
        return self.approved_revision if self.needs_approval else self.sound_revision

    @property
    def revision(self) -> int:
        """The number of the newest revision."""
        return self.document.get("revision", 1)


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
        approval: That of its hash; None without one.
    """

    plan_id: str
    revision: int
    hash: str
    title: str
    author: Author
    note: str
    created_at: str
    node_count: int
    error_count: int
    document: dict[str, Any] | None = None
    created_by: Principal | None = None
    approval: Approval | None = None


@dataclass(frozen=True, slots=True)
class InputSet:
    """Inputs of a flow that were saved under a name.

    Attributes:
        inputs: In the form in which an execution is given them.
        updated_at: When the inputs or the name were changed last, UTC.
        created_by: Who saved them last.
    """

    plan_id: str
    name: str
    inputs: Mapping[str, Any]
    created_at: str
    updated_at: str
    created_by: Principal | None = None


class ExecutionLabels(NamedTuple):
    """What people say of an execution, to find it again.

    Attributes:
        name: In place of the title; None for the title.
        tags: In the order given.
    """

    name: str | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    starred: bool = False


COUNTED_MATCHES: Final = 1_000
"""Executions with some words that are counted at most, the newest: each has to be read for that."""
NO_LABELS: Final = ExecutionLabels()


@dataclass(frozen=True, slots=True)
class ExecutionRecord:
    """An execution as lists show it; the store updates it from appended events.

    ``status`` is one of ``starting executing paused completed failed cancelled``.
    ``document_seq`` is the ``last_seq`` of the JSON document on disk (0: none yet). ``queued``: the
    execution was accepted for running, and runs even after a restart. ``revision`` is that of the plan;
    None if the graph of the execution was changed. ``flow`` is the name that the plan had where the
    execution was started as a flow; None for one of a plan. ``created_by`` is who
    created it; None where an older planwave did. ``parent_id`` is the execution that it is a fork of. ``needs`` is the
    capability without which no process can drive it; see ``service/executions/capabilities.py``.
    ``tokens``, ``cost_usd`` (the known part) and ``duration_s`` (from start to end) are those of its last pause or
    its end; None before. ``outcome`` is what its status leaves open; see ``planwave.events.outcome``.
    """

    execution_id: str
    plan_id: str | None
    title: str
    user_prompt: str
    status: ExecutionStatus
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
    needs: str | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    duration_s: float | None = None
    outcome: Outcome | None = None
    labels: ExecutionLabels = NO_LABELS

    @property
    def flow_id(self) -> str | None:
        """The id of the flow as which it was started; None for one of a plan."""
        return None if self.flow is None else self.plan_id

    @property
    def is_behind(self) -> bool:
        """Whether the JSON document on disk is older than the events."""
        return self.status in SETTLED_STATUSES and self.document_seq < self.last_seq


def is_interrupted(status: str, *, is_owned: bool, was_accepted: bool = True) -> bool:
    """Return whether an execution was cut off: its status says that it runs, and nobody runs it.

    Args:
        status: Its stored status.
        is_owned: Whether a live process may be running it; of a directory, ``lock.is_owned``.
        was_accepted: Whether its start was accepted; one that is only created waits to be started.
    """
    return not is_owned and (status == "executing" or (status == "starting" and was_accepted))


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
            ``Store.store_response`` or, after a failure,
            ``Store.release_idempotency_key``.
        is_held_elsewhere: Whether another process, which is alive, has the key, without a response yet.
    """

    digest: str
    created_at: str
    subject: str
    status: int | None = None
    body: str | None = None
    is_new: bool = False
    is_held_elsewhere: bool = False


DISK_FULL: Final = "disk-full"
STORE_BUSY: Final = "store-busy"
STORE_UNREACHABLE: Final = "store-unreachable"
DRIVEN_ELSEWHERE: Final = "driven-elsewhere"
"""The code of a claim that is refused because another process drives the execution."""
TRANSIENT_CODES: Final = frozenset({DISK_FULL, STORE_BUSY, STORE_UNREACHABLE})
"""Codes of a transient ``StoreError``: nothing was written, and the write can be retried."""

STORE_OK: Final = "ok"
READ_ONLY: Final = "store-read-only"
STORE_STATUSES: Final = TRANSIENT_CODES | {STORE_OK, READ_ONLY}


class StoredLoad(NamedTuple):
    """What a store holds for all its processes.

    Attributes:
        size: The bytes of the database, without its log.
        waiting: Executions that were accepted and have not begun to run.
        oldest: When the oldest of them was created, UTC; None without one.
    """

    size: int = 0
    waiting: int = 0
    oldest: str | None = None


class Waiting(NamedTuple):
    """What waits for one of several processes.

    Attributes:
        executions: Those that were accepted and have not begun to run.
        by_capability: Those that only processes with a capability can drive, with those that go on in one.
        capable: How many processes are alive that have a capability, by capability.
    """

    executions: int = 0
    by_capability: Mapping[str, int] = MappingProxyType({})
    capable: Mapping[str, int] = MappingProxyType({})


class StoreStats(NamedTuple):
    """The writes of a store since it was opened, and whether it can write now.

    Attributes:
        fatal_error: The error after which the store is read-only until a restart, or None.
        writes: The number of committed writes.
        commits: The numbers of commits with 1, 2, 3 to 4, 5 to 8, … writes.
        transient_error: The error that prevents writes for now, or None.
        busy_since: When the writes began that have no answer yet (``time.monotonic``), or None.
    """

    fatal_error: BaseException | None = None
    writes: int = 0
    commits: tuple[int, ...] = ()
    transient_error: StoreError | None = None
    busy_since: float | None = None

    @property
    def status(self) -> str:
        """``ok``, or the code of the error of writes; one of ``STORE_STATUSES``."""
        if self.fatal_error is not None:
            return READ_ONLY
        return STORE_OK if self.transient_error is None else self.transient_error.code


class PageCursor(NamedTuple):
    """A position in a list: after this item, even if it was deleted since.

    ``value`` is what the list is sorted by, if that is not the time of creation.
    """

    created_at: str
    id: str
    value: str | float | None = None


ExecutionOrder = Literal["created", "duration", "cost", "tokens", "name"]


class ExecutionSort(NamedTuple):
    """The order of a list of executions; equal ones by age. What is not known yet counts as the least."""

    by: ExecutionOrder = "created"
    descending: bool = True

    def cursor_after(self, record: ExecutionRecord) -> PageCursor:
        """Return the position after an execution."""
        value: str | float | None
        match self.by:
            case "created":
                value = None
            case "duration":
                value = -1.0 if record.duration_s is None else record.duration_s
            case "cost":
                value = -1.0 if record.cost_usd is None else record.cost_usd
            case "tokens":
                value = -1 if record.tokens is None else record.tokens
            case "name":
                value = ascii_lower(record.labels.name or record.title)
        return PageCursor(record.created_at, record.execution_id, value)


NEWEST_FIRST: Final = ExecutionSort()


class ExecutionFilters(TypedDict, total=False):
    """Which executions a list has; one that is None or left out does not apply.

    ``text``: words that it has in title, goal, labels, steps or result, or its id; ``since`` and ``until``: created
    from then on, and before then, UTC; ``tag``: that it has; ``starred``: whether somebody starred it; ``as_flow``:
    whether it was started as a flow.
    """

    text: str | None
    since: str | None
    until: str | None
    plan_id: str | None
    tag: str | None
    starred: bool | None
    as_flow: bool | None


def ascii_lower(text: str) -> str:
    """Return a text as the databases lower it: the letters A to Z only."""
    return re.sub("[A-Z]", lambda each: each[0].lower(), text)


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
