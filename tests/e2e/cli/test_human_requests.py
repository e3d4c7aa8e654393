"""Executions that wait for people, from outside: over HTTP, and by the command line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from planwave.client import AsyncClient, Client
from planwave.errors import Conflict
from planwave.storage.lock import DirectoryLock
from tests.support.cli.command_process import isolated_directory, read_until, start_command
from tests.support.cli.in_process_command import (
    approval_graph,
    invoke,
    invoke_json,
    two_approvals_graph,
)
from tests.support.cli.terminal import typed
from tests.support.processes.forked_process import run_forked
from tests.support.server.running_server import RunningServer, running_server
from tests.support.server.server_process import start_server

FORM = {
    "type": "object",
    "properties": {"copies": {"type": "integer", "title": "How many"}},
    "required": ["copies"],
}
PATIENCE_S = 90.0


async def wait_for_event(
    client: AsyncClient, execution_id: str, kind: str, path: str | None = None
) -> Mapping[str, Any]:
    """Wait for an event of an execution, and look at it then."""
    async with asyncio.timeout(PATIENCE_S), aclosing(client.events(execution_id)) as events:
        async for event in events:
            if (event.type, event.path) == (kind, path):
                return await client.execution(execution_id)
    raise AssertionError(f"{kind} never came")


def later(**data: Any) -> dict[str, Any]:
    """Give a graph that takes a person's message, and waits before it goes on."""
    return {
        "nodes": [
            {"id": "ask", "type": "user_input", "data": {"message": "hi"}},
            {"id": "later", "type": "wait", "data": data},
        ],
        "edges": [
            {
                "source": "ask",
                "sourceHandle": "message",
                "target": "later",
                "data": {"channel": "flow"},
            }
        ],
    }


@asynccontextmanager
async def paused_execution(
    server: RunningServer, graph: Mapping[str, Any]
) -> AsyncGenerator[tuple[AsyncClient, str]]:
    """Run a graph until it waits."""
    async with AsyncClient(server.base_url) as client:
        execution_id = (await client.execute(graph))["execution_id"]
        await wait_for_event(client, execution_id, "execution.paused")
        yield client, execution_id


async def request_id(client: AsyncClient, execution_id: str) -> str:
    (request,) = (await client.requests(execution_id))["requests"]
    return request["request_id"]


class TestOverHttp:
    @pytest.mark.parametrize(
        ("answer", "results"),
        [
            ({"decision": "approve"}, {"q": "Dear all", "sent": "sent: Dear all"}),
            ({"decision": "reject", "note": "no"}, {"q": "Dear all", "dropped": "dropped"}),
            ({"decision": "approve", "value": "Hi"}, {"q": "Hi", "sent": "sent: Hi"}),
        ],
    )
    async def test_decision_selects_branch_and_value(
        self, server: RunningServer, answer: Any, results: Any
    ) -> None:
        async with paused_execution(server, approval_graph()) as (client, execution_id):
            found = await client.execution(execution_id)
            assert (found["waitingForInput"], found["currentNodeId"]) == (True, "q")
            await client.answer(execution_id, await request_id(client, execution_id), answer)
            done = await client.wait(execution_id)
            assert done["node_results"] == {"draft": "Dear all", **results}
            with pytest.raises(Conflict) as again:
                await client.answer(execution_id, found["requests"][0]["request_id"], answer)
            assert again.value.code == "request-answered"

    def test_sync_client_controls_executions(self, server: RunningServer) -> None:
        with Client(server.base_url) as client:
            execution_id = client.execute(approval_graph())["execution_id"]
            requested = next(e for e in client.events(execution_id) if e.type == "node.waiting")
            client.pause(execution_id)
            (request,) = client.requests(execution_id)["requests"]
            client.resume(execution_id)
            client.answer(execution_id, request["request_id"], {"decision": "approve"})
            assert request["request_id"] == requested.data["request_id"]
            assert client.wait(execution_id)["status"] == "completed"
            forked = client.fork(execution_id, rerun=["q"], start=False)["execution_id"]
            client.cancel(forked, "never mind")
            assert client.execution(forked)["cause"] == "never mind"
            retried = client.retry(forked, start=False)["execution_id"]
            assert client.execution(retried)["status"] == "starting"


async def test_request_survives_server_restarts(tmp_path: Path) -> None:
    with start_server(tmp_path) as server:
        async with AsyncClient(server.url) as client:
            execution_id = (await client.execute(approval_graph()))["execution_id"]
            await wait_for_event(client, execution_id, "execution.paused")
            before = await client.requests(execution_id)
        server.signal(signal.SIGKILL)
        server.wait_for_exit()
    with start_server(tmp_path) as server:
        async with AsyncClient(server.url) as client:
            assert await client.requests(execution_id) == before
            requested = before["requests"][0]["request_id"]
            await client.answer(execution_id, requested, {"decision": "approve"})
        server.signal(signal.SIGKILL)
        server.wait_for_exit()
    with start_server(tmp_path) as server:  # the answer was durable, and it goes on by itself
        async with AsyncClient(server.url) as client:
            done = await client.wait(execution_id)
            assert done["node_results"]["sent"] == "sent: Dear all"
            starts = [e.path async for e in client.events(execution_id) if e.type == "node.started"]
            assert starts.count("draft") == 1


class TestCommand:
    @pytest.fixture(autouse=True)
    def empty(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        isolated_directory(tmp_path, monkeypatch)

    def test_request_is_answered_at_a_terminal(self) -> None:
        Path("g.json").write_text(json.dumps(approval_graph(form=FORM)), "utf-8")
        script = [
            ("Decision: ", "e\n"), ("New value (text): ", "Dear you\n"),
            ("Decision: ", "+\n"), ("Note: ", "fine\n"), ("Decision: ", "1\n"),
            ("How many (whole number): ", "2\n"),
        ]  # fmt: skip
        code, seen = typed(["exec", "g.json"], script)
        assert code == 0, seen
        assert "sent: Dear you" in seen
        assert invoke_json("show", "last")["nodes"][1]["answers"][0]["note"] == "fine"

    def test_ctrl_c_at_prompt_leaves_the_request_open(self) -> None:
        Path("g.json").write_text(json.dumps(approval_graph()), "utf-8")
        code, seen = typed(["exec", "g.json"], [("Decision: ", "\x03")])
        assert code == 130, seen
        assert "stays paused" in seen
        code, seen = typed(["answer", "last"], [("Decision: ", "reject\n")])
        assert code == 0, seen
        assert invoke_json("show", "last")["node_results"]["dropped"] == "dropped"

    def test_interrupted_execution_is_resumed_by_command(self, tmp_path: Path) -> None:
        graph = {
            "nodes": [
                {"id": "first", "type": "text", "data": {"text": "kept"}},
                {"id": "slow", "type": "sleeper"},
            ],
            "edges": [{"source": "first", "target": "slow", "data": {"channel": "flow"}}],
        }
        Path("g.json").write_text(json.dumps(graph), "utf-8")
        with start_command("exec", "g.json", program=SLEEPER) as process:
            read_until(process.stdout, "started    slow")
            process.kill()
        quick = {**os.environ, "QUICK": "1"}
        done = run_forked("-c", SLEEPER, "resume", "last", env=quick)
        assert done.returncode == 0, done.stderr
        assert "started    first" not in done.stdout
        assert "awake" in done.stdout


SLEEPER = """
import asyncio, os
from planwave.graph.protocols import ExecutionResult
from planwave.graph.model import DataValue
from planwave.nodes.registry import default_registry

class Sleeper:
    node_type = "sleeper"
    async def execute(self, data, inputs, context):
        if "QUICK" not in os.environ:
            await asyncio.Event().wait()
        return ExecutionResult({"output": DataValue("text", "awake")})

default_registry().register(Sleeper())
from planwave.main import main
main()
"""


@pytest.fixture(scope="module")
def holder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    storage = tmp_path_factory.mktemp("storage")
    with running_server(directory=storage) as running:
        lock = DirectoryLock(storage)
        lock.write_owner({"pid": os.getpid(), "url": running.base_url, "token": None})
        yield running
        lock.release()


class TestThroughAHolder:
    @pytest.fixture(autouse=True)
    def here(self, holder: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        isolated_directory(tmp_path, monkeypatch)
        monkeypatch.setenv("PLANWAVE_STORAGE_DIR", str(holder.service.directory))

    def test_remote_execution_is_answered(self) -> None:
        created = invoke_json("exec", "-", stdin=json.dumps(approval_graph()))
        assert (created["status"], len(created["requests"])) == ("paused", 1)
        execution_id, requested = created["execution_id"], created["requests"][0]["request_id"]
        wrong = invoke_json("answer", execution_id, "--decision", "no", code=2)
        assert [each["code"] for each in wrong["diagnostics"]] == ["unknown-decision"]
        taken = invoke_json("answer", execution_id, "--decision", "approve", "--value", '"Hi"')
        assert (taken["execution_id"], taken["request_id"]) == (execution_id, requested)
        assert invoke_json("watch", execution_id)["node_results"]["sent"] == "sent: Hi"
        again = invoke("answer", execution_id, requested, "--decision", "approve")
        assert (again.exit_code, "answered already" in again.stderr) == (2, True)

    def test_control_commands_go_to_the_server(self) -> None:
        execution_id = invoke_json("exec", "-", stdin=json.dumps(two_approvals_graph()))[
            "execution_id"
        ]
        assert invoke_json("pause", execution_id)["status"] == "paused"
        assert "Watch it with" in invoke("resume", execution_id).stdout
        invoke_json("cancel", execution_id, "--node", "p")
        forked = invoke_json("fork", execution_id, "--set", "q.prompt=Really?")
        assert forked["requests"][-1]["request"]["prompt"] == "Really?"
        invoke_json("cancel", execution_id)
        retried = invoke_json("retry", execution_id)
        assert (retried["status"], retried["parent"]["execution_id"]) == ("paused", execution_id)

    def test_watch_prints_answer_command(self, holder: RunningServer) -> None:
        execution_id = invoke_json("exec", "-", stdin=json.dumps(approval_graph()))["execution_id"]
        watching = start_command("watch", execution_id)
        try:
            seen = read_until(watching.stdout, "answer with: planwave answer")
            assert "for an answer to r9: Send it?" in seen
            invoke_json("answer", execution_id, "--decision", "reject")
            out, _ = watching.communicate(timeout=PATIENCE_S)
        finally:
            watching.kill()
            watching.wait()
        assert watching.returncode == 0
        assert "answered   q  Check: reject" in out
