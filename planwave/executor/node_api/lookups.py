"""What a node may look up in its graph: nodes, edges, arrivals, node types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planwave.errors import InputError
from planwave.executor.values import GraphValues
from planwave.graph.model import Arrival, Channel, Edge, Json, Node
from planwave.graph.protocols import Catalogue, WrittenBy


class GraphLookups:
    """The part of ``graph.protocols.RuntimeApi`` that only reads.

    Attributes:
        values: The values of the graph run.
    """

    __slots__ = ("values",)

    def __init__(self, values: GraphValues) -> None:
        self.values = values

    @property
    def written_by(self) -> WrittenBy | None:
        """Who wrote the graph, if no person did."""
        return self.values.written_by

    def get_node(self, node_id: str) -> Node:
        """Return a node; InputError ``unknown-node`` if there is none."""
        return self.values.program.steps[self._node_number(node_id)].node

    def incoming_edges(
        self, node_id: str, *, channel: Channel | None = None, target_handle: str | None = None
    ) -> Sequence[Edge]:
        """Return the edges into a node in graph order, of one channel or handle if asked."""
        graph = self.values.program.graph
        return [
            e
            for e in graph.incoming.get(self.get_node(node_id).id, ())
            if channel in (None, e.channel) and target_handle in (None, e.target_handle)
        ]

    def outgoing_edges(
        self, node_id: str, *, channel: Channel | None = None, source_handle: str | None = None
    ) -> Sequence[Edge]:
        """Return the edges out of a node in graph order, of one channel or handle if asked."""
        graph = self.values.program.graph
        return [
            e
            for e in graph.outgoing.get(self.get_node(node_id).id, ())
            if channel in (None, e.channel) and source_handle in (None, e.source_handle)
        ]

    def arrivals(self, node_id: str, target_handle: str | None = None) -> tuple[Arrival, ...]:
        """Return what reached a node so far, in edge order; for linked nodes too."""
        found = self.values.arrivals_at(self._node_number(node_id))
        if target_handle is None:
            return found
        return tuple(a for a in found if a.target_handle == target_handle)

    @property
    def variables(self) -> Mapping[str, Json]:
        """The names that expressions may use besides inputs."""
        return self.values.variables

    @property
    def catalogue(self) -> Catalogue:
        """The node types."""
        return self.values.program.catalogue

    def _node_number(self, node_id: str) -> int:
        number = self.values.program.topology.index.get(node_id)
        if number is None:
            raise InputError(f"no node {node_id!r} in this graph", code="unknown-node")
        return number
