"""Events of one execution, written down by a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from planwave.events import Event, ExecutionState, fold

Fact = tuple[str, str | None, Mapping[str, Any]]
"""The type of an event, its path and its data."""


def numbered_events(facts: Iterable[Fact], attempt: int = 1) -> list[Event]:
    """Number events from 1; the time of the third is ``t3``."""
    return [
        Event("x1", seq, f"t{seq}", kind, path, attempt if path else None, dict(data))
        for seq, (kind, path, data) in enumerate(facts, 1)
    ]


class EventStory:
    """Numbers events as they are added, a second apart; deltas are not stored and have no number."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(
        self, kind: str, path: str | None = None, attempt: int | None = None, /, **data: Any
    ) -> Self:
        stored = sum(1 for event in self.events if event.seq)
        seq = 0 if kind == "node.delta" else stored + 1
        at = f"2026-01-01T00:00:{len(self.events) % 60:02}.000000Z"
        self.events.append(Event("x1", seq, at, kind, path, attempt, data))
        return self

    @property
    def state(self) -> ExecutionState:
        return fold(self.events)
