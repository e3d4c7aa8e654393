"""The headers that keep browsers from running, framing and guessing at responses; pure ASGI, outermost.

Every response has them, whatever produced it: also JSON, and what a flow sends to the sender of a webhook.
So no list says which types a browser runs. A response may bring a policy of its own, such as the page.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY_HEADER: Final = "Content-Security-Policy"
NO_FRAMES: Final = "frame-ancestors 'none'"
STRICTEST_POLICY: Final = f"default-src 'none'; {NO_FRAMES}"
_DEFAULTS: Final = {
    POLICY_HEADER: STRICTEST_POLICY,
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


class SecurityHeadersMiddleware:
    """Middleware that sets the security headers that a response does not have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self._app(scope, receive, send)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _DEFAULTS.items():
                    headers.setdefault(name, value)
            await send(message)

        return self._app(scope, receive, send_with_headers)
