"""Limits of concurrent calls and calls per minute for one provider, fair between executions.

Each execution has a queue, and the queues take turns: an execution with a thousand waiting calls
delays the next call of another by one call, not by a thousand. Within an execution the order is
first in, first out.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

_MINUTE_S = 60.0


class FairConcurrencyLimiter:
    """Limits the concurrency and rate of one provider, and applies its pauses (Retry-After).

    One call at a time waits for rate and pause; the others stay in their queues, so that the next
    call is chosen when it can start.
    """

    def __init__(
        self,
        concurrency: int,
        per_minute: int | None,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._concurrency = self._free = concurrency
        self._per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._turn_taken = False
        self._paused_until = 0.0
        self._starts: deque[float] = deque()

    @property
    def demand(self) -> int:
        """The number of calls that hold a slot or wait for one."""
        return self.running + sum(map(len, self._queues.values()))

    @property
    def running(self) -> int:
        """The number of calls that hold a slot: after ``resize`` also more than the limit."""
        return self._concurrency - self._free

    @property
    def most(self) -> int:
        """The most calls that can hold a slot as long as the limit stays."""
        return max(self._concurrency, self.running)

    def resize(self, concurrency: int, per_minute: int | None) -> None:
        """Change the limits; calls that hold a slot go on."""
        self._free += concurrency - self._concurrency
        self._concurrency, self._per_minute = concurrency, per_minute
        self._start_next()

    def pause(self, seconds: float) -> None:
        """Start no call for ``seconds`` from now; a longer pause stays in effect."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def paused_for(self) -> float:
        """Return the remaining seconds of the pause."""
        return max(0.0, self._paused_until - self._clock())

    @asynccontextmanager
    async def acquire(
        self, execution: str, may_start: Callable[[], bool] = lambda: True
    ) -> AsyncGenerator[bool, None]:
        """Wait for the turn of this execution and hold one slot until the block ends.

        Args:
            execution: The execution that calls.
            may_start: Called when the call could start. If it returns False, so does this method, no
                slot is held, and the call does not count.
        """
        await self._wait_for_turn(execution)
        try:
            while (wait := self._wait_s()) > 0:
                await self._sleep(wait)
            starts = may_start()
            if starts and self._per_minute is not None:
                self._starts.append(self._clock())
        except BaseException:
            self._end_turn(started=False)
            raise
        self._end_turn(started=starts)
        if not starts:
            yield False
            return
        try:
            yield True
        finally:
            self._free += 1
            self._start_next()

    async def _wait_for_turn(self, execution: str) -> None:
        if self._free > 0 and not self._turn_taken and not self._queues:
            self._free -= 1
            self._turn_taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(execution, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end_turn(started=False)
            else:
                self._remove_waiter(execution, turn)
            raise

    def _end_turn(self, *, started: bool) -> None:
        self._turn_taken = False
        if not started:
            self._free += 1
        self._start_next()

    def _start_next(self) -> None:
        if self._turn_taken or self._free <= 0 or not self._queues:
            return
        execution, queue = self._queues.popitem(last=False)
        turn = queue.popleft()
        if queue:
            self._queues[execution] = queue  # to the end: the others are next
        self._free -= 1
        self._turn_taken = True
        turn.set_result(None)

    def _remove_waiter(self, execution: str, turn: asyncio.Future[None]) -> None:
        queue = self._queues.get(execution)
        if queue is None or turn not in queue:
            return
        queue.remove(turn)
        if not queue:
            del self._queues[execution]

    def _wait_s(self) -> float:
        now = self._clock()
        wait = self._paused_until - now
        if self._per_minute is None:
            return wait
        while self._starts and self._starts[0] + _MINUTE_S <= now:  # the same rounding as below
            self._starts.popleft()
        if len(self._starts) >= self._per_minute:
            wait = max(wait, self._starts[0] + _MINUTE_S - now)
        return wait
