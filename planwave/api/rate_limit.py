"""Rate limits per principal: a token bucket for requests, a limit for open streams."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from planwave.errors import TooManyRequests


class TokenBucket:
    """A token bucket for each principal.

    Args:
        what: The counted things, in the plural, for messages.
        rate_per_s: Tokens added each second.
        burst: Tokens that a bucket holds.
        clock: Seconds that never go back.
        limits: Names of the limits that an operator can raise.
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
        """Take a token.

        Raises:
            TooManyRequests: The bucket is empty; ``retry_after_s`` is the time to the next token.
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
    """A limit on the open streams of each principal."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    @contextmanager
    def slot(self, principal: str, limit: int) -> Generator[None]:
        """Hold one slot within the block.

        Raises:
            TooManyRequests: All slots of the principal are in use.
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
