"""Circuit breaker and retry budget of a provider.

A ``CircuitBreaker`` stops calls after failures in a row and admits single probes until one
succeeds; a ``RetryBudget`` limits retries to a small part of all requests. Source: "Circuit
Breaker" and "Retry Budgets" of Finagle and Envoy.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from planwave.errors import ProviderError
from planwave.log_records import service_logger, write_record

_log = service_logger("planwave.provider")

_WINDOW_S = 10.0
_RETRY_SHARE = 0.1
_MIN_RETRIES = 10
"""Retries always allowed in a window, so that a single call gets all of its retries."""


class CircuitBreaker:
    """A circuit breaker: closed, all calls pass; open, one probe at a time, after a growing delay.

    A caller that acquired reports ``record_success`` or ``record_failure``, and always
    ``release``. While the circuit is open, only the result of the probe counts: other calls
    started before it opened.

    Args:
        failures: The number of failures in a row that opens the circuit.
        first_s: The delay before the first probe; it doubles with every failed probe.
        longest_s: The longest delay.
        clock: A monotonic clock, seconds.
        timeout: Limits the time of a wait.

    Attributes:
        cause: The last failure that opened the circuit or kept it open; None while closed.
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
        self._max_failures = failures
        self._first_s = first_s
        self._longest_s = longest_s
        self._clock = clock
        self._timeout = timeout
        self._failures = 0
        self._delay_s = 0.0
        self._probe_at = -math.inf
        self._probe: object | None = None
        self._changed = asyncio.Event()
        self._about: dict[str, str | None] = {}
        self._opened = 0.0
        self.cause: ProviderError | None = None

    @property
    def is_open(self) -> bool:
        """Whether the circuit is open."""
        return self.cause is not None

    def retry_in(self) -> float:
        """Return the seconds until a caller may acquire: 0 for now, infinite during a probe."""
        if self.cause is None:
            return 0.0
        return math.inf if self._probe is not None else max(0.0, self._probe_at - self._clock())

    def estimated_retry_in(self) -> float:
        """Return the seconds after which to try again; an estimate during a probe."""
        wait = self.retry_in()
        return self._delay_s if wait == math.inf else wait

    async def wait(self, longest_s: float) -> bool:
        """Wait until a caller may acquire; False (at once if certain) if that takes longer."""
        ends = self._clock() + longest_s
        while (wait := self.retry_in()) > 0:
            remaining_s = ends - self._clock()
            if remaining_s <= 0 or remaining_s < wait < math.inf:
                return False
            changed = self._changed
            try:
                async with self._timeout(min(wait, remaining_s)):
                    await changed.wait()
            except TimeoutError:
                pass  # the wait or the time limit is over: check again
        return True

    def try_acquire(self, caller: object) -> bool:
        """Admit a caller, as the probe if the circuit is open; False if it may not pass yet."""
        if self.retry_in() > 0:
            return False
        if self.cause is not None:
            self._probe = caller
        return True

    def is_probe(self, caller: object) -> bool:
        """Return whether the caller is the probe."""
        return self._probe is caller

    def record_success(self, caller: object) -> None:
        """Record that the provider works."""
        if self.cause is not None and self._probe is not caller:
            return
        self._failures = 0
        if self.cause is not None:
            self.cause = None
            self._end_probe()
            words = "circuit closed: the provider answers again"
            about = {**self._about, "open_s": round(self._clock() - self._opened, 3)}
            write_record(_log, logging.WARNING, words, about)

    def record_failure(self, caller: object, error: ProviderError, wait_s: float = 0.0) -> None:
        """Record a failure; the next probe waits at least ``wait_s``."""
        if self.cause is not None and self._probe is not caller:
            return
        self._failures += 1
        if self.cause is None and self._failures < self._max_failures:
            return
        delay_s = self._delay_s * 2 if self.cause is not None else self._first_s
        self._delay_s = min(self._longest_s, delay_s)
        self._probe_at = self._clock() + max(self._delay_s, wait_s)
        if self.cause is None:
            self._opened = self._clock()
            self._about = {"provider": error.provider, "model": error.model, "code": error.code}
            next_try_s = round(max(self._delay_s, wait_s), 3)
            about = {**self._about, "failures": self._failures, "next_try_s": next_try_s}
            write_record(_log, logging.WARNING, "circuit open: calls wait", about)
        self.cause = error
        self._end_probe()

    def open(self, error: ProviderError, wait_s: float) -> None:
        """Open the circuit for a failure that another process has seen; nothing changes where it is open."""
        if self.cause is None:
            self._failures = self._max_failures - 1
            self.record_failure(self, error, wait_s)

    def release(self, caller: object) -> None:
        """Record the end of a call; a probe without a result admits another one."""
        if self._probe is caller:
            self._end_probe()

    def _end_probe(self) -> None:
        self._probe = None
        self._changed.set()
        self._changed = asyncio.Event()


class RetryBudget:
    """A limit of retries: a tenth of a provider's requests in the last 10 s, but at least ten."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._requests: deque[float] = deque()
        self._retries: deque[float] = deque()

    def wait_s(self) -> float:
        """Return the seconds until the next retry is allowed; 0 for now."""
        now = self._clock()
        for starts in (self._requests, self._retries):
            while starts and starts[0] + _WINDOW_S <= now:  # the same rounding as below
                starts.popleft()
        if len(self._retries) < max(_MIN_RETRIES, _RETRY_SHARE * len(self._requests)):
            return 0.0
        return self._retries[0] + _WINDOW_S - now

    def spend(self, *, is_retry: bool) -> None:
        """Count a request that starts."""
        (self._retries if is_retry else self._requests).append(self._clock())
