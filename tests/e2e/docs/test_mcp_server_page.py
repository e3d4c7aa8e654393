"""docs/mcp-server.md is true: its flow is published, and its program calls it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from planwave.api.routes.mcp import MCP_PATH
from planwave.interop.mcp_server.arguments import RunArguments
from planwave.interop.mcp_server.tool_list import ARGUMENTS
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.doc_page import blocks, commands
from tests.support.cli.in_process_command import invoke
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "mcp-server.md").read_text("utf-8")


def texts(kind: str) -> list[str]:
    return [block["text"] for block in blocks(PAGE) if block["kind"] == kind]


@pytest.mark.slow
def test_program_of_the_page_calls_the_flow_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.delenv("XDG_STATE_HOME")  # clients pass the home on, and little else
    monkeypatch.setenv("HOME", str(tmp_path))
    graph, program, _ = texts("json")
    Path("shipping.json").write_text(graph)
    (console,) = texts("console")
    for command in commands(console):
        done = invoke(*shlex.split(command.line)[1:])
        assert done.exit_code == 0, done.output
    assert json.loads(program)["mcpServers"]["planwave"]["args"][0] == "mcp"
    (python,) = texts("python")
    ran = subprocess.run([sys.executable, "-c", python], text=True, stdout=subprocess.PIPE)
    names, price = ran.stdout.splitlines()
    assert names == "['plan', 'run', 'status', 'result', 'answer', 'shipping_price']"
    assert price == "8.1"


def test_page_names_the_path_and_all_tools_with_their_arguments() -> None:
    address = json.loads(texts("json")[2])["mcpServers"]["planwave"]["url"]
    assert address.endswith(MCP_PATH)
    for name, model in ARGUMENTS.items():
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
        left_out = {"provider", "model"} if model is RunArguments else set()
        assert all(f"`{each}`" in row for each in model.model_fields.keys() - left_out), name
