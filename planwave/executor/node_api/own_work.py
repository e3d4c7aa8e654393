"""What a node does beside its nested runs: own work, or a wait for something that comes after a while."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from planwave.executor.messages import IdleChanged, IdleEnded, NodeActivityChanged
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


class Idle:
    """An async context manager around a wait of a node, in which its execution needs no running place.

    Of a task that is not counted nothing is known, so its waits change nothing.
    """

    __slots__ = ("_attempt", "_mailbox")

    def __init__(self, attempt: Attempt, mailbox: Mailbox) -> None:
        self._attempt, self._mailbox = attempt, mailbox

    async def __aenter__(self) -> None:
        if self._attempt.counts(asyncio.current_task()):
            self._attempt.idle_waits.add(self)
            self._mailbox.post(IdleChanged(self._attempt))

    async def __aexit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        if self not in self._attempt.idle_waits:
            return
        reply = None
        try:
            if error_type is None and not self._mailbox.is_closed:
                reply, granted = self._mailbox.expect_reply()
                self._mailbox.post(IdleEnded(self._attempt, reply, self))
                await granted
        finally:
            if reply is not None:
                self._mailbox.forget(reply)
            if self in self._attempt.idle_waits:
                self._attempt.idle_waits.discard(self)
                self._mailbox.post(IdleChanged(self._attempt))
