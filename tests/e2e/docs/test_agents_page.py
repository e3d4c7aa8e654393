"""docs/agents.md is true: every block is run in its order, with a real MCP server."""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.doc_page import PageReader, blocks, commands
from tests.support.llm.fake_llm_server import (
    ReplyStep,
    ToolCallReply,
    prompt_of,
    tool_results_of,
    tools_of,
)
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "agents.md").read_text("utf-8")
TICKET = {"title": "Order A-17", "text": "The kettle did not arrive."}


def reply(body: dict[str, Any]) -> str | ReplyStep:
    """Answer as a model would that reads the task and the results so far."""
    prompt, results, offered = prompt_of(body), tool_results_of(body), tools_of(body)
    if "friendly sentence" in prompt:
        if not results:
            return ToolCallReply([("delegate_Clerk", {"task": "Where is order A-17?"})])
        return "Good news: your kettle is on its way."
    if not results:
        return ToolCallReply([("look_up_order", {"number": "A-17"})])
    if "open a ticket" not in prompt:
        return "Your kettle was sent nine days ago."
    create = next(name for name in offered if name.endswith("create_ticket"))
    if len(results) == 1:
        return ToolCallReply([(create, TICKET)])
    return "I have opened ticket 1 for your kettle."


@pytest.mark.slow
def test_every_block_runs_and_prints_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ``python`` is that of the virtual environment, as for a reader who has activated it.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    with ExitStack() as resources:
        reader = PageReader(tmp_path, monkeypatch, resources, reply=reply)
        shutil.copy(ROOT / "examples" / "mcp" / "ticket_server.py", tmp_path)
        for block in blocks(PAGE):
            if block["kind"] == "console":
                for command in commands(block["text"]):
                    reader.follow(command)
            elif block["file"]:
                (tmp_path / block["file"]).write_text(block["text"], "utf-8")
        tickets = (tmp_path / "tickets.json").read_text("utf-8")
    assert tickets.count(TICKET["text"]) == 1


def test_every_block_is_a_file_or_a_command_but_the_installation() -> None:
    assert len(blocks(PAGE)) * 2 == len(re.findall(r"^```", PAGE, re.M))
    installation, *others = blocks(PAGE)
    assert installation["kind"] == "sh"
    assert [b[0] for b in others if (b["kind"] == "console") != (b["file"] is None)] == []
