"""Without a terminal no command waits for a person: it decides, or says what to pass."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.cli.command_process import isolated_directory, start_command
from tests.support.cli.command_tree import CommandPath, every_command
from tests.support.cli.in_process_command import approval_graph, invoke, invoke_json

LISTENING = {"serve", "worker"}
COMMANDS = [each for each in every_command() if " ".join(each.words) not in LISTENING]


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_PROVIDER", "openai")
    (tmp_path / "graph.json").write_text(json.dumps(approval_graph()))
    (tmp_path / "planwave.toml").write_text('provider = "nobody"\n')


@pytest.mark.parametrize("path", COMMANDS, ids=lambda each: " ".join(each.words) or "root")
def test_a_command_without_a_terminal_ends(path: CommandPath) -> None:
    """Its input is at its end, and nobody has trusted the folder or answered anything."""
    done = invoke(*path.arguments(), stdin="")
    assert done.exit_code in (0, 1, 2, 3, 4), done.output
    assert "[y/N]" not in done.output


def test_a_question_is_left_open_and_its_answer_is_named() -> None:
    paused = invoke("exec", "graph.json", stdin="")
    assert paused.exit_code == 0
    assert "--decision" in paused.output
    refused = invoke("answer", "last", stdin="")
    assert refused.exit_code == 2
    assert "no terminal to ask on; pass --decision" in refused.stderr


def test_what_has_to_be_trusted_is_refused_with_the_option_that_decides() -> None:
    refused = invoke("trust", stdin="")
    assert (refused.exit_code, "planwave trust --yes" in refused.stderr) == (2, True)
    assert invoke("trust", "--yes", stdin="").exit_code == 0


def test_a_closed_input_is_no_terminal() -> None:
    """As under cron; the process has no standard input at all."""
    with start_command("exec", "graph.json", env={**os.environ, "EDITOR": "false"}) as process:
        _, errors = process.communicate()
    assert (process.returncode, "Traceback" in errors) == (0, False), errors
    assert invoke_json("ls")["executions"][0]["status"] == "paused"
