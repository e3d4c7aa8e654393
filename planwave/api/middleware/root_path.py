"""The path prefix that a reverse proxy serves planwave under (``root_path``), such as ``/planwave``.

Requests are accepted with the prefix and without it: some proxies remove it, and commands on the
same machine connect without one. Routes and other middleware see paths without it.
"""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RootPathMiddleware:
    """Middleware that removes the prefix from requests and adds it to ``Location``.

    Args:
        app: The application inside.
        root_path: The prefix, with a slash at its beginning and none at its end.
    """

    def __init__(self, app: ASGIApp, root_path: str) -> None:
        self._app = app
        self._root_path = root_path

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] not in ("http", "websocket"):
            return self._app(scope, receive, send)
        self._remove_prefix(scope)

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
            scope["path"] = path[len(self._root_path) :] or "/"
            if raw_path := scope.get("raw_path"):
                scope["raw_path"] = raw_path.removeprefix(self._root_path.encode()) or b"/"
