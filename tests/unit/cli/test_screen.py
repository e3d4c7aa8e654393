import io
import json

import pytest
from rich.console import Console
from rich.text import Text

from planwave.cli.screen import Screen
from tests.fakes.terminal import plain_screen, terminal_screen, written


def test_a_pipe_gets_whole_lines_without_escape_codes() -> None:
    screen = plain_screen(width=20)
    screen.line(Text("a very long line that would not fit", style="bold red"))
    screen.markdown("# Title\n\n**bold**")
    assert written(screen) == "a very long line that would not fit\n# Title\n\n**bold**\n"


def test_a_terminal_gets_lines_cut_to_its_width() -> None:
    screen = terminal_screen(width=20)
    screen.line("a very long line that would not fit")
    (line,) = written(screen).splitlines()
    assert len(line) == 20
    assert line.endswith("…")


def test_a_terminal_gets_markdown_rendered() -> None:
    screen = terminal_screen()
    screen.markdown("**bold** and [a link](http://x.example)")
    assert "**" not in written(screen)
    assert "\x1b]8" not in written(screen)


def test_hostile_text_cannot_steer_the_terminal() -> None:
    for screen in (plain_screen(), terminal_screen()):
        screen.markdown("before \x1b[2Jafter")
        screen.text("\x1b]0;owned\x07")
        screen.line("[bold]not markup[/bold]")
        shown = written(screen)
        assert "\x1b[2J" not in shown
        assert "\x07" not in shown
        assert "[bold]not markup[/bold]" in shown


def test_a_terminal_without_unicode_gets_ascii_signs() -> None:
    out = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"), highlight=False)
    screen = Screen(out=out, live=False)
    assert screen.glyph("completed").isascii()
    assert plain_screen().glyph("completed") == "✓"


def test_json_goes_to_stdout_alone_and_all_else_to_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen = Screen(json=True)
    screen.line("progress")
    screen.error("wrong\nhere", "do this")
    screen.result({"a": "ü\ud800"})
    out, err = capsys.readouterr()
    assert json.loads(out) == {"a": "ü\ud800"}
    assert out.isascii()
    assert "progress" in err
    assert "wrong here" in err
    assert "do this" in err


def test_a_dumb_terminal_is_not_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    console = Console(file=Tty(), force_terminal=True)
    monkeypatch.setenv("TERM", "dumb")
    assert not Screen(out=console).live
    monkeypatch.setenv("TERM", "xterm")
    assert Screen(out=console).live


def test_forced_colours_in_a_pipe_do_not_make_it_redrawable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert not Screen(out=Console(file=io.StringIO())).live
