"""Graphs being made by an import: ids that planwave allows, each once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.model import is_id
from planwave.interop.importing.drafts import GraphDraft


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
