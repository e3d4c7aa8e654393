"""The live projection of an execution, and the event batches that all its subscribers share.

A ``LiveExecution`` receives every published event once. It folds the events into the
execution's state on demand (with the text streamed so far), and collects them into batches of about
50 ms with streamed text joined. Every subscriber gets the same batches, so a thousand subscribers cost
a thousand queue entries, not a thousand projections. A subscriber that cannot keep up is
disconnected, with the cursor to continue from; the execution never waits for a subscriber.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from planwave.errors import Conflict, ShuttingDown
from planwave.events import TERMINAL, TRANSIENT, Event, ExecutionState, TextLog
from planwave.events.unreadable import guard_stored
from planwave.jsonio import dumps_trusted
from planwave.principals import OPERATOR, Principal
from planwave.service.streaming.delta_coalescing import coalesce_text
from planwave.service.streaming.status_messages import open_texts, snapshot_of, status_summary_of
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch, Subscriber

if TYPE_CHECKING:
    from planwave.executor.driver.execution import Execution
    from planwave.service.dependencies import Observer
    from planwave.service.executions.session import ExecutionSession

BATCH_INTERVAL_S: Final = 0.05
"""Seconds between two frames: streamed text reaches a subscriber at most 20 times a second a node. Only the
first text of an execution, for which people wait, and its end come at once.

Where there are so many subscribers that handing out a frame takes longer than half of that, frames are
as much rarer as it takes for the event loop to be free half of the time.
"""
LAST_LOGS: Final = 10
_MAX_UNFOLDED: Final = 256
"""Events that are folded, and put into sentences, later: when somebody asks."""
_SLICE: Final = 16
"""Subscribers told at a time; between two slices the event loop turns to what nodes have to say."""


class JoinPoint(NamedTuple):
    """The state of an execution when a subscriber joined; shared by subscribers that join together.

    Attributes:
        seq: The last stored event by then.
        is_over: No further event can come.
        texts: What open nodes had streamed by then, as deltas from offset 0; None without any.
        snapshot: The whole state as JSON, if requested.
    """

    seq: int
    is_over: bool
    texts: EventBatch | None
    snapshot: bytes | None


class _Joining(NamedTuple):
    limits: BacklogLimits
    with_snapshot: bool
    for_operator: bool
    joined: asyncio.Future[tuple[Subscriber, JoinPoint]]


class _Broadcast(NamedTuple):
    """A batch with the subscribers that still wait for it, its start, and its first event's time."""

    batch: EventBatch
    subscribers: deque[Subscriber]
    began: float
    since: float


class LiveExecution:
    """One execution as this process sees it, whether it runs already or is only being watched.

    Attributes:
        last_seq: The last stored event that was published.
        is_over: Whether the execution has ended.
        has_streamed: There was streamed text.
        held_bytes: The size of its results when this process had run it, as far as that is bounded.
        commands: A lock, held during a command and during the preparation of a run.
        driving: A lock, held while this process drives it.
        holders: The number of subscribers and commands; see ``LiveExecutions.acquire``.
        polls: The number of callers that poll its status.
        session: Set from its queueing until the execution ends or pauses.
        finished: Set when it has ended, or is paused with no running node.
        error: The error that broke the run (such as a lost store), or None.
        disconnect_reason: Why subscribers were disconnected before its end, or None.
        observers: What follows deliveries to subscribers.
    """

    def __init__(self, execution_id: str, observers: Sequence[Observer] = ()) -> None:
        self.execution_id = execution_id
        self.observers = observers
        self.last_seq = 0
        self.is_over = self.has_streamed = False
        self.held_bytes = 0
        self.commands, self.driving = asyncio.Lock(), asyncio.Lock()
        self.holders = self.polls = 0
        self.session: ExecutionSession | None = None
        self.finished = asyncio.Event()
        self.error: Exception | None = None
        self.disconnect_reason: Exception | None = None
        self._ended = asyncio.Event()
        self._news: asyncio.Event | None = None
        self._sentences = TextLog()
        self._logs: deque[str] = deque(maxlen=LAST_LOGS)
        self._state = ExecutionState(execution_id)
        self._unfolded: list[Event] = []
        self._unrendered: list[Event] = []
        self._subscribers: set[Subscriber] = set()
        self._joining: list[_Joining] = []
        self._pending: list[Event] = []
        self._flush: asyncio.Handle | None = None
        self._next_flush_at = -inf
        self._broadcast: _Broadcast | None = None
        self._slice: asyncio.Handle | None = None
        self._pending_since = 0.0
        self._published_seq = 0
        self._published_count = 0
        self._status_summary: tuple[int, bytes] | None = None
        self._snapshots: dict[bool, bytes] = {}
        self._texts: tuple[int, EventBatch | None] | None = None

    @property
    def subscriber_count(self) -> int:
        """The number of subscribers, with the callers that poll its status."""
        return len(self._subscribers) + self.polls

    @property
    def state(self) -> ExecutionState:
        """The fold of all published events, streamed text included.

        It is folded on demand, as most executions are not looked at while they run. A caller that
        awaits something must read it again afterwards.
        """
        if self._unfolded:
            self.fold()
        return self._state

    def fold(self) -> None:
        """Bring the state up to date.

        Raises:
            Exception: An event is invalid. It is raised once; the other events stay valid.
        """
        events, self._unfolded = iter(self._unfolded), []
        try:
            for event in events:
                self._state.apply(event)
        finally:
            self._unfolded = [*events, *self._unfolded]

    @property
    def logs(self) -> Sequence[str]:
        """The last sentences of its log."""
        self.render_log()
        return self._logs

    def render_log(self) -> None:
        """Render events as log sentences, only on demand."""
        unworded, self._unrendered = self._unrendered, []
        for event in unworded:
            if (
                event.type not in TRANSIENT
                and (line := self._sentences.line_for(event)) is not None
            ):
                self._logs.append(line)

    @property
    def account(self) -> str:
        """Whose share of the running places it counts towards; see ``Principal.account``."""
        return (Principal.from_json(self.state.created_by) or OPERATOR).account

    @property
    def is_unscheduled(self) -> bool:
        """Whether it is neither running nor queued."""
        return self.session is None or self.finished.is_set()

    @property
    def execution(self) -> Execution | None:
        """Its driver, while it runs."""
        return None if self.session is None else self.session.execution

    @property
    def is_unused(self) -> bool:
        """Whether this process neither runs nor watches it."""
        return not self.holders and self.is_unscheduled

    # -- events ------------------------------------------------------------------------------------

    def publish(self, events: Sequence[Event]) -> None:
        """Add published events, and schedule their delivery to every subscriber."""
        if events and 0 < events[0].seq <= self.last_seq:  # read by two at once
            events = [event for event in events if event.seq > self.last_seq]
        self._published_count += len(events)
        self._snapshots.clear()
        self._unfolded += events
        self._unrendered += events
        had_streamed = self.has_streamed
        for event in events:
            if event.seq:
                self.last_seq = event.seq
            else:
                self.has_streamed = True
        self._limit_backlog()
        if events and events[-1].type in TERMINAL:
            self.is_over = True
            self._ended.set()
        if self._subscribers:
            if not self._pending:
                self._pending_since = asyncio.get_running_loop().time()
            self._pending += events
            self._flush_soon(at_once=self.has_streamed and not had_streamed)
        elif not self._pending:
            self._published_seq = self.last_seq
        if self._news is not None:
            self._news.set()

    def _limit_backlog(self) -> None:
        if len(self._unfolded) > _MAX_UNFOLDED:
            self.fold()
        if len(self._unrendered) > _MAX_UNFOLDED:
            self.render_log()

    async def wait_for_events(self) -> None:
        """Wait until something is published, or all are disconnected."""
        news = self._news = self._news or asyncio.Event()
        await news.wait()
        if self._news is news:
            self._news = None

    def load_history(self, events: Sequence[Event]) -> None:
        """Add stored events, and fold them at once.

        Raises:
            Conflict: ``unreadable``.
        """
        with guard_stored(self.execution_id):
            self.publish(events)
            self.fold()
        self.render_log()

    def disconnect_all(self, error: Exception) -> None:
        """Disconnect every subscriber with ``error``, once it has read its queue."""
        self.disconnect_reason = error
        self._ended.set()
        if self._news is not None:
            self._news.set()
        self._start_broadcast()
        self._finish_broadcast()
        for subscriber in self._subscribers:
            subscriber.close_with(error)
        self._subscribers.clear()

    def mark_queued(self, session: ExecutionSession) -> None:
        """Mark the execution as queued."""
        self.session = session
        self.error = self.disconnect_reason = None
        self.finished.clear()
        self._ended.clear()

    def mark_idle(self) -> None:
        """Mark the execution as paused with no running node; a command can continue it."""
        self.session = None
        self.finished.set()
        if self._news is not None:
            self._news.set()

    def mark_finished(self) -> None:
        """Mark the execution as finished in this process."""
        self.finished.set()
        if not self.is_over:
            self.disconnect_all(self.error or ShuttingDown())

    # -- subscribers -------------------------------------------------------------------------------

    async def subscribe(
        self, bounds: BacklogLimits, *, with_snapshot: bool = False, for_operator: bool = False
    ) -> tuple[Subscriber, JoinPoint]:
        """Open a subscriber, and return it with the state at the moment from which it gets events.

        If events are pending, that moment is after their delivery, so that new subscribers do not
        cause additional batches.
        """
        if not self._pending:
            return self._add_subscriber(bounds, with_snapshot, for_operator)
        admitted = asyncio.get_running_loop().create_future()
        self._joining.append(_Joining(bounds, with_snapshot, for_operator, admitted))
        try:
            return await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self.unsubscribe(admitted.result()[0])
            raise

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Let a subscriber go."""
        self._subscribers.discard(subscriber)

    async def wait_for_end(self, seconds: float) -> None:
        """Wait for a time, or until the execution is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    def status_summary(self) -> bytes:
        """Return ``{status, node_states, logs, wave}`` as JSON, cached for all callers."""
        if self._status_summary is None or self._status_summary[0] != self.last_seq:
            self._status_summary = (
                self.last_seq,
                dumps_trusted(status_summary_of(self.state, self.logs)),
            )
        return self._status_summary[1]

    def snapshot(self, *, for_operator: bool = False) -> bytes:
        """Return the whole state as JSON, with the text streamed so far and the last log sentences."""
        if for_operator not in self._snapshots:
            self._snapshots[for_operator] = snapshot_of(
                self.state, self.logs, for_operator=for_operator
            )
        return self._snapshots[for_operator]

    def _add_subscriber(
        self, bounds: BacklogLimits, with_snapshot: bool, for_operator: bool
    ) -> tuple[Subscriber, JoinPoint]:
        subscriber = Subscriber(self._published_seq, bounds)
        if self.disconnect_reason is None:
            self._subscribers.add(subscriber)
        else:
            subscriber.close_with(self.disconnect_reason)
        snapshot = self.snapshot(for_operator=for_operator) if with_snapshot else None
        moment = JoinPoint(self._published_seq, self.is_over, self._open_texts(), snapshot)
        return subscriber, moment

    def _open_texts(self) -> EventBatch | None:
        if not self.has_streamed:
            return None
        if self._texts is None or self._texts[0] != self._published_count:
            texts = open_texts(self.state)
            self._texts = (
                self._published_count,
                EventBatch(texts, self._published_seq) if texts else None,
            )
        return self._texts[1]

    # -- frames ------------------------------------------------------------------------------------

    def _flush_soon(self, *, at_once: bool = False) -> None:
        at_once = at_once or self.is_over
        if self._broadcast is not None:
            return  # it comes when everybody has the last one
        if self._flush is not None:
            if not at_once:
                return
            self._flush.cancel()
        loop = asyncio.get_running_loop()
        if self._next_flush_at <= loop.time() or at_once:
            self._flush = loop.call_soon(self._start_broadcast)
        else:
            self._flush = loop.call_at(self._next_flush_at, self._start_broadcast)

    def _start_broadcast(self) -> None:
        """Build a batch of the pending events, and start to deliver it."""
        self._finish_broadcast()
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        if not self._pending:
            return
        events, self._pending = coalesce_text(self._pending), []
        self._published_seq = self.last_seq
        now, since = asyncio.get_running_loop().time(), self._pending_since
        frame = EventBatch(events, self._published_seq)
        self._broadcast = _Broadcast(frame, deque(self._subscribers), now, since)
        joining, self._joining = self._joining, []
        for bounds, with_snapshot, for_operator, admitted in joining:
            if not admitted.done():
                admitted.set_result(self._add_subscriber(bounds, with_snapshot, for_operator))
        self._continue_broadcast(_SLICE)

    def _finish_broadcast(self) -> None:
        if self._broadcast is not None:
            self._continue_broadcast(len(self._broadcast.subscribers))

    def _continue_broadcast(self, most: int) -> None:
        """Tell some subscribers now and the others after the loop has seen to everything else."""
        if self._slice is not None:
            self._slice.cancel()
            self._slice = None
        if self._broadcast is None:
            return
        frame, subscribers, began, since = self._broadcast
        for _ in range(min(most, len(subscribers))):
            subscriber = subscribers.popleft()
            subscriber.put(frame)
            if subscriber.is_dropped and subscriber in self._subscribers:
                self._subscribers.discard(subscriber)
                for observer in self.observers:
                    observer.subscriber_dropped()
        loop = asyncio.get_running_loop()
        if subscribers:
            self._slice = loop.call_soon(self._continue_broadcast, _SLICE)
            return
        self._broadcast = None
        now = loop.time()
        self._next_flush_at = max(began + BATCH_INTERVAL_S, now + (now - began))
        if self.observers:
            loop.call_soon(self._report_delivery, since)  # behind the subscribers just woken
        if self._pending:
            self._flush_soon()

    def _report_delivery(self, since: float) -> None:
        lag_s = asyncio.get_running_loop().time() - since
        for observer in self.observers:
            observer.delivered(lag_s)


def require_not_started(live: LiveExecution, *, is_queued: bool) -> None:
    """Refuse to start what was started already, or is queued for any process.

    Raises:
        Conflict: It is queued, runs, or has ended.
    """
    status = live.state.status
    if status != "starting" or live.session is not None or is_queued:
        raise Conflict(
            f"execution {live.execution_id} was started already; it is {status}",
            code="already-started",
            hint="an execution is started once; execute the plan again for another one",
        )
