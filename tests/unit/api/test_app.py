import inspect
from typing import Any

from fastapi import FastAPI

from planwave.api.app import create_app
from planwave.api.openapi import dependencies_of, http_routes
from planwave.service.service import Service
from planwave.settings import Limits, Settings
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.running_server import running_server
from tests.support.service.dependencies import dependencies


def app_of(**settings: Any) -> FastAPI:
    return create_app(
        Settings(**settings), lambda _: Service(dependencies(make_graph(text_node("a"))))
    )


async def test_requests_over_burst_get_retry_after_except_health() -> None:
    with running_server(limits=Limits(requests_per_s=0.01, requests_burst=3)) as running:
        async with running.client() as client:
            for _ in range(3):
                assert (await client.get("/api/plans")).status_code == 200
            received = await client.get("/api/plans")
            assert (received.status_code, received.json()["code"]) == (429, "too-many-requests")
            assert 40 <= int(received.headers["retry-after"]) <= 100
            assert (await client.get("/healthz")).status_code == 200


def test_routes_and_dependencies_are_coroutines() -> None:
    for route in http_routes(app_of()):
        for call in [route.endpoint, *dependencies_of(route.dependant)]:
            is_async = inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call)
            assert is_async, (route.path, call)
