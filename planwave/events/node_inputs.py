"""The values that reached each node of an execution along its flow edges, as the node read them."""

from __future__ import annotations

from collections.abc import Iterator

from planwave.events.graphs import GraphLookup, NodeLocation
from planwave.events.state import ExecutionState
from planwave.graph.inputs import Inputs
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, Arrival, DataValue
from planwave.graph.outputs import outputs_from_json


class NodeInputs:
    """The inputs of an execution's nodes, from the flow edges and the results of their sources.

    Nodes of a nested run whose graph is not known have no inputs here. The state must not change while
    this object is in use: the results of each node are read once and kept.

    Attributes:
        graphs: The location of each node.
    """

    def __init__(self, state: ExecutionState) -> None:
        self._state = state
        self._values: dict[str, dict[str, DataValue]] = {}
        self.graphs = GraphLookup(state.graph, state.nested_graphs)

    def upstream(self, path: str) -> list[str]:
        """Return the paths of the nodes with a flow edge into a node, in edge order."""
        place = self.graphs.locate(path)
        edges = place.graph.flow_edges_into(place.id)
        return list(dict.fromkeys(place.prefix + edge["source"] for edge in edges))

    def inputs(self, path: str) -> Inputs:
        """Return the inputs of a node that has started; of a ``join: any``, the winning edge alone.

        For a linked node, return the values that its sources have produced so far.
        """
        node = self._state.nodes.get(path)
        if node is None:
            return Inputs()
        return Inputs(tuple(self._arrivals(self.graphs.locate(path), node.via)))

    def _arrivals(self, location: NodeLocation, via: str | None) -> Iterator[Arrival]:
        for edge in location.graph.flow_edges_into(location.id):
            if via is not None and edge.get("id") != via:
                continue
            leaves = edge.get("sourceHandle") or DEFAULT_SOURCE_HANDLE
            enters = edge.get("targetHandle") or DEFAULT_TARGET_HANDLE
            value = self._outputs_of(location.prefix + edge["source"]).get(leaves)
            if value is not None:
                name = location.graph.name_of(edge["source"])
                yield Arrival(edge.get("id", ""), edge["source"], name, leaves, enters, value)

    def _outputs_of(self, path: str) -> dict[str, DataValue]:
        """Return the results of a node by handle; they are parsed once, however many nodes read them."""
        outputs = self._values.get(path)
        if outputs is None:
            node = self._state.nodes.get(path)
            outputs = self._values[path] = outputs_from_json(node.outputs if node else None)
        return outputs
