"""Demand: which nodes can still reach something after a ``join: any`` has started without them.

Pure, like the schedule. An edge into a started ``join: any`` does not matter any more. A node all of
whose edges do not matter is no longer needed, and then the edges into it do not matter either.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from planwave.executor.scheduling.types import NodeStatus
from planwave.graph.topology import Topology


class Demand:
    """Counts the edges out of each node that still matter. O(V + E) over a run.

    Args:
        topology: The graph as integers.
        disposable: Nodes that nothing but their edges needs: they have no side effect to come.

    Attributes:
        unneeded: The nodes that became no longer needed before they settled.
    """

    __slots__ = ("_closed", "_disposable", "_remaining", "_topology", "unneeded")

    def __init__(self, topology: Topology, disposable: Collection[int]) -> None:
        self._topology = topology
        self._disposable = frozenset(disposable)
        self._remaining = [len(edges) for edges in topology.outgoing]
        self._closed: set[int] = set()
        self.unneeded: set[int] = set()

    def close(self, node: int, status: Sequence[NodeStatus]) -> list[int]:
        """Let the edges into a node matter no more; return the nodes that nothing needs now.

        Args:
            node: A node that has started without waiting for all its edges.
            status: The status of each node.
        """
        topology, unneeded, stack = self._topology, list[int](), [node]
        while stack:
            node = stack.pop()
            if node in self._closed:
                continue
            self._closed.add(node)
            for edge in topology.incoming[node]:
                source = topology.sources[edge]
                self._remaining[source] -= 1
                if self._remaining[source] or source not in self._disposable:
                    continue
                if status[source] <= NodeStatus.WAITING:
                    self.unneeded.add(source)
                    unneeded.append(source)
                    stack.append(source)
        return unneeded
