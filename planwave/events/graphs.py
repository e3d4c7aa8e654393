"""The graphs of an execution, its own and those that ran inside nodes, looked through once each.

A nested run names its graph by hash; the graph itself is told with the first run of it. So a loop
over a thousand items has one graph here, and a thousand places that share it.
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
    """The graphs that ran inside nodes, as ``run_graph`` events tell them.

    Attributes:
        documents: Each of them once, by its hash.
        runs: The hash of the graph of each run, by what goes before the ids of its nodes.
    """

    documents: dict[str, _Document] = field(default_factory=dict[str, _Document])
    runs: dict[str, str] = field(default_factory=dict[str, str])

    def record(self, path: str | None, data: NestedRunOpenedData) -> None:
        """Record that a node opened a nested run."""
        self.runs[nested_prefix(path or "", data["key"])] = data["graph"]
        if "document" in data:
            self.documents[data["graph"]] = data["document"]


class DocumentIndex:
    """One graph, by its nodes.

    Attributes:
        nodes: The documents of its nodes by id.
        incoming, outgoing: Its edges by the node they lead to, or come from, in edge order.
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
        """Give the flow edges into a node, in edge order."""
        return [e for e in self.incoming.get(node_id, ()) if e["data"]["channel"] == FLOW]

    def is_linked(self, node_id: str) -> bool:
        """Say whether a node is used by others, and never run by itself."""
        out = self.outgoing.get(node_id, ())
        return bool(out) and all(edge["data"]["channel"] != FLOW for edge in out)

    def name_of(self, node_id: str) -> str:
        """Give what a node is called."""
        return self.nodes.get(node_id, _NOTHING).get("name") or node_id


_NOTHING: Final[_Document] = {}
_UNKNOWN: Final = DocumentIndex(_NOTHING)


class NodeLocation(NamedTuple):
    """Where a node is.

    Attributes:
        prefix: Goes before the ids of the nodes beside it in their paths; "" in the execution's own
            graph.
        graph: The graph it is part of; one without nodes where that was never told.
        id: Its id in there.
    """

    prefix: str
    graph: DocumentIndex
    id: str

    @property
    def is_known(self) -> bool:
        """Whether its graph was told."""
        return self.id in self.graph.nodes

    @property
    def parent(self) -> str | None:
        """The node it is inside of; None in the execution's own graph."""
        return parent_path(self.prefix) if self.prefix else None

    @property
    def document(self) -> _Document:
        """What the graph says of it: nothing where that was never told."""
        return self.graph.nodes.get(self.id, _NOTHING)


class GraphLookup:
    """Finds the graph of any node of one execution.

    Args:
        own: The execution's own graph, None where it is not known.
        nested: Those that ran inside nodes; more may be told as time goes on.
    """

    def __init__(self, own: _Document | None, nested: NestedGraphs) -> None:
        self._nested = nested
        self._own = DocumentIndex(own or _NOTHING)
        self._indexes: dict[str, DocumentIndex] = {}

    def locate(self, path: str) -> NodeLocation:
        """Give where a node is."""
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
