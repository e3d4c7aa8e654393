"""``embedded_model = "never"``: without a key a clear error before anything is paid or begun."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import planwave
from planwave.cli.errors import ExitCode
from planwave.errors import UnavailableProvider
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json

GRAPH = {
    "nodes": [
        {"id": "a", "type": "text", "data": {"text": "one"}},
        {"id": "b", "type": "agent", "description": "Do it."},
    ],
    "edges": [{"source": "a", "target": "b", "data": {"channel": "flow"}}],
}
WHY = "the setting embedded_model is never"


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_EMBEDDED_MODEL", "never")
    Path("g.json").write_text(json.dumps(GRAPH), "utf-8")


@pytest.mark.parametrize("command", [("exec", "g.json"), ("run", "Do it"), ("plan", "Do it")])
def test_a_command_is_refused_before_anything_is_stored(command: tuple[str, ...]) -> None:
    done = invoke(*command)
    assert done.exit_code == ExitCode.NO_PROVIDER, done.output
    assert WHY in " ".join(done.output.split())
    assert "downloading" not in done.output
    assert invoke_json("ls") == {"executions": [], "plans": []}


async def test_a_run_of_the_library_is_refused_before_its_first_step() -> None:
    types: list[str] = []

    async def watch() -> None:
        async for event in planwave.run(GRAPH):
            types.append(event.type)

    with pytest.raises(UnavailableProvider, match=WHY):
        await watch()
    assert "node.started" not in types
