"""Rate limits per principal: a token bucket for requests, a limit for open streams."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from planwave.errors import TooManyRequests


class TokenBucket:
    """So many at once, and so many a second after that.

    Args:
        what: What is counted, in the plural.
        rate_per_s: How fast a bucket fills.
        burst: How much it holds.
        clock: Seconds that never go back.
        limits: The limits these are, where an operator may raise them.
    """

    def __init__(
        self,
        what: str,
        rate_per_s: float,
        burst: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        limits: Sequence[str] = (),
    ) -> None:
        self._what = what
        self._rate = rate_per_s
        self._burst = burst
        self._clock = clock
        self._setting_names = " and ".join(f"PLANWAVE_LIMIT_{name.upper()}" for name in limits)
        self._buckets: dict[str, tuple[float, float]] = {}

    def acquire(self, principal: str) -> None:
        """Count one.

        Raises:
            Busy: The bucket is empty; ``retry_after_s`` says when there is one again.
        """
        now = self._clock()
        left, at = self._buckets.get(principal, (float(self._burst), now))
        left = min(self._burst, left + (now - at) * self._rate)
        if left < 1:
            self._buckets[principal] = left, now
            raise self._busy((1 - left) / self._rate)
        self._buckets[principal] = left - 1, now

    def _busy(self, retry_after_s: float) -> TooManyRequests:
        raising = f", or raise {self._setting_names}" if self._setting_names else ""
        return TooManyRequests(
            f"too many {self._what}: {self._burst} at once, then {self._rate:.12g} a second",
            retry_after_s=retry_after_s,
            hint=f"try again in {math.ceil(retry_after_s)} s{raising}",
        )


_RETRY_AFTER_S = 5.0


class ConnectionLimiter:
    """Counts what is open at the same time."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def slot(self, principal: str, limit: int) -> Generator[None]:
        """Take one seat as long as needed.

        Raises:
            Busy: The principal has as many as it may.
        """
        if self._open[principal] >= limit:
            raise TooManyRequests(
                f"{limit} WebSockets and event streams are open, as many as may",
                retry_after_s=_RETRY_AFTER_S,
                hint="close some, or raise PLANWAVE_LIMIT_SOCKET_CONNECTIONS",
            )
        self._open[principal] += 1
        try:
            yield
        finally:
            self._open[principal] -= 1
            if not self._open[principal]:
                del self._open[principal]
