"""Joins: count the settled edges into each node.

Pure, like the schedule. An edge settles once: ``delivered``, ``skipped`` or ``failed``. The counter
reports when an edge decides its target.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from planwave.executor.scheduling.types import Cause, SchedulingRules
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
    is decided at the first delivery, once all gates have settled; failures and skips of other edges
    decide only when every edge has settled. An edge from a gate (a linked node) must settle and may
    block its target, but does not count as input unless all edges of the target come from gates.
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
        "remaining",
        "winner",
    )  # fmt: skip

    def __init__(self, topology: Topology, rules: SchedulingRules) -> None:
        self._topology = topology
        self._join_any, self._required = rules.join_any, rules.required
        self.remaining = topology.in_degrees.copy()
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
        """Count an edge with an undecided target; return the decision on the target, if any."""
        target = self._topology.targets[edge]
        self.remaining[target] -= 1
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
        return None if self.remaining[target] else self._when_all_settled(target)

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
        """Return the first required handle that has edges, none of them delivered."""
        fed: dict[str, bool] = {}
        for edge in self._topology.incoming[node]:
            if self._from_gate(edge):
                continue
            handle = self._topology.edges[edge].target_handle
            fed[handle] = fed.get(handle, False) or edge in self._delivered_edges
        return next((h for h, f in fed.items() if not f and h in self._required[node]), None)
