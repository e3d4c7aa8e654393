"""Streams end with what they were opened with: a revoked or expired token, a closed session."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from pydantic import SecretStr
from starlette.routing import Mount, Route, WebSocketRoute

from planwave.api.app import ROUTERS, create_app
from planwave.api.middleware.credential_lifetime import (
    CHECK_INTERVAL_S,
    CredentialLifetimeMiddleware,
)
from planwave.api.openapi import http_routes
from planwave.api.session_cookies import SESSION_COOKIE
from planwave.api.streaming.sse import EventStream
from planwave.graph.model import Node
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.graph.builders import make_graph
from tests.support.mcp.planwave_server import SESSION_HEADER, mcp_session
from tests.support.nodes.held_nodes import HeldNode
from tests.support.server.in_process_client import InProcessClient, in_process_client
from tests.support.service.dependencies import dependencies

OPERATOR = "the operator's token"
ASKS = make_graph(
    Node("s", "start", "S"),
    Node("q", "approval", "Check", data={"prompt": "?"}),
    edges=[("s", "q")],
).to_document()
SOCKETS = {
    route.path for router in ROUTERS for route in router.routes if isinstance(route, WebSocketRoute)
}
EXECUTION_STREAMS = ("/ws/{id}?mode=poll", "/ws/{id}?mode=events", "/api/executions/{id}/events")


class Connection:
    """A request or WebSocket at the whole application, without a network."""

    def __init__(self, app: Any, path: str, *headers: tuple[str, str], body: Any = None) -> None:
        path, _, query = path.partition("?")
        kind = "websocket" if path.startswith("/ws/") else "http"
        given = [("host", "127.0.0.1"), ("origin", "http://127.0.0.1"), *headers]
        self.scope: dict[str, Any] = {
            "type": kind, "asgi": {"version": "3.0"}, "http_version": "1.1",
            "scheme": "ws" if kind == "websocket" else "http", "path": path,
            "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in given],
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "subprotocols": [],
            "state": {}, "extensions": {},
        }  # fmt: skip
        if kind == "http":
            self.scope["method"] = "GET" if body is None else "POST"
        self.sent: list[dict[str, Any]] = []
        self._received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        first: dict[str, Any] = {"type": "websocket.connect"}
        if kind == "http":
            content = b"" if body is None else json.dumps(body).encode()
            first = {"type": "http.request", "body": content}
        self._received.put_nowait(first)
        self._changed = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(
            app(self.scope, self._received.get, self._send)
        )

    async def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        self._changed.set()

    async def until(self, is_met: Callable[[list[dict[str, Any]]], bool]) -> None:
        async with asyncio.timeout(30):
            while not is_met(self.sent):
                self._changed.clear()
                await self._changed.wait()

    @property
    def is_open(self) -> bool:
        return not self.task.done()

    async def ended(self) -> str:
        """Wait for the end; return how it was told."""
        async with asyncio.timeout(30):
            await self.task
        last = self.sent[-1]
        if last["type"] == "websocket.close":
            return f"close {last['code']}"
        event = last["body"].decode().strip().splitlines()
        assert not last.get("more_body")
        return f"{event[0]} {json.loads(event[1].removeprefix('data: '))['code']}"


EXPECTED = {"http": "event: problem access-ended", "websocket": "close 4401"}


@asynccontextmanager
async def served(now: Any = None) -> AsyncGenerator[tuple[InProcessClient, Any, str, str]]:
    """An application with a flow whose execution waits; and the ids of both."""
    parts = dependencies() if now is None else replace(dependencies(), now=now)
    async with in_process_client(parts, token=SecretStr(OPERATOR)) as calls:
        calls.headers["Authorization"] = f"Bearer {OPERATOR}"
        flow = await calls.post_json("/api/flows", {"name": "f", "graph": ASKS}, 201)
        body = {"flow": flow["plan_id"], "start": True}
        run = await calls.post_json("/api/execute", body, 202)
        app: Any = calls._transport.app  # type: ignore[attr-defined]
        yield calls, app, flow["plan_id"], run["execution_id"]


async def token_for(calls: InProcessClient, plan_id: str, **more: Any) -> dict[str, Any]:
    wanted = {"name": "n", "scopes": ["run", "read", "chat"], "flows": [plan_id], **more}
    return await calls.post_json("/api/tokens", wanted, 201)


def bearer(token: dict[str, Any]) -> tuple[str, str]:
    return "authorization", f"Bearer {token['token']}"


def has_begun(sent: list[dict[str, Any]]) -> bool:
    return len(sent) >= 2


async def test_streams_end_when_their_token_is_revoked_and_no_others() -> None:
    async with served() as (calls, app, plan_id, execution_id):
        token, other = await token_for(calls, plan_id), await token_for(calls, plan_id)
        opened = [
            Connection(app, path.format(id=execution_id), bearer(token))
            for path in EXECUTION_STREAMS
        ]
        kept = Connection(app, EXECUTION_STREAMS[1].format(id=execution_id), bearer(other))
        for each in (*opened, kept):
            await each.until(has_begun)
        assert all(each.is_open for each in opened)
        await calls.delete(f"/api/tokens/{token['token_id']}")
        for each in opened:
            assert await each.ended() == EXPECTED[each.scope["type"]]
        assert kept.is_open
        await calls.delete(f"/api/tokens/{other['token_id']}")
        assert await kept.ended() == EXPECTED["websocket"]


async def test_streams_end_when_their_token_expires() -> None:
    leap = [timedelta()]
    async with served(lambda: datetime.now(UTC) + leap[0]) as (calls, app, plan_id, execution_id):
        token = await token_for(calls, plan_id, expires_in_s=3_600)
        opened = [
            Connection(app, path.format(id=execution_id), bearer(token))
            for path in EXECUTION_STREAMS
        ]
        for each in opened:
            await each.until(has_begun)
        leap[0] = timedelta(hours=2)
        for each in opened:
            assert await each.ended() == EXPECTED[each.scope["type"]]


async def test_streams_of_a_browser_end_with_its_session() -> None:
    async with served() as (calls, app, _flow, execution_id):
        chat = await calls.post_json("/api/chats", {"config": {"model": "m"}}, 201)
        chat_id = chat.get("chat_id") or chat["chat"]["chat_id"]
        answer = await calls.post("/api/session", json={"token": OPERATOR})
        cookie = answer.cookies[SESSION_COOKIE]
        paths = [*EXECUTION_STREAMS, f"/ws/chats/{chat_id}", f"/api/chats/{chat_id}/events"]
        opened = [
            Connection(app, path.format(id=execution_id), ("cookie", f"{SESSION_COOKIE}={cookie}"))
            for path in paths
        ]
        for each in opened:
            await each.until(has_begun)
        del calls.headers["Authorization"]
        calls.cookies.clear()
        left = await calls.delete(
            "/api/session",
            headers={"cookie": f"{SESSION_COOKIE}={cookie}", "origin": "http://127.0.0.1"},
        )
        assert left.status_code == 204
        for each in opened:
            assert await each.ended() == EXPECTED[each.scope["type"]]


class Stream(NamedTuple):
    """One way to open a stream.

    Attributes:
        sends: The class of the response, the path of the WebSocket, or of the other application.
        path: Where it is asked for; ids in braces are filled in.
        body: What is posted; None for a GET.
        for_tokens: Whether an access token may open it; else only a session may.
    """

    sends: str
    path: str
    body: Any = None
    for_tokens: bool = False


_CALL = {
    "jsonrpc": "2.0", "id": 1, "method": "tools/call",
    "params": {"name": "helper", "arguments": {"message": "hi"}},
}  # fmt: skip
_MESSAGES = [{"role": "user", "content": "hi"}]
STREAMS = (
    Stream("ExecutionEventStream", "/api/executions/{execution}/events", for_tokens=True),
    Stream("PlanStream", "/api/plan?stream=1", {"prompt": "do it"}),
    Stream("PlanStream", "/api/executions/{execution}/replan?stream=1", {"request": "do it", "dry_run": True}),
    Stream("ReplyEventStream", "/api/chats/{chat}/messages/{reply}/events"),
    Stream("ChatChangeStream", "/api/chats/{chat}/events"),
    Stream(
        "AnswerStream", "/v1/chat/completions",
        {"model": "helper", "messages": _MESSAGES, "stream": True}, for_tokens=True,
    ),
    Stream(
        "AnswerStream", "/v1/responses",
        {"model": "helper", "input": "hi", "stream": True}, for_tokens=True,
    ),
    Stream("/mcp", "/mcp", _CALL, for_tokens=True),
    Stream("/ws/{execution_id:path}", "/ws/{execution}?mode=events", for_tokens=True),
    Stream("/ws/chats/{chat_id}", "/ws/chats/{chat}"),
    Stream("/ws/chats/{chat_id}/messages/{message_id}", "/ws/chats/{chat}/messages/{reply}"),
)  # fmt: skip
"""Every kind of stream; a new one fails the test below until it has a row."""


def kinds_of_streams(kind: type[EventStream] = EventStream) -> set[str]:
    """Return the responses that are streams, the WebSockets, and the other applications."""
    found = {each.__name__ for each in kind.__subclasses__() if not each.__name__.startswith("_")}
    return found.union(*(kinds_of_streams(each) for each in kind.__subclasses__()))


def test_every_kind_of_stream_has_a_row() -> None:
    app = create_app(Settings(), lambda _: Service(dependencies()))
    others = {each.path for each in app.routes if type(each) is Route}
    assert {each.sends for each in STREAMS} == kinds_of_streams() | SOCKETS | others
    assert CredentialLifetimeMiddleware in [each.cls for each in app.user_middleware]
    assert not [each for each in app.routes if isinstance(each, Mount)]
    assert 2 * CHECK_INTERVAL_S < 1


def test_every_route_that_says_it_streams_has_a_row() -> None:
    app = create_app(Settings(), lambda _: Service(dependencies()))
    rows = {re.sub(r"\{\w+\}", "{}", each.path.partition("?")[0]) for each in STREAMS}
    streaming = {
        re.sub(r"\{\w+\}", "{}", str(route.path))
        for route in http_routes(app)
        for answer in (getattr(route, "responses", None) or {}).values()
        if "text/event-stream" in (answer.get("content") or {})
    }
    assert len(streaming) > 3
    assert streaming - rows == {"/hooks/{}"}, "a sender of webhooks has no credential that ends"


class HeldPlanner:
    """Plans for ever."""

    async def create_plan(self, *_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    revise = create_plan


HOLDS = make_graph(
    Node("s", "chat_start", "S"), Node("h", "held", "H"), edges=[("s", "h")]
).to_document()


@pytest.mark.parametrize("ends_by", ["revoked", "expired", "session closed"])
async def test_each_kind_of_stream_ends_with_what_opened_it(ends_by: str) -> None:
    leap = [timedelta()]
    parts = dependencies(types=[HeldNode()], planner=HeldPlanner())
    parts = replace(parts, now=lambda: datetime.now(UTC) + leap[0])
    async with in_process_client(parts, token=SecretStr(OPERATOR)) as calls:
        calls.headers["Authorization"] = f"Bearer {OPERATOR}"
        app: Any = calls._transport.app  # type: ignore[attr-defined]
        ids, plan_id = await begin_all(calls)
        if ends_by == "session closed":
            login = await calls.post("/api/session", json={"token": OPERATOR})
            credential = "cookie", f"{SESSION_COOKIE}={login.cookies[SESSION_COOKIE]}"
        else:
            expires = {"expires_in_s": 3_600} if ends_by == "expired" else {}
            token = await token_for(calls, plan_id, **expires)
            credential = bearer(token)
        headers = await mcp_session(calls, dict([credential]))
        session = SESSION_HEADER, headers[SESSION_HEADER]
        rows = [each for each in STREAMS if each.for_tokens or ends_by == "session closed"]
        opened = [
            Connection(
                app, each.path.format(**ids), credential, session, ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"), body=each.body,
            )
            for each in rows
        ]  # fmt: skip
        for row, each in zip(rows, opened, strict=True):
            await each.until(lambda sent: len(sent) >= 1)
            assert each.sent[0].get("status", 200) == 200, (row, each.sent)
        assert all(each.is_open for each in opened)
        if ends_by == "revoked":
            await calls.delete(f"/api/tokens/{token['token_id']}")
        elif ends_by == "expired":
            leap[0] = timedelta(hours=2)
        else:
            del calls.headers["Authorization"]
            calls.cookies.clear()
            headers = {"cookie": credential[1], "origin": "http://127.0.0.1"}
            assert (await calls.delete("/api/session", headers=headers)).status_code == 204
        for each in opened:
            assert await each.ended() == EXPECTED[each.scope["type"]]


async def begin_all(calls: InProcessClient) -> tuple[dict[str, str], str]:
    """Begin what streams are about; return the ids, and that of the flow."""
    plan_id = (await calls.post_json("/api/flows", {"name": "helper", "graph": HOLDS}, 201))[
        "plan_id"
    ]
    published = {"model": True, "tool": True}
    answer = await calls.put(f"/api/flows/{plan_id}/publication", json=published)
    assert answer.status_code == 200, answer.text
    run = await calls.post_json("/api/execute", {"flow": plan_id, "start": True}, 202)
    chat = await calls.post_json("/api/chats", {"plan_id": plan_id}, 201)
    chat_id = chat.get("chat_id") or chat["chat"]["chat_id"]
    turn = await calls.post_json(f"/api/chats/{chat_id}/messages", {"message": "hi"}, 202)
    ids = {
        "execution": run["execution_id"],
        "chat": chat_id,
        "reply": turn["message"]["message_id"],
    }
    return ids, plan_id
