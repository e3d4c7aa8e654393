"""Places where a process ends for good: before or after the n-th call of something.

A point is written ``before:append:2`` or ``after:record:1``: what is called, and which call of it,
from 1. ``before:append:3:node.parked`` is the call with the third such event: how many of them one
call takes along depends on how busy the machine is. ``after:record:2:model`` is the second record of a call
of that kind, ``begun`` that of a call that is about to act. ``before:triggers.claim:1`` is
a call of a part of what is called. What is wrapped does not know; see ``crash_at``.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from planwave.errors import StoreError
from planwave.events import Event
from planwave.providers.recordings import KIND

KILLED = 137
"""The exit code of a process that ended at a point."""


class CrashPoint(NamedTuple):
    """Where a process ends.

    ``event_type`` is the type of the events that count, or the kind of what a node or the driver
    recorded; None where calls do.
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

    async def end(self) -> None:
        """End the process."""
        os._exit(KILLED)

    def __getattr__(self, name: str) -> Any:
        if name == self._part:
            return self._proxy
        found = getattr(self._inner, name)
        return self._with_crash(found) if name == self._point.method else found

    def _with_crash(self, call: Callable[..., Any]) -> Callable[..., Any]:
        async def watched(*args: Any, **options: Any) -> Any:
            point = self._point
            before = self._counts
            self._counts += 1 if point.event_type is None else _count_in(point.event_type, args[-1])
            is_there = before < point.number <= self._counts
            if is_there and point.when == "before":
                await self.end()
            given = await call(*args, **options)
            if is_there:
                await self.end()
            return given

        return watched


class HaltingProxy(CrashingProxy):
    """Stands still from a point on, as if the process of its callers had ended.

    Attributes:
        has_ended: Set once it stands still.
        is_released: Set by the test to let the callers fail, when all has been seen.
    """

    def __init__(self, inner: Any, point: CrashPoint) -> None:
        super().__init__(inner, point)
        self.has_ended = asyncio.Event()
        self.is_released = asyncio.Event()

    async def end(self) -> None:
        self.has_ended.set()
        await self.is_released.wait()
        raise StoreError("the process has ended")

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **options: Any) -> Any:
            if self.has_ended.is_set():
                await self.end()
            return await found(*args, **options)

        return call


def _count_in(kind: str, written: Sequence[Event] | Mapping[str, Any]) -> int:
    """Return how many events or records of a kind are written."""
    if isinstance(written, Mapping):
        return int(kind == record_kind(written))
    return sum(kind in (event.type, event.data.get("event_type")) for event in written)


def record_kind(record: Mapping[str, Any]) -> str:
    """Return the kind of a recorded call, or ``begun`` for the note that one is about to act."""
    return record.get(KIND) or ("model" if "usage" in record else "begun")


def crash_at(inner: Any, point: CrashPoint | None) -> Any:
    """Give something that ends the process at a point, where there is one in it."""
    if point is None or not hasattr(inner, point.method.partition(".")[0]):
        return inner
    return CrashingProxy(inner, point)
