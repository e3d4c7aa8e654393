"""One heap of deadlines for a whole execution, with a single loop timer on the earliest."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class DeadlineTimers(Generic[T]):
    """Calls ``due`` when a moment has come; times are the event loop's own, in seconds.

    Nothing is ever removed: who is told of a deadline that no longer matters ignores it. A heap of
    stale entries costs less than finding them.
    """

    __slots__ = ("_due", "_heap", "_loop", "_order", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, due: Callable[[T], None]) -> None:
        self._loop = loop
        self._due = due
        self._heap: list[tuple[float, int, T]] = []
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None

    def after(self, delay_s: float, message: T) -> None:
        """Tell ``what`` when ``delay_s`` seconds have passed."""
        self.at(self._loop.time() + delay_s, message)

    def at(self, when: float, message: T) -> None:
        """Tell ``what`` when that time has come."""
        heapq.heappush(self._heap, (when, next(self._order), message))
        if self._timer is None or when < self._timer.when():
            self._arm()

    def close(self) -> None:
        """Forget everything."""
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._heap:
            self._timer = self._loop.call_at(self._heap[0][0], self._fire)

    def _fire(self) -> None:
        # call_at may run a clock tick early; what is due within it is due now.
        now = self._loop.time() + 1e-4
        while self._heap and self._heap[0][0] <= now:
            self._due(heapq.heappop(self._heap)[2])
        self._arm()
