"""Who may do its own work now: a queue in front of a bounded number of slots."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from planwave.errors import InputError
from planwave.executor.flight import BACKOFF, FLYING, NESTED, OVER, QUEUED, Flight


class NestedAnswer(NamedTuple):
    """A nested run has ended and its node may go on once it has a slot again."""

    flight: Flight
    asked: Any
    result: Any


class Slots:
    """Slots of one execution, first come first served; nodes that come back go first.

    A slot is held only while a node does its own work: not while it is queued, only waits for nested
    runs, or waits for a retry.
    """

    __slots__ = ("_asked", "_backoff", "_busy", "_limit", "_nested", "_queue", "_returning")

    def __init__(self, limit: int | None) -> None:
        if limit is not None and limit < 1:
            raise InputError(f"max_parallel is {limit}, must be at least 1")
        self._limit = self._asked = limit
        self._busy = self._backoff = self._nested = 0
        self._queue: deque[Flight] = deque()
        self._returning: dict[Flight, list[NestedAnswer]] = {}

    @property
    def idle(self) -> bool:
        """Whether nothing works, is queued, or will come back by itself."""
        return not (self._busy or self._queue or self._returning or self._backoff or self._nested)

    @property
    def at_work(self) -> bool:
        """Whether any node does its own work."""
        return self._busy > 0

    @property
    def nesting(self) -> bool:
        """Whether any node waits for nested runs, without a slot."""
        return self._nested > 0

    @property
    def has_returning(self) -> bool:
        """Whether any node is to go on with what its nested runs gave."""
        return bool(self._returning)

    def close(self) -> None:
        """Give no slot to anybody until :meth:`reopen`."""
        self._limit = 0

    def reopen(self) -> None:
        """Give slots again."""
        self._limit = self._asked

    def enqueue(self, flight: Flight) -> None:
        """Let an attempt start when a slot is free."""
        if flight.phase is BACKOFF:
            self._backoff -= 1
            flight.phase = QUEUED
        self._queue.append(flight)

    def hold_back(self, flight: Flight) -> None:
        """Keep an attempt out of the queue until its retry delay is over."""
        flight.phase = BACKOFF
        self._backoff += 1

    def enter_nested(self, flight: Flight) -> None:
        """Free the slot of a node that only waits for nested runs."""
        if flight.phase is FLYING:
            self._busy -= 1
            self._nested += 1
            flight.phase = NESTED

    def come_back(self, answer: NestedAnswer) -> None:
        """Let a node go on with a nested run's result when it has a slot again.

        See ``Nesting.hand_over``.
        """
        self._returning.setdefault(answer.flight, []).append(answer)

    def leave(self, flight: Flight) -> None:
        """Take an attempt out, wherever it is."""
        if flight.phase is FLYING:
            self._busy -= 1
        elif flight.phase is BACKOFF:
            self._backoff -= 1
        elif flight.phase is NESTED:
            self._nested -= 1
        flight.phase = OVER

    def returning(self) -> Iterator[NestedAnswer]:
        """Give slots to nodes whose nested runs have ended; one slot is for all its answers."""
        while self._returning and self._free():
            flight = next(iter(self._returning))
            answers = self._returning.pop(flight)
            if flight.phase is NESTED:
                self._busy += 1
                self._nested -= 1
                flight.phase = FLYING
            yield from answers

    def next_start(self) -> Flight | None:
        """Give a slot to the attempt that has been queued longest, if there is one and a slot."""
        queue = self._queue
        while queue and (self._limit is None or self._busy < self._limit):  # spares a call a node
            flight = queue.popleft()
            if flight.phase is QUEUED:
                self._busy += 1
                flight.phase = FLYING
                return flight
        return None

    def _free(self) -> bool:
        return self._limit is None or self._busy < self._limit
