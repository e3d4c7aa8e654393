"""Every route that reads is limited per principal, or is listed as light: made from the routing table."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest
from fastapi.routing import APIRoute

from planwave.api import rate_limit
from planwave.api.app import ROUTERS, attach_service, create_detached_app
from planwave.api.dependencies import AUTHENTICATED, LIGHT_ROUTES
from planwave.ids import new_id
from planwave.service.service import Service
from planwave.settings import Settings
from tests.support.server.in_process_client import asgi_client
from tests.support.server.running_server import NO_RATE_LIMITS
from tests.support.service.dependencies import dependencies

_HOLD = AUTHENTICATED[-1]
_READS = [
    route
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and "GET" in route.methods
]
_LIMITED = [route for route in _READS if _HOLD in route.dependencies and route.operation_id]
_STREAM = "streamEvents"


def path_of(route: APIRoute) -> str:
    """Return the path with ids that belong to nothing."""
    return re.sub(r"{\w+(:path)?}", lambda _: new_id(), route.path)


@asynccontextmanager
async def busy_client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of a service whose principal has as many large responses as it may."""
    monkeypatch.setattr(rate_limit, "RESPONSE_WAIT_S", 0.001)
    limits = NO_RATE_LIMITS.model_copy(update={"operator_heavy_responses": 1})
    settings = Settings(limits=limits)
    app = create_detached_app(settings)
    async with AsyncExitStack() as opened:
        service = await opened.enter_async_context(Service(dependencies(limits=limits)))
        state = attach_service(app, settings, service)
        client = await opened.enter_async_context(asgi_client(app))
        principal: list[str] = []
        slot = state.response_limiter.slot

        def noted(of: str, name: str, limit: int) -> object:
            principal.append(of)
            return slot(of, name, limit)

        monkeypatch.setattr(state.response_limiter, "slot", noted)
        assert (await client.get("/api/plans")).status_code == 200
        await opened.enter_async_context(slot(principal[0], "operator_heavy_responses", 1))
        yield client


@pytest.mark.parametrize("route", _LIMITED, ids=lambda route: route.operation_id)
async def test_a_route_is_limited_or_listed_as_light(
    route: APIRoute, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with busy_client(monkeypatch) as client:
        if route.operation_id in LIGHT_ROUTES:
            answer = await client.get(path_of(route))
            assert answer.status_code != 429, answer.text
        if route.operation_id not in LIGHT_ROUTES or route.operation_id == _STREAM:
            answer = await client.get(path_of(route), params={"format": "json"})
            assert (answer.status_code, answer.json()["code"]) == (429, "too-many-requests")
            assert answer.headers["retry-after"] == "5"


def test_the_light_routes_exist_and_few_routes_are_not_limited() -> None:
    assert {route.operation_id for route in _READS} >= LIGHT_ROUTES
    others = {route.operation_id or route.path for route in _READS if route not in _LIMITED}
    tells_to_upgrade = "/ws/{execution_id:path}"
    assert others == {"getHealth", "getReadiness", "getMetrics", "openLink", tells_to_upgrade}
