"""A file of another program is named as one, with the command that converts it, wherever a graph is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner, Result

import planwave
from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from tests.support.cli.command_process import isolated_directory
from tests.support.interop.imports import OWN
from tests.support.server.in_process_client import in_process_client
from tests.support.service.dependencies import dependencies

GRAPH: Final = {"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}
FILES: Final = {
    "an agiraph plan": "agiraph/plan_with_contracts.json",
    "an AgentFlow workflow": "agentflow/posted_body.json",
    "a Covalt graph": "covalt/desk.json",
    "a magic_agents flow": "magic_agents/current_loop_and_route.json",
    "a Dify app": "dify/reflect.yml",
    "an n8n workflow": "n8n/loop_items.json",
    "a Mermaid flowchart": "mermaid/research.mmd",
}
COMMANDS: Final[dict[str, Callable[[str, str], list[str]]]] = {
    "check": lambda file, _: ["check", file],
    "exec": lambda file, _: ["exec", file],
    "flow save": lambda file, _: ["flow", "save", "theirs", file],
    "edit": lambda file, plan: ["edit", plan, "--file", file],
    "edit --draft": lambda file, plan: ["edit", plan, "--file", file, "--draft"],
}


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), obj=cli_factories(), input=stdin)


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_names_the_program_and_the_way_in(command: str) -> None:
    stored = json.loads(run("exec", "-", "--json", stdin=json.dumps(GRAPH)).stdout)
    for noun, name in FILES.items():
        done = run(*COMMANDS[command](str(OWN / name), stored["plan_id"]))
        assert done.exit_code == 3, (name, done.output)
        assert f"this is {noun}, not a graph of planwave" in done.output.replace("\n", " ")
        assert "planwave import FILE" in done.output
        assert "unknown-field" not in done.output
    shown = json.loads(run("flow", "ls", "--json").stdout)
    assert shown["flows"] == []


@pytest.mark.parametrize("name", [each for each in FILES.values() if each.endswith(".json")])
async def test_each_route_names_the_program(name: str) -> None:
    document: Any = json.loads((OWN / name).read_text("utf-8"))
    async with in_process_client(dependencies()) as calls:
        report = await calls.post_json("/api/check", {"graph": document})
        assert [each["code"] for each in report["diagnostics"]] == ["foreign-format"]
        for path, body in (
            ("/api/flows", {"name": "theirs", "graph": document}),
            ("/api/execute", {"graph": document}),
        ):
            answer = await calls.post(path, json=body)
            assert answer.status_code == 422
            assert answer.status_code == 422
            assert [each["code"] for each in answer.json()["issues"]] == ["foreign-format"]


@pytest.mark.parametrize("name", FILES.values())
def test_the_library_names_the_program(name: str) -> None:
    with pytest.raises(planwave.GraphInvalid, match="not a graph of planwave"):
        planwave.build((OWN / name).read_bytes())
