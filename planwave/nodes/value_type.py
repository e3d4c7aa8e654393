"""What the types have in common that are nothing but a value: to be had over flow and over links."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from planwave.errors import PermanentError
from planwave.graph.diagnostics import short_repr
from planwave.graph.inputs import Inputs
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    ERROR_HANDLE,
    FLOW,
    LINK,
    DataValue,
    Json,
    Port,
)
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.authoring.data_fields import FIELD_PORT_SIDE
from planwave.nodes.authoring.node_type import NodeType, prepare_linked


def value_ports(socket: str, name: str = DEFAULT_SOURCE_HANDLE) -> tuple[Port, Port]:
    """Return the two outputs of a value: one for data, one for links."""
    return Port(name, socket), Port(name, socket, channel=LINK, side=FIELD_PORT_SIDE)


class ValueType(NodeType):
    """A type that gives values, as a stage or, where it is only linked, on demand."""

    fails_permanently = True

    @abstractmethod
    def values(self, data: Any) -> Mapping[str, DataValue]:
        """Return the value on each output that has one."""

    async def run(self, data: Any, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        values = self.values(data)
        for edge in context.runtime.outgoing_edges(context.node_id, channel=FLOW):
            if edge.source_handle not in (*values, ERROR_HANDLE):
                raise _no_value(context.node_id, edge.source_handle, values)
        return ExecutionResult(values)

    async def materialize(
        self, data: Mapping[str, Json], output_handle: str, context: FlowContext
    ) -> DataValue:
        """Return the value of an output to a linked node.

        Raises:
            NodeError: The output has no value (``no-value``).
        """
        ready, _ = await prepare_linked(self, data, context)
        values = self.values(ready)
        if output_handle not in values:
            raise _no_value(context.node_id, output_handle, values)
        return values[output_handle]


def _no_value(node_id: str, handle: str, values: Mapping[str, DataValue]) -> PermanentError:
    there = ", ".join(f"{name!r} ({short_repr(value.value)})" for name, value in values.items())
    return PermanentError(
        f"node {node_id!r} has no value for its output {handle!r}, only for {there}",
        code="no-value",
        hint="change its value, or take another output",
    )
