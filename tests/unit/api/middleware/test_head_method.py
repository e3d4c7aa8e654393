from __future__ import annotations

import asyncio

import httpx2
import pytest

from planwave.api.schemas.examples import EXECUTION_ID
from tests.support.polling import until
from tests.support.server.running_server import RunningServer, running_server


async def head_of(server: RunningServer, path: str) -> tuple[httpx2.Response, httpx2.Response]:
    async with server.client() as client:
        return await client.head(path), await client.get(path)


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/api/plans", "/api/limits", "/api/nothing", "/api/execute"]
)
async def test_head_response_has_headers_of_get_and_no_body(
    server: RunningServer, path: str
) -> None:
    head, whole = await head_of(server, path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert whole.content
    for name in ("content-type", "allow"):
        assert head.headers.get(name) == whole.headers.get(name)


async def test_head_of_problem_has_length_of_get(server: RunningServer) -> None:
    head, whole = await head_of(server, f"/api/executions/{EXECUTION_ID}")
    assert head.status_code == whole.status_code == 404
    assert head.headers["content-length"] == whole.headers["content-length"]


async def test_head_of_event_stream_returns_at_once(server: RunningServer) -> None:
    execution_id = await server.execute("held")
    async with server.client() as client, asyncio.timeout(60):
        head = await client.head(f"/api/executions/{execution_id}/events")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"].startswith("text/event-stream")
        await until(lambda: server.service.load.subscribers == 0)
        assert (await client.head("/healthz")).status_code == 200
    server.release(execution_id)


async def test_allow_header_lists_head(server: RunningServer) -> None:
    async with server.client() as client:
        answer = await client.put("/api/plans")
    assert answer.headers["allow"] == "GET, HEAD"


async def test_head_requires_token() -> None:
    with running_server(token="secret") as server:
        async with httpx2.AsyncClient(base_url=server.base_url) as client:
            assert (await client.head("/api/plans")).status_code == 401
            assert (await client.head("/healthz")).status_code == 200
