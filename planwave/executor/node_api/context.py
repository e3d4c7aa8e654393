"""What a running node calls on its context: events, own work, idle waits, task groups, its budget.

It changes nothing but the counts of what the tasks of a node do (see ``Attempt``), and posts messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Final, TypeVar

from planwave.events.types import UsageData
from planwave.executor.messages import (
    BudgetReleased,
    BudgetReserved,
    ChangeCallEnded,
    IdleChanged,
    IdleEnded,
    LoadingEnded,
    NodeActivityChanged,
    NodeEmitted,
)
from planwave.executor.node_api.mailbox import Answer, Mailbox
from planwave.executor.state import DONE, Attempt, ReplyTo, current_attempt
from planwave.graph.model import Json
from planwave.graph.protocols import NodeEvent

T = TypeVar("T")
DELTA: Final = "delta"
"""``event_type`` of a piece of text, which is streamed and not stored."""
calls_around: ContextVar[int] = ContextVar("calls_around", default=0)
"""Number of ``OwnWork`` blocks around the node's current code."""


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


class Loading:
    """A context manager around the loading of what the process needs once: the node's clocks stand still."""

    __slots__ = ("_attempt", "_mailbox")

    def __init__(self, attempt: Attempt, mailbox: Mailbox) -> None:
        self._attempt, self._mailbox = attempt, mailbox

    def __enter__(self) -> None:
        self._attempt.begin_loading(asyncio.get_running_loop().time())

    def __exit__(self, *_: object) -> None:
        # At once, not in a turn: the node looks at the time that it has left.
        self._attempt.end_loading(asyncio.get_running_loop().time())
        self._mailbox.post(LoadingEnded(self._attempt))


class NodeTaskGroup:
    """An ``asyncio.TaskGroup`` whose tasks are counted; see ``Attempt.active_tasks``."""

    def __init__(self, attempt: Attempt, mailbox: Mailbox) -> None:
        self._attempt, self._mailbox = attempt, mailbox
        self._group = asyncio.TaskGroup()
        self._open = 0
        self._is_awaited = False

    async def __aenter__(self) -> NodeTaskGroup:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open and self._attempt.counts(asyncio.current_task()):
            self._is_awaited = True  # the last of its tasks makes the waiting one active again
            self._count(-1)
        await self._group.__aexit__(error_type, error, traceback)

    def create_task(
        self, coro: Coroutine[object, object, T], *, name: str | None = None
    ) -> asyncio.Task[T]:
        """Start a task; as ``asyncio.TaskGroup.create_task``."""
        task = self._group.create_task(coro, name=name)
        counted: set[object] = self._attempt.group_tasks or set()
        counted.add(task)
        self._attempt.group_tasks = counted
        self._open += 1
        self._count(1)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[T]) -> None:
        self._open -= 1
        if self._attempt.group_tasks is not None:
            self._attempt.group_tasks.discard(task)
        self._count(0 if self._is_awaited and not self._open else -1)

    def _count(self, change: int) -> None:
        self._attempt.active_tasks += change
        if change < 0 and self._attempt.has_waits:
            self._mailbox.post(NodeActivityChanged(self._attempt))


# -- events ----------------------------------------------------------------------------------------


class NodeEvents:
    """The events of the nodes of one execution.

    Args:
        execution_id: Its id.
        mailbox: Gets the events that are stored.
        redact: Returns JSON without secrets.
        publish_delta: Publishes a piece of streamed text at once; it is not stored.
    """

    def __init__(
        self,
        execution_id: str,
        mailbox: Mailbox,
        redact: Callable[[Json], Json],
        publish_delta: Callable[[Attempt, Json], None],
    ) -> None:
        self._execution_id, self._mailbox = execution_id, mailbox
        self._redact, self._publish_delta = redact, publish_delta

    def add(self, attempt: Attempt, event: NodeEvent) -> None:
        """Emit an event; one of an attempt that has ended is dropped."""
        if attempt.phase is DONE:
            return
        data = self._redact(event.data)
        if data is not event.data:
            event = event._replace(data=data)
        if event.event_type == DELTA:
            self._publish_delta(attempt, event.data)
        else:
            self._mailbox.post(NodeEmitted(attempt, event))

    def emit(
        self, attempt: Attempt, loop: asyncio.AbstractEventLoop, kind: str, data: Json
    ) -> None:
        """Emit an event at once, from any thread; see ``FlowContext.emit``."""
        event = self._event(attempt, kind, data)
        if _running_loop() is loop:
            self.add(attempt, event)
        else:
            loop.call_soon_threadsafe(self.add, attempt, event)

    async def record(self, attempt: Attempt, kind: str, data: Json) -> None:
        """Emit an event and return once it is durable; see ``FlowContext.record``."""
        if attempt.phase is DONE:
            raise attempt.ended_error()
        reply, stored = self._mailbox.expect_reply()
        with OwnWork(attempt, self._mailbox):
            event = self._event(attempt, kind, self._redact(data))
            self._mailbox.post(NodeEmitted(attempt, event, reply))
            try:
                await stored
            finally:
                self._mailbox.forget(reply)

    def _event(self, attempt: Attempt, kind: str, data: Json) -> NodeEvent:
        node = attempt.graph_run.program.steps[attempt.node].node
        return NodeEvent(node.id, node.type, kind, self._execution_id, data)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # a thread without one
        return None


# -- the budget ------------------------------------------------------------------------------------


class Reservation:
    """Amounts that a call holds; satisfies ``graph.protocols.Reservation``."""

    __slots__ = ("_attempt", "_mailbox", "_reply")

    def __init__(self, mailbox: Mailbox, attempt: Attempt | None, reply: ReplyTo) -> None:
        self._mailbox, self._attempt = mailbox, attempt
        self._reply: ReplyTo | None = reply

    def release(self) -> None:
        """Free the amounts; what was really used is in ``usage`` events emitted before."""
        reply, self._reply = self._reply, None
        if reply is not None:
            self._mailbox.post(BudgetReleased(self._attempt, reply))


async def _reserved(
    mailbox: Mailbox, asked: BudgetReserved, granted: asyncio.Future[Answer]
) -> Reservation:
    """Ask for amounts, and return their reservation once the budget has them."""
    mailbox.post(asked)
    reservation = Reservation(mailbox, asked.attempt, asked.reply)
    try:
        await granted
    except BaseException:
        reservation.release()
        raise
    finally:
        mailbox.forget(asked.reply)
    return reservation


class NodeBudget:
    """The budget of one execution, for its nodes; satisfies ``graph.protocols.Budget``.

    Args:
        mailbox: Gets the reservations.
        amounts: The names of the amounts that are limited.
    """

    def __init__(self, mailbox: Mailbox, amounts: Collection[str]) -> None:
        self._mailbox = mailbox
        self.amounts = frozenset(amounts)

    async def reserve(self, amounts: Mapping[str, float]) -> Reservation:
        """Wait until the budget has these amounts, and hold them; see ``FlowContext.budget``."""
        attempt = current_attempt.get()
        if attempt.phase is DONE:
            raise attempt.ended_error()
        reply, granted = self._mailbox.expect_reply()
        is_counted = attempt.counts(asyncio.current_task())
        blocks = calls_around.get()
        attempt.own_calls -= blocks  # while it waits, it does no own work
        asked = BudgetReserved(attempt, amounts, reply, is_counted)
        try:
            return await _reserved(self._mailbox, asked, granted)
        finally:
            attempt.own_calls += blocks
            if attempt.waits is not None:
                attempt.waits.discard(reply)


class ChangeBudget:
    """The budget of one execution, for the model that writes a change of its graph; satisfies ``graph.protocols.Budget``.

    Args:
        mailbox: Gets the reservations.
        amounts: The names of the amounts that are limited.
    """

    def __init__(self, mailbox: Mailbox, amounts: Collection[str]) -> None:
        self._mailbox = mailbox
        self.amounts = frozenset(amounts)

    async def reserve(self, amounts: Mapping[str, float]) -> Reservation:
        """Wait until the budget has these amounts, and hold them.

        Raises:
            Conflict: ``budget-used``: it does not have them, and nothing that runs gives any back.
        """
        reply, granted = self._mailbox.expect_reply()
        asked = BudgetReserved(None, amounts, reply, is_counted=False)
        return await _reserved(self._mailbox, asked, granted)


class ChangeCalls:
    """The calls of the model that writes a change; satisfies ``executor.ports.ChangeCalls``.

    Args:
        mailbox: Gets the reservations, and what the calls used.
        number: Which of the requests of the execution the change is for.
        amounts: The names of the amounts that its budget limits.
        publish: Publishes a part of the change.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        number: int,
        amounts: Collection[str],
        publish: Callable[[Json], None],
    ) -> None:
        self._mailbox, self._number = mailbox, number
        self.wrote = publish
        self.budget = ChangeBudget(mailbox, amounts) if amounts else None

    def ended(self, usage: UsageData) -> None:
        """Have the ``usage`` event of a call emitted."""
        self._mailbox.post(ChangeCallEnded(self._number, usage))
