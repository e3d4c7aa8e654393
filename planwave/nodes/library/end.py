"""``end``: where a graph's result is."""

from __future__ import annotations

from collections.abc import Mapping

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Json
from planwave.graph.protocols import FlowContext
from planwave.nodes.authoring.node_type import NodeData, NodeType, pass_through


class End(NodeType):
    """Passes its input on as the result."""

    node_type = "end"
    purpose = "Mark a final result; passes its input on unchanged."
    Data = NodeData
    example: Mapping[str, Json] = {
        "nodes": [
            {"id": "answer", "type": "text", "data": {"text": "It is 42."}},
            {"id": "check", "type": "text", "data": {"text": "{{ input | length }} characters"}},
            {"id": "result", "type": "end"},
        ],
        "edges": [
            {"source": "answer", "target": "check", "data": {"channel": "flow"}},
            {"source": "answer", "target": "result", "data": {"channel": "flow"}},
        ],
    }

    async def run(self, data: NodeData, inputs: Inputs, context: FlowContext) -> DataValue:
        return pass_through(inputs)
