"""``examples/support_chat`` does what its README says, with the one command of the README."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from planwave.cli.commands import chat
from planwave.cli.console import CommandConsole
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.doc_page import blocks, commands
from tests.support.cli.in_process_command import invoke
from tests.support.cli.scripted_prompter import ScriptedPrompter
from tests.support.llm.fake_llm_server import (
    ReplyStep,
    ToolCallReply,
    fake_llm_in_thread,
    tool_results_of,
)
from tests.support.paths import ROOT

TICKET = {"title": "Kettle leaks", "text": "Since yesterday."}
TYPED = ("My kettle leaks since yesterday.", "approve", "", "/quit")


class TypedLines(ScriptedPrompter):
    """Types what it is asked for, and nothing while a reply comes."""

    async def read_line(self, prompt: str) -> str | None:
        if not prompt:
            await asyncio.Event().wait()
        return await super().read_line(prompt)


def answer(body: dict[str, Any]) -> str | ReplyStep:
    match len(tool_results_of(body)):
        case 0:
            return ToolCallReply([("search_tickets", {"query": "kettle"})])
        case 1:
            return ToolCallReply([("create_ticket", TICKET)])
        case _:
            return "I have opened ticket T-1 for you."


@pytest.mark.slow
def test_ticket_is_created_once_a_person_approves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copytree(ROOT / "examples", tmp_path / "examples")
    place = tmp_path / "examples" / "support_chat"
    isolated_directory(place, monkeypatch)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("PLANWAVE_LIMIT_MCP_CONNECT_S", "120")  # a busy machine

    def prompter(console: CommandConsole) -> TypedLines:
        return TypedLines(TYPED, console)

    monkeypatch.setattr(chat, "terminal_prompter", prompter)
    ((block),) = blocks((place / "README.md").read_text("utf-8"))
    ((command),) = commands(block["text"])
    with fake_llm_in_thread(reply_to=answer) as llm:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        for line in command.line.split(" && "):
            done = invoke(*shlex.split(line)[1:])
            assert done.exit_code == 0, done.output
    assert "May the tool create_ticket be called" in done.output
    assert "I have opened ticket T-1 for you." in done.output
    tickets = json.loads((place / "tickets.json").read_text("utf-8"))["tickets"]
    assert [(each["title"], each["text"]) for each in tickets.values()] == [tuple(TICKET.values())]
