"""Two programs with access tokens, and the operator, at every route there is.

Each program has a flow of its own. What one may do with its flow, the other may not; what is in no
row of ``access_rules.RULES`` neither may.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr
from starlette.routing import WebSocketRoute

from planwave.api.access_rules import RULES
from planwave.api.app import ROUTERS, create_app
from planwave.api.openapi import http_routes
from planwave.graph.model import Node
from planwave.ids import new_id
from planwave.service.access_tokens import SCOPES
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

OPERATOR = "the operator's token"
GRAPH = make_graph(Node("s", "start", "S"), text_node("a", "one"), edges=[("s", "a")]).to_document()
FILLED = {"path": "a", "node_id": "a", "request_id": "r7", "revision": "1"}
APP = create_app(Settings(), lambda _: Service(dependencies()))
OPEN = {"getHealth", "getReadiness", "openSession", "receiveWebhook"}
ROUTES = {
    route.operation_id: (method, route.path or "")
    for route in http_routes(APP)
    for method in sorted(route.methods or ())
    if route.operation_id
}
"""The method and the path of each operation."""
SOCKETS = {
    route.path for router in ROUTERS for route in router.routes if isinstance(route, WebSocketRoute)
}


@dataclass
class Program:
    """A program: its flow, an execution of that, and its tokens by what they are good for."""

    flow_id: str
    execution_id: str
    all_scopes: str
    by_scope: dict[str, str]


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def program(calls: InProcessClient, name: str) -> Program:
    """Save a flow, run it, and make tokens for it."""
    flow = await calls.post_json("/api/flows", {"name": name, "graph": GRAPH}, 201)
    await calls.put(f"/api/flows/{flow['flow_id']}/publication", json={"model": True})
    body = {"flow_id": flow["flow_id"], "start": True}
    run = await calls.post_json("/api/execute", body, 202)
    await calls.service.wait(run["execution_id"])

    async def token(scopes: list[str]) -> str:
        wanted = {"name": name, "scopes": scopes, "flows": [flow["flow_id"]]}
        return (await calls.post_json("/api/tokens", wanted, 201))["token"]

    by_scope = {each: await token([each]) for each in SCOPES}
    return Program(flow["flow_id"], run["execution_id"], await token([*SCOPES]), by_scope)


@asynccontextmanager
async def two_programs() -> AsyncGenerator[tuple[InProcessClient, Program, Program]]:
    async with in_process_client(dependencies(), token=SecretStr(OPERATOR)) as calls:
        calls.headers.update(bearing(OPERATOR))
        yield calls, await program(calls, "ours"), await program(calls, "theirs")


def filled(path: str, owner: Program) -> str:
    """Fill the parameters of a path with what belongs to a program; other ids name nothing."""
    own: dict[str, str] = defaultdict(new_id, FILLED)
    own |= {
        "flow_id": owner.flow_id,
        "execution_id": owner.execution_id,
        "model_id": owner.flow_id,
    }
    return path.replace(":path", "").format_map(own)


async def send(
    calls: InProcessClient, operation: str, owner: Program, token: str | None
) -> tuple[int, str]:
    """Send a request that would otherwise succeed or be refused for its body; give status, code."""
    method, path = ROUTES[operation]
    bodies: dict[str, dict[str, Any]] = {
        "createExecution": {"flow_id": owner.flow_id},
        "createChatCompletion": {
            "model": owner.flow_id,
            "messages": [{"role": "user", "content": "x"}],
        },
        "createResponse": {"model": owner.flow_id, "input": "x"},
    }
    writes = method in ("POST", "PUT", "PATCH")
    body = bodies.get(operation, {}) if writes else None
    query = {"flow_id": owner.flow_id} if operation == "listExecutions" else {}
    headers = {} if token is None else bearing(token)
    calls.headers.pop("Authorization", None)
    stream = calls.stream(method, filled(path, owner), json=body, params=query, headers=headers)
    async with stream as answer:
        await answer.aread()
    if answer.is_success:
        return answer.status_code, ""
    said = answer.json()
    return answer.status_code, said.get("error", said)["code"]


def test_every_rule_is_about_a_route() -> None:
    assert set(RULES) <= set(ROUTES) | SOCKETS
    assert set(ROUTES) >= OPEN


async def test_what_is_not_in_the_table_is_the_operators() -> None:
    async with two_programs() as (calls, ours, _):
        for operation in sorted(set(ROUTES) - set(RULES) - OPEN):
            status, code = await send(calls, operation, ours, ours.all_scopes)
            assert (status, code) == (403, "forbidden"), operation


async def test_without_a_token_no_route_is_open() -> None:
    async with two_programs() as (calls, ours, _):
        for operation in sorted(set(ROUTES) - OPEN):
            for token in (None, "pw_unknown", ours.all_scopes[:-1]):
                status, _code = await send(calls, operation, ours, token)
                assert status == 401, operation


async def test_each_program_uses_its_own_flow_only() -> None:
    async with two_programs() as (calls, ours, theirs):
        for operation in sorted(set(RULES) & set(ROUTES)):
            own, _ = await send(calls, operation, ours, ours.all_scopes)
            assert own not in (401, 403, 404), operation
            if operation == "listModels":  # its test is with the models
                continue
            status, _ = await send(calls, operation, theirs, ours.all_scopes)
            assert status == 404, operation


async def test_each_route_needs_its_scope() -> None:
    async with two_programs() as (calls, ours, _):
        for operation, rule in sorted(RULES.items()):
            if operation not in ROUTES:
                continue
            for scope, token in ours.by_scope.items():
                status, _code = await send(calls, operation, ours, token)
                assert (status == 403) is (scope != rule.scope), (operation, scope)


async def opening_message(calls: InProcessClient, path: str, token: str) -> tuple[str, int]:
    """Open a WebSocket; give the type and the code of the first message that is no acceptance."""
    sent: list[Any] = []
    messages = iter([{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}])

    async def receive() -> Any:
        return next(messages)

    async def send_message(message: Any) -> None:
        if message["type"] != "websocket.accept":
            sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {token}".encode())]
    scope = {
        "type": "websocket", "path": path, "raw_path": path.encode(), "query_string": b"mode=events",
        "headers": headers, "scheme": "ws", "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
        "subprotocols": [],
    }  # fmt: skip
    assert isinstance(calls._transport, httpx2.ASGITransport)
    await calls._transport.app(scope, receive, send_message)
    return sent[0]["type"], sent[0].get("code", 0)


async def test_sockets_are_of_the_own_flow_too() -> None:
    async with two_programs() as (calls, ours, theirs):
        cases = {
            (ours.execution_id, ours.all_scopes): ("websocket.send", 0),
            (theirs.execution_id, ours.all_scopes): ("websocket.close", 4404),
            (ours.execution_id, ours.by_scope["run"]): ("websocket.close", 4403),
            (ours.execution_id, "pw_unknown"): ("websocket.close", 4401),
        }
        for (execution_id, token), expected in cases.items():
            assert await opening_message(calls, f"/ws/{execution_id}", token) == expected
        others = SOCKETS - set(RULES)
        assert others
        for path in others:
            opened = await opening_message(calls, filled(path, ours), ours.all_scopes)
            assert opened == ("websocket.close", 4403), path


async def test_without_a_token_of_the_service_access_tokens_still_hold() -> None:
    async with in_process_client(dependencies()) as calls:
        ours = await program(calls, "ours")
        calls.headers.update(bearing(ours.by_scope["chat"]))
        await calls.expect_problem("GET", "/api/flows", 403)
        calls.headers.update(bearing("pw_revoked"))
        await calls.expect_problem("GET", "/api/flows", 401)
        calls.headers.update(bearing("anything else"))
        assert (await calls.get("/api/flows")).status_code == 200


async def test_executions_of_plans_are_nobodys() -> None:
    async with two_programs() as (calls, ours, _):
        calls.headers.update(bearing(OPERATOR))
        run = await calls.post_json("/api/execute", {"graph": GRAPH}, 201)
        calls.headers.update(bearing(ours.all_scopes))
        path = f"/api/executions/{run['execution_id']}"
        await calls.expect_problem("GET", path, 404)
        await calls.expect_problem("GET", f"/api/executions/{new_id()}", 404)
        for body in ({"graph": GRAPH}, {"plan_id": run["plan_id"]}):
            await calls.expect_problem("POST", "/api/execute", 403, body)
        listed = (await calls.get_json("/api/executions"))["executions"]
        assert [each["execution_id"] for each in listed] == [ours.execution_id]


async def test_a_program_replaces_no_node_and_no_limit_of_its_flow() -> None:
    async with two_programs() as (calls, ours, _):
        calls.headers.update(bearing(ours.by_scope["run"]))
        run = {"flow_id": ours.flow_id}
        for change in (
            {"inputs": {"a": {"output": "approved"}}},
            {"options": {"budget": {"usd": 1_000}}},
            {"options": {"policies": {"a": {"timeoutS": 1}}}},
        ):
            problem = await calls.expect_problem("POST", "/api/execute", 403, {**run, **change})
            assert "access token" in problem["detail"]
        for inputs in ({"s": {"output": "x"}}, {"output": "x"}, {}):
            await calls.post_json("/api/execute", {**run, "inputs": inputs}, 201)
        missing = {**run, "version": "0" * 64}
        await calls.expect_problem("POST", "/api/execute", 404, missing)


async def test_revoked_and_expired_tokens_are_refused() -> None:
    async with two_programs() as (calls, ours, _):
        calls.headers.update(bearing(OPERATOR))
        tokens = (await calls.get_json("/api/tokens"))["tokens"]
        assert len(tokens) == 8
        assert all("token" not in each and "digest" not in each for each in tokens)
        for each in tokens:
            assert (await calls.delete(f"/api/tokens/{each['token_id']}")).status_code == 204
        gone = f"/api/tokens/{tokens[0]['token_id']}"
        await calls.expect_problem("DELETE", gone, 404)
        status, _code = await send(calls, "getExecution", ours, ours.all_scopes)
        assert status == 401


async def test_rates_are_those_of_the_token() -> None:
    async with two_programs() as (calls, ours, _):
        calls.headers.update(bearing(OPERATOR))
        limits = {"requests_per_minute": 3, "executions_per_minute": 1}
        wanted = {"name": "slow", "scopes": ["run"], "flows": [ours.flow_id], **limits}
        token = (await calls.post_json("/api/tokens", wanted, 201))["token"]
        found = [await send(calls, "createExecution", ours, token) for _ in range(4)]
        assert [status for status, _ in found] == [201, 429, 429, 429]
        assert (await send(calls, "createExecution", ours, ours.all_scopes))[0] == 201


@pytest.mark.parametrize(
    "change", [{"name": ""}, {"scopes": []}, {"scopes": ["all"]}, {"flows": []}, {"days": 1}]
)
async def test_invalid_token_is_rejected(change: dict[str, Any]) -> None:
    async with in_process_client(dependencies()) as calls:
        body = {"name": "n", "scopes": ["run"], "flows": [new_id()], **change}
        problem = await calls.expect_problem("POST", "/api/tokens", 422, body)
        assert problem["code"] == "invalid-body"
    async with in_process_client(dependencies()) as calls:
        body = {"name": "n", "scopes": ["run"], "flows": [new_id()]}
        await calls.expect_problem("POST", "/api/tokens", 404, body)
