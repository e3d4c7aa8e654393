"""Find cycles and one path around each: linear, without recursion.

One cycle is reported for each strongly connected component: a shortest one through its first node
in graph order, so that the result is deterministic.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import FLOW, LINK
from planwave.graph.topology import Adjacency, Topology, strongly_connected

_MAX_PATH_NODES: Final = 8


def cycle_diagnostics(topology: Topology) -> list[Diagnostic]:
    """Return a finding for each group of nodes that wait for (flow) or use (links) each other.

    A flow cycle may pass through linked nodes: the consumers of a linked node wait for its flow
    edges.
    """
    ids = topology.ids
    findings: list[Diagnostic] = []
    for path in flow_cycles(topology):
        message = f"nodes wait for each other: {_path_text(ids, path)}"
        hint = "remove one of these edges; to repeat steps, use a node type that loops"
        findings.append(_diagnostic("flow-cycle", message, ids, path, hint))
    for path in link_cycles(topology):
        message = f"linked nodes depend on each other: {_path_text(ids, path)}"
        findings.append(_diagnostic("link-cycle", message, ids, path, "remove one of these links"))
    return findings


def flow_cycles(topology: Topology) -> list[list[int]]:
    """Return one cycle of effective edges, with at least one flow edge, for each component."""
    if len(topology.order) == len(topology):
        return []
    edges = topology.edges
    adjacency = [topology.successors(node) for node in range(len(topology))]
    flows = [
        [topology.targets[e] for e in outgoing if edges[e].channel == FLOW]
        for outgoing in topology.outgoing
    ]
    sorted_nodes = set(topology.order)
    rest = [node for node in range(len(topology)) if node not in sorted_nodes]
    return _cycles(adjacency, flows, rest)


def link_cycles(topology: Topology) -> list[list[int]]:
    """Return one cycle of link edges for each component, even if its nodes also run as stages."""
    index = topology.index
    adjacency: dict[int, list[int]] = {}
    for edge in topology.edges:
        if edge.channel == LINK and edge.source in index and edge.target in index:
            target = index[edge.target]
            adjacency.setdefault(index[edge.source], []).append(target)
            adjacency.setdefault(target, [])
    return _cycles(adjacency, adjacency, sorted(adjacency))


def _cycles(adjacency: Adjacency, first_steps: Adjacency, nodes: Iterable[int]) -> list[list[int]]:
    """Return a shortest cycle for each component that has one beginning with a first step."""
    cycles: list[list[int]] = []
    for component in strongly_connected(adjacency, nodes):
        members = set(component)
        for start in sorted(component):
            steps = [step for step in first_steps[start] if step in members]
            if steps:
                cycles.append(_shortest_cycle(adjacency, start, steps, members))
                break
    return sorted(cycles)


def _shortest_cycle(
    adjacency: Adjacency, start: int, steps: Iterable[int], members: set[int]
) -> list[int]:
    """Return the shortest path from the steps back to the start; a component always has one."""
    came_from = dict.fromkeys(steps, start)
    queue = deque(came_from)
    while start not in came_from:
        node = queue.popleft()
        for target in adjacency[node]:
            if target in members and target not in came_from:
                came_from[target] = node
                queue.append(target)
    path = [start]
    while len(path) == 1 or path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def _path_text(ids: Sequence[str], path: Sequence[int]) -> str:
    names = [ids[node] for node in path]
    if len(names) > _MAX_PATH_NODES:
        skipped = len(names) - _MAX_PATH_NODES
        names = [*names[: _MAX_PATH_NODES - 2], f"({skipped} more)", *names[-2:]]
    return " -> ".join(names)


def _diagnostic(
    code: str, message: str, ids: Sequence[str], path: Sequence[int], hint: str
) -> Diagnostic:
    named = tuple(ids[node] for node in path)
    return Diagnostic(
        code, "error", message, f"/nodes/{path[0]}", node=named[0], path=named, hint=hint
    )
