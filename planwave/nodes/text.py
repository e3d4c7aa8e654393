"""``text``: a text, fixed or filled in from a template."""

from __future__ import annotations

from planwave.graph.capabilities import FlowContext
from planwave.graph.model import Port
from planwave.graph.values import DataValue, Inputs
from planwave.nodes.node_type import NodeData, NodeType, template


class TextData(NodeData):
    """The text; ``{{ … }}`` in it is resolved."""

    text: str = template()


class Text(NodeType):
    """Gives ``data.text``, always as text."""

    node_type = "text"
    purpose = "Give a fixed text or a template filled from earlier results; no model is asked."
    Data = TextData
    outputs = (Port("output", "text"),)

    async def run(self, data: TextData, inputs: Inputs, context: FlowContext) -> DataValue:
        return DataValue("text", data.text)
