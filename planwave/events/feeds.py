"""What reached each node of an execution along its flow edges, exactly as it read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from planwave.events.state import ExecutionState
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, FLOW
from planwave.graph.values import Arrival, DataValue, Inputs


def values_of(outputs: Mapping[str, Any] | None) -> dict[str, DataValue]:
    """Give outputs as they stand in events as values, by handle."""
    return {
        handle: DataValue(output["type"], output["value"])
        for handle, output in (outputs or {}).items()
    }


class Feeds:
    """The flow edges of an execution's graph, by where they lead, and what came along them.

    Graphs of nested runs are not told, so nothing is known of what reached their nodes.
    """

    def __init__(self, state: ExecutionState) -> None:
        graph: Mapping[str, Any] = state.graph or {}
        self._state = state
        self._names = {
            node["id"]: node.get("name") or node["id"] for node in graph.get("nodes", ())
        }
        self._into: dict[str, list[Mapping[str, Any]]] = {}
        for edge in graph.get("edges", ()):
            if edge["data"]["channel"] == FLOW:
                self._into.setdefault(edge["target"], []).append(edge)

    def sources(self, path: str) -> list[str]:
        """Give the ids of the nodes that lead into a node, in edge order."""
        return list(dict.fromkeys(edge["source"] for edge in self._into.get(path, ())))

    def inputs(self, path: str) -> Inputs:
        """Give what a node that has started read; of a ``join: any``, its winner alone.

        For a linked node, what has arrived for it by now.
        """
        node = self._state.nodes.get(path)
        return (
            Inputs() if node is None else Inputs(self._arrivals(self._into.get(path, ()), node.via))
        )

    def _arrivals(self, edges: Sequence[Mapping[str, Any]], via: str | None) -> tuple[Arrival, ...]:
        found: list[Arrival] = []
        for edge in edges:
            if via is not None and edge.get("id") != via:
                continue
            source = self._state.nodes.get(edge["source"])
            leaves = edge.get("sourceHandle") or DEFAULT_SOURCE_HANDLE
            enters = edge.get("targetHandle") or DEFAULT_TARGET_HANDLE
            value = values_of(source.outputs if source else None).get(leaves)
            if value is not None:
                name = self._names.get(edge["source"], edge["source"])
                found.append(
                    Arrival(edge.get("id", ""), edge["source"], name, leaves, enters, value)
                )
        return tuple(found)
