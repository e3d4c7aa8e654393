"""Two programs with access tokens, and the operator, at every route there is.

Each program has a flow of its own. What one may do with its flow, the other may not; what is in no
row of ``access_rules.RULES`` neither may.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr
from starlette.routing import WebSocketRoute

from planwave.api.access_rules import RULES
from planwave.api.app import ROUTERS, create_app
from planwave.api.openapi import http_routes
from planwave.api.session_cookies import SESSION_COOKIE
from planwave.graph.model import Graph, Node
from planwave.ids import new_id
from planwave.service.access_tokens import SCOPES
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.mcp.planwave_server import mcp_session
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.server.raw_asgi import ACCEPTED, raw_request, raw_socket
from tests.support.service.dependencies import FixedPlanner, dependencies

OPERATOR = "the operator's token"
GRAPH = make_graph(Node("s", "start", "S"), text_node("a", "one"), edges=[("s", "a")]).to_document()
FILLED = {"path": "a", "node_id": "a", "request_id": "r7", "revision": "1"}
APP = create_app(Settings(), lambda _: Service(dependencies()))
OPEN = {"getHealth", "getReadiness", "openSession", "receiveWebhook", "openLink", "answerByLink"}
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

    plan_id: str
    execution_id: str
    all_scopes: str
    by_scope: dict[str, str]


def bearing(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def program(
    calls: InProcessClient, name: str, graph: dict[str, Any] | None = None
) -> Program:
    """Save a flow, run it, and make tokens for it."""
    flow = await calls.post_json("/api/flows", {"name": name, "graph": graph or GRAPH}, 201)
    await calls.put(f"/api/flows/{flow['plan_id']}/publication", json={"model": True})
    body = {"flow": flow["plan_id"], "start": True}
    run = await calls.post_json("/api/execute", body, 202)
    await calls.service.executions.wait(run["execution_id"])

    async def token(scopes: list[str]) -> str:
        wanted = {"name": name, "scopes": scopes, "flows": [flow["plan_id"]]}
        return (await calls.post_json("/api/tokens", wanted, 201))["token"]

    by_scope = {each: await token([each]) for each in SCOPES}
    return Program(flow["plan_id"], run["execution_id"], await token([*SCOPES]), by_scope)


@asynccontextmanager
async def two_programs() -> AsyncGenerator[tuple[InProcessClient, Program, Program]]:
    async with in_process_client(dependencies(), token=SecretStr(OPERATOR)) as calls:
        calls.headers.update(bearing(OPERATOR))
        yield calls, await program(calls, "ours"), await program(calls, "theirs")


def filled(path: str, owner: Program) -> str:
    """Fill the parameters of a path with what belongs to a program; other ids name nothing."""
    own: dict[str, str] = defaultdict(new_id, FILLED)
    own |= {
        "plan_id": owner.plan_id,
        "execution_id": owner.execution_id,
        "model_id": owner.plan_id,
    }
    return path.replace(":path", "").format_map(own)


async def send(
    calls: InProcessClient, operation: str, owner: Program, token: str | None
) -> tuple[int, str]:
    """Send a request that would otherwise succeed or be refused for its body; give status, code."""
    method, path = ROUTES[operation]
    bodies: dict[str, dict[str, Any]] = {
        "createExecution": {"flow": owner.plan_id},
        "createChatCompletion": {
            "model": owner.plan_id,
            "messages": [{"role": "user", "content": "x"}],
        },
        "createResponse": {"model": owner.plan_id, "input": "x"},
    }
    writes = method in ("POST", "PUT", "PATCH")
    body = bodies.get(operation, {}) if writes else None
    queries: dict[str, dict[str, str]] = {
        "listExecutions": {"plan_id": owner.plan_id},
        "exportFlow": {"to": "yaml"},
        "exportExecution": {"to": "mermaid"},
    }
    query = queries.get(operation, {})
    headers = {} if token is None else bearing(token)
    calls.headers.pop("Authorization", None)
    stream = calls.stream(method, filled(path, owner), json=body, params=query, headers=headers)
    async with stream as answer:
        await answer.aread()
    if answer.is_success:
        return answer.status_code, ""
    said = answer.json()
    return answer.status_code, said.get("error", said)["code"]


EXPECTED: dict[str, str] = {
    "health": "GET /healthz, GET /readyz",
    "page": "GET /, GET /runs/1, GET /assets/x.js",
    "public": "GET /llms.txt",
    "sender": "POST /api/session, POST /hooks/{hook_id}",
    "link": "GET /links/{key}, POST /links/{key}",
    "any scope": "GET /mcp, POST /mcp, DELETE /mcp",
    "chat, own only": "GET /v1/models",
    "chat": "GET /v1/models/{model_id:path}, POST /v1/chat/completions, POST /v1/responses",
    "run": """
        POST /api/execute, POST /api/execute/{execution_id}/start,
        POST /api/executions/{execution_id}/cancel""",
    "read": """
        WS /ws/{execution_id:path}, GET /ws/{execution_id:path}, GET /api/executions,
        GET /api/executions/{execution_id}, GET /api/executions/{execution_id}/result,
        GET /api/executions/{execution_id}/document, GET /api/executions/{execution_id}/nodes/{path:path},
        GET /api/executions/{execution_id}/explain/{path:path}, GET /api/executions/{execution_id}/requests,
        GET /api/execution/{execution_id}/status, GET /api/execution/{execution_id}/result,
        GET /api/execution/{execution_id}/load, GET /api/executions/{execution_id}/events,
        GET /api/flows/{plan_id}, GET /api/flows/{plan_id}/export,
        GET /api/executions/{execution_id}/export""",
    "operator": """
        GET /api/chats/{chat_id}/messages/{message_id}/events, GET /api/chats/{chat_id}/events,
        WS /ws/chats/{chat_id}/messages/{message_id}, WS /ws/chats/{chat_id}, POST /api/plan,
        GET /api/plans, GET /api/plans/{plan_id}, DELETE /api/plans/{plan_id},
        POST /api/plans/{plan_id}/validate, GET /api/plans/{plan_id}/forecast, POST /api/check, POST /api/import,
        POST /api/export, GET /api/plans/{plan_id}/export,
        PATCH /api/plans/{plan_id}, POST /api/plans/{plan_id}/refine, GET /api/plans/{plan_id}/revisions,
        GET /api/plans/{plan_id}/revisions/{revision}, GET /api/plans/{plan_id}/revisions/{revision}/diff,
        POST /api/plans/{plan_id}/revisions/{revision}/restore,
        POST /api/plans/{plan_id}/revisions/{revision}/approve, POST /api/run,
        DELETE /api/executions/{execution_id}, PATCH /api/executions/{execution_id}, GET /api/spend,
        POST /api/executions/{execution_id}/pause, POST /api/executions/{execution_id}/revise, POST /api/executions/{execution_id}/replan,
        POST /api/executions/{execution_id}/resume, GET /api/requests,
        POST /api/executions/{execution_id}/requests/{request_id}, POST /api/executions/{execution_id}/retry,
        POST /api/executions/{execution_id}/fork, POST /api/executions/{execution_id}/fork/preview, POST /api/executions/{execution_id}/promote, GET /api/executions/{execution_id}/diff/{other_id},
        POST /api/flows, GET /api/flows, PUT /api/flows/{plan_id}, PATCH /api/flows/{plan_id},
        DELETE /api/flows/{plan_id}, DELETE /api/flows/{plan_id}/name, GET /api/flows/{plan_id}/publication,
        PUT /api/flows/{plan_id}/publication, GET /api/flows/{plan_id}/input-sets,
        PUT /api/flows/{plan_id}/input-sets/{name}, DELETE /api/flows/{plan_id}/input-sets/{name}, POST /api/chats, GET /api/chats, GET /api/chats/{chat_id},
        PATCH /api/chats/{chat_id}, DELETE /api/chats/{chat_id}, POST /api/chats/{chat_id}/messages,
        GET /api/chats/{chat_id}/messages/{message_id}, POST /api/chats/{chat_id}/messages/{message_id}/edit,
        POST /api/chats/{chat_id}/messages/{message_id}/retry,
        POST /api/chats/{chat_id}/messages/{message_id}/continue,
        POST /api/chats/{chat_id}/messages/{message_id}/cancel, POST /api/triggers, GET /api/triggers,
        GET /api/triggers/{trigger_id}, POST /api/triggers/{trigger_id}/enable,
        POST /api/triggers/{trigger_id}/disable, POST /api/triggers/{trigger_id}/fire,
        DELETE /api/triggers/{trigger_id}, GET /api/notification-targets, POST /api/notification-targets,
        DELETE /api/notification-targets/{target_id}, GET /api/notifications,
        GET /api/notifications/{notification_id}, POST /api/notifications/{notification_id}/resend,
        GET /api/providers, GET /api/mcp-servers, GET /api/node-types, GET /api/tools, GET /api/limits,
        DELETE /api/session, POST /api/tokens, GET /api/tokens, DELETE /api/tokens/{token_id}, GET /metrics,
        POST /api/executions/{execution_id}/links, GET /api/links, DELETE /api/links/{link_id},
        GET /openapi.json, GET /docs""",
}
"""The routes by who may use them. A route that is new has to be added; nothing here is read from the code."""
ROWS = {
    row: kind
    for kind, rows in EXPECTED.items()
    for row in (" ".join(each.split()) for each in rows.split(","))
}
EVIL = "https://evil.example"
OWN = "http://127.0.0.1"
IN, OUT, NO, GONE = "in", 401, 403, 404
TOKENS = ("chat", "run", "read", "all scopes", "another flow's")
CALLERS = (
    "no token", "wrong", "unknown", *TOKENS, "cookie", "cookie, own page", "cookie, evil page",
    "cookie, same site", "operator, evil host", "operator, page without origin",
)  # fmt: skip


def expected(kind: str, method: str, caller: str) -> str | int:
    """Return how a caller is answered; the rules of docs/operations.md and docs/openai.md in words."""
    if caller in ("cookie, evil page", "operator, page without origin"):
        return NO
    if caller == "operator, evil host":
        return IN if kind == "health" else NO
    if kind in ("health", "page", "public") or (kind == "link" and method == "GET"):
        return IN
    if caller == "cookie, same site":
        return NO
    if kind in ("sender", "link") or caller == "cookie, own page":
        return IN
    if caller == "cookie":
        return IN if method == "GET" else NO
    if caller not in TOKENS:
        return OUT
    return _expected_of_token(kind, caller)


def _expected_of_token(kind: str, caller: str) -> str | int:
    if kind in ("any scope", "operator"):
        return IN if kind == "any scope" else NO
    scope = kind.partition(",")[0]
    if caller == "another flow's":
        return IN if kind == "chat, own only" else GONE
    return IN if caller in (scope, "all scopes") else NO


def headers_of(caller: str, ours: Program, theirs: Program, cookie: str) -> dict[str, str]:
    """Return what a caller sends."""
    by_token = {
        "wrong": "wrong", "unknown": "pw_unknown", "all scopes": ours.all_scopes,
        "another flow's": theirs.all_scopes, **ours.by_scope,
    }  # fmt: skip
    match caller:
        case "no token":
            return {}
        case "cookie":
            return {"cookie": cookie}
        case "cookie, own page":
            return {"cookie": cookie, "origin": OWN, "sec-fetch-site": "same-origin"}
        case "cookie, evil page":
            return {"cookie": cookie, "origin": EVIL, "sec-fetch-site": "cross-site"}
        case "cookie, same site":
            return {"cookie": cookie, "sec-fetch-site": "same-site"}
        case "operator, evil host":
            return {**bearing(OPERATOR), "host": "evil.example"}
        case "operator, page without origin":
            return {**bearing(OPERATOR), "origin": "null"}
        case _:
            return bearing(by_token[caller])


def test_every_route_and_socket_has_a_row_in_the_matrix() -> None:
    app = create_app(Settings(), lambda _: Service(dependencies()))
    routes: list[Any] = list(app.routes)
    there = {
        f"{method} {route.path}"
        for route in routes
        for method in (set(getattr(route, "methods", None) or ["WS"]) - {"HEAD"})
    }
    pages = {row for row, kind in ROWS.items() if kind == "page"}
    assert there == set(ROWS) - pages


@pytest.mark.parametrize("caller", CALLERS)
async def test_each_route_answers_each_caller_as_the_matrix_says(caller: str) -> None:
    nobody = Program(new_id(), new_id(), "", {})
    async with two_programs() as (calls, ours, theirs):
        assert isinstance(calls._transport, httpx2.ASGITransport)
        app: Any = calls._transport.app
        sessions = app.state.planwave.authenticator.sessions
        wrong: dict[str, tuple[Any, Any]] = {}
        for row, kind in ROWS.items():
            method, path = row.split(" ")
            # What a token may reach exists; what the operator may reach does not, so that it stays.
            filled_path = filled(path, ours if caller in TOKENS else nobody)
            cookie = f"{SESSION_COOKIE}={sessions.issue()}"
            headers = headers_of(caller, ours, theirs, cookie)
            if method == "WS":
                status = await raw_socket(app, filled_path, headers) % 4000
            else:
                query = f"plan_id={ours.plan_id}" if row == "GET /api/executions" else ""
                body = json.dumps(body_for(row, ours)).encode() if method != "GET" else b""
                headers["content-type"] = "application/json"
                status, *_ = await raw_request(app, method, filled_path, headers, body, query)
            wanted = expected(kind, "GET" if method == "GET" else "POST", caller)
            refusals = (OUT, NO, GONE) if caller in TOKENS and kind != "any scope" else (OUT, NO)
            is_open = kind in ("health", "page", "sender", "link")
            found = status if status in (refusals if not is_open else (OUT, NO)) else IN
            if found != wanted:
                wrong[row] = (status, wanted)
        assert wrong == {}


def body_for(row: str, owner: Program) -> dict[str, Any]:
    """Return a body that would otherwise be accepted, or is refused for its fields."""
    return {
        "POST /api/execute": {"flow": owner.plan_id},
        "POST /v1/chat/completions": {"model": owner.plan_id, "messages": [{"role": "user", "content": "x"}]},
        "POST /v1/responses": {"model": owner.plan_id, "input": "x"},
    }.get(row, {})  # fmt: skip


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


async def test_what_is_anothers_is_told_as_what_is_not_there() -> None:
    async with two_programs() as (calls, ours, theirs):
        calls.headers.update(bearing(ours.all_scopes))
        for path, own_id in (
            ("/api/executions/{}", theirs.execution_id),
            ("/api/flows/{}", theirs.plan_id),
        ):
            missing_id = new_id()
            found = await calls.expect_problem("GET", path.format(own_id), 404)
            missing = await calls.expect_problem("GET", path.format(missing_id), 404)
            assert json.dumps(found).replace(own_id, missing_id) == json.dumps(missing)


async def test_each_route_needs_its_scope() -> None:
    async with two_programs() as (calls, ours, _):
        for operation, rule in sorted(RULES.items()):
            if operation not in ROUTES:
                continue
            for scope, token in ours.by_scope.items():
                status, _code = await send(calls, operation, ours, token)
                assert (status == 403) is (scope != rule.scope), (operation, scope)


async def test_sockets_are_of_the_own_flow_too() -> None:
    async with two_programs() as (calls, ours, theirs):
        cases = {
            (ours.execution_id, ours.all_scopes): ACCEPTED,
            (theirs.execution_id, ours.all_scopes): 4404,
            (ours.execution_id, ours.by_scope["run"]): 4403,
            (ours.execution_id, "pw_unknown"): 4401,
        }
        assert isinstance(calls._transport, httpx2.ASGITransport)
        app: Any = calls._transport.app
        for (execution_id, token), code in cases.items():
            assert await raw_socket(app, f"/ws/{execution_id}", bearing(token)) == code
        others = SOCKETS - set(RULES)
        assert others
        for path in others:
            opened = await raw_socket(app, filled(path, ours), bearing(ours.all_scopes))
            assert opened == 4403, path


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


@dataclass
class Past:
    """A flow that was a plan first: with a goal, an earlier revision, and executions of that; now a draft is over it."""

    plan_id: str
    before: str
    as_plan: str
    as_flow: str
    token: str


@asynccontextmanager
async def flow_with_a_past() -> AsyncGenerator[tuple[InProcessClient, Past]]:
    """What a token may not read says ``canary``."""
    planned = replace(
        make_plan(_saying("canary: the first revision")),
        title="canary: its title", attempts=[{"reply": "canary: an attempt"}], fixes=["canary: a fix"],
    )  # fmt: skip
    parts = dependencies(planner=FixedPlanner(planned))
    async with in_process_client(parts, token=SecretStr(OPERATOR)) as calls:
        calls.headers.update(bearing(OPERATOR))
        goal = {"prompt": "canary: the goal"}
        plan_id = (await calls.post_json("/api/plan", goal, 201))["plan_id"]

        async def run(**source: Any) -> str:
            body = {**source, "start": True}
            started = (await calls.post_json("/api/execute", body, 202))["execution_id"]
            await calls.service.executions.wait(started)
            return started

        async def patch(graph: Graph, title: str) -> None:
            body = {
                "operations": [
                    {"op": "replace_graph", "graph": graph.to_document()},
                    {"op": "set_title", "title": title},
                ],
                "note": "canary: a note",
            }
            path, any_hash = f"/api/plans/{plan_id}", {"If-Match": "*"}
            assert (await calls.patch(path, json=body, headers=any_hash)).status_code == 200

        inputs = {"s": {"output": "canary: an input"}}
        before = await run(plan_id=plan_id, inputs=inputs)
        await patch(_saying("public"), "A public title")
        said = {"plan_id": plan_id, "name": "past", "description": "A public purpose"}
        assert (await calls.post_json("/api/flows", said, 201))["plan_id"] == plan_id
        published = {"model": True, "tool": True}
        await calls.put(f"/api/flows/{plan_id}/publication", json=published)
        as_flow, as_plan = await run(flow="past"), await run(plan_id=plan_id, inputs=inputs)
        draft = make_graph(Node("s", "start", "S"), Node("a", "no_type", "canary: a draft"))
        await patch(draft, "canary: the title of a draft")
        wanted = {"name": "n", "scopes": [*SCOPES], "flows": [plan_id]}
        token = (await calls.post_json("/api/tokens", wanted, 201))["token"]
        calls.headers.update(bearing(token))
        yield calls, Past(plan_id, before, as_plan, as_flow, token)


def _saying(text: str) -> Graph:
    return make_graph(Node("s", "start", "S"), text_node("a", text), edges=[("s", "a")])


READS: dict[str, tuple[str, int, str]] = {
    "the flow": ("/api/flows/{plan_id}", 200, ""),
    "the revision that callers start": ("/api/flows/{plan_id}?revision=2", 200, ""),
    "an earlier revision": ("/api/flows/{plan_id}?revision=1", 403, "old-revision"),
    "a draft": ("/api/flows/{plan_id}?revision=3", 403, "old-revision"),
    "a revision that is not there": ("/api/flows/{plan_id}?revision=4", 403, "old-revision"),
    "the plan, with its goal and the attempts": ("/api/plans/{plan_id}", 403, "forbidden"),
    "the revisions of the plan": ("/api/plans/{plan_id}/revisions", 403, "forbidden"),
    "a revision of the plan": ("/api/plans/{plan_id}/revisions/2", 403, "forbidden"),
    "all plans": ("/api/plans", 403, "forbidden"),
    "an execution that was started as the flow": ("/api/executions/{as_flow}", 200, ""),
    "one of the plan before it had the name": ("/api/executions/{before}", 404, "not-found"),
    "one that was started as the plan": ("/api/executions/{as_plan}", 404, "not-found"),
    "what they all are compared": ("/api/executions/{as_flow}/diff/{before}", 403, "forbidden"),
}
"""What a token may read of its flow, and what not."""


async def test_a_program_reads_what_its_flow_shows_to_callers_only() -> None:
    async with flow_with_a_past() as (calls, past):
        for what, (path, status, code) in READS.items():
            answer = await calls.get(path.format(**vars(past)))
            found = answer.status_code, "" if answer.is_success else answer.json()["code"]
            assert found == (status, code), what
        flow = await calls.get_json(f"/api/flows/{past.plan_id}")
        assert (flow["title"], flow["description"]) == ("A public title", "A public purpose")
        assert (flow["draft"], flow["live_revision"], [*flow["inputs"]["properties"]]) == (
            None, 2, ["input"],
        )  # fmt: skip
        assert not {"user_prompt", "attempts", "fixes"} & flow.keys()
        assert [node["data"] for node in flow["graph"]["nodes"]] == [{}, {"text": "public"}]
        for query in ({}, {"plan_id": past.plan_id}, {"q": "public"}, {"status": "completed"}):
            listed = (await calls.get_json("/api/executions", **query))["executions"]
            assert [each["execution_id"] for each in listed] == [past.as_flow], query
        assert (await calls.get_json("/api/executions", q="canary"))["executions"] == []
        counts = (await calls.get_json("/api/executions", counts=True))["counts"]
        assert (counts["total"], counts["completed"]) == (1, 1)


async def test_no_answer_to_a_program_tells_what_was_before_its_flow() -> None:
    async with flow_with_a_past() as (calls, past):
        told: dict[str, str] = {}
        for execution_id in (past.as_flow, past.before, past.as_plan):
            owner = Program(past.plan_id, execution_id, past.token, {})
            for operation, (method, path) in ROUTES.items():
                for revision in ({}, {"revision": 1}, {"revision": 3}):
                    body = {**body_for(f"{method} {path}", owner), **revision}
                    answer = await calls.request(
                        method, filled(path, owner), params={**revision, "q": "can"},
                        json=body if method != "GET" else None,
                    )  # fmt: skip
                    told[f"{operation} {execution_id} {revision}"] = answer.text
            for kind in ("result", "document"):
                uri = f"planwave://executions/{execution_id}/{kind}"
                told[uri] = await _ask_mcp(calls, "resources/read", uri=uri)
            for tool in ("status", "result"):
                asked = {"name": tool, "arguments": {"execution_id": execution_id}}
                told[f"{tool} {execution_id}"] = await _ask_mcp(calls, "tools/call", **asked)
        for given in ({"flow": "past"}, {"flow": "past", "revision": 1}, {"plan_id": past.plan_id}):
            asked = {"name": "run", "arguments": given}
            told[f"run {given}"] = await _ask_mcp(calls, "tools/call", **asked)
        for listed in ("tools/list", "resources/list"):
            told[listed] = await _ask_mcp(calls, listed)
        assert {what: text for what, text in told.items() if "canary" in text} == {}
        assert sum("public" in text for text in told.values()) > 10


async def _ask_mcp(calls: InProcessClient, method: str, **params: Any) -> str:
    headers = await mcp_session(calls, {})
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = await calls.post("/mcp", json=body, headers=headers)
    await calls.delete("/mcp", headers=headers)
    return answer.text


async def test_a_name_that_is_taken_away_takes_the_tokens_with_it() -> None:
    async with flow_with_a_past() as (calls, past):
        path = f"/api/flows/{past.plan_id}/name"
        calls.headers.update(bearing(OPERATOR))
        assert (await calls.expect_problem("DELETE", path, 409))["code"] == "flow-in-use"
        assert (await calls.delete(path, params={"force": True})).status_code == 204
        calls.headers.update(bearing(past.token))
        for read in (f"/api/flows/{past.plan_id}", f"/api/executions/{past.as_flow}"):
            await calls.expect_problem("GET", read, 401)


async def test_a_program_replaces_no_node_and_no_limit_of_its_flow() -> None:
    async with two_programs() as (calls, ours, _):
        calls.headers.update(bearing(ours.by_scope["run"]))
        run = {"flow": ours.plan_id}
        for change in (
            {"inputs": {"a": {"output": "approved"}}},
            {"options": {"budget": {"usd": 1_000}}},
            {"options": {"policies": {"a": {"timeoutS": 1}}}},
            {"options": {"replan": {"on_failure": True}}},
            {"options": {"replan": {"by_nodes": True}}},
        ):
            problem = await calls.expect_problem("POST", "/api/execute", 403, {**run, **change})
            assert "access token" in problem["detail"]
        for inputs in ({"s": {"output": "x"}}, {"output": "x"}, {}):
            await calls.post_json("/api/execute", {**run, "inputs": inputs}, 201)
        missing = {**run, "revision": 9}
        problem = await calls.expect_problem("POST", "/api/execute", 403, missing)
        assert problem["code"] == "old-revision"


async def test_a_program_gets_the_live_revision_of_its_flow_only() -> None:
    async with two_programs() as (calls, ours, _):
        calls.headers.update(bearing(OPERATOR))
        path = f"/api/flows/{ours.plan_id}"
        old = (await calls.get_json(path))["revision"]
        waiting = {"flow": ours.plan_id, "start": False}
        unstarted = (await calls.post_json("/api/execute", waiting, 201))["execution_id"]
        safer = make_graph(
            Node("s", "start", "S"), Node("q", "approval", "Q", data={"prompt": "?"})
        )
        safer = safer.to_document()
        new = (await calls.put(path, json={"graph": safer})).json()["revision"]
        assert new == old + 1
        calls.headers.update(bearing(ours.all_scopes))
        for revision in (old, new + 1):
            body = {"flow": ours.plan_id, "revision": revision, "start": True}
            for problem in (
                await calls.expect_problem("POST", "/api/execute", 403, body),
                await calls.expect_problem("GET", path, 403, revision=revision),
            ):
                assert problem["code"] == "old-revision"
        problem = await calls.expect_problem("POST", f"/api/execute/{unstarted}/start", 403)
        assert problem["code"] == "old-revision"
        for model in (f"{ours.plan_id}@{old}", f"ours@{old}", str(old)):
            said = {"model": model, "messages": [{"role": "user", "content": "x"}]}
            answer = await calls.post("/v1/chat/completions", json=said)
            assert answer.status_code == 404, answer.text
        for again in ("retry", "fork"):
            await calls.expect_problem(
                "POST", f"/api/executions/{ours.execution_id}/{again}", 403, {}
            )
        assert (await calls.get_json(path, revision=new))["revision"] == new
        run = await calls.post_json("/api/execute", {"flow": ours.plan_id, "revision": new}, 201)
        assert (run["revision"], run["flow"]) == (new, "ours")


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
        wanted = {"name": "slow", "scopes": ["run"], "flows": [ours.plan_id], **limits}
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
