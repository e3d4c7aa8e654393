from __future__ import annotations

from graphlib import TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from planwave.interop.importing.regions import BackEdge, back_edges

_EDGES = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=15)


def test_the_edge_that_leads_back_is_found_with_its_path() -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]
    assert back_edges("abcd", edges) == [BackEdge(2, ("b", "c", "b"))]
    assert back_edges("a", [("a", "a")]) == [BackEdge(0, ("a", "a"))]
    assert back_edges("ab", [("a", "x"), ("x", "a")]) == []


def test_a_long_chain_needs_no_recursion() -> None:
    nodes = [str(i) for i in range(5_000)]
    edges = list(zip(nodes, [*nodes[1:], nodes[0]], strict=True))
    assert len(back_edges(nodes, edges)) == 1


@given(_EDGES)
def test_without_them_there_is_no_cycle(edges: list[tuple[str, str]]) -> None:
    found = back_edges("abcdef", edges)
    gone = {back.number for back in found}
    graph: dict[str, set[str]] = {node: set() for node in "abcdef"}
    for number, (source, target) in enumerate(edges):
        if number not in gone:
            graph[target].add(source)
    assert len(tuple(TopologicalSorter(graph).static_order())) == 6
    for back in found:
        steps = list(zip(back.path, back.path[1:], strict=False))
        assert steps[-1] == edges[back.number]
        assert set(steps) <= set(edges)
        assert back.path[0] == back.path[-1]
