"""Own work of a node beside its nested runs; the node is not parked meanwhile."""

from __future__ import annotations

from contextvars import ContextVar

from planwave.executor.messages import NodeActivityChanged
from planwave.executor.node_api.mailbox import Mailbox
from planwave.executor.state import Attempt

calls_around: ContextVar[int] = ContextVar("calls_around", default=0)
"""Number of :class:`OwnWork` blocks around the node's current code."""


class OwnWork:
    """A context manager that marks a node's call as own work beside its nested runs."""

    __slots__ = ("_attempt", "_mailbox")

    def __init__(self, attempt: Attempt, mailbox: Mailbox) -> None:
        self._attempt, self._mailbox = attempt, mailbox

    def __enter__(self) -> None:
        self._attempt.own_calls += 1
        calls_around.set(calls_around.get() + 1)
        self._tell()

    def __exit__(self, *_: object) -> None:
        # Not by a token: a generator may be closed in another context than it was started in.
        calls_around.set(max(calls_around.get() - 1, 0))
        self._attempt.own_calls -= 1
        self._tell()

    def _tell(self) -> None:
        if self._attempt.has_waits:
            self._mailbox.post(NodeActivityChanged(self._attempt))
