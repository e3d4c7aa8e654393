"""What goes into a turn of the driver, and what comes out beside events: messages and effects.

Messages are results of nodes, commands of callers, and timers. A turn applies them one by one, in the
order in which they were posted. A message whose sender waits for a reply carries a reply token; its
future stays in ``node_api/mailbox.py``.

Effects are what a turn wants done outside; ``driver/execution.py`` does it. Tasks are cancelled at once,
everything else waits until the events of the turn are durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from planwave.errors import PlanwaveError
from planwave.events.types import NodeCompletedData
from planwave.executor.state import Attempt, GraphRun, NodeRun, Outputs, ReplyTo
from planwave.graph.model import Json
from planwave.graph.protocols import ExecutionResult, NodeEvent, Suspension
from planwave.principals import PrincipalDocument


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
    """The node raised an exception."""

    attempt: Attempt
    error: BaseException


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
        is_counted: The task that asks is one of those that :attr:`Attempt.active_tasks` counts.
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
class BudgetReserved:
    """A node is about to use amounts of the budget; the reply comes once the budget has them.

    ``is_counted``: the task that asks is one of those that :attr:`Attempt.active_tasks` counts.
    """

    attempt: Attempt
    amounts: Mapping[str, float]
    reply: ReplyTo
    is_counted: bool


@dataclass(frozen=True, slots=True)
class BudgetReleased:
    """A node gives back the amounts that it reserved with this reply token, or no longer waits for them."""

    attempt: Attempt
    reply: ReplyTo


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
    """Start nothing more until a :class:`ResumeExecution`."""

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


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer that the driver has set is due."""

    timer: Timer


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
class PlaceGranted:
    """The execution has the running place that it waited for."""


Command = CancelNode | PauseExecution | ResumeExecution | AnswerRequest
"""Commands of callers who wait for the reply."""

Message = (
    AttemptSucceeded
    | AttemptSuspended
    | AttemptFailed
    | ResultReused
    | NodeEmitted
    | NestedRunRequested
    | NestedRunAbandoned
    | OnceValueMade
    | BytesStored
    | NodeActivityChanged
    | BudgetReserved
    | BudgetReleased
    | CancelExecution
    | Command
    | TimerFired
    | PlaceGranted
    | IdleChanged
    | IdleEnded
)


# -- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartAttempt:
    """Start the task of an attempt that got a slot."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Cancel the task of an attempt that has ended without it."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Post ``TimerFired(timer)`` at a time of the event loop's clock."""

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
    """Close what links have opened in a graph run that has ended."""

    graph_run: GraphRun


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
