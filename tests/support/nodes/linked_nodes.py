"""Node types that meet over a link: one makes something on demand, the other asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph, Node, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from tests.support.graph.builders import make_edge


class LinkedSource:
    """Materializes water for the nodes linked to it."""

    node_type = "well"
    outputs = (Port("water", "water", channel="link"),)

    async def materialize(self, data: Any, output_handle: str, context: FlowContext) -> str:
        return "water"


class LinkConsumer:
    """Returns what its links bring."""

    node_type = "drinker"
    inputs = (Port("water", "water", channel="link"),)

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        drawn = await context.runtime.resolve_links(context.node_id, "water")
        return ExecutionResult({"output": DataValue("text", " ".join(drawn))})


def two_consumers_of_one_source() -> Graph:
    """Return a graph in which two nodes use one linked source."""
    nodes = (Node("w", "well", "w"), Node("a", "drinker", "a"), Node("b", "drinker", "b"))
    edges = tuple(
        make_edge("w", n, source_handle="water", target_handle="water", channel="link")
        for n in ("a", "b")
    )
    return Graph(nodes, edges)
