"""``end``: where a graph's result is."""

from __future__ import annotations

from planwave.graph.capabilities import FlowContext
from planwave.graph.values import DataValue, Inputs
from planwave.nodes.node_type import NodeData, NodeType, passed_on


class End(NodeType):
    """Passes its input on as the result."""

    node_type = "end"
    purpose = "Mark a final result; passes its input on unchanged."
    Data = NodeData

    async def run(self, data: NodeData, inputs: Inputs, context: FlowContext) -> DataValue:
        return passed_on(inputs)
