"""Listeners of one execution: each gets every event in order, from when it began to listen."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence

from planwave.events import TERMINAL, Event


class Subscription:
    """An unbounded queue of events with one reader.

    It never slows the execution down. Subscribers over a network are bounded by the service, which
    drops a slow one together with its cursor.
    """

    __slots__ = ("_closed", "_events", "_wake")

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._closed = False

    def put(self, event: Event) -> None:
        """Add one event and wake the reader."""
        self._events.append(event)
        if self._wake is not None:
            self._rouse()

    def extend(self, events: Sequence[Event]) -> None:
        """Add events in order and wake the reader."""
        self._events.extend(events)
        if self._wake is not None:
            self._rouse()

    def close(self) -> None:
        """End the iteration once everything that was put has been read."""
        self._closed = True
        self._rouse()

    def _rouse(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Give events until the terminal one, or until closed."""
        events = self._events
        while True:
            while events:
                event = events.popleft()
                yield event
                if event.type in TERMINAL:
                    return
            if self._closed:
                return
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
