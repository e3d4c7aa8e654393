"""A transport of httpx2 that connects to vetted addresses only.

The name is resolved once for each connection, all its addresses are vetted, and the connection goes
to a vetted address. So ``Host``, TLS server name and certificate check stay those of the URL, and a
name that resolves differently the next moment changes nothing. Each request that passes is vetted,
so redirects are too, whatever client is on top.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Mapping,
)
from contextlib import contextmanager
from functools import cache
from ipaddress import ip_address
from typing import Any, Final

import httpcore2
import httpx2

from planwave.errors import OutboundError
from planwave.outbound.addresses import refusal_of
from planwave.outbound.urls import AllowedServices, allow_hint, check_form, check_service

Resolver = Callable[[str, int], Awaitable[Iterable[str]]]
"""Returns the addresses of a host, for a port; raises OSError if there are none."""

_MAPPED_ERRORS: Final[tuple[tuple[type[Exception], type[httpx2.TransportError]], ...]] = (
    (httpcore2.ConnectTimeout, httpx2.ConnectTimeout),
    (httpcore2.TimeoutException, httpx2.ReadTimeout),
    (httpcore2.ConnectError, httpx2.ConnectError),
    (httpcore2.NetworkError, httpx2.ReadError),
    (httpcore2.LocalProtocolError, httpx2.LocalProtocolError),
    (httpcore2.ProtocolError, httpx2.RemoteProtocolError),
)


@cache
def system_tls() -> ssl.SSLContext:
    """Return the TLS settings with the authorities that the system trusts.

    Reading their certificates takes 30 ms, which would hold up the event loop at each connection.
    """
    return httpx2.create_ssl_context(trust_env=False)


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses that the system gives for a host."""
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in infos))


class VettingBackend(httpcore2.AsyncNetworkBackend):
    """Resolves a host, vets all its addresses, and connects to one of them.

    Args:
        allowed: The services that may have private addresses.
        resolver: Resolves names.
        connector: Connects to addresses.
    """

    def __init__(
        self,
        allowed: AllowedServices,
        resolver: Resolver,
        connector: httpcore2.AsyncNetworkBackend,
    ) -> None:
        self._allowed = allowed
        self._resolve = resolver
        self._connector = connector

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (the signature of httpcore2)
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._vetted_addresses(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{host!r} was not resolved in time") from error
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._connector.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = failure or error
        raise failure or httpcore2.ConnectError(f"{host!r} has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  (the signature of httpcore2)
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise httpcore2.ConnectError("requests use no Unix sockets")

    async def sleep(self, seconds: float) -> None:
        await self._connector.sleep(seconds)

    async def _vetted_addresses(self, host: str, port: int) -> list[str]:
        """Resolve a host; one refused address refuses the host."""
        addresses = [host] if _is_literal(host) else await self._resolved(host, port)
        is_named = (host, port) in self._allowed
        for address in addresses:
            reason = refusal_of(ip_address(address), may_be_private=is_named)
            if reason is not None:
                raise OutboundError(
                    f"{host!r} may not be requested: {address} is {reason}",
                    code="address-refused",
                    hint=None if is_named else allow_hint(host, port),
                    retryable=False,
                )
        return addresses

    async def _resolved(self, host: str, port: int) -> list[str]:
        try:
            return list(await self._resolve(host, port))
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"the host {host!r} was not found") from error


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class VettingTransport(httpx2.AsyncBaseTransport):
    """Sends requests of allowed URLs, over a ``VettingBackend``; it knows no proxies."""

    def __init__(self, backend: VettingBackend, allowed: AllowedServices) -> None:
        self._allowed = allowed
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=system_tls(), network_backend=backend
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        check_form(request.url)
        check_service(request.url, self._allowed)
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx2_errors():
            response = await self._pool.handle_async_request(outgoing)
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions={**_extensions_of(response)},
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


def _extensions_of(response: Any) -> Mapping[str, Any]:
    """Return what httpcore2 adds to a response, such as the reason of its status."""
    extensions: Mapping[str, Any] = response.extensions
    return extensions


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream: AsyncIterable[bytes] = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2_errors():
            async for chunk in self._stream:
                yield chunk

    async def aclose(self) -> None:
        close = getattr(self._stream, "aclose", None)
        if close is not None:
            await close()


@contextmanager
def _as_httpx2_errors() -> Generator[None]:
    """Raise the errors of httpcore2 as those of httpx2, which clients expect of a transport."""
    try:
        yield
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        raise _httpx2_error(error) from error


def _httpx2_error(error: Exception) -> httpx2.TransportError:
    mapped = next(to for kind, to in _MAPPED_ERRORS if isinstance(error, kind))
    return mapped(str(error))
