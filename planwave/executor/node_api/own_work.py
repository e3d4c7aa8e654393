"""Work of its own that a node does beside its nested runs; it is not parked meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from planwave.executor.state import Attempt

calls_around: ContextVar[int] = ContextVar("calls_around", default=0)
"""How many calls of its own (:class:`Busy`) a node's code is inside of where it is now."""


class OwnWork:
    """A call of its own that a node makes beside its nested runs; it is not parked meanwhile."""

    __slots__ = ("_flight", "_on_activity")

    def __init__(self, attempt: Attempt, on_activity: Callable[[Attempt], None]) -> None:
        self._flight, self._on_activity = attempt, on_activity

    def __enter__(self) -> None:
        self._flight.own_calls += 1
        calls_around.set(calls_around.get() + 1)

    def __exit__(self, *_: object) -> None:
        # Not by a token: a generator may be closed in another context than it was started in.
        calls_around.set(max(calls_around.get() - 1, 0))
        self._flight.own_calls -= 1
        self._flight.activity += 1
        if self._flight.open_nested_runs:
            self._on_activity(self._flight)
