"""An event loop on which waiting costs nothing: its clock jumps to the next timer when idle.

Nothing sleeps for real, timeouts of minutes pass in microseconds, and a program that would wait
for ever fails at once instead of hanging.
"""

from __future__ import annotations

import asyncio
import functools
import selectors
from collections.abc import Awaitable, Callable
from typing import Any


class NothingWillHappen(AssertionError):
    """Every task waits and no timer is set: on a real loop this would hang."""


class _Leap(selectors.SelectSelector):
    """Waits by moving the clock; what is really ready comes first."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None:
            raise NothingWillHappen("all tasks wait, and no timer is set")
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only in jumps from timer to timer."""

    def __init__(self) -> None:
        self._leap = _Leap()
        super().__init__(self._leap)

    def time(self) -> float:
        return self._leap.now


def virtual_time(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on a virtual loop; fails if it leaves a task behind."""

    @functools.wraps(test)
    def run(*args: Any, **options: Any) -> None:
        async def alone() -> None:
            await test(*args, **options)
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"tasks left behind: {left}"

        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(alone())

    return run
