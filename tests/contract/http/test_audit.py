"""What the audit log says of requests: every route has a row, and nothing secret is in a line."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.routing import WebSocketRoute

from planwave.api.access_rules import RULES
from planwave.api.app import ROUTERS, create_app
from planwave.api.logging_config import ACCESS_LOG
from planwave.api.middleware.audit import ACTIONS, EXEMPT
from planwave.api.openapi import http_routes
from planwave.api.routes.mcp import MCP_PATH
from planwave.api.session_cookies import SESSION_COOKIE
from planwave.graph.model import Node
from planwave.log_records import FIELDS
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from planwave.storage.audit import AuditLog, read_entries, verify
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

OPERATOR = "the operator's secret token"
NOBODY = "019a0000-0000-7000-8000-00000000000f"
CANARY = "canary-goal-4711"
GRAPH = make_graph(
    Node("s", "start", "S"),
    Node("q", "approval", "Check", data={"prompt": CANARY}),
    text_node("a", CANARY),
    edges=[("s", "q")],
).to_document()
APP = create_app(Settings(), lambda _: Service(dependencies()))
CHANGING = {
    route.operation_id or route.path
    for route in http_routes(APP)
    if {"POST", "PUT", "PATCH", "DELETE"} & set(route.methods or ())
}
SOCKETS = {
    route.path for router in ROUTERS for route in router.routes if isinstance(route, WebSocketRoute)
}


def test_every_route_that_changes_something_or_takes_tokens_is_logged_or_exempt() -> None:
    wanted = {*CHANGING, *RULES, MCP_PATH}
    known = {*ACTIONS, *EXEMPT}
    assert wanted - known == set(), "add a row to ACTIONS, or to EXEMPT with the reason"
    operations = {route.operation_id for route in http_routes(APP)}
    assert known - {*operations, *SOCKETS, MCP_PATH} == set(), "rows of routes that are gone"
    assert ACTIONS.keys() & EXEMPT.keys() == set()
    assert all(EXEMPT.values())


def test_deletes_logins_tokens_and_answers_are_strict() -> None:
    strict = ("login", "logout", "token.", "link.", "request.answered")
    for name, action in ACTIONS.items():
        wanted = action.name.startswith(strict) or action.name.endswith(".deleted")
        assert action.is_strict == wanted, name


@asynccontextmanager
async def audited(storage: Path, **settings: Any) -> AsyncGenerator[InProcessClient]:
    parts = dependencies(audit=AuditLog(storage))
    async with in_process_client(parts, token=SecretStr(OPERATOR), **settings) as calls:
        calls.headers["Authorization"] = f"Bearer {OPERATOR}"
        yield calls


async def story(calls: InProcessClient) -> dict[str, str]:
    """Do one thing of many kinds."""
    flow = await calls.post_json("/api/flows", {"name": "f", "graph": GRAPH}, 201)
    wanted = {"name": "crm", "scopes": ["run", "read"], "flows": [flow["plan_id"]]}
    token = await calls.post_json("/api/tokens", wanted, 201)
    bearer = {"Authorization": f"Bearer {token['token']}"}
    body = {"flow": flow["plan_id"], "start": True}
    run = (await calls.post("/api/execute", json=body, headers=bearer)).json()
    execution = f"/api/executions/{run['execution_id']}"
    while not (asked := (await calls.get_json(f"{execution}/requests"))["requests"]):
        pass
    request = asked[0]["request_id"]
    await calls.post_json(f"{execution}/requests/{request}", {"decision": "approve"})
    await calls.service.executions.wait(run["execution_id"])
    assert (await calls.delete(execution)).status_code == 204
    assert (await calls.delete(f"/api/tokens/{token['token_id']}")).status_code == 204
    assert (await calls.get("/api/flows", headers=bearer)).status_code == 401
    wrong = {"token": "a wrong one"}
    assert (await calls.post("/api/session", json=wrong)).status_code == 401
    assert (await calls.post("/api/session", json={"token": OPERATOR})).status_code == 204
    return {"token": token["token"], "token_id": token["token_id"], **run}


async def test_what_is_done_has_a_line_with_who_and_what(tmp_path: Path) -> None:
    async with audited(tmp_path) as calls:
        made = await story(calls)
    started, *entries = read_entries(tmp_path)
    assert started["action"] == "service.started"
    assert "token" in started["settings"]
    assert [(each["action"], each["status"]) for each in entries] == [
        ("flow.saved", 201),
        ("token.created", 201),
        ("execution.created", 202),
        ("request.answered", 200),
        ("execution.deleted", 204),
        ("token.revoked", 204),
        ("request.refused", 401),
        ("login.failed", 401),
        ("login", 204),
    ]
    by_action = {each["action"]: each for each in entries}
    created = by_action["execution.created"]
    assert created["principal"] == {"kind": "token", "id": made["token_id"], "name": "crm"}
    assert created["ids"]["new_execution_id"] == made["execution_id"]
    assert created["remote"] == "127.0.0.1"
    assert created["request_id"]
    assert by_action["token.created"]["ids"] == {"token_id": made["token_id"]}
    assert by_action["request.answered"]["ids"]["execution_id"] == made["execution_id"]
    assert by_action["request.answered"]["principal"] == {"kind": "operator"}
    assert by_action["login.failed"]["principal"] is None
    assert verify(tmp_path) == []


async def test_a_change_in_words_says_whether_it_was_tried_proposed_or_taken(
    tmp_path: Path,
) -> None:
    async with audited(tmp_path) as calls:
        plan = await calls.post_json("/api/flows", {"name": "f", "graph": GRAPH}, 201)
        path = f"/api/plans/{plan['plan_id']}/refine"
        match = {"If-Match": f'"{plan["hash"]}"'}
        for body in ({"request": " ", "dry_run": True}, {"request": " "}, {"accept": "x"}):
            await calls.post(path, json=body, headers=match)
    _, _, *entries = read_entries(tmp_path)
    assert [(each["action"], each["status"]) for each in entries] == [
        ("plan.tried", 422),
        ("plan.proposed", 422),
        ("plan.edited", 409),
    ]


async def test_a_change_of_an_execution_in_words_says_whether_it_was_proposed_or_asked_for(
    tmp_path: Path,
) -> None:
    async with audited(tmp_path) as calls:
        for body in ({"dry_run": True}, {}):
            await calls.post(f"/api/executions/{NOBODY}/replan", json=body)
    entries = list(read_entries(tmp_path))[-2:]
    assert [(each["action"], each["status"]) for each in entries] == [
        ("execution.proposed", 404),
        ("execution.replanned", 404),
    ]


async def test_every_route_writes_the_line_of_its_row(tmp_path: Path) -> None:
    """Also where it finds nothing or refuses the body: somebody tried."""
    async with audited(tmp_path) as calls:
        calls.cookies.clear()
        for route in http_routes(APP):
            path = re.sub(r"\{[^}]*\}", NOBODY, route.path)
            for method in sorted(set(route.methods or ()) - {"HEAD", "OPTIONS"}):
                before = len(list(read_entries(tmp_path)))
                answer = await calls.request(method, path, json={} if method != "GET" else None)
                lines = list(read_entries(tmp_path))[before:]
                action = ACTIONS.get(str(route.operation_id))
                wanted = [] if action is None else [(action.name, answer.status_code)]
                if route.operation_id == "openSession":  # whose status says why
                    wanted = [("login.failed", answer.status_code)]
                elif route.operation_id == "answerByLink":  # nobody is known by a wrong key
                    wanted = [("request.refused", 404)]
                found = [(each["action"], each["status"]) for each in lines]
                found = [each for each in found if each[0] != "service.started"]
                assert found == wanted, (method, path)


async def test_no_secret_no_goal_and_no_result_is_in_a_line(tmp_path: Path) -> None:
    async with audited(tmp_path) as calls:
        made = await story(calls)
    text = b"".join(each.read_bytes() for each in (tmp_path / "audit").iterdir())
    for secret in (OPERATOR, made["token"], CANARY, "a wrong one"):
        assert secret.encode() not in text


async def test_what_must_have_a_line_is_refused_while_none_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("in the way")
    async with audited(tmp_path) as calls:
        flow = await calls.post_json("/api/flows", {"name": "f", "graph": GRAPH}, 201)
        path = f"/api/flows/{flow['plan_id']}"
        problem = await calls.expect_problem("DELETE", path, 503)
        assert problem["code"] == "audit-unavailable"
        assert (await calls.get(path)).status_code == 200  # it was not deleted
        await calls.expect_problem("POST", "/api/session", 503, {"token": OPERATOR})
        (tmp_path / "audit").unlink()
        assert (await calls.delete(path)).status_code == 204
    actions = [each["action"] for each in read_entries(tmp_path)][-2:]
    assert actions == ["log.resumed", "flow.deleted"]


async def test_refused_requests_do_not_fill_the_disk(tmp_path: Path) -> None:
    async with audited(tmp_path) as calls:
        calls.headers["Authorization"] = "Bearer wrong"
        for _ in range(60):
            assert (await calls.get("/api/flows")).status_code == 401
    assert 0 < len(list(read_entries(tmp_path))) < 40


async def test_whoever_nobody_knows_does_not_fill_the_disk(tmp_path: Path) -> None:
    """Also where they are told that there is no such link, or that there were too many requests."""
    strict = Limits(requests_burst=5, requests_per_s=0.001)
    async with audited(tmp_path, limits=strict) as calls:
        del calls.headers["Authorization"]
        statuses = [(await calls.post("/links/x", data={"a": "b"})).status_code for _ in range(60)]
        assert {*statuses} == {404, 429}
        for _ in range(60):
            answer = await calls.post("/api/session", json={"token": "a wrong one"})
            assert answer.status_code in (401, 429)
    lines = [each for each in read_entries(tmp_path) if each["action"] != "service.started"]
    assert 0 < len(lines) < 40
    assert {each["action"] for each in lines} <= {"request.refused", "login.failed"}


async def test_without_a_log_nothing_is_written(tmp_path: Path) -> None:
    async with in_process_client(dependencies(directory=tmp_path)) as calls:
        await calls.post_json("/api/flows", {"name": "f", "graph": GRAPH}, 201)
    assert not (tmp_path / "audit").exists()


@pytest.mark.parametrize("chosen", [True, False, None])
def test_log_is_kept_where_others_reach_the_service_or_the_operator_says_so(
    tmp_path: Path, chosen: bool | None
) -> None:
    from planwave.bootstrap import open_audit_log
    from planwave.storage.audit import utc_now

    for host, is_open in (("127.0.0.1", False), ("0.0.0.0", True)):  # noqa: S104
        settings = Settings(host=host, audit_log=chosen, storage_dir=tmp_path)
        wanted = is_open if chosen is None else chosen
        assert (open_audit_log(settings, utc_now) is not None) == wanted


async def test_everything_that_is_listed_says_who_did_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Revisions, executions, answers, tokens and their last use; and the access log."""
    async with audited(tmp_path) as calls:
        login = await calls.post("/api/session", json={"token": OPERATOR})
        session = {"cookie": f"{SESSION_COOKIE}={login.cookies[SESSION_COOKIE]}",
                   "origin": "http://127.0.0.1"}  # fmt: skip
        calls.cookies.clear()
        del calls.headers["Authorization"]
        operator = {"Authorization": f"Bearer {OPERATOR}"}
        saved = await calls.post("/api/flows", json={"name": "f", "graph": GRAPH}, headers=operator)
        flow = f"/api/flows/{saved.json()['plan_id']}"
        changed = {
            **GRAPH,
            "nodes": [*GRAPH["nodes"], {"id": "z", "type": "text", "data": {"text": "z"}}],
        }
        assert (await calls.put(flow, json={"graph": changed}, headers=session)).status_code == 200
        wanted = {"name": "crm", "scopes": ["run", "read"], "flows": [saved.json()["plan_id"]]}
        token = (await calls.post("/api/tokens", json=wanted, headers=session)).json()

        async def last_use() -> Any:
            (found,) = (await calls.get("/api/tokens", headers=operator)).json()["tokens"]
            assert found["created_by"]["kind"] == "session"
            return found["last_used_at"]

        assert await last_use() is None
        bearer = {"Authorization": f"Bearer {token['token']}"}
        body = {"flow": saved.json()["plan_id"], "start": True}
        run = (await calls.post("/api/execute", json=body, headers=bearer)).json()
        assert datetime.fromisoformat(await last_use()).tzinfo is not None

        execution = f"/api/executions/{run['execution_id']}"
        await calls.service.executions.wait(run["execution_id"])
        asked = (await calls.get(f"{execution}/requests", headers=bearer)).json()["requests"]
        answer = f"{execution}/requests/{asked[0]['request_id']}"
        await calls.post(answer, json={"decision": "approve"}, headers=session)
        await calls.service.executions.wait(run["execution_id"])
        shown = (await calls.get(execution, headers=operator)).json()
        by_token = {"kind": "token", "id": token["token_id"], "name": "crm"}
        assert shown["created_by"] == by_token
        answered = (await calls.get("/api/requests?status=answered", headers=operator)).json()
        plan = f"/api/plans/{saved.json()['plan_id']}"
        kept = (await calls.get(f"{plan}/revisions", headers=operator)).json()["revisions"]
        assert [each["created_by"]["kind"] for each in kept] == ["session", "operator"]
        (only,) = answered["requests"]
        assert only["answered"]["answered_by"]["kind"] == "session"

        caplog.clear()
        with caplog.at_level("DEBUG", "planwave.access"):
            for headers in (operator, session, bearer, {}):
                await calls.get("/api/executions", headers=headers)
        lines: list[Any] = [getattr(r, FIELDS) for r in caplog.records if r.name == ACCESS_LOG.name]
        kinds = [(each.get("principal"), each["status"]) for each in lines]
        assert kinds == [("operator", 200), ("session", 200), ("token", 200), (None, 401)]
        assert lines[2]["principal_id"] == token["token_id"]
        assert token["token"] not in caplog.text
