"""Plans that a person approves before they run, from outside: over HTTP and by the command line."""

from __future__ import annotations

import json
import signal
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from planwave.client import AsyncClient
from planwave.errors import Conflict
from tests.e2e.cli.test_human_requests import typed, wait_for_event
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke, invoke_json
from tests.support.llm.fake_llm_server import fake_llm_in_thread
from tests.support.llm.planner_replies import planner_reply
from tests.support.server.running_server import RunningServer
from tests.support.server.server_process import start_server


def graph(text: str = "kept") -> dict[str, Any]:
    return {"nodes": [{"id": "a", "type": "text", "data": {"text": text}}], "edges": []}


async def asking(client: AsyncClient) -> tuple[str, str]:
    """Execute a graph that is to be approved; return the ids of execution and request."""
    execution_id = (await client.execute(graph(), require_approval=True))["execution_id"]
    found = await wait_for_event(client, execution_id, "execution.paused")
    assert (found["waitingForInput"], found["node_states"]) == (True, {"a": "pending"})
    (request,) = found["requests"]
    assert request["path"] is None
    return execution_id, request["request_id"]


async def test_every_view_of_an_execution_shows_the_request(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client:
        execution_id, request_id = await asking(client)
        (request,) = (await client.requests(execution_id))["requests"]
        document = await client.document(execution_id)
        assert document["requests"] == [request]
        async with aclosing(client.events(execution_id)) as events:
            async for event in events:
                if event.type == "execution.paused":
                    assert event.data["request_id"] == request_id
                    break
        await client.answer(execution_id, request_id, {"decision": "approve"})
        assert (await client.wait(execution_id))["node_results"] == {"a": "kept"}
        with pytest.raises(Conflict) as again:
            await client.answer(execution_id, request_id, {"decision": "reject"})
        assert again.value.code == "request-answered"


async def test_an_edited_plan_is_followed_by_its_own_execution(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client:
        execution_id, request_id = await asking(client)
        edit = {"decision": "edit", "value": graph("changed")}
        following = (await client.answer(execution_id, request_id, edit))["execution_id"]
        await wait_for_event(client, following, "execution.paused")
        (request,) = (await client.requests(following))["requests"]
        await client.answer(following, request["request_id"], {"decision": "approve"})
        assert (await client.wait(following))["node_results"] == {"a": "changed"}
        assert (await client.execution(execution_id))["status"] == "cancelled"


async def test_request_and_approval_survive_killed_servers(tmp_path: Path) -> None:
    with start_server(tmp_path) as server:
        async with AsyncClient(server.url) as client:
            execution_id, request_id = await asking(client)
            before = await client.requests(execution_id)
        server.signal(signal.SIGKILL)
        server.wait_for_exit()
    with start_server(tmp_path) as server:
        async with AsyncClient(server.url) as client:
            assert await client.requests(execution_id) == before
            await client.answer(execution_id, request_id, {"decision": "approve"})
        server.signal(signal.SIGKILL)
        server.wait_for_exit()
    with start_server(tmp_path) as server:
        async with AsyncClient(server.url) as client:
            assert (await client.wait(execution_id))["node_results"] == {"a": "kept"}


class TestCommand:
    @pytest.fixture(autouse=True)
    def empty(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        isolated_directory(tmp_path, monkeypatch)
        Path("g.json").write_text(json.dumps(graph()), "utf-8")

    def test_without_a_terminal_the_run_stops_at_the_request(self) -> None:
        stopped = invoke("exec", "g.json", "--approve")
        assert stopped.exit_code == 0
        assert "--decision approve   (or reject, edit)" in stopped.stdout
        assert "Run the plan 'g.json'?" in stopped.stdout
        wrong = invoke_json("answer", "last", "--decision", "edit", code=2)
        assert [each["pointer"] for each in wrong["diagnostics"]] == ["/value"]
        done = invoke("answer", "last", "--decision", "approve")
        assert (done.exit_code, invoke_json("show", "last")["node_results"]) == (0, {"a": "kept"})

    def test_a_rejected_plan_is_a_cancelled_execution_with_the_note(self) -> None:
        assert invoke("exec", "g.json", "--approve").exit_code == 0
        invoke("answer", "last", "--decision", "reject", "--note", "too dear")
        shown = invoke_json("show", "last")
        assert (shown["status"], shown["cause"]) == (
            "cancelled",
            "the plan was rejected: too dear",
        )

    def test_an_edited_plan_replaces_the_execution(self) -> None:
        first = invoke_json("exec", "g.json", "--approve")["execution_id"]
        edit = ("--decision", "edit", "--value", json.dumps(graph("changed")))
        assert invoke("answer", "last", *edit).exit_code == 0
        assert invoke_json("show", first)["status"] == "cancelled"
        assert invoke("answer", "last", "--decision", "approve").exit_code == 0
        assert invoke_json("show", "last")["node_results"] == {"a": "changed"}

    def test_a_plan_is_approved_at_a_terminal(self) -> None:
        script = [("Decision: ", "approve\n")]
        code, seen = typed(["exec", "g.json", "--approve"], script)
        assert (code, "kept" in seen) == (0, True), seen

    def test_a_plan_is_edited_at_a_terminal_and_asked_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("EDITOR", "sed -i s/kept/changed/")
        script = [
            ("Decision: ", "edit\n"),
            ("Decision: ", "approve\n"),
        ]  # fmt: skip
        code, seen = typed(["exec", "g.json", "--approve"], script)
        assert code == 0, seen
        assert invoke_json("show", "last")["node_results"] == {"a": "changed"}

    def test_the_setting_requires_approval_of_every_run(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PLANWAVE_REQUIRE_APPROVAL", "true")
        (request,) = invoke_json("exec", "g.json")["requests"]
        assert request["request"]["kind"] == "plan-approval"

    def test_a_planned_goal_and_a_flow_are_approved_first(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reply = planner_reply(
            {"id": "a", "name": "A", "type": "text", "data": {"text": "planned"}}, title="One text"
        )
        with fake_llm_in_thread(reply_to=lambda *_: reply) as llm:
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
            monkeypatch.setenv("OPENAI_BASE_URL", llm.openai_url)
            run = invoke_json("run", "Say something", "--approve")
        (request,) = run["requests"]
        assert (request["request"]["title"], request["request"]["goal"]) == (
            "One text",
            "Say something",
        )
        assert request["request"]["forecast"]["nodes"] == 1
        invoke("flow", "save", "saved", "g.json")
        (request,) = invoke_json("flow", "run", "saved", "--approve")["requests"]
        assert request["request"]["plan_hash"]
