"""Find edges that can never deliver in the same run because a node before them chooses one.

A type with ``chooses`` or with a numbered family of outputs chooses one of its outputs; a node that
continues on error sends either from the error handle or from the other handles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

from planwave.graph.model import ERROR_HANDLE, FLOW, Node
from planwave.graph.ports import find_output, is_numbered
from planwave.graph.protocols import NodeTypeInfo
from planwave.graph.topology import Topology

TypeInfos = Mapping[str, NodeTypeInfo | None]
BranchConditions = Mapping[int, str]
"""The branch that must have been chosen, by node number."""

_MAX_CONDITIONS: Final = 64
"""Conditions stored for one node, so that the work stays linear; with more, the farthest are dropped
and exclusive edges may be reported as not exclusive."""


class ExclusiveBranches:
    """The branch conditions before each node, computed at the first call.

    Args:
        topology: The graph.
        type_infos: The facts about each node type.
    """

    def __init__(self, topology: Topology, type_infos: TypeInfos) -> None:
        self._topology = topology
        self._type_infos = type_infos
        self._conditions: list[BranchConditions] | None = None

    def are_exclusive(self, edges: Sequence[int]) -> bool:
        """Return whether at most one of these edges (by number) can deliver in any run."""
        if self._conditions is None:
            self._conditions = self._compute_conditions()
        guards = [self._conditions_of(edge, self._conditions) for edge in edges]
        return all(
            any(other.get(node, choice) != choice for node, choice in one.items())
            for one, other in combinations(guards, 2)
        )

    def _compute_conditions(self) -> list[BranchConditions]:
        """Return the conditions before each node: those that all paths to it have in common."""
        topology = self._topology
        before: list[BranchConditions] = [{} for _ in topology.ids]
        edges = topology.edges
        for node in topology.order:
            incoming = topology.incoming[node]
            if incoming and all(edges[edge].channel == FLOW for edge in incoming):
                before[node] = _common_conditions(
                    [self._conditions_of(edge, before) for edge in incoming]
                )
        return before

    def _conditions_of(self, edge: int, conditions: Sequence[BranchConditions]) -> BranchConditions:
        source = self._topology.sources[edge]
        if source < 0:
            return {}
        guards = conditions[source]
        handle = self._topology.edges[edge].source_handle
        choice = _chosen_branch(self._topology.nodes[source], handle, self._type_infos)
        return guards if choice is None else {**guards, source: choice}


def _common_conditions(ways: Sequence[BranchConditions]) -> BranchConditions:
    first, *others = ways
    common = {n: c for n, c in first.items() if all(way.get(n) == c for way in others)}
    return dict(list(common.items())[-_MAX_CONDITIONS:])


def _chosen_branch(node: Node, handle: str, type_infos: TypeInfos) -> str | None:
    """Return the branch a node has chosen if this handle sends; None if the node does not choose."""
    about = type_infos.get(node.type)
    if about is None:
        return None
    if about.chooses or any(is_numbered(port) for port in about.outputs):
        return handle
    if find_output(about.outputs, ERROR_HANDLE) is not None:
        return None
    return ERROR_HANDLE if handle == ERROR_HANDLE else ""
