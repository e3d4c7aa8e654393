"""``planwave export``: of files and of what is stored, alone, beside a service, and by a service that is named."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from planwave.cli.commands.export import Format
from planwave.interop.exporting.exporter import FORMATS
from planwave.storage.lock import DirectoryLock
from tests.support.cli.command_process import isolated_directory
from tests.support.server.running_server import running_server

TOKEN = "hush-hush-hush"
GRAPH: dict[str, Any] = {
    "title": "Two steps",
    "nodes": [
        {"id": "a", "type": "text", "data": {"text": "one"}},
        {"id": "b", "type": "text", "data": {"text": "{{ input }}"}},
    ],
    "edges": [{"source": "a", "target": "b", "data": {"channel": "flow"}}],
}
PICTURE = """\
---
title: "Two steps"
---
flowchart TD
  a("a")
  b("b")
  a --> b
"""


@pytest.fixture(scope="module", params=["alone", "served", "named"])
def where(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """A storage directory that nobody holds, one that a service holds, or the address of a service."""
    directory = tmp_path_factory.mktemp("storage")
    if request.param == "alone":
        yield {"PLANWAVE_STORAGE_DIR": str(directory)}
        return
    with running_server(directory=directory, token=TOKEN) as running:
        if request.param == "named":
            yield {"PLANWAVE_URL": running.base_url, "PLANWAVE_TOKEN": TOKEN}
            return
        lock = DirectoryLock(directory)
        lock.write_owner({"pid": os.getpid(), "url": running.base_url, "token": TOKEN})
        yield {"PLANWAVE_STORAGE_DIR": str(directory)}
        lock.release()


@pytest.fixture(autouse=True)
def working_directory(
    where: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    isolated_directory(tmp_path, monkeypatch)
    for name, value in where.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "graph.json").write_text(json.dumps(GRAPH), "utf-8")
    return tmp_path


def planwave(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), obj=cli_factories(), input=stdin)


def invoke_ok(*words: str, stdin: str | None = None) -> str:
    done = planwave(*words, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_file_and_stdin_are_exported() -> None:
    assert invoke_ok("export", "graph.json", "--to", "mermaid") == PICTURE
    text = invoke_ok("export", "-", "--to", "yaml", stdin=json.dumps(GRAPH))
    assert invoke_ok("export", "-", "--to", "mermaid", stdin=text) == PICTURE


def test_what_is_stored_is_found_by_id_part_name_and_last() -> None:
    execution = json.loads(invoke_ok("exec", "graph.json", "--json"))
    own_id, plan_id = execution["execution_id"], execution["plan_id"]
    coloured = f"{PICTURE}  classDef completed fill:#d9f2e1,stroke:#1c7c3c,color:#1b1f24\n  class a,b completed\n"
    for name in (own_id, own_id[-12:], "last"):
        assert invoke_ok("export", name, "--to", "mermaid") == coloured
    assert invoke_ok("export", plan_id, "--to", "mermaid") == PICTURE
    invoke_ok("flow", "save", "steps", "graph.json")
    assert 'title: "steps"' in invoke_ok("export", "steps", "--to", "mermaid")
    assert 'GraphBuilder(title="steps")' in invoke_ok("export", "steps", "--to", "python")


def test_it_is_written_to_a_file_and_shown_as_json(working_directory: Path) -> None:
    done = invoke_ok("export", "graph.json", "--to", "dot", "-o", "graph.dot")
    assert done == "✓ Wrote graph.dot\n"
    assert (working_directory / "graph.dot").read_text("utf-8").startswith("digraph {\n")
    shown = json.loads(invoke_ok("export", "graph.json", "--to", "mermaid", "--json"))
    assert shown == {"to": "mermaid", "text": PICTURE, "file": None}
    refused = planwave("export", "graph.json", "--to", "dot", "-o", "no/such/graph.dot")
    assert refused.exit_code == 2
    assert "cannot be written" in refused.stderr


def test_the_schema_needs_nothing_and_all_else_needs_something() -> None:
    schema = json.loads(invoke_ok("export", "--to", "json-schema"))
    assert schema["title"] == "Graph of planwave"
    refused = planwave("export", "--to", "yaml")
    assert refused.exit_code == 2
    assert "name what is exported" in refused.stderr
    assert planwave("export", "graph.json", "--to", "png").exit_code == 2


def test_a_file_and_a_flow_of_one_name_are_ambiguous(working_directory: Path) -> None:
    invoke_ok("flow", "save", "triage", "graph.json")
    (working_directory / "triage").write_text(json.dumps(GRAPH), "utf-8")
    refused = planwave("export", "triage", "--to", "mermaid")
    assert refused.exit_code == 2
    assert "'triage' is a file and a flow" in refused.stderr
    assert "./triage" in refused.stderr
    assert invoke_ok("export", "./triage", "--to", "mermaid") == PICTURE
    (working_directory / "alone").write_text(json.dumps(GRAPH), "utf-8")
    assert invoke_ok("export", "alone", "--to", "mermaid") == PICTURE


def test_what_is_no_graph_and_what_is_not_there_are_refused(working_directory: Path) -> None:
    (working_directory / "bad.yaml").write_text("nodes: [\n", "utf-8")
    refused = planwave("export", "bad.yaml", "--to", "mermaid")
    assert refused.exit_code == 3
    assert "not YAML" in refused.stderr
    for name in ("gone.json", "0000000000", "no flow"):
        assert planwave("export", name, "--to", "mermaid").exit_code in (1, 2)


def test_the_command_has_the_formats_of_the_exporter() -> None:
    assert tuple(each.value for each in Format) == FORMATS
