"""The example package of node types, installed as a third party would: its tests, and its flow."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.nodes.node_packages import install_entry_points, run_command
from tests.support.paths import ROOT

PROJECT = ROOT / "examples" / "planwave_node_package"


pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the package, installed beside itself."""
    created = tmp_path / "package"
    shutil.copytree(PROJECT, created, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    install_entry_points(created, tmp_path / "site")
    return created


def said(project: Path, *words: str) -> Any:
    """Give what a ``planwave … --json`` answers where the package is installed."""
    done = run_command(["planwave", *words, "--json"], project, project.parent / "site")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_package_tests_pass(project: Path) -> None:
    done = run_command(["pytest", "-q"], project)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


@pytest.mark.slow
def test_package_flow_runs(project: Path) -> None:
    assert said(project, "check", "flow.json")["diagnostics"] == []
    waiting = said(project, "exec", "flow.json")
    assert waiting["status"] == "paused"
    (request,) = waiting["requests"]
    assert request["request"]["prompt"] == "Do you put your name under these?"
    form = json.dumps({"name": "Ada"})
    said(project, "answer", "last", "--decision", "sign", "--form", form)
    shown = said(project, "show", "last")
    assert shown["status"] == "completed"
    assert shown["node_results"]["published"].splitlines()[-1] == "Signed: Ada"


def test_package_flow_uses_every_type() -> None:
    flow = json.loads((PROJECT / "flow.json").read_text("utf-8"))
    readme = (PROJECT / "README.md").read_text("utf-8")
    types = {"glossary", "explain-terms", "sign-off"}
    assert types <= {node["type"] for node in flow["nodes"]}
    assert all(f"`{name}`" in readme for name in types)
