"""Which text of an execution is for its reader: what no other node reads on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from planwave.graph.model import DEFAULT_SOURCE_HANDLE, ERROR_HANDLE, FLOW
from planwave.graph.outputs import outputs_from_json

_CLOSING_TYPES: Final = frozenset({"end"})
"""Types that close a graph and change nothing: what leads into one is on its way out already."""
_SUBGRAPH_FIELDS: Final[Mapping[str, str]] = {"inner": "graph"}
"""Types that give what a graph inside them comes to: by the data field that holds it, under whose name
it runs."""


class Visibility:
    """What each node of a graph has to say to the reader.

    A node's text is visible where no flow edge reads it on. A node that only closes the graph
    (``end``) reads nothing on: what leads into it is visible as it streams, and it says something
    itself only where nothing before it did. A visible node that gives what a graph written in its
    data comes to (``inner``) is one that graph speaks for in the same way. The handle ``error`` is
    none of a node's text.
    """

    def __init__(
        self,
        graph: Mapping[str, Any],
        visible: Collection[str] | None = None,
        *,
        is_subgraph: bool = False,
    ) -> None:
        """Look through a graph.

        Args:
            graph: The document.
            visible: Paths of the nodes that are visible, whatever the graph says.
            is_subgraph: Whether a node gives what it comes to: where it has an ``end``, nothing else.
        """
        self._nodes: dict[str, Mapping[str, Any]] = {node["id"]: node for node in graph["nodes"]}
        self._outgoing: dict[str, list[tuple[str, str]]] = {}
        self._incoming: dict[str, list[str]] = {}
        for edge in graph["edges"]:
            if edge["data"]["channel"] == FLOW:
                leaves = edge.get("sourceHandle") or DEFAULT_SOURCE_HANDLE
                self._outgoing.setdefault(edge["source"], []).append((leaves, edge["target"]))
                self._incoming.setdefault(edge["target"], []).append(edge["source"])
        self._chosen = None if visible is None else frozenset(visible)
        self._closing = frozenset(filter(self._is_closing, self._nodes if visible is None else ()))
        ends = {each for each, node in self._nodes.items() if node["type"] in _CLOSING_TYPES}
        self._sinks = ends if is_subgraph and ends else self._nodes.keys()
        self._subgraphs = {
            f"{each}[{_SUBGRAPH_FIELDS[node['type']]}]": (
                each,
                Visibility(inside, is_subgraph=True),
            )
            for each, node in self._nodes.items()
            if (inside := _subgraph_of(node)) is not None
        }

    def type_of(self, path: str) -> str | None:
        """Give a node's type; None for one of a graph that is not known."""
        node = self._node(path)
        return None if node is None else node["type"]

    def name_of(self, path: str) -> str | None:
        """Give a node's name; None for one of a graph that is not known."""
        node = self._node(path)
        return None if node is None else node.get("name") or node["id"]

    def is_visible(self, path: str) -> bool:
        """Say whether what a node streams is visible."""
        if self._chosen is not None:
            return path in self._chosen
        if path in self._nodes:
            if not (edges := self._readers(path)):
                return path in self._sinks
            shown = self._visible_handles(path)
            return DEFAULT_SOURCE_HANDLE in shown or self._closing.issuperset(edges)
        owner, inside, rest = self._resolve_path(path)
        return inside is not None and self._shows_result(owner) and inside.is_visible(rest)

    def visible_values(self, path: str, outputs: Mapping[str, Any] | None) -> list[Any]:
        """Give the visible values of a node's result.

        Args:
            path: The node.
            outputs: As they stand in events.
        """
        values = {handle: value.value for handle, value in outputs_from_json(outputs).items()}
        if self._chosen is None and path not in self._nodes:
            owner, inside, rest = self._resolve_path(path)
            told = inside is not None and self._shows_result(owner)
            return inside.visible_values(rest, outputs) if inside is not None and told else []
        if self._chosen is None and self._readers(path):
            shown = self._visible_handles(path)
            return [value for handle, value in values.items() if handle in shown]
        if path not in (self._sinks if self._chosen is None else self._chosen):
            return []
        caught = ERROR_HANDLE in dict(self._outgoing.get(path, ())) and self._chosen is None
        kept = [handle for handle in values if not (caught and handle == ERROR_HANDLE)]
        main = DEFAULT_SOURCE_HANDLE if DEFAULT_SOURCE_HANDLE in kept else next(iter(kept), None)
        return [] if main is None else [values[main]]

    def speakers_behind(self, path: str) -> set[str]:
        """Give the nodes whose text a node only passes on, by path; none where it does no such."""
        owner, inside, rest = self._resolve_path(path)
        if inside is not None:
            head = path.removesuffix(rest)
            return {f"{head}{each}" for each in inside.speakers_behind(rest)}
        found = set(self._incoming[path]) if path in self._closing else set[str]()
        for prefix, (owner, inside) in self._subgraphs.items():
            if owner == path or owner in found:
                found |= {f"{prefix}/{each}" for each in inside.paths()}
        return found

    def paths(self) -> set[str]:
        """Give the paths of all nodes whose graph is known."""
        nested = {
            f"{prefix}/{each}"
            for prefix, (_, inside) in self._subgraphs.items()
            for each in inside.paths()
        }
        return nested | self._nodes.keys()

    def _node(self, path: str) -> Mapping[str, Any] | None:
        _, inside, rest = self._resolve_path(path)
        return self._nodes.get(path) if inside is None else inside._node(rest)

    def _resolve_path(self, path: str) -> tuple[str, Visibility | None, str]:
        """Give the node that a path leads into, the graph inside it, and the path in there."""
        head, _, rest = path.partition("/")
        owner, inside = self._subgraphs.get(head, ("", None)) if rest else ("", None)
        return owner, inside, rest

    def _shows_result(self, node_id: str) -> bool:
        """Say whether what the graph inside a node comes to is visible as that node's text."""
        shown = self._visible_handles(node_id)
        return self.is_visible(node_id) and (
            DEFAULT_SOURCE_HANDLE in shown or not self._readers(node_id)
        )

    def _readers(self, node_id: str) -> list[str]:
        """Give the nodes that read what a node gives, its errors aside."""
        edges = self._outgoing.get(node_id, ())
        return [target for handle, target in edges if handle != ERROR_HANDLE]

    def _is_closing(self, node_id: str) -> bool:
        node = self._nodes[node_id]
        policy: Mapping[str, Any] = node.get("policy") or {}
        joins_any = policy.get("join") == "any"  # one of its sources loses
        reads, is_read = node_id in self._incoming, node_id in self._outgoing
        return node["type"] in _CLOSING_TYPES and reads and not is_read and not joins_any

    def _visible_handles(self, node_id: str) -> frozenset[str]:
        """Give the handles from which a value leaves for a node that closes the graph."""
        edges = self._outgoing.get(node_id, ())
        return frozenset(handle for handle, target in edges if target in self._closing)


def _subgraph_of(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give the graph that is written in a node's data and whose result the node gives."""
    field = _SUBGRAPH_FIELDS.get(node["type"])
    data: Mapping[str, Any] = node.get("data") or {}
    return data.get(field) if field is not None else None
