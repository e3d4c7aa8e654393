"""Every command that reads a plan or graph from a file reads YAML as well as JSON, and ``$schema`` in both."""

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
from planwave.storage.lock import DirectoryLock
from tests.support.cli.command_process import isolated_directory
from tests.support.server.running_server import running_server

TOKEN = "hush-hush-hush"
SCHEMA = "https://example.com/planwave.schema.json"
YAML = f"""\
$schema: {SCHEMA}
nodes:
- id: a
  type: text
  data:
    text: |
      Two
      lines
- {{id: b, type: text, data: {{text: "{{{{ input }}}}"}}}}
edges:
- {{source: a, target: b, data: {{channel: flow}}}}
"""
GRAPH = {"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}


@pytest.fixture(scope="module", params=["alone", "served"])
def storage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A storage directory that nobody holds, or a service that says where it is."""
    directory = tmp_path_factory.mktemp("storage")
    if request.param == "alone":
        yield directory
        return
    with running_server(directory=directory, token=TOKEN) as running:
        lock = DirectoryLock(directory)
        lock.write_owner({"pid": os.getpid(), "url": running.base_url, "token": TOKEN})
        yield directory
        lock.release()


@pytest.fixture(autouse=True)
def working_directory(storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(storage))
    (tmp_path / "graph.yaml").write_text(YAML, "utf-8")
    return tmp_path


def planwave(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), obj=cli_factories(), input=stdin)


def invoke_ok(*words: str, stdin: str | None = None) -> Any:
    done = planwave(*words, "--json", stdin=stdin)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_check_reads_yaml_from_a_file_and_from_stdin() -> None:
    for file, name in (("graph.yaml", "graph.yaml"), ("-", "stdin")):
        done = planwave("check", file, stdin=YAML)
        assert (done.exit_code, done.stdout) == (0, f"✓ {name} can run: 2 nodes, no errors\n")
    shown = invoke_ok("check", "graph.yaml")["graph"]
    assert shown["nodes"][0]["data"] == {"text": "Two\nlines\n"}
    assert set(shown) == {"nodes", "edges"}


def test_check_names_the_place_in_text_that_is_no_yaml() -> None:
    done = planwave("check", "-", stdin=YAML.replace('"{{ input }}"', "{{ input }}"))
    assert done.exit_code == 3
    assert "[unsupported-yaml]" in done.stderr
    assert "line 9, column" in done.stderr
    assert "needs quotes" in done.stderr


def test_exec_runs_a_yaml_file_under_its_name() -> None:
    document = invoke_ok("exec", "graph.yaml")
    assert document["title"] == "graph.yaml"
    assert document["status"] == "completed"
    assert "$schema" not in document["graph"]


def test_exec_names_the_file_that_is_no_yaml(working_directory: Path) -> None:
    (working_directory / "graph.yaml").write_text("nodes: [\n", "utf-8")
    done = planwave("exec", "graph.yaml")
    assert done.exit_code == 3
    assert "graph.yaml: not YAML" in done.stderr


def test_a_plan_in_yaml_keeps_its_title_and_goal() -> None:
    text = f"title: Two lines\nuser_prompt: Write\n{YAML}"
    saved = invoke_ok("flow", "save", "lines", "-", stdin=text)
    shown = invoke_ok("flow", "show", "lines")
    assert saved["name"] == shown["name"] == "lines"
    assert "$schema" not in shown["graph"]
    again = invoke_ok("flow", "save", "lines", "graph.yaml")
    assert again["revision"] == saved["revision"], "the same graph is no new revision"


def test_edit_takes_a_yaml_file() -> None:
    plan_id = invoke_ok("exec", "-", stdin=json.dumps(GRAPH))["plan_id"]
    changed = invoke_ok("edit", plan_id, "--file", "graph.yaml")
    assert [node["id"] for node in changed["nodes"]] == ["a", "b"]
    assert "$schema" not in changed
    assert "Nothing was changed." in planwave("edit", plan_id, "--file", "graph.yaml").stdout


def test_fork_reads_changes_in_yaml(working_directory: Path) -> None:
    first = invoke_ok("exec", "graph.yaml")["execution_id"]
    (working_directory / "changes.yaml").write_text("b:\n  data: {text: new}\n", "utf-8")
    forked = invoke_ok("fork", first, "--changes", "changes.yaml")
    assert forked["graph"]["nodes"][1]["data"] == {"text": "new"}
    (working_directory / "changes.yaml").write_text("b: [\n", "utf-8")
    refused = planwave("fork", first, "--changes", "changes.yaml")
    assert refused.exit_code == 2
    assert "--changes 'changes.yaml': not YAML" in refused.stderr
