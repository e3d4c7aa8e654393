"""Types of events: one union with a payload type for each event type, and their constants.

An event is an immutable, numbered fact about an execution. The state of an execution is the fold of
its events (``ExecutionState``); documents, answers and screens are projections of it. ``seq`` runs
1..n without a gap. ``node.delta`` is streamed but never stored and has ``seq`` 0.

``typed_event`` gives an ``Event`` as a ``TypedEvent``: after ``event.type == "node.started"``
the type checker knows the keys of its ``data``. Outputs are ``{handle: {"type", "value"}}``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    cast,
    get_args,
)

from typing_extensions import TypedDict, get_type_hints

from planwave.errors import ErrorDocument
from planwave.events.plan_payloads import PlanRefusedData, PlanRequestedData, PlanRevisedData
from planwave.expressions.json_text import to_text
from planwave.graph.model import Json
from planwave.principals import PrincipalDocument
from planwave.shapes.common import (
    BlockedCause,
    GraphDocument,
    OptionsDocument,
    OutputsDocument,
    ParentDocument,
)

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # ``Event`` alone is an event of any type.
    TypeT = TypeVar("TypeT", bound=str, default=str, covariant=True)
    DataT = TypeVar("DataT", default=Mapping[str, Any], covariant=True)
else:  # in Python 3.11 a type variable has no default
    from typing import TypeVar

    TypeT, DataT = TypeVar("TypeT", covariant=True), TypeVar("DataT", covariant=True)

TERMINAL: Final = frozenset({"execution.completed", "execution.failed", "execution.cancelled"})
TRANSIENT: Final = frozenset({"node.delta"})
RUN_GRAPH: Final = "run_graph"
"""``event_type`` of the ``node.event`` with which a node opens or abandons a nested run."""
ONCE: Final = "once"
"""``event_type`` of the ``node.event`` that stores a once value."""
MESSAGE: Final = "message"
"""``event_type`` of a ``node.event`` with a message; its data are ``{"text", "extras"}``."""
TEXT_DISCARDED: Final = "text_discarded"
"""``event_type`` of a ``node.event`` with ``{"message"}``: what the attempt has streamed before is void."""
CALLER_TOOL_CALLS: Final = "caller_tool_calls"
"""``event_type`` of the ``node.event`` with the calls that the caller of a flow is to make; its data are
``{"calls": [{"id", "name", "arguments"}]}``, the arguments as the model wrote them."""
REPLY_CUT: Final = "reply_cut"
"""``kind`` of the ``node.log`` of a reply that reached its limit of tokens before its end."""
PLANNING: Final = "planning"
"""``event_type`` of progress while a node writes a plan: ``{"kind", …}``, as the planner reports it."""
TOOL_CALL_STARTS: Final = frozenset({"tool_call_start", "subagent_call_start"})
TOOL_CALL_ENDS: Final = frozenset(
    {"tool_call_end", "tool_call_error", "subagent_call_end", "subagent_call_error"}
)
"""``event_type`` of the events of an agent's calls of tools, and of other agents."""

PauseKind = Literal["waiting", "requested", "set-aside"]
WAITING: Final[PauseKind] = "waiting"
"""No node can run before a request is answered; then the execution resumes by itself."""
REQUESTED: Final[PauseKind] = "requested"
"""A client asked for the pause; running nodes still run to their end."""
SET_ASIDE: Final[PauseKind] = "set-aside"
"""The execution cannot be run; the reason says why."""
PAUSE_REASONS: Final[Mapping[PauseKind, str]] = {
    WAITING: "waiting for an answer",
    REQUESTED: "paused by request",
}
"""The reason of ``execution.paused`` where there is no other."""


class Event(NamedTuple, Generic[TypeT, DataT]):
    """One event. ``at`` is UTC in ISO 8601 with microseconds; ``path`` names a node, nested or not."""

    execution_id: str
    seq: int
    at: str
    type: TypeT
    path: str | None
    attempt: int | None
    data: DataT

    def as_json(self) -> dict[str, Any]:
        """Return the event as JSON, without the keys that do not apply."""
        document: dict[str, Any] = {
            "execution_id": self.execution_id,
            "seq": self.seq,
            "at": self.at,
            "type": self.type,
        }
        if self.path is not None:
            document["path"] = self.path
        if self.attempt is not None:
            document["attempt"] = self.attempt
        document["data"] = self.data
        return document


# -- payloads --------------------------------------------------------------------------------------


OPERATOR_ONLY: Final = "operator only"
"""``Annotated[…, OPERATOR_ONLY]``: a field that only the operator sees; see ``public_event``."""


class NoData(TypedDict):
    """The payload of an event that has none."""


class ApprovalDocument(TypedDict):
    """The approval that an execution needs before any node starts.

    ``plan_hash`` is that of the graph that runs; ``approved_in`` is the earlier execution in which a
    person approved this hash, ``approved_revision`` the revision of the plan that is approved for all callers.
    """

    plan_hash: str
    approved_in: NotRequired[str]
    approved_revision: NotRequired[int]


class SupersededDocument(TypedDict):
    """The request for approval that an edited plan answers, and the note of that answer.

    ``dropped_policies`` are the ids of nodes that had a policy of the request, and are gone.
    """

    execution_id: str
    request_id: str
    note: NotRequired[str]
    dropped_policies: NotRequired[list[str]]


class CreatedData(TypedDict):
    """The request of the client; ``graph`` has its ``policies`` already. ``written_by``: not by a person.

    ``model_plan_id``: the plan that it wrote, where not ``plan_id``; ``trace_id``: that of its spans, if traced.
    """

    goal: NotRequired[str]
    title: NotRequired[str]
    plan_id: NotRequired[str | None]
    plan_hash: NotRequired[str | None]
    revision: NotRequired[int | None]
    flow: NotRequired[str | None]
    graph: NotRequired[GraphDocument | None]
    inputs: NotRequired[dict[str, dict[str, Json]] | None]
    options: NotRequired[OptionsDocument | None]
    waves: NotRequired[int]
    trigger: NotRequired[Json]
    parent: NotRequired[ParentDocument | None]
    approval: NotRequired[ApprovalDocument | None]
    policies: NotRequired[dict[str, dict[str, Json]] | None]
    supersedes: NotRequired[SupersededDocument | None]
    created_by: NotRequired[PrincipalDocument]
    trace_context: NotRequired[dict[str, str]]
    trace_id: NotRequired[Annotated[str, OPERATOR_ONLY]]
    goal_template: NotRequired[str]
    written_by: NotRequired[Literal["model"]]
    model_plan_id: NotRequired[Annotated[str, OPERATOR_ONLY]]
    flows: NotRequired[list[str]]


class StartedData(TypedDict):
    """The shape of the run; ``linked`` and ``not_reached`` are ids of nodes that do not run."""

    waves: NotRequired[int]
    linked: NotRequired[list[str]]
    not_reached: NotRequired[list[str]]


class PausedData(TypedDict):
    """Why the execution is paused; see ``pause_kind`` for events without ``kind``.

    ``request_id`` and ``request``: the execution itself asks, about its plan, a change of it, or its budget.
    """

    reason: NotRequired[str]
    kind: NotRequired[str]
    request_id: NotRequired[str]
    request: NotRequired[Json]


class ResumedData(TypedDict):
    """Why the execution goes on; ``epoch`` counts the processes that have owned it.

    ``request_id`` and ``answer`` are there where the request of the execution itself was answered;
    without ``answer`` it was closed, as nothing needs it.
    """

    reason: NotRequired[str]
    epoch: NotRequired[int]
    request_id: NotRequired[str]
    answer: NotRequired[Json]
    answered_by: NotRequired[PrincipalDocument]


class WarnedData(TypedDict):
    """A warning of the execution: ``amounts`` are those of its budget that are nearly used up."""

    message: str
    amounts: NotRequired[list[str]]


class CompletedData(TypedDict):
    """``handled_failures`` are the paths of failed nodes whose policy handled the failure."""

    handled_failures: NotRequired[list[str]]


class FailedData(TypedDict):
    """``failures`` are the paths of all nodes whose failure was not handled."""

    error: NotRequired[ErrorDocument]
    failures: NotRequired[list[str]]


class CancelledData(TypedDict):
    """Why an execution or a node was cancelled; ``streamed`` of a node as in ``node.failed``."""

    cause: NotRequired[Json]
    streamed: NotRequired[OutputsDocument]


class WaveStartedData(TypedDict):
    """``nodes`` are the ids of the wave's nodes, in graph order."""

    wave: int
    nodes: NotRequired[list[str]]


class WaveCompletedData(TypedDict):
    """The number of the wave, from 1."""

    wave: int


class NodeStartedData(TypedDict):
    """The start of an attempt.

    ``via`` is the edge that won ``join: any``; ``reentry`` counts interruptions of this attempt; ``name`` is that of
    a nested node; ``versions`` are ``{type: version}`` of the types that the result depends on, where not 1.
    """

    wave: NotRequired[int]
    via: NotRequired[str]
    reentry: NotRequired[int]
    name: NotRequired[str]
    versions: NotRequired[dict[str, int]]


class ReuseOrigin(TypedDict):
    """Where a result was taken from; ``failed_inside``: the node completed although one inside it failed."""

    execution_id: str
    failed_inside: NotRequired[bool]


class NodeCompletedData(TypedDict):
    """A result; ``given``: preset by the client, the node never ran.

    In a fork: ``reused`` from the parent, or ``changed`` by the client; ``versions`` are of the types that a
    reused result depends on, also inside the node. ``wave``: of a node that did not start. ``depends_on``
    hashes what the types declare that the result depends on; "" where that is not known.
    """

    outputs: NotRequired[OutputsDocument]
    duration_s: NotRequired[float]
    wave: NotRequired[int]
    given: NotRequired[bool]
    reused: NotRequired[ReuseOrigin]
    changed: NotRequired[bool]
    versions: NotRequired[dict[str, int]]
    depends_on: NotRequired[str]


class NodeFailedData(TypedDict):
    """The last failure of a node.

    ``outputs`` are those of its error policy; ``retryable``: another execution may succeed. ``traceback``: of an exception
    that is not planwave's own, without secrets. ``streamed``: what the attempt had streamed, by kind; nothing follows from it.
    """

    error: ErrorDocument
    handled: NotRequired[bool]
    outputs: NotRequired[OutputsDocument]
    streamed: NotRequired[OutputsDocument]
    duration_s: NotRequired[float]
    retryable: NotRequired[bool]
    traceback: NotRequired[Annotated[str, OPERATOR_ONLY]]


class NodeRetryingData(TypedDict):
    """The failure of one attempt, and when the next begins; ``traceback``, ``streamed`` as in ``node.failed``."""

    error: NotRequired[ErrorDocument]
    streamed: NotRequired[OutputsDocument]
    delay_s: float
    next_attempt: int
    traceback: NotRequired[Annotated[str, OPERATOR_ONLY]]


class NodeSkippedData(TypedDict):
    """``handle`` is the required input that got no value."""

    reason: NotRequired[str]
    handle: NotRequired[str]


class NodeBlockedData(TypedDict):
    """The failure that the node was blocked by."""

    cause: NotRequired[BlockedCause]


class NodeWaitingData(TypedDict):
    """A request that a node waits for; ``interrupted``: the driver asks about an interrupted attempt.

    ``duration_s`` and ``own_time_s``: how long the attempt has run, and did its own work. ``replan``: the change it asks for.
    """

    request_id: str
    request: NotRequired[Json]
    state: NotRequired[Json]
    timeout_s: NotRequired[float]
    timeout_answer: NotRequired[Json]
    interrupted: NotRequired[bool]
    duration_s: NotRequired[float]
    own_time_s: NotRequired[float]
    depends_on: NotRequired[str]
    replan: NotRequired[str]


class NodeAnsweredData(TypedDict):
    """An answer; ``by`` is "timeout" where the request timed out, ``answered_by`` is who answered."""

    request_id: str
    answer: Json
    by: NotRequired[str]
    answered_by: NotRequired[PrincipalDocument]


class NodeParkedData(TypedDict):
    """The times of an attempt that waits inside it, or (``budget``) for the budget; see ``node.waiting``."""

    budget: NotRequired[bool]
    duration_s: NotRequired[float]
    own_time_s: NotRequired[float]


class NodeLogData(TypedDict):
    """A log line of a node; ``kind`` where programs act on it."""

    message: NotRequired[str]
    level: NotRequired[Json]
    kind: NotRequired[str]


class NodeEventData(TypedDict):
    """An event that a node emits itself; ``traceback`` is taken out of its data, for the operator alone."""

    event_type: Json
    data: NotRequired[Json]
    traceback: NotRequired[Annotated[str, OPERATOR_ONLY]]


class NestedRunOpenedData(TypedDict):
    """A nested run; ``graph`` and ``inputs`` are hashes, ``document`` is the graph, with its first run.

    ``before`` is the highest attempt that nodes of earlier runs under this key had.
    """

    key: str
    graph: str
    inputs: str
    document: NotRequired[GraphDocument]
    before: NotRequired[int]


class NestedRunAbandonedData(TypedDict):
    """The key of the nested run; ``dropped`` is always true."""

    key: str
    dropped: NotRequired[bool]


class OnceStoredData(TypedDict):
    """A value that the node finds again under its key; ``depends_on`` as in ``node.completed``."""

    key: str
    value: Json
    depends_on: NotRequired[str]


class UsageData(TypedDict):
    """What a call of a model used; ``recorded``: the call was served from its record.

    ``duration_s`` is from its first attempt to its end, ``attempts`` is left out where there was one.
    Any node may emit usage, so each value may be anything.
    """

    provider: NotRequired[Json]
    model: NotRequired[Json]
    input_tokens: NotRequired[Json]
    output_tokens: NotRequired[Json]
    cache_read_tokens: NotRequired[Json]
    cache_write_tokens: NotRequired[Json]
    reasoning_tokens: NotRequired[Json]
    cost_usd: NotRequired[Json]
    estimated: NotRequired[Json]
    recorded: NotRequired[Json]
    duration_s: NotRequired[Json]
    attempts: NotRequired[Json]


class NodeDeltaData(TypedDict):
    """Streamed text, ``kind`` "text" or "reasoning", or of no node "plan", a change of it; ``offset`` counts characters."""

    kind: str
    text: str
    offset: int


# -- the union -------------------------------------------------------------------------------------

ExecutionCreated = Event[Literal["execution.created"], CreatedData]
ExecutionStarted = Event[Literal["execution.started"], StartedData]
ExecutionPaused = Event[Literal["execution.paused"], PausedData]
ExecutionResumed = Event[Literal["execution.resumed"], ResumedData]
ExecutionWarned = Event[Literal["execution.warned"], WarnedData]
ExecutionCompleted = Event[Literal["execution.completed"], CompletedData]
ExecutionFailed = Event[Literal["execution.failed"], FailedData]
ExecutionCancelled = Event[Literal["execution.cancelled"], CancelledData]
PlanRequested = Event[Literal["plan.requested"], PlanRequestedData]
PlanRevised = Event[Literal["plan.revised"], PlanRevisedData]
PlanRefused = Event[Literal["plan.refused"], PlanRefusedData]
WaveStarted = Event[Literal["wave.started"], WaveStartedData]
WaveCompleted = Event[Literal["wave.completed"], WaveCompletedData]
NodeStarted = Event[Literal["node.started"], NodeStartedData]
NodeCompleted = Event[Literal["node.completed"], NodeCompletedData]
NodeFailed = Event[Literal["node.failed"], NodeFailedData]
NodeRetrying = Event[Literal["node.retrying"], NodeRetryingData]
NodeSkipped = Event[Literal["node.skipped"], NodeSkippedData]
NodeBlocked = Event[Literal["node.blocked"], NodeBlockedData]
NodeWaiting = Event[Literal["node.waiting"], NodeWaitingData]
NodeAnswered = Event[Literal["node.answered"], NodeAnsweredData]
NodeParked = Event[Literal["node.parked"], NodeParkedData]
NodeUnparked = Event[Literal["node.unparked"], NoData]
NodeCancelled = Event[Literal["node.cancelled"], CancelledData]
NodeLog = Event[Literal["node.log"], NodeLogData]
NodeEmitted = Event[Literal["node.event"], NodeEventData]
NodeDelta = Event[Literal["node.delta"], NodeDeltaData]
Usage = Event[Literal["usage"], UsageData]
NestedRunOpened = Event[Literal["nested_run.opened"], NestedRunOpenedData]
"""Stored as a ``node.event`` of the node that opens the run, like the next two."""
NestedRunAbandoned = Event[Literal["nested_run.abandoned"], NestedRunAbandonedData]
OnceStored = Event[Literal["once.stored"], OnceStoredData]

NodeOutcome = NodeCompleted | NodeFailed | NodeSkipped | NodeBlocked | NodeCancelled
"""The events with which a node ends for good."""
TypedEvent = (
    ExecutionCreated | ExecutionStarted | ExecutionPaused | ExecutionResumed
    | ExecutionWarned | ExecutionCompleted | ExecutionFailed | ExecutionCancelled | WaveStarted | WaveCompleted
    | PlanRequested | PlanRevised | PlanRefused | NodeStarted | NodeRetrying | NodeWaiting | NodeAnswered | NodeParked | NodeUnparked
    | NodeLog | NodeEmitted | NodeDelta | Usage | NestedRunOpened | NestedRunAbandoned | OnceStored
    | NodeOutcome
)  # fmt: skip


def _operator_fields() -> dict[str, frozenset[str]]:
    """Return the fields that are marked with ``OPERATOR_ONLY``, by event type."""
    marked: dict[str, frozenset[str]] = {}
    for kind in get_args(TypedEvent):
        name, payload = get_args(kind)
        hints = get_type_hints(payload, include_extras=True)
        (event_type,) = get_args(name)
        marked[event_type] = frozenset(field for field, hint in hints.items() if _is_marked(hint))
    return {event_type: names for event_type, names in marked.items() if names}


def _is_marked(hint: Any) -> bool:
    return hint is OPERATOR_ONLY or any(map(_is_marked, get_args(hint)))


OPERATOR_FIELDS: Final[Mapping[str, frozenset[str]]] = _operator_fields()
"""The fields of payloads that only the operator sees, by event type."""


def public_event(event: Event) -> Event:
    """Return an event as everybody but the operator sees it: without ``OPERATOR_FIELDS``."""
    names = OPERATOR_FIELDS.get(event.type)
    if names is None or names.isdisjoint(event.data):
        return event
    return event._replace(data={name: event.data[name] for name in event.data if name not in names})


# -- types of the events that a run emits ----------------------------------------------------------

PayloadT = TypeVar("PayloadT")


class EventType(NamedTuple, Generic[PayloadT]):
    """The name of an event type; the type checker compares payloads with its parameter."""

    name: str


EXECUTION_STARTED: Final = EventType[StartedData]("execution.started")
EXECUTION_PAUSED: Final = EventType[PausedData]("execution.paused")
EXECUTION_RESUMED: Final = EventType[ResumedData]("execution.resumed")
EXECUTION_WARNED: Final = EventType[WarnedData]("execution.warned")
EXECUTION_COMPLETED: Final = EventType[CompletedData]("execution.completed")
EXECUTION_FAILED: Final = EventType[FailedData]("execution.failed")
EXECUTION_CANCELLED: Final = EventType[CancelledData]("execution.cancelled")
PLAN_REQUESTED: Final = EventType[PlanRequestedData]("plan.requested")
PLAN_REVISED: Final = EventType[PlanRevisedData]("plan.revised")
PLAN_REFUSED: Final = EventType[PlanRefusedData]("plan.refused")
WAVE_STARTED: Final = EventType[WaveStartedData]("wave.started")
WAVE_COMPLETED: Final = EventType[WaveCompletedData]("wave.completed")
NODE_STARTED: Final = EventType[NodeStartedData]("node.started")
NODE_COMPLETED: Final = EventType[NodeCompletedData]("node.completed")
NODE_FAILED: Final = EventType[NodeFailedData]("node.failed")
NODE_RETRYING: Final = EventType[NodeRetryingData]("node.retrying")
NODE_SKIPPED: Final = EventType[NodeSkippedData]("node.skipped")
NODE_BLOCKED: Final = EventType[NodeBlockedData]("node.blocked")
NODE_WAITING: Final = EventType[NodeWaitingData]("node.waiting")
NODE_ANSWERED: Final = EventType[NodeAnsweredData]("node.answered")
NODE_PARKED: Final = EventType[NodeParkedData]("node.parked")
NODE_UNPARKED: Final = EventType[NoData]("node.unparked")
NODE_CANCELLED: Final = EventType[CancelledData]("node.cancelled")
NODE_LOG: Final = EventType[NodeLogData]("node.log")
NODE_EVENT: Final = EventType[NodeEventData]("node.event")
USAGE: Final = EventType[UsageData]("usage")


# -- readers ---------------------------------------------------------------------------------------


def typed_event(event: Event) -> TypedEvent:
    """Return an event by its type, for the type checker; O(1).

    The ``node.event`` with which the engine stores nested runs and once values get types of their own.
    """
    if event.type == "node.event" and (own_type := engine_type(event.data)) is not None:
        event = event._replace(type=own_type, data=event.data["data"])
    return cast("TypedEvent", event)


def engine_type(data: Mapping[str, Any]) -> str | None:
    """Return the type of what the engine stores in a ``node.event``, None for a node's own event."""
    event_type = data.get("event_type")
    if event_type == ONCE:
        return "once.stored"
    if event_type == RUN_GRAPH and (stored := data.get("data")):
        is_opened = isinstance(stored, dict) and "graph" in stored
        return "nested_run.opened" if is_opened else "nested_run.abandoned"
    return None


def typed_events(events: Iterable[Event]) -> Iterator[TypedEvent]:
    """Yield events by their types; see ``typed_event``."""
    return map(typed_event, events)


def pause_kind(data: Mapping[str, Any] | PausedData) -> PauseKind:
    """Return the kind of an ``execution.paused``; older events have only its reason."""
    stored, reason = data.get("kind"), data.get("reason")
    for kind in (WAITING, REQUESTED):
        if stored == kind or (stored is None and reason == PAUSE_REASONS[kind]):
            return kind
    return SET_ASIDE


def message_text(data: Any) -> str:
    """Return the text of a message, "" where it has none; data of another shape are the text."""
    return to_text(cast("dict[str, Any]", data).get("text", "") if isinstance(data, dict) else data)


def error_message(error: ErrorDocument | None) -> str:
    """Return the message of an error, or its code where it has none."""
    known = error or {}
    return str(known.get("message") or known.get("code") or "unknown error")
