from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import websockets
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect

from planwave.api.middleware.host_origin import HostOriginMiddleware
from planwave.settings import Settings
from tests.support.server.raw_http import WEBSOCKET_UPGRADE, raw_connection
from tests.support.server.running_server import RunningServer, running_server

EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is listened on
HOSTS = ["planwave.example:8443", "proxy.example"]
ORIGINS = ["https://app.example"]


@pytest.fixture(scope="module")
def proxied() -> Iterator[RunningServer]:
    with running_server(allowed_hosts=HOSTS, allowed_origins=ORIGINS) as running:
        yield running


async def status_of(
    server: RunningServer, *headers: str, method: str = "GET", path: str = "/api/plans"
) -> int:
    async with raw_connection(server) as raw:
        await raw.send(method, path, *(h.format(port=raw.host.split(":")[1]) for h in headers))
        answer = await raw.read_response()
        if answer.status == 403:
            assert answer.json()["code"] == "forbidden"
        assert not [name for name in answer.headers if name.startswith("access-control")]
        return answer.status


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}",
        "planwave.example:8443", "Proxy.Example",
    ],
)  # fmt: skip
async def test_allowed_host_is_accepted(proxied: RunningServer, host: str) -> None:
    assert await status_of(proxied, f"Host: {host}") == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.:{port}",
        "localhost:{port}.evil.example", "planwave.example", "proxy.example:{port}", "", "@",
        "127.0.0.1:{port}@evil.example", "proxy.example,evil.example", "0.0.0.0:{port}",
    ],
)  # fmt: skip
async def test_other_host_is_rejected(proxied: RunningServer, host: str) -> None:
    assert await status_of(proxied, f"Host: {host}") == 403


async def lets_in(host: str, listening: str, address: str) -> bool:
    """Say whether a request with this ``Host``, come to this address, gets through."""
    reached: list[Scope] = []

    async def app(scope: Scope, _: Receive, __: Send) -> None:
        reached.append(scope)

    async def nothing(*_: Any) -> Any:
        return None

    scope = {
        "type": "http", "method": "GET", "path": "/", "scheme": "http", "query_string": b"",
        "headers": [(b"host", host.encode())], "server": (address, 8000),
    }  # fmt: skip
    await HostOriginMiddleware(app, Settings(host=listening))(scope, nothing, nothing)
    return bool(reached)


@pytest.mark.parametrize(
    ("host", "listening", "address", "expected"),
    [
        ("10.1.2.3:8000", EVERYWHERE, "10.1.2.3", True),
        ("10.1.2.3:8000", "::", "::ffff:10.1.2.3", True),
        ("[fd00::1]:8000", "::", "fd00::1", True),
        ("planwave.lan:8000", "planwave.lan", "10.1.2.3", True),
        ("10.1.2.4:8000", EVERYWHERE, "10.1.2.3", False),
        (f"{EVERYWHERE}:8000", EVERYWHERE, "127.0.0.1", False),
        ("[::]:8000", "::", "::1", False),
    ],
)
async def test_connected_address_is_a_valid_host_and_wildcard_is_not(
    host: str, listening: str, address: str, expected: bool
) -> None:
    assert await lets_in(host, listening, address) is expected


async def test_health_checks_accept_any_host(server: RunningServer) -> None:
    for path in ("/healthz", "/readyz"):
        assert await status_of(server, "Host: 10.0.0.7:8000", path=path) == 200


@pytest.mark.parametrize("origin", ["http://127.0.0.1:{port}", "https://app.example"])
async def test_allowed_origin_is_accepted(proxied: RunningServer, origin: str) -> None:
    assert await status_of(proxied, f"Origin: {origin}") == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "null", "http://localhost:{port}", "https://127.0.0.1:{port}",
        "http://127.0.0.1:1", "http://app.example", "https://app.example.evil.example", "",
    ],
)  # fmt: skip
async def test_other_origin_is_rejected(proxied: RunningServer, origin: str) -> None:
    assert await status_of(proxied, f"Origin: {origin}") == 403


async def test_one_foreign_origin_among_several_is_rejected(proxied: RunningServer) -> None:
    given = ("Origin: https://app.example", "Origin: https://evil.example")
    assert await status_of(proxied, *given) == 403


async def test_cors_preflight_never_allows_an_origin(proxied: RunningServer) -> None:
    requested = (
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: content-type",
    )
    preflight = ("Origin: https://evil.example", *requested)
    assert await status_of(proxied, *preflight, method="OPTIONS") == 403
    allowed = ("Origin: https://app.example", *requested)
    assert await status_of(proxied, *allowed, method="OPTIONS") == 405


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_websocket_from_foreign_origin_is_closed(server: RunningServer, origin: str) -> None:
    async with connect(f"{server.ws_url}/ws/x", additional_headers={"Origin": origin}) as socket:
        with pytest.raises(websockets.ConnectionClosed):
            await socket.recv()
        assert socket.close_code == 4403
        assert "evil" in str(socket.close_reason) or "null" in str(socket.close_reason)


async def test_websocket_with_foreign_host_is_closed(server: RunningServer) -> None:
    async with raw_connection(server) as raw:
        await raw.send("GET", "/ws/x", "Host: evil.example", *WEBSOCKET_UPGRADE)
        assert (await raw.read_response()).status == 101
        frame = await raw.reader.readexactly(4)
        assert (frame[:1], int.from_bytes(frame[2:])) == (b"\x88", 4403)


async def test_nobody_is_told_to_allow_pages_without_an_origin(server: RunningServer) -> None:
    async with httpx2.AsyncClient() as client:
        for origin, is_named in (("null", False), ("https://app.example", True)):
            refused = await client.get(f"{server.base_url}/api/flows", headers={"Origin": origin})
            assert refused.status_code == 403
            assert ("PLANWAVE_ALLOWED_ORIGINS" in refused.json()["hint"]) == is_named
