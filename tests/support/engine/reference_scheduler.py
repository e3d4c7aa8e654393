"""A slow scheduler that is simple enough to be obviously right, as reference for the fast one.

It stores only the recorded facts. Every decision is computed from all of them
again: after each fact it examines all edges and nodes until nothing changes. It shares no code with
the kernel. Where the table leaves a choice (two failures that reach a node in one fact), it names
every cause that is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from planwave.graph.model import Graph

NOT_CHOSEN = "another entry was chosen"
NO_INPUT = "no input arrived: every incoming edge was skipped"
UNNEEDED = "no longer needed: what it leads to has started without it"
MISSING_REQUIRED_INPUT = "a required input was skipped"

Cause = tuple[int | None, str]
Fact = tuple[object, ...]


@dataclass(frozen=True)
class ScheduleCase:
    """One graph with the rules of one run, all by node number."""

    graph: Graph
    materialize_only: frozenset[int] = frozenset()
    join_any: frozenset[int] = frozenset()
    required: Mapping[int, frozenset[str]] = field(default_factory=dict)
    barrier: bool = False
    stop: bool = False
    preset: Mapping[int, frozenset[str]] = field(default_factory=dict)
    unchosen: frozenset[int] = frozenset()
    selected: frozenset[int] | None = None
    disposable: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        number = {node.id: i for i, node in enumerate(self.graph.nodes)}
        ends = [(number[e.source], number[e.target], e) for e in self.graph.edges]
        flows = {s for s, _, e in ends if e.channel == "flow"}
        links = {s for s, _, e in ends if e.channel == "link"}
        linked = (links - flows) | self.materialize_only
        gates: set[int] = set()
        while True:
            more = {
                t
                for s, t, e in ends
                if t in linked and (s in gates or (s not in linked and e.channel == "flow"))
            }
            if more <= gates:
                break
            gates |= more
        order = {
            i: (s, t)
            for i, (s, t, e) in enumerate(ends)
            if (s not in linked and e.channel == "flow") or s in gates
        }
        object.__setattr__(self, "linked", linked)
        object.__setattr__(self, "gates", gates)
        object.__setattr__(self, "order", order)

    linked: set[int] = field(init=False)
    gates: set[int] = field(init=False)
    order: dict[int, tuple[int, int]] = field(init=False)
    """The edges that order follows, by number, as (source, target)."""

    @property
    def nodes(self) -> range:
        return range(len(self.graph.nodes))

    def into(self, node: int) -> list[int]:
        return [e for e, (_, target) in self.order.items() if target == node]

    def runs(self, node: int) -> bool:
        """Whether a node is executed at all, if its inputs let it."""
        outside = node in self.preset or node in self.unchosen
        inside = self.selected is None or node in self.selected
        return node not in self.linked and not outside and inside

    def depth(self, node: int) -> int:
        """The longest path in the part that runs; linked and unchosen nodes add nothing."""
        found = [0]
        for edge in self.into(node):
            source = self.order[edge][0]
            inside = self.selected is None or source in self.selected
            if source in self.unchosen or not inside:
                continue
            found.append(self.depth(source) + (source not in self.linked))
        return max(found)

    def wave(self, node: int) -> int:
        is_preset = node in self.preset and node not in self.linked
        return self.depth(node) + 1 if self.runs(node) or is_preset else 0

    def downstream(self, node: int) -> set[int]:
        found = {node}
        while more := {t for s, t in self.order.values() if s in found} - found:
            found |= more
        return found


def selected_nodes(
    case: ScheduleCase, entries: Collection[int], chosen: Collection[int]
) -> set[int]:
    """What runs when some entries are chosen, straight from the sentence about entries.

    All that a chosen entry reaches, and what those need: their ancestors, though not beyond nodes
    that will not run (other entries, settled nodes).
    """
    others = set(entries) - set(chosen)
    reached = set[int]().union(*(case.downstream(node) for node in chosen))
    needed = set(reached)
    while True:
        more = {
            source
            for source, target in case.order.values()
            if target in needed and target not in others and target not in case.preset
        }
        if more <= needed:
            return needed | others
        needed |= more


@dataclass(frozen=True)
class ExpectedDecisions:
    """What follows from the facts; causes as the set of those allowed."""

    starts: list[tuple[int, int | None]]
    skipped: list[tuple[int, str, str | None]]
    blocked: list[tuple[int, frozenset[Cause]]]
    cancelled: list[tuple[int, Cause]]
    waves_completed: set[int]
    finished: str | None
    paused: bool


class ReferenceScheduler:
    """The semantics table, by brute force."""

    def __init__(self, case: ScheduleCase) -> None:
        self.case = case
        self.history: list[Fact] = []

    def record(self, *fact: object) -> None:
        self.history.append(fact)

    def decide(self) -> ExpectedDecisions:
        self.history.append(("decide",))
        *_, decisions = ReferenceReplay(self.case).run(self.history)
        return decisions

    def current_state(self) -> ReferenceReplay:
        replay = ReferenceReplay(self.case)
        for _ in replay.run(self.history):
            pass
        return replay


class ReferenceReplay:
    """One pass over a history; ``fate`` is what became of each node so far."""

    def __init__(self, case: ScheduleCase) -> None:
        self.case = case
        self.outcome: dict[int, str] = {}
        self.handles: dict[int, frozenset[str]] = {}
        self.causes: dict[int, frozenset[Cause]] = {}
        self.skip_reasons: dict[int, tuple[str, str | None]] = {}
        self.winner: dict[int, int] = {}
        self.first_failures: dict[int, frozenset[Cause]] = {}
        self.edges: dict[int, str] = {}
        self.ready: set[int] = set()
        self.started: list[int] = []
        self.open = 1
        self.ending: Cause | None = None
        self.was_cancelled = self.has_failed = False
        self.unreported: list[int] = []
        self.waves_over: set[int] = set()
        self.ever_ready: set[int] = set()
        self.unneeded: set[int] = set()
        self.released: set[int] = set()

    def run(self, history: Iterable[Fact]) -> Iterator[ExpectedDecisions]:
        case = self.case
        for node in case.nodes:
            inside = case.selected is None or node in case.selected or node in case.linked
            if not inside and node not in case.preset:
                self.outcome[node] = "not_reached"
        for node in sorted(case.preset):
            self.outcome[node], self.handles[node] = "completed", case.preset[node]
            self.settle_until_stable()
        for node in sorted(case.unchosen - set(case.preset)):
            self.settle_without_run(node, "skipped", why=(NOT_CHOSEN, None))
        self.settle_until_stable()
        self.find_unneeded()
        for fact in history:
            if fact[0] == "decide":
                yield self.decided()
            else:
                self.apply(*fact)
                self.settle_until_stable()
                self.find_unneeded()
                if fact[0] == "failed" and fact[3] is None and case.stop:
                    self.cancel_rest((fact[1], fact[2]))
                if fact[0] == "cancel":
                    self.cancel_rest((None, fact[1]))

    # -- facts

    def apply(self, kind: object, node: object = None, what: object = None, more: object = None):
        match kind:
            case "completed":
                self.outcome[node], self.handles[node] = "completed", frozenset(what)
            case "failed" if more is not None:
                self.outcome[node], self.handles[node] = "completed", frozenset(more)
            case "failed":
                self.outcome[node], self.causes[node] = "failed", frozenset({(node, what)})
                self.has_failed = True
            case "waits" if self.ending is not None:
                self.settle_without_run(node, "cancelled", causes=frozenset({self.ending}))
            case "waits":
                self.outcome[node] = "waiting"
            case "answered":
                self.outcome[node] = "running"
            case "release" | "cancelled":
                self.cancel_one(node, what)
            case "cancel":
                self.was_cancelled = True
            case _:
                raise AssertionError(kind)

    def cancel_one(self, node, what: object) -> None:
        if node in self.unneeded:
            self.released.add(node)
        if what is None:
            assert node in self.released
            self.ready.discard(node)
            self.settle_without_run(node, "cancelled", causes=frozenset({(None, UNNEEDED)}))
        else:
            self.outcome[node], self.causes[node] = "cancelled", frozenset({(node, what)})
            self.has_failed |= node not in self.released

    def cancel_rest(self, cause: Cause) -> None:
        if self.ending is None:
            self.ending = cause
            for node in self.case.nodes:
                if self.case.runs(node) and self.outcome.get(node) in (None, "waiting"):
                    self.settle_without_run(node, "cancelled", causes=frozenset({cause}))
            self.ready.clear()

    def settle_without_run(self, node, fate, *, causes=frozenset(), why=("", None)) -> None:
        self.outcome[node], self.causes[node], self.skip_reasons[node] = fate, causes, why
        self.unreported.append(node)

    # -- edges and nodes, until nothing changes

    def settle_until_stable(self) -> None:
        before = dict(self.edges)
        while True:
            now = {e: f for e in self.case.order if (f := self.edge_outcome(e)) is not None}
            self.edges = now
            fresh = [e for e in sorted(now) if e not in before]
            for edge in fresh:
                self.record_edge(edge, before)
            if not any([self.decide_node(node, fresh) for node in self.case.nodes]):
                return

    def edge_outcome(self, edge: int) -> str | None:
        source, _ = self.case.order[edge]
        fate = self.outcome.get(source)
        if fate == "completed":
            gate = source in self.case.linked
            carries = gate or self.case.graph.edges[edge].source_handle in self.handles[source]
            return "delivered" if carries else "skipped"
        if source in self.released:
            return None  # nothing waits for it
        dropped = fate == "cancelled" and self.ending is not None and source in self.skip_reasons
        if dropped:
            return None  # all remaining nodes were cancelled with it
        return {
            "skipped": "skipped", "not_reached": "skipped",
            "failed": "failed", "blocked": "failed", "cancelled": "failed",
        }.get(fate or "")  # fmt: skip

    def record_edge(self, edge: int, before: Mapping[int, str]) -> None:
        """Remember what came first, for nodes that start at the first delivery."""
        source, target = self.case.order[edge]
        if source in self.case.linked:
            return
        if self.edges[edge] == "delivered":
            self.winner.setdefault(target, edge)
        earlier = [e for e in self.value_edges(target) if before.get(e) == "failed"]
        if self.edges[edge] == "failed" and not earlier:
            known = self.first_failures.get(target, frozenset())
            self.first_failures[target] = known | self.causes[source]

    def value_edges(self, node: int) -> list[int]:
        """The edges that bring values: not those from gates."""
        return [e for e in self.case.into(node) if self.case.order[e][0] not in self.case.linked]

    def decide_node(self, node: int, fresh: list[int]) -> bool:
        case = self.case
        into = case.into(node)
        undecided = node not in self.outcome and node not in self.ready
        outside = node in case.preset or node in case.unchosen or (node in case.linked and not into)
        if not undecided or outside or self.ending:
            return False
        own = self.value_edges(node)
        gates = [e for e in into if e not in own]
        any_join = node in case.join_any
        failed = [
            e for e in into
            if self.edges.get(e) == "failed" and (not any_join or e in gates)
        ]  # fmt: skip
        all_settled = all(e in self.edges for e in into)
        gates_settled = all(e in self.edges for e in gates)
        delivered = [e for e in own or gates if self.edges.get(e) == "delivered"]
        if failed:
            causes = frozenset[Cause]().union(
                *(self.causes[case.order[e][0]] for e in failed if e in fresh)
            )
            if any_join:
                causes |= self.first_failures.get(node, frozenset())
            self.settle_without_run(node, "blocked", causes=causes)
        elif any_join and own and delivered and gates_settled:
            self.mark_ready(node)
        elif not all_settled:
            return False
        elif not into:
            self.mark_ready(node)
        elif not delivered and any_join and node in self.first_failures:
            self.settle_without_run(node, "blocked", causes=self.first_failures[node])
        elif not delivered:
            self.settle_without_run(node, "skipped", why=(NO_INPUT, None))
        elif (starved := self.missing_required_input(node, own)) is not None:
            self.settle_without_run(node, "skipped", why=(MISSING_REQUIRED_INPUT, starved))
        else:
            self.mark_ready(node)
        return True

    def missing_required_input(self, node: int, own: list[int]) -> str | None:
        edges = self.case.graph.edges
        for edge in own:
            handle = edges[edge].target_handle
            same = [e for e in own if edges[e].target_handle == handle]
            needed = handle in self.case.required.get(node, ())
            if needed and all(self.edges[e] == "skipped" for e in same):
                return handle
        return None

    def mark_ready(self, node: int) -> None:
        if node in self.case.linked:
            self.outcome[node], self.handles[node] = "completed", frozenset()
        else:
            self.ready.add(node)
            self.ever_ready.add(node)

    def find_unneeded(self) -> None:
        """Add the unsettled nodes all of whose edges lead to what began without them, or is unneeded."""
        case = self.case
        while True:
            gone = self.unneeded | (self.ever_ready & case.join_any)
            more = set[int]()
            for node in sorted(case.disposable - self.unneeded):
                targets = {target for source, target in case.order.values() if source == node}
                if targets and targets <= gone and not self.settled(node):
                    more.add(node)
            if not more:
                return
            self.unneeded |= more

    # -- decisions

    def settled(self, node: int) -> bool:
        return self.outcome.get(node) not in (None, "running", "waiting")

    def wave_is_open(self, wave: int) -> bool:
        excused = set[int]()
        for node in self.case.nodes:
            if self.outcome.get(node) == "waiting":
                excused |= self.case.downstream(node)
        members = [n for n in self.case.nodes if self.case.wave(n) == wave]
        return all(self.settled(n) or n in excused for n in members)

    def decided(self) -> ExpectedDecisions:
        case = self.case
        total = max((case.wave(n) for n in case.nodes), default=0)
        while self.open <= total and self.wave_is_open(self.open):
            self.open += 1
        starting = sorted(n for n in self.ready if not case.barrier or case.wave(n) <= self.open)
        for node in starting:
            self.ready.discard(node)
            self.outcome[node] = "running"
            self.started.append(node)
        over = {
            wave
            for wave in range(1, total + 1)
            if (members := [n for n in case.nodes if case.wave(n) == wave])
            and all(map(self.settled, members))
            and not case.preset.keys() >= set(members)
        }
        fresh_over, self.waves_over = over - self.waves_over, over
        busy = [n for n in case.nodes if self.outcome.get(n) == "running"]
        waiting = [n for n in case.nodes if self.outcome.get(n) == "waiting"]
        final = "failed" if self.has_failed else "completed"
        final = "cancelled" if self.was_cancelled else final
        settled, self.unreported = sorted(n for n in self.unreported if n not in case.linked), []
        return ExpectedDecisions(
            [(n, self.winner.get(n) if n in case.join_any else None) for n in starting],
            [(n, *self.skip_reasons[n]) for n in settled if self.outcome[n] == "skipped"],
            [(n, self.causes[n]) for n in settled if self.outcome[n] == "blocked"],
            [(n, next(iter(self.causes[n]))) for n in settled if self.outcome[n] == "cancelled"],
            fresh_over,
            final if not busy and not waiting else None,
            not busy and bool(waiting),
        )
