"""Which text of an execution is for its reader: what no other node reads on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from planwave.events.feeds import values_of
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, ERROR_HANDLE, FLOW

_PASSES_ON: Final = frozenset({"end"})
"""Types that close a graph and change nothing: what leads into one is on its way out already."""


class Showing:
    """What each node of a graph has to say to the reader.

    A node's text is visible where no flow edge reads it on. A node that only closes the graph
    (``end``) reads nothing on: what leads into it is visible as it streams, and it says something
    itself only where nothing before it did. The handle ``error`` is none of a node's text.
    """

    def __init__(self, graph: Mapping[str, Any], visible: Collection[str] | None = None) -> None:
        """Look through a graph.

        Args:
            graph: The document.
            visible: Ids of the nodes that are visible, whatever the graph says.
        """
        self._nodes: dict[str, Mapping[str, Any]] = {node["id"]: node for node in graph["nodes"]}
        self._out: dict[str, list[tuple[str, str]]] = {}
        self._into: dict[str, list[str]] = {}
        for edge in graph["edges"]:
            if edge["data"]["channel"] == FLOW:
                leaves = edge.get("sourceHandle") or DEFAULT_SOURCE_HANDLE
                self._out.setdefault(edge["source"], []).append((leaves, edge["target"]))
                self._into.setdefault(edge["target"], []).append(edge["source"])
        self._chosen = None if visible is None else frozenset(visible)
        self._closing = frozenset(filter(self._closes, self._nodes if visible is None else ()))

    def type_of(self, node_id: str) -> str | None:
        """Give a node's type; None for one that is not of this graph."""
        node = self._nodes.get(node_id)
        return None if node is None else node["type"]

    def name_of(self, node_id: str) -> str | None:
        """Give a node's name; None for one that is not of this graph."""
        node = self._nodes.get(node_id)
        return None if node is None else node.get("name") or node_id

    def streams(self, path: str) -> bool:
        """Say whether what a node streams is visible; of a nested one, only where it was chosen."""
        if self._chosen is not None:
            return path in self._chosen
        if path not in self._nodes:
            return False
        edges = [edge for edge in self._out.get(path, ()) if edge[0] != ERROR_HANDLE]
        return (DEFAULT_SOURCE_HANDLE in self._shown_handles(path)) or all(
            target in self._closing for _, target in edges
        )

    def results(self, path: str, outputs: Mapping[str, Any] | None) -> list[Any]:
        """Give the visible values of a node's result; a nested one has none unless it was chosen.

        Args:
            path: The node.
            outputs: As they stand in events.
        """
        values = {handle: value.value for handle, value in values_of(outputs).items()}
        if path not in (self._nodes if self._chosen is None else self._chosen):
            return []
        read = [] if self._chosen is not None else [h for h, _ in self._out.get(path, ())]
        if any(handle != ERROR_HANDLE for handle in read):
            shown = self._shown_handles(path)
            return [value for handle, value in values.items() if handle in shown]
        kept = [handle for handle in values if handle not in read]
        main = DEFAULT_SOURCE_HANDLE if DEFAULT_SOURCE_HANDLE in kept else next(iter(kept), None)
        return [] if main is None else [values[main]]

    def closed_by(self, path: str) -> Collection[str]:
        """Give the nodes whose text a closing node only passes on; none where it is not one."""
        return self._into[path] if path in self._closing else ()

    def _closes(self, node_id: str) -> bool:
        node = self._nodes[node_id]
        policy: Mapping[str, Any] = node.get("policy") or {}
        joins_any = policy.get("join") == "any"  # one of its sources loses
        reads, is_read = node_id in self._into, node_id in self._out
        return node["type"] in _PASSES_ON and reads and not is_read and not joins_any

    def _shown_handles(self, node_id: str) -> frozenset[str]:
        """Give the handles from which a value leaves for a node that closes the graph."""
        edges = self._out.get(node_id, ())
        return frozenset(handle for handle, target in edges if target in self._closing)
