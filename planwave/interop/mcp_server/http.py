"""The MCP server over streamable HTTP: the sessions of the SDK, for one application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from planwave.interop.mcp_server.protocol import ToolChanges, sdk_server
from planwave.interop.mcp_server.server import PlanwaveMcpServer

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Scope

    from planwave.service.service import Service


class HttpServer(NamedTuple):
    """The server while it answers requests.

    Attributes:
        app: The ASGI application of ``/mcp``.
        end_streams: Ends the streams on which clients listen for changes.
    """

    app: ASGIApp
    end_streams: Callable[[], None]


@asynccontextmanager
async def http_server(
    service: Service, admit: Callable[[Scope], None]
) -> AsyncGenerator[HttpServer]:
    """Answer requests in the block.

    Args:
        service: Plans, runs and stores.
        admit: Given the scope of a request, counts an execution that is about to be created.
    """

    def admit_request(context: ServerRequestContext[Any, Request]) -> None:
        assert context.request is not None  # noqa: S101 - it came over HTTP
        admit(context.request.scope)

    changes = ToolChanges()
    server = PlanwaveMcpServer(service, changes, admit_request)
    sessions = StreamableHTTPSessionManager(
        sdk_server(server, changes), max_request_body_size=service.limits.body_bytes
    )
    async with server, sessions.run():
        yield HttpServer(sessions.asgi_app, changes.listen.close)
