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

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Literal, NamedTuple

from planwave.errors import KernelMisuse
from planwave.graph.topology import Topology


class Status(IntEnum):
    """What became of a node so far; linked nodes keep the fate of their prerequisites here."""

    PENDING = 0
    READY = 1
    RUNNING = 2
    WAITING = 3
    COMPLETED = 4
    FAILED = 5
    SKIPPED = 6
    BLOCKED = 7
    CANCELLED = 8
    NOT_REACHED = 9


class Cause(NamedTuple):
    """Why a node did not run: the node that failed first, a reason, a skipped required handle."""

    node: int | None
    reason: str
    handle: str | None = None


class Start(NamedTuple):
    """A node may start; ``via`` is the winning edge of ``join: any``, else None."""

    node: int
    via: int | None


Unrun = tuple[int, Cause]
Final = Literal["completed", "failed", "cancelled"]


class Decisions(NamedTuple):
    """What follows from the facts since the last time, each list in graph order."""

    starts: Sequence[Start]
    skipped: Sequence[Unrun]
    blocked: Sequence[Unrun]
    cancelled: Sequence[Unrun]
    waves_completed: Sequence[int]
    finished: Final | None
    paused: bool


class Rules(NamedTuple):
    """What the kernel must know of policies and ports, by node number."""

    join_any: frozenset[int] = frozenset()
    required: Mapping[int, frozenset[str]] = {}
    """Target handles that must receive a value, of the nodes that have any."""
    barrier: bool = False
    stop_on_failure: bool = False


_Fate = Literal["delivered", "skipped", "failed"]
_PENDING, _RUNNING, _WAITING = Status.PENDING, Status.RUNNING, Status.WAITING
_COMPLETED = Status.COMPLETED
_NO_INPUT = Cause(None, "no input arrived: every incoming edge was skipped")


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
        self._topology, self._rules, self._linked = topology, rules, topology.linked
        self._handles = [edge.source_handle for edge in topology.graph.edges]
        self.status: list[Status] = [_PENDING] * len(topology)
        self.cause: dict[int, Cause] = {}
        self._open = [len(edges) for edges in topology.incoming]
        self._gates = {n: sum(map(self._from_gate, topology.incoming[n])) for n in rules.join_any}
        self._delivered = [0] * len(topology)
        self._fed: set[int] = set()
        self._winner: dict[int, int] = {}
        self._given, self._dropped = dict(given or {}), frozenset(dropped)
        self._number_waves(part)
        self._ready: list[int] = []
        self._held: dict[int, list[int]] = {}
        self._running = self._waiting = 0
        self._failed = self._cancelled = False
        self._excused: set[int] = set()
        self._skips: list[Unrun] = []
        self._blocks: list[Unrun] = []
        self._drops: list[Unrun] = []
        self._over: list[int] = []

    def _number_waves(self, part: Collection[int] | None) -> None:
        """Number the waves of the part that runs; linked and settled nodes are in none (0)."""
        topology, given = self._topology, self._given
        depth = topology.depths(given, part) if given or part is not None else topology.depth
        self.wave = [d + 1 for d in depth]
        for node, linked in enumerate(self._linked):
            unreached = part is not None and node not in part
            if unreached and not linked:
                self.status[node] = Status.NOT_REACHED
            if linked or unreached or node in given or node in self._dropped:
                self.wave[node] = 0
        self.waves = max(self.wave, default=0)
        self._left = [0] * (self.waves + 1)
        for wave in self.wave:
            self._left[wave] += 1
        self._frontier = 1 if self._rules.barrier else self.waves + 1

    def start(self) -> Decisions:
        """Settle what is given, ready the roots, and say what follows."""
        roots = [n for n, count in enumerate(self._open) if not count]
        for node in sorted(self._given):
            self.status[node] = _COMPLETED
            self._release(node, self._given[node])
        for node, status in enumerate(self.status):
            if status is Status.NOT_REACHED:
                self._spread(node, "skipped")
            elif node in self._dropped and status is _PENDING:
                self._skip(node, Cause(None, "another entry was chosen"))
                self._spread(node, "skipped")
        for node in roots:
            if self.status[node] is _PENDING and not self._linked[node]:
                self._make_ready(node)
        return self.decide()

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
        if self._rules.stop_on_failure:
            self._drop_the_rest(Cause(node, reason))

    def waits(self, node: int) -> None:
        """A running node suspended; only its descendants wait with it."""
        self._change(node, _RUNNING, _WAITING)
        self._running, self._waiting = self._running - 1, self._waiting + 1
        self._excuse(node)

    def answered(self, node: int) -> None:
        """A waiting node runs again."""
        self._change(node, _WAITING, _RUNNING)
        self._running, self._waiting = self._running + 1, self._waiting - 1
        self._excused.clear()
        for other, status in enumerate(self.status) if self._rules.barrier else ():
            if status is _WAITING:
                self._excuse(other)

    def cancelled(self, node: int, reason: str) -> None:
        """A running or waiting node was cancelled; its edges fail with that cause."""
        if self.status[node] is _WAITING:
            self.answered(node)
        self._stop_running(node, Status.CANCELLED)
        self.cause[node] = Cause(node, reason)
        self._refuse(node, self.cause[node])

    def cancel(self, reason: str) -> None:
        """Cancel the run: nothing starts any more; what still runs is reported when it ended."""
        self._cancelled = True
        self._drop_the_rest(Cause(None, reason))

    def decide(self) -> Decisions:
        """Say what follows from the facts since the last call."""
        while self._frontier <= self.waves and not self._left_behind(self._frontier):
            self._frontier += 1
            self._ready.extend(self._held.pop(self._frontier, ()))
        starts = [Start(node, self._winner.get(node)) for node in sorted(self._ready)]
        for start in starts:
            self.status[start.node] = _RUNNING
        self._running += len(starts)
        idle = not self._running
        finished: Final | None = None
        if idle and not self._waiting:
            ended: Final = "failed" if self._failed else "completed"
            finished = "cancelled" if self._cancelled else ended
        decisions = Decisions(
            starts, sorted(self._skips), sorted(self._blocks), sorted(self._drops), self._over,
            finished, idle and self._waiting > 0,
        )  # fmt: skip
        self._ready, self._skips, self._blocks, self._drops, self._over = [], [], [], [], []
        return decisions

    # -- edges -------------------------------------------------------------------------------------

    def _release(self, node: int, handles: Collection[str]) -> None:
        """Settle a node's edges by the handles that carry a value; the hot path."""
        for edge in self._topology.outgoing[node]:
            fate: _Fate = "delivered" if self._handles[edge] in handles else "skipped"
            target = self._settle_edge(edge, fate, None)
            if target is not None:
                self._spread(*target)

    def _refuse(self, node: int, cause: Cause) -> None:
        self._failed = True
        self._spread(node, "failed", cause)

    def _spread(self, node: int, fate: _Fate, cause: Cause | None = None) -> None:
        """Give all edges of a node one fate, and follow what that settles, without recursion."""
        stack: list[tuple[int, _Fate]] = [(node, fate)]
        while stack:
            node, fate = stack.pop()
            for edge in self._topology.outgoing[node]:
                target = self._settle_edge(edge, fate, cause)
                if target is not None:
                    stack.append(target)

    def _settle_edge(self, edge: int, fate: _Fate, cause: Cause | None) -> tuple[int, _Fate] | None:
        """Count one settled edge; give its target and fate where that settled without running."""
        target = self._topology.targets[edge]
        self._open[target] -= 1
        if self.status[target] is not _PENDING:
            return None
        if fate == "delivered":
            self._delivered[target] += 1
            if target in self._rules.required:
                self._fed.add(edge)
        elif fate == "failed" and cause is not None:
            if target not in self._rules.join_any or self._from_gate(edge):
                return self._block(target, cause)
            self.cause.setdefault(target, cause)
        if target in self._rules.join_any and self._wins(edge, target, fate):
            self._make_ready(target)
        elif not self._open[target]:
            return self._resolve(target)
        return None

    def _wins(self, edge: int, target: int, fate: _Fate) -> bool:
        """Say whether ``join: any`` may start: a first delivery, and no gate left to wait for."""
        if self._from_gate(edge):
            self._gates[target] -= 1
        elif fate == "delivered":
            self._winner.setdefault(target, edge)
        return target in self._winner and not self._gates[target]

    def _from_gate(self, edge: int) -> bool:
        return self._linked[self._topology.sources[edge]]

    # -- nodes -------------------------------------------------------------------------------------

    def _resolve(self, node: int) -> tuple[int, _Fate] | None:
        """Settle or ready a node whose edges are all settled and which nothing blocked."""
        if not self._delivered[node]:
            cause = self.cause.get(node)
            return self._block(node, cause) if cause else self._skip(node, _NO_INPUT)
        starved = self._starved(node) if node in self._rules.required else None
        if starved is not None:
            return self._skip(node, Cause(None, "a required input was skipped", starved))
        if self._linked[node]:
            self.status[node] = _COMPLETED
            return node, "delivered"
        self._make_ready(node)
        return None

    def _starved(self, node: int) -> str | None:
        """Give the first required handle that has edges of which none delivered."""
        fed: dict[str, bool] = {}
        for edge in self._topology.incoming[node]:
            handle = self._topology.graph.edges[edge].target_handle
            fed[handle] = fed.get(handle, False) or edge in self._fed
        return next((h for h, f in fed.items() if not f and h in self._rules.required[node]), None)

    def _make_ready(self, node: int) -> None:
        self.status[node] = Status.READY
        wave = self.wave[node]
        (self._ready if wave <= self._frontier else self._held.setdefault(wave, [])).append(node)

    def _block(self, node: int, cause: Cause) -> tuple[int, _Fate]:
        self._settle(node, Status.BLOCKED, self._blocks, cause)
        return node, "failed"

    def _skip(self, node: int, cause: Cause) -> tuple[int, _Fate]:
        self._settle(node, Status.SKIPPED, self._skips, cause)
        return node, "skipped"

    def _drop_the_rest(self, cause: Cause) -> None:
        for node, status in enumerate(self.status):
            if status <= _WAITING and status is not _RUNNING and not self._linked[node]:
                self._waiting -= status is _WAITING
                self._settle(node, Status.CANCELLED, self._drops, cause)
        self._ready.clear()
        self._held.clear()

    def _settle(self, node: int, status: Status, told: list[Unrun], cause: Cause) -> None:
        self.cause[node] = cause
        if not self._linked[node]:
            told.append((node, cause))
        self._leave_wave(node, status)

    def _stop_running(self, node: int, status: Status) -> None:
        if self.status[node] is not _RUNNING:
            self._change(node, _RUNNING, status)
        self._running -= 1
        self._leave_wave(node, status)

    def _leave_wave(self, node: int, status: Status) -> None:
        self.status[node] = status
        wave = self.wave[node]
        self._left[wave] -= 1
        if wave and not self._left[wave]:
            self._over.append(wave)

    def _change(self, node: int, before: Status, after: Status) -> None:
        if self.status[node] is not before:
            raise KernelMisuse(
                f"node {self._topology.ids[node]!r} is {self.status[node].name}, not {before.name}"
            )
        self.status[node] = after

    # -- the barrier -------------------------------------------------------------------------------

    def _left_behind(self, wave: int) -> bool:
        """Say whether a wave has a node that is neither settled, waiting, nor behind a wait."""
        if self._excused:
            unsettled = sum(
                self.wave[n] == wave and self.status[n] <= _WAITING for n in self._excused
            )
            return self._left[wave] > unsettled
        return self._left[wave] > 0

    def _excuse(self, node: int) -> None:
        """Let the barrier open without a waiting node and all that comes after it."""
        stack = [node] if self._rules.barrier else []
        while stack:
            node = stack.pop()
            if node not in self._excused:
                self._excused.add(node)
                stack.extend(self._topology.successors(node))
