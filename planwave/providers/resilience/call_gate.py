"""The gate that every call of one provider passes before it starts.

The checks in order: the quota of the account; the circuit breaker (calls wait for its probe); the
retry budget; the concurrency limiter. Each wait is known in advance, so a call without enough time
fails at once, and its error says when to try again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from typing import Any, Literal

from planwave.errors import ProviderError
from planwave.providers.capabilities import CapabilityTable, default_api
from planwave.providers.errors import provider_error
from planwave.providers.protocols import Api, CallScope, ModelRequest
from planwave.providers.registry import ProviderConfig
from planwave.providers.resilience.circuit_breaker import CircuitBreaker, RetryBudget
from planwave.providers.resilience.concurrency_limiter import FairConcurrencyLimiter
from planwave.providers.resilience.prompt_cache import (
    NO_MARKS,
    CachedCall,
    CacheMarks,
    PromptCache,
)
from planwave.providers.resilience.shares import (
    LeasedShare,
    ProviderPause,
    ProviderShares,
    Share,
    account_digest,
)
from planwave.settings import Limits

_PROBE_S, _MAX_PROBE_S = 1.0, 60.0
_QUOTA_PROBE_S, _MAX_QUOTA_PROBE_S = 60.0, 900.0
_LONG_WAIT_S = 1.0
"""Waits from here on are worth giving the running place of the execution to another one."""
_OUTAGE_CODES = frozenset(
    {"rate-limited", "provider-overloaded", "provider-error", "provider-unreachable"}
)
"""Failures caused by the state of the provider, not by the request."""


@dataclass(eq=False, slots=True)
class CallContext:
    """One call with the time it has waited.

    Attributes:
        request: The request to send.
        scope: The owner of the call, or None.
        secret: The API key, which identifies the account.
        waited_s: The time the call has waited for a failing provider, seconds.
        cached: Its part in the cache of the provider.
    """

    request: ModelRequest
    scope: CallScope | None
    secret: str = field(repr=False)
    waited_s: float = 0.0
    cached: CachedCall | None = None

    @property
    def marks(self) -> CacheMarks:
        """What of the request the provider is asked to keep in its cache."""
        return NO_MARKS if self.cached is None else self.cached.marks

    @property
    def execution(self) -> str:
        """The key of the queue: the execution id."""
        return self.scope.execution_id if self.scope is not None else ""

    def warn(self, message: str) -> None:
        """Tell the owner of the call why it is not answered yet."""
        if self.scope is not None and self.scope.warn is not None:
            self.scope.warn(message)

    def idle(self, wait_s: float, cause: str = "") -> AbstractAsyncContextManager[None]:
        """Return a block around a wait; in a long one the execution needs no running place.

        Args:
            wait_s: How long it will be, seconds.
            cause: Why, for the owner of the call, who is told of a long one; ``{who}`` is the provider.
        """
        if self.scope is None or wait_s < _LONG_WAIT_S:
            return nullcontext()
        if cause:
            who = f"{self.request.provider} ({self.request.model})"
            self.warn(f"the call waits {wait_s:.0f} s: {cause.format(who=who)}")
        return self.scope.idle()

    def loading(self) -> AbstractContextManager[None]:
        """Return a block around what is loaded for the first call, which takes no time of the node."""
        return nullcontext() if self.scope is None else self.scope.loading()

    def time_left_s(self) -> float:
        """Return the seconds until the timeout of the node."""
        return math.inf if self.scope is None else self.scope.time_left_s()


class CallGate:
    """The calls of one provider; belongs to one event loop.

    Attributes:
        capabilities: What the server takes of each model.
    """

    def __init__(
        self,
        connection: ProviderConfig,
        limits: Limits,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        timeout: Callable[[float], AbstractAsyncContextManager[Any]] = asyncio.timeout,
        shares: ProviderShares | None = None,
    ) -> None:
        self._connection, self._shares = connection, shares
        self._limits = limits
        self._clock = clock
        self._sleep = sleep
        self._limiter = FairConcurrencyLimiter(
            connection.max_concurrency, connection.requests_per_minute, clock=clock, sleep=sleep
        )
        whole = Share(connection.max_concurrency, connection.requests_per_minute)
        self._share = (
            None
            if shares is None
            else LeasedShare(
                connection.name, whole, self._limiter, shares, clock=clock, sleep=sleep
            )
        )
        self._budget = RetryBudget(clock=clock)
        self._circuit = CircuitBreaker(
            limits.provider_failures, _PROBE_S, _MAX_PROBE_S, clock=clock, timeout=timeout
        )
        self._accounts: dict[str, CircuitBreaker] = {}
        self.capabilities = CapabilityTable(connection.kind, connection.settings)
        self._api: Api = default_api(connection.kind)
        self._prompts = PromptCache(clock=clock, timeout=timeout)

    @asynccontextmanager
    async def acquire(self, call: CallContext, *, is_retry: bool) -> AsyncGenerator[None, None]:
        """Wait until a call may start, and hold its slot until the block ends.

        The caller then reports ``record_success`` or ``record_failure``, and always
        ``release``.

        Raises:
            ProviderError: The quota of the account is used up (``quota-exhausted``), or the provider
                fails for longer than the call can wait (``provider-overloaded``, ``rate-limited``).
        """
        if not is_retry:
            await self._wait_for_cache(call)
        if self._share is not None:
            await self._share.wait()
        started = False
        while not started:
            self._check_quota(call)
            await self._wait_for_circuit(call)
            if is_retry:
                await self._wait_for_retry_budget(call)
            await self._wait_for_pause(call)
            async with self._limiter.acquire(
                call.execution, lambda: self._try_start(call, is_retry)
            ) as started:
                if started:
                    yield

    async def close(self) -> None:
        """Leave the share of the provider to other processes."""
        if self._share is not None:
            await self._share.close()

    def record_success(self, call: CallContext) -> None:
        """Record that the provider began to reply."""
        if call.cached is not None:
            call.cached.begin()
        self._circuit.record_success(call)
        self._account(call.secret).record_success(call)

    def record_failure(self, call: CallContext, error: ProviderError) -> None:
        """Record the failure of an attempt; its Retry-After pauses every call."""
        wait_s = min(error.retry_after_s or 0.0, self._limits.retry_after_s)
        if wait_s > 0:
            self._limiter.pause(wait_s)
        account = self._account(call.secret)
        was_open = self._circuit.is_open or account.is_open
        if error.code == "quota-exhausted":
            account.record_failure(call, error)
        is_outage = error.code in _OUTAGE_CODES
        if error.status is not None and not is_outage:
            self._circuit.record_success(call)  # the provider works, it rejected this call
        elif is_outage or self._circuit.is_probe(call):
            self._circuit.record_failure(call, error, wait_s)
        opened = None if was_open else self._which_is_open(account)
        if self._shares is not None and (wait_s > 0 or opened is not None):
            name, digest = self._connection.name, self._digest(call.secret)
            self._shares.tell(ProviderPause(name, digest, wait_s, opened, error.code, error.model))

    def _which_is_open(self, account: CircuitBreaker) -> Literal["provider", "account"] | None:
        if account.is_open:
            return "account"
        return "provider" if self._circuit.is_open else None

    def _digest(self, secret: str) -> str:
        return account_digest(self._connection.base_url, secret)

    def pause(self, pause: ProviderPause) -> None:
        """Let calls wait as the provider asked another process, if that has the same key."""
        key = self._connection.api_key
        secret = "" if key is None else key.get_secret_value()
        if pause.account != self._digest(secret) or self._connection.kind == "local":
            return  # an embedded model is another one in each process
        wait_s = min(pause.wait_s, self._limits.retry_after_s)
        self._limiter.pause(wait_s)
        if pause.opened is not None:
            circuit = self._circuit if pause.opened == "provider" else self._account(secret)
            circuit.open(
                provider_error(pause.code, provider=pause.provider, model=pause.model), wait_s
            )

    def release(self, call: CallContext) -> None:
        """Record the end of an attempt."""
        if call.cached is not None:
            call.cached.end()
        self._circuit.release(call)
        self._account(call.secret).release(call)

    def has_time_for(self, call: CallContext) -> bool:
        """Return whether a call has the time to wait for the circuit and the pause."""
        outlasts_outage = self._circuit.estimated_retry_in() <= self._max_wait_s(call)
        return outlasts_outage and self._limiter.paused_for() <= call.time_left_s()

    def _account(self, secret: str) -> CircuitBreaker:
        account = self._accounts.get(secret)
        if account is None:
            account = CircuitBreaker(1, _QUOTA_PROBE_S, _MAX_QUOTA_PROBE_S, clock=self._clock)
            self._accounts[secret] = account
        return account

    def _check_quota(self, call: CallContext) -> None:
        account = self._account(call.secret)
        if account.retry_in() <= 0:
            return
        sentence = "{who} is not called: the account's quota is used up"
        wait = account.estimated_retry_in()
        raise _not_called(call, "quota-exhausted", sentence, wait, retryable=False)

    async def _wait_for_cache(self, call: CallContext) -> None:
        """Wait until the first call of a step has written the cache, where the provider has one."""
        call.cached = None
        if self.capabilities.of(self._api, call.request.model).prompt_cache:
            call.cached = self._prompts.open(call.request, call.scope)
            await call.cached.wait()

    async def _wait_for_circuit(self, call: CallContext) -> None:
        if not self._circuit.is_open:
            return
        began = self._clock()
        cause = "{who} gets no calls, since its last ones failed"
        async with call.idle(self._circuit.retry_in(), cause):
            closed = await self._circuit.wait(self._max_wait_s(call))
        call.waited_s += self._clock() - began
        failure = self._circuit.cause
        if closed or failure is None:
            return
        sentence = f"{{who}} is not called: its last calls failed ({failure.code})"
        wait = self._circuit.estimated_retry_in()
        raise _not_called(call, "provider-overloaded", sentence, wait)

    async def _wait_for_retry_budget(self, call: CallContext) -> None:
        """Wait until a retry is within the budget; a probe needs no budget."""
        while not self._circuit.is_open and (wait := self._budget.wait_s()) > 0:
            if wait > self._max_wait_s(call):
                sentence = "{who} fails too often for another try now"
                raise _not_called(call, "provider-overloaded", sentence, wait)
            async with call.idle(wait, "{who} fails too often for another try now"):
                await self._sleep(wait)
            call.waited_s += wait

    def _max_wait_s(self, call: CallContext) -> float:
        return min(self._limits.provider_wait_s - call.waited_s, call.time_left_s())

    async def _wait_for_pause(self, call: CallContext) -> None:
        """Wait for the end of a long pause of the provider; raise if the node times out before it.

        Short ones, and what the pause is extended by, are waited for in the queue.
        """
        wait = self._limiter.paused_for()
        if wait > call.time_left_s():
            raise _not_called(call, "rate-limited", "{who} asked all calls to wait", wait)
        if wait >= _LONG_WAIT_S:
            async with call.idle(wait, "{who} asked all calls to wait"):
                await self._sleep(wait)

    def _try_start(self, call: CallContext, is_retry: bool) -> bool:
        """Check again when the call is next in the queue; the state may have changed meanwhile."""
        counts = is_retry and not self._circuit.is_open
        if counts and self._budget.wait_s() > 0:
            return False
        if not self._circuit.try_acquire(call):
            return False
        if not self._account(call.secret).try_acquire(call):
            self._circuit.release(call)
            return False
        self._budget.spend(is_retry=counts)
        return True


def _not_called(
    call: CallContext, code: str, sentence: str, wait_s: float, *, retryable: bool = True
) -> ProviderError:
    return provider_error(
        code,
        provider=call.request.provider,
        model=call.request.model,
        sentence=f"{sentence}; it is tried again in {max(1, math.ceil(wait_s))} s",
        retryable=retryable,
        retry_in_s=wait_s,
    )
