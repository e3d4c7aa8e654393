"""The graphs of an execution, its own and those that ran inside nodes, looked through once each.

A nested run names its graph by hash; the graph itself is told with the first run of it. So a loop
over a thousand items has one graph here, and a thousand places that share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from planwave.graph.model import FLOW

if TYPE_CHECKING:
    from planwave.events.state import ExecutionState

_Document = Mapping[str, Any]


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
    """Finds the graph of any node of one execution, as its state tells them now."""

    def __init__(self, state: ExecutionState) -> None:
        self._state = state
        self._own = KnownGraph(state.graph or _NOTHING)
        self._inside: dict[str, KnownGraph] = {}

    def place_of(self, path: str) -> Place:
        """Give where a node is."""
        prefix = path[: path.rfind("/") + 1]
        graph = self._graph_at(prefix) if prefix else self._own
        return Place(prefix, graph, path[len(prefix) :])

    def _graph_at(self, prefix: str) -> KnownGraph:
        name = self._state.runs_inside.get(prefix)
        document = None if name is None else self._state.graphs_inside.get(name)
        if name is None or document is None:
            return _UNKNOWN
        graph = self._inside.get(name)
        if graph is None:
            graph = self._inside[name] = KnownGraph(document)
        return graph
