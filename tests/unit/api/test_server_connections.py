"""What clients may rely on at the level of HTTP and TCP; the parser is uvicorn's, with h11."""

import asyncio
import json
import select
import socket
import sys
from contextlib import AsyncExitStack

import pytest

from planwave.api.server import bind_socket
from tests.support.server.raw_http import WEBSOCKET_UPGRADE, RawConnection, raw_connection
from tests.support.server.running_server import PlanningGate, RunningServer, running_server

CHECK = b'{"graph": {"nodes": [], "edges": []}}'
IN_CHUNKS = b"%x\r\n%s\r\n0\r\n" % (len(CHECK), CHECK)
JSON = "Content-Type: application/json"


async def healthy(raw: RawConnection) -> bool:
    await raw.send("GET", "/healthz")
    return (await raw.read_response()).status == 200


async def plan_under_way(running: RunningServer, raw: RawConnection, goal: str) -> PlanningGate:
    """Request a plan; return the gate that its planner waits at."""
    gate = running.planner.gates[goal] = PlanningGate()
    body = json.dumps({"prompt": goal}).encode()
    await raw.send("POST", "/api/plan", JSON, f"Content-Length: {len(body)}", body=body)
    await running.on_loop(gate.reached.wait())
    return gate


@pytest.mark.skipif(sys.platform != "linux", reason="options of Linux")
def test_silent_client_is_not_accepted_and_unread_data_times_out() -> None:
    with bind_socket("127.0.0.1", 0) as (listener,), socket.socket() as client:
        listener.listen()
        client.connect(listener.getsockname())
        assert select.select([listener], [], [], 0.2)[0] == []
        client.send(b"G")
        assert select.select([listener], [], [], 10)[0] == [listener]
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000


async def test_a_connection_past_the_limit_gets_a_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planwave.api.server._connection_limit", lambda: 3)
    with running_server() as running:
        async with AsyncExitStack() as stack:
            for _ in range(2):
                assert await healthy(await stack.enter_async_context(raw_connection(running)))
            async with raw_connection(running) as third:
                await third.send("GET", "/healthz")
                assert (await third.read_response()).status == 503


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\xfc\x03",
        b"G\xffT / HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    ],
)
async def test_an_invalid_request_is_answered_400_and_closed(
    server: RunningServer, sent: bytes
) -> None:
    async with raw_connection(server) as raw:
        await raw.write(sent + b"\r\n\r\n")
        assert (await raw.read_response()).status == 400
        assert await raw.is_closed()


@pytest.mark.parametrize(
    ("encoding", "body"), [("chunked", b"zz\r\n"), ("gzip, chunked", IN_CHUNKS + b"\r\n")]
)
async def test_undecodable_body_is_rejected(
    server: RunningServer, encoding: str, body: bytes
) -> None:
    async with raw_connection(server) as raw:
        await raw.send("POST", "/api/check", JSON, f"Transfer-Encoding: {encoding}", body=body)
        assert (await raw.read_response()).status == 400
        assert await raw.is_closed()


@pytest.mark.parametrize(
    ("header", "body"),
    [(f"Content-Length: {len(CHECK)}", CHECK), ("Transfer-Encoding: chunked", IN_CHUNKS + b"\r\n")],
)
async def test_upgrade_offer_is_ignored_and_body_is_read(
    server: RunningServer, header: str, body: bytes
) -> None:
    offer = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQ"]
    async with raw_connection(server) as raw:
        for _ in range(2):
            await raw.send("POST", "/api/check", *offer, JSON, header, body=body)
            answer = await raw.read_response()
            assert (answer.status, answer.json()["valid"]) == (200, False)  # it has no nodes
        await raw.send("GET", "/healthz", *offer)
        assert (await raw.read_response()).status == 200
        assert await healthy(raw)


async def test_trailer_is_not_a_header_of_the_next_request(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        for trailer in (b"", b"Content-Type: text/plain\r\n"):
            body = IN_CHUNKS + trailer + b"\r\n"
            await raw.send("POST", "/api/check", JSON, "Transfer-Encoding: chunked", body=body)
            assert (await raw.read_response()).status == 200


async def test_pipelined_requests_are_answered_in_order(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        gate = await plan_under_way(server, raw, "ahead")
        await raw.write(f"GET /healthz HTTP/1.1\r\nHost: {raw.host}\r\n\r\n".encode() * 200)
        async with raw_connection(server) as other:
            assert await healthy(other)
        server.loop.call_soon_threadsafe(gate.open.set)
        assert (await raw.read_response()).status == 201
        for _ in range(200):
            assert (await raw.read_response()).status == 200


async def test_unending_header_is_rejected(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.write(b"GET /healthz HTTP/1.1\r\nX-Long: ")
        await raw.write(b"x" * 2 * server.settings.limits.header_bytes)
        assert (await raw.read_response()).status == 400
        assert await raw.is_closed()


@pytest.mark.parametrize(
    ("method", "headers"), [("GET", WEBSOCKET_UPGRADE[:3]), ("POST", WEBSOCKET_UPGRADE)]
)
async def test_an_invalid_websocket_handshake_is_refused(
    server: RunningServer, method: str, headers: list[str]
) -> None:
    async with raw_connection(server) as raw:
        await raw.send(method, "/ws/x", *headers)
        answer = await asyncio.wait_for(raw.read_response(), 45)
        assert 400 <= answer.status < 500
        assert await raw.is_closed()
