"""Waves of one run: their numbers, how much of each is unsettled, and the barrier between them.

Pure, like the schedule it serves. A barrier opens when every node of the wave is settled, waiting
for an answer, or downstream of a waiting one ("excused").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from planwave.executor.scheduling.types import NodeStatus, SchedulingRules
from planwave.graph.topology import Topology


class WaveBarrier:
    """Wave numbers (from 1; 0 for nodes in none) and the count of unsettled nodes in each.

    Args:
        topology: The graph as integers.
        preset: Nodes settled from outside. They are in a wave, but neither start nor end it.
        part: Nodes that may run; None for all.
        dropped: Nodes that will not run whatever happens.
        rules: Whether a wave waits for the one before it, and the lowest waves of nodes.
    """

    __slots__ = (
        "_barrier",
        "_exempt",
        "_exempt_count",
        "_remaining",
        "_topology",
        "number",
        "open_wave",
        "total",
    )

    def __init__(
        self,
        topology: Topology,
        preset: Mapping[int, Collection[str]],
        part: Collection[int] | None,
        dropped: Collection[int],
        rules: SchedulingRules,
    ) -> None:
        self._topology, self._barrier = topology, rules.barrier
        if dropped:
            part = set(range(len(topology)) if part is None else part).difference(dropped)
        depth = topology.depth if part is None else topology.depths(part)
        if rules.floors:
            depth = [*depth]  # that of the topology is shared by all runs of the graph
            _raise_to(rules.floors, depth, topology, part)
        self.number = [d + 1 for d in depth]
        if part is not None or True in topology.linked:
            for node, linked in enumerate(topology.linked):
                outside = part is not None and node not in part
                if linked or (outside and node not in preset):
                    self.number[node] = 0
        self.total = max(self.number, default=0)
        self._remaining = [0] * (self.total + 1)
        for wave in self.number:
            self._remaining[wave] += 1
        for node in preset:
            self._remaining[self.number[node]] -= 1
        self.open_wave = 1 if rules.barrier else self.total + 1
        self._exempt: set[int] = set()
        self._exempt_count = [0] * (self.total + 1)

    def settle(self, node: int) -> int:
        """Count a node as settled; return its wave's number if the wave is over now, else 0."""
        wave = self.number[node]
        self._remaining[wave] = remaining = self._remaining[wave] - 1
        if node in self._exempt:
            self._exempt_count[wave] -= 1
        return 0 if remaining else wave

    def open_next(self) -> int:
        """Open the next wave if the barrier permits; return the number of that wave, else 0."""
        wave = self.open_wave
        if wave > self.total or self._remaining[wave] > self._exempt_count[wave]:
            return 0
        self.open_wave = wave + 1
        return self.open_wave

    def is_over(self, wave: int) -> bool:
        """Return whether all nodes of a wave are settled."""
        return not self._remaining[wave]

    def exempt(self, node: int, status: Sequence[NodeStatus]) -> None:
        """Exempt a waiting node and its descendants from the barrier."""
        stack = [node] if self._barrier else []
        while stack:
            node = stack.pop()
            if node in self._exempt:
                continue
            self._exempt.add(node)
            if status[node] <= NodeStatus.WAITING:
                self._exempt_count[self.number[node]] += 1
            stack.extend(self._topology.successors(node))

    def recompute_exempt(self, waiting: Iterable[int], status: Sequence[NodeStatus]) -> None:
        """Clear all exemptions, then exempt the nodes that still wait and their descendants."""
        if self._barrier:
            self._exempt.clear()
            self._exempt_count = [0] * (self.total + 1)
            for node in waiting:
                self.exempt(node, status)


def _raise_to(
    floors: Mapping[int, tuple[int, bool]],
    depth: list[int],
    topology: Topology,
    part: Collection[int] | None,
) -> None:
    """Raise the depths of nodes to their floors, and those of all that depend on them; some stay in their waves."""
    for node in topology.order:
        lowest, is_fixed = floors.get(node, (1, False))
        if is_fixed:
            depth[node] = lowest - 1
            continue
        depth[node] = max(depth[node], lowest - 1)
        for edge in topology.incoming[node]:
            source = topology.sources[edge]
            if part is None or source in part:
                depth[node] = max(depth[node], depth[source] + (not topology.linked[source]))
