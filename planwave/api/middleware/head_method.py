"""``HEAD``: the response to ``GET`` without its body, for probes and ``curl -I``.

Pure ASGI, directly around the routes, which handle ``GET`` alone. A stream is cancelled once its head
is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planwave.api.auth import PRINCIPAL


class HeadMethodMiddleware:
    """Middleware that answers ``HEAD`` with the head of the response to ``GET``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            return self._app(scope, receive, send)
        get_scope: Scope = {**scope, "method": "GET"}
        is_answered = False

        async def receive_or_disconnect() -> Message:
            return {"type": "http.disconnect"} if is_answered else await receive()

        async def head(message: Message) -> None:
            nonlocal is_answered
            if is_answered or message["type"] != "http.response.start":
                return
            is_answered = True
            for name in ("route", PRINCIPAL):  # for the access log and the metrics
                if name in get_scope:
                    scope[name] = get_scope[name]
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        return self._app(get_scope, receive_or_disconnect, head)
