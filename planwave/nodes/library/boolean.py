"""``boolean``: true or false, written, worked out by a template, or wired."""

from __future__ import annotations

from collections.abc import Mapping

from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue
from planwave.nodes.authoring.node_type import NodeData, template
from planwave.nodes.value_type import ValueType, value_ports


class BooleanData(NodeData):
    """True or false."""

    value: bool = template(description="The value.")


class Boolean(ValueType):
    """Outputs ``data.value``."""

    node_type = "boolean"
    purpose = "Give true or false; no model is asked."
    summary = "Give true or false."
    Data = BooleanData
    plan_fields = ("value",)
    outputs = value_ports("boolean")
    planned = False

    def values(self, data: BooleanData) -> Mapping[str, DataValue]:
        return {DEFAULT_SOURCE_HANDLE: DataValue("boolean", data.value)}
