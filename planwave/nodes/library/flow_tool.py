"""``flow_tool``: a stored flow, as a tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import Field

from planwave.graph.inputs import Inputs
from planwave.graph.model import Graph, Json
from planwave.graph.protocols import FlowContext, NodeTypes, strongest_effect
from planwave.graph.subgraphs import effects_of
from planwave.nodes.agents.tool import FLOW, Tool, ToolCallContext
from planwave.nodes.authoring.node_type import NodeData, NodeFinding, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.checking.tool_schemas import check_parameters
from planwave.nodes.subgraphs import FlowName, load_flow, prepare, stored_flow
from planwave.nodes.tools.flow_inputs import entry_inputs, input_schema
from planwave.nodes.tools.tool_node import ApprovalField, ToolName, ToolNode, name_in


class FlowToolData(NodeData):
    """The flow, and what the model reads about it."""

    name: ToolName = Field(description="What the model calls it.")
    description: str = template(description="What it does and when to use it, for the model.")
    flow: FlowName = Field(title="Flow", description="The stored flow that a call runs.")
    parameters: dict[str, Json] | None = Field(
        None,
        description="The JSON Schema of the input of the flow, an object; without one, the entry "
        "nodes of the flow decide.",
    )
    approval: ApprovalField = None
    timeout_s: float | None = Field(
        None, gt=0, description="The time of one call, in seconds; null for that of the agent."
    )


class FlowTool(ToolNode):
    """Gives a tool that runs a stored flow inside the agent; its result is that of the flow.

    Without ``parameters`` the arguments are the inputs of the flow: ``input`` for its ``start`` node,
    ``message``, ``files`` … for a ``user_input``, the ids of its entry nodes where there are several.
    With ``parameters`` the arguments are one object, which every entry node gives. Without a revision,
    an agent uses the one that was live at its first call. The effect is the strongest of the
    flow's nodes.
    """

    node_type = "flow_tool"
    purpose = (
        "Give an agent a stored flow as a tool: each call runs it with the arguments as inputs."
    )
    summary = "Give an agent a stored flow as a tool."
    Data = FlowToolData
    effect = "once"
    uses_services = True

    async def make(self, data: FlowToolData, inputs: Inputs, context: FlowContext) -> Tool:
        return tool_of_flow(
            await stored_flow(data.flow, context),
            data,
            context.runtime.catalogue,
            flow_key=f"flow-of-{context.node_id}",
        )

    def tool_names(self, data: Mapping[str, Json]) -> Sequence[str]:
        return name_in(data)

    def check_data(self, data: FlowToolData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is not None and data.parameters is not None and not view.is_wired("parameters"):
            yield from check_parameters(data.parameters)


def tool_of_flow(graph: Graph, data: FlowToolData, catalogue: NodeTypes, *, flow_key: str) -> Tool:
    """Return a flow as a tool.

    Args:
        graph: The flow as it is stored now.
        data: The flow, and what is said about it.
        catalogue: The node types.
        flow_key: The name under which the node that calls it keeps the graph of its first call.
    """
    schema: Mapping[str, Any] | None = data.parameters
    return Tool(
        data.name,
        data.description,
        input_schema(prepare(graph, catalogue), catalogue) if schema is None else schema,
        _FlowCall(data, flow_key).run,
        strongest_effect(
            effect for node in graph.nodes for effect in effects_of(node, graph, catalogue)
        ),
        data.approval or "never",
        kind=FLOW,
        timeout_s=data.timeout_s,
        details={"flow": data.flow.name or data.flow.id, "revision": data.flow.revision},
    )


class _FlowCall:
    """Runs the flow of a tool; one for all its calls."""

    def __init__(self, data: FlowToolData, flow_key: str) -> None:
        self._data = data
        self._flow_key = flow_key

    async def run(self, arguments: Mapping[str, Json], context: ToolCallContext) -> Json:
        """Run it with the arguments of a call; see ``CallTool``."""
        runtime = context.flow.runtime
        graph = await load_flow(self._data.flow, context.flow, self._flow_key)
        flow = prepare(graph, runtime.catalogue)
        as_object = self._data.parameters is not None
        inputs = entry_inputs(flow, arguments, runtime.catalogue, as_object=as_object)
        outputs = await runtime.run_graph(context.run_key or context.call_id, graph, inputs)
        return flow.result(outputs).value
