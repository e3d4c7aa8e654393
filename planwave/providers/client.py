"""Model calls with everything around them: turns, retries, recording, usage and price.

The one retry layer of planwave: the SDKs do not retry, and nodes only retry what this layer gave
up on. Nothing is retried once a delta has been delivered, because a consumer cannot take text back.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from planwave.errors import ProviderError, StoreError
from planwave.providers.api import (
    CallKey,
    CallScope,
    Delta,
    ModelReply,
    ModelRequest,
    Recorder,
    Usage,
)
from planwave.providers.calls import Finished, attempt
from planwave.providers.catalogue import Connection, ProviderCatalogue
from planwave.providers.faults import classify
from planwave.providers.limits import ProviderGate
from planwave.settings import Settings

if TYPE_CHECKING:
    from planwave.providers.wire import Wire

_BACKOFF_S = 0.5
_BACKOFF_CAP_S = 20.0


class ModelClient:
    """Streams replies of any provider of a catalogue; satisfies ``providers.api.Models``.

    Belongs to one event loop; :meth:`close` it there.

    Args:
        settings: The limits.
        catalogue: Where providers are and how many calls they take.
        recorder: Keeps finished calls, so that a re-entered attempt pays for none twice.
        clock: Seconds that only go forward.
        sleep: How to wait between attempts and for a provider's turn.
        rng: Gives a number in [0, 1): the jitter.
        timeout: Makes the deadline of one wait on the network.
        now: The present, for ``Retry-After`` dates.
    """

    def __init__(
        self,
        settings: Settings,
        catalogue: ProviderCatalogue,
        recorder: Recorder | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: Callable[[], float] = random.random,
        timeout: Callable[[float], AbstractAsyncContextManager[Any]] = asyncio.timeout,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._limits = settings.limits
        self._catalogue = catalogue
        self._recorder = recorder
        self._clock = clock
        self._sleep = sleep
        self._rng = rng
        self._timeout = timeout
        self._now = now
        self._gates: dict[str, ProviderGate] = {}
        self._loaded: set[str] = set()
        self._wires: dict[tuple[str, str | None, str], Wire] = {}

    async def stream(
        self, request: ModelRequest, scope: CallScope | None = None
    ) -> AsyncGenerator[Delta | ModelReply, None]:
        """Call the model; deltas first, the :class:`ModelReply` last.

        Close the iterator (``contextlib.aclosing``) where it may not be read to its end.

        Raises:
            ProviderError: Classified failure, after the retry layer gave up.
            UnknownProvider, UnavailableProvider: The request names what cannot be called.
            StoreError: The recorder cannot keep the reply or gives back what is no reply.
        """
        key = _key_of(request, scope) if scope is not None else None
        recorded = await self._recorded(key)
        if recorded is not None:
            yield Delta(recorded.text)
            yield recorded
            return
        reply: ModelReply | None = None
        async with aclosing(self._with_retries(request, scope, key)) as items:
            async for item in items:
                if isinstance(item, Delta):
                    yield item
                else:
                    reply = item
        assert reply is not None  # noqa: S101 - an attempt ends with a reply or raises
        if key is not None and self._recorder is not None:
            await self._recorder.record(key, asdict(reply))
        yield reply

    async def close(self) -> None:
        """Close every connection. Calls that still run fail."""
        wires = list(self._wires.values())
        self._wires.clear()
        for wire in wires:
            await wire.close()

    async def _recorded(self, key: CallKey | None) -> ModelReply | None:
        if key is None or self._recorder is None:
            return None
        found = await self._recorder.recorded(key)
        return None if found is None else _reply_from(found)

    async def _with_retries(
        self, request: ModelRequest, scope: CallScope | None, key: CallKey | None
    ) -> AsyncGenerator[Delta | ModelReply, None]:
        connection = self._catalogue.connection(request.provider)
        gate = self._gate(connection)
        headers = {"Idempotency-Key": idempotency_key(key)} if key is not None else {}
        await self._load(connection.kind)
        started = self._clock()
        number = 0
        while True:
            number += 1
            delivered = False
            try:
                async with gate.turn(scope.execution_id if scope else ""):
                    wire = await self._wire(connection, request.model)
                    async with aclosing(attempt(wire, request, headers)) as items:
                        async for item in items:
                            if isinstance(item, Delta):
                                delivered = True
                                yield item
                            else:
                                yield self._reply(request, item, number, self._clock() - started)
                                return
            except Exception as error:
                found = self._sorted(error, request, connection)
                if found is None:
                    raise
                failed, retry = found
                self._slow_down(gate, failed)
                if not retry or delivered or number >= self._limits.call_attempts:
                    raise failed from error
                await self._sleep(self._backoff(number))

    def _sorted(
        self, error: Exception, request: ModelRequest, connection: Connection
    ) -> tuple[ProviderError, bool] | None:
        if isinstance(error, ProviderError):
            return error, error.code == "stream-truncated"
        return classify(
            error,
            provider=request.provider,
            model=request.model,
            now=self._now(),
            secret=connection.api_key.get_secret_value() if connection.api_key else "",
        )

    def _slow_down(self, gate: ProviderGate, failed: ProviderError) -> None:
        """Make every call of the provider wait as long as it asked one of them to."""
        if failed.retry_after_s:
            gate.pause(min(failed.retry_after_s, self._limits.retry_after_s))

    def _backoff(self, number: int) -> float:
        """Give full jitter; it runs out while the gate is shut for the time a provider asked."""
        return self._rng() * min(_BACKOFF_CAP_S, _BACKOFF_S * 2**number)

    def _reply(
        self, request: ModelRequest, end: Finished, attempts: int, duration_s: float
    ) -> ModelReply:
        cost = self._catalogue.price(request.provider, request.model, end.usage)
        return ModelReply(
            text=end.text,
            provider=request.provider,
            model=request.model,
            finish_reason=end.finish_reason,
            usage=replace(end.usage, cost_usd=cost),
            attempts=attempts,
            duration_s=round(duration_s, 6),
        )

    def _gate(self, connection: Connection) -> ProviderGate:
        gate = self._gates.get(connection.name)
        if gate is None:
            gate = self._gates[connection.name] = ProviderGate(
                connection.max_concurrency,
                connection.requests_per_minute,
                clock=self._clock,
                sleep=self._sleep,
            )
        return gate

    async def _load(self, kind: str) -> None:
        """Import the SDKs at the first call, off the loop: they take long enough to be felt."""
        if kind not in self._loaded:
            await asyncio.to_thread(_load_sdk, kind)
            self._loaded.add(kind)

    async def _wire(self, connection: Connection, model: str) -> Wire:
        from planwave.providers.wire import Deadlines, Wire

        limits = self._limits
        url, key = connection.base_url, connection.api_key
        secret = key.get_secret_value() if key is not None else "none"
        deadlines = Deadlines(limits.first_byte_s, limits.chunk_gap_s, limits.call_s)
        if connection.kind == "local" and self._catalogue.local is not None:
            url, secret = await self._catalogue.local.endpoint(model)
            # A CPU is silent while it reads a prompt, its own or that of a neighbouring slot.
            deadlines = Deadlines(limits.call_s, limits.call_s, limits.call_s)
        place = (connection.name, url, secret)
        found = self._wires.get(place)
        if found is None:
            found = self._wires[place] = Wire(
                connection, url, secret, deadlines, clock=self._clock, timeout=self._timeout
            )
        return found


def _load_sdk(kind: str) -> None:
    from planwave.providers.wire import load

    load(kind)


def idempotency_key(key: CallKey) -> str:
    """Give ``{execution}/{path}/{ordinal}`` in characters a header may hold."""
    return quote(f"{key.execution_id}/{key.path}/{key.ordinal}", safe="/[]().,:=@+~-_")


def _key_of(request: ModelRequest, scope: CallScope) -> CallKey:
    return CallKey(
        scope.execution_id, scope.path, scope.attempt, scope.next_ordinal(), request.hash()
    )


def _reply_from(record: Mapping[str, Any]) -> ModelReply:
    """Read a recorded reply. Rows come from storage, so nothing about them is taken for granted."""
    try:
        usage = cast("dict[str, Any]", record["usage"])
        return ModelReply(
            text=_checked(str, record["text"]),
            provider=_checked(str, record["provider"]),
            model=_checked(str, record["model"]),
            finish_reason=_checked(str, record["finish_reason"]),
            usage=Usage(
                input_tokens=_checked(int, usage["input_tokens"]),
                output_tokens=_checked(int, usage["output_tokens"]),
                cost_usd=_price_of(usage.get("cost_usd")),
                estimated=bool(usage.get("estimated")),
            ),
            attempts=_checked(int, record.get("attempts", 1)),
            duration_s=float(record.get("duration_s", 0.0)),
            recorded=True,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"a recorded model call cannot be read: {type(error).__name__}",
            code="bad-record",
            hint="start the execution anew",
        ) from error


def _price_of(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _checked(kind: type[Any], value: object) -> Any:
    if not isinstance(value, kind):
        raise TypeError(kind.__name__)
    return value
