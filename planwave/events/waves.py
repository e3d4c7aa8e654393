"""The waves of an execution according to its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planwave.shapes.executions import WaveResponse


@dataclass(slots=True)
class WaveProgress:
    """Which waves have begun, and which are over; ``total`` counts all.

    Attributes:
        floors: The lowest wave of each node of a graph that was changed while it was run, by id, and whether the node is
            in that one: it had begun there.
    """

    total: int = 0
    begun: set[int] = field(default_factory=set[int])
    done: set[int] = field(default_factory=set[int])
    floors: dict[str, tuple[int, bool]] = field(default_factory=dict[str, tuple[int, bool]])

    @property
    def floor(self) -> int:
        """The lowest wave that may get another node: the last one that has begun, or the one after it."""
        last = max(self.begun, default=1)
        return last + 1 if last in self.done else last

    def as_json(self, *, has_completed: bool) -> WaveResponse:
        """Return ``{"current", "total"}``: the lowest unfinished wave (the last one when all are).

        A wave in which no node ran, because all were skipped, is passed over.
        """
        if has_completed:
            return {"current": self.total, "total": self.total}
        current, last_begun = 1, max(self.begun, default=0)
        while current in self.done or (current < last_begun and current not in self.begun):
            current += 1
        return {"current": min(current, self.total), "total": self.total}
