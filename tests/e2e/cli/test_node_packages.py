"""Node types of installed packages: found by name in a process of their own, broken ones told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.slow

PACKAGE = '''
import planwave

@planwave.node("reversed-text")
async def backwards(input: str) -> str:
    """Turn the input around."""
    return input[::-1]
'''
USER = """
import json, sys, planwave
graph = {
    "nodes": [{"id": "s", "type": "start"}, {"id": "r", "type": "reversed-text"}],
    "edges": [{"source": "s", "target": "r", "data": {"channel": "flow"}}],
}
before = "planwave_backwards" in sys.modules
result = planwave.run_sync(graph, "abc")
print(json.dumps([before, result.status, result.text]))
"""


def install(site: Path, points: dict[str, str]) -> None:
    """Lay a package out as an installer does: a module, and its metadata beside it."""
    (site / "planwave_backwards.py").write_text(PACKAGE, "utf-8")
    info = site / "planwave_backwards-1.0.dist-info"
    info.mkdir()
    named = "\n".join(f"{name} = {value}" for name, value in points.items())
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: planwave-backwards\nVersion: 1.0\n", "utf-8"
    )
    (info / "entry_points.txt").write_text(f"[planwave.nodes]\n{named}\n", "utf-8")


def python(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=site,
        env={"PYTHONPATH": f"{ROOT}:{site}", "PATH": "", "HOME": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_installed_node_type_runs(tmp_path: Path) -> None:
    install(tmp_path, {"backwards": "planwave_backwards:backwards"})
    done = python(tmp_path, "-W", "error", "-c", USER)
    assert (done.stderr, done.returncode) == ("", 0)
    assert json.loads(done.stdout) == [False, "completed", "cba"]


def test_broken_package_is_reported_and_others_work(tmp_path: Path) -> None:
    points = {"backwards": "planwave_backwards:backwards", "gone": "no_such_module_at_all:x"}
    install(tmp_path, points)
    done = python(tmp_path, "-c", USER)
    assert json.loads(done.stdout) == [False, "completed", "cba"]
    assert "no_such_module_at_all" in done.stderr


def test_cli_knows_installed_node_types(tmp_path: Path) -> None:
    install(tmp_path, {"backwards": "planwave_backwards:backwards"})
    graph = {"nodes": [{"id": "r", "type": "reversed-text"}], "edges": []}
    (tmp_path / "g.json").write_text(json.dumps(graph), "utf-8")
    command = "from planwave.main import main; main()"
    done = python(tmp_path, "-c", command, "check", "g.json", "--json")
    codes = [one["code"] for one in json.loads(done.stdout)["diagnostics"]]
    assert codes == ["missing-required-input"]
