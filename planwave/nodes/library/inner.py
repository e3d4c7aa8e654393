"""``inner``: run another graph as one node with declared inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, cast, get_args

from pydantic import Field

from planwave.errors import PermanentError
from planwave.graph.inputs import Inputs
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    ERROR_HANDLE,
    FLOW,
    ID_PATTERN,
    DataValue,
    Json,
    Port,
)
from planwave.graph.ports import has_output, outputs_text
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.graph.result import OutputsByNode, main_output
from planwave.nodes.authoring.data_fields import coerce, graph_field
from planwave.nodes.authoring.node_type import (
    INPUT,
    OUTPUT,
    NodeData,
    NodeFinding,
    NodePorts,
    NodeType,
)
from planwave.nodes.checking.branch_handles import check_named_handles
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.subgraphs import (
    FlowName,
    check_source,
    dependencies,
    flow_field,
    input_value,
    load,
)

SocketType = Literal["any", "text", "integer", "number", "boolean", "json"]
_SOCKET_TYPES: Final[tuple[str, ...]] = get_args(SocketType)
_FIELD_NAMES: Final = ("graph", "flow", "inputs", "outputs")
_RESERVED_NAMES: Final = frozenset(
    {"input", "nodes", "trigger", "goal", "PREVIOUS_OUTPUT", *_FIELD_NAMES}
)
"""What ports of the node and names in templates mean already."""
_RUN_KEY: Final = "graph"
"""The name of the data field: the text of the graph is that of the node."""


class InnerData(NodeData):
    """The nested graph, its inputs by name and type, and its outputs."""

    graph: dict[str, Any] | None = graph_field(
        names_of="inputs", description="The graph that runs as this step."
    )
    flow: FlowName | None = flow_field()
    inputs: dict[Annotated[str, Field(pattern=r"^[A-Za-z_]\w{0,63}$")], SocketType] = Field(
        {},
        description="More inputs, with their types; each is a variable in the graph.",
    )
    outputs: dict[Annotated[str, Field(pattern=f"^{ID_PATTERN}$")], str] = Field(
        {},
        description='More outputs, each as "node" or "node.output" of the graph.',
    )


class Inner(NodeType):
    """Runs ``data.graph``, or a stored flow, as one node.

    The value at ``input`` goes to the nested graph's entry nodes; values at the handles named in
    ``data.inputs`` are variables of its expressions. Besides the result on ``output`` the node has the
    outputs of ``data.outputs``: ``{handle: "node id"}`` or ``"node id.handle"``.
    """

    node_type = "inner"
    purpose = (
        "Run another graph, inline or a stored flow, as one step: its entry gets the input, named "
        "inputs are variables in it, its result is the output."
    )
    summary = "Run another flow as one step."
    Data = InnerData
    plan_fields = ("graph", "inputs", "outputs")
    inputs = (INPUT, Port("{name}"))
    outputs = (OUTPUT, Port("{name}"))
    reads_goal = True
    runs_graphs = True
    depends_outside = False
    replayable = True
    planned = False

    async def run(self, data: InnerData, inputs: Inputs, context: FlowContext) -> ExecutionResult:
        variables = _named_inputs(data, inputs, context)
        nested = await load("graph", data.graph, data.flow, data.inputs, context)
        entry_value = input_value(inputs)
        if entry_value is None and variables:
            entry_value = DataValue("json", variables)
        outputs = await nested.run(_RUN_KEY, entry_value, variables, context)
        results = {DEFAULT_SOURCE_HANDLE: nested.result(outputs)}
        for handle, source in data.outputs.items():
            node_id, output = _parse_source(source, nested.graph.by_id)
            if (value := _output_value(outputs, node_id, output)) is not None:
                results[handle] = value
        return ExecutionResult(results)

    async def result_depends_on(
        self, data: Mapping[str, Json], inputs: Inputs, context: FlowContext
    ) -> Json:
        ready, _ = self.prepare(data, inputs, await self.read_wires(data, inputs, context), context)
        return await dependencies(ready.graph, ready.flow, context)

    def configured_ports(self, data: Mapping[str, Json], leaving: Sequence[str]) -> NodePorts:
        inputs, outputs = data.get("inputs"), data.get("outputs")
        named = cast("dict[str, Json]", inputs) if isinstance(inputs, dict) else {}
        names = cast("dict[str, Json]", outputs) if isinstance(outputs, dict) else {}
        types = {name: kind if kind in _SOCKET_TYPES else "any" for name, kind in named.items()}
        return NodePorts(
            (INPUT, *(Port(name, kind, name) for name, kind in types.items())),
            (OUTPUT, *(Port(name, label=name) for name in names)),
        )

    def check(self, data: InnerData | None, view: NodeView) -> Iterable[NodeFinding]:
        if data is None:
            return
        yield from check_source("graph", data.graph, data.flow, view)
        yield from _check_inputs(data, view)
        if not view.is_wired("outputs"):
            handles = (DEFAULT_SOURCE_HANDLE, *data.outputs)
            yield from check_named_handles(handles, view)
        if data.graph is not None:
            yield from _check_outputs(data, data.graph, view)


def _named_inputs(data: InnerData, inputs: Inputs, context: FlowContext) -> dict[str, Json]:
    """Return the inputs by name, each converted to its declared type."""
    values: dict[str, Json] = {}
    for name, kind in data.inputs.items():
        value = inputs.one(name)
        if value is None:
            raise PermanentError(
                f"node {context.node_id!r}: there is no value for the input {name!r}",
                code="missing-required-input",
                hint=f"connect an edge to {name!r}, or take it out of data.inputs",
            )
        values[name], refused = coerce(kind, value)
        if refused is not None:
            raise PermanentError(
                f"node {context.node_id!r}: input {name!r} takes {kind}, but got {refused}",
                code="type-mismatch",
                hint="change the type in data.inputs, or what the edge brings",
            )
    return values


def _parse_source(source: str, node_ids: Iterable[str]) -> tuple[str, str | None]:
    """Return the node and, if named, the handle; node ids may contain dots."""
    if source in node_ids:
        return source, None
    node_id, _, handle = source.rpartition(".")
    return node_id, handle


def _output_value(outputs: OutputsByNode, node_id: str, handle: str | None) -> DataValue | None:
    node_outputs = outputs.get(node_id)
    if not node_outputs:
        return None
    return main_output(node_outputs) if handle is None else node_outputs.get(handle)


def _check_inputs(data: InnerData, view: NodeView) -> Iterator[NodeFinding]:
    for name in data.inputs:
        pointer = f"/data/inputs/{name}"
        if name in _RESERVED_NAMES:
            message = f"an input cannot be called {name!r}, a reserved name"
            yield NodeFinding("invalid-data", message, pointer, "choose another name")
        elif not view.is_wired(name):
            message = f"nothing leads into the input {name!r}"
            hint = f"connect an edge to the handle {name!r}, or take it out of data.inputs"
            yield NodeFinding("missing-required-input", message, pointer, hint)
    handles = {DEFAULT_TARGET_HANDLE, *_FIELD_NAMES, *data.inputs}
    for edge in view.incoming:
        if edge.channel == FLOW and edge.target_handle not in handles:
            message = f"edge {edge.id!r} leads into {edge.target_handle!r}, which is no input"
            hint = f"add {edge.target_handle!r} with its type to data.inputs"
            yield NodeFinding("unknown-handle", message, "/data/inputs", hint)


def _check_outputs(
    data: InnerData, graph: Mapping[str, Json], view: NodeView
) -> Iterator[NodeFinding]:
    """Find outputs that name no node, or a handle it does not have."""
    nodes: Any = graph.get("nodes")
    listed = cast("list[Any]", nodes) if isinstance(nodes, list) else []
    objects = [cast("dict[str, Any]", each) for each in listed if isinstance(each, dict)]
    types = {str(each.get("id")): str(each.get("type")) for each in objects}
    for handle, source in data.outputs.items():
        pointer = f"/data/outputs/{handle}"
        node_id, output_handle = _parse_source(source, types)
        if handle == ERROR_HANDLE:
            message = f"{handle!r} is a reserved handle and no output"
            yield NodeFinding("invalid-data", message, pointer, "choose another name")
        elif types and node_id not in types:
            message = f"output {handle!r} is that of {source!r}, and there is no such node"
            hint = 'name a node of the graph, or one of its outputs, as in "summary.output"'
            yield NodeFinding("unknown-handle", message, pointer, hint)
        elif output_handle is not None and output_handle != ERROR_HANDLE:
            facts = view.index.type_info_by_name(types.get(node_id, ""))
            if facts is not None and not has_output(facts, output_handle):
                message = f"output {handle!r} is {output_handle!r} of {node_id!r}, which has no such output"
                yield NodeFinding(
                    "unknown-handle", message, pointer, f"its outputs are {outputs_text(facts)}"
                )
