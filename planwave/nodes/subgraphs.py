"""Nested graphs of nodes: load, check, run, and read the result.

Used by every node type that runs a graph, so that all follow the same rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, Self, cast, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from planwave.errors import GraphInvalid, LimitExceeded, PermanentError, PlanwaveError
from planwave.expressions import FLOW_INPUTS, has_template
from planwave.graph.checking.checker import read_and_check
from planwave.graph.diagnostics import errors_in
from planwave.graph.inputs import Inputs
from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    DataValue,
    Graph,
    Json,
    Node,
    fixed_handles,
)
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import FlowContext, NodeTypes, WrittenBy
from planwave.graph.reading.documents import read_graph
from planwave.graph.result import LastNodes, OutputsByNode
from planwave.graph.subgraphs import all_nodes
from planwave.nodes.authoring.data_fields import HIDDEN_FROM_PLANNER
from planwave.nodes.authoring.node_type import NodeData, NodeFinding
from planwave.nodes.checking.node_view import NodeView
from planwave.nodes.services import FlowSource, NodeServices, limits_of

_CACHE_SIZE: Final = 64


class FlowName(NodeData):
    """A stored flow, by its id or by its name; its live revision where none is named."""

    names_flow: ClassVar[bool] = True
    """Marks the data fields that take one; see ``DataField.names_flow``."""

    id: str | None = Field(None, min_length=1)
    name: str | None = Field(None, min_length=1)
    revision: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.id is None) == (self.name is None):
            raise ValueError("name a flow by its id or by its name, one of the two")
        return self


def flow_field() -> Any:
    """Declare a data field that names a stored flow; models do not know which there are."""
    return Field(
        None,
        title="Flow",
        description="A stored flow that runs in place of a graph written here.",
        json_schema_extra=HIDDEN_FROM_PLANNER,
    )


class Subgraph(NamedTuple):
    """A nested graph, prepared to run any number of times.

    Attributes:
        graph: The graph.
        entries: Its entry nodes, each with the output that carries the input value.
        last: The nodes that its result can come from.
    """

    graph: Graph
    entries: tuple[tuple[str, str], ...]
    last: LastNodes

    async def run(
        self,
        key: str,
        entry_value: DataValue | None,
        variables: Mapping[str, Json],
        context: FlowContext,
        written_by: WrittenBy | None = None,
    ) -> OutputsByNode:
        """Run the graph inside a node.

        Args:
            key: Name of the run; the same when the node is executed again.
            entry_value: The result of its entry nodes; None executes them.
            variables: Variables of its expressions.
            context: The context of the outer node.
            written_by: Who wrote it; None for the author of the graph around it.

        Returns:
            The outputs of its completed nodes, by node id.

        Raises:
            NodeError: ``nested-run-failed``, or the reason why it cannot start.
        """
        inputs: dict[str, dict[str, Json]] = {}
        if entry_value is not None:
            inputs = {node_id: {handle: entry_value.value} for node_id, handle in self.entries}
        return await context.runtime.run_graph(
            key, self.graph, inputs, variables=variables, written_by=written_by
        )

    def result(self, outputs: OutputsByNode) -> DataValue:
        """Return the value of the result of a run; see ``planwave.graph.result.LastNodes``."""
        return self.last.result(outputs).value


def input_value(inputs: Inputs) -> DataValue | None:
    """Return a node's input: one value as it is, several as a list, None without a value."""
    values = inputs.all(DEFAULT_TARGET_HANDLE)
    if len(values) > 1:
        return DataValue("json", [value.value for value in values])
    return values[0] if values else None


async def load(
    field: str,
    document: Mapping[str, Json] | None,
    flow: FlowName | None,
    names: Iterable[str],
    context: FlowContext,
) -> Subgraph:
    """Return the graph that a node runs.

    Args:
        field: The data field that holds it.
        document: The graph document in that field.
        flow: The stored flow to run if there is no document.
        names: Variables of its expressions; see ``data_fields.graph_field``.
        context: The node's context.

    Raises:
        NodeError: There is no graph, or it is invalid (``graph-invalid``); ``no-flows`` if this run
            has no stored flows; errors of the flow store.
    """
    catalogue = context.runtime.catalogue
    if document is not None:
        # A graph in the node's data was checked with the outer graph; one from a wire was not.
        written = context.runtime.get_node(context.node_id).data.get(field)
        if document == written:
            return prepare(_graph_of(json.dumps(document)), catalogue)
        return prepare(_read_wired_graph(field, document, names, context), catalogue)
    if flow is None:
        raise PermanentError(
            f"node {context.node_id!r} has no graph to run",
            code="missing-required-input",
            hint=f"write data.{field}, or name a stored flow in data.flow",
        )
    return prepare(await load_flow(flow, context), catalogue)


async def load_flow(flow: FlowName, context: FlowContext, key: str = "flow") -> Graph:
    """Return a flow; which one a name means, and its live revision, are determined once per node."""
    if flow.id is not None and flow.revision is not None:
        return await flows_of(context).get(flow.id, flow.revision)

    async def newest() -> Json:
        return (await stored_flow(flow, context)).to_document()

    return _graph_of(json.dumps(await context.runtime.once(key, newest)))


async def stored_flow(flow: FlowName, context: FlowContext) -> Graph:
    """Return a flow as it is stored now.

    Raises:
        NodeError: ``no-flows``; errors of the flow store.
    """
    flows = flows_of(context)
    plan_id = flow.id if flow.name is None else await flows.find(flow.name)
    return await flows.get(str(plan_id), flow.revision)


def named_flow(node: Node, catalogue: NodeTypes) -> FlowName | None:
    """Return the flow that a node's data name; None where they name none, or by an expression."""
    if catalogue.type_info(node.type) is None:
        return None
    model: object = getattr(catalogue.implementation(node.type), "Data", None)
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return None
    field = model.model_fields.get("flow")
    if field is None or FlowName not in (field.annotation, *get_args(field.annotation)):
        return None
    value = node.data.get("flow")
    if not isinstance(value, dict) or has_template(json.dumps(value)):
        return None
    with suppress(ValidationError):
        return FlowName.model_validate(value)
    return None


async def dependencies(
    document: Mapping[str, Json] | None, flow: FlowName | None, context: FlowContext
) -> dict[str, Json]:
    """Return what the result depends on through the nested graph, besides the node's data.

    These are the variables of the graph's expressions, and the graph of a flow without a revision.

    Raises:
        NodeError: A node inside the graph runs a graph that may have changed, so that no result of
            the whole can be reused; results of single nodes inside it still can.
    """
    graph, of_graph = None, None
    if document is not None:
        graph = _graph_of(json.dumps(document))
    elif flow is not None and flow.id is not None and flow.revision is not None:
        graph = await _load_revision(flow.id, flow.revision, context)
    elif flow is not None:
        graph = await load_flow(flow, context)
        of_graph = graph_hash(graph)
    await _require_fixed_graphs(graph, context)
    return {"variables": dict(context.runtime.variables), "graph": of_graph}


async def _require_fixed_graphs(graph: Graph | None, context: FlowContext) -> None:
    """Raise if a node inside the graph runs a graph that can change (a flow without a revision)."""
    catalogue = context.runtime.catalogue
    for path, node in () if graph is None else all_nodes(graph, catalogue):
        facts = catalogue.type_info(node.type)
        fields = () if facts is None else facts.graph_fields
        if not fields or any(isinstance(node.data.get(field), dict) for field in fields):
            continue
        match node.data.get("flow"):
            case {"id": str(plan_id), "revision": int(revision)}:
                await _require_fixed_graphs(
                    await _load_revision(plan_id, revision, context), context
                )
            case _:
                raise PermanentError(f"what runs inside {path!r} of {context.node_id!r} may change")


async def _load_revision(plan_id: str, revision: int, context: FlowContext) -> Graph | None:
    """Return a revision of a flow if it can still be run here, else None."""
    with suppress(PlanwaveError):
        return await flows_of(context).get(plan_id, revision)
    return None


def flows_of(context: FlowContext) -> FlowSource:
    """Return the stored flows of a run.

    Raises:
        NodeError: It has none (code ``no-flows``).
    """
    services: Any = context.services
    flows = services.flows if isinstance(services, NodeServices) else None
    if flows is None:
        raise PermanentError(
            f"node {context.node_id!r} names a stored flow, but this run has no stored flows",
            code="no-flows",
            hint="run it through a service, or write the graph into the node",
        )
    return flows


@lru_cache(_CACHE_SIZE)
def _graph_of(document: str) -> Graph:
    """Read a graph; cached, since a loop inside a loop reads the same graph repeatedly."""
    return read_graph(document)[0]


def _read_wired_graph(
    field: str, document: Mapping[str, Json], names: Iterable[str], context: FlowContext
) -> Graph:
    """Read and check a graph that a wire brought."""
    variables = context.runtime.variables
    inputs = cast("Mapping[str, Json]", variables.get(FLOW_INPUTS, {}))
    inside = context.runtime.catalogue.for_subgraph((*variables, *names), inputs)
    _, findings = read_and_check(document, inside, limits_of(context))
    if errors_in(findings):
        invalid = GraphInvalid(findings)
        message = f"data.{field} of {context.node_id!r} cannot run: {invalid.message}"
        raise PermanentError(message, code=invalid.code, hint=invalid.hint)
    return _graph_of(json.dumps(document))


def prepare(graph: Graph, catalogue: NodeTypes) -> Subgraph:
    """Find the entry nodes of a graph and its last nodes."""
    entries: list[tuple[str, str]] = []
    for node in graph.nodes:
        facts = catalogue.type_info(node.type)
        if facts is not None and facts.entry:
            first, *_ = fixed_handles(facts.outputs) or (DEFAULT_SOURCE_HANDLE,)
            entries.append((node.id, first))
    return Subgraph(graph, tuple(entries), LastNodes.of(graph))


def check_rounds(
    maximum: int | None, actual: int, what: str, *, field: str, limit: str, context: FlowContext
) -> None:
    """Raise if a graph is to run more often than the node's data or the run's limits allow.

    Args:
        maximum: The number in the node's data; None leaves it to the limit.
        actual: The number of rounds.
        what: The noun for messages (``rounds``).
        field: The data field.
        limit: The limit's name.
        context: The node's context.

    Raises:
        NodeError, LimitExceeded: ``limit-exceeded``; the message names the bound.
    """
    if maximum is not None and actual > maximum:
        message = f"{what} of {context.node_id!r}: data.{field} is {maximum}, met {actual}"
        raise PermanentError(message, code=LimitExceeded.code, hint=f"raise data.{field}")
    limits = limits_of(context)
    bound = None if limits is None else getattr(limits, limit)
    if bound is not None and actual > bound:
        raise LimitExceeded(limit, bound, actual, what=f"{what} of {context.node_id!r}")


def check_source(
    field: str, document: Mapping[str, Json] | None, flow: FlowName | None, view: NodeView
) -> Iterator[NodeFinding]:
    """Yield an error if a node has no graph to run, or two."""
    has_graph = document is not None or view.is_wired(field)
    has_flow = flow is not None or view.is_wired("flow")
    if has_graph == has_flow:
        hint = f"write a graph into data.{field}, or name a stored flow in data.flow, not both"
        if has_graph:
            message = f"data.{field} and data.flow are both there"
            yield NodeFinding("conflicting-field", message, "/data/flow", hint)
        else:
            message = f"data.{field} is required where no flow is named"
            yield NodeFinding("missing-required-input", message, f"/data/{field}", hint)
