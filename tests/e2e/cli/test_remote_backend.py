"""While a service holds the storage directory, commands go through it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from planwave.bootstrap import cli_factories
from planwave.cli.app import app
from planwave.storage.lock import DirectoryLock
from tests.support.cli.command_process import isolated_directory, read_until, start_command
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.running_server import RunningServer, running_server

GRAPH = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")]).to_document()
STARTED: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "echo", "type": "text", "data": {"text": "heard {{ input }}"}},
    ],
    "edges": [{"source": "s", "target": "echo", "data": {"channel": "flow"}}],
}
TOKEN = "hush-hush-hush"


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def server(storage: Path) -> Iterator[RunningServer]:
    """A service that holds a storage directory and says where it is."""
    with running_server(directory=storage, token=TOKEN) as running:
        lock = DirectoryLock(storage)
        lock.write_owner({"pid": os.getpid(), "url": running.base_url, "token": TOKEN})
        yield running
        lock.release()


@pytest.fixture(autouse=True)
def here(server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(server.service.directory))


def planwave(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(args), obj=cli_factories(), input=stdin)


def shown(*args: str, stdin: str | None = None) -> Any:
    done = planwave(*args, "--json", stdin=stdin)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def held(server: RunningServer) -> str:
    return asyncio.run(server.execute("held"))


def test_a_goal_is_planned_and_run_there_and_its_document_is_named(server: RunningServer) -> None:
    done = planwave("run", "texts")
    assert done.exit_code == 0, done.output
    assert f"planning with the service at {server.base_url}" in done.stdout
    assert "title: " in done.stdout
    assert "completed  b" in done.stdout
    assert "Kept in " in done.stdout
    assert server.planner.goals[-1] == "texts"


def test_a_plan_is_kept_there_and_listed_and_shown() -> None:
    made = shown("plan", "texts")
    plans = shown("ls")["plans"]
    assert (made["plan_id"], 2) in {(each["plan_id"], each["nodes"]) for each in plans}
    assert shown("show", made["plan_id"])["status"] == "draft"
    again = shown("exec", "-", stdin=json.dumps(made))
    assert again["plan_id"] == made["plan_id"]
    assert shown("show", made["plan_id"])["status"] == "completed"


def test_a_file_runs_there_with_its_inputs() -> None:
    for given in ("hello", "s=hello", '{"s": {"output": "hello"}}', '{"output": "hello"}'):
        done = shown("exec", "-", "--input", given, stdin=json.dumps(STARTED))
        assert done["node_results"]["echo"] == "heard hello", given


def test_what_it_refuses_is_told_as_without_it() -> None:
    faulty = {**GRAPH, "edges": [{"source": "a", "target": "x", "data": {"channel": "flow"}}]}
    done = planwave("exec", "-", "--json", stdin=json.dumps(faulty))
    assert done.exit_code == 3
    assert [each["code"] for each in json.loads(done.stdout)["diagnostics"]] == ["dangling-edge"]
    assert "stdin: " in done.stderr
    assert planwave("exec", "-", stdin="{").exit_code == 3
    assert planwave("exec", "-", stdin="[]").exit_code == 3
    unknown = planwave("exec", "-", "--input", '{"zz": {"output": 1}}', stdin=json.dumps(GRAPH))
    assert (unknown.exit_code, "zz" in unknown.stderr) == (2, True)
    chosen = planwave("exec", "-", "--provider", "openai", stdin=json.dumps(GRAPH))
    assert (chosen.exit_code, "with its own default" in chosen.stderr) == (2, True)
    assert planwave("show", "no-such-id").exit_code == 2


def test_lists_longer_than_a_page_are_whole(server: RunningServer) -> None:
    async def fill() -> list[str]:
        return [await server.execute() for _ in range(3)]

    made = asyncio.run(fill())
    newest = shown("ls", "--limit", "3")["executions"]
    assert [each["execution_id"] for each in newest] == made[::-1]
    assert shown("show", "last")["execution_id"] == made[-1]
    assert shown("show", made[0][:-1])["execution_id"] == made[0]


def test_two_executions_are_compared_there(server: RunningServer) -> None:
    a, b = (asyncio.run(server.execute()) for _ in range(2))
    told = shown("diff", a, b)
    assert (told["a"], told["b"], told["nodes"]) == (a, b, [])
    assert planwave("diff", a, "no-such-id").exit_code == 2


def test_watching_shows_a_run_to_its_end(server: RunningServer) -> None:
    execution_id = held(server)
    watching = start_command("watch", execution_id)
    try:
        seen = read_until(watching.stdout, "started    h")
        assert "running 2 steps in 2 waves" in seen
        server.release(execution_id)
        out, err = watching.communicate(timeout=120)
    finally:
        watching.kill()
        watching.wait()
    assert (watching.returncode, err) == (0, "")
    assert "completed  after" in out
    assert "Kept in " in out


def test_leaving_lets_it_go_on(server: RunningServer) -> None:
    execution_id = held(server)
    watching = start_command("watch", "last")
    try:
        read_until(watching.stdout, "started    h")
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=120)
    finally:
        watching.kill()
        watching.wait()
    assert watching.returncode == 130
    assert "goes on" in err
    assert "planwave watch last" in err
    assert shown("show", execution_id)["status"] == "executing"
    server.release(execution_id)
    done = shown("watch", execution_id)
    assert (done["status"], done["execution_id"]) == ("completed", execution_id)


def test_cancelling_stops_it_and_says_so_to_who_watches(server: RunningServer) -> None:
    execution_id = held(server)
    assert shown("cancel", execution_id) == {"execution_id": execution_id, "status": "cancelled"}
    stopped = shown("ls", "--status", "cancelled")["executions"]
    assert execution_id in {each["execution_id"] for each in stopped}
    watched = planwave("watch", execution_id)
    assert (watched.exit_code, "cancelled" in watched.stdout) == (1, True)
    again = planwave("cancel", execution_id)
    assert again.exit_code == 2
    assert "already cancelled" in again.stderr


def test_ctrl_c_stops_a_run_there_durably(server: RunningServer) -> None:
    running = start_command("run", "held", "--json")
    try:
        read_until(running.stderr, "started    h")
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=120)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 130
    assert json.loads(out)["status"] == "cancelled"


def test_a_plan_is_no_execution_to_watch_or_cancel() -> None:
    plan_id = shown("plan", "texts")["plan_id"]
    for command in ("watch", "cancel"):
        done = planwave(command, plan_id)
        assert (done.exit_code, "is a plan" in done.stderr) == (2, True)


def test_the_token_is_told_nobody(server: RunningServer) -> None:
    for args in (["ls"], ["run", "texts"], ["show", "last"], ["cancel", "last"]):
        assert TOKEN not in planwave(*args).output
