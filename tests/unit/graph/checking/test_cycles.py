"""Cycles: found where there are some, real when shown, and always the same."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.checking.cycles import cycle_diagnostics, strongly_connected
from planwave.graph.model import FLOW, LINK, Channel, Graph, Node
from planwave.graph.topology import Topology
from tests.support.graph.builders import make_edge
from tests.support.graph.fake_node_types import parse_graph

Wires = list[tuple[int, int, Channel]]
channels: st.SearchStrategy[Channel] = st.sampled_from([FLOW, FLOW, LINK])


def graph_from(size: int, wires: Wires) -> Graph:
    nodes = tuple(Node(f"n{i}", "step", f"n{i}") for i in range(size))
    return Graph(nodes, tuple(make_edge(f"n{a}", f"n{b}", channel=c) for a, b, c in wires))


@st.composite
def graphs(draw: st.DrawFn, *, acyclic: bool = False) -> Graph:
    size = draw(st.integers(1, 9))
    numbers = st.integers(0, size - 1)
    wires = draw(st.lists(st.tuples(numbers, numbers, channels), max_size=18))
    if acyclic:
        wires = [(min(a, b), max(a, b), c) for a, b, c in wires if a != b]
    return graph_from(size, wires)


def paths(graph: Graph) -> list[tuple[str, tuple[str, ...] | None]]:
    return [(d.code, d.path) for d in cycle_diagnostics(Topology(graph))]


@given(graphs())
def test_every_path_shown_is_a_cycle_of_the_graph(graph: Graph) -> None:
    topology = Topology(graph)
    found = cycle_diagnostics(topology)
    flows = {(e.source, e.target) for e in graph.edges if e.channel == FLOW}
    links = {(e.source, e.target) for e in graph.edges if e.channel == LINK}
    effective = {
        (topology.ids[n], topology.ids[t])
        for n in range(len(topology))
        for t in topology.successors(n)
    }
    for diagnostic in found:
        path = diagnostic.path
        assert path is not None
        assert path[0] == path[-1]
        assert len(set(path)) == len(path) - 1
        steps = set(itertools.pairwise(path))
        if diagnostic.code == "flow-cycle":
            assert steps <= effective
            assert steps & flows
        else:
            assert steps <= links
    if len(topology.order) < len(topology):
        assert found


@given(graphs(acyclic=True))
def test_a_graph_without_cycles_has_no_findings(graph: Graph) -> None:
    assert paths(graph) == []


@given(graphs())
def test_strongly_connected_components_are_nodes_that_reach_each_other(graph: Graph) -> None:
    topology = Topology(graph)
    adjacency = [topology.successors(n) for n in range(len(topology))]
    reach = [_reachable(adjacency, n) for n in range(len(topology))]
    expected = {frozenset(m for m in reach[n] if n in reach[m]) for n in range(len(topology))}
    assert {frozenset(c) for c in strongly_connected(adjacency, range(len(topology)))} == expected


def _reachable(adjacency: list[list[int]], start: int) -> set[int]:
    seen, stack = {start}, [start]
    while stack:
        for target in adjacency[stack.pop()]:
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return seen


def test_a_node_that_feeds_itself_is_a_cycle() -> None:
    assert paths(parse_graph("a b", "a>b", "b>b")) == [("flow-cycle", ("b", "b"))]


def test_each_component_gets_one_shortest_path_in_graph_order() -> None:
    graph = parse_graph(
        "d a b c e", "b>c", "c>b", "c>a", "a>b", "e>d", "d>e", "b>e"
    )  # fmt: skip
    assert paths(graph) == [
        ("flow-cycle", ("d", "e", "d")),
        ("flow-cycle", ("a", "b", "c", "a")),
    ]


def test_gates_that_link_to_each_other_are_a_link_cycle_only() -> None:
    graph = parse_graph("a g h", "a>g", "g~h", "h~g")
    assert paths(graph) == [("link-cycle", ("g", "h", "g"))]


def test_the_path_of_a_flow_cycle_contains_a_flow_edge() -> None:
    graph = parse_graph("g h u:user", "g~h", "h~g", "h~u", "u>g")
    found = [(d.code, d.path) for d in cycle_diagnostics(Topology(graph, {"g", "h"}))]
    assert ("flow-cycle", ("u", "g", "h", "u")) in found
    assert ("link-cycle", ("g", "h", "g")) in found


def test_dangling_links_are_no_cycle() -> None:
    assert paths(parse_graph("a", "a~ghost", "ghost~a")) == []


def test_a_long_cycle_is_shortened_only_in_the_message() -> None:
    size = 1000
    graph = graph_from(size, [(i, (i + 1) % size, FLOW) for i in range(size)])
    [diagnostic] = cycle_diagnostics(Topology(graph))
    assert diagnostic.path is not None
    assert len(diagnostic.path) == size + 1
    assert diagnostic.message.endswith("(993 more) -> n999 -> n0")
