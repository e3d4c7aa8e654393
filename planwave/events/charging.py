"""Which usage was paid, and which is only told again.

An attempt that is entered again makes its calls anew. Those it had made before are served from the
record, and it tells their usage a second time, as ``recorded``. That is nothing new, unless it was
cut off between a call and telling of it: then nobody has heard of it yet. So what an attempt tells
as recorded counts as far as it had not told it before; what it does not tell as recorded was paid.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planwave.events.vocabulary import Event

_ENTERED: Final = frozenset({"node.started", "node.unparked"})
_LEFT: Final = frozenset(
    {"node.waiting", "node.retrying", "node.completed", "node.failed", "node.cancelled"}
)


class _Stretch:
    """The usage of one attempt whose calls may be made again: since it began, or was answered last.

    Attributes:
        life: In which life of the execution it is, or was when it was last heard of.
        is_first: It has not been entered again: what it is served was not paid here.
        told: How often it told of a usage.
        again: How often it may do so again without anything being new.
    """

    __slots__ = ("again", "attempt", "is_first", "life", "told")

    def __init__(self, attempt: int | None, life: int, *, is_first: bool) -> None:
        self.attempt, self.life, self.is_first = attempt, life, is_first
        self.told: dict[str, int] = {}
        self.again: dict[str, int] = {}

    def enter_again(self, life: int) -> None:
        self.life, self.is_first = life, False
        self.again = dict(self.told)

    def is_paid(self, usage: Mapping[str, Any]) -> bool:
        what, is_recorded = _what(usage), bool(usage.get("recorded"))
        if is_recorded and self.again.get(what):
            self.again[what] -= 1
            return False
        self.told[what] = self.told.get(what, 0) + 1
        return not (is_recorded and self.is_first)


class Charges:
    """Follows the events of an execution, and says of its usage what was paid."""

    __slots__ = ("_epoch", "_life", "_stretches")

    def __init__(self) -> None:
        self._stretches: dict[str | None, _Stretch] = {}
        self._epoch: Any = 1
        self._life = 0

    def follow(self, event: Event) -> None:
        """Take in an event; most mean nothing here."""
        kind = event.type
        if kind in _ENTERED:
            self._enter(event)
        elif kind in _LEFT:
            # What goes on later has calls of its own, unless it was cut off and is to begin again.
            if not event.data.get("interrupted"):
                self._stretches.pop(event.path, None)
        elif kind == "execution.resumed" and event.data.get("epoch") != self._epoch:
            # Another owner enters again all that was at work; the same one had it only paused.
            self._epoch = event.data.get("epoch")
            self._life += 1

    def is_paid(self, event: Event) -> bool:
        """Say whether a ``usage`` event tells of something that was paid and not told of before."""
        found = self._stretches.get(event.path)
        if found is None or found.attempt != event.attempt:
            found = _Stretch(event.attempt, self._life, is_first=False)
            self._stretches[event.path] = found
        elif found.life != self._life:
            found.enter_again(self._life)
        return found.is_paid(event.data)

    def _enter(self, event: Event) -> None:
        found = self._stretches.get(event.path)
        if found is not None and found.attempt == event.attempt:
            found.enter_again(self._life)
        else:
            is_first = not event.data.get("reentry") and event.type != "node.unparked"
            self._stretches[event.path] = _Stretch(event.attempt, self._life, is_first=is_first)


def _what(usage: Mapping[str, Any]) -> str:
    """Give what tells usages apart. Any node may say anything there, so as text."""
    named = ("provider", "model", "input_tokens", "output_tokens")
    return repr([usage.get(name) for name in named])
