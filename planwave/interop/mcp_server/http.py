"""The MCP server over streamable HTTP: the sessions of the SDK, for one application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from planwave.interop.mcp_server.access import Caller
from planwave.interop.mcp_server.protocol import Request, ToolChanges, sdk_server
from planwave.interop.mcp_server.server import PlanwaveMcpServer

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from planwave.interop.mcp_server.endpoint import ScopeGate
    from planwave.service.service import Service

MAX_OWN_SESSIONS: Final = 1_000
"""Open sessions of one client; the SDK closes those that are idle for half an hour."""
_OWNER: Final = "owner"


class HttpServer(NamedTuple):
    """The server while it answers requests.

    Attributes:
        app: The ASGI application of ``/mcp``.
        end_streams: Ends the streams on which clients listen for changes.
    """

    app: ASGIApp
    end_streams: Callable[[], None]


@asynccontextmanager
async def http_server(service: Service, gate: ScopeGate) -> AsyncGenerator[HttpServer]:
    """Answer requests in the block.

    Args:
        service: Plans, runs and stores.
        gate: Knows who sends a request.
    """
    changes = ToolChanges()
    server = PlanwaveMcpServer(service, changes, _HttpGate(gate))
    sessions = _Sessions(
        sdk_server(server, changes), max_request_body_size=service.limits.body_bytes
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        token = gate.token(scope)
        name = _OWNER if token is None else token.token_id
        # The SDK lets only the client that has opened a session use it.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[]))
        await sessions.asgi_app(scope, receive, send)

    async with server, sessions.run():
        yield HttpServer(app, changes.listen.close)


class _Sessions(StreamableHTTPSessionManager):
    """The sessions of the SDK, which has a limit for all of them; here no client can take all."""

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        own = sum(owner == requestor for owner in self._session_owners.values())
        return None if own >= MAX_OWN_SESSIONS else super()._admit_session(requestor)


class _HttpGate:
    """The gate of requests over HTTP."""

    def __init__(self, gate: ScopeGate) -> None:
        self._gate = gate

    def caller(self, context: Request) -> Caller:
        token = self._gate.token(_scope_of(context))
        if token is None:
            return Caller()
        return Caller(f"token {token.token_id}", frozenset(token.flows), frozenset(token.scopes))

    def admit(self, context: Request) -> None:
        self._gate.admit(_scope_of(context))


def _scope_of(context: Request) -> Scope:
    assert context.request is not None  # noqa: S101 - it came over HTTP
    return context.request.scope
