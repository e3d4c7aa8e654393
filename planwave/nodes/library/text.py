"""``text``: a text, fixed, filled in from a template, or wired."""

from __future__ import annotations

from collections.abc import Mapping

from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue
from planwave.nodes.authoring.node_type import NodeData, template
from planwave.nodes.value_type import ValueType, value_ports


class TextData(NodeData):
    """The text; ``{{ … }}`` in it is resolved."""

    text: str = template(description="The text.")


class Text(ValueType):
    """Outputs ``data.text``, always as text."""

    node_type = "text"
    purpose = "Give a fixed text or a template filled from earlier results; no model is asked."
    summary = "Give a text, with parts from earlier steps."
    Data = TextData
    plan_fields = ("text",)
    outputs = value_ports("text")

    def values(self, data: TextData) -> Mapping[str, DataValue]:
        return {DEFAULT_SOURCE_HANDLE: DataValue("text", data.text)}
