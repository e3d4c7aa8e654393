"""Planwave's own files: passed through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from planwave.foreign_formats import PLANWAVE
from planwave.interop.importing.conversion import Conversion, Target
from planwave.interop.importing.importer import Source


def convert(source: Source) -> Conversion:
    """Pass a planwave graph, a plan, or the graph of an execution through unchanged."""
    outer = cast("Mapping[str, Any]", source.value)
    prefix, document = source.pointer, outer
    if isinstance(outer.get("graph"), dict):
        prefix, document = f"{prefix}/graph", outer["graph"]
    title, goal = (str(outer.get(name) or "") for name in ("title", "user_prompt"))
    conversion = Conversion(PLANWAVE, title=title, user_prompt=goal)
    graph, by_id = conversion.graph, dict[str, Any]()
    for number, node in enumerate(document.get("nodes", ())):
        entry = conversion.source_node(
            f"{prefix}/nodes/{number}", str(node.get("type", "")), str(node.get("name", ""))
        )
        graph.nodes.append(dict(node))
        entry.targets.append(Target(graph, str(node.get("id", "")), graph.nodes[-1]))
        by_id[str(node.get("id", ""))] = entry
    for number, edge in enumerate(document.get("edges", ())):
        ends = (by_id.get(str(edge.get(end))) for end in ("source", "target"))
        entry = conversion.source_edge(f"{prefix}/edges/{number}", *ends)
        graph.edges.append(edge if "id" in edge else {"id": graph.new_edge_id(), **edge})
        entry.edges.append((graph, graph.edges[-1]))
        entry.outcome = "mapped"
    return conversion
