"""Graphs being made by an import: their nodes and edges, which a converter may still change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from planwave.graph.model import Json, is_id

if TYPE_CHECKING:
    from planwave.interop.importing.conversion import SourceNode

_MAX_ID_CHARS: Final = 64
_NO_ID_CHARS: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_NAMELESS: Final = "step"


class GraphDraft:
    """A graph being made: the document, or the graph in a field of one of its nodes.

    Attributes:
        path: What stands before its ids in the report: "" for the document, ``loop/`` for a body of the
            node ``loop``.
        owner: The source node whose target holds this graph; None for the document.
    """

    def __init__(self, path: str = "", owner: SourceNode | None = None) -> None:
        self.path, self.owner = path, owner
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self._ids: set[str] = set()
        self._reserved: set[str] = set()
        self._numbers: Counter[str] = Counter()
        self._edge_number = 0
        self._edges_at: dict[str, dict[int, dict[str, Any]]] | None = None

    def document(self) -> dict[str, Json]:
        """Return ``{"nodes", "edges"}``, which share the lists of this draft until it is finished."""
        return {"nodes": cast("Json", self.nodes), "edges": cast("Json", self.edges)}

    def new_id(self, wanted: str) -> str:
        """Return an id that no node of this graph has: the wanted one, or that with a number.

        Characters that no id has become ``-``.
        """
        if wanted in self._reserved:
            self._reserved.discard(wanted)
            return wanted
        base = wanted
        if not is_id(wanted):
            base = _NO_ID_CHARS.sub("-", wanted).strip("-")[:_MAX_ID_CHARS] or _NAMELESS
        node_id = base
        while node_id in self._ids:
            self._numbers[base] += 1
            ending = f"-{self._numbers[base] + 1}"
            node_id = f"{base[: _MAX_ID_CHARS - len(ending)]}{ending}"
        self._ids.add(node_id)
        return node_id

    def reserve(self, wanted: str) -> str:
        """Return a new id that the next node that wants exactly this one gets, and no other one."""
        node_id = self.new_id(wanted)
        self._reserved.add(node_id)
        return node_id

    def add_edge(self, edge: dict[str, Any]) -> None:
        """Add an edge; its ends change by ``move_end`` alone."""
        self.edges.append(edge)
        self._edges_at = None

    def remove_edge(self, edge: dict[str, Any]) -> None:
        """Take out an edge that is there."""
        self.edges.remove(edge)
        for end in ("source", "target"):
            self._index().get(edge[end], {}).pop(id(edge), None)

    def edges_at(self, node_id: str) -> list[dict[str, Any]]:
        """Return the edges that begin or end at a node."""
        return list(self._index().get(node_id, {}).values())

    def move_end(self, edge: dict[str, Any], end: str, node_id: str) -> None:
        """Let an edge begin (``source``) or end (``target``) at another node."""
        index = self._index()
        index.get(edge[end], {}).pop(id(edge), None)
        edge[end] = node_id
        index.setdefault(node_id, {})[id(edge)] = edge

    def _index(self) -> dict[str, dict[int, dict[str, Any]]]:
        """Return the edges by their ends; worked out anew after edges were added."""
        if self._edges_at is None:
            self._edges_at = {}
            for edge in self.edges:
                for end in ("source", "target"):
                    self._edges_at.setdefault(edge[end], {})[id(edge)] = edge
        return self._edges_at

    def new_edge_id(self) -> str:
        """Return an id that no edge of this graph had so far."""
        self._edge_number += 1
        return f"e{self._edge_number}"


class Target(NamedTuple):
    """A node of the graph that a source node became.

    Attributes:
        graph: The graph that has it.
        id: Its id in that graph.
        node: Its document; a converter may still change it.
    """

    graph: GraphDraft
    id: str
    node: dict[str, Any]

    @property
    def path(self) -> str:
        return self.graph.path + self.id


def new_edge(
    graph: GraphDraft,
    source: str,
    target: str,
    source_handle: str = "output",
    target_handle: str = "input",
    channel: str = "flow",
) -> dict[str, Any]:
    """Add an edge that stands for no edge of the source, such as one between two targets of a node."""
    edge: dict[str, Any] = {
        "id": graph.new_edge_id(),
        "source": source,
        "sourceHandle": source_handle,
        "target": target,
        "targetHandle": target_handle,
        "data": {"channel": channel},
    }
    graph.add_edge(edge)
    return edge


def reroute(old: Target, new: Target) -> None:
    """Let the edges of one node begin and end at another one; those between the two go."""
    graph = old.graph
    for edge in graph.edges_at(old.id):
        ends = (edge["source"], edge["target"])
        if new.id in ends or ends[0] == ends[1]:
            graph.remove_edge(edge)
            continue
        for end in ("source", "target"):
            if edge[end] == old.id:
                graph.move_end(edge, end, new.id)


def owners_of(graph: GraphDraft) -> Iterator[SourceNode]:
    """Yield the source nodes whose targets hold a graph, from the inside out."""
    while graph.owner is not None and graph.owner.targets:
        yield graph.owner
        graph = graph.owner.targets[0].graph
