"""A service whose database server is away: what would start an execution is refused at once, and nothing is left of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from planwave.api.app import create_app
from planwave.api.middleware.audit import ACTIONS
from planwave.api.openapi import http_routes
from planwave.api.routes.mcp import MCP_PATH
from planwave.ids import new_id
from planwave.service.service import Service
from planwave.settings import Settings
from tests.e2e.server.test_postgres import serving, waits
from tests.support.cli.command_process import isolated_directory
from tests.support.cli.in_process_command import invoke
from tests.support.scale.relay import Relay
from tests.support.service.dependencies import dependencies
from tests.support.storage.postgres_server import (
    IS_THERE,
    SKIP_REASON,
    PostgresServer,
    running_postgres,
)

AT_ONCE_S = 5.0
"""A frozen server is given up after 20 s; much less than that, on a machine that is busy."""
GRAPH: dict[str, Any] = {
    "nodes": [
        {"id": "hook", "type": "webhook", "data": {"auth": "none", "secrets": []}},
        {"id": "ask", "type": "approval", "data": {"prompt": "Go on?"}},
    ],
    "edges": [{"source": "hook", "target": "ask", "data": {"channel": "flow"}}],
}
TALK: dict[str, Any] = {
    "nodes": [
        {"id": "talk", "type": "chat_start", "data": {}},
        {"id": "say", "type": "text", "data": {"text": "Hello"}},
    ],
    "edges": [{"source": "talk", "target": "say", "data": {"channel": "flow"}}],
}
ASK: dict[str, Any] = {"nodes": GRAPH["nodes"][1:], "edges": []}
TEXT: dict[str, Any] = {
    "nodes": [{"id": "a", "type": "text", "data": {"text": "one"}}],
    "edges": [],
}
MESSAGES = [{"role": "user", "content": "Hello"}]
BODIES: dict[str, Any] = {
    "createExecution": {"graph": TEXT, "start": True},
    "startExecution": None,
    "run": {"prompt": "goal"},
    "retryExecution": {},
    "forkExecution": {"rerun": ["a"]},
    "answerRequest": {"decision": "approve"},
    "fireTrigger": {},
    "receiveWebhook": {"a": 1},
    "sendMessage": {"message": "Hello"},
    "editMessage": {"message": "Hello"},
    "retryMessage": None,
    "continueMessage": None,
    "createChatCompletion": {"model": "talk", "messages": MESSAGES},
    "createResponse": {"model": "talk", "input": "Hello"},
}
"""By operation; each is one that would be carried out if the server answered."""
ROUTES = {
    str(route.operation_id): (method, str(route.path))
    for route in http_routes(create_app(Settings(), lambda _: Service(dependencies())))
    for method in route.methods or ()
}
BEGINS = ("execution.created", "execution.started", "execution.retried", "execution.forked")
STARTING = {name for name, action in ACTIONS.items() if action.name in BEGINS}


def test_every_route_that_starts_an_execution_is_among_these() -> None:
    beside = {"answerRequest", "receiveWebhook"}  # an edited plan is another execution
    assert {*BODIES} == STARTING | beside, "add a body, with which it would start one"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that these tests alone stop."""
    if not IS_THERE:
        pytest.skip(SKIP_REASON)
    with running_postgres() as running:
        yield running


class World:
    """What there is before the server goes away; paths and bodies name it."""

    def __init__(self, client: httpx2.Client) -> None:
        self.client = client
        self._mcp_headers = {"Accept": "application/json, text/event-stream"}
        hooked = self._made("/api/flows", {"name": "hooked", "graph": GRAPH})
        talk = self._made("/api/flows", {"name": "talk", "graph": TALK})
        client.put(f"/api/flows/{talk['plan_id']}/publication", json={"model": True})
        trigger = self._made("/api/triggers", {"plan_id": hooked["plan_id"]})["trigger_id"]
        created = self._made("/api/execute", {"graph": TEXT})["execution_id"]
        self.own = self._made("/api/execute", {"graph": TEXT, "start": True})["execution_id"]
        self._made(f"/hooks/{trigger}", {"a": 0})
        (request,) = waits(lambda: client.get("/api/requests").json()["requests"])
        stopped = self._made("/api/execute", {"graph": ASK, "start": True})["execution_id"]
        self._made(f"/api/executions/{stopped}/cancel", {})
        chat = self._made("/api/chats", {"plan_id": talk["plan_id"]})["chat_id"]
        turn = self._made(f"/api/chats/{chat}/messages", {"message": "Hello"})
        waits(lambda: self._status(self.own) == "completed")
        self._names = {
            "startExecution": {"execution_id": created},
            "retryExecution": {"execution_id": stopped},
            "answerRequest": {name: request[name] for name in ("execution_id", "request_id")},
            "editMessage": {"message_id": turn["user_message"]["message_id"]},
        }
        self._usual = {
            "execution_id": self.own,
            "trigger_id": trigger,
            "hook_id": trigger,
            "chat_id": chat,
            "message_id": turn["message"]["message_id"],
        }

    def _made(self, path: str, body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    def _status(self, execution_id: str) -> str:
        return self.client.get(f"/api/executions/{execution_id}").json()["status"]

    def count(self) -> int:
        """Return how many executions there are."""
        return len(self.client.get("/api/executions?limit=200").json()["executions"])

    def is_ready(self) -> bool:
        return self.client.get("/readyz").is_success

    def send(self, operation: str, **headers: str) -> httpx2.Response:
        method, path = ROUTES[operation]
        path = path.format(**{**self._usual, **self._names.get(operation, {})})
        body = BODIES[operation]
        return self.client.request(method, path, json=body, headers=headers, timeout=AT_ONCE_S)

    def refuses_all(self) -> None:
        """Check that each is refused at once, with a key and without one, and says when to come again."""
        for operation in BODIES:
            for headers in ({}, {"Idempotency-Key": new_id()}):
                answer = self.send(operation, **headers)
                seen = (operation, answer.text)
                assert answer.status_code == 503, seen
                problem = answer.json()
                code = problem["error"]["code"] if "error" in problem else problem["code"]
                assert code == "store-unreachable", seen
                assert int(answer.headers["retry-after"]) > 0, seen
        assert self._calls_tool() == "store-unreachable"

    def open_mcp(self) -> None:
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        self._mcp_headers["Mcp-Session-Id"] = self._mcp("initialize", hello).headers[
            "mcp-session-id"
        ]

    def _mcp(self, method: str, params: Any) -> httpx2.Response:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.client.post(MCP_PATH, json=body, headers=self._mcp_headers, timeout=AT_ONCE_S)
        assert answer.is_success, answer.text
        return answer

    def _calls_tool(self) -> str:
        """Return the code with which a tool is refused that would start an execution."""
        text = self._mcp("tools/call", {"name": "run", "arguments": {"goal": "x"}}).text
        line = next(each for each in text.splitlines() if '"result"' in each)
        result = json.loads(line.removeprefix("data: "))["result"]
        assert result["isError"], result
        return result["structuredContent"]["code"]


@pytest.mark.timeout(180)
def test_what_starts_an_execution_is_refused_at_once_while_the_server_is_frozen_or_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: PostgresServer
) -> None:
    isolated_directory(tmp_path, monkeypatch)
    Path("graph.json").write_text(json.dumps(TEXT), "utf-8")
    with server.new_database() as url, Relay(server.port) as relay:
        through = url.replace(f":{server.port}/", f":{relay.port}/")
        monkeypatch.setenv("PLANWAVE_DATABASE_URL", through)
        monkeypatch.setenv("PLANWAVE_UNSIGNED_WEBHOOKS", "true")
        with serving() as (_, client):
            world = World(client)
            world.open_mcp()
            before = world.count()
            relay.cut()
            waits(lambda: not world.is_ready())
            world.refuses_all()
            by_command = invoke("exec", "graph.json", "--url", str(client.base_url))
            assert by_command.exit_code != 0
            assert "the database server has given no answer" in by_command.output
            relay.restore()
            waits(world.is_ready)
            server.stop()
            world.refuses_all()
            server.start()
            waits(world.is_ready)
            assert world.count() == before
            for operation in BODIES:
                answer = world.send(operation)  # no model plans a goal here
                assert answer.is_success or operation == "run", (operation, answer.text)
