"""``while``: a graph again and again, as long as a condition holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from planwave.errors import NodeError
from planwave.expressions import compile_template
from planwave.expressions.references import NODES
from planwave.graph.capabilities import ExecutionResult, FlowContext
from planwave.graph.json_values import shown
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Json, Port
from planwave.graph.values import DataValue, Inputs
from planwave.nodes.fields import as_expression, expression_field, graph_field, limited_field
from planwave.nodes.nested import (
    FlowName,
    as_value,
    flow_field,
    given_value,
    nested_graph,
    one_graph,
    refuse_more,
    seen_inside,
)
from planwave.nodes.node_type import INPUT, Finding, NodeData, NodeType, template
from planwave.nodes.services import limits_of
from planwave.nodes.wiring import Wiring

_NAMES: Final = ("value", "index")
_LIMIT: Final = "loop_rounds"
_ROUNDS: Final = 100
"""What a loop may take where neither the node nor a limit says so: it has to end at some time."""


class WhileData(NodeData):
    """When to go on, and what to do in each round."""

    condition: str = expression_field(*_NAMES)
    body: dict[str, Any] | None = graph_field(*_NAMES)
    flow: FlowName | None = flow_field()
    initial: Any = template(None)
    max_iterations: int | None = limited_field(_LIMIT)


class While(NodeType):
    """Runs ``data.body`` while the condition holds; each round gets what the one before came to."""

    node_type = "while"
    purpose = (
        "Repeat the graph in body as long as condition, an expression over value and index, is true; "
        "value is the input, then what each round came to."
    )
    Data = WhileData
    inputs = (INPUT,)
    outputs = (Port(DEFAULT_SOURCE_HANDLE), Port("iterations", "integer"))
    reads_goal = True
    runs_graphs = True
    example: Mapping[str, Json] = {
        "nodes": [
            {
                "id": "grow",
                "type": "while",
                "data": {
                    "initial": "ab",
                    "condition": "value | length < 10",
                    "body": {
                        "nodes": [
                            {
                                "id": "twice",
                                "type": "text",
                                "data": {"text": "{{ value }}{{ value }}"},
                            }
                        ],
                        "edges": [],
                    },
                },
            }
        ],
        "edges": [],
    }

    async def run(self, data: WhileData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        nested = await nested_graph("body", data.body, data.flow, _NAMES, context)
        value = _first(data, inputs)
        rounds = 0
        most = data.max_iterations or (_ROUNDS if limits_of(context) is None else None)
        variables: dict[str, Json] = {"value": value.value, "index": rounds}
        while await _holds(data.condition, variables, context):
            refuse_more(
                most, rounds + 1, "rounds", field="maxIterations", limit=_LIMIT, context=context
            )
            value = nested.result(await nested.run(str(rounds), value, variables, context))
            rounds += 1
            variables = {"value": value.value, "index": rounds}
        outputs = {DEFAULT_SOURCE_HANDLE: value, "iterations": DataValue("integer", rounds)}
        return ExecutionResult(outputs)

    async def follows_from(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        ready, _ = self.ready(data, inputs, await self.fed(data, inputs, context), context)
        return {
            **await seen_inside(ready.body, ready.flow, context),
            "nodes": await _nodes_named(ready.condition, context),
        }

    def find_faults(self, data: WhileData | None, wiring: Wiring) -> Iterable[Finding]:
        if data is not None:
            yield from one_graph("body", data.body, data.flow, wiring)


def _first(data: WhileData, inputs: Inputs) -> DataValue:
    if "initial" in data.model_fields_set:
        return as_value(data.initial)
    return given_value(inputs) or DataValue("text", "")


async def _nodes_named(condition: str, context: FlowContext) -> Json:
    """Give what the nodes gave that the condition names; the rest of what it sees arrives."""
    template = compile_template(as_expression(condition))
    references = template.references if template is not None else ()
    named = {reference.key for reference in references if reference.root == NODES}
    if not named:
        return None
    seen: dict[str, Json] = await context.runtime.resolve(as_expression(NODES), {})
    return seen if None in named else {key: seen.get(key) for key in named if key is not None}


async def _holds(condition: str, variables: dict[str, Json], context: FlowContext) -> bool:
    """Say whether the condition holds: it gives true or false, or one of them as text."""
    written: Json = {"condition": as_expression(condition)}  # so that a fault names its field
    found = (await context.runtime.resolve(written, variables))["condition"]
    if isinstance(found, str) and found.strip().lower() in ("true", "false"):
        return found.strip().lower() == "true"
    if not isinstance(found, bool):
        raise NodeError(
            f"the condition of {context.node_id!r} gives neither true nor false, but {shown(found)}",
            code="not-a-boolean",
            hint="compare something, as in: value.score < 8",
        )
    return found
