"""What an execution is given from outside: its form, and the part of a program it chooses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import InputError
from planwave.executor.inputs import InputPlan, plan_inputs, validate_inputs, wave_count
from planwave.executor.node_api.nested import create_graph_run
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.state import Attempt
from planwave.graph.model import Graph
from tests.support.engine.generic_nodes import GenericNodeTypes
from tests.support.engine.random_schedules import ByteChoices, random_graph
from tests.support.engine.reference_scheduler import ScheduleCase, selected_nodes
from tests.support.graph.fake_node_types import NODE_TYPES, FakeNodeTypes, parse_graph


class Typed(FakeNodeTypes):
    """Types with named outputs, and nothing behind them."""

    def implementation(self, node_type: str) -> Any:
        return NODE_TYPES[node_type]


def program_of(graph: Graph) -> Program:
    return Program(graph, GenericNodeTypes({}))


def typed(nodes: str, *edges: str) -> Program:
    return Program(parse_graph(nodes, *edges), Typed())


def chosen(program: Program, *names: str, **given: Any) -> tuple[set[str], set[str], set[str]]:
    """Return preset, dropped and selected ids for inputs that name these nodes."""
    entry = plan_inputs(program, {name: {"output": 1} for name in names} | given)
    ids = program.topology.ids

    def named(numbers: Any) -> set[str]:
        return {ids[n] for n in numbers}

    return named(entry.preset), named(entry.dropped), named(entry.part or range(len(ids)))


def test_wave_count_is_that_of_the_part_that_runs() -> None:
    program = program_of(parse_graph("a b c d", "a>b", "b>c", "a>d"))
    counts = [
        wave_count(program, plan_inputs(program, inputs, options))
        for inputs, options in [
            ({}, RunOptions()),
            ({"a": {"output": 1}}, RunOptions()),
            ({}, RunOptions(run_to=("d",))),
        ]
    ]
    assert counts == [3, 3, 2]


def test_without_inputs_all_nodes_run() -> None:
    program = program_of(parse_graph("d:door a", "d>a"))
    assert (
        plan_inputs(program, None) == plan_inputs(program, {}) == InputPlan({}, frozenset(), None)
    )


def test_inputs_that_name_no_entry_select_no_part() -> None:
    program = program_of(parse_graph("d:door a b", "d>b", "a>b"))
    assert chosen(program, "a") == ({"a"}, set(), {"d", "a", "b"})


def test_a_chosen_entry_selects_its_descendants_and_what_these_need() -> None:
    graph = parse_graph("d:door e:door c x y other", "d>x", "c>x", "e>y", "other>y")
    assert chosen(program_of(graph), "d") == ({"d"}, {"e"}, {"d", "e", "c", "x"})


def test_two_chosen_entries_select_both_parts() -> None:
    graph = parse_graph("d:door e:door f:door x y z", "d>x", "e>y", "f>z")
    assert chosen(program_of(graph), "d", "e") == (
        {"d", "e"}, {"f"}, {"d", "e", "f", "x", "y"},
    )  # fmt: skip


def test_ancestors_of_nodes_that_will_not_run_are_not_selected() -> None:
    graph = parse_graph("a d:door b e:door x", "a>d", "d>x", "b>e", "e>x")
    assert chosen(program_of(graph), "d") == ({"d"}, {"e"}, {"d", "e", "x"})


def test_a_gate_and_its_sources_are_selected_with_its_consumers() -> None:
    graph = parse_graph("d:door a g x other", "d>x", "a>g", "g~x")
    assert chosen(program_of(graph), "d")[2] == {"d", "a", "g", "x"}


@given(st.binary(min_size=40, max_size=100))
def test_the_part_equals_that_of_the_reference(source: bytes) -> None:
    choices = ByteChoices(source)
    graph, passive = random_graph(choices)
    plain = ScheduleCase(graph, passive)
    runnable = [n for n in plain.nodes if n not in plain.linked]
    doors = {n for n in runnable if choices.one_in(2)}
    named = {n for n in runnable if choices.one_in(3)}
    kinds = {n: "vein" if n in passive else "door" if n in doors else "step" for n in plain.nodes}
    typed = Graph(
        tuple(node._replace(type=kinds[n]) for n, node in enumerate(graph.nodes)), graph.edges
    )
    entry = plan_inputs(program_of(typed), {f"n{n}": {"p": 1} for n in named})
    if not doors & named:
        assert (entry.part, entry.dropped) == (None, frozenset())
        return
    case = ScheduleCase(graph, passive, preset={n: frozenset("p") for n in named})
    assert entry.part == selected_nodes(case, doors, doors & named)
    assert entry.dropped == doors - named


# -- narrowed by options


def part(program: Program, options: RunOptions, *names: str) -> set[str]:
    """Return the selected ids for inputs that name these nodes, and options."""
    entry = plan_inputs(program, {name: {"output": 1} for name in names}, options)
    assert entry.part is not None
    return {program.topology.ids[n] for n in entry.part}


def test_run_to_selects_the_ancestors_of_the_named_nodes() -> None:
    program = program_of(parse_graph("a b c d e", "a>b", "b>c", "d>c", "c>e"))
    assert part(program, RunOptions(run_to=("c",))) == {"a", "b", "c", "d"}
    assert part(program, RunOptions(run_to=("b", "d"))) == {"a", "b", "d"}


def test_run_from_selects_the_descendants_of_the_named_nodes_and_what_these_need() -> None:
    program = program_of(parse_graph("a b c d e", "a>b", "b>c", "d>c", "a>e"))
    assert part(program, RunOptions(run_from=("b",))) == {"a", "b", "c", "d"}


def test_run_from_and_run_to_select_the_nodes_between() -> None:
    program = program_of(parse_graph("a b c d e f", "a>b", "b>c", "c>d", "e>c", "e>f"))
    assert part(program, RunOptions(run_from=("b",), run_to=("c",))) == {"a", "b", "c", "e"}
    assert part(program, RunOptions(run_from=("b",), run_to=("c", "f"))) == {"a", "b", "c", "e"}


def test_options_restrict_the_selection_of_the_inputs() -> None:
    graph = parse_graph("d:door e:door c x y z", "d>x", "c>x", "x>y", "e>y", "x>z")
    entry = plan_inputs(program_of(graph), {"d": {"output": 1}}, RunOptions(run_to=("x",)))
    assert entry == InputPlan({0: {"output": 1}}, frozenset(), frozenset({0, 2, 3}))
    entry = plan_inputs(program_of(graph), {"d": {"output": 1}}, RunOptions(run_to=("y",)))
    assert entry == InputPlan({0: {"output": 1}}, frozenset({1}), frozenset({0, 1, 2, 3, 4}))


def test_run_to_does_not_select_ancestors_of_settled_nodes() -> None:
    program = program_of(parse_graph("a b c", "a>b", "b>c"))
    assert part(program, RunOptions(run_to=("c",)), "b") == {"b", "c"}


@pytest.mark.parametrize("option", ["run_to", "run_from"])
def test_an_option_that_names_an_unknown_node_is_rejected_with_the_known_ones(option: str) -> None:
    options = RunOptions(**{option: ["b", "ghost", "other"]})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=f"{option} names 'ghost', 'other'") as caught:
        plan_inputs(program_of(parse_graph("a b")), None, options)
    assert caught.value.code == "unknown-node"
    assert caught.value.hint == "nodes are: a, b"


def test_options_that_select_nothing_are_rejected() -> None:
    options = RunOptions(run_from=("b",), run_to=("a",))
    with pytest.raises(InputError, match="run_from 'b' and run_to 'a'") as caught:
        plan_inputs(program_of(parse_graph("a b", "a>b")), None, options)
    assert caught.value.code == "nothing-to-run"
    doors = program_of(parse_graph("d:door e:door x y", "d>x", "e>y"))
    for unchosen in ("e", "y"):
        with pytest.raises(InputError, match=unchosen):
            plan_inputs(doors, {"d": {"output": 1}}, RunOptions(run_to=(unchosen,)))


@given(st.binary(min_size=40, max_size=100))
def test_a_node_is_selected_if_a_path_leads_from_it_to_a_wanted_node(source: bytes) -> None:
    choices = ByteChoices(source)
    graph, passive = random_graph(choices)
    case = ScheduleCase(graph, passive)
    nodes = set(case.nodes)
    settled = {n for n in nodes - case.linked if choices.one_in(5)}
    before = {n for n in nodes if choices.one_in(3)}
    ends = {n for n in nodes if choices.one_in(3)} or ({0} if not before else set[int]())
    kinds = [n._replace(type="vein" if i in passive else "step") for i, n in enumerate(graph.nodes)]
    program = program_of(Graph(tuple(kinds), graph.edges))

    def leads(node: int, target: int) -> bool:
        steps = [t for s, t in case.order.values() if s == node]
        return node == target or any(leads(step, target) for step in steps)

    def is_needed(node: int, target: int) -> bool:
        """As ``leads``, but not on beyond a node whose result is there."""
        steps = [t for s, t in case.order.values() if s == node and t not in settled]
        return node == target or any(is_needed(step, target) for step in steps)

    wanted = {n for n in nodes if not before or any(leads(first, n) for first in before)}
    wanted = {n for n in wanted if not ends or n in ends}
    options = RunOptions(run_from=[f"n{n}" for n in before], run_to=[f"n{n}" for n in ends])
    inputs = {f"n{n}": {"p": 1} for n in settled}
    if not wanted:
        with pytest.raises(InputError, match="nothing is left to run"):
            plan_inputs(program, inputs, options)
        return
    runs = {n for n in nodes if any(is_needed(n, target) for target in wanted)}
    assert plan_inputs(program, inputs, options).part == runs | settled


def test_options_do_not_restrict_nested_runs() -> None:
    program = program_of(parse_graph("a b", "a>b"))
    inner = program_of(parse_graph("x y", "x>y"))
    host: Any = type("Host", (), {"variables": {}})()
    options = RunOptions(run_to=("a",))
    outer = create_graph_run(program, host, options, None)
    assert [program.topology.ids[n] for n in outer.schedule.not_reached] == ["b"]
    attempt = Attempt(outer, 0)
    assert create_graph_run(inner, host, options, None, "a[k]/", attempt).schedule.not_reached == []


def test_an_input_for_an_unknown_node_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="'ghost'") as caught:
        plan_inputs(program_of(parse_graph("a b")), {"ghost": {}})
    assert caught.value.code == "unknown-input-node"
    assert caught.value.hint == "nodes are: a, b"


# -- the form of inputs


def test_inputs_are_copied_by_node_and_handle() -> None:
    inputs = {"s": {"output": ["x"]}, "p": {"right": None}}
    own = validate_inputs(typed("s:source p:pair"), inputs)
    assert own == inputs
    inputs["s"]["output"].append("y")  # type: ignore[union-attr]
    assert own["s"] == {"output": ["x"]}
    assert validate_inputs(typed("s:source"), None) == validate_inputs(typed("s:source"), {}) == {}


def test_a_flat_object_belongs_to_the_only_entry_node() -> None:
    program = typed("a s:source", "s>a")
    assert validate_inputs(program, {"output": {"a": 1}}) == {"s": {"output": {"a": 1}}}
    assert validate_inputs(program, {"s": {"output": 1}}) == {"s": {"output": 1}}


@pytest.mark.parametrize(
    ("nodes", "inputs", "code"),
    [
        ("s:source t:source", {"output": 1}, "unknown-input-node"),
        ("a", {"output": 1}, "unknown-input-node"),
        ("s:source", {"output": 1, "other": 2}, "unknown-input-node"),
        ("s:source", {7: 1}, "unknown-input-node"),
        ("output s:source", {"output": 1}, "invalid-inputs"),
        ("s:source", {"ghost": {"output": 1}}, "unknown-input-node"),
        ("s:source", ["s"], "invalid-inputs"),
        ("s:source", {"s": "hi"}, "invalid-inputs"),
        ("s:source", {"s": {7: 1}}, "invalid-inputs"),
        ("s:source", {"s": {"output": {1, 2}}}, "invalid-inputs"),
    ],
)
def test_malformed_inputs_are_rejected(nodes: str, inputs: Any, code: str) -> None:
    with pytest.raises(InputError) as caught:
        validate_inputs(typed(nodes), inputs)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("node", "handle", "offered"),
    [
        ("s:source", "input", "output"),
        ("s:source", "error", "output"),
        ("s:pair", "output", "left, right"),
        ("s:fork", "way-x", "way-{i}, else"),
    ],
)
def test_an_input_for_an_undeclared_handle_is_rejected_with_the_declared_ones(
    node: str, handle: str, offered: str
) -> None:
    with pytest.raises(InputError) as caught:
        validate_inputs(typed(node), {"s": {handle: 1}})
    assert caught.value.code == "invalid-inputs"
    assert caught.value.message.startswith(f"inputs['s'] names handle {handle!r}")
    assert caught.value.message.endswith(f"its outputs are: {offered}")


def test_an_input_may_name_a_numbered_handle() -> None:
    assert validate_inputs(typed("s:fork"), {"s": {"way-3": 1}}) == {"s": {"way-3": 1}}
