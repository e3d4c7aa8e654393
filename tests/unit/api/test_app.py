import inspect
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import websockets
from fastapi import FastAPI
from fastapi.routing import APIWebSocketRoute, iter_route_contexts
from pydantic import SecretStr
from websockets.asyncio.client import connect

from planwave.api.app import create_app
from planwave.api.auth import require_principal
from planwave.api.middleware.host_origin import HEALTH_PATHS
from planwave.api.openapi import dependencies_of, http_routes
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.running_server import RunningServer, running_server
from tests.support.service.dependencies import dependencies

ID = "01900000-0000-7000-8000-000000000001"


def app_of(**settings: Any) -> FastAPI:
    return create_app(
        Settings(**settings), lambda _: Service(dependencies(make_graph(text_node("a"))))
    )


@pytest.fixture(scope="module")
def locked() -> Iterator[RunningServer]:
    with running_server(token=SecretStr("tok")) as running:
        yield running


async def test_a_healthy_application_says_so() -> None:
    app = app_of()
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1"
        ) as client,
    ):
        assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_every_route_passes_the_one_check(locked: RunningServer) -> None:
    walked: set[str] = set()
    async with httpx2.AsyncClient(base_url=locked.base_url) as client:
        for route in http_routes(app_of()):
            path = re.sub(r"\{[^}]*\}", ID, str(route.path))
            for method in route.methods or ():
                for headers in ({}, {"Authorization": "Bearer wrong"}):
                    answer = await client.request(
                        method, path, headers=headers, json={"token": "wrong"}
                    )
                    expected = 200 if path in HEALTH_PATHS else 401
                    assert answer.status_code == expected, (method, path)
                walked.add(f"{method} {route.path}")
    assert {"GET /healthz", "POST /api/session", "GET /openapi.json", "GET /metrics"} <= walked
    assert len(walked) > 25


async def test_every_websocket_passes_the_one_check(locked: RunningServer) -> None:
    app = app_of()
    sockets = [
        route
        for route in iter_route_contexts(app.routes)
        if isinstance(route.original_route, APIWebSocketRoute)
    ]
    assert sockets
    for route in sockets:
        assert require_principal in list(dependencies_of(route.dependant))
        path = re.sub(r"\{[^}]*\}", ID, str(route.path))
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "planwave_session=x"}):
            async with connect(locked.ws_url + path, additional_headers=headers) as socket:
                with pytest.raises(websockets.ConnectionClosed):
                    await socket.recv()
                assert socket.close_code == 4401


async def test_a_body_is_not_looked_at_before_the_token(locked: RunningServer) -> None:
    for body, kind in ((b"{", "application/json"), (b"\xff", "text/plain"), (b"", "")):
        answer = httpx2.post(
            f"{locked.base_url}/api/plan", content=body, headers={"Content-Type": kind}
        )
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_past_a_burst_requests_are_told_when_to_come_back() -> None:
    with running_server(limits=Limits(requests_per_s=0.01, requests_burst=3)) as running:
        async with running.client() as client:
            for _ in range(3):
                assert (await client.get("/api/plans")).status_code == 200
            told = await client.get("/api/plans")
            assert (told.status_code, told.json()["code"]) == (429, "too-many-requests")
            assert 40 <= int(told.headers["retry-after"]) <= 100
            assert (await client.get("/healthz")).status_code == 200


def test_nothing_a_route_depends_on_is_called_in_a_thread() -> None:
    for route in http_routes(app_of()):
        for call in [route.endpoint, *dependencies_of(route.dependant)]:
            assert inspect.iscoroutinefunction(call), (route.path, call)
