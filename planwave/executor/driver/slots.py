"""Who may do its own work now: a queue in front of a bounded number of slots."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from planwave.errors import InputError
from planwave.executor.messages import DeliverOutcome
from planwave.executor.state import BACKOFF, DONE, NESTED, PARKED, QUEUED, RUNNING, Attempt


class Slots:
    """Slots of one execution, first come first served; nodes that come back go first.

    A slot is held only while a node does its own work: not while it is queued, runs graphs inside it
    without an own-work block, or waits for a retry.
    """

    __slots__ = (
        "_backoff",
        "_busy",
        "_closed_by",
        "_configured_limit",
        "_limit",
        "_nested",
        "_parked",
        "_queue",
        "_returns",
    )

    def __init__(self, limit: int | None) -> None:
        if limit is not None and limit < 1:
            raise InputError(f"max_parallel is {limit}, must be at least 1")
        self._limit = self._configured_limit = limit
        self._busy = self._backoff = self._nested = 0
        self._closed_by = set[str]()
        self._parked: set[Attempt] = set()
        self._queue: deque[Attempt] = deque()
        self._returns: dict[Attempt, list[DeliverOutcome]] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nothing works, is queued, or will come back by itself."""
        return not (self._busy or self.has_queued or self._returns or self._backoff or self._nested)

    @property
    def has_running(self) -> bool:
        """Whether any node does its own work."""
        return self._busy > 0

    def has_working(self, idle: Collection[Attempt]) -> bool:
        """Return whether any node does its own work, other than these that only wait."""
        return self._busy > sum(each.phase is RUNNING and each.is_idle for each in idle)

    @property
    def wants_to_start(self) -> bool:
        """Whether a queued attempt, or the outcome of a nested run, only waits for a slot."""
        return self._limit != 0 and (self.has_queued or bool(self._returns))

    @property
    def has_queued(self) -> bool:
        """Whether an attempt is queued; those that have ended meanwhile are dropped."""
        while self._queue and self._queue[0].phase is not QUEUED:
            self._queue.popleft()
        return bool(self._queue)

    @property
    def has_nested(self) -> bool:
        """Whether any node runs graphs that work, without a slot."""
        return self._nested > 0

    @property
    def may_lose_tasks(self) -> bool:
        """Whether the tasks of all parked nodes may be ended; see ``Attempt.may_lose_task``."""
        return all(attempt.may_lose_task for attempt in self._parked)

    @property
    def has_returns(self) -> bool:
        """Whether any nested outcome waits for delivery to its node."""
        return bool(self._returns)

    def close(self, by: str = "pause") -> None:
        """Grant no slots until ``reopen`` by the same."""
        self._closed_by.add(by)
        self._limit = 0

    def reopen(self, by: str = "pause") -> None:
        """Grant slots again, unless something else has closed them too."""
        self._closed_by.discard(by)
        if not self._closed_by:
            self._limit = self._configured_limit

    def enqueue(self, attempt: Attempt) -> None:
        """Queue an attempt, to start when a slot is free."""
        if attempt.phase is BACKOFF:
            self._backoff -= 1
            attempt.phase = QUEUED
        self._queue.append(attempt)

    def hold_back(self, attempt: Attempt) -> None:
        """Keep an attempt out of the queue until its retry delay is over."""
        attempt.phase = BACKOFF
        self._backoff += 1

    def enter_nested(self, attempt: Attempt) -> None:
        """Free the slot of a node that only waits for nested runs."""
        if attempt.phase is RUNNING:
            self._busy -= 1
            self._nested += 1
            attempt.phase = NESTED

    def leave_nested(self, attempt: Attempt) -> None:
        """Give a node that does own work beside its nested runs a slot, even if none is free.

        It cannot be held up in its own code; the next slots that become free make up for it.
        """
        self._busy += 1
        self._nested -= 1
        attempt.phase = RUNNING

    def park(self, attempt: Attempt) -> None:
        """Take out a node that waits for answers inside it."""
        self._nested -= 1
        self._parked.add(attempt)
        attempt.phase = PARKED

    def unpark(self, attempt: Attempt) -> None:
        """Take a parked node with a task in again."""
        self._nested += 1
        self._parked.remove(attempt)
        attempt.phase = NESTED

    def queue_return(self, reply: DeliverOutcome) -> None:
        """Queue the delivery of a nested outcome, until the node has a slot again."""
        self._returns.setdefault(reply.attempt, []).append(reply)

    def remove(self, attempt: Attempt) -> None:
        """Take an attempt out, wherever it is."""
        if attempt.phase is RUNNING:
            self._busy -= 1
        elif attempt.phase is BACKOFF:
            self._backoff -= 1
        elif attempt.phase is NESTED:
            self._nested -= 1
        elif attempt.phase is PARKED:
            self._parked.discard(attempt)
        attempt.phase = DONE

    def grant_returns(self) -> Iterator[DeliverOutcome]:
        """Yield the outcomes of nested runs whose nodes get a slot; one slot is for all of a node's."""
        while self._returns and self._free():
            attempt = next(iter(self._returns))
            answers = self._returns.pop(attempt)
            if attempt.phase is NESTED:
                self._busy += 1
                self._nested -= 1
                attempt.phase = RUNNING
            yield from answers

    def next_start(self) -> Attempt | None:
        """Return the attempt that was queued first and give it a slot; None if there is none, or no slot."""
        queue = self._queue
        while queue and (self._limit is None or self._busy < self._limit):  # spares a call a node
            attempt = queue.popleft()
            if attempt.phase is QUEUED:
                self._busy += 1
                attempt.phase = RUNNING
                return attempt
        return None

    def _free(self) -> bool:
        return self._limit is None or self._busy < self._limit
