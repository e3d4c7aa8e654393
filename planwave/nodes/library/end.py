"""``end``: where a graph's result is."""

from __future__ import annotations

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.node_type import NodeData, NodeType, pass_through


class End(NodeType):
    """Passes its input on as the result."""

    node_type = "end"
    purpose = "Mark a final result; passes its input on unchanged."
    summary = "Mark a final result."
    Data = NodeData
    fails_permanently = True
    passes_on = True

    async def run(self, data: NodeData, inputs: Inputs, context: FlowContext) -> DataValue:
        return pass_through(inputs)
