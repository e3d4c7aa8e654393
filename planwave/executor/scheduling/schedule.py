"""The kernel: facts in, decisions out.

A pure state machine over node numbers, edges and handles. It never sees a node type, the meaning of
a handle, or a value; it has no clock and does no I/O. The driver reports the outcomes of nodes;
``Schedule.decide`` returns which nodes may start, are skipped or blocked, which waves are over,
and whether the run is finished or paused. The same facts in the same order give the same decisions.
O(V + E) over a run, plus O(V + E) for each answered wait behind a barrier.

An edge settles once: delivered, skipped or failed. A node resolves when its last edge settles, or
at its first failed edge, so finishing order never shows, except in ``join: any``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from planwave.errors import InvalidTransition
from planwave.executor.scheduling.demand import Demand
from planwave.executor.scheduling.joins import EdgeOutcome, JoinCounter
from planwave.executor.scheduling.types import (
    Cause,
    Decisions,
    NodeStatus,
    NotRun,
    RunOutcome,
    SchedulingRules,
    Start,
    new_decisions,
)
from planwave.executor.scheduling.waves import WaveBarrier
from planwave.graph.topology import Topology

_Settled = tuple[int, EdgeOutcome, Cause | None]
_PENDING, _READY, _RUNNING, _WAITING, _COMPLETED, *_ = NodeStatus
_NOT_RUN, _ALL_RAN = (NodeStatus.SKIPPED, NodeStatus.BLOCKED, NodeStatus.CANCELLED), ((), (), ())
_NOT_CHOSEN = Cause(None, "another entry was chosen")
_UNNEEDED = Cause(None, "no longer needed: what it leads to has started without it")


class Schedule:
    """Which nodes of one graph may start, given what has happened so far.

    Args:
        topology: The acyclic graph as integers.
        rules: Joins, required handles, scheduling and failure policy.
        preset: Nodes settled from outside, with the handles that carry a value.
        part: Nodes that may run at all; None for every node.
        dropped: Entry nodes that were not chosen: skipped at the start.

    Raises:
        InvalidTransition: The graph has a cycle, or a fact is impossible for the node it names.
    """

    def __init__(
        self,
        topology: Topology,
        rules: SchedulingRules = SchedulingRules(),  # noqa: B008 - immutable
        *,
        preset: Mapping[int, Collection[str]] | None = None,
        part: Collection[int] | None = None,
        dropped: Iterable[int] = (),
    ) -> None:
        if len(topology.order) < len(topology):
            raise InvalidTransition("a graph with a cycle cannot be scheduled")
        self._topology, self._linked = topology, topology.linked
        self._stop_on_failure, self._barrier = rules.stop_on_failure, rules.barrier
        self._plain = not (rules.join_any or rules.required or True in topology.linked)
        self._preset, self._dropped = dict(preset or {}), frozenset(dropped)
        self.waves = WaveBarrier(topology, self._preset, part, self._dropped, rules)
        self.status: list[NodeStatus] = [_PENDING] * len(topology)
        self.not_reached: list[int] = []  # no chosen entry leads to them
        if part is not None:
            outside = set(range(len(topology))).difference(part, self._preset, self._dropped)
            self.not_reached = sorted(node for node in outside if not self._linked[node])
            for node in self.not_reached:
                self.status[node] = NodeStatus.NOT_REACHED
        self.cause: dict[int, Cause] = {}
        self._join_any, self._joins = rules.join_any, JoinCounter(topology, rules)
        self._demand = Demand(topology, rules.disposable if rules.join_any else ())
        self._idle_unneeded: list[int] = []  # to be decided; those that run may wait later
        self._ready: list[int] = []
        self._held_back: dict[int, list[int]] = {}
        self._running, self._waiting, self._ended_waves = 0, set[int](), list[int]()
        self._outcome: RunOutcome = "completed"
        self.stop_cause: Cause | None = None  # nothing starts any more
        self._not_run: dict[NodeStatus, list[NotRun]] = {}

    def start(self) -> Decisions:
        """Settle the preset nodes, make the roots ready, and return the first decisions."""
        roots = [
            n for n, count in enumerate(self._joins.remaining) if not count and not self._linked[n]
        ]
        for node in self._preset:
            self.status[node] = _COMPLETED
        dropped = sorted(self._dropped.difference(self._preset))
        for node in dropped:
            self._settle(node, NodeStatus.SKIPPED, _NOT_CHOSEN)
        for node in sorted(self._preset):
            self._settle_edges(node, self._preset[node])
        for node in [*dropped, *self.not_reached]:
            self._propagate(node, "skipped")
        for node in roots:
            if self.status[node] is _PENDING:
                self._make_ready(node)
        return self.decide()

    # -- facts -------------------------------------------------------------------------------------

    def completed(self, node: int, handles: Collection[str]) -> None:
        """A running node delivered values on ``handles``; its other edges are skipped."""
        self._stop_running(node, _COMPLETED)
        self._settle_edges(node, handles)

    def failed(self, node: int, reason: str, handled: Collection[str] | None = None) -> None:
        """A running node failed; ``handled`` names the handles its error policy still feeds."""
        self._stop_running(node, NodeStatus.FAILED)
        if handled is not None:
            self._settle_edges(node, handled)
            return
        self._fail_edges(node, Cause(node, reason))
        if self._stop_on_failure:
            self.stop(Cause(node, reason))

    def waits(self, node: int) -> None:
        """A running node suspended; only its descendants wait with it."""
        self._change(node, _RUNNING, _WAITING)
        self._running -= 1
        if self.stop_cause is not None:
            return self._settle(node, NodeStatus.CANCELLED, self.stop_cause)
        self._waiting.add(node)
        self.waves.exempt(node, self.status)
        self.retries(node)

    def retries(self, node: int) -> None:
        """A running node waits for its next attempt."""
        if node in self._demand.unneeded:
            self._idle_unneeded.append(node)

    def answered(self, node: int) -> None:
        """A waiting node runs again."""
        self._change(node, _WAITING, _RUNNING)
        self._running += 1
        self._waiting.discard(node)
        self.waves.recompute_exempt(sorted(self._waiting), self.status)

    def cancelled(self, node: int, reason: str) -> None:
        """A node that was started was cancelled; its edges fail with that cause, if they matter."""
        if self.status[node] is _READY:  # held back, as its graph was changed after it was started
            self.status[node], self._running = _RUNNING, self._running + 1
        elif self.status[node] is _WAITING:
            self.answered(node)
        self._stop_running(node, NodeStatus.CANCELLED)
        self.cause[node] = Cause(node, reason)
        if not self.is_unneeded(node):
            self._fail_edges(node, self.cause[node])

    def release(self, node: int) -> None:
        """Cancel an unsettled node that is no longer needed; the run does not fail with it."""
        if not self.is_unneeded(node) or self.status[node] > _WAITING:
            raise InvalidTransition(f"node {self._topology.ids[node]!r} cannot be released")
        if self.status[node] is _WAITING:
            self.answered(node)
        self._running -= self.status[node] is _RUNNING
        self._settle(node, NodeStatus.CANCELLED, _UNNEEDED)

    def is_unneeded(self, node: int) -> bool:
        """Return whether nothing that a node leads to needed it any more, before it settled."""
        return node in self._demand.unneeded

    def unneeded(self) -> list[int]:
        """Return the unsettled nodes that are no longer needed, in graph order."""
        return self._unsettled(self._demand.unneeded)

    def cancel(self, reason: str) -> None:
        """Cancel the run: no more nodes start; running nodes are still to be reported."""
        self._outcome = "cancelled"
        self.stop(Cause(None, reason))

    def decide(self) -> Decisions:
        """Return the decisions that follow from the facts since the last call."""
        while self._barrier and (opened := self.waves.open_next()):
            held_back = self._held_back.pop(opened, ())
            self._ready.extend(node for node in held_back if self.status[node] is _READY)
        starts: list[Start] = []
        ready, self._ready, over, self._ended_waves = self._ready, [], self._ended_waves, []
        ready.sort()
        over.sort()
        status, winner = self.status, self._joins.winner
        for node in ready:
            status[node] = _RUNNING
            starts.append((node, winner.get(node) if winner else None))
        self._running += len(starts)
        unrun = self._take_not_run() if self._not_run else _ALL_RAN
        finished = None if self._running or self._waiting else self._outcome
        paused = not self._running and bool(self._waiting)
        unneeded = self._unsettled(self._idle_unneeded) if self._idle_unneeded else ()
        self._idle_unneeded.clear()
        return new_decisions(Decisions, (starts, *unrun, over, finished, paused, unneeded))

    # -- edges -------------------------------------------------------------------------------------

    def _settle_edges(self, node: int, handles: Collection[str]) -> None:
        """Settle a node's edges by the handles that carry a value; the hot path."""
        names, targets, status = self._topology.handles, self._topology.targets, self.status
        remaining, delivered = self._joins.remaining, self._joins.delivered
        for edge in self._topology.outgoing[node]:
            if self._plain and names[edge] in handles:  # the usual case, without a call an edge
                target = targets[edge]
                remaining[target] -= 1
                if status[target] is _PENDING:
                    delivered[target] += 1
                    if not remaining[target]:
                        self._make_ready(target)
            elif settled := self._settle_edge(
                edge, "delivered" if names[edge] in handles else "skipped"
            ):
                self._propagate(*settled)

    def _fail_edges(self, node: int, cause: Cause) -> None:
        self._outcome = "failed" if self._outcome == "completed" else self._outcome
        self._propagate(node, "failed", cause)

    def _propagate(self, node: int, outcome: EdgeOutcome, cause: Cause | None = None) -> None:
        """Settle all edges of a node with one outcome, and every node that this decides."""
        stack: list[_Settled] = [(node, outcome, cause)]
        while stack:
            node, outcome, cause = stack.pop()
            for edge in self._topology.outgoing[node]:
                if settled := self._settle_edge(edge, outcome, cause):
                    stack.append(settled)

    def _settle_edge(
        self, edge: int, outcome: EdgeOutcome, cause: Cause | None = None
    ) -> _Settled | None:
        """Count an edge; return its target and outcome if the target settled without running."""
        node = self._topology.targets[edge]
        if self.status[node] is not _PENDING:
            return None
        verdict = self._joins.count(edge, outcome, cause)
        if verdict is None:
            return None
        if verdict.outcome == "delivered":
            if not self._linked[node]:
                return self._make_ready(node)
            self.status[node] = _COMPLETED
        elif verdict.outcome == "failed":
            self._settle(node, NodeStatus.BLOCKED, verdict.cause)
        else:
            self._settle(node, NodeStatus.SKIPPED, verdict.cause)
        return node, verdict.outcome, verdict.cause if verdict.outcome == "failed" else None

    # -- nodes -------------------------------------------------------------------------------------

    def _make_ready(self, node: int) -> None:
        self.status[node] = _READY
        if node in self._join_any:
            self._idle_unneeded += self._demand.close(node, self.status)
        if self._barrier and (wave := self.waves.number[node]) > self.waves.open_wave:
            self._held_back.setdefault(wave, []).append(node)
        else:
            self._ready.append(node)

    def stop(self, cause: Cause) -> None:
        """Cancel what has not begun, or waits; running nodes are still to be reported."""
        if self.stop_cause is not None:
            return
        self.stop_cause = cause
        for node, status in enumerate(self.status):
            if status in (_PENDING, _READY, _WAITING) and not self._linked[node]:
                self._settle(node, NodeStatus.CANCELLED, cause)
        for stopped in (self._waiting, self._ready, self._held_back):
            stopped.clear()

    def _settle(self, node: int, status: NodeStatus, cause: Cause | None) -> None:
        if cause and not self._linked[node]:
            self.cause[node] = cause
            self._not_run.setdefault(status, []).append((node, cause))
        self.status[node] = status
        if over := self.waves.settle(node):
            self._ended_waves.append(over)

    def _take_not_run(self) -> tuple[list[NotRun], ...]:
        unrun, self._not_run = self._not_run, {}
        return tuple(sorted(unrun.get(status, ())) for status in _NOT_RUN)

    def _unsettled(self, nodes: Iterable[int]) -> list[int]:
        return [n for n in sorted({*nodes}) if self.status[n] <= _WAITING and not self._linked[n]]

    def _stop_running(self, node: int, status: NodeStatus) -> None:
        self._change(node, _RUNNING, status)
        self._running -= 1
        if over := self.waves.settle(node):
            self._ended_waves.append(over)

    def _change(self, node: int, before: NodeStatus, after: NodeStatus) -> None:
        if self.status[node] is not before:
            raise InvalidTransition(
                f"node {self._topology.ids[node]!r} is {self.status[node].name}, not {before.name}"
            )
        self.status[node] = after
