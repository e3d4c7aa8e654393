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

_SOCKET_S = 0.05
"""In which the other end of a loopback connection is heard, where it has something to say. A jump
that comes too early costs a test nothing but the time until its next timer."""
_THREAD_S = 10.0


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


class _PatientLeap(_Leap):
    """Gives sockets and threads a moment of real time before it moves the clock."""

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            real = _THREAD_S if timeout is None else _SOCKET_S
            if ready := selectors.SelectSelector.select(self, real):
                return ready
        return super().select(timeout)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only in jumps from timer to timer."""

    def __init__(self, leap: type[_Leap] = _Leap) -> None:
        self._leap = leap()
        super().__init__(self._leap)

    def time(self) -> float:
        return self._leap.now

    def leap(self, seconds: float) -> None:
        """Let time pass as if what is being done now took so long."""
        self._leap.now += seconds


class NetworkedLoop(VirtualLoop):
    """A virtual loop for code that talks to a server in the same loop, over real sockets."""

    def __init__(self) -> None:
        super().__init__(_PatientLeap)


def virtual_time(
    test: Callable[..., Awaitable[None]], loop: Callable[[], VirtualLoop] = VirtualLoop
) -> Callable[..., None]:
    """Run an async test on a virtual loop; fails if it leaves a task behind."""

    @functools.wraps(test)
    def run(*args: Any, **options: Any) -> None:
        async def alone() -> None:
            await test(*args, **options)
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"tasks left behind: {left}"

        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(alone())

    return run
