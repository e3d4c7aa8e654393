"""The server of the SDK, for any transport: it passes the requests of clients to handlers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from importlib.metadata import version
from typing import Any, Final, Protocol

import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from planwave.interop.mcp_server.open_calls import session_of
from planwave.interop.mcp_server.tool_list import INSTRUCTIONS

Request = ServerRequestContext[Any, Any]
_Page = mcp_types.PaginatedRequestParams | None
_MAX_SESSIONS: Final = 1_000
"""Sessions that are told of changes; each has listed the tools."""
_TELL_S: Final = 5.0


class Handlers(Protocol):
    """Answers the requests of clients."""

    async def list_tools(self, context: Request, params: _Page) -> mcp_types.ListToolsResult: ...
    async def call_tool(
        self, context: Request, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult: ...
    async def cancelled(
        self, context: Request, params: mcp_types.CancelledNotificationParams
    ) -> None: ...
    async def list_resources(
        self, context: Request, params: _Page
    ) -> mcp_types.ListResourcesResult: ...
    async def list_templates(
        self, context: Request, params: _Page
    ) -> mcp_types.ListResourceTemplatesResult: ...
    async def read_resource(
        self, context: Request, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult: ...


class ToolChanges:
    """Tells clients that the list of tools may have changed.

    Clients of 2026-07-28 listen on a stream; those of sessions are notified once they have listed the tools.
    """

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        self.listen = ListenHandler(self._bus)

    def add(self, context: Request) -> None:
        """Remember a client that has listed the tools."""
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._sessions[session_of(context)] = context.session
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)

    async def announce(self) -> None:
        """Tell all clients; one that does not read its stream is not told again, and delays no other."""
        await self._bus.publish(ToolsListChanged())
        async with asyncio.TaskGroup() as tasks:
            for key, session in self._sessions.items():
                tasks.create_task(self._tell(key, session))

    async def _tell(self, key: str, session: ServerSession) -> None:
        try:
            async with asyncio.timeout(_TELL_S):
                await session.send_tool_list_changed()
        except Exception:  # noqa: BLE001 - whatever a closed transport raises
            self._sessions.pop(key, None)


def sdk_server(handlers: Handlers, changes: ToolChanges) -> Server[Any]:
    """Return the server of the SDK for some handlers."""

    async def list_tools(context: Request, params: _Page) -> mcp_types.ListToolsResult:
        changes.add(context)
        return await handlers.list_tools(context, params)

    server = _SdkServer(
        "planwave",
        version=version("planwave"),
        title="planwave",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscriptions_listen=changes.listen,
    )
    server.add_notification_handler(
        "notifications/cancelled", mcp_types.CancelledNotificationParams, handlers.cancelled
    )
    return server


class _SdkServer(Server[Any]):
    """The server of the SDK, which says in every session that the list of tools may change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **more: Any
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, *args, **more)
