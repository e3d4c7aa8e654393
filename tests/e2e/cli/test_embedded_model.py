"""The main job for real: from a goal to a stored execution, by the embedded model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planwave.providers.local.models import LocalModelServers
from planwave.settings import Settings

GOAL = "Compare three ways to store time series data and recommend one"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_goal_is_planned_and_run_without_any_key(tmp_path: Path) -> None:
    available, reason, way = LocalModelServers(Settings()).availability()
    if not available:
        pytest.skip(f"{reason}; {way}")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    }
    done = subprocess.run(
        [Path(sys.executable).with_name("planwave"), "run", GOAL, "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=850,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["status"] == "completed"
    stored = json.loads(
        Path(tmp_path, "storage", f"{shown['execution_id']}.json").read_text("utf-8")
    )
    assert stored["user_prompt"] == GOAL
    assert {node["provider"] for node in stored["nodes"]} == {"local"}
    assert all(node["status"] == "completed" and node["result"] for node in stored["nodes"])
    assert max(node["wave"] for node in stored["nodes"]) >= 2, "steps follow one another"
    assert any(len(node["dependencies"]) > 1 for node in stored["nodes"]), "results come together"
    prompts = [node["prompt"]["prompt"] for node in stored["nodes"] if node["dependencies"]]
    assert all("From " in prompt for prompt in prompts), "results are passed on in words"
