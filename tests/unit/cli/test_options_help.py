"""The help of every command on a terminal of 80 columns."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from planwave.cli.app import app
from tests.support.cli.command_tree import CommandPath, every_command
from tests.support.cli.fake_factories import fake_factories

FRAME = re.compile("[│╭╮╰╯─]")


def help_words(path: CommandPath, columns: int) -> list[str]:
    """Return the words of a help, without its frames."""
    environment = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    done = CliRunner().invoke(app, [*path.words, "--help"], obj=fake_factories(), env=environment)
    assert done.exit_code == 0, done.output
    assert all(len(line) <= columns for line in done.output.splitlines())
    return FRAME.sub(" ", done.output).split()


@pytest.mark.parametrize("path", every_command(), ids=lambda each: " ".join(each.words) or "root")
def test_help_at_80_columns_cuts_no_word_and_names_no_python_type(path: CommandPath) -> None:
    narrow, wide = help_words(path, 80), help_words(path, 250)
    assert sorted(set(narrow) - set(wide)) == []
    assert [word for word in narrow if re.match(r"<(str|bool|int|float|path|list)\b", word)] == []
