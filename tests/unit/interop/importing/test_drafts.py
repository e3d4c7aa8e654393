"""Graphs being made by an import: ids that planwave allows, each once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.model import is_id
from planwave.interop.importing.drafts import GraphDraft, Target, new_edge, reroute


def test_an_id_that_is_free_and_valid_is_kept() -> None:
    graph = GraphDraft()
    assert [graph.new_id(each) for each in ("a", "a", "a-2", "a", "-x-")] == [
        "a", "a-2", "a-2-2", "a-3", "-x-"
    ]  # fmt: skip


def test_characters_that_no_id_has_are_replaced() -> None:
    graph = GraphDraft()
    assert graph.new_id("Loop Over Items") == "Loop-Over-Items"
    assert graph.new_id("Loop Over Items") == "Loop-Over-Items-2"
    assert graph.new_id("漢字") == "step"
    assert graph.new_id("") == "step-2"
    assert len(graph.new_id("y" * 200)) == len(graph.new_id("y" * 200)) == 64


@given(st.lists(st.text(max_size=80) | st.sampled_from(["a", "a-2", "y" * 64, ""]), max_size=30))
def test_any_names_become_different_ids(names: list[str]) -> None:
    graph = GraphDraft()
    ids = [graph.new_id(name) for name in names]
    assert len(set(ids)) == len(ids)
    assert all(map(is_id, ids))


def test_edges_are_found_at_their_ends_whatever_becomes_of_them() -> None:
    graph = GraphDraft()
    a, b, c = (
        Target(graph, name, {"id": name, "type": "text", "name": name}) for name in ("a", "b", "c")
    )
    first, second = new_edge(graph, "a", "b"), new_edge(graph, "b", "c")
    assert graph.edges_at("b") == [first, second]
    reroute(b, c)
    assert (graph.edges_at("b"), graph.edges_at("c"), graph.edges) == ([], [first], [first])
    third = new_edge(graph, "c", "a")
    assert graph.edges_at("c") == [first, third]
    graph.remove_edge(first)
    assert (graph.edges_at("a"), graph.edges) == ([third], [third])
    assert (a.id, graph.edges_at("d")) == ("a", [])
