"""``call_tool``: call one tool, without a model."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Json
from planwave.graph.plan import canonical_json, graph_hash
from planwave.graph.protocols import FlowContext
from planwave.nodes.agents.delegation import delegation_of
from planwave.nodes.agents.linked_tools import log_warnings
from planwave.nodes.agents.tool import Approval, Tool
from planwave.nodes.agents.tool_calls import ToolCalls
from planwave.nodes.agents.tool_names import tool_name
from planwave.nodes.authoring.data_fields import POLICY, to_data_value
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.checking.tool_arguments import check_arguments
from planwave.nodes.library.flow_tool import FlowToolData, tool_of_flow
from planwave.nodes.library.mcp_server import McpServerData, check_server_name, server_tools
from planwave.nodes.library.tool import check_tool_name, registered_tool
from planwave.nodes.services import mcp_servers_of
from planwave.nodes.subgraphs import FlowName, dependencies, load_flow
from planwave.nodes.tools.tool_node import stricter_approval

_FLOW_KEY: Final = "flow"
"""The name under which a node keeps the graph of its flow; ``dependencies`` looks there."""
_FORMS: Final = "write data.tool, data.server and data.tool, or data.flow"
_ID_CHARS: Final = 12


class CallToolData(NodeData):
    """Which tool is called, and its arguments."""

    tool: str | None = Field(
        None,
        min_length=1,
        description="The name of the tool; `planwave tools` lists them. With a server, one of its tools.",
        json_schema_extra=POLICY,
    )
    server: str | None = Field(
        None,
        min_length=1,
        description="The MCP server that has the tool, by its name in the operator's settings.",
        json_schema_extra=POLICY,
    )
    flow: FlowName | None = Field(
        None,
        title="Flow",
        description="A stored flow that is called in place of a tool.",
        json_schema_extra=POLICY,
    )
    arguments: dict[str, Json] = template(
        {}, description="The arguments by name; each value may hold {{ … }}."
    )
    approval: Approval | None = Field(
        None,
        description="When a person approves the call: never, always, or write (where it may change "
        "something); write for a tool of a server if none is given. The stricter of this and what the "
        "operator and the tool say holds.",
        json_schema_extra=POLICY,
    )
    timeout_s: float | None = Field(
        None, gt=0, description="The time of the call, in seconds; null for that of the step."
    )


class CallTool(NodeType):
    """Calls one tool with ``data.arguments``, and outputs its result; no model is asked.

    The tool is a registered one (``tool``), one of an MCP server that the operator has set up (``server``
    and ``tool``), or a stored flow (``flow``). Which one stands in the graph: no wire leads into these
    fields, and no template in them is resolved. The arguments are checked against the schema of the tool,
    before the run as far as both are known. All that holds for a call by an agent holds for this one:
    when a person is asked, what is recorded, and what becomes of a call that was cut off.

    The result is JSON where the tool gives JSON, else text; where a registered tool says of which type, the
    output has it. A call that fails fails the step, one that a
    person rejects with the code ``rejected``.
    """

    node_type = "call_tool"
    purpose = "Call one tool, a tool of an MCP server or a stored flow, with arguments; no model is asked."
    summary = "Call a tool without a model."
    Data = CallToolData
    plan_fields = ()
    effect = "once"
    effect_of_tools = "tool"
    effect_unless = "server"
    gives_result_of_tool = True
    guards_effect = True
    uses_services = True
    replayable = True  # its one call is recorded
    planned = False

    async def run(self, data: CallToolData, inputs: Inputs, context: FlowContext) -> DataValue:
        tool = await _tool_of(data, context)
        calls = ToolCalls([tool], context, delegation_of(context), caller="step")
        return to_data_value(await calls.call(tool.name, data.arguments, _call_id(context)))

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        ready, _ = self.prepare(data, inputs, await self.read_wires(data, inputs, context), context)
        flow = cast("CallToolData", ready).flow
        return None if flow is None else await dependencies(None, flow, context)

    def check(self, data: CallToolData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        wrong = list(_wrong_forms(data))
        yield from wrong
        if wrong:
            return
        if data.server is not None:
            yield from check_server_name(data.server, view)
        elif data.tool is not None:
            yield from check_tool_name(data.tool, "/data/tool", view, "tool")
            tools = view.index.tools
            if tools is not None and (entry := tools.get(data.tool)) is not None:
                wired = {edge.target_handle for edge in view.incoming}
                schema, what = entry.tool.parameters, f"the tool {data.tool!r}"
                yield from _check_written_arguments(view.node.data, wired, schema, what)

    def check_flow_inputs(
        self, data: Mapping[str, Json], wired: Collection[str], inputs: Mapping[str, Any]
    ) -> Iterable[NodeFinding]:
        """Yield the arguments that the flow does not take; see ``service.flows.flow_references``."""
        return _check_written_arguments(data, wired, inputs, "the flow")


def _wrong_forms(data: CallToolData) -> Iterator[NodeFinding]:
    """Find data that name no tool, or two."""
    if data.flow is not None:
        for name in ("tool", "server"):
            if getattr(data, name) is not None:
                message = f"data.flow and data.{name} are both there"
                yield NodeFinding("conflicting-field", message, f"/data/{name}", _FORMS)
    elif data.tool is None:
        if data.server is None:
            message = "the step names no tool"
        else:
            message = f"data.tool is required: it names a tool of the server {data.server!r}"
        yield NodeFinding("missing-required-input", message, "/data/tool", _FORMS)


def _check_written_arguments(
    data: Mapping[str, Json], wired: Collection[str], schema: Mapping[str, Any], what: str
) -> Iterator[NodeFinding]:
    """Check the arguments that stand in a node, unless a wire or a template brings all of them."""
    written = data.get("arguments", {})
    if "arguments" not in wired and isinstance(written, dict):
        yield from check_arguments(cast("dict[str, Json]", written), schema, what)


async def _tool_of(data: CallToolData, context: FlowContext) -> Tool:
    """Return the tool that a node calls.

    Raises:
        NodeError: ``unknown-tool``, ``unknown-mcp-tool``; the server cannot be reached, or the flow is not
            there; ``invalid-data``: the data name no tool, or two.
    """
    for finding in _wrong_forms(data):
        message = f"node {context.node_id!r}: {finding.message}"
        raise PermanentError(message, code=finding.code, hint=finding.hint)
    named: dict[str, Json] = {"tool": data.tool, "server": data.server}
    if data.flow is not None:
        graph = await load_flow(data.flow, context, _FLOW_KEY)
        name = str(data.flow.name or data.flow.id)
        written: dict[str, Json] = {
            "name": tool_name(name),
            "description": f"The flow {name}.",
            "flow": data.flow.model_dump(),
            "approval": data.approval,
            "timeoutS": data.timeout_s,
        }
        about = FlowToolData.model_validate(written)
        tool = tool_of_flow(graph, about, context.runtime.catalogue, flow_key=_FLOW_KEY)
        named["flow"] = graph_hash(graph)
    elif data.server is not None:
        tool = await _tool_of_server(data.server, str(data.tool), data, context)
    else:
        tool = registered_tool(str(data.tool), context)
        approval = stricter_approval(tool.approval, data.approval)
        timeout_s = data.timeout_s if data.timeout_s is not None else tool.timeout_s
        tool = replace(tool, approval=approval, timeout_s=timeout_s)
    return replace(tool, node_id=context.node_id, definition=_hash(named))


async def _tool_of_server(server: str, tool: str, data: CallToolData, context: FlowContext) -> Tool:
    """Return a tool of a server; all nodes of the graph share one connection to it."""
    written: dict[str, Json] = {"server": server, "allow": [tool], "callTimeoutS": data.timeout_s}
    if data.approval is not None:
        written["approval"] = data.approval
    about = McpServerData.model_validate(written)
    servers = mcp_servers_of(context)
    connection = await context.runtime.open_once(
        f"mcp:{server}", lambda: servers.connection(server)
    )
    tools = server_tools(connection, about, context)
    log_warnings([tools], context)
    return tools[0]


def _call_id(context: FlowContext) -> str:
    """Return the id of the one call of an attempt: the same when it is executed again, and in a fork."""
    return f"call_{_hash([context.path, context.attempt])[:_ID_CHARS]}"


def _hash(value: Json) -> str:
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()
