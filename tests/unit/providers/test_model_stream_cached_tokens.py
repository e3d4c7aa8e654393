"""Tokens of a provider's cache are priced as such, from the reply to the sums."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.cli.formatting import tokens_text
from planwave.events.chat_chunks import token_usage
from planwave.events.usage import NO_USAGE, PART_TOKENS
from planwave.providers.protocols import Usage
from planwave.providers.recordings import record_of, reply_from
from planwave.providers.registry import ProviderRegistry
from planwave.providers.streams.usage import TokenCounts, UsageReader
from planwave.settings import Settings
from tests.support.llm.client_harness import model_client_harness
from tests.support.llm.fake_llm_server import TextReply

LIST_PRICES = [
    ("openai", "gpt-5.6-luna", Usage(10_000, 500, cache_read_tokens=9_000), 0.00098),
    ("openai", "gpt-5", Usage(10_000, 500, cache_read_tokens=9_000), 0.007375),
    ("openai", "gpt-4o-mini", Usage(10_000, 500, cache_read_tokens=9_000), 0.001125),
    ("anthropic", "claude-sonnet-4-5", Usage(10_000, 500, cache_read_tokens=9_000), 0.0132),
    ("anthropic", "claude-haiku-4-5", Usage(10_000, 500, cache_read_tokens=9_000), 0.0044),
    ("anthropic", "claude-haiku-5-5", Usage(10_000, 500, cache_read_tokens=9_000), 0.00044),
    ("anthropic", "claude-haiku-4-5", Usage(10_000, 5, cache_write_tokens=9_000), 0.012275),
]


@pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning")
@pytest.mark.parametrize(("provider", "model", "usage", "price"), LIST_PRICES)
async def test_a_reply_costs_what_the_price_list_says(
    provider: str, model: str, usage: Usage, price: float
) -> None:
    assert ProviderRegistry(Settings()).price(provider, model, usage) == price
    step = TextReply(usage=(usage.input_tokens, usage.output_tokens), cached=_cached(usage))
    async with model_client_harness(step) as harness:
        reply = await harness.ask(provider, model=model)
    assert reply.usage.as_json() == {**usage.as_json(), "cost_usd": price}
    assert reply_from(record_of(reply)).usage == reply.usage
    total = NO_USAGE.plus(reply.usage.as_json()).plus(reply.usage.as_json())  # type: ignore[arg-type]
    assert total.cost_usd == 2 * price
    assert [getattr(total, name) for name in PART_TOKENS] == [
        2 * getattr(usage, name) for name in PART_TOKENS
    ]


def _cached(usage: Usage) -> tuple[int, int]:
    return usage.cache_read_tokens, usage.cache_write_tokens


@pytest.mark.parametrize("cached", [(11_000, 0), (9_000, 9_000), (-1, 0), (0, 20_000)])
async def test_no_more_is_cached_than_the_prompt_has(cached: tuple[int, int]) -> None:
    async with model_client_harness(TextReply(usage=(10_000, 5), cached=cached)) as harness:
        usage = (await harness.ask("openai", model="gpt-5")).usage
    assert 0 <= usage.cache_read_tokens + usage.cache_write_tokens <= 10_000
    assert usage.cost_usd is not None


@pytest.mark.parametrize("details", ["completion_tokens_details", "output_tokens_details"])
def test_tokens_of_the_reasoning_are_read_stored_and_added_up(details: str) -> None:
    reader = UsageReader()
    reader.read({"prompt_tokens": 9, "completion_tokens": 8, details: {"reasoning_tokens": 5}})
    assert reader.counts == TokenCounts(9, 8, reasoning=5)
    usage = Usage(9, 8, reasoning_tokens=5).as_json()
    assert usage["reasoning_tokens"] == 5
    total = NO_USAGE.plus(usage).plus(usage)  # type: ignore[arg-type]
    assert (total.as_json().get("reasoning_tokens"), total.output_tokens) == (10, 16)
    assert token_usage(total)["completion_tokens_details"] == {"reasoning_tokens": 10}
    assert tokens_text(total.as_json()) == "18 in, 16 out (of which 10 reasoning)"


def test_usage_without_cached_tokens_is_as_before() -> None:
    before: dict[str, Any] = {
        "input_tokens": 1, "output_tokens": 2, "cost_usd": 0.5, "estimated": False
    }  # fmt: skip
    assert Usage(1, 2, 0.5).as_json() == before
    total = NO_USAGE.plus(before)  # type: ignore[arg-type]
    assert total.as_json() == {"calls": 1, **before}
