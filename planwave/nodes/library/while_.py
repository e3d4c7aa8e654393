"""``while``: repeat a graph while a condition holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from planwave.errors import PermanentError
from planwave.expressions import NODES, compile_template
from planwave.graph.diagnostics import short_repr
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.nodes.authoring.data_fields import (
    as_expression,
    expression_field,
    graph_field,
    limited_field,
    to_data_value,
)
from planwave.nodes.authoring.node_type import INPUT, NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.services import limits_of
from planwave.nodes.subgraphs import (
    FlowName,
    check_rounds,
    check_source,
    dependencies,
    flow_field,
    input_value,
    load,
)

_VARIABLES: Final = ("value", "index")
_LIMIT: Final = "loop_rounds"
_DEFAULT_MAX_ROUNDS: Final = 100
"""Maximum rounds if neither the node nor a limit sets one, so that every loop ends."""


class WhileData(NodeData):
    """The condition, and the graph of each round."""

    condition: str = expression_field(
        *_VARIABLES, description="Whether there is another round: true or false."
    )
    body: dict[str, Any] | None = graph_field(
        *_VARIABLES, description="The graph that runs in each round."
    )
    flow: FlowName | None = flow_field()
    initial: Any = template(None, description="The first value; without one, the input.")
    max_iterations: int | None = limited_field(_LIMIT, description="The most rounds.")


class While(NodeType):
    """Runs ``data.body`` while the condition holds; each round receives the previous round's result."""

    node_type = "while"
    purpose = (
        "Repeat the graph in body as long as condition, an expression over value and index, is true; "
        "value is the input, then what each round came to."
    )
    summary = "Repeat steps as long as a condition holds."
    Data = WhileData
    plan_fields = ("condition", "body", "initial", "maxIterations")
    inputs = (INPUT,)
    outputs = (Port(DEFAULT_SOURCE_HANDLE), Port("iterations", "integer"))
    reads_goal = True
    runs_graphs = True
    depends_outside = False
    replayable = True

    async def run(self, data: WhileData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        nested = await load("body", data.body, data.flow, _VARIABLES, context)
        value = _initial_value(data, inputs)
        rounds = 0
        most = data.max_iterations or (_DEFAULT_MAX_ROUNDS if limits_of(context) is None else None)
        variables: dict[str, Json] = {"value": value.value, "index": rounds}
        while await _evaluate_condition(data.condition, variables, context):
            check_rounds(
                most, rounds + 1, "rounds", field="maxIterations", limit=_LIMIT, context=context
            )
            value = nested.result(await nested.run(str(rounds), value, variables, context))
            rounds += 1
            variables = {"value": value.value, "index": rounds}
        outputs = {DEFAULT_SOURCE_HANDLE: value, "iterations": DataValue("integer", rounds)}
        return ExecutionResult(outputs)

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        ready, _ = self.prepare(data, inputs, await self.read_wires(data, inputs, context), context)
        return {
            **await dependencies(ready.body, ready.flow, context),
            "nodes": await _referenced_nodes(ready.condition, context),
        }

    def check(self, data: WhileData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is not None:
            yield from check_source("body", data.body, data.flow, view)


def _initial_value(data: WhileData, inputs: Inputs) -> DataValue:
    if "initial" in data.model_fields_set:
        return to_data_value(data.initial)
    return input_value(inputs) or DataValue("text", "")


async def _referenced_nodes(condition: str, context: FlowContext) -> Json:
    """Return the results of the nodes that the condition names; its other variables are inputs."""
    template = compile_template(as_expression(condition))
    references = template.references if template is not None else ()
    named = {reference.key for reference in references if reference.root == NODES}
    if not named:
        return None
    seen: dict[str, Json] = await context.runtime.resolve(as_expression(NODES), {})
    return seen if None in named else {key: seen.get(key) for key in named if key is not None}


async def _evaluate_condition(
    condition: str, variables: dict[str, Json], context: FlowContext
) -> bool:
    """Return whether the condition holds; it must be a boolean, or ``true`` or ``false`` as text."""
    written: Json = {"condition": as_expression(condition)}  # so that an error names its field
    result = (await context.runtime.resolve(written, variables))["condition"]
    if isinstance(result, str) and result.strip().lower() in ("true", "false"):
        return result.strip().lower() == "true"
    if not isinstance(result, bool):
        raise PermanentError(
            f"the condition of {context.node_id!r} gives neither true nor false, but {short_repr(result)}",
            code="not-a-boolean",
            hint="compare something, as in: value.score < 8",
        )
    return result
