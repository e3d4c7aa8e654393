"""What changes something is refused at once while the database server gives no answer; pure ASGI.

A write, the claim of an ``Idempotency-Key`` among them, would wait for the server for as long as it is away.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final

from starlette.types import ASGIApp, Receive, Scope, Send

from planwave.api.problems import problem_response
from planwave.errors import StoreError

if TYPE_CHECKING:
    from planwave.api.dependencies import AppState

_MCP: Final = "/mcp"
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class StoreOutageMiddleware:
    """Middleware that refuses requests that may change something; calls of tools are refused by themselves."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        state: AppState | None = getattr(scope["app"].state, "planwave", None)
        may_change = scope["type"] == "http" and scope["method"] not in _SAFE_METHODS
        if may_change and state is not None and scope["path"] != _MCP:
            try:
                state.service.executions.driver.require_store()
            except StoreError as error:
                return problem_response(error)(scope, receive, send)
        return self._app(scope, receive, send)
