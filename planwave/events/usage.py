"""Usage of an execution: the totals, and which usage was paid and which is only reported again.

An attempt that is entered again makes its calls anew. Those it had made before are served from the
record, and it tells their usage a second time, as ``recorded``. That is nothing new, unless it was
cut off between a call and telling of it: then nobody has heard of it yet. So what an attempt tells
as recorded counts as far as it had not told it before; what it does not tell as recorded was paid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from planwave.events.types import Event


def _amount(value: Any) -> Any:
    """Give a number that is not negative, or None."""
    return value if type(value) in (int, float) and value >= 0 else None


@dataclass(frozen=True, slots=True)
class UsageTotal:
    """A sum of ``usage`` events. ``cost_usd`` is the known part, None where no price was known."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False

    def plus(self, data: Mapping[str, Any]) -> UsageTotal:
        """Give the sum with one ``usage`` event's data; what is no amount there adds nothing.

        Any node may say what it used: a made-up value must not make a stored run unreadable.
        """
        cost = _amount(data.get("cost_usd"))
        return UsageTotal(
            self.calls + 1,
            self.input_tokens + (_amount(data.get("input_tokens")) or 0),
            self.output_tokens + (_amount(data.get("output_tokens")) or 0),
            self.cost_usd if cost is None else (self.cost_usd or 0.0) + cost,
            self.estimated or bool(data.get("estimated")),
        )

    def as_json(self) -> dict[str, Any]:
        """Give the sum as JSON."""
        return {
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost_usd,
            "estimated": self.estimated,
        }


NO_USAGE: Final = UsageTotal()

_ENTERED: Final = frozenset({"node.started", "node.unparked"})
_LEFT: Final = frozenset(
    {"node.waiting", "node.retrying", "node.completed", "node.failed", "node.cancelled"}
)


_USAGE_KEY: Final = ("provider", "model", "input_tokens", "output_tokens")
"""What tells usages apart; two calls that are alike in these cost the same."""


class _AttemptUsage:
    """What an attempt has told it used, since it began, or was answered last.

    Attributes:
        generation: In which life of the execution it was when it was last heard of.
        recorded: What it told that nobody had heard of before.
        repeatable: What of that it may tell again, in the order in which it is likely to.
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
        """Take in a usage; say whether it was not told before."""
        if is_recorded and usage in self.repeatable:
            self.repeatable.remove(usage)
            return False
        self.recorded.append(usage)
        return True


class UsageLedger:
    """Follows the events of an execution, and says of its usage what was paid."""

    __slots__ = ("_attempts", "_epoch", "_first_entries", "_generation")

    def __init__(self) -> None:
        self._first_entries: dict[str | None, int | None] = {}
        """The attempts that were never entered again: what they are served was not paid here."""
        self._attempts: dict[str | None, _AttemptUsage] = {}
        self._epoch: Any = 1
        self._generation = 0

    def observe(self, event: Event) -> None:
        """Take in an event; most mean nothing here."""
        kind = event.type
        if kind in _ENTERED:
            self._enter(event)
        elif kind in _LEFT:
            # What goes on later has calls of its own, unless it was cut off and is to begin again.
            if not event.data.get("interrupted"):
                self._first_entries.pop(event.path, None)
                self._attempts.pop(event.path, None)
        elif kind == "execution.resumed" and event.data.get("epoch") != self._epoch:
            # Another owner enters again all that was at work; the same one had it only paused.
            self._epoch = event.data.get("epoch")
            self._generation += 1
            self._first_entries.clear()

    def is_paid(self, event: Event) -> bool:
        """Say whether a ``usage`` event tells of something that was paid and not told of before."""
        path, is_recorded = event.path, bool(event.data.get("recorded"))
        found = self._attempts.get(path)
        if found is None or found.attempt != event.attempt:
            found = self._attempts[path] = _AttemptUsage(event.attempt, self._generation)
        elif found.generation != self._generation:
            found.reenter(self._generation)
        # Any node may say anything there, so nothing is hashed.
        said = event.data
        what = [said.get(name) for name in _USAGE_KEY]
        is_new = found.is_new(what, is_recorded=is_recorded)
        is_first = event.attempt is not None and self._first_entries.get(path) == event.attempt
        return is_new and not (is_recorded and is_first)

    def _enter(self, event: Event) -> None:
        found = self._attempts.get(event.path)
        if found is not None and found.attempt == event.attempt:
            found.reenter(self._generation)
        if found is None and event.type == "node.started" and not event.data.get("reentry"):
            self._first_entries[event.path] = event.attempt
        else:
            self._first_entries.pop(event.path, None)
