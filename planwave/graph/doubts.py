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

from planwave.graph.capabilities import Catalogue
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.gaps import UNREAD, UNREAD_CHANNEL, Gaps
from planwave.graph.json_values import pointer_part
from planwave.graph.model import DEFAULT_TARGET_HANDLE, LINK, Channel, Edge, Graph, Node
from planwave.graph.names import folded
from planwave.graph.wires import Wire, open_channels

_MISSING: Final = "missing-required-input"
_OF_ARRIVALS: Final = frozenset({_MISSING, "template-undefined"})
_OF_ANCESTORS: Final = "not-an-ancestor"
_OF_HANDLES: Final = "unknown-handle"
_OF_WAYS_ON: Final = "unused-decision"
_STRAY: Final = "#"
"""Stands among the ends of edges for every node that may be named by another id than its own."""

_Ends = dict[str, set[str]]
"""Handles by node id; ``UNREAD`` is any handle, and among the ids any node."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """What may be there although it was not read; nothing for a graph that is known as a whole.

    Attributes:
        unsure: Edges that are not in the graph.
        nameless: Ids given to nodes whose own could not be read.
        strays: Ids of nodes that edges may name by another id: nameless ones, and those of an id
            that is faulty or taken.
        lost: Ends that name no node, if there are any strays that they may mean.
        incomplete: Ids of nodes that may have more description and data.
        unruled: Ids of nodes that may have another policy.
        no_nodes: Whether the nodes could not be read at all.
    """

    unsure: Sequence[Edge] = ()
    nameless: frozenset[str] = frozenset()
    strays: Counter[str] = field(default_factory=Counter[str])
    lost: Mapping[str, None] = field(default_factory=dict[str, None])
    incomplete: frozenset[str] = frozenset()
    unruled: frozenset[str] = frozenset()
    no_nodes: bool = False
    _into: _Ends = field(default_factory=_Ends)
    _out_of: _Ends = field(default_factory=_Ends)
    _flowing: frozenset[str] = frozenset()
    _below: frozenset[str] = frozenset()
    _below_unruled: frozenset[str] = frozenset()

    def may_feed(self, node_id: str, handle: str | None = None) -> bool:
        """Say whether more may lead into a node, or into this handle of it, than the graph shows."""
        return self._may_end(self._into, node_id, handle)

    def may_leave(self, node_id: str, handle: str | None = None) -> bool:
        """Say whether more may leave a node, or this handle of it, than the graph shows."""
        return self._may_end(self._out_of, node_id, handle)

    def may_run(self, node_id: str) -> bool:
        """Say whether an unsure flow edge may leave a node, so that it is executed, not linked."""
        return not self._flowing.isdisjoint(self._names(node_id))

    def is_excused(self, end: str) -> bool:
        """Say whether an end may be right although it names no node of the graph."""
        return self.no_nodes or end == UNREAD or end in self.lost

    def explains(self, finding: Diagnostic, node: Node) -> bool:
        """Say whether what a node's type has found may only come from what was not read.

        Of a node that more may come to, only faults of fields that are there count.
        """
        if finding.code == _OF_ANCESTORS:
            return UNREAD in self._into or node.id in self._below
        if finding.code == _OF_HANDLES and node.id in self._below_unruled:
            return True  # an output of a node before this one, that only some policies give it
        if finding.code == _OF_WAYS_ON and self.may_leave(node.id):
            return True
        is_fed, is_incomplete = self.may_feed(node.id), node.id in self.incomplete
        if finding.severity != "error":
            return is_fed or is_incomplete or node.id in self.unruled
        if is_fed and finding.code in _OF_ARRIVALS:
            return True
        return (is_fed or is_incomplete) and not self._stands(finding, node)

    def _stands(self, finding: Diagnostic, node: Node) -> bool:
        """Say whether a finding is about a field that is there, and that no edge can replace."""
        _, part, *below = finding.pointer.split("/") if finding.pointer else ("", "")
        if part == "policy":
            return True
        is_there = part == "data" and any(pointer_part(name) in below[:1] for name in node.data)
        return (
            is_there
            and finding.code != _MISSING
            and all(
                handles == {DEFAULT_TARGET_HANDLE} for handles in self._met(self._into, node.id)
            )
        )

    def _may_end(self, ends: _Ends, node_id: str, handle: str | None) -> bool:
        return any(
            handle is None or handle in handles or UNREAD in handles
            for handles in self._met(ends, node_id)
        )

    def _met(self, ends: _Ends, node_id: str) -> list[set[str]]:
        return [ends[name] for name in self._names(node_id) if name in ends] if ends else []

    def _names(self, node_id: str) -> tuple[str, ...]:
        return (node_id, UNREAD, _STRAY) if node_id in self.strays else (node_id, UNREAD)


NO_DOUBTS: Final = Doubts()


class Parted(NamedTuple):
    """A graph's certain edges, doubts about the rest, and the place of each edge in its document.

    ``places`` goes on with those of ``doubts.unsure``.
    """

    graph: Graph
    doubts: Doubts
    places: Sequence[int]


def parted(
    graph: Graph, catalogue: Catalogue, gaps: Gaps, places: Sequence[int] | None = None
) -> Parted:
    """Part the edges of a graph into certain and unsure ones. O(V + E).

    An edge whose channel was not read is certain of the one that the ports of its ends leave open,
    if that is one. An edge is unsure if one of its ends is not known, or may mean several nodes.

    Args:
        graph: What could be read.
        catalogue: The node types.
        gaps: What could not.
        places: Number in the document of each edge of the graph; None where it is its own.
    """
    ends = _KnownEnds(graph, catalogue, gaps)
    numbered = zip(count() if places is None else places, graph.edges, strict=False)
    certain: list[tuple[int, Edge]] = []
    unsure: list[tuple[int, Edge]] = []
    for number, read in sorted([*numbered, *gaps.edges], key=itemgetter(0)):
        edge = ends.settled(read)
        (certain if ends.are_certain(edge) else unsure).append((number, edge))
    kept = Graph(graph.nodes, tuple(edge for _, edge in certain))
    doubts = ends.doubts(kept, [edge for _, edge in unsure])
    return Parted(kept, doubts, [number for number, _ in (*certain, *unsure)])


def kinds_of(nodes: Sequence[Node]) -> dict[str, str]:
    """Give the type of each id; ``UNREAD`` where nodes of several types share it."""
    kinds = {node.id: node.type for node in nodes}
    if len(kinds) < len(nodes):
        for node in nodes:
            if kinds[node.id] != node.type:
                kinds[node.id] = UNREAD
    return kinds


class _KnownEnds:
    """What is known of the nodes that edges name."""

    def __init__(self, graph: Graph, catalogue: Catalogue, gaps: Gaps) -> None:
        self._catalogue = catalogue
        self._gaps = gaps
        self._kinds = kinds_of(graph.nodes)
        self._shared = {
            name: times - 1
            for name, times in Counter(node.id for node in graph.nodes).items()
            if times > 1
        }
        self._meant = {folded(name): name for name in gaps.misnamed if folded(name)}
        self._channels: dict[tuple[str | None, ...], Channel | None] = {}
        self._strays, self._lost = self._missed([*graph.edges, *(e for _, e in gaps.edges)])

    def settled(self, edge: Edge) -> Edge:
        """Give an edge with the ids that its ends go by, and the only channel it can have."""
        source, target = self._resolved(edge.source), self._resolved(edge.target)
        edge = edge._replace(source=source, target=target)
        if edge.channel != UNREAD_CHANNEL:
            return edge
        channel = self._only_channel(edge)
        return edge if channel is None else edge._replace(channel=channel)

    def are_certain(self, edge: Edge) -> bool:
        """Say whether it is known which nodes an edge connects, or that they are not there."""
        return edge.channel != UNREAD_CHANNEL and not any(
            end == UNREAD or end in self._shared or end in self._lost or self._gaps.no_nodes
            for end in (edge.source, edge.target)
        )

    def doubts(self, kept: Graph, unsure: Sequence[Edge]) -> Doubts:
        """Give what is in doubt beside the edges that are kept."""
        into, out_of = _Ends(), _Ends()
        for edge in unsure:
            into.setdefault(self._name(edge.target), set()).add(edge.target_handle)
            out_of.setdefault(self._name(edge.source), set()).add(edge.source_handle)
        for edge in kept.edges:
            if edge.target_handle == UNREAD:
                into.setdefault(edge.target, set()).add(UNREAD)
            if edge.source_handle == UNREAD:
                out_of.setdefault(edge.source, set()).add(UNREAD)
        starts = [*into, *self._gaps.misnamed, *(self._strays if _STRAY in into else ())]
        after_unruled = {e.target for e in kept.edges if e.source in self._gaps.unruled}
        return Doubts(
            unsure=unsure,
            nameless=frozenset(self._gaps.nameless),
            strays=self._strays,
            lost=self._lost,
            incomplete=frozenset(self._gaps.incomplete),
            unruled=frozenset(self._gaps.unruled),
            no_nodes=self._gaps.no_nodes,
            _into=into,
            _out_of=out_of,
            _flowing=frozenset(self._name(e.source) for e in unsure if e.channel != LINK),
            _below=frozenset(_reached(kept, starts)),
            _below_unruled=frozenset(_reached(kept, after_unruled)),
        )

    def _missed(self, edges: Sequence[Edge]) -> tuple[Counter[str], dict[str, None]]:
        """Give the nodes that may be named otherwise, and the names that may be theirs."""
        ends = dict.fromkeys(
            self._resolved(end) for edge in edges for end in (edge.source, edge.target)
        )
        unheard = [name for name in self._gaps.misnamed if name not in ends]
        strays = Counter(self._shared) + Counter([*self._gaps.nameless, *unheard])
        lost = [end for end in ends if end != UNREAD and end not in self._kinds]
        return strays, dict.fromkeys(lost) if strays else {}

    def _name(self, end: str) -> str:
        return end if end in self._kinds or end == UNREAD else _STRAY

    def _resolved(self, end: str) -> str:
        if end in self._kinds or not self._meant:
            return end
        return self._meant.get(folded(end), end)

    def _only_channel(self, edge: Edge) -> Channel | None:
        ends = self._kinds.get(edge.source), self._kinds.get(edge.target)
        kind = (ends[0], edge.source_handle, ends[1], edge.target_handle)
        if kind not in self._channels:
            source, target = (None if end is None else self._catalogue.facts(end) for end in ends)
            wire = Wire(source, edge.source_handle, target, edge.target_handle, UNREAD)
            channels = open_channels(wire, self._catalogue)
            self._channels[kind] = channels[0] if len(channels) == 1 else None
        return self._channels[kind]


def _reached(graph: Graph, starts: Iterable[str]) -> set[str]:
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
