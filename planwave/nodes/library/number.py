"""``number``: a number, written, worked out by a template, or wired."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidatorFunctionWrapHandler, field_validator

from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json
from planwave.nodes.authoring.data_fields import to_data_value
from planwave.nodes.authoring.node_type import NodeData, template
from planwave.nodes.value_type import ValueType, value_ports

_INTEGER = "integer"


class NumberData(NodeData):
    """The number."""

    value: float = template(description="The value.")

    @field_validator("value", mode="wrap")
    @classmethod
    def _keep_integer(cls, value: Json, read: ValidatorFunctionWrapHandler) -> float:
        number: float = read(value)
        return value if isinstance(value, int) else number


class Number(ValueType):
    """Outputs ``data.value``; a whole number also on the output of type ``integer``."""

    node_type = "number"
    purpose = "Give a number; a whole one also on the output 'integer'. No model is asked."
    summary = "Give a number."
    Data = NumberData
    plan_fields = ("value",)
    outputs = (*value_ports("number"), *value_ports(_INTEGER, _INTEGER))
    planned = False

    def values(self, data: NumberData) -> Mapping[str, DataValue]:
        value = to_data_value(data.value)
        values = {DEFAULT_SOURCE_HANDLE: value}
        return values | {_INTEGER: value} if value.type == _INTEGER else values
