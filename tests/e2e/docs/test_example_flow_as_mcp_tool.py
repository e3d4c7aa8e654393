"""``examples/flow_as_mcp_tool`` does what its README says, with the one command of the README."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.support.cli.command_process import isolated_directory
from tests.support.cli.doc_page import blocks, commands
from tests.support.cli.in_process_command import invoke
from tests.support.llm.fake_llm_server import (
    ReplyStep,
    ToolCallReply,
    fake_llm_in_thread,
    tool_results_of,
    tools_of,
)
from tests.support.paths import ROOT

EXAMPLE = ROOT / "examples" / "flow_as_mcp_tool"


@pytest.mark.slow
def test_agent_calls_the_published_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copytree(EXAMPLE, tmp_path / "example")
    isolated_directory(tmp_path / "example", monkeypatch)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("PLANWAVE_LIMIT_MCP_CONNECT_S", "120")  # a busy machine

    def answer(body: dict[str, Any]) -> str | ReplyStep:
        if not (results := tool_results_of(body)):
            ((tool, schema),) = tools_of(body).items()
            assert (tool, list(schema["properties"])) == ("flows_shipping_price", ["input"])
            return ToolCallReply([(tool, {"input": 3})])
        return f"It costs {json.loads(next(iter(results.values())))['result']['price_eur']} euros."

    ((block),) = blocks((EXAMPLE / "README.md").read_text("utf-8"))
    ((command),) = commands(block["text"])
    with fake_llm_in_thread(reply_to=answer) as llm:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
        for line in command.line.split(" && "):
            done = invoke(*shlex.split(line)[1:])
            assert done.exit_code == 0, done.output
    assert "It costs 8.1 euros." in done.stdout
    shown = json.loads(invoke("--storage", "flows", "show", "last", "--json").stdout)
    assert (shown["status"], shown["inputs"]) == ("completed", {"weight": {"output": 3}})
