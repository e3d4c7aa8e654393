"""What goes into a turn of the driver, and what comes out beside events: messages and effects.

Messages are results of nodes, commands of callers, and timers. A turn applies them one by one, in the
order in which they were posted. A message whose sender waits for a reply carries a reply token; its
future stays in ``node_api/mailbox.py``.

Effects are what a turn wants done outside; ``driver/execution.py`` does it. Tasks are cancelled at once,
everything else waits until the events of the turn are durable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal

from planwave.errors import PlanwaveError
from planwave.events import Event
from planwave.events.plan_payloads import PlanRequestedData, PlanRevisedData
from planwave.events.types import NodeCompletedData, UsageData
from planwave.executor.state import Attempt, GraphRun, NodeRun, Outputs, ReplyTo
from planwave.graph.model import Graph, Json
from planwave.graph.protocols import ExecutionResult, NodeEvent, Suspension
from planwave.principals import PrincipalDocument


@dataclass(frozen=True, slots=True)
class StartExecution:
    """The first message: start the execution, or resume it where its stored events end.

    Attributes:
        is_recovery: An earlier process left it running.
        approval: The request that is to be answered before anything starts.
    """

    is_recovery: bool = False
    approval: Json | None = None


@dataclass(frozen=True, slots=True)
class InterruptExecution:
    """Start nothing more: its process stops to drive it, without an end of the execution."""


@dataclass(frozen=True, slots=True)
class AttemptSucceeded:
    """The node returned a valid result."""

    attempt: Attempt
    result: ExecutionResult


@dataclass(frozen=True, slots=True)
class AttemptSuspended:
    """The node waits for an answer."""

    attempt: Attempt
    suspension: Suspension


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """The node raised an exception.

    Attributes:
        attempt: The attempt that ends with it.
        error: The exception, or one in its place whose text holds no secret.
        raised: The exception itself.
        traceback: Its traceback as it is stored; see ``planwave.source_locations.traceback_of``.
    """

    attempt: Attempt
    error: BaseException
    raised: BaseException | None = None
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class ResultReused:
    """A fork's node reuses a parent's result; ``event_data`` is added to its ``node.completed``."""

    attempt: Attempt
    outputs: Outputs
    event_data: NodeCompletedData


@dataclass(frozen=True, slots=True)
class NodeEmitted:
    """A running node emitted an event that is stored; a reply comes when it is durable."""

    attempt: Attempt
    event: NodeEvent
    reply: ReplyTo | None = None


@dataclass(frozen=True, slots=True)
class NestedRunRequested:
    """A node requests a nested run of a graph under a key.

    Attributes:
        attempt: The attempt that sends the request.
        key: The name of the nested run within its node.
        identity: Hashes of the graph, and of inputs and variables.
        prefix: Goes before the ids of the nested nodes in their paths.
        graph_run: The prepared graph; None where its outcome is known already.
        reply: Gets the outcome.
        is_counted: The task that asks is one of those that ``Attempt.active_tasks`` counts.
    """

    attempt: Attempt
    key: str
    identity: tuple[str, str]
    prefix: str
    graph_run: GraphRun | None
    reply: ReplyTo
    is_counted: bool


@dataclass(frozen=True, slots=True)
class NestedRunAbandoned:
    """A node no longer waits for its nested run."""

    attempt: Attempt
    key: str
    reply: ReplyTo


@dataclass(frozen=True, slots=True)
class OnceValueMade:
    """A node has computed a value of ``runtime.once``; the reply comes when it is durable."""

    attempt: Attempt
    key: str
    value: Json
    reply: ReplyTo


@dataclass(frozen=True, slots=True)
class BytesStored:
    """Something was stored for the execution beside its events."""

    size: int


@dataclass(frozen=True, slots=True)
class NodeActivityChanged:
    """A node has entered or left an own-work block, or one of its tasks has ended or waits."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class OutcomeTaken:
    """A task that waited for a nested outcome, or for the budget, has gone on: what it does now shows."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class BudgetReserved:
    """A node is about to use amounts of the budget; the reply comes once the budget has them.

    Attributes:
        attempt: That of the node; None for a call of the model that writes a change of the graph.
        amounts: By name.
        reply: Gets the outcome, and stands for what is held.
        is_counted: The task that asks is one of those that ``Attempt.active_tasks`` counts.
    """

    attempt: Attempt | None
    amounts: Mapping[str, float]
    reply: ReplyTo
    is_counted: bool


@dataclass(frozen=True, slots=True)
class BudgetReleased:
    """The amounts that were reserved with this reply token are given back, or no longer waited for."""

    attempt: Attempt | None
    reply: ReplyTo


@dataclass(frozen=True, slots=True)
class ChangeCallEnded:
    """A call of the model that writes a change of the graph has ended.

    Attributes:
        number: Which of the requests the change is for.
        usage: What the call used, as a ``usage`` event has it.
    """

    number: int
    usage: UsageData


@dataclass(frozen=True, slots=True)
class CancelExecution:
    """Cancel everything that has not ended."""

    cause: str


@dataclass(frozen=True, slots=True)
class CancelNode:
    """Cancel one node; nodes that depend on it are blocked."""

    path: str
    cause: str
    reply: ReplyTo


@dataclass(frozen=True, slots=True)
class PauseExecution:
    """Start nothing more until a ``ResumeExecution``."""

    reason: str
    reply: ReplyTo


@dataclass(frozen=True, slots=True)
class ResumeExecution:
    """Go on after a pause."""

    reason: str
    reply: ReplyTo


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Answer the request of a waiting node."""

    request_id: str
    answer: Json
    reply: ReplyTo
    answered_by: PrincipalDocument | None = None


@dataclass(frozen=True, slots=True)
class RevisePlan:
    """Change the graph that is run.

    Attributes:
        graph: The graph that it becomes.
        data: What the event of the change says, as far as that is known before.
        create: Returns a run of that graph, of which nothing has been started; ``floors`` are those of ``WaveProgress``.
        reply: Gets the outcome; None where no caller waits.
        stored: All events of the execution that are durable; the driver reads them before the turn.
        request: What a person is asked first; None where the change is made at once.
    """

    graph: Graph
    data: PlanRevisedData
    create: Callable[..., GraphRun]
    reply: ReplyTo | None = None
    stored: Sequence[Event] = ()
    request: Json = None


@dataclass(frozen=True, slots=True)
class RequestChange:
    """A person has a model write a change of the graph that is run.

    Attributes:
        asked: What is asked for.
        reply: Gets the outcome: whether it is being written.
    """

    asked: PlanRequestedData
    reply: ReplyTo


@dataclass(frozen=True, slots=True)
class ChangeWritten:
    """A model has written a change of the graph that was requested, or there is none.

    Attributes:
        number: Which of the requests it is for.
        revision: The change; None where ``error`` says why there is none.
        error: Why there is none.
        request: What a person is asked first; None where the change is made at once.
    """

    number: int
    revision: RevisePlan | None = None
    error: PlanwaveError | None = None
    request: Json = None


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """Make or refuse a change of the graph, as a person has decided; an ``AnswerRequest`` with what that needs.

    Attributes:
        revision: The change; None where ``error`` says why it cannot be.
        error: Why it cannot be.
    """

    request_id: str
    answer: Json
    reply: ReplyTo
    answered_by: PrincipalDocument | None = None
    revision: RevisePlan | None = None
    error: PlanwaveError | None = None


@dataclass(frozen=True, slots=True)
class RetryTimer:
    """The delay before an attempt is over."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class AttemptTimer:
    """The own time of an attempt may be used up."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class RequestTimer:
    """The time for answering a request is over."""

    request_id: str


@dataclass(frozen=True, slots=True)
class ExecutionTimer:
    """The time of the whole execution may be used up."""

    limit_s: float


@dataclass(frozen=True, slots=True)
class BudgetTimer:
    """The time in the budget of the execution may be used up, or nearly."""


Timer = BudgetTimer | RetryTimer | AttemptTimer | RequestTimer | ExecutionTimer
"""Messages that a turn has ordered for later."""


@dataclass(frozen=True, slots=True)
class IdleChanged:
    """Other tasks of a node than before wait for something that comes only after a while."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class IdleEnded:
    """What a task of a node waited for has come; it goes on once the execution has a running place."""

    attempt: Attempt
    reply: ReplyTo
    wait: object


@dataclass(frozen=True, slots=True)
class LoadingEnded:
    """A task of a node has loaded what its process needs once; the node's clocks go on."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class PlaceGranted:
    """The execution has the running place that it waited for."""


Command = (
    CancelNode
    | PauseExecution
    | ResumeExecution
    | AnswerRequest
    | AnswerChange
    | RevisePlan
    | RequestChange
)
"""Commands of callers who wait for the reply."""

Message = (
    StartExecution
    | InterruptExecution
    | AttemptSucceeded
    | AttemptSuspended
    | AttemptFailed
    | ResultReused
    | NodeEmitted
    | NestedRunRequested
    | NestedRunAbandoned
    | OnceValueMade
    | BytesStored
    | NodeActivityChanged
    | OutcomeTaken
    | BudgetReserved
    | BudgetReleased
    | CancelExecution
    | Command
    | ChangeCallEnded
    | ChangeWritten
    | Timer
    | PlaceGranted
    | IdleChanged
    | IdleEnded
    | LoadingEnded
)


# -- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Start the task of an attempt that got a slot."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class WriteChange:
    """Have a model write a change of the graph.

    Attributes:
        number: Counts the requests of the execution, from 1.
        asked: What is asked for.
    """

    number: int
    asked: PlanRequestedData


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Cancel the task of an attempt that has ended without it."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Post a timer as a message at a time of the event loop's clock."""

    timer: Timer
    at_s: float


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Cancel a timer, if it is set."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to a command, or refuse what a node asked for."""

    reply: ReplyTo
    error: PlanwaveError | None = None


@dataclass(frozen=True, slots=True)
class CancelReply:
    """Cancel what waits for a reply that does not come: its node has ended its attempt."""

    reply: ReplyTo


@dataclass(frozen=True, slots=True)
class DeliverOutcome:
    """Pass the outcome of a nested run to its node; None where it no longer waits."""

    attempt: Attempt
    reply: ReplyTo
    outcome: Mapping[str, Outputs] | PlanwaveError | None


@dataclass(frozen=True, slots=True)
class KeepOnceValue:
    """Make a durable value of ``runtime.once`` the node's, and reply to the node."""

    node_run: NodeRun
    key: str
    value: Json
    reply: ReplyTo


@dataclass(frozen=True, slots=True)
class CloseLinks:
    """Close what links have opened in a graph run that has ended, or that another one has replaced.

    What runs of ``users`` goes on in the graph run that it began in: all is closed once their tasks have ended.
    """

    graph_run: GraphRun
    users: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class RaiseInterrupt:
    """Raise a node's KeyboardInterrupt out of the execution."""

    error: KeyboardInterrupt


PlaceChange = Literal["wanted", "taken", "freed"]
"""What becomes of the running place of an execution: it waits for one, works already and so takes one,
or needs none, because nothing of it runs."""


@dataclass(frozen=True, slots=True)
class ChangePlace:
    """Report what becomes of the running place of the execution."""

    change: PlaceChange


Effect = (
    StartAttempt
    | WriteChange
    | CancelTask
    | SetTimer
    | CancelTimer
    | Reply
    | CancelReply
    | DeliverOutcome
    | KeepOnceValue
    | CloseLinks
    | RaiseInterrupt
    | ChangePlace
)


# -- the log of turns ------------------------------------------------------------------------------

_SHOWN: Final = frozenset({"at_s", "change", "path", "prefix", "reply", "request_id"})
"""The fields that say what an item is about; all others may hold what a node or a person gave."""


def outline(item: Message | Effect) -> str:
    """Return a message or an effect in a line, without what it carries: no values, texts or errors."""
    parts: list[str] = []
    for field in fields(item):
        value = getattr(item, field.name)
        if isinstance(value, Attempt):
            parts.append(f"{value.path}#{value.number}")
        elif isinstance(value, GraphRun):
            parts.append(value.prefix or "/")
        elif isinstance(value, PlanwaveError):
            parts.append(value.code)
        elif isinstance(value, Timer):
            parts.append(outline(value))
        elif field.name in _SHOWN:
            parts.append(f"{field.name}={value}")
    return f"{type(item).__name__}({', '.join(parts)})"
