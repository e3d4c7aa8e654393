"""Streams end with what they were opened with: a revoked or expired token, a closed session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import SecretStr
from starlette.routing import Mount, WebSocketRoute

from planwave.api.app import ROUTERS, create_app
from planwave.api.middleware.credential_lifetime import CredentialLifetimeMiddleware
from planwave.api.openapi import http_routes
from planwave.api.session_cookies import SESSION_COOKIE
from planwave.graph.model import Node
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.graph.builders import make_graph
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

    def __init__(self, app: Any, path: str, *headers: tuple[str, str]) -> None:
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
            self.scope["method"] = "GET"
        self.sent: list[dict[str, Any]] = []
        self._received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        first = {"type": "websocket.connect"} if kind == "websocket" else {"type": "http.request"}
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
        body = {"flow_id": flow["flow_id"], "start": True}
        run = await calls.post_json("/api/execute", body, 202)
        app: Any = calls._transport.app  # type: ignore[attr-defined]
        yield calls, app, flow["flow_id"], run["execution_id"]


async def token_for(calls: InProcessClient, flow_id: str, **more: Any) -> dict[str, Any]:
    wanted = {"name": "n", "scopes": ["run", "read", "chat"], "flows": [flow_id], **more}
    return await calls.post_json("/api/tokens", wanted, 201)


def bearer(token: dict[str, Any]) -> tuple[str, str]:
    return "authorization", f"Bearer {token['token']}"


def has_begun(sent: list[dict[str, Any]]) -> bool:
    return len(sent) >= 2


async def test_streams_end_when_their_token_is_revoked_and_no_others() -> None:
    async with served() as (calls, app, flow_id, execution_id):
        token, other = await token_for(calls, flow_id), await token_for(calls, flow_id)
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
    async with served(lambda: datetime.now(UTC) + leap[0]) as (calls, app, flow_id, execution_id):
        token = await token_for(calls, flow_id, expires_in_s=3_600)
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


def streaming_operations() -> set[str]:
    """The operations that the OpenAPI document says may answer with events."""
    app = create_app(Settings(), lambda _: Service(dependencies()))
    found: set[str] = set()
    for route in http_routes(app):
        answers: dict[Any, Any] = getattr(route, "responses", None) or {}
        for answer in answers.values():
            if "text/event-stream" in (answer.get("content") or {}):
                found.add(str(route.operation_id))
    return found


def test_every_stream_is_inside_the_one_middleware() -> None:
    """A new stream fails here until its row says how its end was tried."""
    tried = {"streamEvents", "/ws/{execution_id:path}", "streamChat", "/ws/chats/{chat_id}"}
    by_the_same_wrapper = {
        "createPlan",
        "streamReply",
        "/ws/chats/{chat_id}/messages/{message_id}",
    }
    without_principal = {"receiveWebhook"}
    found = {*streaming_operations(), *SOCKETS}
    assert found == tried | by_the_same_wrapper | without_principal
    app = create_app(Settings(), lambda _: Service(dependencies()))
    assert CredentialLifetimeMiddleware in [each.cls for each in app.user_middleware]
    assert not [each for each in app.routes if isinstance(each, Mount)]
