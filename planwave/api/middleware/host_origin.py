"""The allow-lists of ``Host`` and ``Origin`` for requests and WebSockets.

A page on another site can make a browser send requests here, and a name that is pointed at this
address (DNS rebinding) can make that page count as ours. Both are refused before anything else
looks at the request. There is no CORS: no answer ever invites another origin.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from planwave.api.problems import send_problem
from planwave.errors import Forbidden
from planwave.graph.diagnostics import short_repr
from planwave.settings import Settings

HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Asked by probes that know an address and no name."""
LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
_WILDCARD_ADDRESSES: Final = ("0.0.0.0", "[::]")  # noqa: S104 - names nothing
_DEFAULT_PORTS: Final = (None, 80, 443)
_IPV4_MAPPED: Final = "::ffff:"
_NO_ORIGIN: Final = "null"
"""Sent for files and sandboxes, so by any site that wants to: allowing it would allow every page."""
_WITHOUT_ORIGIN: Final = (
    "open the page at the address of the service, not from a file or within a sandbox"
)
_PAGE_SCHEMES: Final = {"ws": "http", "wss": "https"}


class HostOriginMiddleware:
    """Middleware that rejects a Host or Origin that is not on its allow-list (403)."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._names = {*LOOPBACK_HOSTS, _host_name(settings.host)} - set(_WILDCARD_ADDRESSES)
        self._hosts = {host.lower() for host in settings.allowed_hosts}
        self._origins = {origin.lower() for origin in settings.allowed_origins}
        if settings.public_url is not None:
            address = urlsplit(settings.public_url.lower())
            self._hosts.add(address.netloc)
            self._origins.add(f"{address.scheme}://{address.netloc}")

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] in ("http", "websocket"):
            try:
                self._check(HTTPConnection(scope))
            except Forbidden as error:
                return _reject(scope, receive, send, error)
        return self._app(scope, receive, send)

    def _check(self, connection: HTTPConnection) -> None:
        host = ",".join(connection.headers.getlist("host")).lower()
        own = self._own_hosts(connection.scope)
        if host not in own and host not in self._hosts and connection.url.path not in HEALTH_PATHS:
            raise Forbidden(
                f"this service is not known as {short_repr(host)}",
                hint=f"reach it as {sorted(own)[0]}, or allow the name: "
                f"PLANWAVE_ALLOWED_HOSTS={json.dumps([host])}",
            )
        for origin in connection.headers.getlist("origin"):
            scheme = connection.scope["scheme"]
            same = f"{_PAGE_SCHEMES.get(scheme, scheme)}://{host}"
            if origin.lower() not in {same, *self._origins}:
                allowing = f"allow them: PLANWAVE_ALLOWED_ORIGINS={json.dumps([origin])}"
                raise Forbidden(
                    f"pages from {short_repr(origin)} may not use this service",
                    hint=_WITHOUT_ORIGIN if origin.lower() == _NO_ORIGIN else allowing,
                )

    def _own_hosts(self, scope: Scope) -> set[str]:
        """Return the loopback names, the configured host and the address connected to, with the port."""
        address, port = scope.get("server") or ("", None)
        names = self._names | {_host_name(address)} if address else self._names
        own = {name if port is None else f"{name}:{port}" for name in names}
        return own | names if port in _DEFAULT_PORTS else own


async def _reject(scope: Scope, receive: Receive, send: Send, error: Forbidden) -> None:
    if scope["type"] == "websocket":
        await send_problem(WebSocket(scope, receive, send), error)
        return
    answer = await send_problem(Request(scope), error)
    if answer is not None:
        await answer(scope, receive, send)


def _host_name(address: str) -> str:
    """Return an address in the form of ``Host``; an IPv6 socket reports IPv4 addresses as mapped."""
    plain = address.lower().removeprefix(_IPV4_MAPPED)
    return f"[{plain}]" if ":" in plain else plain
