"""docs/triggers.md is true: its flow is saved, listened for and tried out, and the settings are read."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from planwave.graph.checking.checker import read_and_check
from planwave.nodes.registry import default_registry
from planwave.settings import Limits, Settings
from planwave.triggers.registry import LIBRARY
from tests.support.cli.command_process import isolated_directory
from tests.support.nodes.node_packages import install_entry_points, run_command
from tests.support.paths import ROOT
from tests.support.triggers.hook_sender import SECRET

PAGE = (ROOT / "docs" / "triggers.md").read_text("utf-8")
PACKAGE = ROOT / "examples" / "planwave_trigger_package"


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_url_of_the_page_is_notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    secret = '[secrets.partner]\nenv = "PARTNER"\nhosts = ["example.com"]\n'
    (tmp_path / "planwave.toml").write_text(block("toml") + secret)
    monkeypatch.setenv("PLANWAVE_CONFIG", "planwave.toml")
    (tmp_path / "intake.json").write_text(block("json"))
    monkeypatch.setenv("PARTNER", SECRET)
    found = re.search(r"^\$ planwave (notifications add .*)$", PAGE, re.MULTILINE)
    assert found is not None
    for command in (["flow", "save", "intake", "intake.json"], found[1].split()):
        done = CliRunner().invoke(app, [*command, "--json"], obj=cli_factories())
        assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    assert (made["flow"], made["events"]) == ("intake", ["failed", "waiting"])
    assert made["problem"] is None


def test_flow_of_the_page_is_listened_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    (tmp_path / "planwave.toml").write_text(block("toml"))
    monkeypatch.setenv("PLANWAVE_CONFIG", "planwave.toml")
    (tmp_path / "intake.json").write_text(block("json"))
    monkeypatch.setenv("ORDERS_WEBHOOK_SECRET", SECRET)
    commands = [line[2:].split()[1:] for line in block("console").splitlines()]
    assert commands.pop() == ["serve"]
    for command in commands:
        done = CliRunner().invoke(app, [*command, "--json"], obj=cli_factories())
        assert done.exit_code == 0, done.output
    (trigger,) = json.loads(done.stdout)["triggers"]
    assert (trigger["problem"], trigger["enabled"]) == (None, True)
    fire = ["triggers", "fire", trigger["trigger_id"], "--value", '{"order": "A-18"}', "--json"]
    started = CliRunner().invoke(app, fire, obj=cli_factories())
    shown = ["show", json.loads(started.stdout)["execution_id"], "--json"]
    document = json.loads(CliRunner().invoke(app, shown, obj=cli_factories()).stdout)
    assert document["node_results"]["shipping"] == "Ship A-18."


def test_schedules_of_the_page_can_be_saved() -> None:
    registry = default_registry()
    for line in block("python").splitlines():
        node = {"id": "at", "type": "schedule", "data": ast.literal_eval(line)}
        assert read_and_check({"nodes": [node], "edges": []}, registry)[1] == []


def test_page_names_every_kind_and_existing_settings() -> None:
    assert all(f"| `{each.node_type}` |" in PAGE for each in LIBRARY)
    known = {*Settings.model_fields, *Limits.model_fields}
    assert {"unsigned_webhooks", "webhook_wait_s", "webhook_bytes", "idempotency_hours"} <= known
    assert tomllib.loads(block("toml"))["secrets"]["orders"]["env"] in PAGE


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_example_package_works_where_it_is_installed(tmp_path: Path) -> None:
    project = tmp_path / "package"
    for path in PACKAGE.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            target = project / path.relative_to(PACKAGE)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    install_entry_points(project, tmp_path / "site")
    done = run_command(["pytest", "-q"], project)
    assert done.returncode == 0, done.stdout
    for command in (["flow", "save", "alarms", "flow.json"], ["triggers", "add", "alarms"]):
        said = run_command(["planwave", *command, "--json"], project, tmp_path / "site")
        assert said.returncode == 0, said.stderr
    trigger = json.loads(said.stdout)
    assert (trigger["kind"], trigger["problem"]) == ("line-socket", None)
    assert trigger["details"] == {"address": "127.0.0.1:7007"}
