"""Paths of requests that mean the same: with and without ``root_path``, with and without a slash at the end.

``root_path`` is the prefix that a reverse proxy serves planwave under, such as ``/planwave``. Requests are
accepted with the prefix and without it: some proxies remove it, and commands on the same machine connect
without one. Clients of ``/mcp`` and ``/v1`` often write a slash at the end of an address, and many do not
follow redirects. Routes and other middleware see paths without either.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SLASH_AT_END: Final = re.compile(r"(/mcp|/v1/.*[^/])/")
"""Paths of the protocols of other programs that may end with a slash."""


class RootPathMiddleware:
    """Middleware that removes the prefix from requests and adds it to ``Location``.

    Args:
        app: The application inside.
        root_path: The prefix, with a slash at its beginning and none at its end; may be empty.
    """

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] not in ("http", "websocket"):
            return self._app(scope, receive, send)
        self._remove_prefix(scope)
        if _SLASH_AT_END.fullmatch(scope["path"]):
            _set_path(scope, scope["path"][:-1], scope.get("raw_path", b"")[:-1])

        async def with_prefix(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("location", "").startswith("/"):
                    headers["location"] = self._root_path + headers["location"]
            await send(message)

        return self._app(scope, receive, with_prefix)

    def _remove_prefix(self, scope: Scope) -> None:
        """Change the scope in place: the access log outside of this reads the route from it."""
        path: str = scope["path"]
        if path == self._root_path or path.startswith(f"{self._root_path}/"):
            raw_path = scope.get("raw_path") or b""
            _set_path(
                scope,
                path[len(self._root_path) :] or "/",
                raw_path.removeprefix(self._root_path.encode()) or b"/",
            )


def _set_path(scope: Scope, path: str, raw_path: bytes) -> None:
    scope["path"] = path
    if scope.get("raw_path"):
        scope["raw_path"] = raw_path
