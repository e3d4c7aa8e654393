"""Random graphs, rules and outcomes, made from a string of bytes so that they shrink well."""

from __future__ import annotations

from collections.abc import Sequence

from planwave.executor.scheduling.schedule import Schedule
from planwave.executor.scheduling.types import NodeStatus, SchedulingRules
from planwave.graph.model import Edge, Graph, Node
from planwave.graph.topology import Topology, materialized_ids
from tests.support.engine.reference_scheduler import (
    ExpectedDecisions,
    ReferenceScheduler,
    ScheduleCase,
    selected_nodes,
)
from tests.support.graph.builders import make_edge


class ByteChoices:
    """Choices taken from bytes, the first option for ever once they are used up."""

    def __init__(self, source: bytes) -> None:
        self._remaining = iter(source)

    def below(self, options: int) -> int:
        return next(self._remaining, 0) % options

    def one_in(self, odds: int) -> bool:
        return self.below(odds) == odds - 1

    def pick(self, options: Sequence[int]) -> int:
        return options[self.below(len(options))]

    def some(self, options: Sequence[str]) -> frozenset[str]:
        """A subset; all of them where there is nothing left to choose with."""
        bits = self.below(1 << len(options))
        return frozenset(o for i, o in enumerate(options) if not bits >> i & 1)


SOURCE_HANDLES = ("p", "q")
TARGET_HANDLES = ("x", "y")


def random_graph(choices: ByteChoices) -> tuple[Graph, frozenset[int]]:
    """A random acyclic graph, and the nodes of it whose type only materialises."""
    size = 1 + choices.below(8)
    hidden = list(range(size))
    for i in range(size - 1, 0, -1):  # the position of a node is independent of the order
        j = i - choices.below(i + 1)
        hidden[i], hidden[j] = hidden[j], hidden[i]
    passive = frozenset(n for n in range(size) if choices.one_in(9))
    odds = (6, 2)[choices.below(2)]  # gates are rare in one half of the cases
    likes_links = {n for n in range(size) if n in passive or choices.one_in(odds)}
    edges: list[Edge] = []
    for number in range(choices.below(2 * size + 1) if size > 1 else 0):
        first = choices.below(size - 1)
        second = first + 1 + choices.below(size - 1 - first)
        source, target = hidden[first], hidden[second]
        channel = "link" if source in likes_links or choices.one_in(12) else "flow"
        edges.append(
            make_edge(
                f"n{source}",
                f"n{target}",
                channel=channel,
                source_handle=SOURCE_HANDLES[choices.below(2)],
                target_handle=TARGET_HANDLES[choices.below(2)],
                edge_id=f"e{number}",
            )
        )
    nodes = tuple(Node(f"n{n}", "stone", f"n{n}") for n in range(size))
    return Graph(nodes, tuple(edges)), passive


def random_case(choices: ByteChoices, *, joins: bool = True, entries: bool = True) -> ScheduleCase:
    """A random case: graph, joins, required handles, scheduling, failure policy, entries."""
    graph, passive = random_graph(choices)
    numbers = range(len(graph.nodes))
    barrier, stop = choices.below(2) == 1, choices.one_in(4)
    join_any = frozenset(n for n in numbers if joins and choices.one_in(3))
    required = {n: (choices.some(TARGET_HANDLES)) for n in numbers if choices.one_in(3)}
    disposable = frozenset(n for n in numbers if joins and choices.below(3))
    rest = {"disposable": disposable}
    case = ScheduleCase(graph, passive, join_any, required, barrier, stop, **rest)
    if not entries or not choices.one_in(3):
        return case
    runnable = [n for n in numbers if n not in case.linked]
    doors = [n for n in runnable if choices.one_in(2)]
    chosen = [n for n in doors if choices.one_in(2)]
    others = [n for n in runnable if n not in doors and choices.one_in(5)]
    given = {n: choices.some(SOURCE_HANDLES) for n in [*chosen, *others]}
    case = ScheduleCase(graph, passive, join_any, required, barrier, stop, preset=given, **rest)
    if not chosen:
        return case
    part = frozenset(selected_nodes(case, doors, chosen))
    dropped = frozenset(doors) - frozenset(chosen)
    chosen_part = given, dropped, part
    return ScheduleCase(graph, passive, join_any, required, barrier, stop, *chosen_part, **rest)


def schedule_for(case: ScheduleCase) -> Schedule:
    """The kernel under test for a case."""
    ids = {case.graph.nodes[n].id for n in case.materialize_only}
    topology = Topology(case.graph, materialized_ids(case.graph, ids))
    rules = SchedulingRules(case.join_any, case.required, case.barrier, case.stop, case.disposable)
    return Schedule(topology, rules, preset=case.preset, part=case.selected, dropped=case.unchosen)


class ScheduleComparison:
    """One run of a case with the scheduler and the reference; all decisions are compared."""

    def __init__(self, case: ScheduleCase, choices: ByteChoices, *, plain: bool = False) -> None:
        self.case, self.choices, self.plain = case, choices, plain
        self.kernel, self.reference = schedule_for(case), ReferenceScheduler(case)
        self.running: list[int] = []
        self.waiting: list[int] = []
        self.script: list[tuple[object, ...]] = []
        self.outcomes: dict[int, int] = {}
        self.finished: str | None = None
        self.waits_left = 6

    def run(self) -> ScheduleComparison:
        self._compare(self.kernel.start())
        for _ in range(10 * len(self.case.nodes) + 20):
            if self.finished:
                return self
            for _ in range(1 + self.choices.below(3)):
                if self.running or self.waiting:
                    self._random_fact()
            self._compare(self.kernel.decide())
        raise AssertionError("the run does not end")

    def _compare(self, answer: object) -> None:
        expected = self.reference.decide()
        assert kernel_decisions(answer, expected) == expected
        self.running += [node for node, _ in expected.starts]
        self.finished = expected.finished
        state = self.reference.current_state()
        unneeded = [n for n in sorted(state.unneeded - self.case.linked) if not state.settled(n)]
        assert self.kernel.unneeded() == unneeded
        idle = [n for n in unneeded if n not in self.running]
        assert set(idle) <= set(answer.unneeded) <= set(unneeded)
        for node in answer.unneeded:
            if node in idle or self.choices.one_in(3):  # a slot was not free yet
                self._record("release", node)
                for among in (self.running, self.waiting):
                    among[:] = [each for each in among if each != node]
        if idle:
            self._compare(self.kernel.decide())

    def _record(self, kind: str, *what: object) -> None:
        self.script.append((kind, *what))
        getattr(self.kernel, kind)(*what)
        self.reference.record(kind, *what, *([None] if kind == "failed" and len(what) == 2 else []))

    def _random_fact(self) -> None:
        choices = self.choices
        if not self.plain and choices.one_in(40):
            self._record("cancel", "enough")
            self.waiting.clear()
            return
        node = choices.pick(sorted(self.running + self.waiting))
        if node in self.waiting:
            self.waiting.remove(node)
            if choices.one_in(4):
                self._record("cancelled", node, "dropped")
            else:
                self._record("answered", node)
                self.running.append(node)
            return
        self.running.remove(node)
        match choices.below(8):
            case 5:
                self._record("failed", node, "boom")
                if self.case.stop:
                    self.waiting.clear()
            case 6:
                self._record("failed", node, "boom", choices.some(SOURCE_HANDLES))
            case 7 if not self.plain and self.waits_left:
                self.waits_left -= 1
                self._record("waits", node)
                if self.reference.current_state().ending is None:
                    self.waiting.append(node)
            case 4 if not self.plain:
                self._record("cancelled", node, "dropped")
            case _:
                self._record("completed", node, choices.some(SOURCE_HANDLES))

    def outcomes_with_causes(self) -> dict[int, tuple[str, frozenset[object]]]:
        """What became of every node that is executed, with its causes as sets."""
        final = self.reference.current_state()
        return {
            n: (final.outcome.get(n, ""), frozenset(final.causes.get(n, ())))
            for n in self.case.nodes
            if n not in self.case.linked
        }


def kernel_decisions(answer: object, expected: ExpectedDecisions) -> ExpectedDecisions:
    """The decisions in the form of the reference; an allowed cause counts as all allowed ones."""
    blocked = []
    allowed = dict(expected.blocked)
    for node, cause in answer.blocked:
        mine = frozenset({(cause.node, cause.reason)})
        blocked.append((node, allowed[node] if mine <= allowed.get(node, frozenset()) else mine))
    return ExpectedDecisions(
        list(map(tuple, answer.starts)),
        [(node, cause.reason, cause.handle) for node, cause in answer.skipped],
        blocked,
        [(node, (cause.node, cause.reason)) for node, cause in answer.cancelled],
        set(answer.waves_completed),
        answer.finished,
        answer.paused,
    )


STATUS_NAMES = {
    NodeStatus.COMPLETED: "completed",
    NodeStatus.FAILED: "failed",
    NodeStatus.SKIPPED: "skipped",
    NodeStatus.BLOCKED: "blocked",
    NodeStatus.CANCELLED: "cancelled",
    NodeStatus.NOT_REACHED: "not_reached",
}
