"""``json``: any JSON value, written, filled in from templates, or wired."""

from __future__ import annotations

from collections.abc import Mapping

from planwave.expressions import copy_json
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json
from planwave.nodes.authoring.node_type import NodeData, template
from planwave.nodes.value_type import ValueType, value_ports


class JsonData(NodeData):
    """The value; ``{{ … }}`` in any text of it is resolved."""

    value: Json = template(description="The value; each text in it may be a template.")


class JsonValue(ValueType):
    """Outputs ``data.value``."""

    node_type = "json"
    purpose = (
        "Give a list, an object or any other JSON value, fixed or filled from earlier results."
    )
    summary = "Give a list or an object."
    Data = JsonData
    plan_fields = ("value",)
    outputs = value_ports("json")
    planned = False

    def values(self, data: JsonData) -> Mapping[str, DataValue]:
        # A copy, so that changing the result does not change the graph.
        return {DEFAULT_SOURCE_HANDLE: DataValue("json", copy_json(data.value))}
