"""A real service comes, holds the storage directory, and goes, also without saying goodbye."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planwave.bootstrap import cli_factories
from planwave.storage.lock import DirectoryLock
from tests.support.cli.command_process import isolated_directory, start_command
from tests.support.cli.in_process_command import invoke

GRAPH: dict[str, Any] = {
    "nodes": [{"id": "a", "type": "text", "data": {"text": "one"}}],
    "edges": [],
}


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    Path("graph.json").write_text(json.dumps(GRAPH), "utf-8")


def listed() -> list[str]:
    done = invoke("ls", "--json")
    assert done.exit_code == 0, done.output
    return [each["execution_id"] for each in json.loads(done.stdout)["executions"]]


def test_commands_use_the_server_until_it_is_killed() -> None:
    serving = start_command("serve", "--port", "0", "--json")
    try:
        assert serving.stdout is not None
        output = json.loads(serving.stdout.readline())
        done = invoke("exec", "graph.json", "--json")
        assert done.exit_code == 0, done.output
        first = json.loads(done.stdout)
        assert Path(first["document_path"]).is_file()
        assert listed() == [first["execution_id"]]
    finally:
        serving.kill()
        _, log = serving.communicate()
    assert "route=/api/execute status=202" in log
    stored = json.loads(Path("storage/planwave.lock").read_text("utf-8"))
    assert (stored["url"], stored["pid"]) == (output["url"], serving.pid)
    assert listed() == [first["execution_id"]]
    assert invoke("watch", "last").exit_code == 0
    assert invoke("exec", "graph.json").exit_code == 0
    assert len(listed()) == 2


@pytest.fixture
def unanswered(tmp_path: Path) -> Iterator[str]:
    """The address of a holder that is there and does not answer."""
    (tmp_path / "storage").mkdir()
    assert invoke("exec", "graph.json").exit_code == 0
    with socket.socket() as taken:  # and nobody else can have it meanwhile
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_unresponsive_owner_allows_reads_and_rejects_writes(
    unanswered: str, tmp_path: Path
) -> None:
    lock = DirectoryLock(tmp_path / "storage")
    try:
        lock.write_owner({"pid": os.getpid(), "url": unanswered, "token": None})
        assert len(listed()) == 1
        assert invoke("show", "last").exit_code == 0
        refused = invoke("exec", "graph.json", "--json")
        assert refused.exit_code == 1
        error = json.loads(refused.stdout)["error"]
        assert (error["code"], error["hint"]) == (
            "storage-locked",
            f"`planwave serve` holds it and does not answer at {unanswered}: "
            "read its log, or stop it",
        )
        lock.write_owner(
            {"pid": os.getpid(), "url": unanswered, "token": None, "is_service": False}
        )
        assert invoke("exec", "graph.json").output == (
            f"✗ 'storage' is locked by pid {os.getpid()}: one process writes at a time\n"
            f"  → that command does not answer at {unanswered}: wait until it ends, or stop it\n"
        )
    finally:
        lock.release()


def test_abandoned_execution_can_be_watched_and_cancelled() -> None:
    async def left_behind() -> str:
        composed = cli_factories()
        async with composed.service(composed.settings(None).settings) as service:
            plan = await service.plans.read(json.dumps(GRAPH))
            return (await service.executions.create(plan)).execution_id

    execution_id = asyncio.run(left_behind())
    watched = invoke("watch", execution_id)
    assert watched.exit_code == 1
    assert "no process runs this execution: it stays starting" in watched.stderr
    assert f"planwave cancel {execution_id}" in watched.stderr
    done = invoke("cancel", execution_id)
    assert (done.exit_code, f"Cancelled {execution_id}" in done.stdout) == (0, True)
    assert json.loads(invoke("watch", "last", "--json").stdout)["status"] == "cancelled"
