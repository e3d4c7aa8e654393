"""Times that clients have, kept by an event loop that has better to do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import Final

_NEVER: Final = float("inf")
_EARLY_S: Final = 0.01
"""An event loop rings by that much too early, at most: by what its clock does not tell apart."""


def nothing() -> None:
    """Stands for a call that is not needed any more."""


class Timer:
    """Calls something unless it is stopped in time.

    It is stopped and started with every request, so it leaves the event loop's own timer alone
    where it can: one that rings early is set anew for what is left, or forgotten.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self._due = _NEVER
        self._handle: asyncio.TimerHandle | None = None

    def start(self, after_s: float) -> None:
        """Begin to count, if it has not begun."""
        if self._due == _NEVER:
            loop = asyncio.get_running_loop()
            self._due = loop.time() + after_s
            if self._handle is not None and self._handle.when() > self._due:
                self._handle.cancel()
                self._handle = None
            if self._handle is None:
                self._handle = loop.call_at(self._due, self._ring)

    def stop(self) -> None:
        """Forget about it."""
        self._due = _NEVER

    def end(self) -> None:
        """Stop for good, and let go of what would be called: it may hold this timer."""
        self._due = _NEVER
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._call = nothing

    def _ring(self) -> None:
        due, self._handle = self._due, None
        loop = asyncio.get_running_loop()
        if due <= loop.time() + _EARLY_S:
            self._due = _NEVER
            self._call()
        elif due != _NEVER:
            self._handle = loop.call_at(due, self._ring)


class Untaken:
    """Cuts off a client that takes nothing of what it was sent for so long; a slow one is left.

    What has gone over to the client's system counts as taken, so one that takes nothing itself may be
    seen to only a second such time later.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._handle: asyncio.TimerHandle | None = None

    def start(self, transport: asyncio.WriteTransport) -> None:
        """Begin to count, for what waits to be taken now."""
        self.stop()
        loop = asyncio.get_running_loop()
        left = _left_of(transport)
        self._handle = loop.call_later(self._patience_s, self._look, transport, left)

    def stop(self) -> None:
        """Forget about it."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _look(self, transport: asyncio.WriteTransport, left: int) -> None:
        self._handle = None
        if _left_of(transport) < left:
            self.start(transport)
        else:
            transport.abort()


def _left_of(transport: asyncio.WriteTransport) -> int:
    """Give how many bytes have yet to reach a client: ours, and those that the system holds.

    It takes more of ours only once a good part of its own is gone, which can be a megabyte.
    """
    try:
        held = ioctl(transport.get_extra_info("socket").fileno(), TIOCOUTQ, bytes(4))
    except OSError:  # not every system tells
        held = b""
    return transport.get_write_buffer_size() + int.from_bytes(held, sys.byteorder)
