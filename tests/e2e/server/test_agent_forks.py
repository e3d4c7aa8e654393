"""Forks and retries of agents that have acted: over HTTP and by the command line, through the real SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from planwave.api.app import create_app
from planwave.bootstrap import open_service
from planwave.config.files import load_settings
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke_json
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    ReplyStep,
    TextReply,
    ToolCallReply,
    fake_llm_in_thread,
    prompt_of,
    tool_results_of,
)
from tests.support.server.in_process_client import asgi_client
from tests.support.server.running_server import NO_RATE_LIMITS

MODULE = '''
import pathlib
import planwave

@planwave.tool(effect="once")
def mail_customer(to: str) -> str:
    """Send a mail."""
    with pathlib.Path("mails.txt").open("a") as mails:
        mails.write(to + "\\n")
    return f"sent to {to}"
'''
MODEL = {"provider": "openai", "model": "gpt-4o-mini"}
GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "mail", "type": "tool", "data": {"name": "mail_customer"}},
        {"id": "support", "type": "agent", "data": {"userPrompt": "Write to Ada.", **MODEL}},
        {"id": "report", "type": "llm", "data": {"prompt": "Report: {{ input }}", **MODEL}},
    ],
    "edges": [
        {
            "source": "mail",
            "sourceHandle": "tools",
            "target": "support",
            "targetHandle": "tools",
            "data": {"channel": "link"},
        },
        {"source": "support", "target": "report", "data": {"channel": "flow"}},
    ],
}


TEAM: dict[str, Any] = {
    "nodes": [
        {
            "id": "clerk",
            "type": "agent",
            "name": "clerk",
            "data": {"userPrompt": "Clerk, first: {{ input }}", **MODEL},
        },
        {"id": "lead", "type": "agent", "data": {"userPrompt": "Lead.", **MODEL}},
    ],
    "edges": [
        {
            "source": "clerk",
            "sourceHandle": "tools-out",
            "target": "lead",
            "targetHandle": "tools",
            "data": {"channel": "link"},
        },
    ],
}


def reply_to(body: dict[str, Any]) -> ReplyStep:
    """Mail once, then say what came of it."""
    results = list(tool_results_of(body).values())
    prompt = prompt_of(body)
    if "Report" in prompt:
        return TextReply("reported")
    if "Clerk" in prompt:
        return TextReply("the second" if "second" in prompt else "the first")
    if "Lead" in prompt and not results:
        return ToolCallReply([("delegate_clerk", {"task": "go"})])
    return (
        TextReply("; ".join(results))
        if results
        else ToolCallReply([("mail_customer", {"to": "Ada"})])
    )


@pytest.fixture
def llm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    isolated_directory(tmp_path, monkeypatch)
    Path("mailing_tools.py").write_text(MODULE, "utf-8")
    Path("g.json").write_text(json.dumps(GRAPH), "utf-8")
    with fake_llm_in_thread(reply_to=reply_to) as server:
        monkeypatch.setenv("PLANWAVE_NODE_MODULES", "mailing_tools")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def mails() -> list[str]:
    return Path("mails.txt").read_text("utf-8").split()


def question(requests: Sequence[Any]) -> Any:
    (request,) = requests
    assert "An earlier run of this agent has called the tool" in request["request"]["prompt"]
    return request


def node(document: Any, node_id: str) -> Any:
    return next(each for each in document["nodes"] if each["path"] == node_id)


class TestCommand:
    def test_a_fork_after_the_agent_does_not_act_again(self, llm: FakeLLMServer) -> None:
        invoke_json("exec", "g.json")
        forked = invoke_json("fork", "last", "--set", "report.prompt=Report again: {{ input }}")
        assert (forked["status"], mails()) == ("completed", ["Ada"])
        assert node(forked, "support")["reused"]
        assert len(llm.requests) == 4
        assert (
            forked["budget"]["used"]["tokens"]
            == forked["usage"]["input_tokens"] + forked["usage"]["output_tokens"]
        )
        assert forked["usage"]["calls"] == 1

    def test_a_fork_of_the_agent_pays_nothing_before_the_change(self, llm: FakeLLMServer) -> None:
        invoke_json("exec", "g.json")
        forked = invoke_json("fork", "last", "--set", "support.maxSteps=9")
        assert (forked["status"], mails(), len(llm.requests)) == ("completed", ["Ada"], 3)
        assert not node(forked, "support").get("reused")
        assert [call["kind"] for call in node(forked, "support")["calls"]] == [
            "model",
            "tool",
            "model",
        ]
        assert forked["usage"]["calls"] == forked["budget"]["used"]["tokens"] == 0

    def test_a_fork_pays_nothing_for_what_ran_before_its_parent(self, llm: FakeLLMServer) -> None:
        invoke_json("exec", "g.json")
        reusing = invoke_json("fork", "last", "--set", "report.prompt=Report again: {{ input }}")
        assert node(reusing, "support")["reused"]
        forked = invoke_json("fork", "last", "--set", "support.maxSteps=9")
        assert not node(forked, "support").get("reused")
        assert (forked["status"], mails(), len(llm.requests)) == ("completed", ["Ada"], 4)

    def test_an_answer_about_a_repetition_holds_once(self, llm: FakeLLMServer) -> None:
        call = ToolCallReply([("mail_customer", {"to": "Ada"})])
        llm.add(call, ErrorReply(400), call, ErrorReply(400))
        invoke_json("exec", "g.json", code=1)
        assert (invoke_json("retry", "last")["status"], mails()) == ("paused", ["Ada"])
        failed = invoke_json("answer", "last", "--decision", "approve", code=1)
        assert (failed["status"], mails()) == ("failed", ["Ada", "Ada"])
        assert (invoke_json("retry", "last")["status"], mails()) == ("paused", ["Ada", "Ada"])

    def test_a_changed_tool_is_called_and_what_came_before_costs_nothing(
        self, llm: FakeLLMServer
    ) -> None:
        Path("team.json").write_text(json.dumps(TEAM), "utf-8")
        assert invoke_json("exec", "team.json")["node_results"]["lead"] == "the first"
        changed = "clerk.userPrompt=Clerk, second: {{ input }}"
        forked = invoke_json("fork", "last", "--set", changed)
        assert forked["node_results"]["lead"] == "the second"
        assert (forked["usage"]["calls"], len(llm.requests)) == (2, 5)

    def test_a_changed_agent_asks_before_it_acts_again(self, llm: FakeLLMServer) -> None:
        invoke_json("exec", "g.json")
        forked = invoke_json("fork", "last", "--set", "support.userPrompt=Write to Ada again.")
        assert (forked["status"], mails()) == ("paused", ["Ada"])
        answered = invoke_json("answer", "last", "--decision", "reject", "--note", "She knows.")
        assert (answered["status"], mails()) == ("completed", ["Ada"])
        assert "They wrote: She knows." in answered["node_results"]["support"]
        again = invoke_json("fork", "last", "--rerun", "support")
        assert (again["status"], mails()) == ("paused", ["Ada"])
        assert invoke_json("answer", "last", "--decision", "approve")["status"] == "completed"
        assert mails() == ["Ada", "Ada"]


async def test_a_retry_over_http_asks_before_it_acts_again(llm: FakeLLMServer) -> None:
    llm.add(ToolCallReply([("mail_customer", {"to": "Ada"})]), ErrorReply(400))
    settings = load_settings().model_copy(update={"limits": NO_RATE_LIMITS})
    async with asgi_client(create_app(settings, open_service)) as client:

        async def ended(execution_id: str) -> Any:
            await client.get(f"/api/executions/{execution_id}/events")
            return (await client.get(f"/api/executions/{execution_id}/document")).json()

        made = (await client.post("/api/execute", json={"graph": GRAPH, "start": True})).json()
        document = await ended(made["execution_id"])
        assert (document["status"], mails()) == ("failed", ["Ada"])

        retried = await client.post(f"/api/executions/{made['execution_id']}/retry", json={})
        execution_id = retried.json()["execution_id"]
        assert retried.status_code == 202, retried.text
        found: Any = {"requests": []}
        while not found["requests"]:
            await asyncio.sleep(0.01)
            found = (await client.get(f"/api/executions/{execution_id}/requests")).json()
        request = question(found["requests"])
        assert mails() == ["Ada"]
        answer = {"decision": "approve"}
        path = f"/api/executions/{execution_id}/requests/{request['request_id']}"
        assert (await client.post(path, json=answer)).status_code == 200
        document = await ended(execution_id)
    assert (document["status"], document["node_results"]["report"]) == ("completed", "reported")
    assert mails() == ["Ada", "Ada"]
