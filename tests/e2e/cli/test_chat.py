"""A chat at a real terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke
from tests.support.cli.terminal import at_terminal

FLOW = {"channel": "flow"}
SUPPORT = {
    "nodes": [
        {"id": "asked", "type": "chat_start"},
        {"id": "may", "type": "approval", "data": {"prompt": "May I answer?"}},
        {"id": "told", "type": "text", "data": {"text": "You said {{ nodes.asked.message }}."}},
    ],
    "edges": [
        {"source": "asked", "sourceHandle": "message", "target": "may", "data": FLOW},
        {"source": "may", "sourceHandle": "approve", "target": "told", "data": FLOW},
    ],
}


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    Path("support.json").write_text(json.dumps(SUPPORT), "utf-8")
    assert invoke("flow", "save", "Support", "support.json").exit_code == 0


def test_messages_follow_each_other_and_questions_are_answered_in_between() -> None:
    with at_terminal(["chat", "Support"]) as terminal:
        terminal.read_until("> ")
        for line, said in (
            ("Hello\n", "Hello"),
            ("Good night\n", "Good night"),
            ("/retry\n", "Good night"),
        ):
            terminal.type(line)
            terminal.read_until("Decision: ")
            terminal.type("approve\n")
            terminal.read_until(f"You said {said}.")
            terminal.read_until("> ")
        terminal.type("/quit\n")
        code, seen = terminal.end()
    assert code == 0, seen
    assert seen.count("May I answer?") == 3
