"""A command at a terminal of its own, and a person who types there."""

from __future__ import annotations

import os
import pty
import select
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from tests.support.cli.command_process import PLANWAVE, start_command
from tests.support.processes.forked_process import ForkedProcess

PATIENCE_S = 90.0


def typed(args: Sequence[str], script: Sequence[tuple[str, str]]) -> tuple[int, str]:
    """Call a command at a terminal, typing each line once its prompt has come."""
    with at_terminal(args) as terminal:
        for prompt, line in script:
            terminal.read_until(prompt)
            terminal.type(line)
        return terminal.end()


class Terminal:
    """The terminal of one command.

    Attributes:
        process: The command.
        seen: All that it has written so far.
    """

    def __init__(self, process: ForkedProcess, descriptor: int) -> None:
        self.process = process
        self.seen = ""
        self._descriptor = descriptor
        self._typed_at = 0

    def type(self, text: str) -> None:
        """Type a text; what is read next begins behind what has come so far."""
        self._typed_at = len(self.seen)
        os.write(self._descriptor, text.encode())

    def read_until(self, text: str) -> None:
        """Read until a text has come, since the last one that was typed."""
        while text not in self.seen[self._typed_at :]:
            assert self._read(), f"{text!r} never came; there was:\n{self.seen}"

    def end(self) -> tuple[int, str]:
        """Read to the end; give the exit code and all that was written."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S), self.seen

    def _read(self) -> bool:
        """Read what comes; False at the end."""
        readable, _, _ = select.select([self._descriptor], [], [], PATIENCE_S)
        assert readable, f"nothing comes any more; there was:\n{self.seen}"
        try:
            piece = os.read(self._descriptor, 65_536).decode(errors="replace")
        except OSError:  # the other side was closed
            return False
        self.seen += piece
        return bool(piece)


@contextmanager
def at_terminal(args: Sequence[str], program: str = PLANWAVE) -> Generator[Terminal]:
    """Start a command whose terminal is the one that is given."""
    descriptor, inside = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = start_command(*args, program=program, env=environment, terminal=inside)
    os.close(inside)
    try:
        yield Terminal(process, descriptor)
    finally:
        process.kill()
        process.wait()
        os.close(descriptor)
