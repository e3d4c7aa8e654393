"""Every command of the command line, with arguments that fit, for tests that walk all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import typer

from planwave.cli.app import app

_VALUES: Final = {"FILE": "graph.json", "URL": "https://a.test/hook"}
"""What stands for an argument of a kind; any other is a text that is long enough for an id."""


class CommandPath(NamedTuple):
    """A command.

    Attributes:
        words: Its words after ``planwave``; none for ``planwave`` itself.
        command: The command.
    """

    words: tuple[str, ...]
    command: Any

    @property
    def runs(self) -> bool:
        """Whether it does something by itself, rather than only group commands."""
        return not hasattr(self.command, "commands") or self.command.invoke_without_command

    def arguments(self) -> list[str]:
        """Return its words with a value for each argument and option that it requires."""
        words = list(self.words)
        for each in self.command.params:
            if each.required:
                choices = each.type_descriptor.choices
                value = choices[0].value if choices else _VALUES.get(each.metavar, "abcdef01")
                words += [value] if each.param_type_name == "argument" else [each.opts[0], value]
        return words


def every_command() -> list[CommandPath]:
    """Return ``planwave`` and every command below it, groups too."""
    return list(_below(CommandPath((), typer.main.get_command(app))))


def _below(path: CommandPath) -> Iterator[CommandPath]:
    yield path
    for name, command in getattr(path.command, "commands", {}).items():
        yield from _below(CommandPath((*path.words, name), command))
