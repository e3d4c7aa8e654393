"""Listeners of one execution: each gets every event in order, from when it began to listen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing
from types import coroutine

from planwave.events import TERMINAL, Event

WINDOW_S = 0.001
"""How long tokens may gather before their reader is woken."""


@coroutine
def _a_round() -> Generator[None]:
    """Let the event loop go round once: ``asyncio.sleep(0)`` for half of what that costs."""
    yield


class Subscription:
    """An unbounded queue of events with one reader.

    It never slows the execution down. Subscribers over a network are bounded by the service, which
    drops a slow one together with its cursor. A reader that leaves is gone for good: ``forget`` is
    told, and nothing is kept for it any more.
    """

    __slots__ = ("_closed", "_events", "_forget", "_soon", "_wake")

    def __init__(self, forget: Callable[[Subscription], None] | None = None) -> None:
        self._forget = forget
        self._events: list[Event] = []
        self._wake: asyncio.Future[None] | None = None
        self._soon: asyncio.TimerHandle | None = None
        self._closed = False

    def put_soon(self, event: Event) -> None:
        """Add a transient event; the reader is woken within a millisecond.

        Waking it for every token would cost more than the token.
        """
        self._events.append(event)
        if self._wake is not None and self._soon is None:
            self._soon = self._wake.get_loop().call_later(WINDOW_S, self._rouse)

    def extend(self, events: Sequence[Event]) -> None:
        """Add events in order and wake the reader."""
        self._events += events
        if self._wake is not None:
            self._rouse()

    def close(self) -> None:
        """End the iteration once everything that was put has been read."""
        self._closed = True
        self._rouse()

    def _rouse(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        wake, self._wake = self._wake, None
        if wake is not None and not wake.done():
            wake.set_result(None)

    async def batches(self) -> AsyncGenerator[list[Event]]:
        """Give all there is to read, again and again, until the terminal event or ``close``."""
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
                        await _a_round()  # the next turn is often this near: no wake-up then
                elif self._closed:
                    return
                else:
                    self._wake = wake = loop.create_future()
                    await wake
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._forget is not None:
            self._forget(self)
        self._events = []
        self.close()

    async def __aiter__(self) -> AsyncGenerator[Event]:
        """Give events one by one until the terminal one, or until closed."""
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for event in batch:
                    yield event
