"""The token counts of a reply, in the words of all APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from planwave.providers.streams.events import object_in, require_object
from planwave.setting_tables import UsageCounting

_KINDS: Final = {
    "input_tokens": (("prompt_tokens",), ("input_tokens",)),
    "output_tokens": (("completion_tokens",), ("output_tokens",)),
    "cache_read": (
        ("prompt_tokens_details", "cached_tokens"),
        ("input_tokens_details", "cached_tokens"),
        ("cache_read_input_tokens",),
        ("prompt_cache_hit_tokens",),
        ("cached_tokens",),
    ),
    "cache_write": (
        ("cache_creation_input_tokens",),
        ("prompt_tokens_details", "cache_write_tokens"),
        ("input_tokens_details", "cache_write_tokens"),
    ),
    "reasoning": (
        ("completion_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
    ),
}
"""Where each kind of count is, by the names of the APIs."""


class TokenCounts(NamedTuple):
    """Tokens of one reply, as reported; None where a kind was not.

    Attributes:
        input_tokens: All tokens of the prompt, those of the cache among them.
        output_tokens: The tokens of the reply.
        cache_read: Those of the prompt that came from the provider's cache.
        cache_write: Those of the prompt that were written to it.
        reasoning: Those of the reply that the model thought with.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class UsageReader:
    """Reads the counts of one reply, wherever they come in its stream and how often.

    Counts are never added up: servers that report more than once report the tokens so far.

    Args:
        excludes_cache: Whether ``input_tokens`` are only those beside the cache (Anthropic's).
        counting: ``so_far`` takes the largest count of each kind, ``total`` the last that is not 0.
    """

    def __init__(self, *, excludes_cache: bool = False, counting: UsageCounting = "so_far") -> None:
        self._excludes_cache = excludes_cache
        self._takes_last = counting == "total"
        self._counts: dict[str, int] = {}

    def read(self, usage: object) -> None:
        """Read a ``usage`` object; None and what is no count are nothing.

        Raises:
            StreamGarbage: It is no object.
        """
        if usage is None:
            return
        reported = require_object(usage, "usage")
        for kind, places in _KINDS.items():
            counts = [
                count for place in places if (count := _count_at(reported, place)) is not None
            ]
            for count in counts:
                previous = self._counts.get(kind)
                if previous is None or count > previous or (self._takes_last and count > 0):
                    self._counts[kind] = count

    @property
    def counts(self) -> TokenCounts:
        """The counts so far."""
        counts = TokenCounts(**self._counts)
        if self._excludes_cache and counts.input_tokens is not None:
            cached = (counts.cache_read or 0) + (counts.cache_write or 0)
            return counts._replace(input_tokens=counts.input_tokens + cached)
        return counts


def _count_at(reported: Mapping[str, Any], place: tuple[str, ...]) -> int | None:
    *outer, name = place
    for each in outer:
        reported = object_in(reported.get(each))
    value = reported.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < 2**63 else None
