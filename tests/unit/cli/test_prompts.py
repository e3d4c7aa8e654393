from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from planwave.cli.console import CommandConsole
from planwave.cli.inputs import parse_json
from planwave.cli.prompts import PromptResult, TerminalPrompter, ask, terminal_prompter
from planwave.errors import InputError
from planwave.events import OpenRequest
from tests.support.cli.fake_console import console_output, plain_console, terminal_console
from tests.support.cli.scripted_prompter import ScriptedPrompter

FORM = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "title": "How many", "description": "Copies to print."},
        "to": {"enum": ["all", 2]},
        "fast": {"type": "boolean", "default": False},
        "more": {"type": "array"},
        "name": {"type": "string"},
    },
    "required": ["n"],
}


def request(asked: Any = None, timeout_s: float | None = None, **fields: Any) -> OpenRequest:
    kind = {"kind": "approval", "prompt": "Send it?", "actions": ["approve", "reject"],
            "form": None, "value": "Dear all", "editable": True}  # fmt: skip
    return OpenRequest("r7", "q", {**kind, **fields} if asked is None else asked, "", timeout_s)


async def ask_person(lines: Sequence[str | None], of: OpenRequest, **more: Any) -> tuple[Any, str]:
    """Give what comes of a person who types these lines, and all they saw."""
    console = plain_console()
    person = ScriptedPrompter(lines, console, **more)
    given = await ask(console, person, of, "Check")
    assert person.is_exhausted
    return given, console_output(console)


@pytest.mark.parametrize("said", ["approve", "1", "a", " APP "])
async def test_decision_is_matched_by_name_number_or_prefix(said: str) -> None:
    given, seen = await ask_person([said], request())
    assert given == PromptResult({"decision": "approve", "note": ""})
    assert "Check asks (r7)" in seen
    assert "Send it?" in seen
    assert "Dear all" in seen


async def test_invalid_decision_is_asked_again() -> None:
    lines = ["", "3", "x", "+", "no time", "r"]
    given, seen = await ask_person(lines, request())
    assert given == PromptResult({"decision": "reject", "note": "no time"})
    assert seen.count("decisions are approve, reject") == 2


async def test_ambiguous_prefix_is_asked_again() -> None:
    given, _ = await ask_person(["re", "redo"], request(actions=["reject", "redo"]))
    assert given.answer["decision"] == "redo"


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [("Dear all", "Dear you", "Dear you"), ({"a": 1}, '{"a": 2}', {"a": 2}), (1, '"b"', "b")],
)
async def test_value_is_edited_on_request(before: Any, typed: str, after: Any) -> None:
    given, _ = await ask_person(["e", typed, "1"], request(value=before))
    assert given == PromptResult({"decision": "approve", "note": "", "value": after})
    given, _ = await ask_person(["e", "1"], request(value=before), edits=lambda _: typed + "\n")
    assert given.answer["value"] == after


async def test_invalid_json_value_is_not_applied() -> None:
    given, seen = await ask_person(["e", "{", "1"], request(value=[1]))
    assert given.answer["value"] == [1]
    assert "the value: " in seen


async def test_edit_is_not_offered_for_fixed_value() -> None:
    given, seen = await ask_person(["e", "1"], request(editable=False))
    assert given == PromptResult({"decision": "approve", "note": ""})
    assert "edit" not in seen
    given, _ = await ask_person(["e"], request(actions=["e", "f"]))
    assert given.answer["decision"] == "e"


async def test_form_is_asked_field_by_field() -> None:
    lines = ["1", "many", "", "3", "2", "", "[1]", ""]
    given, seen = await ask_person(lines, request(form=FORM))
    assert given.answer["form"] == {"n": 3, "to": 2, "fast": False, "more": [1]}
    assert "Copies to print." in seen
    assert "How many (whole number): " in seen
    assert seen.count("this is not a valid value; expected: whole number") == 2
    assert "to (one of all, 2, Enter: leave out): " in seen
    assert "fast (y or n, Enter: false): " in seen


@pytest.mark.parametrize(("said", "value"), [("y", True), ("No", False), ("true", True)])
async def test_boolean_inputs_are_understood(said: str, value: bool) -> None:
    form = {"properties": {"fast": {"type": "boolean"}}}
    given, _ = await ask_person(["1", said], request(form=form))
    assert given.answer["form"] == {"fast": value}


async def test_form_without_properties_is_json() -> None:
    given, seen = await ask_person(["1", "{", "{}"], request(form={"type": "object"}))
    assert given.answer["form"] == {}
    assert "this is not JSON" in seen


async def test_invalid_answer_is_asked_again() -> None:
    form = {"properties": {"n": {"type": "integer", "minimum": 5}}}
    given, seen = await ask_person(["1", "3", "", "2", "7"], request(form=form))
    assert given == PromptResult({"decision": "reject", "note": "", "form": {"n": 7}})
    assert "form/n: " in seen


@pytest.mark.parametrize(("said", "answer"), [("yes, do", "yes, do"), ("[1]", [1]), ("null", None)])
async def test_custom_request_takes_json_or_text(said: str, answer: Any) -> None:
    given, seen = await ask_person([said], request({"question": "Which one?"}))
    assert given == PromptResult(answer)
    assert "Which one?" in seen


async def test_interrupted_node_can_be_given_a_result() -> None:
    actions = ["run_again", "give_result", "fail"]
    cut_off = {"kind": "interrupted", "message": "It was cut off.", "actions": actions}
    given, seen = await ask_person(["give", "sent"], request(cut_off))
    assert given == PromptResult({"decision": "give_result", "note": "", "value": "sent"})
    assert "It was cut off." in seen


@pytest.mark.parametrize("before", [[], ["+"], ["e"]])
async def test_prompt_can_be_left_at_any_point(before: list[str]) -> None:
    given, seen = await ask_person([*before, None], request())
    assert given is None
    assert "Ctrl-D leaves the question open" in seen


async def test_a_change_of_the_plan_is_shown_whole_with_the_forecast_of_the_rest() -> None:
    post = {"id": "post", "name": "Post it", "type": "fetch", "data": {"url": "https://a.example/"}}
    asked = {
        "kind": "plan-change",
        "prompt": "Change the plan of this run?",
        "actions": ["approve", "reject"],
        "answer": "Asks another source.",
        "difference": {
            "title": None,
            "nodes": [{"id": "post", "change": "added", "after": post}],
            "edges": [],
            "reordered": [],
        },
        "additions": [{"kind": "host", "name": "a.example", "node": "post"}],
        "forecast": {
            "waves": 2, "nodes": 3, "calls": 2, "tokens": {"low": 100, "high": 200},
            "cost_usd": {"low": 0.1, "high": 0.2}, "critical_path": ["post", "end"],
            "effects": [{"node": "post", "type": "fetch", "effect": "write"}],
        },
    }  # fmt: skip
    given, seen = await ask_person(["r"], request(asked))
    assert given == PromptResult({"decision": "reject", "note": ""})
    for shown in (
        "Change the plan of this run?",
        "Asks another source.",
        "+ node post  fetch",
        "https://a.example/",
        "! host a.example  in post",
        "The rest  3 steps in 2 waves",
        "2 model calls",
        "$0.10 to $0.20",
        "Changes   post (write)",
    ):
        assert shown in seen, seen


async def test_prompt_shows_remaining_time() -> None:
    _, seen = await ask_person([None], request(timeout_s=90, timeoutAction="reject"))
    assert "the step continues after 1 min 30 s, with reject" in seen
    _, seen = await ask_person([None], request(timeout_s=604_800, timeoutAction=None))
    assert "the step fails after 7 days." in seen


async def test_prompt_removes_control_characters() -> None:
    hostile = request(prompt="\x1b[2Jhi", actions=["ok\x1b[2J"], value="\x1b]0;x\x07")
    _, seen = await ask_person([None], hostile)
    assert "\x1b" not in seen
    assert "\x07" not in seen


def test_parse_json_accepts_only_strict_json() -> None:
    assert parse_json('{"a": [1]}', "--value") == {"a": [1]}
    for wrong in ("hello", "{", '{"a": 1, "a": 2}', "NaN"):
        with pytest.raises(InputError, match="--value: "):
            parse_json(wrong, "--value")


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


async def test_typed_lines_are_read(tty: tuple[int, int]) -> None:
    typed, read = tty
    console = terminal_console()
    keyboard = TerminalPrompter(console, read)
    first = asyncio.get_running_loop().create_task(keyboard.read_line("Name: "))
    await asyncio.sleep(0)
    assert "Name: " in console_output(console)
    os.write(typed, "Zoë\ntwo\n".encode())
    assert await first == "Zoë"
    assert await keyboard.read_line("") == "two"


async def test_ctrl_d_ends_input(tty: tuple[int, int]) -> None:
    typed, read = tty
    os.write(typed, b"\x04")
    assert await TerminalPrompter(terminal_console(), read).read_line("? ") is None


async def test_cancelled_read_removes_its_reader(
    tty: tuple[int, int],
) -> None:
    _, read = tty
    waiting = asyncio.get_running_loop().create_task(
        TerminalPrompter(terminal_console(), read).read_line("? ")
    )
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert not asyncio.get_running_loop().remove_reader(read)


async def test_typed_ahead_input_is_discarded(tty: tuple[int, int]) -> None:
    typed, read = tty
    keyboard = TerminalPrompter(terminal_console(), read)
    os.write(typed, b"one\ntwo\n")
    assert await keyboard.read_line("") == "one"
    os.write(typed, b"three\n")
    keyboard.discard_typed()
    os.write(typed, b"now\n")
    assert await keyboard.read_line("") == "now"


async def test_text_is_edited_in_the_configured_editor(
    tty: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard = TerminalPrompter(terminal_console(), tty[1])
    monkeypatch.delenv("VISUAL", raising=False)
    upper = "text = open(path).read()\nopen(path, 'w').write(path[-5:] + text.upper())"
    monkeypatch.setenv("EDITOR", editor(tmp_path, upper))
    assert keyboard.has_editor
    assert await keyboard.edit('[1, 2, "a"]', ".json") == '.json[1, 2, "A"]'


@pytest.mark.parametrize("code", ["sys.exit(1)", "import os; os.remove(path)"])
async def test_failing_editor_is_reported(
    tty: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    monkeypatch.setenv("VISUAL", editor(tmp_path, code))
    with pytest.raises(InputError):
        await TerminalPrompter(terminal_console(), tty[1]).edit("x", ".txt")


@pytest.mark.parametrize("command", ["", "/no/such/editor", "'unclosed"])
async def test_missing_editor_is_reported(
    tty: tuple[int, int], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)
    keyboard = TerminalPrompter(terminal_console(), tty[1])
    assert keyboard.has_editor is (command == "/no/such/editor")
    with pytest.raises(InputError):
        await keyboard.edit("x", ".txt")


async def test_editor_is_ended_when_editing_is_cancelled(
    tty: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    received = tmp_path / "pid"
    os.mkfifo(received)
    code = f"import os, time\nopen({str(received)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    monkeypatch.setenv("VISUAL", editor(tmp_path, code))
    editing = asyncio.get_running_loop().create_task(
        TerminalPrompter(terminal_console(), tty[1]).edit("x", ".txt")
    )
    pid = int(await asyncio.to_thread(received.read_text))
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
def test_no_prompter_without_terminal(
    monkeypatch: pytest.MonkeyPatch, stdin: io.StringIO | None
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    assert terminal_prompter(terminal_console()) is None


def test_prompter_on_a_terminal_only(tty: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    with os.fdopen(os.dup(tty[1])) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert terminal_prompter(terminal_console()) is not None
        assert terminal_prompter(plain_console()) is None
        assert terminal_prompter(CommandConsole(json=True, live=True)) is None


async def test_a_note_is_asked_for_on_request_only() -> None:
    given, seen = await ask_person(["approve"], request())
    assert given.answer == {"decision": "approve", "note": ""}
    assert "Note" not in seen
    given, _ = await ask_person(["+", "well done", "approve"], request())
    assert given.answer == {"decision": "approve", "note": "well done"}
