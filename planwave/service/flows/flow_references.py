"""The stored flows that nodes name, by id or by name: found, or reported before anything runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from planwave.errors import InputError, NotFound
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.model import Graph, Json, Node
from planwave.graph.protocols import NodeTypes
from planwave.graph.subgraphs import all_nodes
from planwave.graph.suggestions import closest_match, node_suggestion
from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.subgraphs import FlowName, named_flow
from planwave.nodes.tools.flow_inputs import declared_inputs
from planwave.service.flows.flow_queries import LIST_HINT, NOT_APPROVED
from planwave.storage.records import PlanRecord

UNKNOWN_FLOW: Final = "unknown-flow"
_PAGE: Final = 200
"""Flows that are read to find the nearest name."""


class FlowLookup(Protocol):
    """Where flows are read; ``FlowQueries`` satisfies it, in this process, and so does the command line.

    One that has not all flows has a ``list_hint`` that says so.
    """

    async def to_start(self, plan_id: str, revision: int | None = None) -> Any: ...
    async def list(self, *, name: str | None = None, limit: int = 50) -> Sequence[PlanRecord]: ...


@runtime_checkable
class ChecksFlowInputs(Protocol):
    """A node type whose nodes write down what they give the flow that they name."""

    def check_flow_inputs(
        self, data: Mapping[str, Json], wired: Collection[str], inputs: Mapping[str, Any]
    ) -> Iterable[NodeFinding]:
        """Yield what the flow does not take.

        Args:
            data: The data of a node, as written.
            wired: The handles that edges lead into.
            inputs: The JSON Schema of the inputs of the flow.
        """
        ...


async def flow_named(flows: FlowLookup, name: str) -> PlanRecord:
    """Return the flow of a name, whatever its case.

    Raises:
        NotFound: ``unknown-flow``: there is none; the hint has the nearest name.
    """
    flow_records = await flows.list(name=name, limit=1)
    if not flow_records:
        raise await unknown_flow(flows, name)
    return flow_records[0]


def names_flows(graph: Graph, catalogue: NodeTypes) -> bool:
    """Return whether a node of a graph, or of a graph nested in it, names a stored flow."""
    return any(named_flow(node, catalogue) for _, node in all_nodes(graph, catalogue))


async def unknown_flows(graph: Graph, catalogue: NodeTypes, flows: FlowLookup) -> list[Diagnostic]:
    """Return an error for each node whose flow, or its revision, does not exist or is not for callers.

    Also for what a node gives a flow that does not take it. Nodes of nested graphs are reported at the
    node around them. What comes over a wire is not known.
    """
    numbers = {node.id: number for number, node in enumerate(graph.nodes)}
    findings: list[Diagnostic] = []
    for path, node in all_nodes(graph, catalogue):
        outer = path.partition("/")[0]
        edges = graph.incoming.get(node.id, ()) if path == outer else ()
        wired = {edge.target_handle for edge in edges}
        flow = None if "flow" in wired else named_flow(node, catalogue)
        if flow is None:
            continue
        place = _Place(node, path, f"/nodes/{numbers[outer]}", outer)
        try:
            found = await startable_flow(flow, flows)
        except InputError as error:
            code = NOT_APPROVED if error.code == NOT_APPROVED else UNKNOWN_FLOW
            findings.append(place.error(NodeFinding(code, error.message, "/data/flow", error.hint)))
            continue
        checks = catalogue.implementation(node.type)
        if isinstance(checks, ChecksFlowInputs):
            inputs = declared_inputs(found.graph, catalogue)
            wrong = () if inputs is None else checks.check_flow_inputs(node.data, wired, inputs)
            findings += [place.error(each) for each in wrong]
    return findings


class _Place(NamedTuple):
    """Where a node is, for what is found about it."""

    node: Node
    path: str
    pointer: str
    outer: str

    def error(self, finding: NodeFinding) -> Diagnostic:
        """Return what was found; of a node in a nested graph at the node around it."""
        is_own = self.path == self.outer
        return Diagnostic(
            finding.code,
            "error",
            f"node {self.path!r}: {finding.message}",
            f"{self.pointer}{finding.pointer if is_own else '/data'}",
            node=self.outer,
            hint=finding.hint,
            suggestion=node_suggestion(self.outer, finding.correction) if is_own else None,
        )


async def startable_flow(flow: FlowName, flows: FlowLookup) -> Any:
    """Return the revision of a flow that a node runs.

    Raises:
        InputError: There is none, or it is not for callers.
    """
    plan_id = str(flow.id) if flow.name is None else (await flow_named(flows, flow.name)).plan_id
    try:
        found = await flows.to_start(plan_id)
    except NotFound as error:
        raise await unknown_flow(flows, plan_id) from error
    return found if flow.revision is None else await flows.to_start(plan_id, flow.revision)


async def unknown_flow(flows: FlowLookup, name: str) -> NotFound:
    """Return the error for a flow that does not exist; its hint has the nearest name."""
    names = [each.name or "" for each in await flows.list(limit=_PAGE)]
    near = name if name in names else closest_match(name, names)
    hint: str = getattr(flows, "list_hint", LIST_HINT)
    if near is not None:
        hint = f'there is the flow {near!r}; write "flow": {{"name": {near!r}}}'
    return NotFound(f"there is no flow {short_repr(name)}", code=UNKNOWN_FLOW, hint=hint)
