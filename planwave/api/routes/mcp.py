"""The route of the MCP server: streamable HTTP, with the bearer token of the service or an access token.

What an access token may do depends on the tool, not on the route: see ``interop/mcp_server/access.py``.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from planwave.api.access_rules import access_token
from planwave.api.auth import Authenticator, authenticate
from planwave.api.dependencies import app_state
from planwave.errors import NotFound
from planwave.interop.mcp_server import endpoint
from planwave.principals import Principal
from planwave.storage.access_tokens import AccessTokenRecord

MCP_PATH: Final = "/mcp"


class McpGate:
    """The access token of a request, and the rates of who sends it; a ``ScopeGate``."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def token(self, scope: Scope) -> AccessTokenRecord | None:
        return access_token(HTTPConnection(scope))

    def principal(self, scope: Scope) -> Principal:
        return authenticate(HTTPConnection(scope))

    def admit(self, scope: Scope) -> None:
        connection = HTTPConnection(scope)
        self._authenticator.check_execution_rate(authenticate(connection).account)
        self._authenticator.check_token_rate(access_token(connection))


class _Mcp:
    """The ASGI application: authenticates a request, then passes it to the MCP server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)
        principal, state = authenticate(connection), app_state(connection)
        if not endpoint.is_installed():
            raise NotFound(
                "this service has no MCP server",
                code="mcp-not-installed",
                hint="pip install 'planwave[mcp]' where it runs, and start it again",
            )
        # Each answer is a stream, and a call or a subscription may take long.
        with state.connection_limiter.slot(
            principal.account, state.settings.limits.socket_connections
        ):
            await state.mcp(scope, receive, send)


mcp_route: Final = Route(
    MCP_PATH, endpoint=_Mcp(), methods=["GET", "POST", "DELETE"], include_in_schema=False
)
"""Not in the OpenAPI document: its requests are those of the MCP specification."""
