import json
from typing import Any

import httpx2
import pytest
from fastapi.routing import APIRoute
from pydantic import ValidationError
from websockets.asyncio.client import connect

from planwave.api.app import ROUTERS
from planwave.settings import Settings
from tests.support.server.running_server import running_server


async def test_service_answers_below_its_prefix_and_without_it() -> None:
    with running_server(root_path="/tools/planwave", token="tok") as running:
        async with running.client() as client:
            for prefix in ("", "/tools/planwave"):
                assert (await client.get(f"{prefix}/api/plans")).status_code == 200
                assert (await client.get(f"{prefix}/healthz")).status_code == 200
                created = await client.post(f"{prefix}/api/plan", json={"prompt": "texts"})
                plan_id = created.json()["plan_id"]
                assert created.headers["location"] == f"/tools/planwave/api/plans/{plan_id}"
            assert (await client.get("/tools/planwaves/api/plans")).status_code == 404
            session = await client.post("/tools/planwave/api/session", json={"token": "tok"})
            assert "Path=/tools/planwave;" in session.headers["set-cookie"]
            described = (await client.get("/tools/planwave/openapi.json")).json()
            assert described["servers"] == [{"url": "/tools/planwave"}]


async def test_idempotency_key_is_taken_below_prefix() -> None:
    with running_server(root_path="/p") as running:
        async with running.client() as client:
            request: dict[str, Any] = {
                "json": {"prompt": "texts"},
                "headers": {"Idempotency-Key": "k"},
            }
            first = await client.post("/p/api/plan", **request)
            again = await client.post("/p/api/plan", **request)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]


async def test_websocket_is_accepted_below_prefix() -> None:
    with running_server(root_path="/p") as running:
        execution_id = await running.execute()
        async with connect(f"{running.ws_url}/p/ws/{execution_id}") as socket:
            assert "status" in json.loads(await socket.recv())


@pytest.mark.parametrize("path", ["p", "/p q", "/api/x", "/ws", "/assets", "//p", "/<script>"])
def test_prefix_that_cannot_be_one_is_refused(path: str) -> None:
    with pytest.raises(ValidationError):
        Settings(root_path=path)


def test_service_without_prefix_has_no_other_addresses() -> None:
    assert Settings(root_path="/").root_path == ""
    with running_server() as running:
        assert httpx2.get(f"{running.base_url}/p/api/plans").status_code == 404


@pytest.mark.parametrize("prefix", ["", "/p"])
async def test_addresses_of_other_protocols_may_end_with_a_slash(prefix: str) -> None:
    """Each route of ``/v1``, and ``/mcp``, answers as without the slash, and redirects nobody."""
    start = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
    }}  # fmt: skip
    accept = {"Accept": "application/json, text/event-stream"}
    with running_server(root_path=prefix) as running:
        async with running.client() as client:
            paths = {"/mcp": ("POST", 200)}
            for route in routes_below("/v1/"):
                path = route.path.replace("{model_id:path}", "planwave/planner")
                paths[path] = next(iter(route.methods or {"GET"})), 0
            for path, (method, status) in paths.items():
                answers = [
                    await client.request(method, f"{prefix}{path}{end}", json=start, headers=accept)
                    for end in ("", "/")
                ]
                assert answers[0].status_code == answers[1].status_code, path
                assert answers[0].status_code not in (404, 405, 307), path
                assert status in (0, answers[1].status_code)
            for path in ("/api/plans/", "/mcp//", "/v1/", "/v1/models//"):
                assert (await client.get(f"{prefix}{path}")).status_code == 404


def routes_below(prefix: str) -> list[APIRoute]:
    """Return the routes of the application below a path."""
    routes = [route for router in ROUTERS for route in router.routes]
    found = [each for each in routes if isinstance(each, APIRoute)]
    return [each for each in found if each.path.startswith(prefix)]
