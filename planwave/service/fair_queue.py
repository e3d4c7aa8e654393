"""Which execution gets the next running place: a queue that shares the places between principals.

The rules, for ``places`` places:

1. A free place goes to a waiting execution, whoever it belongs to: no place stays free while one waits.
2. The next one is of the principal with the fewest running executions; of several, they take turns.
   What runs is never stopped for it.
3. Of one principal, executions that have started before go first, then those that have not, each in
   the order of arrival.
4. Where all places are taken, a principal that has none gets one of ``burst`` places beyond them, so
   that long executions of others do not keep it waiting. No further place is given out until fewer
   than ``places`` are taken.

No clock and no I/O; each operation costs at most O(principals), a position O(waiting).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count


class _Line:
    """The executions of one principal: how many run, and which wait.

    Attributes:
        running: The number of its places.
        turn: When it last got a place, or began to wait; smaller numbers were earlier.
        started: What goes on, in order.
        new: What has not started, in order.
    """

    __slots__ = ("new", "running", "started", "turn")

    def __init__(self) -> None:
        self.running = self.turn = 0
        self.started: dict[str, None] = {}
        self.new: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self.started) + len(self.new)

    def __iter__(self) -> Iterator[str]:
        return chain(self.started, self.new)


class FairQueue:
    """Running places, and the executions that wait for one.

    Args:
        places: Executions that run at once.
        burst: Places beyond these, each for a principal that has no other.
    """

    def __init__(self, places: int, burst: int) -> None:
        self._places, self._burst = places, burst
        self._lines: dict[str, _Line] = {}
        self._running: dict[str, str] = {}
        self._waiting: dict[str, str] = {}
        self._turns = count(1)

    def open(self, places: int, burst: int) -> None:
        """Give out so many places from now on."""
        self._places, self._burst = places, burst

    @property
    def running(self) -> int:
        """The number of places that are taken."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """The number of executions that wait for a place."""
        return len(self._waiting)

    def running_of(self, principal: str) -> int:
        """Return the number of places that a principal has."""
        line = self._lines.get(principal)
        return 0 if line is None else line.running

    def add(self, execution_id: str, principal: str, *, has_started: bool = False) -> None:
        """Let an execution wait for a place; nothing is done if it has one, or waits already.

        Args:
            execution_id: Which.
            principal: Whose share it counts towards.
            has_started: It ran before, and goes on.
        """
        if execution_id in self._running or execution_id in self._waiting:
            return
        line = self._lines.setdefault(principal, _Line())
        if not line:
            line.turn = next(self._turns)
        lane = line.started if has_started else line.new
        lane[execution_id] = None
        self._waiting[execution_id] = principal

    def next(self) -> str | None:
        """Give the next execution a place and return its id; None if none waits, or no place is free."""
        if not self._waiting or len(self._running) >= self._places + self._burst:
            return None
        line = min(filter(len, self._lines.values()), key=lambda each: (each.running, each.turn))
        if line.running and len(self._running) >= self._places:
            return None
        execution_id = next(iter(line))
        self.take(execution_id, self._waiting[execution_id])
        return execution_id

    def take(self, execution_id: str, principal: str) -> None:
        """Give an execution a place even where none is free: it works already, and cannot be held up."""
        if execution_id in self._running:
            return
        self._forget(execution_id)
        self._running[execution_id] = principal
        line = self._lines.setdefault(principal, _Line())
        line.running += 1
        line.turn = next(self._turns)

    def remove(self, execution_id: str) -> None:
        """Take back the place of an execution, or let it wait no longer."""
        self._forget(execution_id)
        principal = self._running.pop(execution_id, None)
        if principal is not None:
            self._lines[principal].running -= 1
            self._drop_empty(principal)

    def position(self, execution_id: str) -> int | None:
        """Return the place in the order of starts, 1 for the next one; None if it does not wait.

        The order is the one that holds if nothing ends and nothing else arrives.
        """
        principal = self._waiting.get(execution_id)
        if principal is None:
            return None
        own = self._lines[principal]
        index = next(index for index, each in enumerate(own) if each == execution_id)
        level, before = own.running + index, index
        for line in self._lines.values():
            if line is own:
                continue
            fewer = max(level - line.running, 0)  # that many go before it, being fewer by then
            before += min(len(line), fewer)
            is_level = len(line) > fewer == level - line.running
            # Whoever has just caught up has waited longer than those that have had a turn since.
            before += is_level and (-line.running, line.turn) < (-own.running, own.turn)
        return before + 1

    def _forget(self, execution_id: str) -> None:
        principal = self._waiting.pop(execution_id, None)
        if principal is not None:
            line = self._lines[principal]
            line.started.pop(execution_id, None)
            line.new.pop(execution_id, None)
            self._drop_empty(principal)

    def _drop_empty(self, principal: str) -> None:
        line = self._lines[principal]
        if not line and not line.running:
            del self._lines[principal]
