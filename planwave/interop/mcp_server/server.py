"""The MCP server: answers the requests of the protocol with the service."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, Self

import mcp_types
from mcp.shared.exceptions import MCPError

from planwave.errors import PlanwaveError
from planwave.interop.mcp_server.access import (
    RUN,
    TOOL_ACTIONS,
    TOOL_SCOPES,
    Caller,
    Gate,
    OpenGate,
)
from planwave.interop.mcp_server.arguments import (
    AnswerArguments,
    PlanArguments,
    ResultArguments,
    RunArguments,
    StatusArguments,
    read_arguments,
)
from planwave.interop.mcp_server.calls import Admission, ToolCalls
from planwave.interop.mcp_server.open_calls import OpenCall, OpenCalls
from planwave.interop.mcp_server.progress import CallProgress
from planwave.interop.mcp_server.protocol import Request, ToolChanges
from planwave.interop.mcp_server.resources import list_resources, read_resource, templates
from planwave.interop.mcp_server.results import error_result
from planwave.interop.mcp_server.tool_list import ARGUMENTS, FIXED_TOOLS, flow_as_tool
from planwave.principals import acting_as
from planwave.service.flows.flow_tools import FlowTool, unknown_tool
from planwave.service.service import Service

_log = logging.getLogger(__name__)

_ID_CHARS: Final = 80
_IDS: Final = ("execution_id", "plan_id", "request_id")
_FAULT: Final = "a fault in planwave ended the call; its log says more"


class PlanwaveMcpServer:
    """Answers MCP requests with a service, see ``Handlers``; an async context manager.

    Leaving it waits for the cancellations that clients have requested.

    Args:
        service: Plans, runs and stores.
        changes: Where a change of the published flows is announced.
        gate: Identifies the client of a request.
    """

    def __init__(self, service: Service, changes: ToolChanges, gate: Gate | None = None) -> None:
        self._service = service
        self._changes = changes
        self._gate = gate or OpenGate()
        self._calls = ToolCalls(service)
        self._open_calls = OpenCalls(service)

    async def __aenter__(self) -> Self:
        self._service.plans.changes.append(self._on_flow_change)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._service.plans.changes.remove(self._on_flow_change)
        await self._open_calls.close()

    def _on_flow_change(self, plan_id: str) -> None:
        self._open_calls.spawn(self._changes.announce())

    # -- handlers

    async def list_tools(
        self, context: Request, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        caller = self._gate.caller(context)
        fixed = [each for each in FIXED_TOOLS if caller.has_scope(TOOL_SCOPES.get(each.name))]
        flows = await self._flow_tools(caller)
        tools = [*fixed, *map(flow_as_tool, flows.values())]
        return mcp_types.ListToolsResult(tools=tools)

    async def call_tool(
        self, context: Request, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        """Process a call; every failure is a result that the model can read."""
        try:
            # The session's task was started by its first request, perhaps of another principal.
            with acting_as(self._gate.caller(context).principal):
                if not _is_read(params):
                    self._service.executions.driver.require_store()
                await self._log_call(params)
                return await self._open_calls.run(
                    context, lambda call: self._dispatch(context, params, call)
                )
        except PlanwaveError as error:
            return error_result(error)
        except MCPError:
            raise
        except Exception:  # noqa: BLE001 - a boundary: no client sees a stack trace
            _log.exception("the tool %r failed", params.name)
            return error_result(PlanwaveError(_FAULT))

    async def _log_call(self, params: mcp_types.CallToolRequestParams) -> None:
        """Write a line of the audit log for a call that changes something."""
        if self._service.audit is None or _is_read(params):
            return
        action, is_strict = TOOL_ACTIONS.get(params.name, ("execution.created", False))
        arguments = params.arguments or {}
        ids = {name: str(arguments[name])[:_ID_CHARS] for name in _IDS if arguments.get(name)}
        tool = params.name[:_ID_CHARS]
        await self._service.audit.record(action, ids, is_strict=is_strict, tool=tool)

    async def _dispatch(
        self, context: Request, params: mcp_types.CallToolRequestParams, call: OpenCall
    ) -> mcp_types.CallToolResult:
        raw_arguments = params.arguments or {}
        progress = CallProgress(context.session.report_progress)
        model = ARGUMENTS.get(params.name)
        if model is None:
            return await self._run_flow(context, params.name, raw_arguments, call, progress)
        caller = self._gate.caller(context)
        caller.require_scope(TOOL_SCOPES.get(params.name), f"the tool {params.name!r}")
        arguments = read_arguments(model, raw_arguments)
        if isinstance(arguments, StatusArguments | ResultArguments | AnswerArguments):
            await caller.require_execution(self._service, arguments.execution_id)
        match arguments:
            case PlanArguments():
                return await self._calls.plan(arguments, progress)
            case RunArguments():
                return await self._calls.run(arguments, call, progress, self._admission(context))
            case StatusArguments():
                return await self._calls.status(arguments)
            case ResultArguments():
                return await self._calls.result(arguments, progress)
            case AnswerArguments():
                return await self._calls.answer(arguments, progress, raw_arguments.get("value"))
            case other:
                raise TypeError(f"no tool takes {other!r}")

    async def _run_flow(
        self,
        context: Request,
        name: str,
        raw_arguments: Mapping[str, Any],
        call: OpenCall,
        progress: CallProgress,
    ) -> mcp_types.CallToolResult:
        caller = self._gate.caller(context)
        tools = await self._flow_tools(caller)
        tool = tools.get(name)
        if tool is None:
            error = unknown_tool(name, [*ARGUMENTS, *tools])
            raise MCPError(mcp_types.INVALID_PARAMS, f"{error.message}; {error.hint}")
        return await self._calls.run_flow(
            tool, raw_arguments, call, progress, self._admission(context)
        )

    def _admission(self, context: Request) -> Admission:
        return Admission(self._gate.caller(context), lambda: self._gate.admit(context))

    async def _flow_tools(self, caller: Caller) -> dict[str, FlowTool]:
        """Return the published flows that the caller may run, by the names of their tools."""
        if not caller.has_scope(RUN):
            return {}
        tools = await self._service.flow_tools.list(ARGUMENTS)
        return {name: each for name, each in tools.items() if caller.has_flow(each.flow.plan_id)}

    async def list_resources(
        self, context: Request, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListResourcesResult:
        cursor = params.cursor if params is not None else None
        return await list_resources(self._service, self._gate.caller(context), cursor)

    async def list_templates(
        self, context: Request, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListResourceTemplatesResult:
        return mcp_types.ListResourceTemplatesResult(resource_templates=templates())

    async def cancelled(
        self, context: Request, params: mcp_types.CancelledNotificationParams
    ) -> None:
        with acting_as(self._gate.caller(context).principal):
            await self._open_calls.cancelled(context, params)

    async def read_resource(
        self, context: Request, params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        return await read_resource(self._service, self._gate.caller(context), str(params.uri))


def _is_read(params: mcp_types.CallToolRequestParams) -> bool:
    """Return whether a tool changes nothing; that of a flow starts an execution."""
    return params.name in TOOL_SCOPES and params.name not in TOOL_ACTIONS
