"""An event loop on which waiting costs nothing: its clock jumps to the next timer when idle.

Nothing sleeps for real, timeouts of minutes pass in microseconds, and a program that would wait
for ever fails at once instead of hanging.
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import selectors
import termios
from collections.abc import Awaitable, Callable
from typing import Any

_POLL_S = 0.05
_PENDING_IO_TIMEOUT_S = 30.0
"""For so long, in real time, the clock stands still for what is under way and does not arrive."""


class DeadlockDetected(AssertionError):
    """Every task waits and no timer is set: on a real loop this would hang."""


class _VirtualSelector(selectors.SelectSelector):
    """Waits by moving the clock; what is really ready comes first.

    A machine may take its time to finish what a thread does, or to bring a byte from one end of a
    connection to the other, and a clock that moves meanwhile jumps to the deadline of who waits for it.

    Attributes:
        now: The time, in seconds.
        pending_threads: How many calls are at work in threads.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.pending_threads = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if ready := self._await_pending_io(timeout):
            return ready
        if timeout is None:
            raise DeadlockDetected("all tasks wait, and no timer is set")
        self.now += timeout
        return []

    def _await_pending_io(self, timeout: float | None) -> list[Any]:
        for _ in range(round(_PENDING_IO_TIMEOUT_S / _POLL_S)):
            if not self.pending_threads:
                break
            if ready := selectors.SelectSelector.select(self, _POLL_S):
                return ready
        return []


class _NetworkSelector(_VirtualSelector):
    """Also lets what is under way in sockets arrive before it moves the clock."""

    def _await_pending_io(self, timeout: float | None) -> list[Any]:
        for _ in range(round(_PENDING_IO_TIMEOUT_S / _POLL_S)):
            is_under_way = self._has_pending_io()
            if ready := selectors.SelectSelector.select(self, _POLL_S):
                return ready
            if not is_under_way and timeout is not None:
                break
        return []

    def _has_pending_io(self) -> bool:
        keys = self.get_map().values()
        return self.pending_threads > 0 or any(
            key.events & selectors.EVENT_WRITE or _unread_bytes(key.fd) for key in keys
        )


def _unread_bytes(file: int) -> int:
    """Give how many bytes written to a socket have not arrived at its other end."""
    try:
        return int.from_bytes(fcntl.ioctl(file, termios.TIOCOUTQ, bytes(4)), "little")
    except OSError:  # it listens, or is none
        return 0


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose time passes only in jumps from timer to timer."""

    def __init__(self, selector: type[_VirtualSelector] = _VirtualSelector) -> None:
        self._selector = selector()
        super().__init__(self._selector)

    def time(self) -> float:
        return self._selector.now

    def advance(self, seconds: float) -> None:
        """Let time pass as if what is being done now took so long."""
        self._selector.now += seconds

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        return self.stand_still(super().run_in_executor(executor, func, *args))

    def stand_still(self, working: asyncio.Future[Any]) -> asyncio.Future[Any]:
        """Let no time pass until what a thread does is done; return it."""

        def is_back(_: object) -> None:
            self._selector.pending_threads -= 1

        self._selector.pending_threads += 1
        working.add_done_callback(is_back)
        return working

    async def shutdown_default_executor(self, *args: Any) -> None:
        self._selector.pending_threads += 1  # a thread waits for those of the executor
        try:
            await super().shutdown_default_executor(*args)
        finally:
            self._selector.pending_threads -= 1


class VirtualNetworkLoop(VirtualLoop):
    """A virtual loop for code that talks to a server in the same loop, over real sockets."""

    def __init__(self) -> None:
        super().__init__(_NetworkSelector)


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
