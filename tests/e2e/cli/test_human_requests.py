"""Executions that wait for people, from outside: over HTTP, and by the command line."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from planwave.client import AsyncClient, Client
from planwave.errors import Conflict, Gone, InputError, NotFound
from planwave.storage.lock import DirectoryLock
from tests.support.cli.command_process import isolated_directory, read_until, start_command
from tests.support.cli.in_process_command import (
    approval_graph,
    invoke,
    invoke_json,
    two_approvals_graph,
)
from tests.support.processes.forked_process import ForkedProcess, run_forked
from tests.support.server.running_server import RunningServer, running_server
from tests.support.server.server_process import start_server

FORM = {
    "type": "object",
    "properties": {"copies": {"type": "integer", "title": "How many"}},
    "required": ["copies"],
}
PATIENCE_S = 90.0


async def reached(
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
async def waiting(
    server: RunningServer, graph: Mapping[str, Any]
) -> AsyncGenerator[tuple[AsyncClient, str]]:
    """Run a graph until it waits."""
    async with AsyncClient(server.base_url) as client:
        execution_id = (await client.execute(graph))["execution_id"]
        await reached(client, execution_id, "execution.paused")
        yield client, execution_id


async def newest(client: AsyncClient) -> str | None:
    """Give the id of the execution that was made last."""
    found = (await client.executions(limit=1))["executions"]
    return found[0]["execution_id"] if found else None


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
    async def test_a_decision_says_which_way_and_with_what_it_goes_on(
        self, server: RunningServer, answer: Any, results: Any
    ) -> None:
        async with waiting(server, approval_graph()) as (client, execution_id):
            found = await client.execution(execution_id)
            assert (found["waitingForInput"], found["currentNodeId"]) == (True, "q")
            await client.answer(execution_id, await request_id(client, execution_id), answer)
            done = await client.wait(execution_id)
            assert done["node_results"] == {"draft": "Dear all", **results}
            with pytest.raises(Conflict) as again:
                await client.answer(execution_id, found["requests"][0]["request_id"], answer)
            assert again.value.code == "request-answered"

    async def test_a_form_has_to_fit_and_a_decision_to_be_one(self, server: RunningServer) -> None:
        async with waiting(server, approval_graph(form=FORM)) as (client, execution_id):
            asked = await request_id(client, execution_id)
            for wrong, code in (
                ({"decision": "aprove", "form": {"copies": 1}}, "unknown-decision"),
                ({"decision": "approve"}, "invalid-form"),
                ({"decision": "approve", "form": {"copies": "two"}}, "invalid-form"),
            ):
                with pytest.raises(InputError) as refused:
                    await client.answer(execution_id, asked, wrong)
                assert (refused.value.code, refused.value.status_hint) == (code, 422)
            await client.answer(execution_id, asked, {"decision": "approve", "form": {"copies": 2}})
            await client.wait(execution_id)
            node = (await client.document(execution_id))["nodes"][1]
            assert node["answers"][0]["answer"]["form"] == {"copies": 2}

    async def test_of_many_answers_at_once_one_is_taken(self, server: RunningServer) -> None:
        async with waiting(server, approval_graph()) as (client, execution_id):
            asked = await request_id(client, execution_id)
            taken: list[str] = []
            refused: list[str] = []

            async def answers(decision: str) -> None:
                try:
                    await client.answer(execution_id, asked, {"decision": decision})
                    taken.append(decision)
                except Conflict as error:
                    refused.append(error.code)

            async with asyncio.TaskGroup() as tasks:
                for decision in ("approve", "reject") * 4:
                    tasks.create_task(answers(decision))
            done = await client.wait(execution_id)
            assert (len(taken), refused) == (1, ["request-answered"] * 7)
            assert ("sent" in done["node_results"]) is (taken == ["approve"])

    async def test_a_question_whose_time_is_over_goes_on_and_is_gone(
        self, server: RunningServer
    ) -> None:
        graph = approval_graph(timeoutS=0.2, timeoutAction="reject")
        async with AsyncClient(server.base_url) as client:
            execution_id = (await client.execute(graph))["execution_id"]
            done = await client.wait(execution_id)
            assert done["node_results"]["dropped"] == "dropped"
            answered = [e async for e in client.events(execution_id) if e.type == "node.answered"]
            assert answered[0].data["by"] == "timeout"
            with pytest.raises(Gone) as gone:
                await client.answer(
                    execution_id, answered[0].data["request_id"], {"decision": "approve"}
                )
            assert gone.value.code == "request-closed"

    async def test_a_wait_asks_nobody_and_goes_on_when_its_time_has_come(
        self, server: RunningServer
    ) -> None:
        async with waiting(server, later(seconds=7_200)) as (client, execution_id):
            found = await client.execution(execution_id)
            assert (found["status"], found["waitingForInput"]) == ("paused", False)
            (request,) = (await client.requests(execution_id))["requests"]
            assert request["request"]["kind"] == "timer"
            why = await client.explain(execution_id, "later")
            assert why["code"] == "waits-for-time"
            with pytest.raises(InputError):
                await client.answer(execution_id, request["request_id"], {"decision": "go"})
            await client.answer(execution_id, request["request_id"], {"decision": "continue"})
            assert (await client.wait(execution_id))["node_results"]["later"] == "hi"
        async with AsyncClient(server.base_url) as client:
            execution_id = (await client.execute(later(seconds=0.2)))["execution_id"]
            done = await client.wait(execution_id)
            assert (done["status"], done["node_results"]["later"]) == ("completed", "hi")

    async def test_what_a_person_begins_with_is_checked_before_anything_is_created(
        self, server: RunningServer
    ) -> None:
        async with AsyncClient(server.base_url) as client:
            before = await newest(client)
            with pytest.raises(InputError) as refused:
                await client.execute(later(seconds=0), inputs={"ask": {"files": [{"name": "a"}]}})
            assert (refused.value.code, refused.value.status_hint) == ("invalid-inputs", 422)
            assert "inputs['ask']: files.0" in refused.value.message
            assert await newest(client) == before
            given = await client.execute(later(seconds=0), inputs={"message": "from outside"})
            done = await client.wait(given["execution_id"])
            assert done["node_results"]["later"] == "from outside"

    async def test_only_the_cancelled_node_stops_and_its_question_is_gone(
        self, server: RunningServer
    ) -> None:
        async with waiting(server, two_approvals_graph()) as (client, execution_id):
            first, second = (await client.requests(execution_id))["requests"]
            await client.cancel(execution_id, "not needed", node=first["path"])
            with pytest.raises(Gone):
                await client.answer(execution_id, first["request_id"], {"decision": "approve"})
            with pytest.raises(NotFound):
                await client.answer(execution_id, "r99", {"decision": "approve"})
            await client.answer(execution_id, second["request_id"], {"decision": "approve"})
            await client.wait(execution_id)
            states = (await client.execution(execution_id))["node_states"]
            assert states == {"p": "cancelled", "q": "completed"}

    async def test_a_pause_holds_until_it_is_ended(self, server: RunningServer) -> None:
        async with AsyncClient(server.base_url) as client:
            execution_id = await server.execute("held")
            await reached(client, execution_id, "node.started", "h")
            assert (await client.pause(execution_id))["status"] == "paused"
            server.release(execution_id)
            held = await reached(client, execution_id, "node.completed", "h")
            states = held["node_states"]
            assert states == {"h": "completed", "after": "pending"}
            await client.resume(execution_id)
            assert (await client.wait(execution_id))["status"] == "completed"

    async def test_forks_and_retries_are_new_executions(self, server: RunningServer) -> None:
        async with waiting(server, approval_graph()) as (client, execution_id):
            changes = {"draft": {"data": {"text": "Hello"}}}
            forked = await client.fork(execution_id, changes=changes)
            await reached(client, forked["execution_id"], "execution.paused")
            (request,) = (await client.requests(forked["execution_id"]))["requests"]
            assert request["request"]["value"] == "Hello"
            await client.cancel(execution_id)
            again = await client.retry(execution_id, idempotency_key="again")
            assert await client.retry(execution_id, idempotency_key="again") == again
            found = await reached(client, again["execution_id"], "execution.paused")
            assert found["parent"]["execution_id"] == execution_id

    def test_the_same_without_an_event_loop(self, server: RunningServer) -> None:
        with Client(server.base_url) as client:
            execution_id = client.execute(approval_graph())["execution_id"]
            asked = next(e for e in client.events(execution_id) if e.type == "node.waiting")
            client.pause(execution_id)
            (request,) = client.requests(execution_id)["requests"]
            client.resume(execution_id)
            client.answer(execution_id, request["request_id"], {"decision": "approve"})
            assert request["request_id"] == asked.data["request_id"]
            assert client.wait(execution_id)["status"] == "completed"
            forked = client.fork(execution_id, rerun=["q"], start=False)["execution_id"]
            client.cancel(forked, "never mind")
            assert client.execution(forked)["cause"] == "never mind"
            retried = client.retry(forked, start=False)["execution_id"]
            assert client.execution(retried)["status"] == "starting"


async def test_a_question_outlives_the_server_that_asked_it(tmp_path: Path) -> None:
    with start_server(tmp_path) as server:
        async with AsyncClient(server.url) as client:
            execution_id = (await client.execute(approval_graph()))["execution_id"]
            await reached(client, execution_id, "execution.paused")
            before = await client.requests(execution_id)
        server.signal(signal.SIGKILL)
        server.wait_for_exit()
    with start_server(tmp_path) as server:
        async with AsyncClient(server.url) as client:
            assert await client.requests(execution_id) == before
            asked = before["requests"][0]["request_id"]
            await client.answer(execution_id, asked, {"decision": "approve"})
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

    def test_a_person_at_a_terminal_is_asked_and_the_run_goes_on(self) -> None:
        Path("g.json").write_text(json.dumps(approval_graph(form=FORM)), "utf-8")
        script = [
            ("Decision: ", "e\n"), ("New value (text): ", "Dear you\n"), ("Decision: ", "1\n"),
            ("How many (whole number): ", "2\n"), ("Note (Enter: none): ", "fine\n"),
        ]  # fmt: skip
        code, seen = typed(["exec", "g.json"], script)
        assert code == 0, seen
        assert "sent: Dear you" in seen
        assert invoke_json("show", "last")["nodes"][1]["answers"][0]["note"] == "fine"

    def test_ctrl_c_at_the_question_leaves_it_and_a_later_answer_ends_it(self) -> None:
        Path("g.json").write_text(json.dumps(approval_graph()), "utf-8")
        code, seen = typed(["exec", "g.json"], [("Decision: ", "\x03")])
        assert code == 130, seen
        assert "stays paused" in seen
        code, seen = typed(["answer", "last"], [("Decision: ", "reject\n"), ("Note", "\n")])
        assert code == 0, seen
        assert invoke_json("show", "last")["node_results"]["dropped"] == "dropped"

    def test_what_was_cut_off_with_its_process_goes_on_by_command(self, tmp_path: Path) -> None:
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

    def test_a_run_there_rests_and_is_answered_from_here(self) -> None:
        made = invoke_json("exec", "-", stdin=json.dumps(approval_graph()))
        assert (made["status"], len(made["requests"])) == ("paused", 1)
        execution_id, asked = made["execution_id"], made["requests"][0]["request_id"]
        wrong = invoke_json("answer", execution_id, "--decision", "no", code=2)
        assert [each["code"] for each in wrong["diagnostics"]] == ["unknown-decision"]
        taken = invoke_json("answer", execution_id, "--decision", "approve", "--value", '"Hi"')
        assert (taken["execution_id"], taken["request_id"]) == (execution_id, asked)
        assert invoke_json("watch", execution_id)["node_results"]["sent"] == "sent: Hi"
        again = invoke("answer", execution_id, asked, "--decision", "approve")
        assert (again.exit_code, "answered already" in again.stderr) == (2, True)

    def test_pausing_cancelling_forking_and_retrying_go_there_too(self) -> None:
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

    def test_who_watches_is_told_how_to_answer(self, holder: RunningServer) -> None:
        execution_id = invoke_json("exec", "-", stdin=json.dumps(approval_graph()))["execution_id"]
        watching = start_command("watch", execution_id)
        try:
            seen = read_until(watching.stdout, "answer with: planwave answer")
            assert "waits for an answer: Send it?" in seen
            invoke_json("answer", execution_id, "--decision", "reject")
            out, _ = watching.communicate(timeout=PATIENCE_S)
        finally:
            watching.kill()
            watching.wait()
        assert watching.returncode == 0
        assert "answered   q  Check: reject" in out


def typed(args: Sequence[str], script: Sequence[tuple[str, str]]) -> tuple[int, str]:
    """Call a command at a terminal, typing each line once its prompt has come."""
    with at_terminal(args) as (process, terminal):
        seen, whole, lines = "", "", list(script)
        until = time.monotonic() + 3 * PATIENCE_S
        while (piece := _read(terminal, until)) is not None:
            seen, whole = seen + piece, whole + piece
            if lines and lines[0][0] in seen:
                os.write(terminal, lines.pop(0)[1].encode())
                seen = ""
        assert not lines, whole
        return process.wait(PATIENCE_S), whole


@contextmanager
def at_terminal(args: Sequence[str]) -> Iterator[tuple[ForkedProcess, int]]:
    """Start a command whose terminal is the one that is given."""
    terminal, inside = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = start_command(*args, env=environment, terminal=inside)
    os.close(inside)
    try:
        yield process, terminal
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def _read(terminal: int, until: float) -> str | None:
    """Read what comes; None at the end."""
    readable, _, _ = select.select([terminal], [], [], max(until - time.monotonic(), 0))
    assert readable, "nothing comes any more"
    try:
        return os.read(terminal, 65_536).decode(errors="replace") or None
    except OSError:  # the other side was closed
        return None
