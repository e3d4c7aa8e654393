"""``start``: where a graph begins."""

from __future__ import annotations

from pydantic import Field

from planwave.expressions import copy_json
from planwave.graph.inputs import Inputs
from planwave.graph.model import Json, Port
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.node_type import NodeData, NodeType


class StartData(NodeData):
    """What the node gives when the execution brings no input for it."""

    initial_input: Json = Field("", description="The input of runs that bring none.")


class Start(NodeType):
    """Outputs ``data.initialInput``; an execution with inputs sets its result without running it."""

    node_type = "start"
    purpose = "Begin the flow with the input of the execution."
    summary = "Begin with what the run is given."
    Data = StartData
    plan_fields = ("initialInput",)
    fails_permanently = True
    inputs: tuple[Port, ...] = ()
    entry = expects_input = True

    async def run(self, data: StartData, inputs: Inputs, context: FlowContext) -> Json:
        return "" if data.initial_input is None else copy_json(data.initial_input)
