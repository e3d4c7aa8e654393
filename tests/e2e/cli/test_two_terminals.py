"""A command that runs something, and commands in another terminal that see and control it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.cli import context
from planwave.cli.backends.lock_owner import LockOwner, lock_owner
from planwave.storage.lock import LOCK_NAME, DirectoryLock
from planwave.storage.ownership import make_directory
from tests.support.cli.command_process import (
    PLANWAVE,
    isolated_directory,
    read_until,
    run_command,
    start_command,
)
from tests.support.cli.in_process_command import approval_graph, invoke, invoke_json
from tests.support.cli.terminal import Terminal, at_terminal
from tests.support.polling import until
from tests.support.processes.forked_process import ForkedProcess

NODES = """
import asyncio
import pathlib

import planwave


@planwave.node("gate")
async def gate(input: str = "") -> str:
    \"\"\"Wait until the file is there.\"\"\"
    while not pathlib.Path("open").exists():
        await asyncio.sleep(0.02)
    return "open"
"""
AT_ONCE = """
from planwave.cli.backends import shared_service
shared_service.SHARE_AFTER_S = 0.0
from planwave.main import main
main()
"""
"""The command, without the moment in which it is not shared yet."""
STORAGE = Path("storage")


def gated_graph() -> dict[str, Any]:
    """A node that waits until ``open_gate``, and one after it."""
    return {
        "nodes": [{"id": "gate", "type": "gate"}, {"id": "after", "type": "text", "data": {"text": "on"}}],
        "edges": [{"source": "gate", "target": "after", "data": {"channel": "flow"}}],
    }  # fmt: skip


def open_gate() -> None:
    Path("open").touch()


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_NODE_MODULES", "gates")
    Path("gates.py").write_text(NODES, "utf-8")
    Path("ask.json").write_text(json.dumps(approval_graph()), "utf-8")
    Path("gated.json").write_text(json.dumps(gated_graph()), "utf-8")


def address() -> LockOwner | None:
    """Give the owner of the storage directory once it has an address."""
    owner = lock_owner(STORAGE)
    return owner if owner is not None and owner.url is not None else None


def wait_until_reachable() -> None:
    asyncio.run(until(address))


@contextmanager
def command(*args: str, program: str = PLANWAVE) -> Generator[ForkedProcess]:
    """Start a command, which ends with the block at the latest."""
    with start_command(*args, program=program) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def asking() -> Generator[Terminal]:
    """Run a graph at a terminal until it asks, reachable from other terminals."""
    with at_terminal(["exec", "ask.json"], AT_ONCE) as terminal:
        terminal.read_until("Decision: ")
        wait_until_reachable()
        yield terminal


@contextmanager
def gated(*options: str) -> Generator[tuple[ForkedProcess, str]]:
    """Run a graph without a terminal until its node waits; give the id of the execution too."""
    with command("exec", "gated.json", *options, program=AT_ONCE) as process:
        read_until(process.stderr if "--json" in options else process.stdout, "started    gate")
        wait_until_reachable()
        yield process, invoke_json("ls")["executions"][0]["execution_id"]


def test_question_is_answered_in_another_terminal_while_the_first_one_asks() -> None:
    with asking() as terminal:
        answered = run_command("answer", "last", "--decision", "approve")
        assert (answered.returncode, answered.stderr) == (0, "")
        code, seen = terminal.end()
    assert code == 0, seen
    assert "! the question was answered elsewhere" in terminal_text(seen)
    assert "sent: Dear all" in seen
    assert lock_owner(STORAGE) is None


def test_question_left_in_the_first_terminal_is_answered_in_another_one() -> None:
    with asking() as terminal:
        terminal.type("\x04")
        code, seen = terminal.end()
    assert (code, "answer with: planwave answer" in seen) == (0, True)
    answered = run_command("answer", "last", "--decision", "reject", "--json")
    assert json.loads(answered.stdout)["node_results"]["dropped"] == "dropped"


def test_run_can_be_watched_and_cancelled_from_another_terminal() -> None:
    with gated() as (process, execution_id), command("watch", execution_id) as watching:
        read_until(watching.stdout, "started    gate")
        cancelled = run_command("cancel", execution_id)
        assert (cancelled.returncode, cancelled.stderr) == (0, "")
        out, err = watching.communicate()
        assert (watching.returncode, err) == (1, "")
        assert "cancelled · 0 of 2 steps completed" in out
        out, _ = process.communicate()
        assert (process.returncode, "cancelled · 0 of 2 steps" in out) == (1, True)


def test_subscriber_sees_the_end_of_a_run_that_ends_by_itself() -> None:
    with gated() as (process, execution_id), command("watch", execution_id) as watching:
        read_until(watching.stdout, "started    gate")
        open_gate()
        out, err = watching.communicate()
        assert (watching.returncode, err) == (0, "")
        assert "completed  after" in out
        assert "Stored in " in out
        process.communicate()
        assert process.returncode == 0


def test_run_pauses_for_another_terminal_and_resumes() -> None:
    with gated() as (process, execution_id):
        assert invoke_json("pause", execution_id)["execution_id"] == execution_id
        open_gate()
        out, _ = process.communicate()
        assert (process.returncode, "paused · 1 of 2 steps completed" in out) == (0, True)
    assert invoke_json("resume", execution_id)["status"] == "completed"


def test_ctrl_c_ends_a_watched_run_cleanly() -> None:
    with gated() as (process, execution_id), command("watch", execution_id) as watching:
        read_until(watching.stdout, "started    gate")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
        assert process.returncode == 130
        assert [line for line in err.splitlines() if not line.startswith("  →")] == [
            "✗ interrupted; completed results are stored"
        ]
        out, err = watching.communicate()
        assert (watching.returncode, err) == (1, "")
        assert "cancelled" in out


def test_subscriber_of_an_open_question_learns_that_nobody_runs_it() -> None:
    with asking() as terminal, command("watch", "last") as watching:
        read_until(watching.stdout, "answer with: ")
        terminal.type("\x03")
        code, _ = terminal.end()
        out, err = watching.communicate()
    assert (code, watching.returncode, err) == (130, 0, "")
    assert "answer with: planwave answer" in out.splitlines()[-1]


def test_subscriber_of_a_killed_command_is_told_how_to_go_on() -> None:
    with gated() as (process, execution_id), command("watch", execution_id) as watching:
        read_until(watching.stdout, "started    gate")
        process.kill()
        _, err = watching.communicate()
    assert watching.returncode == 5
    assert err == (
        "✗ the command that ran this execution, in another terminal, has ended\n"
        f"  → see it with: planwave show {execution_id}; continue it with: planwave resume {execution_id}\n"
    )
    open_gate()
    assert invoke_json("resume", execution_id)["status"] == "completed"


def test_second_run_goes_through_the_first_which_stays_for_it() -> None:
    with asking() as terminal, command("exec", "gated.json") as second:
        read_until(second.stdout, "started    gate")
        terminal.type("approve\n")
        terminal.read_until("1 execution of other terminals still run here")
        open_gate()
        out, err = second.communicate()
        assert (second.returncode, err, "completed  after" in out) == (0, "", True)
        assert terminal.end()[0] == 0
    assert [each["status"] for each in invoke_json("ls")["executions"]] == ["completed"] * 2


def test_signal_interrupts_runs_of_other_terminals_which_can_be_resumed() -> None:
    with asking() as terminal, command("exec", "gated.json") as second:
        read_until(second.stdout, "started    gate")
        terminal.type("\x03")
        assert terminal.end()[0] == 130
        _, err = second.communicate()
        assert second.returncode == 5
        assert "the command that ran this execution, in another terminal, has ended" in err
    open_gate()
    assert invoke_json("resume", "last")["node_results"]["after"] == "on"


def test_address_is_for_this_user_and_needs_the_token() -> None:
    with gated("--json") as (process, execution_id):
        owner = address()
        assert owner is not None
        assert (owner.pid, owner.is_service) == (process.pid, False)
        assert owner.url is not None
        assert owner.url.startswith("http://127.0.0.1:")
        assert (STORAGE / LOCK_NAME).stat().st_mode & 0o777 == 0o600
        with httpx2.Client(base_url=owner.url, trust_env=False) as client:
            path = f"/api/executions/{execution_id}"
            assert client.get(path).status_code == 401
            known = {"authorization": f"Bearer {owner.token}"}
            assert client.get(path, headers=known).json()["status"] == "executing"
            assert client.get(path, headers={**known, "host": "evil.example"}).status_code == 403
            foreign = {**known, "origin": "http://evil.example"}
            assert client.get(path, headers=foreign).status_code == 403
        open_gate()
        out, err = process.communicate()
    assert json.loads(out)["status"] == "completed"
    assert str(owner.token) not in out + err
    assert (STORAGE / LOCK_NAME).read_bytes() == b""


def test_modules_of_a_command_matter_only_where_it_brings_a_graph() -> None:
    with gated() as (_, execution_id):
        shown = invoke_json("--import", "gates", "show", execution_id)
        assert shown["status"] == "executing"
        refused = invoke("--import", "gates", "exec", "gated.json")
        assert refused.exit_code == 2
        assert "--import cannot add to them" in refused.stderr
        assert "wait until that command ends" in refused.stderr
        invoke_json("--import", "gates", "cancel", execution_id)


def test_command_waits_for_an_owner_that_has_no_address_yet() -> None:
    """The first command takes its moment of a second here, as it does for people."""
    with command("exec", "gated.json") as process:
        read_until(process.stdout, "started    gate")
        cancelled = run_command("cancel", "last")
        assert (cancelled.returncode, cancelled.stderr) == (0, "")
        process.communicate()
        assert process.returncode == 1


def test_owner_that_never_answers_is_an_error_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context, "LOCK_WAIT_S", 0.1)
    monkeypatch.setattr(context, "LOCK_NOTE_S", 0.0)
    make_directory(STORAGE)
    lock = DirectoryLock(STORAGE)
    try:
        done = invoke("exec", "ask.json")
    finally:
        lock.release()
    locked = f"'storage' is locked by pid {os.getpid()}: one process writes at a time"
    assert done.exit_code == 1
    assert done.stderr == (
        f"! {locked}; waiting for it\n✗ {locked}\n"
        "  → it takes no commands from other terminals: wait until it ends, or stop it\n"
    )


def terminal_text(seen: str) -> str:
    """Leave out the codes for colours."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
