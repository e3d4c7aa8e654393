"""The cache of prompts of a fake Anthropic server, by its documented rules.

A request reads the longest beginning that ends at one of its marks (or at an earlier mark of others that is
a beginning of it) and was written in the last five minutes; the tokens from there to its last mark are
written. What a request writes can be read from when its reply begins. Shorter beginnings than the model's
minimum are not kept. Four characters are a token. More than four marks are refused (``refusals.py``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from planwave.providers.capabilities import minimum_tokens
from tests.support.llm.fake_llm_server import TextReply

KEPT_S = 300.0


class FakePromptCache:
    """Counts the tokens of requests; ``clock`` gives seconds.

    Attributes:
        reported: The usage of each reply: ``(all of the prompt, reply), (read, written)``.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[str, float] = {}
        self.reported: list[tuple[tuple[int, int], tuple[int, int]]] = []

    def count(self, body: dict[str, Any]) -> tuple[int, int, int, list[str]]:
        """Return all tokens of a prompt, those read, those written, and what the reply makes readable."""
        now, least = self._clock(), minimum_tokens(body["model"])
        text, marked = "", list[str]()
        for block in _blocks(body):
            is_marked = block.pop("cache_control", None) is not None
            text += block["text"] if block.get("type") == "text" else json.dumps(block)
            if is_marked:
                marked.append(text)
        usable = [each for each in marked if len(each) // 4 >= least]
        read = [each for each in usable if now - self._kept.get(each, -KEPT_S - 1) <= KEPT_S]
        longest = len(max(read, key=len, default="")) // 4
        last = len(max(usable, key=len, default="")) // 4
        return len(text) // 4, longest, last - longest, usable

    def begin(self, beginnings: list[str]) -> None:
        """Make the marked beginnings of a request readable: its reply has begun."""
        self._kept.update(dict.fromkeys(beginnings, self._clock()))


def caching_replies(
    cache: FakePromptCache, delay_s: float = 0.02
) -> Callable[[dict[str, Any]], Awaitable[TextReply]]:
    """Return what a server with this cache answers; a reply begins after the delay."""

    async def reply(body: dict[str, Any]) -> TextReply:
        given, read, written, beginnings = cache.count(body)
        await asyncio.sleep(delay_s)
        cache.begin(beginnings)
        cache.reported.append(((given, 10), (read, written)))
        return TextReply(usage=(given, 10), cached=(read, written))

    return reply


def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from map(dict, body.get("tools", ()))
    system = body.get("system") or []
    yield from map(dict, [{"type": "text", "text": system}] if isinstance(system, str) else system)
    for message in body["messages"]:
        content = message["content"]
        whole = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from map(dict, whole)
