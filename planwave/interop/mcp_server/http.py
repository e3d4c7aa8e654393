"""The MCP server over streamable HTTP: the sessions of the SDK, for one application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from planwave.interop.mcp_server.access import Caller
from planwave.interop.mcp_server.protocol import Request, ToolChanges, sdk_server
from planwave.interop.mcp_server.server import PlanwaveMcpServer

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

    from planwave.interop.mcp_server.endpoint import ScopeGate
    from planwave.service.service import Service

MAX_OWN_SESSIONS: Final = 1_000
"""Open sessions of one client; the SDK closes those that are idle for half an hour."""


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
        gate: Identifies the client of a request.
    """
    changes = ToolChanges()
    server = PlanwaveMcpServer(service, changes, _HttpGate(gate))
    async with server, anyio.create_task_group() as tasks:
        sessions = _Sessions(sdk_server(server, changes), service.limits.body_bytes, tasks)

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            manager = await sessions.of(gate.principal(scope).account)
            await manager.handle_request(scope, receive, send)

        yield HttpServer(app, changes.listen.close)
        tasks.cancel_scope.cancel()


class _Sessions:
    """The sessions of the SDK, in one manager for each client: the limit of sessions holds for each."""

    def __init__(self, server: Server[Any], body_bytes: int, tasks: TaskGroup) -> None:
        self._server = server
        self._body_bytes = body_bytes
        self._tasks = tasks
        self._managers: dict[str, StreamableHTTPSessionManager] = {}
        self._starting = anyio.Lock()

    async def of(self, client: str) -> StreamableHTTPSessionManager:
        async with self._starting:
            if client not in self._managers:
                manager = StreamableHTTPSessionManager(
                    self._server,
                    max_request_body_size=self._body_bytes,
                    max_sessions=MAX_OWN_SESSIONS,
                )
                await self._tasks.start(_serve, manager)
                self._managers[client] = manager
        return self._managers[client]


async def _serve(
    manager: StreamableHTTPSessionManager,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    async with manager.run():
        task_status.started()
        await anyio.sleep_forever()


class _HttpGate:
    """The gate of requests over HTTP."""

    def __init__(self, gate: ScopeGate) -> None:
        self._gate = gate

    def caller(self, context: Request) -> Caller:
        scope = _scope_of(context)
        principal, token = self._gate.principal(scope), self._gate.token(scope)
        if token is None:
            return Caller(principal)
        return Caller(principal, frozenset(token.flows), frozenset(token.scopes))

    def admit(self, context: Request) -> None:
        self._gate.admit(_scope_of(context))


def _scope_of(context: Request) -> Scope:
    assert context.request is not None  # noqa: S101 - it came over HTTP
    return context.request.scope
