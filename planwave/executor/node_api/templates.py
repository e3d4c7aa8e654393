"""Template variables of one node, and its data with expressions resolved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from planwave.executor.values import GraphValues
from planwave.expressions import FLOW_INPUTS, compile_template
from planwave.expressions.templates import TemplateEngine
from planwave.expressions.variables import NODES
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_TARGET_HANDLE, Json


class TemplateVariables:
    """What expressions in one node's data may name; values are looked up only when asked for."""

    __slots__ = ("_inputs", "_node", "_values", "_variables")

    def __init__(
        self, values: GraphValues, node: int, inputs: Inputs, variables: Mapping[str, Json]
    ) -> None:
        self._values, self._node = values, node
        self._inputs, self._variables = inputs, variables

    def lookup(self, root: str) -> Json:
        """Return the value of a root name; KeyError if there is none."""
        if root == "inputs":
            return {handle: self._inputs[handle].value for handle in self._inputs}
        if root == "PREVIOUS_OUTPUT":
            main = DEFAULT_TARGET_HANDLE if DEFAULT_TARGET_HANDLE in self._inputs else None
            return self._inputs.text(main)
        if root == NODES:
            return self._ancestor_outputs()
        if root in self._variables:
            return self._variables[root]
        if root == DEFAULT_TARGET_HANDLE and root not in self._inputs and len(self._inputs) == 1:
            return next(iter(self._inputs.values())).value
        if root not in self._inputs and root != DEFAULT_TARGET_HANDLE:
            return cast("Mapping[str, Json]", self._variables.get(FLOW_INPUTS, {}))[root]
        return self._inputs[root].value

    def _ancestor_outputs(self) -> dict[str, dict[str, Json]]:
        program, outputs = self._values.program, self._values.outputs
        by_node = {
            program.topology.ids[n]: {handle: v.value for handle, v in node_outputs.items()}
            for n in program.ancestors(self._node)
            if (node_outputs := outputs[n]) is not None
        }
        outside = self._values.variables.get(NODES)  # of a linked node, see linked_graphs.py
        return {**outside, **by_node} if isinstance(outside, dict) else by_node


async def resolve_data(
    values: GraphValues, node: int, inputs: Inputs, renderer: TemplateEngine | None
) -> Mapping[str, Json]:
    """Return a node's data with its expressions resolved; the node's own data where it has none."""
    step = values.program.steps[node]
    if step.template is None:
        return step.node.data
    scope = TemplateVariables(values, node, inputs, values.variables)
    resolved: Mapping[str, Json] = await step.template.resolve(scope, renderer)
    return resolved


async def resolve_value(
    values: GraphValues,
    node: int,
    value: Json,
    added: Mapping[str, Json],
    renderer: TemplateEngine | None,
) -> Json:
    """Return any value with its expressions resolved as in a node's data, with names added."""
    template = compile_template(value)
    if template is None:
        return value
    variables = {**values.variables, **added}
    scope = TemplateVariables(values, node, Inputs(values.arrivals_at(node)), variables)
    return await template.resolve(scope, renderer)
