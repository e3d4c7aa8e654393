"""The scheduler against a slow reference: random graphs, outcomes, orders and batches."""

from __future__ import annotations

import random
from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planwave.errors import InvalidTransition
from planwave.executor.scheduling.schedule import Schedule
from planwave.executor.scheduling.types import Cause, Decisions, NodeStatus, SchedulingRules
from planwave.graph.model import Graph, Node
from planwave.graph.topology import Topology
from tests.support.cpu_time import cpu_within
from tests.support.engine.random_schedules import (
    SOURCE_HANDLES,
    STATUS_NAMES,
    ByteChoices,
    ScheduleComparison,
    random_case,
    schedule_for,
)
from tests.support.engine.reference_scheduler import ScheduleCase
from tests.support.examples import examples
from tests.support.graph.builders import make_edge
from tests.support.graph.fake_node_types import parse_graph

chance = st.binary(min_size=80, max_size=160)
OUT = ("output",)
PLAIN = SchedulingRules()


def kernel(graph: Graph, rules: SchedulingRules = PLAIN, **options: object) -> Schedule:
    return Schedule(Topology(graph), rules, **options)


def started(decisions: Decisions) -> list[int]:
    return [node for node, _ in decisions.starts]


# -- the oracle's judgement


@given(chance)
@settings(max_examples=examples(600), deadline=None)
def test_every_decision_equals_that_of_the_reference_scheduler(source: bytes) -> None:
    choices = ByteChoices(source)
    play = ScheduleComparison(random_case(choices), choices).run()
    final = play.reference.current_state()
    for node, status in enumerate(play.kernel.status):
        if node not in play.case.linked:
            assert STATUS_NAMES[status] == fate_in_words(final.outcome[node], node, play)


def fate_in_words(fate: str, node: int, play: ScheduleComparison) -> str:
    """The reference calls a handled failure completed: its edges behave the same."""
    handled = [f for f in play.script if f[:2] == ("failed", node) and len(f) == 4]
    return "failed" if handled else fate


@given(chance)
@settings(max_examples=examples(150), deadline=None)
def test_a_node_starts_at_most_once_and_only_after_its_sources(source: bytes) -> None:
    choices = ByteChoices(source)
    case = random_case(choices, joins=False)
    play = ScheduleComparison(case, choices).run()
    begun = play.reference.current_state().started
    assert len(begun) == len(set(begun))
    ended = {
        fact[1]: at for at, fact in enumerate(play.reference.history) if fact[0] == "completed"
    }
    turns = [at for at, fact in enumerate(play.reference.history) if fact[0] == "decide"]
    again = schedule_for(case)
    starts = {node: 0 for node in started(again.start())}
    for turn, at in enumerate(turns[1:], 1):
        for fact in play.reference.history[turns[turn - 1] + 1 : at]:
            tell(again, fact)
        starts |= {node: at for node in started(again.decide())}
    for source_node, target in case.order.values():
        if target in starts and source_node in starts and source_node in ended:
            assert ended[source_node] < starts[target]


def tell(schedule: Schedule, fact: tuple[object, ...]) -> None:
    kind, *what = fact
    getattr(schedule, kind)(*what)


@given(chance)
@settings(max_examples=examples(100), deadline=None)
def test_the_same_facts_in_the_same_order_give_the_same_decisions(source: bytes) -> None:
    choices = ByteChoices(source)
    case = random_case(choices)
    play = ScheduleComparison(case, choices).run()
    assert replayed(case, play) == replayed(case, play)


def replayed(case: ScheduleCase, play: ScheduleComparison) -> list[Decisions]:
    schedule = schedule_for(case)
    decisions = [schedule.start()]
    for fact in play.reference.history[1:]:
        if fact[0] == "decide":
            decisions.append(schedule.decide())
        else:
            tell(schedule, fact)
    return decisions


@given(chance, st.randoms(use_true_random=False))
@settings(max_examples=examples(150), deadline=None)
def test_without_join_any_neither_order_nor_scheduling_changes_the_outcome(
    source: bytes, chance_of_order: random.Random
) -> None:
    choices = ByteChoices(source)
    drawn = random_case(choices, joins=False)
    outcome = {n: (choices.below(5), choices.some(SOURCE_HANDLES)) for n in drawn.nodes}
    ends = set()
    for barrier in (False, True, False, True):
        case = ScheduleCase(
            drawn.graph, drawn.materialize_only, required=drawn.required, barrier=barrier,
            preset=drawn.preset, unchosen=drawn.unchosen, selected=drawn.selected,
        )  # fmt: skip
        ends.add(the_end(case, outcome, chance_of_order))
    assert len(ends) == 1


def the_end(
    case: ScheduleCase, outcome: dict[int, tuple[int, frozenset[str]]], order: random.Random
):
    """Run a case with fixed outcomes in a random order; return statuses, causes and final status.

    The order decides which failure blocked a node first; it is always one of its failed ancestors.
    """
    schedule = schedule_for(case)
    decisions = schedule.start()
    running = started(decisions)
    while running:
        order.shuffle(running)
        for _ in range(order.randint(1, len(running))):
            node = running.pop()
            kind, handles = outcome[node]
            if kind == 4:
                schedule.failed(node, "boom")
            elif kind == 3:
                schedule.failed(node, "boom", handles)
            else:
                schedule.completed(node, handles)
        decisions = schedule.decide()
        running += started(decisions)
    status = tuple(s for n, s in enumerate(schedule.status) if n not in case.linked)
    failed = {n for n, s in enumerate(schedule.status) if s is NodeStatus.FAILED}
    why = []
    for node, cause in sorted(schedule.cause.items()):
        if schedule.status[node] is NodeStatus.BLOCKED:
            assert cause.node in failed
            assert node in case.downstream(cause.node)
            why.append((node, "blocked"))
        else:
            why.append((node, cause))
    return status, tuple(why), decisions.finished


# -- cost


def big(*pairs: tuple[int, int], size: int) -> Graph:
    edges = tuple(make_edge(f"n{a}", f"n{b}") for a, b in pairs)
    return Graph(tuple(Node(f"n{n}", "stone", "") for n in range(size)), edges)


many_nodes = pytest.mark.parametrize(
    "size", [10_000, pytest.param(100_000, marks=pytest.mark.slow)]
)


@many_nodes
@pytest.mark.parametrize("handles", [OUT, ()])
def test_a_long_chain_runs_without_recursion(handles: Collection[str], size: int) -> None:
    schedule = kernel(big(*((n, n + 1) for n in range(size - 1)), size=size))
    decisions, starts, skips = schedule.start(), 0, 0
    while not decisions.finished:
        starts += 1
        schedule.completed(decisions.starts[0][0], handles)
        decisions = schedule.decide()
        skips += len(decisions.skipped)
    assert (starts, skips) == ((size, 0) if handles else (1, size - 1))


@many_nodes
def test_a_failure_above_many_nodes_blocks_them_all(size: int) -> None:
    fan = kernel(big(*((0, n) for n in range(1, size)), size=size))
    fan.start()
    fan.failed(0, "boom")
    decisions = fan.decide()
    assert len(decisions.blocked) == size - 1
    assert decisions.finished == "failed"


@many_nodes
def test_a_wide_fan_out_starts_in_graph_order(size: int) -> None:
    fan = kernel(big(*((0, n) for n in range(1, size)), size=size), SchedulingRules(barrier=True))
    fan.start()
    fan.completed(0, OUT)
    assert started(fan.decide()) == list(range(1, size))
    for node in range(1, size):
        fan.completed(node, OUT)
    assert fan.decide().finished == "completed"


WIDE = 20_000
"""Work that grows with the square of this many nodes takes far longer than five seconds."""


def test_many_failures_in_a_stopped_run_take_linear_time() -> None:
    schedule = kernel(big(size=WIDE), SchedulingRules(stop_on_failure=True))
    with cpu_within(5):
        for node in started(schedule.start()):
            schedule.failed(node, "boom")
        assert schedule.decide().finished == "failed"


def test_a_join_of_many_edges_takes_linear_time() -> None:
    schedule = kernel(big(*((n, WIDE) for n in range(WIDE)), size=WIDE + 1))
    starts: list[int] = []
    with cpu_within(5):
        for node in started(schedule.start()):
            schedule.completed(node, OUT)
            starts += started(schedule.decide())
    assert starts == [WIDE]


# -- misuse


def test_a_graph_with_a_cycle_is_rejected() -> None:
    with pytest.raises(InvalidTransition, match="cycle"):
        kernel(parse_graph("a b", "a>b", "b>a"))


def test_impossible_outcomes_are_rejected_with_node_and_status() -> None:
    schedule = kernel(parse_graph("a b", "a>b"))
    schedule.start()
    with pytest.raises(InvalidTransition, match="node 'b' is PENDING, not RUNNING"):
        schedule.completed(1, OUT)
    with pytest.raises(InvalidTransition, match="node 'a' is RUNNING, not WAITING"):
        schedule.answered(0)
    schedule.completed(0, OUT)
    for late in (lambda: schedule.failed(0, "x"), lambda: schedule.waits(0)):
        with pytest.raises(InvalidTransition, match="node 'a' is COMPLETED"):
            late()


# -- corners that once went wrong


def test_a_node_that_waits_after_the_run_was_stopped_is_cancelled_with_the_cause() -> None:
    schedule = kernel(parse_graph("a b"), SchedulingRules(stop_on_failure=True))
    schedule.start()
    schedule.failed(0, "boom")
    assert schedule.decide().finished is None
    schedule.waits(1)
    decisions = schedule.decide()
    assert decisions.cancelled == [(1, Cause(0, "boom"))]
    assert decisions.finished == "failed"


def test_a_settled_node_fed_by_another_settled_node_does_not_start() -> None:
    schedule = kernel(parse_graph("a b c", "a>b", "b>c"), preset={0: OUT, 1: OUT})
    assert schedule.start().starts == [(2, None)]


def test_an_entry_that_was_not_chosen_is_skipped_even_if_a_settled_node_feeds_it() -> None:
    schedule = kernel(parse_graph("a b c", "a>b", "b>c"), preset={0: OUT}, dropped=[1])
    decisions = schedule.start()
    assert started(decisions) == []
    assert [node for node, _ in decisions.skipped] == [1, 2]


def test_an_unchosen_entry_is_in_no_wave_and_a_preset_one_is_in_the_first() -> None:
    schedule = kernel(parse_graph("a b c", "a>c", "b>c"), preset={0: OUT}, dropped=[1])
    assert schedule.waves.number == [1, 0, 2]
    assert schedule.waves.total == 2


def test_a_gate_neither_fills_nor_skips_a_required_input() -> None:
    graph = parse_graph("a b g u", "a.x>g", "g~u.need", "b>u.other")
    schedule = kernel(graph, SchedulingRules(required={3: frozenset({"need"})}))
    schedule.start()
    schedule.completed(0, ())
    schedule.completed(1, OUT)
    assert started(schedule.decide()) == [3]
    graph = parse_graph("a b g u", "a>g", "g~u.need", "b.x>u.need", "b>u.other")
    schedule = kernel(graph, SchedulingRules(required={3: frozenset({"need"})}))
    schedule.start()
    schedule.completed(0, OUT)
    schedule.completed(1, OUT)
    assert [cause.handle for _, cause in schedule.decide().skipped] == ["need"]


def test_descendants_of_a_settled_node_still_depend_on_a_waiting_ancestor() -> None:
    graph = parse_graph(
        "w a c x j y k d z", "w>j", "a>j", "j>k", "c>x", "x>d", "d>z", "k>y"
    )  # fmt: skip
    w, a, c, x, j, _, k, d, z = range(9)
    schedule = kernel(graph, SchedulingRules(join_any=frozenset({j}), barrier=True))
    assert started(schedule.start()) == [w, a, c]
    schedule.waits(w)
    schedule.completed(a, OUT)
    schedule.completed(c, OUT)
    assert started(schedule.decide()) == [x, j]
    schedule.completed(j, OUT)
    schedule.answered(w)
    schedule.waits(w)
    schedule.completed(x, OUT)
    assert started(schedule.decide()) == [k, d]
    schedule.completed(d, OUT)
    assert started(schedule.decide()) == [z]


def test_a_settled_node_does_not_open_the_barrier_for_its_wave() -> None:
    graph = parse_graph("w a c x j d", "w>j", "a>j", "c>x", "j>d")
    w, a, c, x, j, d = range(6)
    schedule = kernel(graph, SchedulingRules(join_any=frozenset({j}), barrier=True))
    schedule.start()
    schedule.waits(w)
    schedule.completed(a, OUT)
    schedule.completed(c, OUT)
    assert started(schedule.decide()) == [x, j]
    schedule.completed(j, OUT)
    assert started(schedule.decide()) == []
    schedule.completed(x, OUT)
    assert started(schedule.decide()) == [d]


def test_an_answer_leaves_the_other_waiting_nodes_outside_the_barrier() -> None:
    graph = parse_graph("v w a j x", "v>j", "w>j", "a>x")
    v, w, a, _, x = range(5)
    schedule = kernel(graph, SchedulingRules(barrier=True))
    schedule.start()
    schedule.waits(v)
    schedule.waits(w)
    schedule.answered(v)
    schedule.completed(v, OUT)
    schedule.completed(a, OUT)
    assert started(schedule.decide()) == [x]


def test_one_delivery_fills_a_required_input_with_several_edges() -> None:
    graph = parse_graph("a b", "a.yes>b.need", "a.no>b.need")
    schedule = kernel(graph, SchedulingRules(required={1: frozenset({"need"})}))
    schedule.start()
    schedule.completed(0, ("yes",))
    assert started(schedule.decide()) == [1]


def test_a_join_that_begins_in_the_turn_in_which_it_became_unneeded_is_closed_once() -> None:
    graph = parse_graph("a b q j k", "a>j", "b>j", "j>k", "q>k")
    a, b, q, j, k = range(5)
    rules = SchedulingRules(join_any=frozenset({j, k}), disposable=frozenset({a, b, j}))
    schedule = kernel(graph, rules)
    schedule.start()
    schedule.completed(q, OUT)
    schedule.completed(a, OUT)
    decisions = schedule.decide()
    assert started(decisions) == [j, k]
    assert decisions.unneeded == [b, j]
