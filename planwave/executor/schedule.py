"""The kernel: facts in, decisions out.

A pure state machine over node numbers, edges and handles. It never sees a node type, the meaning
of a handle, or a value; it has no clock and does no I/O. It is told what became of nodes and
answers (:meth:`Schedule.decide`) which nodes may start, are skipped or blocked, which waves are
over, and whether the run is finished or paused. The same facts in the same order give the same
decisions. O(V + E) over a run, plus O(V + E) for each answered wait behind a barrier.

An edge settles once: delivered, skipped or failed. A node resolves when its last edge settles, or
at its first failed edge, so finishing order never shows, except in ``join: any``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from planwave.errors import KernelMisuse
from planwave.executor.decisions import Cause, Decisions, Final, Rules, Start, Status, Unrun, made
from planwave.executor.tally import Fate, Tally
from planwave.executor.waves import Waves
from planwave.graph.topology import Topology

_Settled = tuple[int, Fate, Cause | None]
_PENDING, _READY, _RUNNING, _WAITING = Status.PENDING, Status.READY, Status.RUNNING, Status.WAITING
_COMPLETED = Status.COMPLETED
_UNRUN, _ALL_RAN = (Status.SKIPPED, Status.BLOCKED, Status.CANCELLED), ((), (), ())
_NOT_CHOSEN = Cause(None, "another entry was chosen")


class Schedule:
    """Which nodes of one graph may start, given what has happened so far.

    Args:
        topology: The acyclic graph as integers.
        rules: Joins, required handles, scheduling and failure policy.
        given: Nodes settled from outside, with the handles that carry a value.
        part: Nodes that may run at all; None for every node.
        dropped: Entry nodes that were not chosen: skipped at the start.

    Raises:
        KernelMisuse: The graph has a cycle, or a fact is impossible for the node it names.
    """

    def __init__(
        self,
        topology: Topology,
        rules: Rules = Rules(),  # noqa: B008 - immutable
        *,
        given: Mapping[int, Collection[str]] | None = None,
        part: Collection[int] | None = None,
        dropped: Iterable[int] = (),
    ) -> None:
        if len(topology.order) < len(topology):
            raise KernelMisuse("a graph with a cycle cannot be scheduled")
        self._topology, self._linked = topology, topology.linked
        self._stop_on_failure, self._barrier = rules.stop_on_failure, rules.barrier
        self._plain = not (rules.join_any or rules.required or True in topology.linked)
        self._given, self._dropped = dict(given or {}), frozenset(dropped)
        self.waves = Waves(topology, self._given, part, self._dropped, barrier=rules.barrier)
        self.status: list[Status] = [_PENDING] * len(topology)
        self.not_reached: list[int] = []  # no chosen entry leads to them
        if part is not None:
            outside = set(range(len(topology))).difference(part, self._given, self._dropped)
            self.not_reached = sorted(node for node in outside if not self._linked[node])
            for node in self.not_reached:
                self.status[node] = Status.NOT_REACHED
        self.cause: dict[int, Cause] = {}
        self._tally = Tally(topology, rules)
        self._ready: list[int] = []
        self._held: dict[int, list[int]] = {}
        self._running, self._waiting, self._over = 0, set[int](), list[int]()
        self._final: Final = "completed"
        self._ending: Cause | None = None  # nothing starts any more
        self._unrun: dict[Status, list[Unrun]] = {}

    def start(self) -> Decisions:
        """Settle what is given, ready the roots, and say what follows."""
        roots = [n for n, count in enumerate(self._tally.left) if not count and not self._linked[n]]
        for node in self._given:
            self.status[node] = _COMPLETED
        dropped = sorted(self._dropped.difference(self._given))
        for node in dropped:
            self._settle(node, Status.SKIPPED, _NOT_CHOSEN)
        for node in sorted(self._given):
            self._release(node, self._given[node])
        for node in [*dropped, *self.not_reached]:
            self._spread(node, "skipped")
        for node in roots:
            if self.status[node] is _PENDING:
                self._make_ready(node)
        return self.decide()

    # -- facts -------------------------------------------------------------------------------------

    def completed(self, node: int, handles: Collection[str]) -> None:
        """A running node gave values on ``handles``; its other edges are skipped."""
        self._stop_running(node, _COMPLETED)
        self._release(node, handles)

    def failed(self, node: int, reason: str, handled: Collection[str] | None = None) -> None:
        """A running node failed; ``handled`` names the handles its error policy still feeds."""
        self._stop_running(node, Status.FAILED)
        if handled is not None:
            self._release(node, handled)
            return
        self._refuse(node, Cause(node, reason))
        if self._stop_on_failure:
            self._drop_the_rest(Cause(node, reason))

    def waits(self, node: int) -> None:
        """A running node suspended; only its descendants wait with it."""
        self._change(node, _RUNNING, _WAITING)
        self._running -= 1
        if self._ending is not None:
            return self._settle(node, Status.CANCELLED, self._ending)
        self._waiting.add(node)
        self.waves.excuse(node, self.status)

    def answered(self, node: int) -> None:
        """A waiting node runs again."""
        self._change(node, _WAITING, _RUNNING)
        self._running += 1
        self._waiting.discard(node)
        self.waves.excuse_anew(sorted(self._waiting), self.status)

    def cancelled(self, node: int, reason: str) -> None:
        """A running or waiting node was cancelled; its edges fail with that cause."""
        if self.status[node] is _WAITING:
            self.answered(node)
        self._stop_running(node, Status.CANCELLED)
        self.cause[node] = Cause(node, reason)
        self._refuse(node, self.cause[node])

    def cancel(self, reason: str) -> None:
        """Cancel the run: nothing starts any more; what still runs is reported when it ended."""
        self._final = "cancelled"
        self._drop_the_rest(Cause(None, reason))

    def decide(self) -> Decisions:
        """Say what follows from the facts since the last call."""
        while self._barrier and (opened := self.waves.advance()):
            self._ready.extend(self._held.pop(opened, ()))
        starts: list[Start] = []
        ready, self._ready, over, self._over = self._ready, [], self._over, []
        ready.sort()
        over.sort()
        status, winner = self.status, self._tally.winner
        for node in ready:
            status[node] = _RUNNING
            starts.append((node, winner.get(node) if winner else None))
        self._running += len(starts)
        unrun = self._take_unrun() if self._unrun else _ALL_RAN
        finished = None if self._running or self._waiting else self._final
        paused = not self._running and bool(self._waiting)
        return made(Decisions, (starts, *unrun, over, finished, paused))

    # -- edges -------------------------------------------------------------------------------------

    def _release(self, node: int, handles: Collection[str]) -> None:
        """Settle a node's edges by the handles that carry a value; the hot path."""
        names, targets, status = self._topology.handles, self._topology.targets, self.status
        left, delivered = self._tally.left, self._tally.delivered
        for edge in self._topology.outgoing[node]:
            if self._plain and names[edge] in handles:  # the usual case, without a call an edge
                target = targets[edge]
                left[target] -= 1
                if status[target] is _PENDING:
                    delivered[target] += 1
                    if not left[target]:
                        self._make_ready(target)
            elif settled := self._settle_edge(
                edge, "delivered" if names[edge] in handles else "skipped"
            ):
                self._spread(*settled)

    def _refuse(self, node: int, cause: Cause) -> None:
        self._final = "failed" if self._final == "completed" else self._final
        self._spread(node, "failed", cause)

    def _spread(self, node: int, fate: Fate, cause: Cause | None = None) -> None:
        """Give all edges of a node one fate, and follow what that settles, without recursion."""
        stack: list[_Settled] = [(node, fate, cause)]
        while stack:
            node, fate, cause = stack.pop()
            for edge in self._topology.outgoing[node]:
                if settled := self._settle_edge(edge, fate, cause):
                    stack.append(settled)

    def _settle_edge(self, edge: int, fate: Fate, cause: Cause | None = None) -> _Settled | None:
        """Tally an edge; give its target and fate where that settled it without running."""
        node = self._topology.targets[edge]
        if self.status[node] is not _PENDING:
            return None
        verdict = self._tally.count(edge, fate, cause)
        if verdict is None:
            return None
        if verdict.fate == "delivered":
            if not self._linked[node]:
                return self._make_ready(node)
            self.status[node] = _COMPLETED
        elif verdict.fate == "failed":
            self._settle(node, Status.BLOCKED, verdict.cause)
        else:
            self._settle(node, Status.SKIPPED, verdict.cause)
        return node, verdict.fate, verdict.cause if verdict.fate == "failed" else None

    # -- nodes -------------------------------------------------------------------------------------

    def _make_ready(self, node: int) -> None:
        self.status[node] = _READY
        if self._barrier and (wave := self.waves.number[node]) > self.waves.open:
            self._held.setdefault(wave, []).append(node)
        else:
            self._ready.append(node)

    def _drop_the_rest(self, cause: Cause) -> None:
        if self._ending is not None:
            return
        self._ending = cause
        for node, status in enumerate(self.status):
            if status in (_PENDING, _READY, _WAITING) and not self._linked[node]:
                self._settle(node, Status.CANCELLED, cause)
        for stopped in (self._waiting, self._ready, self._held):
            stopped.clear()

    def _settle(self, node: int, status: Status, cause: Cause | None) -> None:
        if cause and not self._linked[node]:
            self.cause[node] = cause
            self._unrun.setdefault(status, []).append((node, cause))
        self.status[node] = status
        if over := self.waves.leave(node):
            self._over.append(over)

    def _take_unrun(self) -> tuple[list[Unrun], ...]:
        unrun, self._unrun = self._unrun, {}
        return tuple(sorted(unrun.get(status, ())) for status in _UNRUN)

    def _stop_running(self, node: int, status: Status) -> None:
        self._change(node, _RUNNING, status)
        self._running -= 1
        if over := self.waves.leave(node):
            self._over.append(over)

    def _change(self, node: int, before: Status, after: Status) -> None:
        if self.status[node] is not before:
            raise KernelMisuse(
                f"node {self._topology.ids[node]!r} is {self.status[node].name}, not {before.name}"
            )
        self.status[node] = after
