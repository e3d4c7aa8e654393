"""``void``: discard the input."""

from __future__ import annotations

from planwave.graph.inputs import Inputs
from planwave.graph.model import Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.authoring.node_type import NodeData, NodeType


class Void(NodeType):
    """Accepts any input and has no output.

    Useful to run a step whose result is not needed, or to end a branch without adding it to the
    results of the run.
    """

    node_type = "void"
    purpose = "Discard the input; no result."
    summary = "Take the input and give nothing."
    Data = NodeData
    fails_permanently = True
    passes_on = True
    outputs: tuple[Port, ...] = ()
    planned = False

    async def run(self, data: NodeData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        return ExecutionResult({})
