"""What changes something is refused at once while the database server gives no answer; pure ASGI.

A write, the claim of an ``Idempotency-Key`` among them, would wait for the server for as long as it is away.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from planwave.api.dependencies import app_state
from planwave.api.problems import problem_response
from planwave.errors import StoreError

_MCP: Final = "/mcp"
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class StoreOutageMiddleware:
    """Middleware that refuses requests that may change something; calls of tools are refused by themselves."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http" and scope["method"] not in _SAFE_METHODS:
            try:
                app_state(HTTPConnection(scope)).service.executions.driver.require_store()
            except StoreError as error:
                if scope["path"] != _MCP:
                    return problem_response(error)(scope, receive, send)
        return self._app(scope, receive, send)
