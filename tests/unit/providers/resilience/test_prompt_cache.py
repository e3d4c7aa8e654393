from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from planwave.providers.capabilities import minimum_tokens
from planwave.providers.protocols import CallScope, ModelReply, ModelRequest, ToolSpec
from planwave.providers.resilience.prompt_cache import (
    CachedCall,
    PromptCache,
    common_beginning,
    must_wait,
)
from planwave.settings import ProviderSettings
from tests.support.llm.client_harness import (
    LoopClock,
    ModelClientHarness,
    expect_provider_error,
    model_client_harness,
)
from tests.support.llm.fake_llm_server import RawReply
from tests.support.llm.prompt_cache import FakePromptCache, caching_replies
from tests.support.virtual_loop import virtual_time

SHARED = "All that is known of the matter.\n" * 1_000
MODEL = "claude-haiku-5-5"


@pytest.mark.parametrize(
    ("position", "waiting", "is_warm", "waits"),
    [
        (0, 1, False, False), (0, 20, False, False), (1, 2, False, False),
        (1, 3, False, True), (19, 20, False, True), (19, 20, True, False),
    ],
)  # fmt: skip
def test_only_the_others_of_three_wait(
    position: int, waiting: int, is_warm: bool, waits: bool
) -> None:
    assert must_wait(position, waiting, is_warm=is_warm) is waits


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("a b c", "a b d", "a b "), ("same", "same", "same"), ("x", "y", ""), ("", "y", ""),
        ("head\nitem 1", "head\nitem 12", "head\nitem 1"), ("head\nitem 21", "head\nitem 22", "head\nitem "),
    ],
)  # fmt: skip
def test_a_beginning_ends_with_a_line_or_a_word(one: str, other: str, common: str) -> None:
    assert common_beginning(one, other) == common


async def map_over(
    harness: ModelClientHarness,
    items: int,
    *,
    in_system: bool = True,
    shared: str = SHARED,
    provider: str = "anthropic",
    **more: Any,
) -> list[ModelReply]:
    asked = {"model": MODEL, **({"system": shared} if in_system else {}), **more}

    async def ask(number: int) -> ModelReply:
        scope = CallScope("e", f"map[{number}]/step", 1)
        beginning = "" if in_system else f"{shared}\n"
        return await harness.ask(provider, f"{beginning}Item {number}", scope, **asked)

    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(ask(number)) for number in range(items)]
    return [task.result() for task in made]


def input_price(replies: list[ModelReply]) -> float:
    """In prices of a fresh token, by Anthropic's list: a read is 0.1, a write 1.25."""
    used = [reply.usage for reply in replies]
    cached = [(each.cache_read_tokens, each.cache_write_tokens) for each in used]
    fresh = sum(each.input_tokens for each in used) - sum(map(sum, cached))
    return fresh + sum(0.1 * read + 1.25 * written for read, written in cached)


@pytest.mark.parametrize("in_system", [True, False])
async def test_a_map_over_a_shared_beginning_costs_at_least_70_percent_less(
    in_system: bool,
) -> None:
    replies = caching_replies(FakePromptCache(time.monotonic))
    async with model_client_harness(reply_to=replies, time=LoopClock()) as harness:
        made = await map_over(harness, 20, in_system=in_system)
    fresh = sum(reply.usage.input_tokens for reply in made)
    assert fresh >= 20 * 8_000
    assert input_price(made) <= 0.3 * fresh
    assert sum(reply.usage.cache_write_tokens > 0 for reply in made) == 1


BOXES = {
    "kind anthropic": ProviderSettings(kind="anthropic", api_key_env="KEY", prompt_cache=False),
    "kind openai": ProviderSettings(kind="openai", api_key_env="KEY", prompt_cache=False),
    "another server": ProviderSettings(),
}


async def all_at_once(harness: ModelClientHarness, provider: str, **more: Any) -> bool:
    """Return whether ten calls of one step are made at the same time; none of them has a mark."""
    before, harness.llm.max_open_requests = len(harness.llm.requests), 0
    async with asyncio.TaskGroup() as tasks:
        for number in range(10):
            scope = CallScope("e", f"map[{number}]/step", 1)
            tasks.create_task(harness.ask(provider, f"Item {number}", scope, **more))
    sent = harness.llm.requests[before:]
    assert not any("cache_control" in str(each.body) for each in sent)
    return harness.llm.max_open_requests == 10


HELD_S = 0.5
"""Longer than a busy machine takes to send ten requests."""


def held_back() -> Any:
    async def reply(_: object) -> str:
        await asyncio.sleep(HELD_S)
        return "ok"

    return reply


@pytest.mark.parametrize("box", BOXES)
async def test_without_a_cache_nothing_is_marked_and_no_call_waits(box: str) -> None:
    async with model_client_harness(
        reply_to=held_back(), time=LoopClock(), box=BOXES[box], environ={"KEY": "sk-canary-box"}
    ) as harness:
        assert await all_at_once(harness, "box", system=SHARED)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_with_a_cache_the_others_wait(provider: str) -> None:
    async with model_client_harness(reply_to=held_back(), time=LoopClock()) as harness:
        await map_over(harness, 10, in_system=True, provider=provider, model="claude-sonnet-5")
        assert harness.llm.max_open_requests == 9


@pytest.mark.parametrize("model", ["claude-sonnet-5", "claude-sonnet-4-6", "claude-opus-4-6"])
async def test_a_beginning_below_the_least_of_the_model_is_not_marked(model: str) -> None:
    least = minimum_tokens(model)
    async with model_client_harness(reply_to=held_back(), time=LoopClock()) as harness:
        short = "x" * (4 * least - 4)
        assert await all_at_once(harness, "anthropic", system=short, model=model)
        await map_over(harness, 3, system=short + "xxxx", model=model)
        assert all("cache_control" in str(each.body) for each in harness.llm.requests[-3:])
        await map_over(harness, 3, in_system=False, shared=short[:-40], model=model)
        assert not any("cache_control" in str(each.body) for each in harness.llm.requests[-3:])


REFUSED = {
    "anthropic": (400, {"type": "error", "error": {"type": "invalid_request_error",
                  "message": "system.0.cache_control: Extra inputs are not permitted"}}),
    "fastapi": (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 0, "content", 0, "cache_control"],
                "msg": "Extra inputs are not permitted"}]}),
    "bedrock": (400, {"message": "You invoked an unsupported model or your request did not allow prompt caching."}),
    "words": (400, {"error": {"message": "This model does not support cache_control"}}),
    "its type": (400, {"error": {"message": "unknown variant `ephemeral`, expected nothing"}}),
    "text blocks": (400, {"error": {"message": "system: Input should be a valid string"}}),
    "server error": (500, {"error": {"message": "Unexpected field cache_control"}}),
    "no words": (400, None),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
async def test_refused_marks_are_learned_for_the_model(form: str) -> None:
    status, said = REFUSED[form]
    raw = b"" if said is None else json.dumps(said).encode()

    async def reply(body: dict[str, Any]) -> str | RawReply:
        has_marks = "cache_control" in json.dumps(body)
        await asyncio.sleep(0.1 if has_marks else HELD_S)
        return RawReply(raw, "application/json", status) if has_marks else "ok"

    async with model_client_harness(reply_to=reply, time=LoopClock()) as harness:
        replies = await map_over(harness, 4)
        assert {each.text for each in replies} == {"ok"}
        assert max(each.attempts for each in replies) == 2
        sent = len(harness.llm.requests)
        assert sent == 5, "one refusal teaches all calls that wait"
        assert await all_at_once(harness, "anthropic", system=SHARED, model=MODEL)
        assert len(harness.llm.requests) == sent + 10
        await map_over(harness, 3, model="claude-sonnet-5")
        assert len(harness.llm.requests) == sent + 10 + 4


async def test_marks_that_the_operator_asks_for_are_sent_whatever_was_refused() -> None:
    box = ProviderSettings(kind="anthropic", api_key_env="KEY", prompt_cache=True)
    lacks, environ = {"cache_control"}, {"KEY": "sk-canary-box"}
    async with model_client_harness(box=box, lacks=lacks, environ=environ) as harness:
        tool = ToolSpec("look", "Look it up.", {"type": "object", "properties": {}})
        error = await expect_provider_error(harness, "box", system=SHARED, tools=(tool,))
    assert (error.code, "cache_control" in error.message) == ("bad-request", True)


async def test_nothing_is_marked_where_nothing_repeats() -> None:
    async with model_client_harness(time=LoopClock()) as harness:
        await harness.ask("anthropic", "Hi", CallScope("e", "n", 1), system=SHARED)
        await harness.ask("anthropic", "Hi", CallScope("e", "a[1]/n", 1), system="Short.")
        assert not any("cache_control" in str(each.body) for each in harness.llm.requests)
        tool = ToolSpec("look", "Look it up.", {"type": "object", "properties": {}})
        await harness.ask("anthropic", "Hi", CallScope("e", "n", 1), system=SHARED, tools=(tool,))
        assert 1 <= str(harness.llm.requests[-1].body).count("'cache_control'") <= 4


def opened(*paths: str, scoped: bool = True) -> list[CachedCall]:
    """Return calls of a cache in the time of the running loop."""
    cache = PromptCache(clock=asyncio.get_running_loop().time)
    request = ModelRequest("anthropic", MODEL, "Hi", system=SHARED)
    return [cache.open(request, CallScope("e", path, 1) if scoped else None) for path in paths]


async def waits_of(calls: list[CachedCall]) -> list[float]:
    """Return the seconds that each call waits while none of them gets a reply."""
    loop = asyncio.get_running_loop()

    async def wait(call: CachedCall) -> float:
        began = loop.time()
        await call.wait()
        return round(loop.time() - began, 6)

    async with asyncio.TaskGroup() as tasks:
        waits = [tasks.create_task(wait(call)) for call in calls]
    return [each.result() for each in waits]


@virtual_time
async def test_no_call_waits_longer_than_five_seconds() -> None:
    calls = opened(*[f"map[{number}]/step" for number in range(4)])
    assert await waits_of(calls) == [0, 5, 5, 5]


@virtual_time
async def test_calls_outside_of_executions_never_wait() -> None:
    assert await waits_of(opened(*"abcd", scoped=False)) == [0, 0, 0, 0]


@virtual_time
async def test_the_second_call_looks_for_a_third_and_no_longer_than_that() -> None:
    assert await waits_of(opened("map[0]/step", "map[1]/step")) == [0, 0.1]


@virtual_time
async def test_calls_that_come_one_by_one_wait_as_those_that_come_together() -> None:
    cache = PromptCache(clock=asyncio.get_running_loop().time)
    request = ModelRequest("anthropic", MODEL, "Hi", system=SHARED)
    went: list[int] = []

    async def call(number: int) -> None:
        await asyncio.sleep(number * 0.03)
        made = cache.open(request, CallScope("e", f"map[{number}]/step", 1))
        await made.wait()
        went.append(number)
        if number == 0:
            await asyncio.sleep(2)
            assert went == [0]
            made.begin()

    async with asyncio.TaskGroup() as tasks:
        for number in range(6):
            tasks.create_task(call(number))
    assert went[0] == 0
    assert len(went) == 6


async def test_a_failure_of_the_first_releases_the_others_at_once() -> None:
    cache = PromptCache(clock=time.monotonic)
    request = ModelRequest("anthropic", MODEL, "Hi", system=SHARED)
    calls = [cache.open(request, CallScope("e", f"map[{n}]/step", 1)) for n in range(4)]
    async with asyncio.timeout(4), asyncio.TaskGroup() as tasks:
        waits = [tasks.create_task(call.wait()) for call in calls]
        await waits[0]
        for _ in range(5):
            await asyncio.sleep(0)
        assert [wait.done() for wait in waits] == [True, False, False, False]
        calls[0].end()
    assert all(wait.done() for wait in waits)


@virtual_time
async def test_calls_of_two_executions_do_not_wait_for_each_other() -> None:
    cache = PromptCache(clock=asyncio.get_running_loop().time)
    request = ModelRequest("anthropic", MODEL, "Hi", system=SHARED)
    scopes = [CallScope(each, f"map[{n}]/step", 1) for each in ("e", "f") for n in range(2)]
    assert await waits_of([cache.open(request, scope) for scope in scopes]) == [0, 0.1, 0, 0.1]
