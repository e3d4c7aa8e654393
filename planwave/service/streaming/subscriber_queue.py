"""Batches of events that all subscribers of an execution share, and one subscriber's bounded queue of them."""

from __future__ import annotations

import asyncio
import operator
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from planwave.errors import SlowConsumer
from planwave.events import TERMINAL, Event
from planwave.events.types import public_event
from planwave.jsonio import dumps_trusted

_T = TypeVar("_T")


class EventBatch:
    """Events told together: stored ones in order, and streamed text joined between them.

    Attributes:
        events: In the order to apply them; ``node.delta`` carries ``seq`` 0.
        last_seq: The last stored event told up to and including this frame: the cursor after it.
    """

    def __init__(self, events: Sequence[Event], last_seq: int) -> None:
        self.events = tuple(events)
        self.last_seq = last_seq
        self._rendered: dict[Callable[[EventBatch], Any], Any] = {}

    @property
    def public(self) -> EventBatch:
        """The batch as everybody but the operator sees it; see ``public_event``."""
        return self._public or self

    @cached_property
    def _public(self) -> EventBatch | None:
        """The batch without what only the operator sees; None where it has nothing of that."""
        events = tuple(map(public_event, self.events))
        is_same = all(map(operator.is_, events, self.events))
        return None if is_same else EventBatch(events, self.last_seq)

    @cached_property
    def json_array(self) -> bytes:
        """The events as one JSON array."""
        return dumps_trusted([event.as_json() for event in self.events])

    @cached_property
    def json_events(self) -> tuple[bytes, ...]:
        """Each event as JSON."""
        return tuple(dumps_trusted(event.as_json()) for event in self.events)

    @cached_property
    def size_bytes(self) -> int:
        """How many bytes of JSON the events are."""
        return sum(map(len, self.json_events))

    @property
    def is_last(self) -> bool:
        """Whether the execution is over with it."""
        return bool(self.events) and self.events[-1].type in TERMINAL

    def render_once(self, render: Callable[[EventBatch], _T]) -> _T:
        """Return the result of ``render`` for the batch; it is called once for all subscribers."""
        if render not in self._rendered:
            self._rendered[render] = render(self)
        rendering: _T = self._rendered[render]
        return rendering


class BacklogLimits(NamedTuple):
    """The backlog after which a subscriber is disconnected; None for no limit."""

    events: int | None = None
    bytes: int | None = None


class Subscriber:
    """One subscriber's queue of batches. See ``LiveExecution.subscribe``.

    Attributes:
        cursor: The last stored event of the last batch that was processed. A batch counts as
            processed when the subscriber takes the next one.
        on_drop: Called when the subscriber is disconnected.
    """

    __slots__ = (
        "_behind", "_bounds", "_ended", "_frames", "_size", "_taken", "_wake", "cursor", "on_drop",
    )  # fmt: skip

    def __init__(self, cursor: int, bounds: BacklogLimits) -> None:
        self.cursor = self._taken = cursor
        self._bounds = bounds
        self._frames: deque[EventBatch] = deque()
        self._behind = self._size = 0
        self._wake: asyncio.Future[None] | None = None
        self._ended: Exception | None = None
        self.on_drop: Callable[[], object] = lambda: None

    @property
    def is_dropped(self) -> bool:
        """Whether it fell too far behind."""
        return isinstance(self._ended, SlowConsumer)

    def put(self, batch: EventBatch) -> None:
        """Queue a batch; disconnect the subscriber if the queue is full.

        A frame by itself is never too many, whatever its size.
        """
        if self._ended is not None:
            return
        self._frames.append(batch)
        self._behind += len(batch.events)
        most_events, most_bytes = self._bounds
        if most_bytes is not None:
            self._size += batch.size_bytes
        if len(self._frames) > 1 and (
            (most_events is not None and self._behind > most_events)
            or (most_bytes is not None and self._size > most_bytes)
        ):
            self._frames.clear()
            self.close_with(SlowConsumer(self.cursor))
            self.on_drop()
        self.wake()

    def close_with(self, error: Exception) -> None:
        """Let it read what is queued and then raise ``error``."""
        if self._ended is None:
            self._ended = error
        self.wake()

    def wake(self) -> None:
        """Let a waiting reader look again."""
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    async def next(self) -> EventBatch:
        """Wait for the next batch and return it; may be cancelled and called again.

        Raises:
            SlowConsumer: It fell too far behind; ``cursor`` says where to go on.
            ShuttingDown: The service is going down.
        """
        self.cursor = self._taken
        if self.is_dropped:
            raise SlowConsumer(self.cursor)
        while not self._frames:
            if self._ended is not None:
                # Many subscribers may get the same error, which must not collect a traceback of each.
                raise self._ended.with_traceback(None)
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        frame = self._frames.popleft()
        self._behind -= len(frame.events)
        if self._bounds.bytes is not None:
            self._size -= frame.size_bytes
        self._taken = frame.last_seq
        return frame
