"""Checks of the links of nodes that give tools."""

from __future__ import annotations

from collections.abc import Iterator

from planwave.graph.model import LINK, Edge
from planwave.nodes.agents.tool import TOOLS_HANDLE
from planwave.nodes.agents.tool_names import LinkedName, first_duplicate, tool_name, unique_names
from planwave.nodes.authoring.node_type import NodeFinding
from planwave.nodes.checking.node_view import NodeView


def check_tool_links(view: NodeView) -> Iterator[NodeFinding]:
    """Find a node whose tools no node gets, and tools that cannot be told apart."""
    links = [edge for edge in view.outgoing if edge.channel == LINK]
    if not links:
        yield NodeFinding(
            "unused-tool",
            "it is linked to nothing, so no agent has its tools",
            "",
            hint=f"link it into the handle {TOOLS_HANDLE!r} of an agent",
            severity="warning",
        )
    targets = {edge.target: edge for edge in links if edge.target_handle == TOOLS_HANDLE}
    for last_link in targets.values():
        yield from _check_names(last_link, view)


def _check_names(link: Edge, view: NodeView) -> Iterator[NodeFinding]:
    """Find two tools of one name at the target of a link, of which the second is this node's."""
    names = [
        LinkedName(tool_name(name), edge.source)
        for edge in view.index.incoming.get(link.target, ())
        if edge.channel == LINK and edge.target_handle == TOOLS_HANDLE
        for name in view.index.tool_names_of(edge.source)
    ]
    found = first_duplicate(unique_names(names))
    if found is None or found[1].node_id != view.node.id:
        return
    first, second = found
    yield NodeFinding(
        "duplicate-tool",
        f"{link.target!r} would have two tools of the name {second.name!r}: of the links from "
        f"{first.node_id!r} and from {second.node_id!r}",
        "",
        hint="remove one of the two links, or give one of the tools another name",
        edge=link.id,
    )
