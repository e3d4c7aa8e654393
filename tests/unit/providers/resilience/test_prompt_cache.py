from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from planwave.providers.protocols import CallScope, ModelReply, ModelRequest, ToolSpec
from planwave.providers.resilience.prompt_cache import (
    PromptCache,
    common_beginning,
    must_wait,
)
from planwave.settings import ProviderSettings
from tests.support.llm.client_harness import LoopClock, ModelClientHarness, model_client_harness
from tests.support.llm.fake_llm_server import TextReply
from tests.support.llm.prompt_cache import FakePromptCache

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
    harness: ModelClientHarness, items: int, *, in_system: bool, **more: Any
) -> list[ModelReply]:
    async def ask(number: int) -> ModelReply:
        scope = CallScope("e", f"map[{number}]/step", 1)
        if in_system:
            return await harness.ask(
                "anthropic", f"Item {number}", scope, system=SHARED, model=MODEL, **more
            )
        return await harness.ask(
            "anthropic", f"{SHARED}\nItem {number}", scope, model=MODEL, **more
        )

    async with asyncio.TaskGroup() as tasks:
        made = [tasks.create_task(ask(number)) for number in range(items)]
    return [task.result() for task in made]


def caching(delay_s: float = 0.02) -> Any:
    cache = FakePromptCache(time.monotonic)

    async def reply(body: dict[str, Any]) -> TextReply:
        given, read, written, beginnings = cache.count(body)
        await asyncio.sleep(delay_s)
        cache.begin(beginnings)
        return TextReply(usage=(given, 10), cached=(read, written))

    return reply


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
    async with model_client_harness(reply_to=caching(), time=LoopClock()) as harness:
        replies = await map_over(harness, 20, in_system=in_system)
    fresh = sum(reply.usage.input_tokens for reply in replies)
    assert fresh >= 20 * 8_000
    assert input_price(replies) <= 0.3 * fresh
    assert sum(reply.usage.cache_write_tokens > 0 for reply in replies) == 1


async def test_nothing_is_marked_where_the_setting_says_so_or_nothing_repeats() -> None:
    async with model_client_harness(
        time=LoopClock(),
        box=ProviderSettings(kind="anthropic", prompt_cache=False, base_url="http://x"),
    ) as harness:
        await harness.ask("anthropic", "Hi", CallScope("e", "n", 1), system=SHARED)
        await harness.ask("anthropic", "Hi", CallScope("e", "a[1]/n", 1), system="Short.")
        assert not any("cache_control" in str(each.body) for each in harness.llm.requests)
        tool = ToolSpec("look", "Look it up.", {"type": "object", "properties": {}})
        await harness.ask("anthropic", "Hi", CallScope("e", "n", 1), system=SHARED, tools=(tool,))
        assert 1 <= str(harness.llm.requests[-1].body).count("'cache_control'") <= 4


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


async def test_two_calls_and_those_of_other_executions_never_wait() -> None:
    cache = PromptCache(clock=time.monotonic)
    request = ModelRequest("anthropic", MODEL, "Hi", system=SHARED)
    scopes = [CallScope(each, f"map[{n}]/step", 1) for each in ("e", "f") for n in range(2)]
    calls = [cache.open(request, scope) for scope in scopes]
    async with asyncio.timeout(1):
        for call in calls:
            await call.wait()
