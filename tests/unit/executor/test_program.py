"""A graph made ready to run: its types looked up once, and the part that inputs choose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.errors import InputError, TemplateError
from planwave.executor.options import RunOptions
from planwave.executor.program import Entry, Program
from planwave.graph.model import Graph, Node, Policy
from planwave.graph.topology import Topology
from tests.fakes.cases import Choices, graph_from
from tests.fakes.catalogue import graph_of
from tests.fakes.oracle import Case, part_of
from tests.fakes.stones import Quarry


def program_of(graph: Graph) -> Program:
    return Program(graph, Quarry({}))


def chosen(program: Program, *names: str, **given: Any) -> tuple[set[str], set[str], set[str]]:
    """Give the ids given, dropped and in the part, for inputs that name these nodes."""
    entry = program.entry({name: {"output": 1} for name in names} | given)
    ids = program.topology.ids

    def named(numbers: Any) -> set[str]:
        return {ids[n] for n in numbers}

    return named(entry.given), named(entry.dropped), named(entry.part or range(len(ids)))


def test_without_inputs_everything_runs() -> None:
    program = program_of(graph_of("d:door a", "d>a"))
    assert program.entry(None) == program.entry({}) == Entry({}, frozenset(), None)


def test_inputs_that_name_no_entry_choose_no_part() -> None:
    program = program_of(graph_of("d:door a b", "d>b", "a>b"))
    assert chosen(program, "a") == ({"a"}, set(), {"d", "a", "b"})


def test_a_chosen_entry_runs_with_what_its_part_needs() -> None:
    graph = graph_of("d:door e:door c x y other", "d>x", "c>x", "e>y", "other>y")
    assert chosen(program_of(graph), "d") == ({"d"}, {"e"}, {"d", "e", "c", "x"})


def test_two_chosen_entries_run_both_parts() -> None:
    graph = graph_of("d:door e:door f:door x y z", "d>x", "e>y", "f>z")
    assert chosen(program_of(graph), "d", "e") == (
        {"d", "e"}, {"f"}, {"d", "e", "f", "x", "y"},
    )  # fmt: skip


def test_what_only_feeds_nodes_that_will_not_run_is_not_reached() -> None:
    graph = graph_of("a d:door b e:door x", "a>d", "d>x", "b>e", "e>x")
    assert chosen(program_of(graph), "d") == ({"d"}, {"e"}, {"d", "e", "x"})


def test_a_gate_and_what_holds_it_are_part_of_what_needs_it() -> None:
    graph = graph_of("d:door a g x other", "d>x", "a>g", "g~x")
    assert chosen(program_of(graph), "d")[2] == {"d", "a", "g", "x"}


@given(st.binary(min_size=40, max_size=100))
def test_the_part_is_what_the_sentence_says(source: bytes) -> None:
    choices = Choices(source)
    graph, passive = graph_from(choices)
    plain = Case(graph, passive)
    runnable = [n for n in plain.nodes if n not in plain.linked]
    doors = {n for n in runnable if choices.one_in(2)}
    named = {n for n in runnable if choices.one_in(3)}
    kinds = {n: "vein" if n in passive else "door" if n in doors else "step" for n in plain.nodes}
    typed = Graph(
        tuple(node._replace(type=kinds[n]) for n, node in enumerate(graph.nodes)), graph.edges
    )
    entry = program_of(typed).entry({f"n{n}": {"p": 1} for n in named})
    if not doors & named:
        assert (entry.part, entry.dropped) == (None, frozenset())
        return
    case = Case(graph, passive, given={n: frozenset("p") for n in named})
    assert entry.part == part_of(case, doors, doors & named)
    assert entry.dropped == doors - named


def test_an_input_for_an_unknown_node_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="'ghost'") as caught:
        program_of(graph_of("a b")).entry({"ghost": {}})
    assert caught.value.code == "unknown-input-node"
    assert caught.value.hint == "nodes are: a, b"


def test_an_unknown_type_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="'odd'") as caught:
        program_of(graph_of("a:odd"))
    assert caught.value.code == "unknown-node-type"
    assert "door" in str(caught.value.hint)


def test_an_expression_that_cannot_be_parsed_is_refused() -> None:
    with pytest.raises(TemplateError):
        program_of(Graph((Node("a", "step", "a", data={"x": "{{ a"}),), ()))


def test_the_rules_follow_policies_ports_and_options() -> None:
    graph = graph_of("a b:picky c", "a>c", policies={"c": Policy(join="any")})
    rules = program_of(graph).rules(RunOptions(scheduling="waves", on_failure="stop"))
    assert rules.join_any == {2}
    assert rules.required == {1: {"need"}}
    assert (rules.barrier, rules.stop_on_failure) == (True, True)
    rules = program_of(graph).rules(RunOptions())
    assert (rules.barrier, rules.stop_on_failure) == (False, False)


def test_types_that_only_materialise_are_linked() -> None:
    program = program_of(graph_of("g:vein a"))
    assert program.topology.linked == [True, False]


def test_ancestors_go_through_gates() -> None:
    program = program_of(graph_of("a g b c d", "a>g", "g~b", "b>c"))
    assert program.ancestors(3) == {0, 1, 2}
    assert program.ancestors(4) == frozenset()


def test_topologies_are_shared_by_executions() -> None:
    program = program_of(graph_of("a b", "a>b"))
    assert isinstance(program.topology, Topology)
    into, out = program.edges_of(1)
    assert [e.id for e in into] == ["e1"]
    assert not out
