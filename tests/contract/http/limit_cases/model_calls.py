"""Limits of model calls."""

from __future__ import annotations

import asyncio

import pytest

from planwave.errors import PlanwaveError
from planwave.settings import Limits
from tests.contract.http.limit_cases.registry import (
    Refusal,
    case,
    refusal_of,
)
from tests.support.llm.client_harness import ModelClientHarness, model_client_harness
from tests.support.llm.fake_llm_server import ErrorReply, NoReply, ReplyStep, TextReply
from tests.support.polling import until


async def _ask(harness: ModelClientHarness) -> Refusal | None:
    try:
        await harness.ask()
    except PlanwaveError as error:
        return refusal_of(error)
    return None


async def _ask_with(limits: Limits, *steps: ReplyStep) -> tuple[Refusal | None, ModelClientHarness]:
    async with model_client_harness(*steps, limits=limits, jitter=1.0) as harness:
        return await _ask(harness), harness


@case("call_attempts", 3, code="provider-overloaded", mentions=[])
async def _(limits: Limits, amount: int) -> Refusal | None:
    """The amount is the attempt that would succeed."""
    received, harness = await _ask_with(
        limits, *[ErrorReply(529, "overloaded_error")] * (amount - 1)
    )
    assert len(harness.llm.requests) == min(amount, limits.call_attempts)
    return received


@case("retry_after_s", 7, code="not-waited-for", mentions=[])
async def _(limits: Limits, amount: int) -> Refusal | None:
    limited = ErrorReply(429, "rate_limit_error", headers={"retry-after": str(amount)})
    received, harness = await _ask_with(limits, limited)
    assert received is None
    waited = harness.time.now - 1_000
    assert waited >= limits.retry_after_s
    return None if waited >= amount else Refusal("not-waited-for")


@case(
    "provider_failures", 3, code="provider-overloaded", mentions=["not called"], provider_wait_s=0
)
async def _(limits: Limits, amount: int) -> Refusal | None:
    """The amount is the call that would succeed; each has one attempt."""
    down = [ErrorReply(529, "overloaded_error")] * (amount - 1)
    alone = limits.model_copy(update={"call_attempts": 1})
    async with model_client_harness(*down, limits=alone) as harness:
        for _ in down:
            with pytest.raises(PlanwaveError, match="HTTP 529"):
                await harness.ask()
        refusal = await _ask(harness)
        assert refusal is None or len(harness.llm.requests) == limits.provider_failures
        return refusal


@case(
    "provider_wait_s", 7, code="provider-overloaded", mentions=["not called", "in 8 s"],
    provider_failures=1,
)  # fmt: skip
async def _(limits: Limits, amount: int) -> Refusal | None:
    """The amount is how long the provider is left alone."""
    down = ErrorReply(529, "overloaded_error", headers={"retry-after": str(amount)})
    alone = limits.model_copy(update={"call_attempts": 1})
    async with model_client_harness(down, limits=alone) as harness, asyncio.TaskGroup() as tasks:
        with pytest.raises(PlanwaveError, match="HTTP 529"):
            await harness.ask()
        asking = tasks.create_task(_ask(harness))
        await asyncio.sleep(0)
        if amount <= limits.provider_wait_s:
            assert await harness.time.pass_deadline() == amount
        return await asking


async def _ask_past_deadline(
    limits: Limits, step: ReplyStep, *, early: float, deadline: float
) -> Refusal | None:
    """Let all but ``deadline`` seconds pass in good time, and then those in silence."""
    async with model_client_harness(step, limits=limits) as harness, asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(_ask(harness))
        await until(lambda: harness.llm.requests if isinstance(step, NoReply) else harness.deltas)
        harness.time.now += early
        if isinstance(step, TextReply):
            step.gates[4].set()
        assert await harness.time.pass_deadline() == deadline
        return await asking


@case(
    "first_byte_s",
    12,
    at="answers",
    past="hangs",
    code="first-byte-timeout",
    mentions=["first_byte_s"],
)
async def _(limits: Limits, amount: str) -> Refusal | None:
    if amount == "answers":
        return (await _ask_with(limits, TextReply("hi")))[0]
    return await _ask_past_deadline(limits, NoReply(), early=0, deadline=12)


@case("chunk_gap_s", 9, at="goes on", past="stops", code="chunk-timeout", mentions=["chunk_gap_s"])
async def _(limits: Limits, amount: str) -> Refusal | None:
    if amount == "goes on":
        return (await _ask_with(limits, TextReply("abcdef", chunks=6)))[0]
    gates = {4: asyncio.Event(), 6: asyncio.Event()}
    return await _ask_past_deadline(
        limits, TextReply("abcdefgh", chunks=8, gates=gates), early=0, deadline=9
    )


@case("call_s", 100, at="ends", past="goes on", code="call-timeout", mentions=["call_s"])
async def _(limits: Limits, amount: str) -> Refusal | None:
    if amount == "ends":
        return (await _ask_with(limits, TextReply("abcdef", chunks=6)))[0]
    gates = {4: asyncio.Event(), 6: asyncio.Event()}
    return await _ask_past_deadline(
        limits, TextReply("abcdefgh", chunks=8, gates=gates), early=96, deadline=4
    )
