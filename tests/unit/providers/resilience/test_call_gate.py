from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Literal

import pytest

from planwave.errors import ProviderError
from planwave.providers.errors import provider_error
from planwave.providers.protocols import CallScope, ModelRequest
from planwave.providers.registry import ProviderConfig
from planwave.providers.resilience.call_gate import CallContext, CallGate
from planwave.providers.resilience.shares import ProviderPause, account_digest
from planwave.settings import Limits
from tests.support.virtual_loop import virtual_time

ASKED = ModelRequest("box", "m", "hi")


def lane_of(concurrency: int = 4, per_minute: int | None = None, **limits: float) -> CallGate:
    connection = ProviderConfig("box", "openai-compatible", None, None, concurrency, per_minute)
    loop = asyncio.get_running_loop()
    return CallGate(connection, Limits(**limits), clock=loop.time, sleep=asyncio.sleep)  # type: ignore[arg-type]


def call_of(time_left_s: float = math.inf, secret: str = "") -> CallContext:
    return CallContext(ASKED, CallScope("e", "n", 1, time_left_s=lambda: time_left_s), secret)


def error_of(code: str, **more: float) -> ProviderError:
    return provider_error(code, provider="box", model="m", **more)  # type: ignore[arg-type]


async def passes(
    lane: CallGate,
    call: CallContext,
    fails_with: ProviderError | None = None,
    *,
    again: bool = False,
    meanwhile: Callable[[], Awaitable[object]] | None = None,
) -> float:
    """Let a call pass and tell the lane how it went; gives the time it went out at."""
    try:
        async with lane.acquire(call, is_retry=again):
            went = asyncio.get_running_loop().time()
            if meanwhile is not None:
                await meanwhile()
            if fails_with is None:
                lane.record_success(call)
            else:
                lane.record_failure(call, fails_with)
            return went
    finally:
        lane.release(call)


DOWN = error_of("provider-overloaded", status=529)


@virtual_time
async def test_calls_wait_for_the_probe_result() -> None:
    gate = lane_of(provider_failures=1)
    await passes(gate, call_of(), DOWN)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(passes(gate, call_of(), meanwhile=lambda: asyncio.sleep(5)))
        await asyncio.sleep(0)
        rest = [group.create_task(passes(gate, call_of())) for _ in range(3)]
    assert first.result() == 1
    assert [each.result() for each in rest] == [6, 6, 6]


@virtual_time
async def test_the_owner_of_a_call_is_told_of_every_long_wait() -> None:
    told, scope = list[str](), CallScope("x", "a", 1)
    scope.warn = told.append
    gate = lane_of(provider_failures=1, provider_wait_s=99)
    await passes(gate, call_of(), DOWN)
    await passes(gate, CallContext(ASKED, scope, ""))
    gate = lane_of(provider_failures=99, provider_wait_s=99)
    for _ in range(10):
        await passes(gate, call_of(), DOWN, again=True)
    await passes(gate, CallContext(ASKED, scope, ""), again=True)
    assert [each.partition(": ")[2].partition(") ")[2] for each in told] == [
        "gets no calls, since its last ones failed",
        "fails too often for another try now",
    ]


@virtual_time
async def test_wait_limit_applies_to_the_whole_call() -> None:
    gate = lane_of(provider_failures=1, provider_wait_s=6)
    call = call_of()
    await passes(gate, call, DOWN)
    assert await passes(gate, call, DOWN, again=True) == 1
    assert await passes(gate, call, DOWN, again=True) == 3
    with pytest.raises(ProviderError, match="it is tried again in 4 s") as caught:
        await passes(gate, call, again=True)
    error = caught.value
    assert (error.code, error.retry_after_s, error.retryable) == ("provider-overloaded", 4, True)
    assert call.waited_s == 3
    assert await passes(gate, call_of()) == 7, "another call has patience of its own"


@virtual_time
async def test_retry_budget_waits_count_against_the_wait_limit() -> None:
    gate = lane_of(provider_failures=99, provider_wait_s=15)
    call = call_of()
    for _ in range(10):
        await passes(gate, call_of(), DOWN, again=True)
    assert await passes(gate, call, DOWN, again=True) == 10
    for _ in range(9):
        await passes(gate, call_of(), DOWN, again=True)
    with pytest.raises(ProviderError, match="another try now"):
        await passes(gate, call, again=True)


@virtual_time
async def test_probe_needs_no_retry_budget() -> None:
    gate = lane_of(provider_failures=10)
    for _ in range(10):
        await passes(gate, call_of(), DOWN, again=True)
    assert await passes(gate, call_of(), again=True) == 1


@virtual_time
async def test_queued_call_is_held_back_when_the_circuit_opens() -> None:
    gate = lane_of(concurrency=1, provider_failures=1)
    door = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(passes(gate, call_of(), DOWN, meanwhile=door.wait))
        await asyncio.sleep(0)
        queued = [group.create_task(passes(gate, call_of())) for _ in range(3)]
        await asyncio.sleep(3)
        door.set()
    assert [each.result() for each in queued] == [4, 4, 4]


@virtual_time
async def test_rejected_calls_use_no_rate_limit() -> None:
    gate = lane_of(per_minute=3, provider_failures=1)
    await passes(gate, call_of(), DOWN)
    async with asyncio.TaskGroup() as group:
        went = [group.create_task(passes(gate, call_of())) for _ in range(3)]
    assert sorted(each.result() for each in went) == [1, 1, 60]


@virtual_time
async def test_cancelled_probe_is_replaced() -> None:
    gate = lane_of(provider_failures=1)
    await passes(gate, call_of(), DOWN)
    async with asyncio.TaskGroup() as group:
        probe = group.create_task(passes(gate, call_of(), meanwhile=asyncio.Event().wait))
        await asyncio.sleep(2)
        waiting = group.create_task(passes(gate, call_of()))
        await asyncio.sleep(2)
        probe.cancel()
    assert waiting.result() == 4


@pytest.mark.parametrize("code", ["bad-request", "provider-auth", "context-too-long"])
@virtual_time
async def test_client_error_does_not_open_the_circuit(code: str) -> None:
    gate = lane_of(provider_failures=2)
    for _ in range(3):
        await passes(gate, call_of(), DOWN)
        await passes(gate, call_of(), error_of(code, status=400))
    assert asyncio.get_running_loop().time() == 0


@pytest.mark.parametrize("code", ["stream-garbage", "first-byte-timeout", "empty-reply"])
@virtual_time
async def test_neutral_error_does_not_open_the_circuit_but_fails_a_probe(
    code: str,
) -> None:
    gate = lane_of(provider_failures=1)
    for _ in range(3):
        assert await passes(gate, call_of(), error_of(code)) == 0
    await passes(gate, call_of(), DOWN)
    assert await passes(gate, call_of(), error_of(code)) == 1
    assert await passes(gate, call_of()) == 3


@virtual_time
async def test_exhausted_quota_rejects_only_its_account() -> None:
    gate = lane_of()
    dry = error_of("quota-exhausted", status=429)
    await passes(gate, call_of(secret="a"), dry)
    with pytest.raises(ProviderError, match="it is tried again in 60 s") as caught:
        await passes(gate, call_of(secret="a"))
    assert caught.value.code == "quota-exhausted"
    assert await passes(gate, call_of(secret="b")) == 0
    await asyncio.sleep(60)
    assert await passes(gate, call_of(secret="a")) == 60


@virtual_time
async def test_calls_are_rejected_during_the_quota_probe() -> None:
    gate = lane_of()
    await passes(gate, call_of(), error_of("quota-exhausted", status=402))
    await asyncio.sleep(60)
    answered = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        probe = group.create_task(passes(gate, call_of(), meanwhile=answered.wait))
        await asyncio.sleep(1)
        with pytest.raises(ProviderError, match="quota is used up"):
            await passes(gate, call_of())
        answered.set()
    assert probe.result() == 60
    assert await passes(gate, call_of()) == 61


@virtual_time
async def test_queued_calls_are_rejected_when_quota_is_exhausted() -> None:
    gate = lane_of(concurrency=1)
    dry = error_of("quota-exhausted", status=429)
    async with asyncio.TaskGroup() as group:
        group.create_task(passes(gate, call_of(), dry, meanwhile=lambda: asyncio.sleep(1)))
        await asyncio.sleep(0)
        with pytest.raises(ProviderError, match="quota is used up"):
            await passes(gate, call_of())
    assert asyncio.get_running_loop().time() == 1


@virtual_time
async def test_call_without_time_to_wait_is_rejected_with_retry_after() -> None:
    gate = lane_of(provider_failures=99)
    for _ in range(10):
        await passes(gate, call_of(), DOWN, again=True)
    with pytest.raises(ProviderError, match="another try now; it is tried again in 10 s") as caught:
        await passes(gate, call_of(time_left_s=9), again=True)
    assert (caught.value.code, caught.value.retryable) == ("provider-overloaded", True)
    assert await passes(gate, call_of(time_left_s=9)) == 0, "a first try needs no budget"
    await passes(gate, call_of(), error_of("rate-limited", status=429, retry_after_s=86_400))
    with pytest.raises(ProviderError, match="tried again in 60 s") as caught:
        await passes(gate, call_of(time_left_s=59))
    assert (caught.value.code, caught.value.retry_after_s) == ("rate-limited", 60)
    assert await passes(gate, call_of(time_left_s=60)) == 60


@virtual_time
async def test_retry_needs_time_beyond_the_pause() -> None:
    gate = lane_of(provider_failures=1, provider_wait_s=5)
    assert gate.has_time_for(call_of(time_left_s=0))
    await passes(gate, call_of(), error_of("rate-limited", status=429, retry_after_s=5))
    assert gate.has_time_for(call_of())
    assert not gate.has_time_for(call_of(time_left_s=4))
    await asyncio.sleep(5)
    await passes(gate, call_of(), error_of("rate-limited", status=429, retry_after_s=6))
    assert not gate.has_time_for(call_of())


def told(opened: Literal["provider", "account"] | None, wait_s: float = 0.0) -> ProviderPause:
    return ProviderPause("box", account_digest(None, ""), wait_s, opened, DOWN.code, "m")


@virtual_time
async def test_calls_wait_as_the_provider_asked_another_process() -> None:
    gate = lane_of(retry_after_s=9)
    gate.pause(told(None, wait_s=7))
    assert await passes(gate, call_of()) == 7
    gate.pause(told(None, wait_s=99))
    assert await passes(gate, call_of()) == 16, "no longer than this process waits at most"
    gate.pause(told("provider"))
    assert await passes(gate, call_of()) == 17
    assert not gate._circuit.is_open
    gate.pause(told("provider", wait_s=5)._replace(account=account_digest(None, "another")))
    assert await passes(gate, call_of()) == 17


@virtual_time
async def test_an_embedded_model_is_another_one_in_each_process() -> None:
    connection, loop = (
        ProviderConfig("box", "local", None, None, 4, None),
        asyncio.get_running_loop(),
    )
    gate = CallGate(connection, Limits(), clock=loop.time, sleep=asyncio.sleep)
    gate.pause(told("provider", wait_s=5))
    assert await passes(gate, call_of()) == 0
