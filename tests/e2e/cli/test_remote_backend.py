"""While a service holds the storage directory, commands go through it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from planwave.storage.lock import DirectoryLock
from tests.support.cli.command_process import isolated_directory, read_until, start_command
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.running_server import RunningServer, running_server

GRAPH = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")]).to_document()
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
def working_directory(
    server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(server.service.directory))


def held(server: RunningServer) -> str:
    return asyncio.run(server.execute("held"))


def test_goal_is_planned_and_run_by_the_server(server: RunningServer) -> None:
    done = invoke("run", "texts")
    assert done.exit_code == 0, done.output
    assert f"planning with the service at {server.base_url}" in done.stdout
    assert "title: " in done.stdout
    assert "completed  b" in done.stdout
    assert "Stored in " in done.stdout
    assert server.planner.goals[-1] == "texts"


def test_plan_is_stored_listed_and_shown_by_the_server() -> None:
    created = invoke_json("plan", "texts")
    plans = invoke_json("ls")["plans"]
    assert (created["plan_id"], 2) in {(each["plan_id"], each["nodes"]) for each in plans}
    assert invoke_json("show", created["plan_id"])["status"] == "draft"
    again = invoke_json("exec", "-", stdin=json.dumps(created))
    assert again["plan_id"] == created["plan_id"]
    assert invoke_json("show", created["plan_id"])["status"] == "completed"


def test_server_errors_are_reported_like_local_ones() -> None:
    faulty = {**GRAPH, "edges": [{"source": "a", "target": "x", "data": {"channel": "flow"}}]}
    done = invoke("exec", "-", "--json", stdin=json.dumps(faulty))
    assert done.exit_code == 3
    assert [each["code"] for each in json.loads(done.stdout)["diagnostics"]] == ["dangling-edge"]
    assert "stdin: " in done.stderr
    assert invoke("exec", "-", stdin="{").exit_code == 3
    assert invoke("exec", "-", stdin="[]").exit_code == 3
    unknown = invoke("exec", "-", "--input", '{"zz": {"output": 1}}', stdin=json.dumps(GRAPH))
    assert (unknown.exit_code, "zz" in unknown.stderr) == (2, True)
    chosen = invoke("exec", "-", "--provider", "openai", stdin=json.dumps(GRAPH))
    assert (chosen.exit_code, "with its own default" in chosen.stderr) == (2, True)
    assert invoke("show", "no-such-id").exit_code == 2


def test_server_gives_forecasts_and_hints_like_a_local_run() -> None:
    source = json.dumps(GRAPH)
    forecast = ["Forecast  2 steps in 2 waves · 0 model calls · free", "Longest   a → b"]
    Path("graph.json").write_text(source)
    assert invoke("flow", "save", "texts", "graph.json").exit_code == 0
    for command in (["exec", "graph.json"], ["flow", "run", "texts"]):
        shown = invoke(*command).stdout.splitlines()
        assert [line for line in shown if line.startswith(("Forecast", "Longest"))] == forecast
    refused = invoke("exec", "graph.json", "--max-parallel", "65")
    assert (refused.exit_code, refused.stderr.splitlines()[-1]) == (
        2,
        "  → ask for less, or raise the limit parallel_nodes (PLANWAVE_LIMIT_PARALLEL_NODES)",
    )


def test_chosen_model_is_named_with_the_server(server: RunningServer) -> None:
    done = invoke("plan", "texts", "--model", "m")
    assert f"planning with the service at {server.base_url}: m\n" in done.output


def test_lists_longer_than_a_page_are_complete(server: RunningServer) -> None:
    async def fill() -> list[str]:
        return [await server.execute() for _ in range(3)]

    created = asyncio.run(fill())
    newest = invoke_json("ls", "--limit", "3")["executions"]
    assert [each["execution_id"] for each in newest] == created[::-1]
    assert invoke_json("show", "last")["execution_id"] == created[-1]
    assert invoke_json("show", created[0][:-1])["execution_id"] == created[0]


def test_executions_are_compared_by_the_server(server: RunningServer) -> None:
    a, b = (asyncio.run(server.execute()) for _ in range(2))
    received = invoke_json("diff", a, b)
    assert (received["a"], received["b"], received["nodes"]) == (a, b, [])
    assert invoke("diff", a, "no-such-id").exit_code == 2


def test_watch_follows_to_the_end(server: RunningServer) -> None:
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
    assert "Stored in " in out


def test_explain_and_delete_go_through_the_server() -> None:
    execution_id = invoke_json("exec", "-", stdin=json.dumps(GRAPH))["execution_id"]
    assert invoke_json("explain", execution_id[-6:], "b")["code"] == "inputs-arrived"
    deleted = invoke_json("delete", execution_id[-6:])
    assert deleted == {"deleted": execution_id, "kind": "execution"}
    assert "no execution or plan" in invoke("show", execution_id).output


def test_interrupted_watch_leaves_the_execution_running(server: RunningServer) -> None:
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
    assert "the execution continues" in err
    assert "planwave watch last" in err
    assert invoke_json("show", execution_id)["status"] == "executing"
    server.release(execution_id)
    done = invoke_json("watch", execution_id)
    assert (done["status"], done["execution_id"]) == ("completed", execution_id)


def test_cancel_ends_the_execution_and_its_watch(server: RunningServer) -> None:
    execution_id = held(server)
    assert invoke_json("cancel", execution_id) == {
        "execution_id": execution_id,
        "status": "cancelled",
    }
    stopped = invoke_json("ls", "--status", "cancelled")["executions"]
    assert execution_id in {each["execution_id"] for each in stopped}
    watched = invoke("watch", execution_id)
    assert (watched.exit_code, "cancelled" in watched.stdout) == (1, True)
    again = invoke("cancel", execution_id)
    assert again.exit_code == 2
    assert "already cancelled" in again.stderr


def test_ctrl_c_cancels_a_remote_run(server: RunningServer) -> None:
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


def test_token_is_never_printed(server: RunningServer) -> None:
    for args in (["ls"], ["run", "texts"], ["show", "last"], ["cancel", "last"]):
        assert TOKEN not in invoke(*args).output


def test_a_timer_of_the_server_needs_no_other_server() -> None:
    node = {"id": "later", "type": "wait", "data": {"seconds": 7_200}}
    waiting = invoke("exec", "-", stdin=json.dumps({"nodes": [node], "edges": []}))
    assert "continue now with: planwave answer" in waiting.output
    assert "while a server runs" not in waiting.output
    execution_id = invoke_json("ls")["executions"][0]["execution_id"]
    assert "while a server runs" not in invoke("show", execution_id).output
    refused = invoke("resume", execution_id)
    assert refused.exit_code == 2
    message, hint = refused.stderr.splitlines()
    assert message.startswith("✗ it waits for a timer until ")
    assert re.fullmatch(rf"  → planwave answer {execution_id} r\d+ --decision continue", hint)
