"""A real service over a database of PostgreSQL: it is killed, cut off, and has one driver."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

from planwave.events import Event
from planwave.storage.postgres.clock import ServerClock
from planwave.storage.postgres.store import PostgresStore
from tests.support.cli.command_process import isolated_directory, start_command
from tests.support.cli.in_process_command import invoke
from tests.support.scale.relay import Relay
from tests.support.storage.postgres_server import PostgresServer
from tests.unit.storage.postgres.test_leader_lock import end_leader, rival

_T = TypeVar("_T")

GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "first", "type": "text", "data": {"text": "one"}},
        {"id": "ask", "type": "approval", "data": {"prompt": "Go on?"}},
        {"id": "last", "type": "end"},
    ],
    "edges": [
        {"source": "first", "target": "ask", "data": {"channel": "flow"}},
        {"source": "ask", "target": "last", "sourceHandle": "approve", "data": {"channel": "flow"}},
    ],
}


@pytest.fixture(autouse=True)
def working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", database_url)
    Path("graph.json").write_text(json.dumps(GRAPH), "utf-8")


@contextmanager
def serving() -> Generator[tuple[subprocess.Popen[str], httpx2.Client]]:
    """Run a service; kill it at the end of the block."""
    process = start_command("serve", "--port", "0", "--json")
    try:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with httpx2.Client(base_url=url, timeout=45) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def status(client: httpx2.Client, execution_id: str) -> str:
    answer = client.get(f"/api/executions/{execution_id}")
    return answer.json()["status"] if answer.is_success else str(answer.status_code)


def requests_of(client: httpx2.Client) -> list[dict[str, Any]]:
    answer = client.get("/api/requests")
    assert answer.is_success, answer.text
    return answer.json()["requests"]


def waits(condition: Callable[[], _T]) -> _T:
    """Ask again and again, for at most a minute, until the answer is not falsy; return it."""
    until = time.monotonic() + 60
    while not (answer := condition()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return answer


async def stored_events(url: str, execution_id: str) -> list[Event]:
    async with PostgresStore.open(url, read_only=True) as store:
        return await store.events(execution_id)


def cut_off(postgres: PostgresServer, database_url: str) -> None:
    """End all connections of a database."""
    name = database_url.rpartition("/")[2]
    postgres.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608
    )


def test_an_execution_goes_on_after_its_service_was_killed_and_after_the_database_was_away(
    postgres: PostgresServer, database_url: str
) -> None:
    with serving() as (_, client):
        own = client.post("/api/execute", json={"graph": GRAPH, "start": True}).json()[
            "execution_id"
        ]
        waits(lambda: requests_of(client))
    listed = invoke("ls", "--json")
    assert [each["execution_id"] for each in json.loads(listed.stdout)["executions"]] == [own]
    with serving() as (_, client):
        (request,) = waits(lambda: requests_of(client))
        cut_off(postgres, database_url)
        answer = f"/api/executions/{own}/requests/{request['request_id']}"
        waits(lambda: client.post(answer, json={"decision": "approve"}).is_success)
        waits(lambda: status(client, own) == "completed")
        cut_off(postgres, database_url)
        waits(lambda: status(client, own) == "completed")
        document = client.get(f"/api/executions/{own}/document").json()
    events = asyncio.run(stored_events(database_url, own))
    assert document["last_seq"] == len(events)
    assert [each.seq for each in events] == list(range(1, len(events) + 1))
    begun = [each.path for each in events if each.type == "node.started"]
    assert sorted(map(str, begun)) == ["ask", "first", "last"]
    assert not list(Path("storage").glob("*.json")), "no document is written"
    assert "completed" in invoke("show", own).output


def test_a_service_ends_while_its_database_is_frozen(
    postgres: PostgresServer, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Relay(postgres.port) as relay:
        url = database_url.replace(f":{postgres.port}/", f":{relay.port}/")
        monkeypatch.setenv("PLANWAVE_DATABASE_URL", url)
        monkeypatch.setenv("PLANWAVE_DRAIN_S", "1")
        with serving() as (process, client):
            body = {"graph": GRAPH, "start": True}
            client.post("/api/execute", json=body).raise_for_status()
            (request,) = waits(lambda: requests_of(client))
            own = request["execution_id"]
            relay.cut()
            answer = f"/api/executions/{own}/requests/{request['request_id']}"
            with pytest.raises(httpx2.TimeoutException):
                client.post(answer, json={"decision": "approve"}, timeout=1)
            process.terminate()
            process.wait(30)
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", database_url)
    with serving() as (_, client):
        waits(lambda: requests_of(client) or status(client, own) == "completed")
        if requests_of(client):
            client.post(answer, json={"decision": "approve"}).raise_for_status()
        waits(lambda: status(client, own) == "completed")


def test_one_process_drives_the_executions_of_a_database() -> None:
    with serving() as (_, client):
        elsewhere = invoke("--storage", "elsewhere", "exec", "graph.json")
        assert elsewhere.exit_code == 1
        assert "another process drives the executions of this database" in elsewhere.output
        assert "--url" in elsewhere.output
        assert client.get("/api/executions").json()["executions"] == []
    backup = invoke("backup", "all.tar")
    assert backup.exit_code == 2
    assert "pg_dump" in backup.output


def test_a_service_ends_where_another_process_drives_its_executions(
    postgres: PostgresServer, database_url: str
) -> None:
    with serving() as (process, _), rival(database_url):
        end_leader(postgres)
        assert process.wait(20) == 70
        assert process.stderr is not None
        assert "another process drives the executions of this database" in process.stderr.read()


def test_a_database_that_cannot_be_used_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", "postgresql://me:hush@127.0.0.1:9/db")
    failed = invoke("exec", "graph.json")
    assert failed.exit_code == 1
    assert "the database 'db' on 127.0.0.1 cannot be used" in failed.output
    assert "hush" not in failed.output
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", "mysql://me:hush@127.0.0.1/db")
    failed = invoke("exec", "graph.json")
    assert "write postgresql://user:password@host:port/database" in failed.output
    assert "hush" not in failed.output


def test_a_directory_is_copied_into_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    url = os.environ["PLANWAVE_DATABASE_URL"]
    monkeypatch.delenv("PLANWAVE_DATABASE_URL")
    Path("text.json").write_text(json.dumps({"nodes": GRAPH["nodes"][:1], "edges": []}), "utf-8")
    stored = json.loads(invoke("exec", "text.json", "--json").stdout)
    unnamed = invoke("store", "copy", "storage")
    assert (unnamed.exit_code, "no database is named" in unnamed.output) == (2, True)
    wrong = invoke("store", "copy", "storage", "mysql://u:hush@h/db")
    assert (wrong.exit_code, "hush" in wrong.output) == (2, False)
    copied = invoke("store", "copy", "storage", url)
    assert "1 execution, 1 plan, 0 chats, 0 large results" in copied.output, copied.output
    monkeypatch.setenv("PLANWAVE_DATABASE_URL", url)
    shutil.rmtree("storage")
    shown = json.loads(invoke("show", stored["execution_id"], "--json").stdout)
    assert shown["status"] == "completed"
    again = invoke("store", "copy", "storage")
    assert again.exit_code != 0


def test_old_executions_are_deleted_by_the_clock_of_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The storage directory of the command has nothing to do with it, and need not be there."""
    Path("text.json").write_text(json.dumps({"nodes": GRAPH["nodes"][:1], "edges": []}), "utf-8")
    invoke("exec", "text.json")
    shutil.rmtree("storage")
    now = ServerClock.now
    monkeypatch.setattr(ServerClock, "now", lambda self: now(self) + timedelta(days=60))
    removed = [
        json.loads(invoke("prune", "--older-than", days, "--json").stdout)["removed"]
        for days in ("90", "30")
    ]
    assert removed == [0, 1]
