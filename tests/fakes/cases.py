"""Random graphs, rules and outcomes, made from a string of bytes so that they shrink well."""

from __future__ import annotations

from collections.abc import Sequence

from planwave.executor.decisions import Rules, Status
from planwave.executor.schedule import Schedule
from planwave.graph.model import Edge, Graph, Node
from planwave.graph.topology import Topology, linked_ids
from tests.fakes.oracle import Case, Oracle, Told, part_of
from tests.fakes.wires import make_edge


class Choices:
    """Choices taken from bytes, the first option for ever once they are used up."""

    def __init__(self, source: bytes) -> None:
        self._left = iter(source)

    def of(self, options: int) -> int:
        return next(self._left, 0) % options

    def one_in(self, odds: int) -> bool:
        return self.of(odds) == odds - 1

    def pick(self, options: Sequence[int]) -> int:
        return options[self.of(len(options))]

    def some(self, options: Sequence[str]) -> frozenset[str]:
        """A subset; all of them where there is nothing left to choose with."""
        bits = self.of(1 << len(options))
        return frozenset(o for i, o in enumerate(options) if not bits >> i & 1)


SENDS = ("p", "q")
TAKES = ("x", "y")


def graph_from(choices: Choices) -> tuple[Graph, frozenset[int]]:
    """A random acyclic graph, and the nodes of it whose type only materialises."""
    size = 1 + choices.of(8)
    hidden = list(range(size))
    for i in range(size - 1, 0, -1):  # where a node stands says nothing about the order
        j = i - choices.of(i + 1)
        hidden[i], hidden[j] = hidden[j], hidden[i]
    passive = frozenset(n for n in range(size) if choices.one_in(9))
    odds = (6, 2)[choices.of(2)]  # gates are rare unless asked for
    likes_links = {n for n in range(size) if n in passive or choices.one_in(odds)}
    edges: list[Edge] = []
    for number in range(choices.of(2 * size + 1) if size > 1 else 0):
        first = choices.of(size - 1)
        second = first + 1 + choices.of(size - 1 - first)
        source, target = hidden[first], hidden[second]
        channel = "link" if source in likes_links or choices.one_in(12) else "flow"
        edges.append(
            make_edge(
                f"n{source}",
                f"n{target}",
                channel=channel,
                source_handle=SENDS[choices.of(2)],
                target_handle=TAKES[choices.of(2)],
                edge_id=f"e{number}",
            )
        )
    nodes = tuple(Node(f"n{n}", "stone", f"n{n}") for n in range(size))
    return Graph(nodes, tuple(edges)), passive


def case_from(choices: Choices, *, joins: bool = True, entries: bool = True) -> Case:
    """A random case: graph, joins, required handles, scheduling, failure policy, entries."""
    graph, passive = graph_from(choices)
    numbers = range(len(graph.nodes))
    barrier, stop = choices.of(2) == 1, choices.one_in(4)
    join_any = frozenset(n for n in numbers if joins and choices.one_in(3))
    required = {n: (choices.some(TAKES)) for n in numbers if choices.one_in(3)}
    case = Case(graph, passive, join_any, required, barrier, stop)
    if not entries or not choices.one_in(3):
        return case
    runnable = [n for n in numbers if n not in case.linked]
    doors = [n for n in runnable if choices.one_in(2)]
    chosen = [n for n in doors if choices.one_in(2)]
    others = [n for n in runnable if n not in doors and choices.one_in(5)]
    given = {n: choices.some(SENDS) for n in [*chosen, *others]}
    case = Case(graph, passive, join_any, required, barrier, stop, given=given)
    if not chosen:
        return case
    part = frozenset(part_of(case, doors, chosen))
    dropped = frozenset(doors) - frozenset(chosen)
    return Case(graph, passive, join_any, required, barrier, stop, given, dropped, part)


def schedule_of(case: Case) -> Schedule:
    """The kernel under test for a case."""
    ids = {case.graph.nodes[n].id for n in case.materialize_only}
    topology = Topology(case.graph, linked_ids(case.graph, ids))
    rules = Rules(case.join_any, case.required, case.barrier, case.stop)
    return Schedule(topology, rules, given=case.given, part=case.part, dropped=case.dropped)


class Play:
    """One run of a case, told to the kernel and the oracle alike; every answer is compared."""

    def __init__(self, case: Case, choices: Choices, *, plain: bool = False) -> None:
        self.case, self.choices, self.plain = case, choices, plain
        self.kernel, self.oracle = schedule_of(case), Oracle(case)
        self.running: list[int] = []
        self.waiting: list[int] = []
        self.script: list[tuple[object, ...]] = []
        self.outcomes: dict[int, int] = {}
        self.finished: str | None = None
        self.waits_left = 6

    def to_the_end(self) -> Play:
        self._hear(self.kernel.start())
        for _ in range(10 * len(self.case.nodes) + 20):
            if self.finished:
                return self
            for _ in range(1 + self.choices.of(3)):
                if self.running or self.waiting:
                    self._something_happens()
            self._hear(self.kernel.decide())
        raise AssertionError("the run does not end")

    def _hear(self, answer: object) -> None:
        told = self.oracle.decide()
        assert said_by_kernel(answer, told) == told
        self.running += [node for node, _ in told.starts]
        self.finished = told.finished

    def _tell(self, kind: str, *what: object) -> None:
        self.script.append((kind, *what))
        getattr(self.kernel, kind)(*what)
        self.oracle.fact(kind, *what, *([None] if kind == "failed" and len(what) == 2 else []))

    def _something_happens(self) -> None:
        choices = self.choices
        if not self.plain and choices.one_in(40):
            self._tell("cancel", "enough")
            self.waiting.clear()
            return
        node = choices.pick(sorted(self.running + self.waiting))
        if node in self.waiting:
            self.waiting.remove(node)
            if choices.one_in(4):
                self._tell("cancelled", node, "dropped")
            else:
                self._tell("answered", node)
                self.running.append(node)
            return
        self.running.remove(node)
        match choices.of(8):
            case 5:
                self._tell("failed", node, "boom")
                if self.case.stop:
                    self.waiting.clear()
            case 6:
                self._tell("failed", node, "boom", choices.some(SENDS))
            case 7 if not self.plain and self.waits_left:
                self.waits_left -= 1
                self._tell("waits", node)
                if self.oracle.now().ending is None:
                    self.waiting.append(node)
            case 4 if not self.plain:
                self._tell("cancelled", node, "dropped")
            case _:
                self._tell("completed", node, choices.some(SENDS))

    def fates(self) -> dict[int, tuple[str, frozenset[object]]]:
        """What became of every node that is executed, with its causes as sets."""
        final = self.oracle.now()
        return {
            n: (final.fate.get(n, ""), frozenset(final.causes.get(n, ())))
            for n in self.case.nodes
            if n not in self.case.linked
        }


def said_by_kernel(answer: object, told: Told) -> Told:
    """The kernel's decisions in the oracle's words; a cause that is allowed counts as all."""
    blocked = []
    allowed = dict(told.blocked)
    for node, cause in answer.blocked:
        mine = frozenset({(cause.node, cause.reason)})
        blocked.append((node, allowed[node] if mine <= allowed.get(node, frozenset()) else mine))
    return Told(
        list(map(tuple, answer.starts)),
        [(node, cause.reason, cause.handle) for node, cause in answer.skipped],
        blocked,
        [(node, (cause.node, cause.reason)) for node, cause in answer.cancelled],
        set(answer.waves_completed),
        answer.finished,
        answer.paused,
    )


STATUS = {
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
    Status.BLOCKED: "blocked",
    Status.CANCELLED: "cancelled",
    Status.NOT_REACHED: "not_reached",
}
