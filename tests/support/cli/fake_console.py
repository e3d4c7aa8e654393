"""Screens that write into memory: a pipe, and a terminal."""

from __future__ import annotations

import io
import re

from rich.console import Console

from planwave.cli.console import CommandConsole


class Utf8Buffer(io.StringIO):
    """Text in memory that says it can hold any character."""

    encoding = "utf-8"


def plain_console(*, width: int = 80) -> CommandConsole:
    """Make a screen that is a pipe or a file."""
    return CommandConsole(out=Console(file=Utf8Buffer(), width=width, highlight=False), live=False)


def terminal_console(*, width: int = 80, height: int = 30) -> CommandConsole:
    """Make a screen that is a terminal whose lines can be redrawn."""
    out = Console(
        file=Utf8Buffer(), width=width, height=height, force_terminal=True, color_system=None,
        highlight=False, legacy_windows=False,
    )  # fmt: skip
    return CommandConsole(out=out, live=True)


def console_output(console: CommandConsole) -> str:
    """Give everything a screen has written so far."""
    file = console.out.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def visible_lines(console: CommandConsole) -> list[str]:
    """Give the lines a person would see: cursor movements and erasures carried out."""
    lines, row, column = [""], 0, 0
    for code, text in re.findall(r"\x1b\[([0-9;?]*[A-Za-z])|([^\x1b])", console_output(console)):
        if code.endswith("A"):
            row = max(row - int(code[:-1] or 1), 0)
        elif code == "2K":
            lines[row] = ""
        elif text == "\r":
            column = 0
        elif text == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif text:
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines if line.strip()]
