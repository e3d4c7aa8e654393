"""How many calls a provider gets at once and a minute, and who is next.

One gate a provider. Calls wait in one queue an execution; the queues take turns, so an execution
with a thousand waiting calls delays another one's next call by one place, not by a thousand. The
order within an execution is first come, first served.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

_MINUTE_S = 60.0


class FairConcurrencyLimiter:
    """Lets calls to one provider through: concurrency, rate, and pauses the provider asked for.

    Only one call at a time stands in the door, waiting for rate and pause; all others keep their
    place in the queues, so that turns are decided when somebody can really go.
    """

    def __init__(
        self,
        concurrency: int,
        per_minute: int | None,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._free = concurrency
        self._per_minute = per_minute
        self._clock = clock
        self._sleep = sleep
        self._queues: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._turn_taken = False
        self._paused_until = 0.0
        self._starts: deque[float] = deque()

    def pause(self, seconds: float) -> None:
        """Let nobody in for ``seconds`` from now; a longer pause that is already set stays."""
        self._paused_until = max(self._paused_until, self._clock() + seconds)

    def paused_for(self) -> float:
        """Give the seconds that are left of a pause."""
        return max(0.0, self._paused_until - self._clock())

    @asynccontextmanager
    async def acquire(
        self, execution: str, may_start: Callable[[], bool] = lambda: True
    ) -> AsyncGenerator[bool, None]:
        """Wait for this execution's turn and hold one place until the block ends.

        Args:
            execution: Whose queue to stand in.
            may_start: Asked in the moment the call would go out. Where it says no, False is given, no
                place is held, and nothing counts.
        """
        await self._wait_for_turn(execution)
        try:
            while (wait := self._wait_s()) > 0:
                await self._sleep(wait)
            goes = may_start()
            if goes and self._per_minute is not None:
                self._starts.append(self._clock())
        except BaseException:
            self._end_turn(started=False)
            raise
        self._end_turn(started=goes)
        if not goes:
            yield False
            return
        try:
            yield True
        finally:
            self._free += 1
            self._start_next()

    async def _wait_for_turn(self, execution: str) -> None:
        if self._free and not self._turn_taken and not self._queues:
            self._free -= 1
            self._turn_taken = True
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(execution, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._end_turn(started=False)
            else:
                self._remove_waiter(execution, place)
            raise

    def _end_turn(self, *, started: bool) -> None:
        self._turn_taken = False
        if not started:
            self._free += 1
        self._start_next()

    def _start_next(self) -> None:
        if self._turn_taken or not self._free or not self._queues:
            return
        execution, queue = self._queues.popitem(last=False)
        place = queue.popleft()
        if queue:
            self._queues[execution] = queue  # to the back: the others are next
        self._free -= 1
        self._turn_taken = True
        place.set_result(None)

    def _remove_waiter(self, execution: str, place: asyncio.Future[None]) -> None:
        queue = self._queues.get(execution)
        if queue is None or place not in queue:
            return
        queue.remove(place)
        if not queue:
            del self._queues[execution]

    def _wait_s(self) -> float:
        now = self._clock()
        wait = self._paused_until - now
        if self._per_minute is None:
            return wait
        while self._starts and self._starts[0] + _MINUTE_S <= now:  # the same sum as below
            self._starts.popleft()
        if len(self._starts) >= self._per_minute:
            wait = max(wait, self._starts[0] + _MINUTE_S - now)
        return wait
