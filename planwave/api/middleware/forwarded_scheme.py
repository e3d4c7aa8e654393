"""The scheme that a trusted reverse proxy names in ``X-Forwarded-Proto``.

uvicorn's own middleware takes the address of the client from ``X-Forwarded-For`` too. Proxies pass that
header on as it came unless they are told otherwise, so any sender could choose its address.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

_PEER: Final = "planwave.peer"


class ForwardedSchemeMiddleware:
    """Middleware that sets the scheme, and leaves the client as the connection has it.

    Args:
        app: The application inside.
        trusted: Addresses of proxies, separated by commas, as uvicorn's ``forwarded_allow_ips``.
    """

    def __init__(self, app: ASGIApp, trusted: str | list[str]) -> None:
        self._app = app
        self._forwarded: Any = ProxyHeadersMiddleware(cast("Any", self._with_peer), trusted)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        scope[_PEER] = scope.get("client")
        return self._forwarded(scope, receive, send)

    async def _with_peer(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["client"] = scope.pop(_PEER)
        await self._app(scope, receive, send)
