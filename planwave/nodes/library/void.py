"""``void``: where what nobody wants goes."""

from __future__ import annotations

from planwave.graph.inputs import Inputs
from planwave.graph.model import Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.authoring.node_type import NodeData, NodeType


class Void(NodeType):
    """Takes whatever arrives and gives nothing: no result, no way on.

    Of use where a step is to run as a stage and its result is of no use, or where a branch is to end
    without being a result of the run.
    """

    node_type = "void"
    purpose = "Swallow what arrives; gives no result."
    Data = NodeData
    outputs: tuple[Port, ...] = ()
    planned = False

    async def run(self, data: NodeData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        return ExecutionResult({})
