"""Ports that get too much or too little."""

from __future__ import annotations

import pytest

from planwave.graph.checking.checker import check
from planwave.graph.model import Graph, Node, Policy
from planwave.nodes.registry import default_registry
from tests.support.graph.builders import make_edge
from tests.support.graph.fake_node_types import FakeNodeTypes, parse_graph

CONTINUE = Policy(on_error="continue")
ANY = Policy(join="any")


def errors(graph: Graph) -> list[tuple[str, str]]:
    found = check(graph, FakeNodeTypes())
    return [(d.code, d.pointer) for d in found if d.severity == "error"]


@pytest.mark.parametrize(
    "graph",
    [
        parse_graph("a b c", "a>c.only", "b>c.only"),
        parse_graph("p:pair c", "p.left>c.only", "p.right>c.only"),
        parse_graph("f:fork g:fork c", "f.way-0>c.only", "g.else>c.only"),
        parse_graph("a h:nope c", "a>c.only", "h.x>c.only"),
        parse_graph("h:nope c", "h.x>c.only", "h.y>c.only"),
        parse_graph("a:catcher c", "a>c.only", "a.error>c.only", policies={"a": CONTINUE}),
    ],
)
def test_two_values_for_a_port_that_takes_one_are_too_many(graph: Graph) -> None:
    assert ("too-many-inputs", "/edges/1") in errors(graph)


@pytest.mark.parametrize(
    "graph",
    [
        parse_graph("f:fork c", "f.way-0>c.only", "f.way-1>c.only", "f.else>c.only"),
        parse_graph("a c", "a>c.only", "a.error>c.only", policies={"a": CONTINUE}),
        parse_graph("f:fork c", "f.else>c.only", "f.error>c.only", policies={"f": CONTINUE}),
        parse_graph("a b c", "a>c.only", "b>c.only", policies={"c": ANY}),
        parse_graph("a b c", "a>c", "b>c"),
    ],
)
def test_several_edges_are_valid_if_at_most_one_delivers(graph: Graph) -> None:
    assert errors(graph) == []


def test_the_same_output_twice_is_too_many_even_from_a_choosing_node() -> None:
    graph = parse_graph("f:fork c", "f.else>c.only", "f.else>c.only")
    assert errors(graph) == [("too-many-inputs", "/edges/1")]


def test_two_links_into_a_socket_for_one_are_too_many() -> None:
    graph = parse_graph("g:gear h:gear u:user", "g.gear~u.motor", "h.gear~u.motor")
    assert errors(graph) == [("too-many-inputs", "/edges/1")]


@pytest.mark.parametrize("data", [{}, {"need": None}, {"need": ""}, {"need": []}])
def test_a_required_port_needs_an_edge_or_a_value(data: dict[str, object]) -> None:
    graph = parse_graph("x:strict")
    graph = Graph((graph.nodes[0]._replace(data=data),), ())
    assert errors(graph) == [("missing-required-input", "/nodes/0")]


@pytest.mark.parametrize("value", ["1", 0, False, [0]])
def test_a_value_in_the_data_fills_a_required_port(value: object) -> None:
    graph = parse_graph("x:strict")
    assert errors(Graph((graph.nodes[0]._replace(data={"need": value}),), ())) == []


def test_a_node_with_one_live_input_can_start() -> None:
    assert errors(parse_graph("a b c", "a.error>c", "b>c")) == []


REGISTRY = default_registry()
PASSING_ON = {name for name in REGISTRY.names() if REGISTRY.type_info(name).passes_on}


@pytest.mark.parametrize("name", REGISTRY.names())
def test_a_node_that_only_passes_on_needs_an_edge_into_it(name: str) -> None:
    assert {"merge", "end", "void"} <= PASSING_ON
    nodes = Node("a", "text", "", data={"text": "x"}), Node("n", name, "")
    for edges in ((), (make_edge("a", "n"),), (make_edge("a", "n", channel="link"),)):
        found = check(Graph(nodes, edges), REGISTRY)
        warned = [(d.pointer, d.severity) for d in found if d.code == "nothing-to-pass-on"]
        is_fed = any(edge.channel == "flow" for edge in edges)
        expected = [("/nodes/1", "warning")] if name in PASSING_ON and not is_fed else []
        assert warned == expected
