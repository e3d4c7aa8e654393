"""Suppress findings about a graph that unreadable parts of its document may have caused.

A finding that disappears once the unreadable parts are corrected only misleads: a node *seems* to
lack an input while the edge into it has no channel. So edges are split in two groups. **Certain**
edges are checked completely. Of an **uncertain** edge only the readable fields are checked, and
everything it may connect counts as connected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter
from typing import Final, NamedTuple

from planwave.graph.checking.edges import EdgeKind, possible_channels
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.json_values import pointer_part
from planwave.graph.model import DEFAULT_TARGET_HANDLE, LINK, Channel, Edge, Graph, Node
from planwave.graph.protocols import Catalogue
from planwave.graph.reading.unreadable import UNREADABLE, UNREADABLE_CHANNEL, Unreadable
from planwave.graph.suggestions import normalized

_MISSING: Final = "missing-required-input"
_ABOUT_INPUTS: Final = frozenset({_MISSING, "template-undefined"})
_ABOUT_ANCESTORS: Final = "not-an-ancestor"
_ABOUT_HANDLES: Final = "unknown-handle"
_ABOUT_BRANCHES: Final = "unused-decision"
_ANY_UNMATCHED_NODE: Final = "#"
"""Placeholder among the ends of edges for every node that edges may name by another id."""

_HandlesById = dict[str, set[str]]
"""Handles by node id; the handle ``UNREADABLE`` is any handle, the id ``UNREADABLE`` any node."""


@dataclass(frozen=True, slots=True)
class PartialGraph:
    """The parts of a graph that may exist although they were not read.

    Attributes:
        uncertain_edges: Edges that are not in the graph.
        without_id: Placeholder ids of nodes whose own id could not be read.
        unmatched_nodes: Ids of nodes that edges may name by another id: nodes without an id, and
            nodes with a malformed or repeated id.
        unmatched_ends: Ends that name no node but may mean one of ``unmatched_nodes``.
        incomplete: Ids of nodes that may have more description and data.
        policy_unknown: Ids of nodes that may have another policy.
        nodes_unreadable: Whether the list of nodes could not be read.
    """

    uncertain_edges: Sequence[Edge] = ()
    without_id: frozenset[str] = frozenset()
    unmatched_nodes: Counter[str] = field(default_factory=Counter[str])
    unmatched_ends: Mapping[str, None] = field(default_factory=dict[str, None])
    incomplete: frozenset[str] = frozenset()
    policy_unknown: frozenset[str] = frozenset()
    nodes_unreadable: bool = False
    _into: _HandlesById = field(default_factory=_HandlesById)
    _out_of: _HandlesById = field(default_factory=_HandlesById)
    _may_send: frozenset[str] = frozenset()
    _below: frozenset[str] = frozenset()
    _below_policy_unknown: frozenset[str] = frozenset()

    def may_have_input(self, node_id: str, handle: str | None = None) -> bool:
        """Return whether an uncertain edge may lead into a node, or into this handle of it."""
        return self._may_match(self._into, node_id, handle)

    def may_have_output(self, node_id: str, handle: str | None = None) -> bool:
        """Return whether an uncertain edge may leave a node, or this handle of it."""
        return self._may_match(self._out_of, node_id, handle)

    def may_execute(self, node_id: str) -> bool:
        """Return whether an uncertain flow edge may leave a node, which then is executed, not linked."""
        return not self._may_send.isdisjoint(self._aliases(node_id))

    def may_exist(self, end: str) -> bool:
        """Return whether the end of an edge may be correct although it names no node of the graph."""
        return self.nodes_unreadable or end == UNREADABLE or end in self.unmatched_ends

    def suppresses(self, finding: Diagnostic, node: Node) -> bool:
        """Return whether unreadable parts may be the only cause of a finding of a node's type.

        For a node with uncertain inputs, only errors in fields that were read count.
        """
        if finding.code == _ABOUT_ANCESTORS:
            return UNREADABLE in self._into or node.id in self._below
        if finding.code == _ABOUT_HANDLES and node.id in self._below_policy_unknown:
            return True  # some policies add outputs to the nodes before this one
        if finding.code == _ABOUT_BRANCHES and self.may_have_output(node.id):
            return True
        may_have_input, is_incomplete = self.may_have_input(node.id), node.id in self.incomplete
        if finding.severity != "error":
            return may_have_input or is_incomplete or node.id in self.policy_unknown
        if may_have_input and finding.code in _ABOUT_INPUTS:
            return True
        return (may_have_input or is_incomplete) and not self._is_certain(finding, node)

    def _is_certain(self, finding: Diagnostic, node: Node) -> bool:
        """Return whether a finding is about a field that was read and that no edge can replace."""
        _, part, *below = finding.pointer.split("/") if finding.pointer else ("", "")
        if part == "policy":
            return True
        was_read = part == "data" and any(pointer_part(name) in below[:1] for name in node.data)
        return (
            was_read
            and finding.code != _MISSING
            and all(
                handles == {DEFAULT_TARGET_HANDLE}
                for handles in self._handles_at(self._into, node.id)
            )
        )

    def _may_match(self, ends: _HandlesById, node_id: str, handle: str | None) -> bool:
        return any(
            handle is None or handle in handles or UNREADABLE in handles
            for handles in self._handles_at(ends, node_id)
        )

    def _handles_at(self, ends: _HandlesById, node_id: str) -> list[set[str]]:
        return [ends[name] for name in self._aliases(node_id) if name in ends] if ends else []

    def _aliases(self, node_id: str) -> tuple[str, ...]:
        return (
            (node_id, UNREADABLE, _ANY_UNMATCHED_NODE)
            if node_id in self.unmatched_nodes
            else (node_id, UNREADABLE)
        )


COMPLETE_GRAPH: Final = PartialGraph()


class EdgeSplit(NamedTuple):
    """A graph's certain edges, its uncertain parts, and each edge's position in the document.

    ``edge_indexes`` lists the certain edges, then ``partial.uncertain_edges``.
    """

    graph: Graph
    partial: PartialGraph
    edge_indexes: Sequence[int]


def split_edges(
    graph: Graph,
    catalogue: Catalogue,
    unreadable: Unreadable,
    edge_indexes: Sequence[int] | None = None,
) -> EdgeSplit:
    """Split the edges of a graph into certain and uncertain ones. O(V + E).

    If the ports of an edge without a readable channel allow only one channel, the edge gets that
    channel. An edge is uncertain if its channel or an end is not known, or an end may mean several
    nodes.

    Args:
        graph: The readable part of the graph.
        catalogue: The node types.
        unreadable: The unreadable part.
        edge_indexes: Position in the document of each edge of the graph; None if all were read.
    """
    ends = _EndpointResolver(graph, catalogue, unreadable)
    numbered = zip(count() if edge_indexes is None else edge_indexes, graph.edges, strict=False)
    certain: list[tuple[int, Edge]] = []
    uncertain: list[tuple[int, Edge]] = []
    for number, read in sorted([*numbered, *unreadable.edges], key=itemgetter(0)):
        edge = ends.resolve(read)
        (certain if ends.is_certain(edge) else uncertain).append((number, edge))
    certain_graph = Graph(graph.nodes, tuple(edge for _, edge in certain))
    partial = ends.partial_graph(certain_graph, [edge for _, edge in uncertain])
    return EdgeSplit(certain_graph, partial, [number for number, _ in (*certain, *uncertain)])


def types_by_id(nodes: Sequence[Node]) -> dict[str, str]:
    """Return the type of each node id; ``UNREADABLE`` for an id shared by nodes of several types."""
    kinds = {node.id: node.type for node in nodes}
    if len(kinds) < len(nodes):
        for node in nodes:
            if kinds[node.id] != node.type:
                kinds[node.id] = UNREADABLE
    return kinds


class _EndpointResolver:
    """Resolves the ends of edges to nodes."""

    def __init__(self, graph: Graph, catalogue: Catalogue, unreadable: Unreadable) -> None:
        self._catalogue = catalogue
        self._unreadable = unreadable
        self._types = types_by_id(graph.nodes)
        self._shared = {
            name: times - 1
            for name, times in Counter(node.id for node in graph.nodes).items()
            if times > 1
        }
        self._by_normalized_id = {
            normalized(name): name for name in unreadable.invalid_ids if normalized(name)
        }
        self._channels: dict[tuple[str | None, ...], Channel | None] = {}
        self._unmatched_nodes, self._unmatched_ends = self._unmatched(
            [*graph.edges, *(e for _, e in unreadable.edges)]
        )

    def resolve(self, edge: Edge) -> Edge:
        """Return an edge with its ends resolved to node ids, and with its only possible channel."""
        source, target = self._resolve_id(edge.source), self._resolve_id(edge.target)
        edge = edge._replace(source=source, target=target)
        if edge.channel != UNREADABLE_CHANNEL:
            return edge
        channel = self._only_channel(edge)
        return edge if channel is None else edge._replace(channel=channel)

    def is_certain(self, edge: Edge) -> bool:
        """Return whether the nodes that an edge connects are known, or known to be missing."""
        return edge.channel != UNREADABLE_CHANNEL and not any(
            end == UNREADABLE
            or end in self._shared
            or end in self._unmatched_ends
            or self._unreadable.nodes_unreadable
            for end in (edge.source, edge.target)
        )

    def partial_graph(self, certain: Graph, uncertain: Sequence[Edge]) -> PartialGraph:
        """Return the uncertain parts beside the certain edges."""
        into, out_of = _HandlesById(), _HandlesById()
        for edge in uncertain:
            into.setdefault(self._alias(edge.target), set()).add(edge.target_handle)
            out_of.setdefault(self._alias(edge.source), set()).add(edge.source_handle)
        for edge in certain.edges:
            if edge.target_handle == UNREADABLE:
                into.setdefault(edge.target, set()).add(UNREADABLE)
            if edge.source_handle == UNREADABLE:
                out_of.setdefault(edge.source, set()).add(UNREADABLE)
        starts = [
            *into,
            *self._unreadable.invalid_ids,
            *(self._unmatched_nodes if _ANY_UNMATCHED_NODE in into else ()),
        ]
        after_policy_unknown = {
            e.target for e in certain.edges if e.source in self._unreadable.policy_unknown
        }
        return PartialGraph(
            uncertain_edges=uncertain,
            without_id=frozenset(self._unreadable.without_id),
            unmatched_nodes=self._unmatched_nodes,
            unmatched_ends=self._unmatched_ends,
            incomplete=frozenset(self._unreadable.incomplete),
            policy_unknown=frozenset(self._unreadable.policy_unknown),
            nodes_unreadable=self._unreadable.nodes_unreadable,
            _into=into,
            _out_of=out_of,
            _may_send=frozenset(self._alias(e.source) for e in uncertain if e.channel != LINK),
            _below=frozenset(_reachable(certain, starts)),
            _below_policy_unknown=frozenset(_reachable(certain, after_policy_unknown)),
        )

    def _unmatched(self, edges: Sequence[Edge]) -> tuple[Counter[str], dict[str, None]]:
        """Return the nodes that edges may name otherwise, and the unknown ends that may mean them."""
        ends = dict.fromkeys(
            self._resolve_id(end) for edge in edges for end in (edge.source, edge.target)
        )
        unused = [name for name in self._unreadable.invalid_ids if name not in ends]
        nodes = Counter(self._shared) + Counter([*self._unreadable.without_id, *unused])
        unknown = [end for end in ends if end != UNREADABLE and end not in self._types]
        return nodes, dict.fromkeys(unknown) if nodes else {}

    def _alias(self, end: str) -> str:
        return end if end in self._types or end == UNREADABLE else _ANY_UNMATCHED_NODE

    def _resolve_id(self, end: str) -> str:
        if end in self._types or not self._by_normalized_id:
            return end
        return self._by_normalized_id.get(normalized(end), end)

    def _only_channel(self, edge: Edge) -> Channel | None:
        ends = self._types.get(edge.source), self._types.get(edge.target)
        kind = (ends[0], edge.source_handle, ends[1], edge.target_handle)
        if kind not in self._channels:
            source, target = (
                None if end is None else self._catalogue.type_info(end) for end in ends
            )
            unknown = EdgeKind(source, edge.source_handle, target, edge.target_handle, UNREADABLE)
            channels = possible_channels(unknown, self._catalogue)
            self._channels[kind] = channels[0] if len(channels) == 1 else None
        return self._channels[kind]


def _reachable(graph: Graph, starts: Iterable[str]) -> set[str]:
    """Return the ids in ``starts`` and all ids reachable from them."""
    following: dict[str, list[str]] = {}
    for edge in graph.edges:
        following.setdefault(edge.source, []).append(edge.target)
    found = set(starts)
    stack = list(found)
    while stack:
        for target in following.get(stack.pop(), ()):
            if target not in found:
                found.add(target)
                stack.append(target)
    return found
