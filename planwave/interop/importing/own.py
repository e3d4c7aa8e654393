"""Planwave's own files: passed through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from planwave.errors import InputError
from planwave.foreign_formats import PLANWAVE
from planwave.interop.importing.conversion import Conversion, Target
from planwave.interop.importing.importer import Source


def convert(source: Source) -> Conversion:
    """Pass a planwave graph, a plan, or the graph of an execution through unchanged.

    Raises:
        InputError: ``unknown-format``: a part of the graph is none that could be accounted for.
    """
    outer = cast("Mapping[str, Any]", source.value)
    prefix, document = source.pointer, outer
    if isinstance(outer.get("graph"), dict):
        prefix, document = f"{prefix}/graph", outer["graph"]
    title, goal = (str(outer.get(name) or "") for name in ("title", "user_prompt"))
    conversion = Conversion(PLANWAVE, title=title, user_prompt=goal)
    graph, by_id = conversion.graph, dict[str, Any]()
    _refuse_broken(document)
    for number, node in enumerate(document["nodes"]):
        entry = conversion.source_node(
            f"{prefix}/nodes/{number}", str(node.get("type", "")), str(node.get("name", ""))
        )
        graph.nodes.append(dict(node))
        entry.targets.append(Target(graph, str(node.get("id", "")), graph.nodes[-1]))
        by_id[str(node.get("id", ""))] = entry
    taken = {edge.get("id") for edge in document["edges"]}
    free = (each for each in iter(graph.new_edge_id, None) if each not in taken)
    for number, edge in enumerate(document["edges"]):
        ends = (by_id.get(str(edge.get(end))) for end in ("source", "target"))
        entry = conversion.source_edge(f"{prefix}/edges/{number}", *ends)
        graph.add_edge(edge if "id" in edge else {"id": next(free), **edge})
        entry.edges.append((graph, graph.edges[-1]))
        entry.outcome = "mapped"
    return conversion


_NEEDED: Final = {"nodes": ("id", "type"), "edges": ("source", "target")}


def _refuse_broken(document: Mapping[str, Any]) -> None:
    """Refuse a graph whose nodes or edges cannot be told apart: the check of graphs names what is wrong."""
    for name, needed in _NEEDED.items():
        parts = document.get(name)
        if isinstance(parts, list) and all(_is_whole(e, needed) for e in cast("list[Any]", parts)):
            continue
        raise InputError(
            f"this is a planwave graph, and its {name} are not all objects with {' and '.join(needed)}",
            code="unknown-format",
            hint="check it as a graph: that names each fault",
        )
    for name in _NEEDED:
        ids = Counter(part["id"] for part in document[name] if "id" in part)
        if repeated := [each for each, number in ids.items() if number > 1]:
            raise InputError(
                f"this is a planwave graph, and several of its {name} have the id {repeated[0]!r}",
                code="unknown-format",
                hint="give each an id of its own",
            )


def _is_whole(part: object, needed: Sequence[str]) -> bool:
    if not isinstance(part, dict):
        return False
    fields = cast("dict[str, object]", part)
    return (
        all(isinstance(fields.get(name), str) for name in needed)
        and isinstance(fields.get("id", ""), str)
        and isinstance(fields.get("data", {}), dict)
    )
