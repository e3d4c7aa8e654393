"""Subscriptions: from any event of an execution's history to its present, and on without a gap.

A subscriber joins the live projection first; earlier events are then read from the store, up to
the moment it joined. So no event is sent twice or missed. Streamed text is not stored: the
projection has it, and a new subscriber gets each open text whole, from offset 0. A consumer that
puts pieces at their offsets has every character once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from planwave.errors import ShuttingDown
from planwave.events import ENDED_NODE, Event, ExecutionState
from planwave.jsonio import dumps_trusted
from planwave.service.dependencies import Observer
from planwave.service.streaming.live_execution import JoinPoint, LiveExecution
from planwave.service.streaming.status_messages import streamed_text
from planwave.service.streaming.stored_execution import execution_not_found, load_state
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch, Subscriber

if TYPE_CHECKING:
    from planwave.storage.sql.store import Store


RETENTION_S: Final = 60.0
"""How long streamed text can be asked for after the end; later, results come whole."""
RETENTION_BYTES: Final = 32 * 1024 * 1024
"""How much of it is kept, as JSON of the states it belongs to; the oldest goes first."""
_PAGE: Final = 100
"""Stored events told in one frame."""
_INLINE_EVENTS: Final = 1_000
"""Events folded on the event loop: more take longer than going to a thread and back."""
_NODE_END_TYPES: Final = frozenset(f"node.{status}" for status in ENDED_NODE)


class HistoryPages:
    """The stored events of one execution, as batches that all readers share.

    A batch is cached while it is being sent, so many subscribers that reconnect together cost one
    read per page.
    """

    def __init__(self, store: Store, live: LiveExecution) -> None:
        self._store = store
        self._live = live
        self._cached: WeakValueDictionary[tuple[int, int], EventBatch] = WeakValueDictionary()
        self._reading = asyncio.Lock()

    async def after(self, seq: int, last: int) -> EventBatch:
        """Return some events from ``seq + 1`` on, none above ``last``, with the text of their nodes.

        Raises:
            NotFound: The execution was deleted meanwhile.
        """
        key = (seq, min(last, (seq // _PAGE + 1) * _PAGE))
        if (frame := self._cached.get(key)) is not None:
            return frame
        async with self._reading:
            if (frame := self._cached.get(key)) is None:
                frame = self._cached[key] = await self._read(*key)
            return frame

    async def _read(self, seq: int, last: int) -> EventBatch:
        execution_id = self._live.execution_id
        events = await self._store.events(execution_id, after=seq, limit=last - seq)
        if not events:
            raise execution_not_found(execution_id)
        return EventBatch(list(_with_texts(events, self._live.state)), events[-1].seq)


def _with_texts(events: Sequence[Event], state: ExecutionState) -> Iterator[Event]:
    """Put the text a node streamed before the event that ended the node."""
    for event in events:
        if event.type in _NODE_END_TYPES and event.path in state.nodes:
            yield from streamed_text(state, state.nodes[event.path])
        yield event


class ExecutionSubscription:
    """One subscriber of an execution: iterate it for frames until the execution is over.

    Attributes:
        live: The projection it shares with all others.
        snapshot: The whole state as JSON when the subscriber joined, if requested.

    Raises (while iterating):
        SlowConsumer: The subscriber fell too far behind.
        ShuttingDown: The service is going down.
        StoreError: The execution broke, as its events could not be kept.
    """

    def __init__(
        self,
        live: LiveExecution,
        pages: HistoryPages,
        subscriber: Subscriber,
        moment: JoinPoint,
        after: int | None,
        *,
        for_operator: bool,
    ) -> None:
        self.live = live
        self._for_operator = for_operator
        self._pages = pages
        self._subscriber = subscriber
        self._joined = moment.seq
        self._is_over = moment.is_over
        self.snapshot = moment.snapshot
        # With the snapshot alone nothing is missing, and it has the texts.
        self._texts = None if after is None else moment.texts
        self._done = self._sent = moment.seq if after is None else min(after, moment.seq)

    @property
    def is_over(self) -> bool:
        """Whether every event was delivered."""
        return self._is_over and self._texts is None and self._sent >= self._joined

    @property
    def cursor(self) -> int:
        """The last stored event the subscriber is done with; see ``Subscriber``."""
        return self._done if self._done < self._joined else max(self._done, self._subscriber.cursor)

    def on_drop(self, call: Callable[[], object]) -> None:
        """Set a callback for a subscriber that falls too far behind while it reads nothing."""
        self._subscriber.on_drop = call

    async def next(self) -> EventBatch | None:
        """Return the next batch, None after the last one; may be cancelled and called again."""
        self._done = self._sent
        if self._sent < self._joined:
            frame = await self._pages.after(self._sent, self._joined)
        elif self._texts is not None:
            frame, self._texts = self._texts, None
        elif self._is_over:
            return None
        else:
            frame = await self._subscriber.next()
            self._is_over = frame.is_last
        self._sent = frame.last_seq
        return frame if self._for_operator else frame.public

    def __aiter__(self) -> ExecutionSubscription:
        return self

    async def __anext__(self) -> EventBatch:
        frame = await self.next()
        if frame is None:
            raise StopAsyncIteration
        return frame


class LiveExecutions:
    """The executions this process runs or watches, each with one projection.

    Attributes:
        streams_closed: Whether ``close_streams`` was called.
        catch_up: Reads what another process has stored of an execution meanwhile; None where none does.
        on_subscribe: Called with an execution that has one subscriber more.
        on_unsubscribe: Called with an execution that has one subscriber less.
    """

    def __init__(self, store: Store, observers: Sequence[Observer] = ()) -> None:
        self._store, self._observers = store, observers
        self._by_id: dict[str, LiveExecution] = {}
        self._pages: WeakValueDictionary[str, HistoryPages] = WeakValueDictionary()
        self._loading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._retained: dict[str, tuple[asyncio.TimerHandle, int]] = {}
        self.streams_closed = False
        self.catch_up: Callable[[LiveExecution], Awaitable[None]] | None = None
        self.on_subscribe: Callable[[LiveExecution], object] | None = None
        self.on_unsubscribe: Callable[[LiveExecution], object] | None = None

    def __iter__(self) -> Iterator[LiveExecution]:
        return iter(list(self._by_id.values()))

    @property
    def subscriber_count(self) -> int:
        """The number of subscribers of all executions."""
        return sum(live.subscriber_count for live in self._by_id.values())

    def get(self, execution_id: str) -> LiveExecution | None:
        """Return the projection of an execution, or None."""
        return self._by_id.get(execution_id)

    def state_of(self, execution_id: str) -> ExecutionState | None:
        """Return the present state of an execution, or None; the caller must not change it."""
        live = self._by_id.get(execution_id)
        return None if live is None else live.state

    async def state(self, execution_id: str) -> ExecutionState:
        """Return the present state of an execution, of this process or stored.

        Raises:
            NotFound: There is none of that id.
        """
        live = self._by_id.get(execution_id)
        if live is None:
            return await load_state(self._store, execution_id)
        if self.catch_up is not None and live.session is None:
            await self.catch_up(live)
        return live.state

    def create(self, created: Event) -> LiveExecution:
        """Return the projection of a new execution."""
        live = LiveExecution(created.execution_id, self._observers)
        self._by_id[created.execution_id] = live
        live.publish([created])
        return live

    @asynccontextmanager
    async def acquire(self, execution_id: str) -> AsyncGenerator[LiveExecution]:
        """Have an eye on a stored execution: its projection is folded from its events if need be.

        Raises:
            NotFound: There is none of that id.
        """
        live = self._by_id.get(execution_id) or await self._load(execution_id)
        live.holders += 1
        try:
            yield live
        finally:
            live.holders -= 1
            self.release(live)

    @asynccontextmanager
    async def subscribe(
        self,
        execution_id: str,
        after: int | None,
        bounds: BacklogLimits,
        *,
        with_snapshot: bool = False,
        for_operator: bool = False,
    ) -> AsyncGenerator[ExecutionSubscription]:
        """Follow an execution; see ``ExecutionQueries.subscribe``."""
        async with self.acquire(execution_id) as live:
            subscriber, moment = await live.subscribe(
                bounds, with_snapshot=with_snapshot, for_operator=for_operator
            )
            pages = self._pages.get(execution_id)
            if pages is None:
                pages = self._pages[execution_id] = HistoryPages(self._store, live)
            following = ExecutionSubscription(
                live, pages, subscriber, moment, after, for_operator=for_operator
            )
            del moment  # its snapshot is large
            if self.on_subscribe is not None:
                self.on_subscribe(live)
            try:
                yield following
            finally:
                live.unsubscribe(subscriber)
                if self.on_unsubscribe is not None:
                    self.on_unsubscribe(live)

    def retain(self, live: LiveExecution) -> None:
        """Keep the projection of an execution that has finished here, for subscribers that reconnect.

        Only streamed text and the error of a broken run are not in the store.
        """
        if live.error is not None or live.has_streamed:
            weight = len(dumps_trusted(live.state.as_json()))
            while self._retained and weight > RETENTION_BYTES - self._retained_bytes():
                self._end_retention(next(iter(self._retained)))
            timer = asyncio.get_running_loop().call_later(
                RETENTION_S, self._end_retention, live.execution_id
            )
            self._retained[live.execution_id] = (timer, weight)
        self.release(live)

    def discard(self, execution_id: str) -> None:
        """Drop the projection of a deleted execution; present subscribers still get all its events."""
        if execution_id in self._retained:
            self._end_retention(execution_id)
        self._by_id.pop(execution_id, None)

    def close_streams(self) -> None:
        """End all streams with ``ShuttingDown``, and open no further one."""
        self.streams_closed = True
        for live in self:
            live.disconnect_all(ShuttingDown())

    def close(self) -> None:
        """Forget all."""
        for execution_id in list(self._retained):
            self._end_retention(execution_id)
        self._by_id.clear()

    async def _load(self, execution_id: str) -> LiveExecution:
        lock = self._loading.get(execution_id)
        if lock is None:
            lock = self._loading[execution_id] = asyncio.Lock()
        # One at a time: two readers during a write would build two different projections.
        async with lock:
            live = self._by_id.get(execution_id)
            if live is None:
                live = LiveExecution(execution_id, self._observers)
                events = await self._store.events(execution_id)
                if len(events) > _INLINE_EVENTS:
                    await asyncio.to_thread(live.load_history, events)
                else:
                    live.load_history(events)
                if not events:
                    raise execution_not_found(execution_id)
                self._by_id[execution_id] = live
            return live

    def _retained_bytes(self) -> int:
        return sum(weight for _, weight in self._retained.values())

    def _end_retention(self, execution_id: str) -> None:
        timer, _ = self._retained.pop(execution_id)
        timer.cancel()
        if (live := self._by_id.get(execution_id)) is not None:
            self.release(live)

    def release(self, live: LiveExecution) -> None:
        """Drop a projection that is neither running, watched nor retained."""
        execution_id = live.execution_id
        is_kept = not live.is_unused or execution_id in self._retained
        if not is_kept and self._by_id.get(execution_id) is live:
            del self._by_id[execution_id]
