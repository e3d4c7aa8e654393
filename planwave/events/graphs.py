"""The graphs of an execution, its own and those that ran inside nodes, looked through once each.

A nested run names its graph by hash; the graph itself is told with the first run of it. So a loop
over a thousand items has one graph here, and a thousand places that share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from planwave.graph.model import FLOW

_Document = Mapping[str, Any]


@dataclass(slots=True)
class GraphsInside:
    """The graphs that ran inside nodes, as ``run_graph`` events tell them.

    Attributes:
        documents: Each of them once, by its hash.
        runs: The hash of the graph of each run, by what goes before the ids of its nodes.
    """

    documents: dict[str, _Document] = field(default_factory=dict[str, _Document])
    runs: dict[str, str] = field(default_factory=dict[str, str])

    def open(self, path: str | None, said: _Document) -> None:
        """Take in what a node said of a run: which graph it is of, or that it is let go of."""
        if "graph" in said:
            self.runs[f"{path}[{said['key']}]/"] = said["graph"]
        if "document" in said:
            self.documents[said["graph"]] = said["document"]


class KnownGraph:
    """One graph, by its nodes.

    Attributes:
        nodes: The documents of its nodes by id.
        into, out_of: Its edges by the node they lead to, or come from, in edge order.
    """

    __slots__ = ("into", "nodes", "out_of")

    def __init__(self, document: _Document) -> None:
        self.nodes: dict[str, _Document] = {n["id"]: n for n in document.get("nodes", ())}
        self.into: dict[str, list[_Document]] = {}
        self.out_of: dict[str, list[_Document]] = {}
        for edge in document.get("edges", ()):
            self.into.setdefault(edge["target"], []).append(edge)
            self.out_of.setdefault(edge["source"], []).append(edge)

    def flows_into(self, node_id: str) -> list[_Document]:
        """Give the flow edges into a node, in edge order."""
        return [e for e in self.into.get(node_id, ()) if e["data"]["channel"] == FLOW]

    def is_linked(self, node_id: str) -> bool:
        """Say whether a node is used by others, and never run by itself."""
        out = self.out_of.get(node_id, ())
        return bool(out) and all(edge["data"]["channel"] != FLOW for edge in out)

    def name_of(self, node_id: str) -> str:
        """Give what a node is called."""
        return self.nodes.get(node_id, _NOTHING).get("name") or node_id


_NOTHING: Final[_Document] = {}
_UNKNOWN: Final = KnownGraph(_NOTHING)


class Place(NamedTuple):
    """Where a node is.

    Attributes:
        prefix: Goes before the ids of the nodes beside it in their paths; "" in the execution's own
            graph.
        graph: The graph it is part of; one without nodes where that was never told.
        id: Its id in there.
    """

    prefix: str
    graph: KnownGraph
    id: str

    @property
    def is_known(self) -> bool:
        """Whether its graph was told."""
        return self.id in self.graph.nodes

    @property
    def asker(self) -> str | None:
        """The node it is inside of; None in the execution's own graph."""
        return self.prefix[: self.prefix.rfind("[")] if self.prefix else None

    @property
    def written(self) -> _Document:
        """What the graph says of it: nothing where that was never told."""
        return self.graph.nodes.get(self.id, _NOTHING)


class Graphs:
    """Finds the graph of any node of one execution.

    Args:
        own: The execution's own graph, None where it is not known.
        inside: Those that ran inside nodes; more may be told as time goes on.
    """

    def __init__(self, own: _Document | None, inside: GraphsInside) -> None:
        self._told = inside
        self._own = KnownGraph(own or _NOTHING)
        self._inside: dict[str, KnownGraph] = {}

    def place_of(self, path: str) -> Place:
        """Give where a node is."""
        prefix = path[: path.rfind("/") + 1]
        graph = self._graph_at(prefix) if prefix else self._own
        return Place(prefix, graph, path[len(prefix) :])

    def _graph_at(self, prefix: str) -> KnownGraph:
        name = self._told.runs.get(prefix)
        document = None if name is None else self._told.documents.get(name)
        if name is None or document is None:
            return _UNKNOWN
        graph = self._inside.get(name)
        if graph is None:
            graph = self._inside[name] = KnownGraph(document)
        return graph
