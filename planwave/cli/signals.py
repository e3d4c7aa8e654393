"""Ctrl-C: the first signal stops the execution and stores that, the second one exits at once.

SIGTERM does the same, and SIGHUP (the terminal was closed) unless it is ignored, as under nohup.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TypeVar

from planwave.cli.console import CommandConsole
from planwave.errors import PlanwaveError

_CAUSES = {
    signal.SIGINT: "interrupted by Ctrl-C",
    signal.SIGTERM: "stopped by a termination signal",
    signal.SIGHUP: "stopped because the terminal was closed",
}
_Result = TypeVar("_Result")


def report_interrupts() -> None:
    """Have Ctrl-C raise ``KeyboardInterrupt`` from now on, unless it is ignored.

    In another thread than the main one, which alone gets signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler) and handler is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Interrupted(PlanwaveError):
    """The user asked to stop, and the running work has stopped.

    Attributes:
        exit_code: The exit code of the process: 128 plus the signal number.
    """

    code = "interrupted"

    def __init__(
        self,
        number: int = signal.SIGINT,
        message: str = "interrupted",
        *,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = 128 + number


class Interrupt:
    """Watches for the signals that ask to stop while an event loop runs.

    Attributes:
        received: The number of the first signal, or None.
    """

    def __init__(self, console: CommandConsole) -> None:
        self.received: int | None = None
        self._console = console
        self._stop: Callable[[], object] | None = None
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._watched = [n for n in _CAUSES if n is not signal.SIGHUP or not ignored]

    @property
    def cause(self) -> str:
        """The cause that the events of a cancelled execution record."""
        return _CAUSES.get(signal.Signals(self.received or signal.SIGINT), "interrupted")

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number in self._watched:
            loop.add_signal_handler(number, self._received_signal, number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in self._watched:
            loop.remove_signal_handler(number)

    def _received_signal(self, number: int) -> None:
        if self.received is not None:
            if self._console.live:
                self._console.out.show_cursor(True)
            os._exit(128 + number)
        self.received = number
        if self._stop is not None:
            self._stop()

    @contextmanager
    def on_stop(self, stop: Callable[[], object]) -> Generator[None]:
        """Call ``stop`` on the first signal, at once if it has come already; may be nested."""
        before, self._stop = self._stop, stop
        try:
            if self.received is not None:
                stop()
            yield
        finally:
            self._stop = before

    async def cancel_on_signal(self, work: Awaitable[_Result]) -> _Result:
        """Await ``work``; the first signal cancels it.

        Raises:
            Interrupted: A signal cancelled ``work``.
        """
        task = asyncio.current_task()
        if task is None:
            return await work
        with self.on_stop(task.cancel):
            try:
                return await work
            except asyncio.CancelledError:
                if self.received is None or task.uncancel() > 0:
                    raise
                raise Interrupted(self.received) from None
