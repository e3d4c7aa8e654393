"""When a provider is left alone: after failures in a row, and while second tries are too many.

A provider in trouble is not helped by more calls. A :class:`CircuitBreaker` stops them and lets one through
now and then, a probe, to see whether the trouble is over; a :class:`RetryBudget` keeps second tries
a small part of all requests. Source of both: "Circuit Breaker" and "Retry Budgets" as Finagle and
Envoy build them.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from planwave.errors import ProviderError

_WINDOW_S = 10.0
_RETRY_SHARE = 0.1
_MIN_RETRIES = 10
"""As many second tries a window are no crowd: a lone call gets all of its own."""


class CircuitBreaker:
    """Closed, calls go through; open, one probe at a time does, after a growing delay.

    Whoever enters says later how it went: :meth:`answered`, :meth:`record_failure`, and :meth:`left` in any
    case. While the circuit is open only the probe's word counts: what was under way when it opened
    tells of an earlier time.

    Args:
        failures: So many in a row open it.
        first_s: The delay before the first probe; it doubles with every probe that fails.
        longest_s: Where it stops to grow.
        clock: Seconds that only go forward.
        timeout: Makes the deadline of a wait.

    Attributes:
        cause: The failure that opened it, or the last probe's; None while it is closed.
    """

    def __init__(
        self,
        failures: int,
        first_s: float,
        longest_s: float,
        *,
        clock: Callable[[], float],
        timeout: Callable[[float], AbstractAsyncContextManager[Any]] = asyncio.timeout,
    ) -> None:
        self._most = failures
        self._first_s = first_s
        self._longest_s = longest_s
        self._clock = clock
        self._timeout = timeout
        self._failures = 0
        self._delay_s = 0.0
        self._probe_at = -math.inf
        self._probe: object | None = None
        self._changed = asyncio.Event()
        self.cause: ProviderError | None = None

    @property
    def is_open(self) -> bool:
        """Whether calls are kept back."""
        return self.cause is not None

    def retry_in(self) -> float:
        """Give the seconds until somebody may enter: 0 for now, infinite while a probe is out."""
        if self.cause is None:
            return 0.0
        return math.inf if self._probe is not None else max(0.0, self._probe_at - self._clock())

    def estimated_retry_in(self) -> float:
        """Give the seconds after which asking again makes sense; a guess while a probe is out."""
        wait = self.retry_in()
        return self._delay_s if wait == math.inf else wait

    async def wait(self, longest_s: float) -> bool:
        """Wait until somebody may enter; False, at once where it is certain, if not in that time."""
        ends = self._clock() + longest_s
        while (wait := self.retry_in()) > 0:
            left = ends - self._clock()
            if left <= 0 or left < wait < math.inf:
                return False
            changed = self._changed
            try:
                async with self._timeout(min(wait, left)):
                    await changed.wait()
            except TimeoutError:
                pass  # the moment came, or the time is up: look again
        return True

    def try_acquire(self, caller: object) -> bool:
        """Go in, perhaps as the probe; False where it is shut."""
        if self.retry_in() > 0:
            return False
        if self.cause is not None:
            self._probe = caller
        return True

    def is_probe(self, caller: object) -> bool:
        """Say whether all others wait for this one."""
        return self._probe is caller

    def record_success(self, caller: object) -> None:
        """Take note that the provider works."""
        if self.cause is not None and self._probe is not caller:
            return
        self._failures = 0
        if self.cause is not None:
            self.cause = None
            self._end_probe()

    def record_failure(self, caller: object, error: ProviderError, wait_s: float = 0.0) -> None:
        """Take note of a failure; the next probe waits at least ``wait_s``."""
        if self.cause is not None and self._probe is not caller:
            return
        self._failures += 1
        if self.cause is None and self._failures < self._most:
            return
        grown = self._delay_s * 2 if self.cause is not None else self._first_s
        self._delay_s = min(self._longest_s, grown)
        self._probe_at = self._clock() + max(self._delay_s, wait_s)
        self.cause = error
        self._end_probe()

    def release(self, caller: object) -> None:
        """Take note that somebody is gone; a probe that said nothing makes room for another."""
        if self._probe is caller:
            self._end_probe()

    def _end_probe(self) -> None:
        self._probe = None
        self._changed.set()
        self._changed = asyncio.Event()


class RetryBudget:
    """Keeps second tries to a tenth of a provider's requests, or to a few where there are few.

    Counted over the last ten seconds.
    """

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._requests: deque[float] = deque()
        self._retries: deque[float] = deque()

    def wait_s(self) -> float:
        """Give the seconds until another second try may go; 0 for now."""
        now = self._clock()
        for kept in (self._requests, self._retries):
            while kept and kept[0] + _WINDOW_S <= now:  # the same sum as below: it is rounded
                kept.popleft()
        if len(self._retries) < max(_MIN_RETRIES, _RETRY_SHARE * len(self._requests)):
            return 0.0
        return self._retries[0] + _WINDOW_S - now

    def spend(self, *, is_retry: bool) -> None:
        """Take note of a request that goes out."""
        (self._retries if is_retry else self._requests).append(self._clock())
