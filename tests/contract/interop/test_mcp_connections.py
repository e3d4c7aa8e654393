"""Clients of the MCP server that cancel, leave, come without a token, or while it goes down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Set
from typing import Any

import httpx2
import pytest
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from planwave.interop.mcp_server import endpoint
from tests.support.mcp.planwave_server import MODES, call, fail, mcp_client
from tests.support.polling import until
from tests.support.server.in_process_client import in_process_client
from tests.support.server.running_server import NO_RATE_LIMITS, RunningServer, running_server
from tests.support.service.dependencies import dependencies

TOKEN = "a-long-random-token"


async def newest(server: RunningServer, before: Set[str] | None = None) -> str:
    """Wait for an execution whose ``held`` node begins, now or after these; give its id."""
    known = set(server.held.started if before is None else before)
    await until(lambda: server.held.started - known)
    (own,) = server.held.started - known
    return own


async def ended(server: RunningServer, execution_id: str) -> str:
    """Wait for the end of an execution; give its status."""

    async def wait() -> str:
        async for _ in server.service.executions.watch(execution_id):
            pass
        return (await server.service.executions.state(execution_id)).status

    return await server.on_loop(wait())


@pytest.mark.parametrize("mode", MODES)
async def test_a_cancelled_call_cancels_its_execution(server: RunningServer, mode: str) -> None:
    async with mcp_client(server, mode) as client:
        calling = asyncio.get_running_loop().create_task(client.call_tool("run", {"goal": "held"}))
        own = await newest(server)
        calling.cancel()
        assert await ended(server, own) == "cancelled"
        assert (await call(client, "result", execution_id=own))["cause"] == (
            "the MCP client cancelled the call"
        )


async def test_a_cancelled_call_that_asked_for_it_leaves_its_execution(
    server: RunningServer,
) -> None:
    async with mcp_client(server) as client:
        arguments = {"goal": "held", "on_disconnect": "continue"}
        calling = asyncio.get_running_loop().create_task(client.call_tool("run", arguments))
        own = await newest(server)
        calling.cancel()
        await asyncio.wait([calling])
        assert (await call(client, "status", execution_id=own))["status"] == "executing"
        server.release(own)
        assert (await call(client, "result", execution_id=own, wait_s=60))["result"] == "after"


async def test_a_cancelled_wait_leaves_the_execution(server: RunningServer) -> None:
    async with mcp_client(server, "legacy") as client:
        own = (await call(client, "run", goal="held", wait_s=0))["execution_id"]
        waiting = asyncio.get_running_loop().create_task(
            client.call_tool("result", {"execution_id": own, "wait_s": 60})
        )
        await until(lambda: server.service.load.subscribers)
        waiting.cancel()
        await asyncio.wait([waiting])
        server.release(own)
        assert (await call(client, "result", execution_id=own, wait_s=60))["result"] == "after"


async def test_a_client_of_a_session_that_is_gone_leaves_its_execution(
    server: RunningServer,
) -> None:
    async with server.client() as raw:
        raw.headers["accept"] = "application/json, text/event-stream"
        opening = await raw.post("/mcp", json=request("initialize", INITIALIZE))
        session = {"mcp-session-id": opening.headers["mcp-session-id"]}
        await raw.post("/mcp", headers=session, json=INITIALIZED)
        before = set(server.held.started)
        run = request("tools/call", {"name": "run", "arguments": {"goal": "held"}})
        async with raw.stream("POST", "/mcp", headers=session, json=run):
            own = await newest(server, before)
    server.release(own)  # its connection is closed now
    assert await ended(server, own) == "completed"
    async with mcp_client(server) as another:
        assert (await call(another, "result", execution_id=own))["result"] == "after"


INITIALIZE = {
    "protocolVersion": LATEST_HANDSHAKE_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.fixture
def guarded() -> Iterator[RunningServer]:
    """A server with a token, which two executions a minute are allowed."""
    limits = NO_RATE_LIMITS.model_copy(update={"executions_per_minute": 2})
    with running_server(token=TOKEN, limits=limits) as running:
        yield running


async def test_every_request_carries_the_token(guarded: RunningServer) -> None:
    for method in ("GET", "POST", "DELETE"):
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            async with httpx2.AsyncClient(base_url=guarded.base_url) as raw:
                answer = await raw.request(method, "/mcp", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    async with mcp_client(guarded) as client:
        assert (await call(client, "run", goal="texts"))["result"] == "two"
        assert (await call(client, "run", goal="texts"))["result"] == "two"
        assert "EXECUTIONS_PER_MINUTE" in await fail(client, "run", goal="texts")


async def test_open_calls_count_as_connections() -> None:
    limits = NO_RATE_LIMITS.model_copy(update={"socket_connections": 1})
    with running_server(limits=limits) as server:
        async with server.client() as raw:
            raw.headers["accept"] = "application/json, text/event-stream"
            opening = await raw.post("/mcp", json=request("initialize", INITIALIZE))
            session = {"mcp-session-id": opening.headers["mcp-session-id"]}
            await raw.post("/mcp", headers=session, json=INITIALIZED)
            # An answer is read a little before the server has closed its stream.
            for _ in range(100):
                async with raw.stream("GET", "/mcp", headers=session) as listening:
                    if listening.status_code == 200:
                        refused = await raw.post("/mcp", json=request("initialize", INITIALIZE))
                        break
                await asyncio.sleep(0.05)
            else:
                pytest.fail("the slots of the answered requests stay in use")
            assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")


async def test_a_server_that_goes_down_returns_what_there_is() -> None:
    with running_server() as server:
        async with mcp_client(server) as modern, mcp_client(server, "legacy") as legacy:
            for client in (modern, legacy):
                await client.list_tools()  # the SDK would do it after the call, and be refused
            calls = [
                asyncio.get_running_loop().create_task(
                    client.call_tool("run", {"goal": "held", "wait_s": 600})
                )
                for client in (modern, legacy)
            ]
            await until(lambda: len(server.held.started) == 2)
            server.loop.call_soon_threadsafe(server.stop.receive)
            results = [await each for each in calls]
            for result in results:
                assert result.structured_content["status"] == "executing"
                assert not result.is_error
            for own in server.held.started:
                server.release(own)


async def test_a_fault_is_logged_and_never_shown(
    server: RunningServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(server.service.plans, "create", broken)
    async with mcp_client(server) as client:
        text = await fail(client, "plan", goal="texts")
    assert text == "a fault in planwave ended the call; its log says more"
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == [
        "the tool 'plan' failed"
    ]


async def test_there_is_no_route_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "is_installed", lambda: False)
    async with in_process_client(dependencies()) as client:
        problem = await client.expect_problem("POST", "/mcp", 404)
    assert problem["code"] == "mcp-not-installed"
