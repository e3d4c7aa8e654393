"""The differences between two graphs say everything that distinguishes them, but ``ui``."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.editing.difference import graph_difference
from planwave.graph.plan import canonical_json, without_ui


def test_nodes_and_edges_are_compared_by_field() -> None:
    a = {
        "nodes": [
            {"id": "gone", "type": "t"},
            {"id": "x", "type": "t", "data": {"a": 1, "b": {"c": [1], "same": 0}, "e/f": 1}, "ui": {"x": 1}},
            {"id": "same", "type": "t"},
        ],
        "edges": [{"id": "e1", "source": "x", "target": "same", "data": {"channel": "flow"}}],
    }  # fmt: skip
    b = {
        "nodes": [
            {"id": "x", "type": "u", "data": {"a": True, "b": {"c": [2], "same": 0}}, "name": "X"},
            {"id": "same", "type": "t", "ui": {"moved": 1}},
            {"id": "new", "type": "t"},
        ],
        "edges": [{"id": "e1", "source": "x", "target": "same", "data": {"channel": "link"}}],
    }
    assert graph_difference(a, b) == {
        "nodes": [
            {"id": "gone", "change": "removed", "before": {"id": "gone", "type": "t"}},
            {
                "id": "x",
                "change": "changed",
                "fields": [
                    {"pointer": "/type", "before": "t", "after": "u"},
                    {"pointer": "/data/a", "before": 1, "after": True},
                    {"pointer": "/data/b/c", "before": [1], "after": [2]},
                    {"pointer": "/data/e~1f", "before": 1},
                    {"pointer": "/name", "after": "X"},
                ],
            },
            {"id": "new", "change": "added", "after": {"id": "new", "type": "t"}},
        ],
        "edges": [
            {
                "id": "e1",
                "change": "changed",
                "fields": [{"pointer": "/data/channel", "before": "flow", "after": "link"}],
                "after": b["edges"][0],
            }
        ],
        "reordered": [],
    }


def test_another_order_is_reported() -> None:
    nodes = [{"id": "a"}, {"id": "b"}]
    a, b = {"nodes": nodes, "edges": []}, {"nodes": nodes[::-1], "edges": []}
    assert graph_difference(a, b) == {"nodes": [], "edges": [], "reordered": ["nodes"]}


def test_shared_and_missing_ids_are_compared_by_position() -> None:
    a = {"nodes": [{"id": "a", "x": 1}, {"id": "a", "x": 2}], "edges": [{"source": "a"}]}
    b = {"nodes": [{"id": "a", "x": 1}], "edges": [{"source": "b"}]}
    found = graph_difference(a, b)
    assert found["nodes"] == [{"id": "a", "change": "removed", "before": {"id": "a", "x": 2}}]
    assert found["edges"][0]["id"] is None


def test_an_edge_between_other_nodes_is_another_one_also_under_the_id_of_one_that_is_gone() -> None:
    nodes = [{"id": each} for each in "abc"]
    was = {"id": "e1", "source": "a", "target": "b"}
    now = {"id": "e1", "source": "a", "target": "c"}
    found = graph_difference({"nodes": nodes, "edges": [was]}, {"nodes": nodes, "edges": [now]})
    assert found["edges"] == [
        {"id": "e1", "change": "removed", "before": was},
        {"id": "e1", "change": "added", "after": now},
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 1) | st.sampled_from(["", "~/"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "/~"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def _items(kind: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    fields = st.dictionaries(st.sampled_from(["data", "name", "ui"]), VALUES, max_size=3)
    names = st.lists(st.sampled_from("abcd"), unique=True, max_size=4)
    ends = st.fixed_dictionaries({"source": st.sampled_from("ab")} if kind == "edge" else {})
    return names.flatmap(
        lambda ids: st.tuples(
            *(
                st.builds(
                    lambda held, ends, own=own: {"id": own, "type": kind, **ends, **held},
                    fields,
                    ends,
                )
                for own in ids
            )
        ).map(list)
    )


GRAPHS = st.fixed_dictionaries({"nodes": _items("node"), "edges": _items("edge")})


def _at(item: dict[str, Any], pointer: str) -> tuple[dict[str, Any], str]:
    *way, last = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    for part in way:
        item = item[part]
    return item, last


def patched(items: list[dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Apply the differences of a list to it; every value that is replaced must be as they say."""
    made = {item["id"]: copy.deepcopy(item) for item in items}
    for entry in found:
        if entry["change"] == "removed":
            assert made.pop(entry["id"]) == entry["before"]
        elif entry["change"] == "added":
            assert entry["id"] not in made
            made[entry["id"]] = entry["after"]
        for field in entry.get("fields", ()):
            parent, name = _at(made[entry["id"]], field["pointer"])
            assert (name in parent) == ("before" in field)
            assert parent.pop(name, None) == field.get("before")
            if "after" in field:
                parent[name] = field["after"]
    return made


@pytest.mark.parametrize("kind", ["nodes", "edges"])
@given(a=GRAPHS, b=GRAPHS)
def test_differences_lead_from_one_graph_to_the_other_and_back(
    kind: str, a: dict[str, Any], b: dict[str, Any]
) -> None:
    bare = {
        name: {each: [without_ui(item) for item in graph[each]] if each == "nodes" else graph[each]
               for each in graph}
        for name, graph in (("a", a), ("b", b))
    }  # fmt: skip
    for start, end, found in (
        ("a", "b", graph_difference(a, b)),
        ("b", "a", graph_difference(b, a)),
    ):
        wanted = {item["id"]: item for item in bare[end][kind]}
        present = {(item["id"], item.get("source")) for item in bare[end][kind]}
        assert canonical_json(patched(bare[start][kind], found[kind])) == canonical_json(wanted)
        common = [
            item["id"] for item in bare[start][kind] if (item["id"], item.get("source")) in present
        ]
        order = [each for each in wanted if each in common]
        assert (kind in found["reordered"]) == (common != order)
    assert graph_difference(a, a) == {"nodes": [], "edges": [], "reordered": []}
