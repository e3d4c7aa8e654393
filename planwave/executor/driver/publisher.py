"""Make a batch of events durable, then publish it to every listener, in order."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import coroutine
from typing import Final, Protocol, cast

from planwave.errors import PermanentError
from planwave.events import TERMINAL, Event
from planwave.events.streamed_text import STREAMED_KINDS, KeptText
from planwave.executor.ports import Journal
from planwave.graph.model import Json

_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Half a surrogate pair, which UTF-8 cannot hold."""
BATCH_WINDOW_S = 0.001
"""How long tokens may gather before their reader is woken."""


@coroutine
def _yield_once() -> Generator[None]:
    """Yield to the event loop once, at half the cost of ``asyncio.sleep(0)``."""
    yield


class Source(Protocol):
    """What streams text: an attempt of a node, or a change of the graph that is written."""

    number: int
    streamed: dict[str, KeptText] | None

    @property
    def path(self) -> str | None: ...


@dataclass(slots=True)
class ChangeSource:
    """The change of the graph with a number, which a model writes; it is of no node."""

    number: int
    streamed: dict[str, KeptText] | None = None
    path: None = None


class Subscription:
    """An unbounded queue of events with one reader.

    The queue never slows the execution down. The service bounds subscribers over a network: the
    service drops a slow subscriber together with its cursor. A reader that stops iterating cannot
    return: ``forget`` is called, and the queue gets no more events.
    """

    __slots__ = ("_batch_timer", "_closed", "_events", "_forget", "_wake")

    def __init__(self, forget: Callable[[Subscription], None] | None = None) -> None:
        self._forget = forget
        self._events: list[Event] = []
        self._wake: asyncio.Future[None] | None = None
        self._batch_timer: asyncio.TimerHandle | None = None
        self._closed = False

    def put_batched(self, event: Event) -> None:
        """Add a transient event; the reader is woken within a millisecond.

        Waking it for every token would cost more than the token.
        """
        self._events.append(event)
        if self._wake is not None and self._batch_timer is None:
            self._batch_timer = self._wake.get_loop().call_later(BATCH_WINDOW_S, self._wake_up)

    def extend(self, events: Sequence[Event]) -> None:
        """Add events in order and wake the reader."""
        self._events += events
        if self._wake is not None:
            self._wake_up()

    def close(self) -> None:
        """End the iteration once everything that was put has been read."""
        self._closed = True
        self._wake_up()

    def _wake_up(self) -> None:
        if self._batch_timer is not None:
            self._batch_timer.cancel()
            self._batch_timer = None
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    async def batches(self) -> AsyncGenerator[list[Event]]:
        """Return all there is to read, again and again, until the terminal event or ``close``."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                events = self._events
                if events:
                    self._events = []
                    yield events
                    if events[-1].type in TERMINAL:
                        return
                    if events[-1].seq and not self._events:
                        await _yield_once()  # the next turn is often this near: no wake-up then
                elif self._closed:
                    return
                else:
                    self._wake = wake = loop.create_future()
                    await wake
        finally:
            self._unsubscribe()

    def _unsubscribe(self) -> None:
        if self._forget is not None:
            self._forget(self)
        self._events = []
        self.close()

    async def __aiter__(self) -> AsyncGenerator[Event]:
        """Return events one by one until the terminal one, or until closed."""
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for event in batch:
                    yield event


class Publisher:
    """The journal and the listeners of one execution; see ``Execution`` for the other arguments.

    Args:
        most_text: Number of characters that are kept of what an attempt streams; None for all.
    """

    __slots__ = (
        "_epoch", "_execution_id", "_journal", "_most_text", "_now", "_on_events", "_subscribers", "durable"
    )  # fmt: skip

    def __init__(
        self,
        execution_id: str,
        journal: Journal | None,
        epoch: int,
        on_events: Callable[[list[Event]], None] | None,
        now: Callable[[], str],
        most_text: int | None = None,
    ) -> None:
        self._execution_id, self._epoch = execution_id, epoch
        self._most_text = most_text
        self._journal, self.durable = journal, journal is not None
        self._on_events, self._now = on_events, now
        self._subscribers: list[Subscription] = []

    def subscribe(self) -> Subscription:
        """Return a listener that gets every event published from now on."""
        subscription = Subscription(self._forget)
        self._subscribers.append(subscription)
        return subscription

    def _forget(self, subscription: Subscription) -> None:
        if subscription in self._subscribers:
            self._subscribers.remove(subscription)

    async def append(self, events: list[Event]) -> None:
        """Make a batch durable."""
        if self._journal is not None:
            await self._journal.append(self._execution_id, self._epoch, events)

    async def stored(self) -> Sequence[Event]:
        """Return all events that are durable.

        Raises:
            StoreError: They cannot be read now.
        """
        return () if self._journal is None else await self._journal.events(self._execution_id)

    def publish(self, events: list[Event]) -> None:
        """Publish a batch that is durable, or that is not to be stored."""
        if self._on_events is not None:
            self._on_events(events)
        for subscription in self._subscribers:
            subscription.extend(events)

    def publish_delta(self, source: Source, payload: Json) -> None:
        """Publish a piece of text at once: transient, unnumbered, not stored as long as its attempt runs.

        Raises:
            NodeError: ``invalid-delta``, even without subscribers.
        """
        try:
            text, kind = payload["text"], payload.get("kind", "text")
        except (AttributeError, LookupError, TypeError):
            text = kind = None
        if type(text) is not str or type(kind) is not str:
            text, kind = _delta_fields(payload, source)
        if not (text.isascii() and kind.isascii()):
            text, kind = _LONE_SURROGATE.sub("\ufffd", text), _LONE_SURROGATE.sub("\ufffd", kind)
        streamed = source.streamed
        if streamed is None:
            streamed = source.streamed = {}
        so_far = streamed.get(kind)
        if so_far is None:
            most = self._most_text if kind in STREAMED_KINDS else 0
            so_far = streamed[kind] = KeptText(most)
        offset = so_far.append(text)
        if not self._subscribers and self._on_events is None:
            return
        data = {"kind": kind, "text": text, "offset": offset}
        event = Event(
            self._execution_id, 0, self._now(), "node.delta", source.path, source.number, data
        )
        if self._on_events is not None:
            self._on_events([event])
        for subscription in self._subscribers:
            subscription.put_batched(event)

    def close(self) -> None:
        """End every listener's iteration once it has read all there is."""
        for subscription in self._subscribers:
            subscription.close()
        self._subscribers.clear()


def _delta_fields(payload: Json, source: Source) -> tuple[str, str]:
    """Return the text and kind of unusual streamed data, or raise what is wrong with it."""
    text = kind = None
    if not isinstance(payload, Mapping):
        defect = f"a {type(payload).__name__} instead of an object"
    else:
        fields = cast("Mapping[str, Json]", payload)
        text, kind = fields.get("text"), fields.get("kind", "text")
        defect = f"a kind that is a {type(kind).__name__}"
        if "text" not in fields:
            defect = "no text"
        elif not isinstance(text, str):
            defect = f"text that is a {type(text).__name__}"
    if isinstance(text, str) and isinstance(kind, str):
        return text, kind
    raise PermanentError(
        f"node {source.path!r} streamed {defect}",
        code="invalid-delta",
        hint='the data of a delta event are {"text": "…", "kind"?: "…"}',
    )
