"""The route of the MCP server: streamable HTTP, with the bearer token of the service."""

from __future__ import annotations

from typing import Final

from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from planwave.api.auth import authenticate
from planwave.api.dependencies import app_state

MCP_PATH: Final = "/mcp"


class _Mcp:
    """The ASGI application: authenticates a request, then passes it to the MCP server."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)
        authenticate(connection)
        await app_state(connection).mcp(scope, receive, send)


route: Final = Route(
    MCP_PATH, endpoint=_Mcp(), methods=["GET", "POST", "DELETE"], include_in_schema=False
)
"""Not in the OpenAPI document: its requests are those of the MCP specification."""
