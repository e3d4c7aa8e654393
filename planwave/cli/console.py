"""Where a command writes: results to stdout, progress beside them, errors and log records to stderr.

With ``--json`` stdout gets exactly one JSON object, written last; everything else, progress included,
goes to stderr.
"""

from __future__ import annotations

import logging
import os
import sys
import termios
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Any, TextIO, cast

from rich.console import Console
from rich.text import Text

from planwave.cli.formatting import clean, json_text, one_line, short_ids, status_style
from planwave.log_records import FIELDS

Line = Text | str
_UNKNOWN_WIDTH = 80
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class CommandConsole:
    """The terminal (or pipe, or file) of one command.

    Attributes:
        json: Whether stdout is for one JSON object.
        out: Progress and results for people; stderr with ``--json``.
        err: Errors and notes.
        live: Whether lines may be redrawn in place: a real terminal that can move the cursor.
        pretty: Whether colours, Markdown and cutting to the width make sense.
    """

    def __init__(
        self, *, json: bool = False, out: Console | None = None, live: bool | None = None
    ) -> None:
        self.json = json
        self.err = out if out is not None else _rich_console(stderr=True)
        self.out = out or (self.err if json else _rich_console())
        movable = _is_terminal(self.out.file) and os.environ.get("TERM", "") not in ("", "dumb")
        self.live = movable if live is None else live
        self.pretty = self.live or self.out.is_terminal

    @property
    def unicode(self) -> bool:
        """Whether glyphs outside ASCII can be written."""
        return _is_unicode(self.out.encoding)

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self.out.width

    def glyph(self, status: str) -> str:
        """Return the glyph of a status, in ASCII where the terminal cannot show Unicode."""
        look = status_style(status)
        return look.glyph if self.unicode else look.ascii

    def short_ids(self, ids: Iterable[str]) -> dict[str, str]:
        """Return each id as a list shows it: its unique end for a person, the whole for a program."""
        if not self.pretty:
            return {each: each for each in ids}
        ellipsis = self.symbol("…", "..")
        return {each: ellipsis + end for each, end in short_ids(ids).items()}

    def symbol(self, unicode: str, plain: str) -> str:
        """Return a Unicode symbol, or its ASCII form where the terminal cannot show Unicode."""
        return unicode if self.unicode else plain

    def spinner(self, seconds: float, plain: str) -> str:
        """Return the spinner frame of a time; without Unicode, always ``plain``."""
        return _SPINNER[int(seconds * 10) % len(_SPINNER)] if self.unicode else plain

    def line(self, text: Line = "") -> None:
        """Write one line: cut to the width on a terminal, whole everywhere else."""
        line = Text(clean(text)) if isinstance(text, str) else text
        if self.pretty:
            self.out.print(line, no_wrap=True, overflow="ellipsis")
        else:
            self.out.print(line, soft_wrap=True)

    def lines(self, lines: Iterable[Line]) -> None:
        """Write several lines."""
        for each in lines:
            self.line(each)

    def text(self, text: Line) -> None:
        """Write a text of any length, wrapped at words on a terminal."""
        line = Text(clean(text)) if isinstance(text, str) else text
        self.out.print(line, soft_wrap=not self.pretty)

    def texts(self, texts: Iterable[Line]) -> None:
        """Write several texts."""
        for each in texts:
            self.text(each)

    def verbatim(self, text: str) -> None:
        """Write a path or a command that people copy, without inserting line breaks."""
        self.out.print(Text(clean(text)), soft_wrap=True)

    def prompt(self, text: str) -> None:
        """Write a prompt and leave the cursor behind it."""
        self.out.print(Text(clean(text)), end="", soft_wrap=True)
        self.out.file.flush()

    @property
    def is_interactive(self) -> bool:
        """Whether a person can be asked: not with ``--json``, and only at a terminal."""
        return not self.json and self.live and _is_terminal(cast("TextIO | None", sys.stdin))

    def confirm(self, question: str) -> bool:
        """Ask the person at the terminal; anything but yes is no."""
        with suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before is no answer
        self.prompt(f"{question} [y/N] ")
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def markdown(self, text: str) -> None:
        """Write a model's answer: rendered on a terminal, as it is everywhere else."""
        if not self.pretty:
            self.text(text)
            return
        # Lazy: test_quick_commands_load_no_heavy_library
        from planwave.cli.markdown import render_markdown

        self.out.print(render_markdown(clean(text)))

    def result(self, value: Mapping[str, Any]) -> None:
        """Write the one JSON object of ``--json``; write nothing if stdout is closed."""
        if (stdout := cast("TextIO | None", sys.stdout)) is not None:
            stdout.write(json_text(value, ascii_only=not _is_unicode(stdout.encoding)) + "\n")
            stdout.flush()

    def error(self, message: str, hint: str | None = None) -> None:
        """Write an error message in red, and its hint on a separate line."""
        self.err.print(
            Text.assemble((f"{self.symbol('✗', 'x')} ", "bold red"), (one_line(message), "red")),
            soft_wrap=True,
        )
        if hint:
            self.hint(hint)

    def note(self, message: str) -> None:
        """Write a warning that does not stop the command."""
        self.err.print(
            Text.assemble(("! ", "bold yellow"), (one_line(message), "yellow")), soft_wrap=True
        )

    def hint(self, text: str) -> None:
        """Write a hint: how to solve the problem reported above it."""
        self.err.print(
            Text.assemble((f"  {self.symbol('→', '->')} ", "dim"), one_line(text)), soft_wrap=True
        )


def _rich_console(*, stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if console.width < 1:  # COLUMNS=0: nothing at all would be printed
        console.width = _UNKNOWN_WIDTH
    return console


def _is_unicode(encoding: str) -> bool:
    return encoding.lower().startswith("utf")


def _is_terminal(file: IO[str] | None) -> bool:
    """Return whether a stream is a terminal; False for a closed, missing or incomplete stream."""
    try:
        return file is not None and file.isatty()
    except (ValueError, AttributeError):
        return False


class _LogNotes(logging.Handler):
    def __init__(self, console: Callable[[], CommandConsole], redact: Callable[[str], str]) -> None:
        super().__init__(logging.WARNING)
        self._console, self._redact = console, redact

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, FIELDS):
            return  # a line of the service log: the command itself shows what happens
        with suppress(OSError):
            self._console().note(self._redact(record.getMessage()))


@contextmanager
def logs_as_notes(
    console: Callable[[], CommandConsole], redact: Callable[[str], str] = str
) -> Generator[None]:
    """Show log records from WARNING up as notes on the console that is current at that time.

    Args:
        console: Returns the console.
        redact: Takes secrets out of a note.
    """
    notes, root = _LogNotes(console, redact), logging.getLogger()
    root.addHandler(notes)
    try:
        yield
    finally:
        root.removeHandler(notes)
