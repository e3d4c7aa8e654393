from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import (
    approval_graph,
    execute_graph,
    invoke,
    invoke_json,
    two_approvals_graph,
)
from tests.support.server.running_server import running_server


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)


def test_answers_are_held_until_resume() -> None:
    execution_id = execute_graph(approval_graph())["execution_id"]
    assert invoke_json("pause", "last") == {"execution_id": execution_id, "status": "paused"}
    again = invoke("pause", "last")
    assert (again.exit_code, f"planwave resume {execution_id}" in again.stdout) == (0, True)
    answered = invoke("answer", "last", "--decision", "approve")
    assert answered.exit_code == 0, answered.output
    assert "The execution is paused by request; resume it with: planwave resume" in answered.stdout
    held = invoke_json("show", "last")
    assert (held["status"], held["requests"]) == ("paused", [])
    assert invoke_json("resume", "last")["node_results"]["sent"] == "sent: Dear all"


def test_execution_waiting_for_an_answer_is_not_resumed() -> None:
    execute_graph(approval_graph())
    done = invoke("resume", "last")
    assert (done.exit_code, "it waits for an answer to r" in done.stderr) == (2, True)


def test_one_node_can_be_cancelled() -> None:
    execute_graph(two_approvals_graph())
    after = invoke_json("cancel", "last", "--node", "p")
    assert after["status"] == "paused"
    assert [node["status"] for node in after["nodes"]] == ["cancelled", "waiting"]
    gone = invoke("answer", "last", "r6", "--decision", "approve")
    assert (gone.exit_code, "its node was cancelled" in gone.stderr) == (2, True)
    assert invoke("cancel", "last", "--node", "nobody").exit_code == 2
    assert invoke_json("answer", "last", "--decision", "approve", code=1)["status"] == "failed"


def test_ended_execution_rejects_commands() -> None:
    execution_id = execute_graph(approval_graph())["execution_id"]
    assert invoke_json("cancel", "last") == {"execution_id": execution_id, "status": "cancelled"}
    assert "retry it to run its cancelled steps again" in invoke("resume", "last").stderr
    for command in ("cancel", "pause", "resume"):
        done = invoke(command, "last")
        assert (done.exit_code, "already cancelled" in done.stderr) == (2, True)


@contextmanager
def nobody_serves() -> Generator[None]:
    """Leave the storage directory to the command line."""
    yield


@contextmanager
def somebody_serves() -> Generator[None]:
    """Hold the storage directory as a service does."""
    storage = Path("storage")
    with running_server(directory=storage, store=SqliteStore.open(storage)) as running:
        running.service.publish_address(running.base_url, None)
        yield


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("holder", [nobody_serves, somebody_serves])
def test_unreadable_execution_can_be_cancelled(
    holder: Callable[[], AbstractContextManager[None]], by_id: bool
) -> None:
    execution_id = execute_graph(approval_graph())["execution_id"]
    with closing(sqlite3.connect("storage/planwave.db")) as database:
        database.execute("UPDATE batches SET events = replace(events, 'request_id', 'x')")
        database.commit()
    name = execution_id if by_id else "last"
    with holder():
        shown = invoke("show", name)
        assert (shown.exit_code, shown.stdout) == (2, ""), shown.output
        assert "must be cancelled first" in shown.stderr
        assert f"what is stored of execution {execution_id} cannot be read: " in shown.stderr
        assert invoke_json("cancel", name) == {"execution_id": execution_id, "status": "cancelled"}
        assert [each["status"] for each in invoke_json("ls")["executions"]] == ["cancelled"]


def test_plan_rejects_execution_commands() -> None:
    plan_id = execute_graph(approval_graph())["plan_id"]
    for command in ("cancel", "pause", "resume", "answer", "retry", "fork"):
        done = invoke(command, plan_id)
        assert (done.exit_code, "is a plan" in done.stderr) == (2, True)
