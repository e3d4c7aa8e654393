"""Model calls with retries, recording, usage and price.

This is the only retry layer for calls: the SDKs do not retry, and a node's retry policy starts after
the retries here. No call is retried after its first delta, because consumers already have that text.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from planwave.errors import PlanwaveError, ProviderError
from planwave.providers.errors import ClassifiedError, after_attempts, classify
from planwave.providers.protocols import (
    CallKey,
    CallReport,
    CallScope,
    CallTrace,
    Delta,
    LocalProvider,
    ModelReply,
    ModelRequest,
    OpenCallTrace,
    Recorder,
)
from planwave.providers.recordings import (
    IDEMPOTENCY_HEADER,
    failure_from,
    failure_record,
    find_record,
    idempotency_key,
    key_of,
    record_of,
    reply_from,
)
from planwave.providers.refusals import learned_from
from planwave.providers.registry import ProviderConfig, ProviderRegistry
from planwave.providers.resilience.call_gate import CallContext, CallGate
from planwave.providers.resilience.shares import ProviderPause, ProviderShares
from planwave.providers.substitutes import process_calls
from planwave.settings import Settings

if TYPE_CHECKING:
    from planwave.providers.model_stream import AttemptResult
    from planwave.providers.transport import Exchange, SdkClient

_BACKOFF_S = 0.5
_BACKOFF_CAP_S = 20.0


@dataclass(slots=True)
class _Attempt:
    """An attempt that is being made.

    Attributes:
        number: Its number in the call, from 1.
        began: When it began.
        trace: Its trace.
        client: The client that makes it; None before there is one.
        exchange: Its requests; None before the first.
        first_token_s: From its beginning to the first that came of the reply; None before that.
    """

    number: int
    began: float
    trace: CallTrace | None
    client: SdkClient | None = None
    exchange: Exchange | None = None
    first_token_s: float | None = None


@dataclass(slots=True)
class _Learned:
    """What the server of one call has refused of it so far.

    Attributes:
        count: How often the call was asked for again in another form.
        guessed: The entries that were changed without a word of the server, so that they are taken back
            if the call fails all the same.
    """

    count: int = 0
    guessed: tuple[str, ...] = ()


class ModelClient:
    """A client of all configured providers; implements ``protocols.Models``.

    Belongs to one event loop; call ``close`` on the same loop.

    Args:
        settings: The limits.
        providers: The connections of the providers and their limits.
        recorder: Stores replies, so that an attempt repeated after a crash pays for no call twice.
        clock: A monotonic clock, seconds.
        sleep: Waits between attempts and for the limits of a provider.
        rng: Returns a number in [0, 1), for jitter.
        timeout: Limits the time of one wait.
        now: The current time, for ``Retry-After`` dates.
        open_trace: Opens the trace of an attempt; None traces nothing.
        shares: Divides the limits of providers among several processes; None where this one is alone.

    Attributes:
        on_call: Called with the report of each attempt, for metrics.
        hand_over: Called with an execution and a provider that only other processes can call: has one of them go on
            with the execution, and does not return before it is cancelled here.
    """

    def __init__(
        self,
        settings: Settings,
        providers: ProviderRegistry,
        recorder: Recorder | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Callable[[], float] = random.random,
        timeout: Callable[[float], AbstractAsyncContextManager[Any]] = asyncio.timeout,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        open_trace: OpenCallTrace | None = None,
        shares: ProviderShares | None = None,
    ) -> None:
        self._limits = settings.limits
        self._providers = providers
        self._recorder = recorder
        self._clock = clock
        self._sleep = sleep
        self._rng = rng
        self._timeout = timeout
        self._now = now
        self._open_trace = open_trace
        self.on_call: Callable[[CallReport], None] | None = None
        self.hand_over: Callable[[str, str], Awaitable[None]] | None = None
        self._shares = shares
        self._call_gates: dict[str, CallGate] = {}
        self._loaded_sdks: set[str] = set()
        self._sdk_clients: dict[tuple[str, str | None, str], SdkClient] = {}
        if shares is not None:
            shares.follow(self._pause_calls)

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncGenerator[Delta | ModelReply, None]:
        """Call the model; yield deltas, then the ``ModelReply``.

        Close the iterator (``contextlib.aclosing``) if it is not read to its end.

        Raises:
            ProviderError: The call failed after its retries, or is recorded as failed.
            UnknownProvider, UnavailableProvider: The provider of the request cannot be called.
            StoreError: The recorder cannot store the reply, or a recorded reply is invalid.
        """
        key = key_of(request, scope) if scope is not None else None
        recorded = await self._recorded(request, scope, key)
        if recorded is not None:
            if recorded.text:
                yield Delta(recorded.text)
            yield recorded
            return
        await self._hand_over(request, scope, key)
        if scope is not None and scope.reserve is not None:
            await scope.reserve(request)
        reply: ModelReply | None = None
        try:
            async with aclosing(self._with_retries(request, scope, key)) as items:
                async for item in items:
                    if isinstance(item, Delta):
                        yield item
                    else:
                        reply = item
        except ProviderError as error:
            if scope is not None and scope.record_failures:
                await self._record(key, failure_record(error))
            raise
        assert reply is not None  # noqa: S101 - an attempt ends with a reply or raises
        yield reply

    async def close(self) -> None:
        """Close every connection; running calls fail."""
        clients = list(self._sdk_clients.values())
        self._sdk_clients.clear()
        for client in clients:
            await client.close()
        for gate in self._call_gates.values():
            await gate.close()

    async def _recorded(
        self, request: ModelRequest, scope: CallScope | None, key: CallKey | None
    ) -> ModelReply | None:
        """Return the recorded reply of a call, if there is one, or raise its recorded failure."""
        if scope is None or key is None or self._recorder is None:
            return None
        record = await find_record(self._recorder, key, scope)
        if record is None:
            return None
        failure = failure_from(record)
        reply = reply_from(record) if failure is None else None
        self._report(request, scope, "recorded")
        if failure is not None:
            raise failure
        return reply

    async def _with_retries(
        self, request: ModelRequest, scope: CallScope | None, key: CallKey | None
    ) -> AsyncGenerator[Delta | ModelReply, None]:
        connection = self._providers.config(request.provider)
        gate = self._call_gate(connection)
        call = CallContext(request, scope, _secret_of(connection))
        await self._prepare(connection, call)
        started, learned = self._clock(), _Learned()
        is_retry = is_adapted = False
        for number in count(1):
            delivered = False
            attempt: _Attempt | None = None
            try:
                async with gate.acquire(call, is_retry=is_retry):
                    attempt = self._begin(request, scope, number)
                    streamed = self._attempt(connection, call, key, attempt, learned)
                    async with aclosing(streamed) as items:
                        async for item in items:
                            gate.record_success(call)
                            if isinstance(item, Delta):
                                delivered = True
                                yield item
                                continue
                            reply = self._reply(request, item, number, self._clock() - started)
                            self._report(request, scope, "completed", attempt, reply)
                            attempt = None
                            await self._record(key, record_of(reply))
                            yield reply
                            return
            except (asyncio.CancelledError, GeneratorExit):
                if attempt is not None:  # else no call was made, or it is already reported
                    self._report(request, scope, "cancelled", attempt)
                raise
            except Exception as error:
                classified = None if attempt is None else self._classify(error, call)
                if attempt is None or classified is None:
                    raise
                is_last = self._is_last(connection, gate, call, classified.error, number)
                may_repeat = not delivered and not is_last
                is_adapted = may_repeat and _adapt(classified, attempt, learned)
                will_retry = may_repeat and (is_adapted or classified.retry)
                self._report(request, scope, classified.error, attempt, will_retry=will_retry)
                if not will_retry:
                    raise after_attempts(classified.error, number) from error
                if not is_adapted:
                    call.warn(_repeated_words(number, classified.error))
            finally:
                gate.release(call)
            is_retry = not is_adapted
            await self._pause(call, self._backoff(number) if is_retry else 0.0)

    async def _hand_over(
        self, request: ModelRequest, scope: CallScope | None, key: CallKey | None
    ) -> None:
        """Have another process go on with the execution of a call, where only others can make the call."""
        if self.hand_over is None or key is None:
            return
        if self._providers.is_elsewhere(request.provider):
            async with CallContext(request, scope, "").idle(math.inf):
                await self.hand_over(key.execution_id, request.provider)

    async def _pause(self, call: CallContext, wait_s: float) -> None:
        async with call.idle(wait_s):
            await self._sleep(wait_s)

    def _is_last(
        self,
        connection: ProviderConfig,
        gate: CallGate,
        call: CallContext,
        error: ProviderError,
        number: int,
    ) -> bool:
        """Record the failure of an attempt; return whether it is the last attempt.

        What a test raises in place of a provider says nothing of that provider.
        """
        if connection.substitute is not None:
            return True
        gate.record_failure(call, error)
        return number >= self._limits.call_attempts or not gate.has_time_for(call)

    def _begin(self, request: ModelRequest, scope: CallScope | None, number: int) -> _Attempt:
        trace = None if self._open_trace is None else self._open_trace(request, scope)
        return _Attempt(number, self._clock(), trace)

    async def _attempt(
        self,
        connection: ProviderConfig,
        call: CallContext,
        key: CallKey | None,
        attempt: _Attempt,
        learned: _Learned,
    ) -> AsyncGenerator[Delta | AttemptResult | ModelReply, None]:
        """Yield the items of one attempt; the last one is the reply."""
        if connection.substitute is None:
            streamed = self._sdk_attempt(connection, call, key, attempt, learned)
        else:
            replies = connection.substitute.stream(call.request, call.scope)
            streamed = cast("AsyncGenerator[Delta | ModelReply]", replies)
        async with aclosing(streamed) as items:
            async for item in items:
                if attempt.first_token_s is None:  # also the end of a reply of tool calls alone
                    attempt.first_token_s = self._clock() - attempt.began
                yield item

    async def _sdk_attempt(
        self,
        connection: ProviderConfig,
        call: CallContext,
        key: CallKey | None,
        attempt: _Attempt,
        learned: _Learned,
    ) -> AsyncGenerator[Delta | AttemptResult, None]:
        request = call.request
        # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
        from planwave.providers.model_stream import stream_attempt

        headers = {} if attempt.trace is None else dict(attempt.trace.headers)
        if key is not None:
            # A request in another form is another request to a server that keeps its replies by this key.
            form = f"~{learned.count}" if learned.count else ""
            headers[IDEMPOTENCY_HEADER] = idempotency_key(key) + form
        client = await self._sdk_client(connection, call)
        if request.fixed_chars and connection.kind == "local" and self._providers.local is not None:
            await self._providers.local.prepare(request)
        attempt.client = client
        with client.exchange(request.model, web_search=request.web_search) as exchange:
            attempt.exchange = exchange
            async with aclosing(
                stream_attempt(client, request, headers, exchange, call.marks)
            ) as items:
                async for item in items:
                    yield item

    async def _record(self, key: CallKey | None, record: dict[str, Any]) -> None:
        """Record a complete reply before it is yielded, since it is paid for, or a failure."""
        if key is not None and self._recorder is not None:
            await self._recorder.record(key, record)

    def _report(
        self,
        request: ModelRequest,
        scope: CallScope | None,
        outcome: str | ProviderError,
        attempt: _Attempt | None = None,
        reply: ModelReply | None = None,
        *,
        will_retry: bool = False,
    ) -> None:
        error = outcome if isinstance(outcome, ProviderError) else None
        report = CallReport(
            request.provider,
            request.model,
            str(outcome) if error is None else error.code,
            0.0 if attempt is None else self._clock() - attempt.began,
            reply,
            will_retry,
            None if attempt is None else attempt.first_token_s,
            None if attempt is None or attempt.client is None else attempt.client.base_url,
            None if error is None else error.retry_after_s,
            None if scope is None else scope.execution_id,
            None if scope is None else scope.path,
            1 if attempt is None else attempt.number,
        )
        if attempt is not None and attempt.trace is not None:
            attempt.trace.end(report)
        if self.on_call is not None:
            self.on_call(report)

    def _classify(self, error: Exception, call: CallContext) -> ClassifiedError | None:
        if isinstance(error, ProviderError):
            return ClassifiedError(error, error.code == "stream-truncated")
        return classify(
            error,
            provider=call.request.provider,
            model=call.request.model,
            now=self._now(),
            secret=call.secret,
        )

    def _backoff(self, number: int) -> float:
        """Return the delay before the next attempt (full jitter); Retry-After is the gate's."""
        return self._rng() * min(_BACKOFF_CAP_S, _BACKOFF_S * 2**number)

    def _reply(
        self,
        request: ModelRequest,
        end: AttemptResult | ModelReply,
        attempts: int,
        duration_s: float,
    ) -> ModelReply:
        cost = self._providers.price(request.provider, request.model, end.usage)
        return ModelReply(
            text=end.text,
            provider=request.provider,
            model=request.model,
            finish_reason=end.finish_reason,
            usage=replace(end.usage, cost_usd=cost),
            attempts=attempts,
            duration_s=round(duration_s, 6),
            tool_calls=end.tool_calls,
            sources=end.sources,
            native=end.native,
            warnings=end.warnings,
            response_id=end.response_id,
            response_model=end.response_model,
        )

    def _call_gate(self, connection: ProviderConfig) -> CallGate:
        gate = self._call_gates.get(connection.name)
        if gate is None:
            gate = self._call_gates[connection.name] = CallGate(
                connection,
                self._limits,
                clock=self._clock,
                sleep=self._sleep,
                timeout=self._timeout,
                shares=self._shares,
            )
        return gate

    def _pause_calls(self, pause: ProviderPause) -> None:
        """Let the calls of a provider wait as it asked another process."""
        with suppress(PlanwaveError):  # it is not configured here
            self._call_gate(self._providers.config(pause.provider)).pause(pause)

    async def _prepare(self, connection: ProviderConfig, call: CallContext) -> None:
        """Check that the provider may be called, and load what calls it.

        Raises:
            ProviderError: ``model-call-forbidden``.
        """
        if connection.substitute is not None:
            return
        if process_calls.allowed is not None:
            model, url = call.request.model, connection.base_url
            process_calls.require_allowed(connection.name, model, url)
        await self._load(connection.kind, call)

    async def _load(self, kind: str, call: CallContext) -> None:
        """Import the SDKs at the first call, in a thread: the import takes seconds.

        The embedded model loads at the same time; if it cannot, the attempt raises the error.
        """
        if kind in self._loaded_sdks:
            return
        with call.loading():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(asyncio.to_thread(_load_sdk, kind))
                if kind == "local" and self._providers.local is not None:
                    tasks.create_task(_start_ahead(self._providers.local, call.request.model))
        self._loaded_sdks.add(kind)

    async def _sdk_client(self, connection: ProviderConfig, call: CallContext) -> SdkClient:
        # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
        from planwave.providers.transport import CallDeadlines, SdkClient

        limits = self._limits
        url, key = connection.base_url, connection.api_key
        secret = key.get_secret_value() if key is not None else "none"
        deadlines = CallDeadlines(limits.first_byte_s, limits.chunk_gap_s, limits.call_s)
        if connection.kind == "local" and self._providers.local is not None:
            with call.loading():
                url, secret = await self._providers.local.endpoint(call.request.model)
            # The server sends nothing while it reads a prompt, also one of another slot.
            deadlines = CallDeadlines(limits.call_s, limits.call_s, limits.call_s)
        cache_key = (connection.name, url, secret)
        client = self._sdk_clients.get(cache_key)
        if client is None:
            client = self._sdk_clients[cache_key] = SdkClient(
                connection,
                url,
                secret,
                deadlines,
                self._call_gate(connection).capabilities,
                clock=self._clock,
                timeout=self._timeout,
            )
        return client


def _repeated_words(number: int, error: ProviderError) -> str:
    return f"attempt {number} of a call failed, and is repeated: {error.message}"


def _secret_of(connection: ProviderConfig) -> str:
    return "" if connection.api_key is None else connection.api_key.get_secret_value()


def _adapt(failure: ClassifiedError, attempt: _Attempt, learned: _Learned) -> bool:
    """Learn what a server has refused; return whether the call is to be made again in another form."""
    client, exchange = attempt.client, attempt.exchange
    if client is None or exchange is None:
        return False
    table, api, model = client.capabilities, exchange.api, exchange.model
    if learned.guessed:
        table.forget(api, model, learned.guessed)
        learned.guessed = ()
    refusal = learned_from(failure, exchange.sent, api, exchange.capabilities)
    if refusal is None or not table.learn(api, model, refusal.changes):
        return False
    learned.count += 1
    learned.guessed = tuple(refusal.changes) if refusal.is_guess else ()
    return True


async def _start_ahead(local: LocalProvider, model: str) -> None:
    with suppress(PlanwaveError):
        await local.endpoint(model)


def _load_sdk(kind: str) -> None:
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.providers.model_stream import load_sdk

    load_sdk(kind)
