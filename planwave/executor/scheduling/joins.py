"""What has arrived at each node: the joins, and nothing else.

Pure, like the schedule it serves. An edge settles once, ``delivered``, ``skipped`` or ``failed``;
the tally says when that decides its target.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from planwave.executor.scheduling.decisions import Cause, SchedulingRules
from planwave.graph.topology import Topology

EdgeOutcome = Literal["delivered", "skipped", "failed"]


class JoinDecision(NamedTuple):
    """A node is decided: it may run (``delivered``), is skipped, or is blocked (``failed``)."""

    outcome: EdgeOutcome
    cause: Cause | None = None


RUNS: Final = JoinDecision("delivered")
NO_INPUT: Final = JoinDecision(
    "skipped", Cause(None, "no input arrived: every incoming edge was skipped")
)


class JoinCounter:
    """Counts settled edges at their targets.

    ``join: all`` is decided when the last edge settles, or at the first failed one. ``join: any``
    is decided at the first delivery, once no gate is left to wait for; failures and skips decide it
    only together, when nothing else can come. What comes through a gate is waited for and may
    block, but it is no input: it decides a node only where that has no edges of its own.
    """

    __slots__ = (
        "_delivered_edges",
        "_failure",
        "_gates",
        "_join_any",
        "_only_gates",
        "_required",
        "_topology",
        "delivered",
        "left",
        "winner",
    )  # fmt: skip

    def __init__(self, topology: Topology, rules: SchedulingRules) -> None:
        self._topology = topology
        self._join_any, self._required = rules.join_any, rules.required
        self.left = topology.in_degrees.copy()
        self.delivered = [0] * len(topology)
        self.winner: dict[int, int] = {}
        self._gates = {n: sum(map(self._from_gate, topology.incoming[n])) for n in self._join_any}
        self._only_gates = {
            node
            for node, edges in enumerate(topology.incoming if True in topology.linked else ())
            if edges and all(map(self._from_gate, edges))
        }
        self._delivered_edges: set[int] = set()
        self._failure: dict[int, Cause] = {}

    def count(self, edge: int, outcome: EdgeOutcome, cause: Cause | None) -> JoinDecision | None:
        """Count an edge whose target is undecided; give the verdict where this decides it."""
        target = self._topology.targets[edge]
        self.left[target] -= 1
        if outcome == "delivered":
            if not self._from_gate(edge) or target in self._only_gates:
                self.delivered[target] += 1
            self._delivered_edges.add(edge)
        elif cause is not None:
            if target not in self._join_any or self._from_gate(edge):
                return JoinDecision("failed", cause)
            self._failure.setdefault(target, cause)
        if target in self._join_any and self._wins(edge, target, outcome):
            return RUNS
        return None if self.left[target] else self._when_all_settled(target)

    def _wins(self, edge: int, target: int, outcome: EdgeOutcome) -> bool:
        if self._from_gate(edge):
            self._gates[target] -= 1
        elif outcome == "delivered":
            self.winner.setdefault(target, edge)
        return target in self.winner and not self._gates[target]

    def _from_gate(self, edge: int) -> bool:
        return self._topology.linked[self._topology.sources[edge]]

    def _when_all_settled(self, node: int) -> JoinDecision:
        if not self.delivered[node]:
            failure = self._failure.get(node)
            return JoinDecision("failed", failure) if failure else NO_INPUT
        starved = self._missing_required(node) if node in self._required else None
        if starved is not None:
            return JoinDecision("skipped", Cause(None, "a required input was skipped", starved))
        return RUNS

    def _missing_required(self, node: int) -> str | None:
        """Give the first required handle that has edges of which none delivered."""
        fed: dict[str, bool] = {}
        for edge in self._topology.incoming[node]:
            if self._from_gate(edge):
                continue
            handle = self._topology.edges[edge].target_handle
            fed[handle] = fed.get(handle, False) or edge in self._delivered_edges
        return next((h for h, f in fed.items() if not f and h in self._required[node]), None)
