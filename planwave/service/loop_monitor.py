"""Notices when the event loop stands still, and says for how long and where.

Everything shares one event loop. A node that computes or waits without giving it back holds up every
execution, every subscriber and ``/healthz``, and nothing on the loop could say so: that takes a thread.

The thread sends the loop a word now and then, and the time until the loop takes it is how long it had
no time.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from time import monotonic
from types import FrameType
from typing import Final, Self

from planwave.executor.driver.attempt_tasks import current_node

_log = logging.getLogger(__name__)

STALL_THRESHOLD_S: Final = 0.25
"""For longer than this the loop may not stand still."""
PROBE_INTERVAL_S: Final = 0.125
"""Seconds from one word to the next look whether it was taken. A stop begins anywhere in between, so
that this is how exactly its length is known; less costs more."""
ENDLESS_STALL_S: Final = 10.0
"""What has not ended by then is told before it does; it may never."""
_FRAMES: Final = 5
_looking: Final = threading.Lock()
"""Held while one of them looks where a thread is."""


class EventLoopMonitor:
    """Watches the event loop it is entered in; a context manager.

    Args:
        on_lag: Called at every check, in the monitor's thread, with the seconds that the loop was blocked.
        endless_s: The seconds after which a stall that has not ended is logged.
    """

    def __init__(
        self, on_lag: Callable[[float], None] | None = None, *, endless_s: float = ENDLESS_STALL_S
    ) -> None:
        self._on_lag = on_lag
        self._endless_s = endless_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watched = 0
        self._probe_taken_at: float | None = None
        self._is_over = False
        # Held until it is over. An Event would cost half as much again, eight times a second.
        self._leave = threading.Lock()
        self._leave.acquire()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._leave.release()
        self._thread.join()

    def _on_probe(self) -> None:
        self._probe_taken_at = monotonic()

    # -- in the thread -----------------------------------------------------------------------------

    def _watch(self) -> None:
        while self._pause():
            self._probe()

    def _pause(self) -> bool:
        """Wait until it is time for a look; False where it is over."""
        if not self._is_over:  # a pause that ended for this has taken the lock already
            self._leave.acquire(timeout=PROBE_INTERVAL_S)
        return not self._is_over

    def _probe(self) -> None:
        """Send the loop a word, and wait until it takes it; look where it is while it does not."""
        asked_at, self._probe_taken_at = monotonic(), None
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._on_probe)
        where, is_told = None, False
        while (answered_at := self._probe_taken_at) is None:
            if not self._pause():
                return
            if self._probe_taken_at is not None:
                continue
            where = where or self._where()
            stood_s = monotonic() - asked_at
            if stood_s > self._endless_s and not is_told:
                is_told = True
                _log.warning(
                    "the event loop has stood still for %.1f s and still does, and everything with "
                    "it: %s; where that does not end, planwave has to be started again",
                    stood_s,
                    where,
                )
        stood_s = answered_at - asked_at
        self._report_lag(stood_s)
        if is_told:
            _log.info("the event loop turns again, after %.1f s", stood_s)
        elif stood_s > STALL_THRESHOLD_S - PROBE_INTERVAL_S / 2:
            _log.warning(
                "the event loop stood still for %.2f s, and everything with it: %s; what blocks "
                "belongs into a thread or a process",
                stood_s,
                where or "nobody could look where",
            )

    def _report_lag(self, lag_s: float) -> None:
        if self._on_lag is not None:
            self._on_lag(lag_s)

    def _frame(self) -> FrameType | None:
        # Collecting garbage in the middle of this hangs Python 3.11: the interpreter waits
        # for a lock that it holds itself (python/cpython#106883). So nothing is collected meanwhile.
        with _looking:
            collects = gc.isenabled()
            gc.disable()
            try:
                frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
                return frames.get(self._watched)
            finally:
                if collects:
                    gc.enable()

    def _where(self) -> str:
        """Return the node that the loop runs, if any, and the innermost frames of its thread."""
        frames = list(_frames_outwards(self._frame()))
        node = None if self._loop is None else current_node(self._loop)
        in_node = "" if node is None else f"in node {node[0]!r} of execution {node[1]}, "
        return in_node + " < ".join([_frame_location(frame) for frame in frames[:_FRAMES]])


def _frames_outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _frame_location(frame: FrameType) -> str:
    code = frame.f_code
    return f"{frame.f_globals.get('__name__')}.{code.co_qualname}:{frame.f_lineno}"
