from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from planwave.cli import follow_run
from planwave.events.unreadable import unreadable_error
from planwave.service.executions.execution_service import ExecutionService
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import (
    approval_graph,
    execute_graph,
    invoke,
    invoke_json,
    two_approvals_graph,
)
from tests.support.cli.scripted_prompter import ScriptedPrompter


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


def prompt_with(monkeypatch: pytest.MonkeyPatch, lines: Sequence[str | None], **more: Any) -> None:
    """Have somebody sit at the terminal and type."""

    def terminal_prompter(console: Any) -> ScriptedPrompter | None:
        return None if console.json else ScriptedPrompter(lines, console, **more)

    monkeypatch.setattr(follow_run, "terminal_prompter", terminal_prompter)


def run(graph: dict[str, Any]) -> Any:
    return invoke("exec", "-", stdin=json.dumps(graph))


def test_request_is_prompted_during_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt_with(monkeypatch, ["e", "Dear you", "approve", "fine"])
    done = run(approval_graph())
    assert done.exit_code == 0, done.output
    assert "Check asks (r9)" in done.stdout
    lines = [line.partition("] ")[2] for line in done.stdout.splitlines() if line[:1] == "["]
    kinds = [line.split()[0] for line in lines]
    assert kinds.count("waiting") == kinds.count("answered") == 1
    assert kinds.index("waiting") < kinds.index("answered") < len(kinds) - 1
    assert "sent: Dear you" in done.stdout
    assert "answer with" not in done.stdout


def test_requests_are_prompted_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt_with(monkeypatch, ["approve", "", "reject", ""])
    done = run(two_approvals_graph())
    assert done.exit_code == 0, done.output
    assert [line for line in done.stdout.splitlines() if " asks (" in line] == [
        "◷ p asks (r6)", "◷ q asks (r7)",
    ]  # fmt: skip
    assert invoke_json("show", "last")["status"] == "completed"


def test_skipped_request_prints_answer_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prompt_with(monkeypatch, [None, "approve", ""])
    done = run(two_approvals_graph())
    assert done.exit_code == 0, done.output
    document = invoke_json("show", "last")
    assert (document["status"], len(document["requests"])) == ("paused", 1)
    assert f"planwave answer {document['execution_id']} r6 --decision approve" in done.stdout


def test_ctrl_c_at_prompt_leaves_execution_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt_with(monkeypatch, [], on_exhausted=lambda: os.kill(os.getpid(), signal.SIGINT))
    done = run(approval_graph())
    assert done.exit_code == 130, done.output
    assert "the execution stays paused" in done.stderr
    document = invoke_json("show", "last")
    assert (document["status"], document["currentNodeId"]) == ("paused", "q")
    assert invoke_json("answer", "last", "--decision", "approve")["status"] == "completed"


@pytest.mark.slow
def test_expired_request_closes_its_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt_with(monkeypatch, [])
    done = run(approval_graph(timeoutS=3, timeoutAction="reject"))
    assert done.exit_code == 0, done.output
    assert "the question was closed meanwhile" in done.output
    document = invoke_json("show", "last")
    assert (document["status"], document["node_results"]["dropped"]) == ("completed", "dropped")


def test_answer_to_unreadable_execution_ends_command(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(_: ExecutionService, execution_id: str, *__: Any) -> None:
        raise unreadable_error(execution_id, "its large result is gone")

    monkeypatch.setattr(ExecutionService, "answer", refused)
    prompt_with(monkeypatch, ["approve", ""])
    done = run(approval_graph())
    assert (done.exit_code, "its large result is gone" in done.stderr) == (2, True)


def test_run_without_terminal_pauses_and_prints_answer_command() -> None:
    done = run(approval_graph())
    assert done.exit_code == 0, done.output
    document = invoke_json("show", "last")
    command = f"planwave answer {document['execution_id']} r9 --decision approve"
    assert "◷ q: waiting for an answer to r9: Send it?" in done.stdout
    assert command in done.stdout
    quiet = execute_graph(approval_graph())
    assert (quiet["status"], quiet["requests"][0]["request_id"]) == ("paused", "r9")


def test_terminal_shows_each_wave_once_around_a_prompt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from planwave.cli.context import CommandContext
    from tests.support.cli.fake_console import terminal_console, visible_lines

    console = terminal_console()
    monkeypatch.setattr(CommandContext, "console", lambda _: console)
    prompt_with(monkeypatch, ["approve", ""])
    assert run(approval_graph()).exit_code == 0
    shown = visible_lines(console)
    assert [line for line in shown if line.startswith("Wave") and "of" in line] == [
        "Wave 1 of 3", "Wave 2 of 3", "Wave 3 of 3",
    ]  # fmt: skip
    assert sum("✓ completed   Check" in line for line in shown) == 1
