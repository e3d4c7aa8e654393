"""Effective edges: order and depth follow flow, and links that pass a requirement on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.model import Graph, Node
from planwave.graph.topology import Topology, materialized_ids
from tests.support.engine.random_schedules import ByteChoices, random_graph
from tests.support.engine.reference_scheduler import ScheduleCase
from tests.support.graph.builders import make_edge
from tests.support.graph.fake_node_types import parse_graph


def depths(topology: Topology, **options: set[int]) -> dict[str, int]:
    return dict(zip(topology.ids, topology.depths(**options), strict=True))


def test_a_node_with_outgoing_links_and_no_outgoing_flow_is_linked() -> None:
    graph = parse_graph("a b c d", "a~b", "b~c", "b>d", "ghost~a")
    assert materialized_ids(graph) == {"a"}
    assert materialized_ids(graph, {"c", "nobody"}) == {"a", "c"}


def test_consumers_of_a_linked_node_are_ordered_after_its_flow_sources() -> None:
    graph = parse_graph("user gear inner first", "first>inner", "inner~gear", "gear~user")
    topology = Topology(graph)
    assert [topology.ids[n] for n in topology.order] == ["first", "inner", "gear", "user"]
    assert depths(topology) == {"first": 0, "inner": 1, "gear": 1, "user": 1}
    assert topology.successors(topology.index["inner"]) == [topology.index["gear"]]


def test_a_node_that_its_consumers_feed_is_executed_after_them() -> None:
    fed = {
        ("u>g", "g~u"): {"u": 0, "g": 1},
        ("u>a", "a>g", "g~u"): {"u": 0, "a": 1, "g": 2},
        ("u>g", "g~h", "h~u"): {"u": 0, "g": 1, "h": 0},
        ("u>g", "x>g", "g~u"): {"u": 0, "x": 0, "g": 1},
        ("u>g", "g~u", "g~x"): {"u": 0, "g": 1, "x": 0},
        ("u>x", "x>g", "h>g", "g~h", "h~u"): {"u": 0, "x": 1, "g": 2, "h": 0},
    }
    for edges, depth in fed.items():
        topology = Topology(parse_graph(" ".join(depth), *edges))
        assert depths(topology) == depth
        assert topology.stages_after_consumers() == {"g"}


def test_a_node_that_only_materializes_is_not_executed_after_its_consumer() -> None:
    graph = parse_graph("u g", "u>g", "g~u")
    assert materialized_ids(graph, {"g"}) == {"g"}
    assert Topology(graph, {"g"}).order == []
    others = Topology(parse_graph("a u g", "a>g", "g~u"))
    assert others.stages_after_consumers() == set()


def test_a_link_without_flow_sources_orders_nothing() -> None:
    topology = Topology(parse_graph("u g", "g~u"))
    assert topology.sources == [-1]
    assert topology.depth == [0, 0]


def test_a_link_of_a_node_that_also_runs_orders_nothing() -> None:
    topology = Topology(parse_graph("g u x", "g~u", "g>x"))
    assert topology.depth == [0, 0, 1]


def test_two_paths_into_one_gate_count_once() -> None:
    topology = Topology(parse_graph("a i j g u", "a>i", "a>j", "i~g", "j~g", "g~u"))
    assert depths(topology) == {"a": 0, "i": 1, "j": 1, "g": 1, "u": 1}


def test_dangling_edges_are_ignored_and_cyclic_nodes_are_not_ordered() -> None:
    topology = Topology(parse_graph("a b c", "a>ghost", "b>c", "c>b"))
    assert (topology.order, topology.sources) == ([0], [-1, 1, 2])


def test_depths_can_be_computed_for_the_part_that_runs() -> None:
    topology = Topology(parse_graph("a b c d", "a>b", "b>c", "c>d"))
    assert depths(topology, part={0, 2, 3}) == {"a": 0, "b": 1, "c": 0, "d": 1}
    assert depths(topology, part={2, 3}) == {"a": 0, "b": 0, "c": 0, "d": 1}


@given(st.binary(min_size=40, max_size=120))
def test_order_and_depth_match_their_definitions(source: bytes) -> None:
    graph, passive = random_graph(ByteChoices(source))
    case = ScheduleCase(graph, passive)
    topology = Topology(graph, materialized_ids(graph, {f"n{n}" for n in passive}))
    assert {n for n, on in enumerate(topology.linked) if on} == case.linked
    ends = list(zip(topology.sources, topology.targets, strict=True))
    assert {e: ends[e] for e, (s, _) in enumerate(ends) if s >= 0} == case.order
    place = {node: at for at, node in enumerate(topology.order)}
    assert len(place) == len(topology)
    assert all(place[s] < place[t] for s, t in case.order.values())
    assert topology.depth == [case.depth(n) for n in case.nodes]
    for node in case.nodes:
        assert topology.incoming[node] == case.into(node)
        assert topology.successors(node) == [t for s, t in case.order.values() if s == node]


@given(st.binary(min_size=40, max_size=120))
def test_depths_of_a_part_equal_those_of_the_part_alone(source: bytes) -> None:
    choices = ByteChoices(source)
    graph, passive = random_graph(choices)
    plain = ScheduleCase(graph, passive)
    part = {n for n in plain.nodes if n in plain.linked or not choices.one_in(4)}
    topology = Topology(graph, materialized_ids(graph, {f"n{n}" for n in passive}))
    case = ScheduleCase(graph, passive, selected=frozenset(part))
    depth = topology.depths(part)
    assert all(depth[n] == case.depth(n) for n in case.nodes if case.runs(n))


@pytest.mark.parametrize("size", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_chain_is_sorted_without_recursion(size: int) -> None:
    nodes = tuple(Node(f"n{n}", "stone", "") for n in range(size))
    edges = tuple(make_edge(f"n{n + 1}", f"n{n}") for n in range(size - 1))
    topology = Topology(Graph(nodes, edges))
    assert topology.order == list(range(size - 1, -1, -1))
    assert topology.depth[0] == size - 1
