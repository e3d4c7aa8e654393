import io
import json
import logging
import sys

import pytest
from rich.console import Console
from rich.text import Text

from planwave.cli.console import CommandConsole, logs_as_notes
from tests.support.cli.fake_console import console_output, plain_console, terminal_console


def test_pipe_output_has_whole_lines_without_escape_codes() -> None:
    console = plain_console(width=20)
    console.line(Text("a very long line that would not fit", style="bold red"))
    console.markdown("# Title\n\n**bold**")
    assert console_output(console) == "a very long line that would not fit\n# Title\n\n**bold**\n"


def test_terminal_lines_are_cut_to_width() -> None:
    console = terminal_console(width=20)
    console.line("a very long line that would not fit")
    (line,) = console_output(console).splitlines()
    assert len(line) == 20
    assert line.endswith("…")


def test_terminal_renders_markdown() -> None:
    console = terminal_console()
    console.markdown("**bold** and [a link](http://x.example)")
    assert "**" not in console_output(console)
    assert "\x1b]8" not in console_output(console)


def test_control_characters_are_removed() -> None:
    for console in (plain_console(), terminal_console()):
        console.markdown("before \x1b[2Jafter")
        console.text("\x1b]0;owned\x07")
        console.line("[bold]not markup[/bold]")
        shown = console_output(console)
        assert "\x1b[2J" not in shown
        assert "\x07" not in shown
        assert "[bold]not markup[/bold]" in shown


def test_terminal_without_unicode_gets_ascii_signs() -> None:
    out = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"), highlight=False)
    console = CommandConsole(out=out, live=False)
    assert console.glyph("completed").isascii()
    assert plain_console().glyph("completed") == "✓"


def test_json_goes_to_stdout_and_the_rest_to_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console = CommandConsole(json=True)
    console.line("progress")
    console.error("wrong\nhere", "do this")
    console.result({"a": "ü\ud800"})
    out, err = capsys.readouterr()
    assert json.loads(out) == {"a": "ü\ud800"}
    assert "progress" in err
    assert "wrong here" in err
    assert "do this" in err


def test_json_is_ascii_for_ascii_output(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    CommandConsole(json=True).result({"a": "ü"})
    assert json.loads(stdout.buffer.getvalue()) == {"a": "ü"}


def test_json_to_closed_stdout_is_dropped(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    CommandConsole(json=True).result({"a": 1})
    assert tuple(capfd.readouterr()) == ("", "")


def test_terminal_wraps_text_but_not_copyable_lines() -> None:
    console = terminal_console(width=20)
    console.text("several words that do not fit")
    console.verbatim("/a/path/that/does/not/fit/either")
    assert [line.rstrip() for line in console_output(console).splitlines()] == [
        "several words that",
        "do not fit",
        "/a/path/that/does/not/fit/either",
    ]


def test_zero_width_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert CommandConsole().width == 80


def test_dumb_terminal_is_not_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    console = Console(file=Tty(), force_terminal=True)
    monkeypatch.setenv("TERM", "dumb")
    assert not CommandConsole(out=console).live
    monkeypatch.setenv("TERM", "xterm")
    assert CommandConsole(out=console).live


def test_forced_colours_do_not_make_a_pipe_redrawable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert not CommandConsole(out=Console(file=io.StringIO())).live


def test_log_warnings_are_one_line_each() -> None:
    console = plain_console()
    with logs_as_notes(lambda: console):
        logging.getLogger("somewhere.deep").info("no news")
        try:
            raise ValueError("boom")
        except ValueError:
            logging.getLogger("somewhere.deep").exception("it %s\n\x1b[2Jbadly", "went")
    assert console_output(console) == "! it went [2Jbadly\n"


def test_log_handler_is_removed_afterwards() -> None:
    console, before = plain_console(), list(logging.getLogger().handlers)
    with logs_as_notes(lambda: console):
        pass
    logging.getLogger("somewhere").warning("late")
    assert console_output(console) == ""
    assert logging.getLogger().handlers == before


def test_unwritable_note_is_ignored() -> None:
    tried: list[bool] = []

    def gone() -> None:
        tried.append(True)
        raise BrokenPipeError

    with logs_as_notes(gone):
        logging.getLogger("somewhere").warning("unheard")
    assert tried == [True]
