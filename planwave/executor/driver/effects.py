"""What a turn of the driver wants done outside; ``execution.py`` does it.

Tasks are cancelled at once. Everything else waits until the events of the turn are durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from planwave.errors import PlanwaveError
from planwave.executor.messages import Timer
from planwave.executor.state import Attempt, GraphRun, NodeRun, Outputs, ReplyTo
from planwave.graph.model import Json


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
