"""Decide which text of an execution is visible to the client: text that no other node reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from planwave.graph.model import DEFAULT_SOURCE_HANDLE, ERROR_HANDLE, FLOW
from planwave.graph.outputs import outputs_from_json
from planwave.graph.result import LastNodes


class Visibility:
    """The text of each node of a graph that is visible to the client.

    A node's text is visible where no flow edge leads from it to another node. A node that only marks the
    result (see ``LastNodes.ends``) does not count as a reader: the text of its sources is visible as they
    stream, and its own result only where no source has emitted text. A graph in the data of a node, run
    under the name of its data field, is what the node gives: where the node is visible, the text of
    that graph's nodes is, by the same rules. A value at the handle ``error`` does not count as text of
    a node that has an edge from there.
    """

    def __init__(
        self,
        graph: Mapping[str, Any],
        visible: Collection[str] | None = None,
        *,
        is_subgraph: bool = False,
    ) -> None:
        """Index a graph.

        Args:
            graph: The document.
            visible: Paths of the visible nodes; overrides the rules of the class.
            is_subgraph: Whether the graph is in a node's data: its ends alone, if it has any, are its
                result.
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
        last = LastNodes.of_document(graph)
        self._closing = frozenset(filter(self._is_closing, last.ends if visible is None else ()))
        self._sinks = frozenset(
            last.ends if is_subgraph and last.ends else last.sinks or last.starts
        )
        self._subgraphs = {
            f"{each}[{name}]": (each, Visibility(value, is_subgraph=True))
            for each, node in self._nodes.items()
            for name, value in _graphs_of(node)
        }

    def type_of(self, path: str) -> str | None:
        """Return a node's type; None where its graph is not known."""
        node = self._node(path)
        return None if node is None else node["type"]

    def name_of(self, path: str) -> str | None:
        """Return a node's name; None where its graph is not known."""
        node = self._node(path)
        return None if node is None else node.get("name") or node["id"]

    def is_visible(self, path: str) -> bool:
        """Return whether the streamed text of a node is visible."""
        if self._chosen is not None:
            return path in self._chosen
        if path in self._nodes:
            if not (edges := self._readers(path)):
                return path in self._sinks
            handles = self._visible_handles(path)
            return DEFAULT_SOURCE_HANDLE in handles or self._closing.issuperset(edges)
        owner, inside, rest = self._resolve_path(path)
        return inside is not None and self._shows_result(owner) and inside.is_visible(rest)

    def shows(self, path: str) -> bool:
        """Return whether any text of a node is visible: what it streams, or a value of its result."""
        if self._chosen is not None or self.is_visible(path):
            return self.is_visible(path)
        if path in self._nodes:
            return bool(self._visible_handles(path))
        owner, inside, rest = self._resolve_path(path)
        return inside is not None and self._shows_result(owner) and inside.shows(rest)

    def visible_values(self, path: str, outputs: Mapping[str, Any] | None) -> list[Any]:
        """Return the visible values of a node's result.

        Args:
            path: The node.
            outputs: The outputs as in the node's event.
        """
        values = {handle: value.value for handle, value in outputs_from_json(outputs).items()}
        if self._chosen is None and path not in self._nodes:
            owner, inside, rest = self._resolve_path(path)
            is_shown = inside is not None and self._shows_result(owner)
            return inside.visible_values(rest, outputs) if inside is not None and is_shown else []
        if self._chosen is None and self._readers(path):
            handles = self._visible_handles(path)
            return [value for handle, value in values.items() if handle in handles]
        if path not in (self._sinks if self._chosen is None else self._chosen):
            return []
        caught = ERROR_HANDLE in dict(self._outgoing.get(path, ())) and self._chosen is None
        candidates = [handle for handle in values if not (caught and handle == ERROR_HANDLE)]
        main = (
            DEFAULT_SOURCE_HANDLE
            if DEFAULT_SOURCE_HANDLE in candidates
            else next(iter(candidates), None)
        )
        return [] if main is None else [values[main]]

    def speakers_behind(self, path: str) -> set[str]:
        """Return the paths of the nodes whose text a node only passes on."""
        owner, inside, rest = self._resolve_path(path)
        if inside is not None:
            head = path.removesuffix(rest)
            return {f"{head}{each}" for each in inside.speakers_behind(rest)}
        speakers = set(self._incoming[path]) if path in self._closing else set[str]()
        for prefix, (owner, inside) in self._subgraphs.items():
            if owner == path or owner in speakers:
                speakers |= {f"{prefix}/{each}" for each in inside.paths()}
        return speakers

    def paths(self) -> set[str]:
        """Return the paths of all nodes whose graph is known."""
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
        """Return the first node of a nested path, the graph in its data, and the path in that graph."""
        head, _, rest = path.partition("/")
        owner, inside = self._subgraphs.get(head, ("", None)) if rest else ("", None)
        return owner, inside, rest

    def _shows_result(self, node_id: str) -> bool:
        """Return whether the result of the graph in a node's data is visible as the node's text."""
        handles = self._visible_handles(node_id)
        return self.is_visible(node_id) and (
            DEFAULT_SOURCE_HANDLE in handles or not self._readers(node_id)
        )

    def _readers(self, node_id: str) -> list[str]:
        """Return the nodes with a flow edge from a node, except from its ``error`` handle."""
        edges = self._outgoing.get(node_id, ())
        return [target for handle, target in edges if handle != ERROR_HANDLE]

    def _is_closing(self, end_id: str) -> bool:
        """Return whether a node that marks a result only closes the graph."""
        policy: Mapping[str, Any] = self._nodes[end_id].get("policy") or {}
        joins_any = policy.get("join") == "any"  # one of its sources loses
        return end_id in self._incoming and end_id not in self._outgoing and not joins_any

    def _visible_handles(self, node_id: str) -> frozenset[str]:
        """Return the handles with an edge to a node that closes the graph."""
        edges = self._outgoing.get(node_id, ())
        return frozenset(handle for handle, target in edges if target in self._closing)


def _graphs_of(node: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the graphs in a node's data, each with the name of its data field; data may be anything."""
    data: Mapping[str, Any] = node.get("data") or {}
    for name, value in data.items():
        match value:
            case {"nodes": [*nodes], "edges": [*edges]} if all(map(_is_node, nodes)) and all(
                map(_is_edge, edges)
            ):
                yield name, cast("Mapping[str, Any]", value)
            case _:
                pass


def _is_node(value: Any) -> bool:
    match value:
        case {"id": str(), "type": str()}:
            return all(isinstance(value.get(each) or {}, dict) for each in ("data", "policy"))
        case _:
            return False


def _is_edge(value: Any) -> bool:
    match value:
        case {"source": str(), "target": str(), "data": {"channel": str()}}:
            return isinstance(value.get("sourceHandle") or "", str)
        case _:
            return False
