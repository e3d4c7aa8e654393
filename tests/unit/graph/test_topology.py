"""Effective edges: order and depth follow flow, and links that pass a requirement on."""

from __future__ import annotations

from planwave.graph.topology import Topology, linked_ids
from tests.fakes.catalogue import graph_of


def depths(topology: Topology, **options: set[int]) -> dict[str, int]:
    return dict(zip(topology.ids, topology.depths(**options), strict=True))


def test_a_node_with_links_out_and_no_flow_out_is_linked() -> None:
    graph = graph_of("a b c d", "a~b", "b~c", "b>d", "ghost~a")
    assert linked_ids(graph) == {"a"}
    assert linked_ids(graph, {"c", "nobody"}) == {"a", "c"}


def test_a_flow_edge_into_a_linked_node_holds_back_those_that_use_it() -> None:
    graph = graph_of("user gear inner first", "first>inner", "inner~gear", "gear~user")
    topology = Topology(graph)
    assert [topology.ids[n] for n in topology.order] == ["first", "inner", "gear", "user"]
    assert depths(topology) == {"first": 0, "inner": 1, "gear": 1, "user": 1}
    assert topology.successors(topology.index["inner"]) == [topology.index["gear"]]


def test_a_link_nothing_waits_on_orders_nothing() -> None:
    topology = Topology(graph_of("u g", "g~u"))
    assert topology.sources == [-1]
    assert topology.depth == [0, 0]


def test_a_link_of_a_node_that_also_runs_orders_nothing() -> None:
    topology = Topology(graph_of("g u x", "g~u", "g>x"))
    assert topology.depth == [0, 0, 1]


def test_two_ways_into_one_gate_count_once() -> None:
    topology = Topology(graph_of("a i j g u", "a>i", "a>j", "i~g", "j~g", "g~u"))
    assert depths(topology) == {"a": 0, "i": 1, "j": 1, "g": 1, "u": 1}


def test_dangling_edges_are_left_out_and_cycles_shorten_the_order() -> None:
    topology = Topology(graph_of("a b c", "a>ghost", "b>c", "c>b"))
    assert (topology.order, topology.sources) == ([0], [-1, 1, 2])


def test_depths_can_be_taken_in_the_part_that_runs() -> None:
    topology = Topology(graph_of("a b c d", "a>b", "b>c", "c>d"))
    assert depths(topology, settled={1}) == {"a": 0, "b": 1, "c": 0, "d": 1}
    assert depths(topology, part={2, 3}) == {"a": 0, "b": 0, "c": 0, "d": 1}
