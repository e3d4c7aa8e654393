import json
from typing import Any

import httpx2
import pytest
from pydantic import ValidationError
from websockets.asyncio.client import connect

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
