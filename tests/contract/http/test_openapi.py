"""The service against its own OpenAPI document: nothing but what is documented, whatever is asked.

Requests are made up from the document (fitting ones, and such as are to be refused) and sent to the
service on a real socket. An id of the right form becomes, every other time, that of something which
is there: no made-up id ever is, and all such requests would end as 404.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final, cast
from zlib import crc32

import pytest
import requests
import schemathesis
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from hypothesis import HealthCheck, Phase, settings
from pydantic import SecretStr
from schemathesis.checks import CHECKS
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from planwave.api.app import create_app
from planwave.ids import UUID_PATTERN, new_id
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.server.in_process_client import asgi_client
from tests.support.server.running_server import NO_RATE_LIMITS, RunningServer
from tests.support.service.dependencies import dependencies
from tests.support.triggers.hook_sender import SECRETS, hook_flow, signed

NO_SERVICE: Final = cast("Any", None)
# Read when a test needs it: to make requests up takes seconds, in each process that collects tests.
DOCUMENT: Final = schemathesis.pytest.from_fixture("document")
PATIENCE_S: Final = 60
LEFT_OUT: Final = {
    "ignored_auth": "the server under test has no token; see the tests of access below",
    "positive_data_acceptance": "limits and the node library refuse more than a schema can say",
}
ALL_BUT_THOSE: Final = [CHECKS.get_one(n) for n in CHECKS.get_all_names() if n not in LEFT_OUT]
ASKING: Final = {
    "nodes": [{"id": "a", "type": "approval", "data": {"prompt": "May I?"}}],
    "edges": [],
}
CHATTING: Final = {
    "nodes": [
        {"id": "asked", "type": "chat_start", "data": {}},
        {"id": "told", "type": "text", "data": {"text": "You said {{ input }}."}},
    ],
    "edges": [
        {
            "source": "asked",
            "sourceHandle": "message",
            "target": "told",
            "data": {"channel": "flow"},
        }
    ],
}
UNSIGNED_HOOK: Final = hook_flow(auth="none", secrets=[])
TAGS: Final = (
    "catalogues",
    "chats",
    "control",
    "executions",
    "flows",
    "links",
    "notifications",
    "openai",
    "operations",
    "plans",
    "session",
    "status (short paths)",
    "tokens",
    "triggers",
)
MADE_UP: Final = settings(
    max_examples=200,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def direct_session() -> requests.Session:
    """Return a session that looks for no proxy before each request, and takes no cookie."""
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session


class Stock:
    """Plans, flows and executions that requests can be about."""

    def __init__(self, base_url: str) -> None:
        self._url = base_url
        self._session = direct_session()
        self._plan = self._made("/api/plan", {"prompt": "texts"})["plan_id"]
        self._flow = self._another_flow()
        self._trigger = self._another_trigger()
        self._chat_flow = self._made("/api/flows", {"name": "C", "graph": CHATTING})["plan_id"]
        self._chat = self._another_chat()
        self._ended = self._execution(start=True)
        self._session.get(f"{base_url}/api/executions/{self._ended}/events", timeout=PATIENCE_S)
        self._waiting = self._made("/api/execute", {"graph": ASKING, "start": True})["execution_id"]

    def put_into(self, case: schemathesis.Case) -> None:
        """Put ids of what is there in the place of made-up ones, every other time."""
        path: dict[str, Any] = case.path_parameters or {}
        changes = case.operation.method != "get"
        if _is_chosen(path.get("plan_id")):
            self._put_plan(case, path, changes=changes)
        for name in ("trigger_id", "hook_id"):
            if _is_chosen(path.get(name)):
                path[name] = self._another_trigger() if changes else self._trigger
        if _is_chosen(path.get("chat_id")) and not case.path.endswith("{chat_id}/events"):
            self._put_chat(case.path, path, changes=changes)
        if _is_chosen(path.get("execution_id")):
            self._put_execution(case.path, path, changes=changes)
        if isinstance(case.body, dict):
            self._put_into_body(case.body, case)

    def _put_plan(self, case: schemathesis.Case, path: dict[str, Any], *, changes: bool) -> None:
        """Put a plan, which for the routes of flows has a name."""
        if case.path.startswith("/api/flows"):
            path["plan_id"] = self._another_flow() if changes else self._flow
        else:
            path["plan_id"] = self._another_plan() if changes else self._plan
        if "If-Match" in (case.headers or {}):
            case.headers["If-Match"] = "*"
        if "revision" in path:
            path["revision"] = 1

    def _put_execution(self, route: str, path: dict[str, Any], *, changes: bool) -> None:
        path["execution_id"] = self._subject(route, changes)
        if "other_id" in path:
            path["other_id"] = self._ended
        if "request_id" in path:
            path["request_id"] = "r5"  # four events come before it
        if "path" in path:
            path["path"] = "a"

    def _put_chat(self, route: str, path: dict[str, Any], *, changes: bool) -> None:
        """Put a chat that is there; the stream of its changes has no end."""
        path["chat_id"], user_id, reply_id = self._another_chat() if changes else self._chat
        if "message_id" in path:
            path["message_id"] = user_id if route.endswith("/edit") else reply_id

    def _put_into_body(self, body: dict[str, Any], case: schemathesis.Case) -> None:
        wrong = case.meta is not None and case.meta.generation.mode.is_negative
        own_ids = {
            "plan_id": self._hook_flow() if case.path == "/api/triggers" else self._flow,
            "flow": self._flow,
            "from_plan_id": self._plan,
        }
        for name, own in own_ids.items():
            if isinstance(body.get(name), str) and not wrong:  # it may be all that is wrong with it
                body[name] = own

    def _subject(self, path: str, changes: bool) -> str:
        """Give an execution that a request can do something to, or see something of."""
        if "/requests" in path:
            return self._waiting
        return self._execution() if changes and not path.endswith("/fork") else self._ended

    def _another_plan(self) -> str:
        return self._made("/api/plan", {"prompt": "texts"})["plan_id"]

    def _another_flow(self) -> str:
        return self._named("F", plan_id=self._another_plan())

    def _hook_flow(self) -> str:
        return self._named("H", graph=UNSIGNED_HOOK)

    def _named(self, name: str, **source: Any) -> str:
        """Make a flow; no other has its name."""
        return self._made("/api/flows", {"name": f"{name} {new_id()}", **source})["plan_id"]

    def _another_trigger(self) -> str:
        return self._made("/api/triggers", {"plan_id": self._hook_flow()})["trigger_id"]

    def _another_chat(self) -> tuple[str, str, str]:
        """Give a chat, its message of the user, and the reply."""
        own = self._made("/api/chats", {"plan_id": self._chat_flow})["chat_id"]
        turn = self._made(f"/api/chats/{own}/messages", {"message": "Hello"})
        reply_id = turn["message"]["message_id"]
        path = f"/api/chats/{own}/messages/{reply_id}/events"
        self._session.get(self._url + path, timeout=PATIENCE_S)
        return own, turn["user_message"]["message_id"], reply_id

    def _execution(self, *, start: bool = False) -> str:
        body = {"plan_id": self._plan, "start": start}
        return self._made("/api/execute", body)["execution_id"]

    def _made(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = self._session.post(self._url + path, json=body, timeout=PATIENCE_S)
        answer.raise_for_status()
        return answer.json()

    def close(self) -> None:
        self._session.close()


def _is_chosen(given: object) -> bool:
    return (
        isinstance(given, str)
        and UUID_PATTERN.fullmatch(given) is not None
        and crc32(given.encode()) % 2 == 0
    )


@cache
def openapi() -> dict[str, Any]:
    return create_app(Settings(), NO_SERVICE).openapi()


@pytest.fixture(params=TAGS)
def document(request: pytest.FixtureRequest) -> schemathesis.BaseSchema:
    """The operations of one tag."""
    paths = {
        path: {method: each for method, each in operations.items() if request.param in each["tags"]}
        for path, operations in openapi()["paths"].items()
    }
    found = schemathesis.openapi.from_dict({**openapi(), "paths": paths})
    found.config.generation.update(with_security_parameters=False)  # no token is asked for
    return found


@pytest.fixture(scope="module")
def stock(server: RunningServer) -> Generator[Stock]:
    created = Stock(server.base_url)
    yield created
    created.close()


@pytest.mark.slow
@DOCUMENT.parametrize()
@MADE_UP
def test_responses_match_the_openapi_document(
    case: schemathesis.Case, server: RunningServer, stock: Stock
) -> None:
    stock.put_into(case)
    with direct_session() as session:
        answer = case.call(base_url=server.base_url, session=session, timeout=PATIENCE_S)
        case.validate_response(answer, checks=ALL_BUT_THOSE)


def test_every_operation_has_one_of_the_tags() -> None:
    operations = [each for path in openapi()["paths"].values() for each in path.values()]
    assert {tag for each in operations for tag in each["tags"]} == set(TAGS)
    assert all(each["tags"] for each in operations)


# -- access ---------------------------------------------------------------------------------------

OPEN: Final = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("POST", "/api/session"),
    ("GET", "/llms.txt"),
    ("POST", "/hooks/{hook_id}"),
    ("GET", "/links/{key}"),
    ("POST", "/links/{key}"),
}
"""What is answered without a token: one asks for it in its body, one for what its webhook asks for; the key of a
link is in its path."""
LOCKED: Final = Settings(token=SecretStr("the token"), limits=NO_RATE_LIMITS)
SOME_ID: Final = "019a0000-0000-7000-8000-00000000000f"


def locked_app() -> FastAPI:
    return create_app(LOCKED, lambda _: Service(dependencies()))


def routes() -> list[tuple[str, str]]:
    """Every method of every route, and every WebSocket as ``WS``."""
    return [
        (method, route.path or "")
        for route in iter_route_contexts(locked_app().routes)
        for method in route.methods or ("WS",)
    ]


def at(path: str) -> str:
    """A path with its parameters filled in."""
    return re.sub(r"{\w+_id(:path)?}", SOME_ID, path).replace("{path:path}", "a")


def code_in(body: Any) -> str:
    """Return the code of an error: a problem, or at ``/v1/`` an error as OpenAI's clients read it."""
    return body.get("error", body)["code"]


def test_protected_routes_are_listed() -> None:
    found = set(routes())
    assert found > OPEN | {("GET", "/docs"), ("GET", "/openapi.json"), ("GET", "/metrics")}
    assert {at(path) for method, path in found if method == "WS"} == {
        f"/ws/{SOME_ID}",
        f"/ws/chats/{SOME_ID}",
        f"/ws/chats/{SOME_ID}/messages/{SOME_ID}",
    }
    assert len(found) > 25


async def test_request_without_token_is_rejected() -> None:
    async with asgi_client(locked_app()) as client:
        for method, path in routes():
            if (method, path) in OPEN or method == "WS":
                continue
            for headers in ({}, {"Authorization": "Bearer no"}, {"Cookie": "planwave_session=1.a"}):
                answer = await client.request(method, at(path), headers=headers, content=b"{")
                assert answer.status_code == 401, (method, path, answer.text)
                assert answer.headers["www-authenticate"] == "Bearer"
                if method != "HEAD":
                    assert code_in(answer.json()) == "unauthorized", (method, path)
        answer = await client.post("/api/session", json={"token": "no"})
        assert answer.status_code == 401


async def test_token_of_the_service_opens_no_webhook() -> None:
    app = create_app(LOCKED, lambda _: Service(dependencies(secrets=SECRETS)))
    async with asgi_client(app) as client:
        own = {"Authorization": "Bearer the token"}
        body = {"name": "F", "graph": hook_flow()}
        flow = (await client.post("/api/flows", json=body, headers=own)).json()
        bound = {"plan_id": flow["plan_id"]}
        hook = (await client.post("/api/triggers", json=bound, headers=own)).json()["trigger_id"]
        refused = await client.post(f"/hooks/{hook}", content="1", headers=own)
        assert refused.status_code == 401
        assert (
            await client.post(f"/hooks/{hook}", content="1", headers=signed("1"))
        ).status_code == 202
        assert (await client.get("/api/triggers", headers=signed("1"))).status_code == 401


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer no"}, {"Cookie": "planwave_session=1.a"}]
)
def test_websocket_without_token_is_closed(headers: dict[str, str]) -> None:
    sockets = [path for method, path in routes() if method == "WS"]
    with TestClient(locked_app(), base_url="http://127.0.0.1") as client:
        for path in sockets:
            with (
                client.websocket_connect(at(path), headers=headers) as socket,
                pytest.raises(WebSocketDisconnect) as ended,
            ):
                socket.receive_text()
            assert ended.value.code == 4401, path
