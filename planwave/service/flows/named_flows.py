"""The stored flows that nodes name, by id or by name: found, or reported before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from planwave.errors import InputError, NotFound
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.model import Graph
from planwave.graph.protocols import Catalogue
from planwave.graph.subgraphs import all_nodes
from planwave.graph.suggestions import closest_match
from planwave.nodes.subgraphs import FlowName, named_flow
from planwave.service.flows.flow_queries import LIST_HINT
from planwave.storage.records import FlowRecord

UNKNOWN_FLOW: Final = "unknown-flow"
_PAGE: Final = 200
"""Flows that are read to find one by its name, or the nearest name."""


class FlowLookup(Protocol):
    """Where flows are read; ``FlowQueries`` satisfies it, in this process, and so does the command line.

    One that has not all flows has a ``list_hint`` that says so.
    """

    async def flow(self, flow_id: str, version: str | None = None) -> Any: ...
    async def flows(
        self, *, text: str | None = None, before: str | None = None, limit: int = 50
    ) -> Sequence[FlowRecord]: ...


async def flow_named(flows: FlowLookup, name: str) -> FlowRecord:
    """Return the one flow of a name.

    Raises:
        NotFound: ``unknown-flow``: there is none; the hint has the nearest name.
        InputError: ``ambiguous-flow``: several have it.
    """
    matches = [each for each in await flows.flows(text=name, limit=_PAGE) if each.name == name]
    if len(matches) > 1:
        raise InputError(
            f"{len(matches)} flows have the name {short_repr(name)}",
            code="ambiguous-flow",
            hint="name it by its id, one of: " + ", ".join(each.flow_id for each in matches[:5]),
        )
    if not matches:
        raise await unknown_flow(flows, name)
    return matches[0]


def names_flows(graph: Graph, catalogue: Catalogue) -> bool:
    """Return whether a node of a graph, or of a graph nested in it, names a stored flow."""
    return any(named_flow(node, catalogue) for _, node in all_nodes(graph, catalogue))


async def unknown_flows(graph: Graph, catalogue: Catalogue, flows: FlowLookup) -> list[Diagnostic]:
    """Return an error for each node whose flow, or its version, does not exist.

    Nodes of nested graphs are reported at the node around them. What comes over a wire is not known.
    """
    numbers = {node.id: number for number, node in enumerate(graph.nodes)}
    found: list[Diagnostic] = []
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
            code = error.code if error.code == "ambiguous-flow" else UNKNOWN_FLOW
            pointer = f"/nodes/{numbers[outer]}/data"
            found.append(
                Diagnostic(
                    code,
                    "error",
                    f"node {path!r}: {error.message}",
                    f"{pointer}/flow" if path == outer else pointer,
                    node=outer,
                    hint=error.hint,
                )
            )
    return found


async def _require(flow: FlowName, flows: FlowLookup) -> None:
    if flow.name is not None:
        flow_id = (await flow_named(flows, flow.name)).flow_id
    else:
        flow_id = str(flow.id)
        try:
            await flows.flow(flow_id)
        except InputError as error:
            raise await unknown_flow(flows, flow_id) from error
    if flow.version is not None:
        await flows.flow(flow_id, flow.version)


async def unknown_flow(flows: FlowLookup, name: str) -> NotFound:
    """Return the error for a flow that does not exist; its hint has the nearest name."""
    names = [each.name for each in await flows.flows(limit=_PAGE)]
    near = name if name in names else closest_match(name, names)
    hint: str = getattr(flows, "list_hint", LIST_HINT)
    if near is not None:
        hint = f'there is the flow {near!r}; write "flow": {{"name": {near!r}}}'
    return NotFound(f"there is no flow {short_repr(name)}", code=UNKNOWN_FLOW, hint=hint)
