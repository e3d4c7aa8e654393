"""Waves of one run: their numbers, how much of each is unsettled, and the barrier between them.

Pure, like the schedule it serves. A barrier opens when every node of the wave is settled, waiting
for an answer, or downstream of a waiting one ("excused").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from planwave.executor.decisions import Status
from planwave.graph.topology import Topology


class Waves:
    """Wave numbers (from 1; 0 for nodes in none) and the count of unsettled nodes in each.

    Args:
        topology: The graph as integers.
        given: Nodes settled from outside; their consumers are roots of the part that runs.
        part: Nodes that may run; None for all.
        dropped: Nodes that will not run whatever happens.
        barrier: Whether a wave waits for the one before it.
    """

    __slots__ = (
        "_barrier",
        "_excused",
        "_left",
        "_pardoned",
        "_topology",
        "number",
        "open",
        "total",
    )

    def __init__(
        self,
        topology: Topology,
        given: Mapping[int, Collection[str]],
        part: Collection[int] | None,
        dropped: Collection[int],
        *,
        barrier: bool,
    ) -> None:
        self._topology, self._barrier = topology, barrier
        is_whole = not given and part is None and not dropped
        depth = topology.depth if is_whole else topology.depths({*given, *dropped}, part)
        self.number = [d + 1 for d in depth]
        if not is_whole or True in topology.linked:
            for node, linked in enumerate(topology.linked):
                outside = node in given or node in dropped
                if linked or outside or (part is not None and node not in part):
                    self.number[node] = 0
        self.total = max(self.number, default=0)
        self._left = [0] * (self.total + 1)
        for wave in self.number:
            self._left[wave] += 1
        self.open = 1 if barrier else self.total + 1
        self._excused: set[int] = set()
        self._pardoned = [0] * (self.total + 1)

    def leave(self, node: int) -> int:
        """Count a node as settled; give its wave's number if that was the wave's last, else 0."""
        wave = self.number[node]
        self._left[wave] = left = self._left[wave] - 1
        if node in self._excused:
            self._pardoned[wave] -= 1
        return 0 if left else wave

    def advance(self) -> int:
        """Open the next wave if the barrier lets it; give the number of the wave opened, else 0."""
        wave = self.open
        if wave > self.total or self._left[wave] > self._pardoned[wave]:
            return 0
        self.open = wave + 1
        return self.open

    def excuse(self, node: int, status: Sequence[Status]) -> None:
        """Let the barrier open without a waiting node and all that comes after it."""
        stack = [node] if self._barrier else []
        while stack:
            node = stack.pop()
            if node in self._excused:
                continue
            self._excused.add(node)
            if status[node] <= Status.WAITING:
                self._pardoned[self.number[node]] += 1
            stack.extend(self._topology.successors(node))

    def excuse_anew(self, waiting: Iterable[int], status: Sequence[Status]) -> None:
        """Forget all excuses and excuse what is behind the nodes that still wait."""
        if self._barrier:
            self._excused.clear()
            self._pardoned = [0] * (self.total + 1)
            for node in waiting:
                self.excuse(node, status)
