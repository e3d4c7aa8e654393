from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planwave.cli.screen import CommandConsole
from planwave.cli.terminal import TerminalPrompter, terminal_prompter
from planwave.errors import InputError
from tests.fakes.terminal import plain_console, terminal_console, console_output


@pytest.fixture
def tty() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: where a person types, and what a program reads."""
    typed, read = os.openpty()
    yield typed, read
    os.close(typed)
    os.close(read)


def editor(directory: Path, code: str) -> str:
    """An editor that changes its file by itself."""
    script = directory / "editor.py"
    script.write_text(f"import sys\npath = sys.argv[-1]\n{code}", "utf-8")
    return f"{sys.executable} {script}"


async def test_lines_are_read_as_they_are_typed(tty: tuple[int, int]) -> None:
    typed, read = tty
    screen = terminal_console()
    keyboard = TerminalPrompter(screen, read)
    first = asyncio.get_running_loop().create_task(keyboard.read_line("Name: "))
    await asyncio.sleep(0)
    assert "Name: " in console_output(screen)
    os.write(typed, "Zoë\ntwo\n".encode())
    assert await first == "Zoë"
    assert await keyboard.read_line("") == "two"


async def test_ctrl_d_ends_the_typing(tty: tuple[int, int]) -> None:
    typed, read = tty
    os.write(typed, b"\x04")
    assert await TerminalPrompter(terminal_console(), read).read_line("? ") is None


async def test_who_stops_waiting_for_a_line_leaves_nothing_on_the_loop(
    tty: tuple[int, int],
) -> None:
    _, read = tty
    waiting = asyncio.get_running_loop().create_task(TerminalPrompter(terminal_console(), read).read_line("? "))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not asyncio.get_running_loop().remove_reader(read)


async def test_what_was_typed_before_the_question_answers_nothing(tty: tuple[int, int]) -> None:
    typed, read = tty
    keyboard = TerminalPrompter(terminal_console(), read)
    os.write(typed, b"one\ntwo\n")
    assert await keyboard.read_line("") == "one"
    os.write(typed, b"three\n")
    keyboard.discard_typed()
    os.write(typed, b"now\n")
    assert await keyboard.read_line("") == "now"


async def test_a_text_is_edited_in_the_editor_of_the_person(
    tty: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard = TerminalPrompter(terminal_console(), tty[1])
    monkeypatch.delenv("VISUAL", raising=False)
    upper = "text = open(path).read()\nopen(path, 'w').write(path[-5:] + text.upper())"
    monkeypatch.setenv("EDITOR", editor(tmp_path, upper))
    assert keyboard.has_editor
    assert await keyboard.edit('[1, 2, "a"]', ".json") == '.json[1, 2, "A"]'


@pytest.mark.parametrize("code", ["sys.exit(1)", "import os; os.remove(path)"])
async def test_an_editor_that_fails_is_said_so(
    tty: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, code))
    with pytest.raises(InputError):
        await TerminalPrompter(terminal_console(), tty[1]).edit("x", ".txt")


@pytest.mark.parametrize("command", ["", "/no/such/editor", "'unclosed"])
async def test_an_editor_there_is_not_is_said_so(
    tty: tuple[int, int], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)
    keyboard = TerminalPrompter(terminal_console(), tty[1])
    assert keyboard.has_editor is (command == "/no/such/editor")
    with pytest.raises(InputError):
        await keyboard.edit("x", ".txt")


async def test_an_editor_does_not_outlive_its_question(
    tty: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "pid"
    os.mkfifo(told)
    code = f"import os, time\nopen({str(told)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    monkeypatch.setenv("VISUAL", editor(tmp_path, code))
    editing = asyncio.get_running_loop().create_task(
        TerminalPrompter(terminal_console(), tty[1]).edit("x", ".txt")
    )
    pid = int(await asyncio.to_thread(told.read_text))
    editing.cancel()
    await asyncio.wait([editing])
    for _ in range(3_000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the editor is still there")


@pytest.mark.parametrize("stdin", [None, io.StringIO("y\n")])
def test_nobody_is_asked_where_nobody_sits(
    monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    assert terminal_prompter(terminal_console()) is None


def test_a_person_is_asked_at_a_terminal_and_only_there(
    tty: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with os.fdopen(os.dup(tty[1])) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert terminal_prompter(terminal_console()) is not None
        assert terminal_prompter(plain_console()) is None
        assert terminal_prompter(CommandConsole(json=True, live=True)) is None
