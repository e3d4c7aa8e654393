"""``planwave import``: the report, the files, the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.cli.app import app
from planwave.cli.commands.import_ import Kind
from planwave.foreign_formats import NOUNS
from tests.support.cli.fake_factories import fake_factories
from tests.support.interop.imports import OWN

PLAN = str(OWN / "agiraph" / "plan_with_contracts.json")
LOST: dict[str, Any] = {
    "title": "Lost",
    "nodes": [{"id": "a", "name": "Write", "description": "x", "dependencies": ["gone"]}],
}


def run(*args: str, stdin: str = "") -> Result:
    return CliRunner().invoke(app, ["import", *args], input=stdin, obj=fake_factories())


def test_the_options_kinds_are_the_formats() -> None:
    assert {kind.value for kind in Kind} == set(NOUNS)


def test_a_whole_import_says_what_came_over_and_how_to_run_it(tmp_path: Path) -> None:
    out, report = tmp_path / "plan.json", tmp_path / "report.json"
    done = run(PLAN, "-o", str(out), "--report", str(report))
    assert done.exit_code == 0, done.output
    assert "This is an agiraph plan: Compare databases" in done.stdout
    assert "4 steps: 4 as they were" in done.stdout
    assert "run it with scheduling waves" in done.stdout
    assert f"Run it with: planwave exec {out}" in done.stdout
    assert json.loads(out.read_text())["nodes"][0]["id"] == "node_0"
    assert json.loads(report.read_text())["kind"] == "agiraph"


def test_placeholders_are_listed_and_the_graph_is_written_all_the_same(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    done = run("-", "-o", str(out), stdin=json.dumps(LOST))
    assert done.exit_code == 3
    assert "To be replaced" in done.stdout
    assert "it needs the result of 'gone', which is not there" in done.stdout
    assert json.loads(out.read_text())["nodes"][0]["type"] == "placeholder"
    assert "replace the placeholders" in done.stderr


def test_json_has_everything() -> None:
    shown = json.loads(run(PLAN, "--json").stdout)
    assert set(shown) == {"report", "document", "diagnostics", "code", "saved"}
    assert shown["saved"] is None


def test_the_graph_on_stdout_is_nothing_but_the_graph() -> None:
    done = run(PLAN, "-o", "-")
    assert json.loads(done.stdout)["title"] == "Compare databases"


def test_strict_refuses_what_changed() -> None:
    assert run(PLAN, "--provider", "openai").exit_code == 0
    assert run(PLAN, "--provider", "openai", "--strict").exit_code == 3
    assert run(PLAN, "--strict").exit_code == 0


@pytest.mark.parametrize("text", ['{"hello": 1}', "a: [", "sequenceDiagram\n A->>B: x"])
def test_what_is_not_known_is_a_wrong_argument(text: str) -> None:
    done = run("-", stdin=text)
    assert done.exit_code == 2
    assert done.stderr.startswith("✗ ")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = run(PLAN, "-o", str(tmp_path / "no" / "plan.json"))
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr


def test_a_file_without_programs_says_so(tmp_path: Path) -> None:
    module = tmp_path / "steps.py"
    done = run(PLAN, "--write-code", str(module))
    assert "The file has no program" in done.stdout
    assert not module.exists()


def test_a_provider_that_is_not_set_up_is_named_with_the_ways_out() -> None:
    done = run(PLAN)
    assert "planwave doctor" in done.stderr
    shown = json.loads(run(PLAN, "--provider", "openai", "--model", "gpt-x", "--json").stdout)
    assert {node["data"]["model"] for node in shown["document"]["nodes"]} == {"gpt-x"}
    refused = run(PLAN, "--model", "x")
    assert (refused.exit_code, "name the provider" in refused.stderr) == (2, True)


def test_a_name_that_ends_in_yaml_gets_yaml(tmp_path: Path) -> None:
    out = tmp_path / "plan.yaml"
    assert run(PLAN, "-o", str(out)).exit_code == 0
    assert out.read_text().startswith("title: Compare databases\n") or "nodes:\n" in out.read_text()
    again = json.loads(run(str(out), "--json").stdout)
    assert again["report"]["kind"] == "planwave"
    assert again["document"] == json.loads(run(PLAN, "--json").stdout)["document"]
