"""Usage of an execution: the totals, and which usage was paid and which is only reported again.

An attempt that is entered again repeats its calls. Calls made before are served from the record, and
the attempt emits their usage a second time, with ``recorded``. Recorded usage counts only where the
attempt has not emitted the usage before: its process may have ended between a call and the event.
Usage without ``recorded`` was always paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from planwave.events.types import NodeStarted, NodeUnparked, TypedEvent, Usage, UsageData

if TYPE_CHECKING:
    from planwave.shapes.nodes import UsageResponse

PART_TOKENS: Final = ("cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
"""The counts of the tokens of prompts that were read from a provider's cache, and written to it, both among
``input_tokens``, and of those of the reasoning, among ``output_tokens``; one that is absent is 0."""

_COST_DIGITS: Final = 12
"""Decimals of a sum of costs: prices of a token have no more, so the sum is exact in any order."""


def _amount(value: Any) -> Any:
    """Return a number that is not negative, or None."""
    return value if type(value) in (int, float) and value >= 0 else None


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """A sum of ``usage`` events. ``cost_usd`` is the known part, None where no price was known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def plus(self, data: UsageData) -> UsageTotal:
        """Return the sum with the data of one ``usage`` event; invalid amounts add nothing.

        Any node may emit usage: an invalid value must not make a stored run unreadable.
        """
        cost = _amount(data.get("cost_usd"))
        return UsageTotal(
            self.calls + 1,
            self.input_tokens + (_amount(data.get("input_tokens")) or 0),
            self.output_tokens + (_amount(data.get("output_tokens")) or 0),
            self.cost_usd if cost is None else round((self.cost_usd or 0.0) + cost, _COST_DIGITS),
            self.estimated or bool(data.get("estimated")),
            *(getattr(self, name) + (_amount(data.get(name)) or 0) for name in PART_TOKENS),
        )

    def as_json(self) -> UsageResponse:
        """Return the sum as JSON; the counts of ``PART_TOKENS`` that are 0 are left out."""
        document: UsageResponse = {
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost_usd,
            "estimated": self.estimated,
        }
        if self.cache_read_tokens:
            document["cache_read_tokens"] = self.cache_read_tokens
        if self.cache_write_tokens:
            document["cache_write_tokens"] = self.cache_write_tokens
        if self.reasoning_tokens:
            document["reasoning_tokens"] = self.reasoning_tokens
        return document


NO_USAGE: Final = UsageTotal()

_LEFT: Final = frozenset(
    {"node.waiting", "node.retrying", "node.completed", "node.failed", "node.cancelled"}
)


_USAGE_KEY: Final = ("provider", "model", "input_tokens", "output_tokens", *PART_TOKENS)
"""Fields that identify a usage; two calls that are equal in these cost the same."""


class _AttemptUsage:
    """The usage that an attempt has emitted since it began or was last answered.

    Attributes:
        generation: How often the execution had changed its owner at the newest event of the attempt.
        recorded: The usage that was new.
        repeatable: The part of it that the attempt may emit again, in the order first emitted.
    """

    __slots__ = ("attempt", "generation", "recorded", "repeatable")

    def __init__(self, attempt: int | None, generation: int) -> None:
        self.attempt, self.generation = attempt, generation
        self.recorded: list[Any] = []
        self.repeatable: list[Any] = []

    def reenter(self, generation: int) -> None:
        self.generation = generation
        self.repeatable = list(self.recorded)

    def is_new(self, usage: Any, *, is_recorded: bool) -> bool:
        """Record a usage and return whether the attempt had not emitted it before."""
        if is_recorded and usage in self.repeatable:
            self.repeatable.remove(usage)
            return False
        self.recorded.append(usage)
        return True


class UsageLedger:
    """Decides from the events of an execution which usage was paid."""

    __slots__ = ("_attempts", "_epoch", "_first_entries", "_generation")

    def __init__(self) -> None:
        self._first_entries: dict[str | None, int | None] = {}
        """Attempts never entered again, by path: their recorded usage was not paid in this execution."""
        self._attempts: dict[str | None, _AttemptUsage] = {}
        self._epoch: Any = 1
        self._generation = 0

    def observe(self, event: TypedEvent) -> None:
        """Apply an event; most types change nothing."""
        if event.type == "node.started" or event.type == "node.unparked":
            self._enter(event)
        elif event.type == "node.waiting" and event.data.get("interrupted"):
            pass  # the attempt begins again, so it may repeat its calls
        elif event.type in _LEFT:
            self._first_entries.pop(event.path, None)
            self._attempts.pop(event.path, None)
        elif event.type == "execution.resumed" and event.data.get("epoch") != self._epoch:
            # A new owner enters all running attempts again; the same owner only ends a pause.
            self._epoch = event.data.get("epoch")
            self._generation += 1
            self._first_entries.clear()

    def is_paid(self, event: Usage) -> bool:
        """Return whether the usage in a ``usage`` event was paid and not emitted before."""
        path, is_recorded = event.path, bool(event.data.get("recorded"))
        attempt_usage = self._attempts.get(path)
        if attempt_usage is None or attempt_usage.attempt != event.attempt:
            attempt_usage = self._attempts[path] = _AttemptUsage(event.attempt, self._generation)
        elif attempt_usage.generation != self._generation:
            attempt_usage.reenter(self._generation)
        # Any node may emit any JSON as usage, so the values may not be hashable.
        reported = event.data
        what = [reported.get(name) for name in _USAGE_KEY]
        is_new = attempt_usage.is_new(what, is_recorded=is_recorded)
        is_first = event.attempt is not None and self._first_entries.get(path) == event.attempt
        return is_new and not (is_recorded and is_first)

    def _enter(self, event: NodeStarted | NodeUnparked) -> None:
        attempt_usage = self._attempts.get(event.path)
        if attempt_usage is not None and attempt_usage.attempt == event.attempt:
            attempt_usage.reenter(self._generation)
        if attempt_usage is None and event.type == "node.started" and not event.data.get("reentry"):
            self._first_entries[event.path] = event.attempt
        else:
            self._first_entries.pop(event.path, None)
