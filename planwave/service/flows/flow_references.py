"""The stored flows that nodes name, by id or by name: found, or reported before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from planwave.errors import InputError, NotFound
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.model import Graph
from planwave.graph.protocols import NodeTypes
from planwave.graph.subgraphs import all_nodes
from planwave.graph.suggestions import closest_match
from planwave.nodes.subgraphs import FlowName, named_flow
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

    Nodes of nested graphs are reported at the node around them. What comes over a wire is not known.
    """
    numbers = {node.id: number for number, node in enumerate(graph.nodes)}
    findings: list[Diagnostic] = []
    for path, node in all_nodes(graph, catalogue):
        outer = path.partition("/")[0]
        wired = path == outer and any(
            edge.target_handle == "flow" for edge in graph.incoming.get(node.id, ())
        )
        flow = None if wired else named_flow(node, catalogue)
        if flow is None:
            continue
        try:
            await _require(flow, flows)
        except InputError as error:
            pointer = f"/nodes/{numbers[outer]}/data"
            findings.append(
                Diagnostic(
                    NOT_APPROVED if error.code == NOT_APPROVED else UNKNOWN_FLOW,
                    "error",
                    f"node {path!r}: {error.message}",
                    f"{pointer}/flow" if path == outer else pointer,
                    node=outer,
                    hint=error.hint,
                )
            )
    return findings


async def _require(flow: FlowName, flows: FlowLookup) -> None:
    plan_id = str(flow.id) if flow.name is None else (await flow_named(flows, flow.name)).plan_id
    try:
        await flows.to_start(plan_id)
    except NotFound as error:
        raise await unknown_flow(flows, plan_id) from error
    if flow.revision is not None:
        await flows.to_start(plan_id, flow.revision)


async def unknown_flow(flows: FlowLookup, name: str) -> NotFound:
    """Return the error for a flow that does not exist; its hint has the nearest name."""
    names = [each.name or "" for each in await flows.list(limit=_PAGE)]
    near = name if name in names else closest_match(name, names)
    hint: str = getattr(flows, "list_hint", LIST_HINT)
    if near is not None:
        hint = f'there is the flow {near!r}; write "flow": {{"name": {near!r}}}'
    return NotFound(f"there is no flow {short_repr(name)}", code=UNKNOWN_FLOW, hint=hint)
