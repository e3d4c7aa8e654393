"""Places where a process ends for good: before or after the n-th call of something.

A point is written ``before:append:2`` or ``after:record:1``: what is called, and which call of it,
from 1. ``before:append:3:node.parked`` is the call with the third such event: how many of them one
call takes along depends on how busy the machine is. ``before:triggers.claim:1`` is a call of a part of what is
called. What is wrapped does not know; see :func:`crash_at`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from planwave.events import Event

KILLED = 137
"""The exit code of a process that ended at a point."""


class CrashPoint(NamedTuple):
    """Where a process ends.

    ``about`` is the type of the events that count, or the kind of what a node or the driver recorded;
    None where calls do.
    """

    when: str
    method: str
    number: int
    event_type: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> CrashPoint | None:
        """Read ``when:what:number[:event type]``."""
        if not text:
            return None
        when, what, number, *about = text.split(":")
        return cls(when, what, int(number), about[0] if about else None)


class CrashingProxy:
    """Passes everything on, and ends the process at a point."""

    def __init__(self, inner: Any, point: CrashPoint) -> None:
        self._inner = inner
        self._point = point
        self._counts = 0
        part, _, method = point.method.partition(".")
        self._part = part if method else None
        if method:
            self._proxy = CrashingProxy(getattr(inner, part), point._replace(method=method))

    def __getattr__(self, name: str) -> Any:
        if name == self._part:
            return self._proxy
        found = getattr(self._inner, name)
        return self._with_crash(found) if name == self._point.method else found

    def _with_crash(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def watched(*args: Any, **options: Any) -> Any:
            point = self._point
            before = self._counts
            self._counts += (
                1 if point.event_type is None else _events_of(point.event_type, args[-1])
            )
            is_there = before < point.number <= self._counts
            if is_there and point.when == "before":
                os._exit(KILLED)
            given = await call(*args, **options)
            if is_there:
                os._exit(KILLED)
            return given

        return watched


def _events_of(kind: str, events: Sequence[Event]) -> int:
    return sum(kind in (event.type, event.data.get("event_type")) for event in events)


def crash_at(inner: Any, point: CrashPoint | None) -> Any:
    """Give something that ends the process at a point, where there is one in it."""
    if point is None or not hasattr(inner, point.method.partition(".")[0]):
        return inner
    return CrashingProxy(inner, point)
