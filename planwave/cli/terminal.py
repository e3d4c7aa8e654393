"""The person at the terminal: lines they type, and texts they edit in an editor of their own."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import termios
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Protocol, TextIO, cast

from planwave.errors import InputError

if TYPE_CHECKING:
    from planwave.cli.screen import CommandConsole

_CHUNK: Final = 65_536


class Prompter(Protocol):
    """Whoever can be asked."""

    @property
    def has_editor(self) -> bool:
        """Whether they have an editor."""
        ...

    async def read_line(self, prompt: str) -> str | None:
        """Give the line they type; None where they are done with typing (Ctrl-D)."""
        ...

    async def edit(self, text: str, ending: str) -> str:
        """Give what they make of a text; ``ending`` (``.json``) says what it is.

        Raises:
            InputError: There is no editor, or it failed.
        """
        ...

    def discard_typed(self) -> None:
        """Drop what was typed before there was a question."""
        ...


class TerminalPrompter:
    """Reads a terminal on the event loop, so that nothing else has to wait meanwhile."""

    def __init__(self, screen: CommandConsole, stdin: int) -> None:
        self._screen, self._stdin = screen, stdin
        self._buffer = b""

    @property
    def has_editor(self) -> bool:
        """See :meth:`Person.has_editor`."""
        return _editor() is not None

    async def read_line(self, prompt: str) -> str | None:
        """See :meth:`Person.read_line`."""
        self._screen.prompt(prompt)
        while b"\n" not in self._buffer:
            await self._readable()
            chunk = os.read(self._stdin, _CHUNK)
            if not chunk:
                self._screen.line()
                return None
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace")

    async def edit(self, text: str, ending: str) -> str:
        """See :meth:`Person.edit`."""
        command = _editor()
        if command is None:
            raise InputError("no editor is set", hint="set EDITOR, or type the value")
        with TemporaryDirectory(prefix="planwave-") as directory:
            file = Path(directory, f"value{ending}")
            try:
                await asyncio.to_thread(file.write_text, text, "utf-8")
                code = await _run_program([*command, str(file)])
                made = await asyncio.to_thread(file.read_text, "utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"{command[0]} could not edit the value: {error}") from error
        if code:
            raise InputError(f"{command[0]} ended with {code}: the value is as it was")
        return made

    def discard_typed(self) -> None:
        """See :meth:`Person.forget`."""
        self._buffer = b""
        with suppress(termios.error):
            termios.tcflush(self._stdin, termios.TCIFLUSH)

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._stdin, lambda: readable.done() or readable.set_result(None))
        try:
            await readable
        finally:
            loop.remove_reader(self._stdin)


def terminal_prompter(screen: CommandConsole) -> Prompter | None:
    """Give who sits at the terminal; None where nobody does, or stdout is for a program."""
    stdin = cast("TextIO | None", sys.stdin)
    if screen.json or not screen.live or stdin is None:
        return None
    try:
        return TerminalPrompter(screen, stdin.fileno()) if stdin.isatty() else None
    except (OSError, ValueError):  # closed, or none at all
        return None


async def _run_program(command: list[str]) -> int:
    """Have a program do its work on this terminal; it does not outlive its question."""
    process = await asyncio.create_subprocess_exec(*command)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()


def _editor() -> list[str] | None:
    with suppress(ValueError):
        return shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "") or None
    return None
