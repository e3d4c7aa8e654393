"""The way to one provider: what every call of it passes before it goes out.

In this order: an account that ran dry refuses at once; a provider in trouble makes calls wait for
its probe, as long as they have time; second tries keep within their budget; then the gate gives
turns. Whatever a call may wait for is known beforehand, so one without the time for it fails at
once, and says when to come back.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from planwave.errors import ProviderError
from planwave.providers.catalog import ProviderConfig
from planwave.providers.errors import provider_error
from planwave.providers.protocols import CallScope, ModelRequest
from planwave.providers.resilience.circuit_breaker import CircuitBreaker, RetryBudget
from planwave.providers.resilience.concurrency_limiter import FairConcurrencyLimiter
from planwave.settings import Limits

_PROBE_S, _LONGEST_PROBE_S = 1.0, 60.0
_QUOTA_PROBE_S, _LONGEST_QUOTA_PROBE_S = 60.0, 900.0
_OUTAGE_CODES = frozenset(
    {"rate-limited", "provider-overloaded", "provider-error", "provider-unreachable"}
)
"""Failures that say how the provider is, not what it was asked."""


@dataclass(eq=False, slots=True)
class CallContext:
    """One call on its way.

    Attributes:
        request: What is asked.
        scope: Whose call it is; None for nobody's.
        secret: The key it carries, which is its account.
        waited_s: How long it has waited for a provider in trouble.
    """

    request: ModelRequest
    scope: CallScope | None
    secret: str = field(repr=False)
    waited_s: float = 0.0

    @property
    def execution(self) -> str:
        """The queue it stands in."""
        return self.scope.execution_id if self.scope is not None else ""

    def time_left_s(self) -> float:
        """Give the seconds its node has left."""
        return math.inf if self.scope is None else self.scope.time_left_s()


class CallGate:
    """The calls of one provider; belongs to one event loop."""

    def __init__(
        self,
        connection: ProviderConfig,
        limits: Limits,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        timeout: Callable[[float], AbstractAsyncContextManager[Any]] = asyncio.timeout,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._sleep = sleep
        self._limiter = FairConcurrencyLimiter(
            connection.max_concurrency, connection.requests_per_minute, clock=clock, sleep=sleep
        )
        self._budget = RetryBudget(clock=clock)
        self._circuit = CircuitBreaker(
            limits.provider_failures, _PROBE_S, _LONGEST_PROBE_S, clock=clock, timeout=timeout
        )
        self._accounts: dict[str, CircuitBreaker] = {}

    @asynccontextmanager
    async def acquire(self, call: CallContext, *, is_retry: bool) -> AsyncGenerator[None, None]:
        """Wait until a call may go out, and hold its place until the block ends.

        Args:
            call: Told of afterwards: :meth:`answered`, :meth:`record_failure`, always :meth:`left`.
            is_retry: It is a second try.

        Raises:
            ProviderError: The account ran dry (``quota-exhausted``), or the provider is in trouble
                for longer than this call can wait (``provider-overloaded``, ``rate-limited``).
        """
        goes = False
        while not goes:
            self._check_quota(call)
            await self._wait_for_circuit(call)
            if is_retry:
                await self._wait_for_retry_budget(call)
            self._check_time_left(call)
            async with self._limiter.acquire(
                call.execution, lambda: self._try_start(call, is_retry)
            ) as goes:
                if goes:
                    yield

    def record_success(self, call: CallContext) -> None:
        """Take note that the provider began to answer."""
        self._circuit.record_success(call)
        self._account(call).record_success(call)

    def record_failure(self, call: CallContext, error: ProviderError) -> None:
        """Take note of how an attempt failed; waits that were asked for hold for every call."""
        wait_s = min(error.retry_after_s or 0.0, self._limits.retry_after_s)
        if wait_s > 0:
            self._limiter.pause(wait_s)
        if error.code == "quota-exhausted":
            self._account(call).record_failure(call, error)
        is_trouble = error.code in _OUTAGE_CODES
        if error.status is not None and not is_trouble:
            self._circuit.record_success(call)  # whatever it refused: it is there, and decides
        elif is_trouble or self._circuit.is_probe(call):
            self._circuit.record_failure(call, error, wait_s)

    def release(self, call: CallContext) -> None:
        """Take note that an attempt is over, however it ended."""
        self._circuit.release(call)
        self._account(call).release(call)

    def has_time_for(self, call: CallContext) -> bool:
        """Say whether a call can outlast what keeps all calls back at present."""
        outlasts_trouble = self._circuit.estimated_retry_in() <= self._max_wait_s(call)
        return outlasts_trouble and self._limiter.paused_for() <= call.time_left_s()

    def _account(self, call: CallContext) -> CircuitBreaker:
        found = self._accounts.get(call.secret)
        if found is None:
            found = CircuitBreaker(1, _QUOTA_PROBE_S, _LONGEST_QUOTA_PROBE_S, clock=self._clock)
            self._accounts[call.secret] = found
        return found

    def _check_quota(self, call: CallContext) -> None:
        account = self._account(call)
        if account.retry_in() <= 0:
            return
        wait = account.estimated_retry_in()
        raise provider_error(
            "quota-exhausted",
            provider=call.request.provider,
            model=call.request.model,
            sentence="{who} is not called: the account's quota is used up; it is tried again in "
            + _seconds(wait),
            retry_in_s=wait,
        )

    async def _wait_for_circuit(self, call: CallContext) -> None:
        if not self._circuit.is_open:
            return
        began = self._clock()
        over = await self._circuit.wait(self._max_wait_s(call))
        call.waited_s += self._clock() - began
        cause = self._circuit.cause
        if over or cause is None:
            return
        wait = self._circuit.estimated_retry_in()
        raise provider_error(
            "provider-overloaded",
            provider=call.request.provider,
            model=call.request.model,
            sentence="{who} is not called: its last calls failed "
            f"({cause.code}); it is tried again in {_seconds(wait)}",
            retryable=True,
            retry_in_s=wait,
        )

    async def _wait_for_retry_budget(self, call: CallContext) -> None:
        """Wait until a second try is within the budget; a probe needs none."""
        while not self._circuit.is_open and (wait := self._budget.wait_s()) > 0:
            if wait > self._max_wait_s(call):
                raise provider_error(
                    "provider-overloaded",
                    provider=call.request.provider,
                    model=call.request.model,
                    sentence="{who} fails too often for another try now; it is tried again in "
                    + _seconds(wait),
                    retryable=True,
                    retry_in_s=wait,
                )
            await self._sleep(wait)
            call.waited_s += wait

    def _max_wait_s(self, call: CallContext) -> float:
        return min(self._limits.provider_wait_s - call.waited_s, call.time_left_s())

    def _check_time_left(self, call: CallContext) -> None:
        """Fail a call whose node will be out of time before the provider's pause is over."""
        wait = self._limiter.paused_for()
        if wait > call.time_left_s():
            raise provider_error(
                "rate-limited",
                provider=call.request.provider,
                model=call.request.model,
                sentence=f"{{who}} asked all calls to wait; it is tried again in {_seconds(wait)}",
                retryable=True,
                retry_in_s=wait,
            )

    def _try_start(self, call: CallContext, is_retry: bool) -> bool:
        """Decide in the moment a call would go out; much may have happened while it queued."""
        counts = is_retry and not self._circuit.is_open
        if counts and self._budget.wait_s() > 0:
            return False
        if not self._circuit.try_acquire(call):
            return False
        if not self._account(call).try_acquire(call):
            self._circuit.release(call)
            return False
        self._budget.spend(is_retry=counts)
        return True


def _seconds(wait: float) -> str:
    return f"{max(1, math.ceil(wait))} s"
