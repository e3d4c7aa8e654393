"""What the cache of prompts saves a map over a shared beginning, and what its first call costs the others.

::

    python bench/prompt_cache.py                  # 20 items, 8,000 tokens; prints one JSON object
    python bench/prompt_cache.py --delay 2.0      # seconds until a reply begins

A ``loop`` asks a fake Anthropic server with the documented rules of its cache (``tests/support/llm``), with
``prompt_cache`` on and off, each ``--reps`` times in turn. ``input_cost`` and ``latency`` are shares of what
the map takes without: at list prices, and of the time from its start to its end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import genai_prices

sys.path.insert(0, str(Path(__file__).parent.parent))

import planwave
from tests.support.llm.fake_llm_server import FakeLLMServer
from tests.support.llm.prompt_cache import FakePromptCache, caching_replies

MODEL = "claude-sonnet-5"
_CHARS = 4
"""Characters of a token, by the rule of the fake server."""


def graph(items: int, tokens: int) -> dict[str, Any]:
    """Return a map whose steps have the same system prompt."""
    shared = ("All that is known of the matter. " * tokens)[: tokens * _CHARS]
    step = {
        "systemPrompt": shared,
        "userPrompt": "Item {{ item }}",
        "provider": "anthropic",
        "model": MODEL,
    }
    body = {"nodes": [{"id": "ask", "type": "agent", "data": step}], "edges": []}
    each = {"items": [*range(items)], "parallel": items, "body": body}
    return {"nodes": [{"id": "each", "type": "loop", "data": each}], "edges": []}  # fmt: skip


async def run(document: dict[str, Any], delay_s: float, *, is_on: bool) -> tuple[float, float]:
    """Return the seconds that a map takes, and the price of its input."""
    cache = FakePromptCache(time.monotonic)
    async with FakeLLMServer(reply_to=caching_replies(cache, delay_s)) as llm:
        with tempfile.TemporaryDirectory() as scratch:
            config = Path(scratch) / "planwave.toml"
            config.write_text(
                f"[providers.anthropic]\nkind = 'anthropic'\nprompt_cache = {str(is_on).lower()}\n"
            )
            os.environ |= {
                "ANTHROPIC_API_KEY": "sk-ant-bench",
                "ANTHROPIC_BASE_URL": llm.anthropic_url,
                "PLANWAVE_CONFIG": str(config),
            }
            began = time.perf_counter()
            result = await planwave.run(document)
            took = time.perf_counter() - began
    assert result.status == "completed", result.error
    counts = [
        genai_prices.Usage(input_tokens=given, cache_read_tokens=read, cache_write_tokens=written)
        for (given, _), (read, written) in cache.reported
    ]
    prices = (genai_prices.calc_price(each, MODEL, provider_id="anthropic") for each in counts)
    return took, float(sum(price.total_price for price in prices))


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--items", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=8_000)
    parser.add_argument("--delay", type=float, default=1.0, help="seconds until a reply begins")
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    document = graph(options.items, options.tokens)
    await run(document, 0, is_on=True)  # imports
    made = {is_on: list[tuple[float, float]]() for is_on in (False, True)}
    for _ in range(options.reps):
        for is_on, results in made.items():
            results.append(await run(document, options.delay, is_on=is_on))
    seconds, cost = ({on: statistics.median(each[at] for each in results) for on, results in made.items()} for at in (0, 1))  # fmt: skip
    print(
        json.dumps(
            {
                "items": options.items,
                "tokens": options.tokens,
                "delay_s": options.delay,
                "input_cost": round(cost[True] / cost[False], 3),
                "latency": round(seconds[True] / seconds[False], 3),
                "seconds": {"without": round(seconds[False], 3), "with": round(seconds[True], 3)},
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main())
