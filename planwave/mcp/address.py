"""A server at a URL, over streamable HTTP.

Its requests go through the vetting transport of ``outbound``. The operator has named the server, so that
it may have a private address and any port; addresses that nothing may connect to (link-local, the metadata
services of clouds) are refused all the same. ``allowed_outbound`` is neither needed nor changed: nodes may
not fetch the address of an MCP server.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, cast

import httpcore2
import httpx2
import mcp_types
from mcp.client.streamable_http import streamable_http_client

from planwave.outbound.transport import VettingBackend, VettingTransport, resolve
from planwave.outbound.urls import AllowedServices, check_headers, parse_url

_SESSION_HEADER: Final = "mcp-session-id"
_CLOSED_CODE: Final = re.compile(rb'"code"\s{0,9}:\s{0,9}%d\b' % mcp_types.CONNECTION_CLOSED)
_TAIL_BYTES: Final = 40
"""More than the longest match."""
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is.

    Attributes:
        url: Its URL.
        headers: Headers of all requests, such as credentials.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@asynccontextmanager
async def connect_address(
    address: Address,
    *,
    connect_s: float,
    message_bytes: int,
    on_status: Callable[[int], None],
    on_expired: Callable[[], None],
    on_closed_code: Callable[[], None],
) -> AsyncGenerator[Any]:
    """Yield the two streams of messages of a server; a ``mcp.client.Transport``.

    Args:
        address: Where it is.
        connect_s: Seconds to resolve its name, and to connect.
        message_bytes: The longest message that it may send.
        on_status: Called with the status of each response that is an error.
        on_expired: Called when it no longer knows the session.
        on_closed_code: Called for each error that it sends with the code that the SDK gives requests
            whose connection ended.

    Raises:
        OutboundError: ``url-refused``, ``header-refused``.
    """
    check_headers(address.headers)
    url = parse_url(address.url)
    host, port = url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme]
    allowed = AllowedServices([f"[{host}]:{port}" if ":" in host else f"{host}:{port}"])
    connector = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())
    vetting = VettingTransport(VettingBackend(allowed, resolve, connector), allowed)
    async with (
        httpx2.AsyncClient(
            transport=_BoundedTransport(
                vetting, message_bytes, on_status, on_expired, on_closed_code
            ),
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(None, connect=connect_s),
            headers={**address.headers, "Accept-Encoding": "identity", "User-Agent": "planwave"},
        ) as http,
        streamable_http_client(
            str(url), http_client=http, max_sse_event_size=message_bytes
        ) as streams,
    ):
        yield streams


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """Caps responses that are one message, and reports errors that the SDK hides."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        message_bytes: int,
        on_status: Callable[[int], None],
        on_expired: Callable[[], None],
        on_closed_code: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._message_bytes = message_bytes
        self._on_status = on_status
        self._on_expired = on_expired
        self._on_closed_code = on_closed_code

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.status_code >= 400:
            self._on_status(response.status_code)
            if response.status_code == 404 and _SESSION_HEADER in request.headers:
                self._on_expired()
        if "content-encoding" in response.headers:
            await response.aclose()
            raise httpx2.RemoteProtocolError("the response is compressed, which was not asked for")
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        body = cast("httpx2.AsyncByteStream", response.stream)
        most_bytes = None if is_stream else self._message_bytes
        response.stream = _WatchedBody(body, most_bytes, self._on_closed_code)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _WatchedBody(httpx2.AsyncByteStream):
    """A body, of one message where it may have no more than so many bytes."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        most_bytes: int | None,
        on_closed_code: Callable[[], None],
    ) -> None:
        self._inner = inner
        self._left = self._most = most_bytes
        self._on_closed_code = on_closed_code

    async def __aiter__(self) -> AsyncIterator[bytes]:
        tail = b""
        async for chunk in self._inner:
            if self._left is not None:
                self._left -= len(chunk)
                if self._left < 0:
                    raise httpx2.StreamError(f"a message of more than {self._most} bytes")
            window = tail + chunk
            matches = [*_CLOSED_CODE.finditer(window)]
            for _ in matches:
                self._on_closed_code()
            tail = window[max(matches[-1].end() if matches else 0, len(window) - _TAIL_BYTES) :]
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
