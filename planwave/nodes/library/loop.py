"""``loop``: a graph once for every item of a list, several at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, cast

from pydantic import Field

from planwave.errors import NESTED_FAILED, GraphInvalid, NodeError, PermanentError
from planwave.graph.diagnostics import short_repr
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json, Port
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.nodes.authoring.data_fields import graph_field, limited_field, to_data_value
from planwave.nodes.authoring.node_type import INPUT, NodeData, NodeFinding, NodeType, template
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.subgraphs import (
    FlowName,
    Subgraph,
    check_rounds,
    check_source,
    dependencies,
    flow_field,
    input_value,
    load,
)

_VARIABLES: Final = ("item", "index")
_ERRORS_HANDLE: Final = "errors"
_LIMIT: Final = "loop_items"


class LoopData(NodeData):
    """What to go through, and what to do with each item."""

    items: Any = template(None, description="The list to go through; without one, the input.")
    body: dict[str, Any] | None = graph_field(
        *_VARIABLES, description="The graph that runs for each item."
    )
    flow: FlowName | None = flow_field()
    parallel: int = Field(5, ge=1, le=100, description="The items that run at the same time.")
    on_item_error: Literal["fail", "skip", "null"] = Field(
        "fail", description="What a failing item does: fail the node, be left out, or give null."
    )
    max_items: int | None = limited_field(_LIMIT, description="The most items it takes.")


class Loop(NodeType):
    """Runs ``data.body`` for every item; outputs the list of results in the order of the items."""

    node_type = "loop"
    purpose = (
        "Run the graph in body once for each item of a list, several at a time; in it {{ item }} is "
        "the item; gives the list of results in order."
    )
    summary = "Run the same steps for each item of a list."
    Data = LoopData
    plan_fields = ("items", "body", "parallel", "onItemError", "maxItems")
    inputs = (INPUT,)
    outputs = (
        Port(DEFAULT_SOURCE_HANDLE, "json", schema={"type": "array"}),
        Port(_ERRORS_HANDLE, "json", schema={"type": "array"}),
    )
    reads_goal = True
    runs_graphs = True
    depends_outside = False
    replayable = True

    async def run(self, data: LoopData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        items = _list_of_items(data, inputs, context)
        check_rounds(
            data.max_items, len(items), "items", field="maxItems", limit=_LIMIT, context=context
        )
        if not items:
            return _result(data, [], [])
        nested = await load("body", data.body, data.flow, _VARIABLES, context)
        errors: dict[int, Json] = {}

        async def one(index: int) -> Json:
            return await _run_item(nested, index, items[index], data.on_item_error, errors, context)

        values = await _map_parallel(len(items), data.parallel, one, context)
        if data.on_item_error == "skip":
            values = [value for index, value in enumerate(values) if index not in errors]
        return _result(data, values, [errors[index] for index in sorted(errors)])

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        ready, _ = self.prepare(data, inputs, await self.read_wires(data, inputs, context), context)
        return await dependencies(ready.body, ready.flow, context)

    def check(self, data: LoopData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        yield from check_source("body", data.body, data.flow, view)
        if data.items is None and not (view.is_wired("items") or view.is_wired("input")):
            yield NodeFinding(
                "missing-required-input",
                "a loop needs items or an input",
                "/data/items",
                hint="write data.items, or connect an edge to 'input' or 'items'",
            )
        if data.on_item_error == "fail" and any(
            edge.source_handle == _ERRORS_HANDLE for edge in view.outgoing
        ):
            yield NodeFinding(
                "unknown-handle",
                f"an edge leaves {_ERRORS_HANDLE!r}, which has no value, since a failing item ends the loop",
                "/data/onItemError",
                hint='set data.onItemError to "skip" or "null"',
                severity="warning",
            )


def _list_of_items(data: LoopData, inputs: Inputs, context: FlowContext) -> list[Json]:
    """Return the list to iterate over; a text is parsed as JSON."""
    items = data.items
    if "items" not in data.model_fields_set:
        value = input_value(inputs)
        items = None if value is None else value.value
    if isinstance(items, str):
        try:
            items = parse_strict_json(items)
        except GraphInvalid as error:
            raise _not_a_list(f"the text {short_repr(items)}", context) from error
    if not isinstance(items, list):
        raise _not_a_list(short_repr(items), context)
    return cast("list[Json]", items)


def _not_a_list(what: str, context: FlowContext) -> PermanentError:
    return PermanentError(
        f"loop {context.node_id!r} needs a list of items, got {what}",
        code="not-a-list",
        hint="let data.items, or the node before, give a list, or its JSON as text",
    )


async def _run_item(
    nested: Subgraph,
    index: int,
    item: Json,
    on_error: str,
    errors: dict[int, Json],
    context: FlowContext,
) -> Json:
    """Run the body for one item; an error that does not end the loop is recorded, and the value is null."""
    try:
        outputs = await nested.run(
            str(index), to_data_value(item), {"item": item, "index": index}, context
        )
    except NodeError as error:
        if error.code != NESTED_FAILED or on_error == "fail":
            raise  # the path in the message names the item
        errors[index] = {"index": index, "error": error.cause or error.as_json()}
        return None
    return nested.result(outputs).value


async def _map_parallel(
    count: int, parallel: int, one: Callable[[int], Awaitable[Json]], context: FlowContext
) -> list[Json]:
    """Return the value of each number from 0, computed ``parallel`` at a time; the first failure cancels the rest."""
    values: list[Json] = [None] * count
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            values[number] = await one(number)

    async with context.task_group() as group:
        for _ in range(min(parallel, count)):
            group.create_task(work())
    return values


def _result(data: LoopData, values: list[Json], errors: list[Json]) -> ExecutionResult:
    outputs = {DEFAULT_SOURCE_HANDLE: DataValue("json", values)}
    if data.on_item_error != "fail":
        outputs[_ERRORS_HANDLE] = DataValue("json", errors)
    return ExecutionResult(outputs)
