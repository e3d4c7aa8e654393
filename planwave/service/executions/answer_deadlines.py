"""What executions at rest wait for, and when the time for an answer is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from planwave.events import ExecutionState
from planwave.events.node_state import OpenRequest
from planwave.events.request_text import is_timer
from planwave.service.queries.digest import deadline_of

_LONGEST_S: Final = 86_400.0
"""Longer waits are cut in pieces: timers of the event loop do not reach any further than some weeks."""


class AnswerDeadlines:
    """The requests of each execution at rest, with one timer on the earliest.

    Args:
        now: UTC time.
        on_deadline: Called with an execution one of whose requests has run out, and when that was to be.
            The clock may say another time by then: what counts is that the time has passed.
    """

    def __init__(
        self, now: Callable[[], datetime], on_deadline: Callable[[str, datetime], None]
    ) -> None:
        self._now, self._on_deadline = now, on_deadline
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._requests: dict[str, list[OpenRequest]] = {}

    def requests(self) -> Iterator[OpenRequest]:
        """Yield the requests to people, of all executions at rest."""
        for each in self._requests.values():
            yield from each

    def watch(self, state: ExecutionState) -> None:
        """Watch the requests of an execution that has come to rest."""
        self.forget(state.execution_id)
        asked = [each for each in state.requests.values() if not is_timer(each.request)]
        if asked:
            self._requests[state.execution_id] = asked
        limits = [
            (end, each.timeout_s or 0.0)
            for each in state.requests.values()
            if (end := deadline_of(each)) is not None
        ]
        if limits:
            until, limit_s = min(limits)
            time_left_s = (until - self._now()).total_seconds()
            # Never longer than from the beginning: the clock may have been set back since.
            self._start_timer(state.execution_id, until, min(time_left_s, limit_s))

    def forget(self, execution_id: str) -> None:
        """Watch an execution no more."""
        self._requests.pop(execution_id, None)
        timer = self._timers.pop(execution_id, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Watch nothing any more."""
        for execution_id in {*self._timers, *self._requests}:
            self.forget(execution_id)

    def _start_timer(self, execution_id: str, until: datetime, time_left_s: float) -> None:
        loop = asyncio.get_running_loop()
        if time_left_s > _LONGEST_S:
            self._timers[execution_id] = loop.call_later(
                _LONGEST_S, self._start_timer, execution_id, until, time_left_s - _LONGEST_S
            )
        else:
            self._timers[execution_id] = loop.call_later(
                max(time_left_s, 0.0), self._fire, execution_id, until
            )

    def _fire(self, execution_id: str, until: datetime) -> None:
        self._timers.pop(execution_id, None)
        self._on_deadline(execution_id, until)
