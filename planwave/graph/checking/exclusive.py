"""Find edges that can never deliver in the same run because a node before them chooses one.

A type with ``chooses`` or with a numbered family of outputs chooses one of its outputs; a node that
continues on error sends either from the error handle or from the other handles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

from planwave.graph.checking.partial import COMPLETE_GRAPH, PartialGraph
from planwave.graph.model import ERROR_HANDLE, FLOW, Node
from planwave.graph.ports import find_output, is_numbered
from planwave.graph.protocols import NodeTypeInfo
from planwave.graph.reading.unreadable import UNREADABLE
from planwave.graph.topology import Topology

TypeInfos = Mapping[str, NodeTypeInfo | None]
BranchConditions = Mapping[int, str] | None
"""The branch that must have been chosen, by node number; None if the conditions are not known."""

_MAX_CONDITIONS: Final = 64
"""Conditions stored for one node, so that the work stays linear; with more, the farthest are dropped
and exclusive edges may be reported as not exclusive."""


class ExclusiveBranches:
    """The branch conditions before each node, computed at the first call.

    Args:
        topology: The graph.
        type_infos: The facts about each node type.
        partial: The nodes that unreadable edges may reach.
    """

    def __init__(
        self, topology: Topology, type_infos: TypeInfos, partial: PartialGraph = COMPLETE_GRAPH
    ) -> None:
        self._topology = topology
        self._type_infos = type_infos
        self._partial = partial
        self._conditions: list[BranchConditions] | None = None

    def are_exclusive(self, edges: Sequence[int]) -> bool:
        """Return whether at most one of these edges (by number) can deliver in any run."""
        if self._conditions is None:
            self._conditions = self._compute_conditions()
        guards = [self._conditions_of(edge, self._conditions) for edge in edges]
        return all(
            one is None
            or other is None
            or any(other.get(node, choice) != choice for node, choice in one.items())
            for one, other in combinations(guards, 2)
        )

    def _compute_conditions(self) -> list[BranchConditions]:
        """Return the conditions before each node: those that all paths to it have in common."""
        topology = self._topology
        before: list[BranchConditions] = [{} for _ in topology.ids]
        edges = topology.edges
        for node in topology.order:
            incoming = topology.incoming[node]
            if not incoming and self._partial.may_have_input(topology.ids[node]):
                before[node] = None
            elif incoming and all(edges[edge].channel == FLOW for edge in incoming):
                before[node] = _common_conditions(
                    [self._conditions_of(edge, before) for edge in incoming]
                )
        return before

    def _conditions_of(self, edge: int, conditions: Sequence[BranchConditions]) -> BranchConditions:
        source = self._topology.sources[edge]
        if source < 0:
            return None if self._partial.may_execute(self._topology.edges[edge].source) else {}
        guards = conditions[source]
        handle = self._topology.edges[edge].source_handle
        choice = _chosen_branch(self._topology.nodes[source], handle, self._type_infos)
        if guards is None or choice is None:
            return guards
        return {**guards, source: f"{handle}{edge}" if handle == UNREADABLE else choice}


def _common_conditions(ways: Sequence[BranchConditions]) -> BranchConditions:
    known = [guards for guards in ways if guards is not None]
    if not known:
        return None
    common = {n: c for n, c in known[0].items() if all(g.get(n) == c for g in known[1:])}
    return dict(list(common.items())[-_MAX_CONDITIONS:])


def _chosen_branch(node: Node, handle: str, type_infos: TypeInfos) -> str | None:
    """Return the branch a node has chosen if this handle sends; None if the node does not choose.

    A type that could not be read may choose.
    """
    about = type_infos.get(node.type)
    if about is None:
        return handle if node.type == UNREADABLE else None
    if about.chooses or any(is_numbered(port) for port in about.outputs):
        return handle
    if find_output(about.outputs, ERROR_HANDLE) is not None:
        return None
    return ERROR_HANDLE if handle == ERROR_HANDLE else ""
