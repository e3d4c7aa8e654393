from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.reading.documents import read_graph
from planwave.nodes.checking.entries import entries_without_input
from planwave.nodes.library import LIBRARY
from planwave.nodes.registry import Registry


def missing(
    start: dict[str, Any], reader: dict[str, Any], given: tuple[str, ...] = ()
) -> list[str]:
    """Return the entry nodes without an input in a graph of an entry node and one that follows it."""
    edge = {"source": "s", "target": "r", "data": {"channel": "flow"}}
    document = {"nodes": [{"id": "s", **start}, {"id": "r", **reader}], "edges": [edge]}
    graph, _ = read_graph(document)
    return entries_without_input(graph, Registry(LIBRARY), given)


ECHO = {"type": "text", "data": {"text": "{{ input }}"}}


@pytest.mark.parametrize("entry", ["start", "user_input"])
def test_an_entry_node_with_nothing_to_give_is_found(entry: str) -> None:
    assert missing({"type": entry}, ECHO) == ["s"]
    assert missing({"type": entry}, ECHO, given=("r",)) == ["s"]
    assert missing({"type": entry}, ECHO, given=("s",)) == []


@pytest.mark.parametrize("value", ["", 0, "tea"])
def test_a_value_in_its_data_is_the_default_of_runs_without_input(value: Any) -> None:
    assert missing({"type": "start", "data": {"initialInput": value}}, ECHO) == []


@pytest.mark.parametrize(
    ("reader", "found"),
    [
        ({"type": "agent", "data": {"userPrompt": "Write a haiku."}}, []),
        ({"type": "agent", "data": {"userPrompt": "Write about {{ input }}."}}, ["s"]),
        ({"type": "agent", "data": {"userPrompt": '{{ nodes["s"].output }}'}}, ["s"]),
        ({"type": "agent", "data": {"systemPrompt": "Be brief."}}, ["s"]),
        ({"type": "agent", "description": "Write a haiku."}, ["s"]),
        ({"type": "type-of-another-package"}, ["s"]),
    ],
)
def test_a_model_whose_prompt_ignores_its_input_needs_none(
    reader: dict[str, Any], found: list[str]
) -> None:
    assert missing({"type": "start"}, reader) == found


def test_inputs_for_one_entry_node_leave_out_the_others() -> None:
    nodes = [{"id": "a", "type": "start"}, {"id": "b", "type": "user_input"}, {"id": "r", **ECHO}]
    edges = [{"source": each, "target": "r", "data": {"channel": "flow"}} for each in "ab"]
    graph, _ = read_graph({"nodes": nodes, "edges": edges})
    assert entries_without_input(graph, Registry(LIBRARY), ()) == ["a", "b"]
    assert entries_without_input(graph, Registry(LIBRARY), ("b",)) == []


def test_an_entry_type_that_makes_its_own_value_needs_no_input() -> None:
    import planwave

    registry = Registry(LIBRARY)

    @planwave.node("feed", entry=True, registry=registry)
    def feed() -> str:  # pyright: ignore[reportUnusedFunction]
        return "news"

    edge = {"source": "s", "target": "r", "data": {"channel": "flow"}}
    graph, _ = read_graph(
        {"nodes": [{"id": "s", "type": "feed"}, {"id": "r", **ECHO}], "edges": [edge]}
    )
    assert entries_without_input(graph, registry, ()) == []
