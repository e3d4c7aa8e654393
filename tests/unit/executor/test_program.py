"""A graph made ready to run: its types looked up once."""

from __future__ import annotations

import pytest

from planwave.errors import InputError, TemplateError
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.graph.model import Graph, Node, Policy
from tests.support.engine.generic_nodes import GenericNodeTypes
from tests.support.graph.fake_node_types import parse_graph


def program_of(graph: Graph) -> Program:
    return Program(graph, GenericNodeTypes({}))


def test_an_unknown_type_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="'odd'") as caught:
        program_of(parse_graph("a:odd"))
    assert caught.value.code == "unknown-node-type"
    assert "known types are door, " in caught.value.message


def test_an_expression_that_cannot_be_parsed_is_rejected() -> None:
    with pytest.raises(TemplateError):
        program_of(Graph((Node("a", "step", "a", data={"x": "{{ a"}),), ()))


def test_scheduling_rules_come_from_policies_ports_and_options() -> None:
    graph = parse_graph("a b:picky c", "a>c", policies={"c": Policy(join="any")})
    rules = program_of(graph).scheduling_rules(RunOptions(scheduling="waves", on_failure="stop"))
    assert rules.join_any == {2}
    assert rules.required == {1: {"need"}}
    assert (rules.barrier, rules.stop_on_failure) == (True, True)
    rules = program_of(graph).scheduling_rules(RunOptions())
    assert (rules.barrier, rules.stop_on_failure) == (False, False)


def test_types_that_only_materialize_are_linked() -> None:
    program = program_of(parse_graph("g:vein a"))
    assert program.topology.linked == [True, False]


def test_ancestors_include_the_sources_of_gates() -> None:
    program = program_of(parse_graph("a g b c d", "a>g", "g~b", "b>c"))
    assert program.ancestors(3) == {0, 1, 2}
    assert program.ancestors(4) == frozenset()


def test_topologies_are_shared_by_executions() -> None:
    graph = parse_graph("a b", "a>b")
    assert program_of(graph).topology is program_of(graph).topology
