"""Whether a process that drives executions makes progress, and its end where it does not.

What a carrier hands over is handed to another process if no sign of life comes for a lease. A process that gives no
signs because its event loop stands, or because its database does not answer, would go on with old executions, or be
handed new ones. So it ends itself, and whatever supervises it starts it again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from planwave.storage.records import StoreStats

_log = logging.getLogger(__name__)

LOOP_STANDS: Final = 70
"""The exit code where the event loop stood (``EX_SOFTWARE`` of sysexits.h)."""
STORE_SILENT: Final = 71
"""The exit code where the database did not answer (``EX_OSERR``)."""
_LEASES: Final = 2
"""How many leases a process may stand; it has lost its executions after one."""


class Watchdog:
    """Watches the event loop and the writer of the store.

    Args:
        lease_s: How long the others wait for a sign of life.
        stats: Returns what the store has to say of its writes.
        end: Ends the process at once, with an exit code.
    """

    def __init__(
        self, lease_s: float, stats: Callable[[], StoreStats], end: Callable[[int], object]
    ) -> None:
        self._lease_s, self._stats, self._end = lease_s, stats, end

    def is_well(self) -> bool:
        """Return whether events can be stored: else no sign of life is given."""
        stats = self._stats()
        return stats.status == "ok" and self._silent_s(stats) < self._lease_s

    @contextmanager
    def watching(self) -> Generator[None]:
        """Watch from a thread in the block; called on the event loop that is watched."""
        stopped = threading.Event()
        loop = asyncio.get_running_loop()
        # Daemon: it may stand in its wait when the process ends.
        thread = threading.Thread(
            target=self._watch, args=(loop, stopped), name="planwave-watchdog", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            stopped.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, stopped: threading.Event) -> None:
        while not stopped.wait(self._lease_s / 4):
            turned = threading.Event()
            try:
                loop.call_soon_threadsafe(turned.set)
            except RuntimeError:  # it is closed
                return
            most_s = self._lease_s * _LEASES
            # The second wait is for a process that was frozen as a whole: its loop goes on by then.
            if not turned.wait(most_s * 3 / 4) and not turned.wait(most_s / 4):
                if not stopped.is_set():
                    self._stop(LOOP_STANDS, "its event loop stands still")
                return
            # Here, too: it has had no time to answer a process that was frozen.
            if self._is_silent(most_s) and not stopped.wait(most_s / 4) and self._is_silent(most_s):
                self._stop(STORE_SILENT, "the database does not answer")
                return

    def _stop(self, code: int, reason: str) -> None:
        _log.critical(
            "this process ends: %s, and others go on with its executions (exit code %d)",
            reason,
            code,
        )
        self._end(code)

    def _is_silent(self, most_s: float) -> bool:
        return self._silent_s(self._stats()) > most_s

    def _silent_s(self, stats: StoreStats) -> float:
        return 0.0 if stats.busy_since is None else monotonic() - stats.busy_since
