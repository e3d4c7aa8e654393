"""The shape of a graph: its waves, depth and width, and its critical path."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from planwave.errors import GraphInvalid
from planwave.graph.checking.cycles import cycle_diagnostics
from planwave.graph.model import Graph
from planwave.graph.topology import Topology, topology_of


@dataclass(frozen=True, slots=True)
class GraphShape:
    """The waves and the critical path of a graph in which every node runs.

    Attributes:
        waves: Ids by wave, in graph order; linked nodes are in none. Wave 1 is ``waves[0]``.
        depth: Number of waves.
        width: Nodes in the widest wave.
        critical_path: Ids along the longest chain of durations.
        critical_path_s: The sum of their durations: the least time the graph can take.
    """

    waves: list[list[str]]
    depth: int
    width: int
    critical_path: list[str]
    critical_path_s: float


def measure(
    graph: Graph,
    durations: Mapping[str, float] | None = None,
    *,
    linked: Collection[str] = (),
) -> GraphShape:
    """Measure a graph.

    Args:
        graph: A graph without cycles.
        durations: Seconds by node id; 1.0 for ids that are missing.
        linked: Ids of nodes whose type only materializes; nodes that have only outgoing links
            need not be listed.

    Raises:
        GraphInvalid: the graph has a flow cycle.
    """
    topology = topology_of(graph, linked)
    if len(topology.order) < len(topology):
        raise GraphInvalid(cycle_diagnostics(topology))
    waves: list[list[str]] = []
    for node, depth in enumerate(topology.depth):
        if not topology.linked[node]:
            while depth >= len(waves):
                waves.append([])
            waves[depth].append(topology.ids[node])
    path, seconds = _critical_path(topology, durations or {})
    return GraphShape(waves, len(waves), max(map(len, waves), default=0), path, seconds)


def _critical_path(topology: Topology, durations: Mapping[str, float]) -> tuple[list[str], float]:
    """Return the longest chain, the first in graph order among equals, and its seconds."""
    finish = [0.0] * len(topology)
    before = [-1] * len(topology)
    for node in topology.order:
        start = 0.0
        for edge in topology.incoming[node]:
            source = topology.sources[edge]
            if before[node] < 0 or finish[source] > start:
                start, before[node] = finish[source], source
        own = 0.0 if topology.linked[node] else durations.get(topology.ids[node], 1.0)
        finish[node] = start + own
    if not finish:
        return [], 0.0
    seconds = max(finish)
    node = finish.index(seconds)
    path: list[str] = []
    while node >= 0:
        if not topology.linked[node]:
            path.append(topology.ids[node])
        node = before[node]
    return path[::-1], seconds
