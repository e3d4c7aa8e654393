"""Cycles and regions in graphs of other programs, which planwave has as loops or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class BackEdge(NamedTuple):
    """An edge that closes a cycle.

    Attributes:
        number: Its place in the list of edges.
        path: The nodes around the cycle; the first is repeated at the end.
    """

    number: int
    path: tuple[str, ...]


def back_edges(nodes: Sequence[str], edges: Sequence[tuple[str, str]]) -> list[BackEdge]:
    """Return edges without which a graph has no cycle, each with a cycle that it closes. O(V + E).

    Args:
        nodes: The ids; a search begins at each in this order, so that edges into early nodes count as
            those that lead back.
        edges: ``(source, target)``; ends that are no node are skipped.
    """
    outgoing: dict[str, list[tuple[int, str]]] = {node: [] for node in nodes}
    for number, (source, target) in enumerate(edges):
        if source in outgoing and target in outgoing:
            outgoing[source].append((number, target))
    found: list[BackEdge] = []
    depth_of: dict[str, int] = {}
    finished: set[str] = set()
    for root in nodes:
        if root not in depth_of:
            _search(root, outgoing, depth_of, finished, found)
    return found


def drawn_back_edges(
    edges: Sequence[dict[str, Any]], shown: Mapping[str, str]
) -> list[tuple[dict[str, Any], tuple[str, ...]]]:
    """Return the edges that close a cycle where several nodes are drawn as one, each with its path.

    Args:
        edges: ``{"source", "target"}`` and more.
        shown: The node that is drawn for each; edges between those that are drawn as one do not count.
    """
    drawn = [
        edge for edge in edges
        if edge["source"] == edge["target"] or shown.get(edge["source"]) != shown.get(edge["target"])
    ]  # fmt: skip
    ends = [(shown.get(edge["source"], ""), shown.get(edge["target"], "")) for edge in drawn]
    backs = back_edges(list(dict.fromkeys(shown.values())), ends)
    return [(drawn[back.number], back.path) for back in backs]


def _search(
    root: str,
    outgoing: Mapping[str, Sequence[tuple[int, str]]],
    depth_of: dict[str, int],
    finished: set[str],
    found: list[BackEdge],
) -> None:
    path, waiting = [root], [iter(outgoing[root])]
    depth_of[root] = 0
    while path:
        following = next(waiting[-1], None)
        if following is None:
            finished.add(path.pop())
            waiting.pop()
            continue
        number, target = following
        if target not in depth_of:
            depth_of[target] = len(path)
            path.append(target)
            waiting.append(iter(outgoing[target]))
        elif target not in finished:
            found.append(BackEdge(number, (*path[depth_of[target] :], target)))
