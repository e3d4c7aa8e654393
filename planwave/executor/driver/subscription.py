"""Listeners of one execution: each gets every event in order, from when it began to listen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing
from types import coroutine

from planwave.events import TERMINAL, Event

BATCH_WINDOW_S = 0.001
"""How long tokens may gather before their reader is woken."""


@coroutine
def _yield_once() -> Generator[None]:
    """Yield to the event loop once, at half the cost of ``asyncio.sleep(0)``."""
    yield


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
