"""The MCP server: the handlers of the protocol over the service, for every transport."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any, Final, Self

import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from planwave.errors import PlanwaveError
from planwave.interop.mcp_server.arguments import (
    AnswerArguments,
    PlanArguments,
    ResultArguments,
    RunArguments,
    StatusArguments,
    read_arguments,
)
from planwave.interop.mcp_server.calls import ToolCalls
from planwave.interop.mcp_server.open_calls import OpenCall, OpenCalls, session_of
from planwave.interop.mcp_server.progress import CallProgress
from planwave.interop.mcp_server.resources import list_resources, read_resource, templates
from planwave.interop.mcp_server.results import error_result
from planwave.interop.mcp_server.tool_list import ARGUMENTS, INSTRUCTIONS, fixed_tools
from planwave.service.service import Service

_log = logging.getLogger(__name__)

Request = ServerRequestContext[Any, Any]
Admission = Callable[[Request], None]
"""Counts an execution that a request is about to create; raises ``TooManyRequests``."""
_MAX_SESSIONS: Final = 1_000
"""Sessions that are told of changes; each has listed the tools."""
_FAULT: Final = "a fault in planwave ended the call; its log says more"


class PlanwaveMcpServer:
    """planwave as an MCP server; an async context manager.

    Leaving it waits for the cancellations that clients have requested.

    Args:
        service: Plans, runs and stores.
        admit: See :data:`Admission`.

    Attributes:
        sdk: The server for the transports of the SDK.
    """

    def __init__(self, service: Service, admit: Admission = lambda _: None) -> None:
        self._service = service
        self._admit = admit
        self._calls = ToolCalls(service)
        self._open_calls = OpenCalls(service)
        self._sessions: OrderedDict[str, ServerSession] = OrderedDict()
        self._bus = InMemorySubscriptionBus()
        self._listening = ListenHandler(self._bus)
        self.sdk = _SdkServer(
            "planwave",
            version=version("planwave"),
            title="planwave",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self._listening,
        )
        self.sdk.add_notification_handler(
            "notifications/cancelled",
            mcp_types.CancelledNotificationParams,
            self._open_calls.cancelled,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open_calls.close()

    def end_streams(self) -> None:
        """End the streams on which clients listen for changes."""
        self._listening.close()

    async def announce_tools(self) -> None:
        """Tell the clients that listen, or that have listed the tools, that the list has changed."""
        await self._bus.publish(ToolsListChanged())
        for key, session in list(self._sessions.items()):
            try:
                await session.send_tool_list_changed()
            except Exception:  # noqa: BLE001 - whatever a closed transport raises
                self._sessions.pop(key, None)

    # -- handlers

    async def _list_tools(
        self, context: Request, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._sessions[session_of(context)] = context.session
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return mcp_types.ListToolsResult(tools=fixed_tools())

    async def _call_tool(
        self, context: Request, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        """Process a call; every failure is a result that the model can read."""
        try:
            return await self._open_calls.run(context, self._work_of(context, params))
        except PlanwaveError as error:
            return error_result(error)
        except MCPError:
            raise
        except Exception:  # noqa: BLE001 - a boundary: no client sees a stack trace
            _log.exception("the tool %r failed", params.name)
            return error_result(PlanwaveError(_FAULT))

    def _work_of(
        self, context: Request, params: mcp_types.CallToolRequestParams
    ) -> Callable[[OpenCall], Awaitable[mcp_types.CallToolResult]]:
        given = params.arguments or {}
        progress = CallProgress(context.session.report_progress)
        if params.name not in ARGUMENTS:
            raise MCPError(mcp_types.INVALID_PARAMS, f"there is no tool {params.name!r}")
        return lambda call: self._dispatch(context, params.name, given, call, progress)

    async def _dispatch(
        self,
        context: Request,
        name: str,
        given: Mapping[str, Any],
        call: OpenCall,
        progress: CallProgress,
    ) -> mcp_types.CallToolResult:
        match read_arguments(ARGUMENTS[name], given):
            case PlanArguments() as arguments:
                return await self._calls.plan(arguments, progress)
            case RunArguments() as arguments:
                return await self._calls.run(
                    arguments, call, progress, lambda: self._admit(context)
                )
            case StatusArguments() as arguments:
                return await self._calls.status(arguments)
            case ResultArguments() as arguments:
                return await self._calls.result(arguments, progress)
            case AnswerArguments() as arguments:
                return await self._calls.answer(arguments, progress)
            case other:
                raise TypeError(f"no tool takes {other!r}")

    async def _list_resources(
        self, context: Request, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListResourcesResult:
        return await list_resources(self._service, params.cursor if params is not None else None)

    async def _list_templates(
        self, context: Request, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListResourceTemplatesResult:
        return mcp_types.ListResourceTemplatesResult(resource_templates=templates())

    async def _read_resource(
        self, context: Request, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        return await read_resource(self._service, str(params.uri))


class _SdkServer(Server[Any]):
    """The server of the SDK, which says in every session that the list of tools may change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **more: Any
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, *args, **more)
