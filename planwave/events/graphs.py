"""The graphs of an execution, its own and those of nested runs, each indexed once.

A nested run names its graph by hash; the event of the first run with that hash carries the graph. So
a loop over a thousand items has one graph here, shared by a thousand runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from planwave.events.paths import nested_prefix, parent_path, path_prefix
from planwave.events.types import NestedRunOpenedData
from planwave.graph.model import FLOW

_Document = Mapping[str, Any]


@dataclass(slots=True)
class NestedGraphs:
    """The graphs of nested runs, as recorded by ``run_graph`` events.

    Attributes:
        documents: The graph documents by hash.
        runs: The hash of each run's graph, by the path prefix of the run.
    """

    documents: dict[str, _Document] = field(default_factory=dict[str, _Document])
    runs: dict[str, str] = field(default_factory=dict[str, str])

    def record(self, path: str | None, data: NestedRunOpenedData) -> None:
        """Record that a node opened a nested run."""
        self.runs[nested_prefix(path or "", data["key"])] = data["graph"]
        if "document" in data:
            self.documents[data["graph"]] = data["document"]


class DocumentIndex:
    """One graph, indexed by node.

    Attributes:
        nodes: The node documents by id.
        incoming, outgoing: The edges by target and by source node, in edge order.
    """

    __slots__ = ("incoming", "nodes", "outgoing")

    def __init__(self, document: _Document) -> None:
        self.nodes: dict[str, _Document] = {n["id"]: n for n in document.get("nodes", ())}
        self.incoming: dict[str, list[_Document]] = {}
        self.outgoing: dict[str, list[_Document]] = {}
        for edge in document.get("edges", ()):
            self.incoming.setdefault(edge["target"], []).append(edge)
            self.outgoing.setdefault(edge["source"], []).append(edge)

    def flow_edges_into(self, node_id: str) -> list[_Document]:
        """Return the flow edges into a node, in edge order."""
        return [e for e in self.incoming.get(node_id, ()) if e["data"]["channel"] == FLOW]

    def is_linked(self, node_id: str) -> bool:
        """Return whether a node is only used by other nodes, so that the driver never runs it."""
        out = self.outgoing.get(node_id, ())
        return bool(out) and all(edge["data"]["channel"] != FLOW for edge in out)

    def name_of(self, node_id: str) -> str:
        """Return the name of a node, its id where it has none."""
        return self.nodes.get(node_id, _NOTHING).get("name") or node_id


_NOTHING: Final[_Document] = {}
_UNKNOWN: Final = DocumentIndex(_NOTHING)


class NodeLocation(NamedTuple):
    """The location of a node.

    Attributes:
        prefix: The path prefix of the run that the node is part of; "" in the execution's own graph.
        graph: The graph that the node is part of; an empty graph where no event carried it.
        id: The node's id in that graph.
    """

    prefix: str
    graph: DocumentIndex
    id: str

    @property
    def is_known(self) -> bool:
        """Whether the node's graph is known."""
        return self.id in self.graph.nodes

    @property
    def parent(self) -> str | None:
        """The path of the node that opened the run; None in the execution's own graph."""
        return parent_path(self.prefix) if self.prefix else None

    @property
    def document(self) -> _Document:
        """The node's document; empty where the graph is not known."""
        return self.graph.nodes.get(self.id, _NOTHING)


class GraphLookup:
    """Finds the graph of any node of one execution.

    Args:
        own: The execution's own graph, None where it is not known.
        nested: The graphs of nested runs; later events may add more.
    """

    def __init__(self, own: _Document | None, nested: NestedGraphs) -> None:
        self._nested = nested
        self._own = DocumentIndex(own or _NOTHING)
        self._indexes: dict[str, DocumentIndex] = {}

    def locate(self, path: str) -> NodeLocation:
        """Return the location of a node."""
        prefix = path_prefix(path)
        graph = self._graph_at(prefix) if prefix else self._own
        return NodeLocation(prefix, graph, path[len(prefix) :])

    def _graph_at(self, prefix: str) -> DocumentIndex:
        name = self._nested.runs.get(prefix)
        document = None if name is None else self._nested.documents.get(name)
        if name is None or document is None:
            return _UNKNOWN
        graph = self._indexes.get(name)
        if graph is None:
            graph = self._indexes[name] = DocumentIndex(document)
        return graph
