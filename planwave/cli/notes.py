"""What other rooms log while a command runs, as notes: one line that only prints, never a trace."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

from planwave.cli.screen import CommandConsole


class _LogNotes(logging.Handler):
    def __init__(self, screen: Callable[[], CommandConsole]) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            self._screen().note(record.getMessage())


@contextmanager
def logs_as_notes(screen: Callable[[], CommandConsole]) -> Generator[None]:
    """Show warnings of every logger on the screen there is when they come."""
    notes, root = _LogNotes(screen), logging.getLogger()
    root.addHandler(notes)
    try:
        yield
    finally:
        root.removeHandler(notes)
