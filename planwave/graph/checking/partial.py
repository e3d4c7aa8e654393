"""What cannot be judged of a graph of which not everything could be read.

A finding that goes away by itself once the unreadable parts are written right only misleads: a node
*seems* to lack an input while the edge into it does not say its channel. So edges are parted in two.
On those that are **certain** everything is checked. An **unsure** one is only held against what it
does say, and whatever it may yet bring counts as brought.
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
"""Stands among the ends of edges for every node that may be named by another id than its own."""

_HandlesById = dict[str, set[str]]
"""Handles by node id; ``UNREADABLE`` is any handle, and among the ids any node."""


@dataclass(frozen=True, slots=True)
class PartialGraph:
    """What may be there although it was not read; nothing for a graph that is known as a whole.

    Attributes:
        uncertain_edges: Edges that are not in the graph.
        without_id: Ids given to nodes whose own could not be read.
        unmatched_nodes: Ids of nodes that edges may name by another id: nameless ones, and those of an id
            that is faulty or taken.
        unmatched_ends: Ends that name no node, if there are any strays that they may mean.
        incomplete: Ids of nodes that may have more description and data.
        policy_unknown: Ids of nodes that may have another policy.
        nodes_unreadable: Whether the nodes could not be read at all.
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
    _below_unruled: frozenset[str] = frozenset()

    def may_have_input(self, node_id: str, handle: str | None = None) -> bool:
        """Say whether more may lead into a node, or into this handle of it, than the graph shows."""
        return self._may_match(self._into, node_id, handle)

    def may_have_output(self, node_id: str, handle: str | None = None) -> bool:
        """Say whether more may leave a node, or this handle of it, than the graph shows."""
        return self._may_match(self._out_of, node_id, handle)

    def may_execute(self, node_id: str) -> bool:
        """Say whether an unsure flow edge may leave a node, so that it is executed, not linked."""
        return not self._may_send.isdisjoint(self._aliases(node_id))

    def may_exist(self, end: str) -> bool:
        """Say whether an end may be right although it names no node of the graph."""
        return self.nodes_unreadable or end == UNREADABLE or end in self.unmatched_ends

    def suppresses(self, finding: Diagnostic, node: Node) -> bool:
        """Say whether what a node's type has found may only come from what was not read.

        Of a node that more may come to, only faults of fields that are there count.
        """
        if finding.code == _ABOUT_ANCESTORS:
            return UNREADABLE in self._into or node.id in self._below
        if finding.code == _ABOUT_HANDLES and node.id in self._below_unruled:
            return True  # an output of a node before this one, that only some policies give it
        if finding.code == _ABOUT_BRANCHES and self.may_have_output(node.id):
            return True
        is_fed, is_incomplete = self.may_have_input(node.id), node.id in self.incomplete
        if finding.severity != "error":
            return is_fed or is_incomplete or node.id in self.policy_unknown
        if is_fed and finding.code in _ABOUT_INPUTS:
            return True
        return (is_fed or is_incomplete) and not self._is_certain(finding, node)

    def _is_certain(self, finding: Diagnostic, node: Node) -> bool:
        """Say whether a finding is about a field that is there, and that no edge can replace."""
        _, part, *below = finding.pointer.split("/") if finding.pointer else ("", "")
        if part == "policy":
            return True
        is_there = part == "data" and any(pointer_part(name) in below[:1] for name in node.data)
        return (
            is_there
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
    """A graph's certain edges, doubts about the rest, and the place of each edge in its document.

    ``places`` goes on with those of ``doubts.unsure``.
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
    """Part the edges of a graph into certain and unsure ones. O(V + E).

    An edge whose channel was not read is certain of the one that the ports of its ends leave open,
    if that is one. An edge is unsure if one of its ends is not known, or may mean several nodes.

    Args:
        graph: What could be read.
        catalogue: The node types.
        unreadable: What could not.
        edge_indexes: Number in the document of each edge of the graph; None where it is its own.
    """
    ends = _EndpointResolver(graph, catalogue, unreadable)
    numbered = zip(count() if edge_indexes is None else edge_indexes, graph.edges, strict=False)
    certain: list[tuple[int, Edge]] = []
    unsure: list[tuple[int, Edge]] = []
    for number, read in sorted([*numbered, *unreadable.edges], key=itemgetter(0)):
        edge = ends.resolve(read)
        (certain if ends.is_certain(edge) else unsure).append((number, edge))
    kept = Graph(graph.nodes, tuple(edge for _, edge in certain))
    doubts = ends.partial_graph(kept, [edge for _, edge in unsure])
    return EdgeSplit(kept, doubts, [number for number, _ in (*certain, *unsure)])


def types_by_id(nodes: Sequence[Node]) -> dict[str, str]:
    """Give the type of each id; ``UNREADABLE`` where nodes of several types share it."""
    kinds = {node.id: node.type for node in nodes}
    if len(kinds) < len(nodes):
        for node in nodes:
            if kinds[node.id] != node.type:
                kinds[node.id] = UNREADABLE
    return kinds


class _EndpointResolver:
    """What is known of the nodes that edges name."""

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
        """Give an edge with the ids that its ends go by, and the only channel it can have."""
        source, target = self._resolve_id(edge.source), self._resolve_id(edge.target)
        edge = edge._replace(source=source, target=target)
        if edge.channel != UNREADABLE_CHANNEL:
            return edge
        channel = self._only_channel(edge)
        return edge if channel is None else edge._replace(channel=channel)

    def is_certain(self, edge: Edge) -> bool:
        """Say whether it is known which nodes an edge connects, or that they are not there."""
        return edge.channel != UNREADABLE_CHANNEL and not any(
            end == UNREADABLE
            or end in self._shared
            or end in self._unmatched_ends
            or self._unreadable.nodes_unreadable
            for end in (edge.source, edge.target)
        )

    def partial_graph(self, certain: Graph, uncertain: Sequence[Edge]) -> PartialGraph:
        """Give what is in doubt beside the edges that are kept."""
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
        after_unruled = {
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
            _below_unruled=frozenset(_reachable(certain, after_unruled)),
        )

    def _unmatched(self, edges: Sequence[Edge]) -> tuple[Counter[str], dict[str, None]]:
        """Give the nodes that may be named otherwise, and the names that may be theirs."""
        ends = dict.fromkeys(
            self._resolve_id(end) for edge in edges for end in (edge.source, edge.target)
        )
        unheard = [name for name in self._unreadable.invalid_ids if name not in ends]
        strays = Counter(self._shared) + Counter([*self._unreadable.without_id, *unheard])
        lost = [end for end in ends if end != UNREADABLE and end not in self._types]
        return strays, dict.fromkeys(lost) if strays else {}

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
            wire = EdgeKind(source, edge.source_handle, target, edge.target_handle, UNREADABLE)
            channels = possible_channels(wire, self._catalogue)
            self._channels[kind] = channels[0] if len(channels) == 1 else None
        return self._channels[kind]


def _reachable(graph: Graph, starts: Iterable[str]) -> set[str]:
    """Give the ids that edges lead to from some, and these themselves."""
    following: dict[str, list[str]] = {}
    for edge in graph.edges:
        following.setdefault(edge.source, []).append(edge.target)
    found = set(starts)
    left = list(found)
    while left:
        for target in following.get(left.pop(), ()):
            if target not in found:
                found.add(target)
                left.append(target)
    return found
