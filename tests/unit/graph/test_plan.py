"""Plans as JSON, and the hash they are bound to."""

from __future__ import annotations

import hashlib
import json
import math
from datetime import date
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.model import FLOW, Edge, Graph, Node
from planwave.graph.plan import (
    Plan,
    canonical_json,
    graph_content,
    graph_hash,
    is_plain_document,
    title_of_steps,
    title_of_text,
    unreadable_hash,
)
from planwave.jsonio import MAX_JSON_DEPTH, is_plain
from tests.support.cpu_time import cpu_within
from tests.support.graph.fake_node_types import parse_graph


def test_canonical_json_sorts_keys_and_has_no_spaces() -> None:
    assert canonical_json({"b": [1, {"d": 1, "c": "ü"}], "a": None}) == (
        '{"a":null,"b":[1,{"c":"ü","d":1}]}'
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([1e-4, 9.99e-5, 1e15, 9999999999999998.0, 1e16, 2**63, 2**64, "\ud800", "\x7f"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    max_leaves=12,
)  # fmt: skip
objects = st.dictionaries(st.text(max_size=3), json_values, max_size=2)


@given(json_values)
def test_canonical_json_equals_that_of_the_standard_library(value: Any) -> None:
    assert canonical_json(value) == json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_have_no_canonical_json(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": [None, (number,)]})


class _Own(dict[str, Any]):
    """An object of somebody's own."""


@pytest.mark.parametrize("value", [UUID(int=1), date(2026, 1, 2)])
def test_values_that_are_not_json_have_no_canonical_json(value: Any) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        canonical_json({"a": [value]})


def test_subclasses_of_dict_are_serialized() -> None:
    assert canonical_json({"a": _Own(b=1)}) == '{"a":{"b":1}}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": _Own(b=math.nan)})


def test_the_hash_ignores_ui_fields_and_depends_on_data() -> None:
    plain = Node("a", "step", "a")
    placed = plain._replace(ui={"x": 1})
    changed = plain._replace(data={"x": 1})
    hashes = [graph_hash(Graph((node,), ())) for node in (plain, placed, changed)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert len(hashes[0]) == 64


@given(objects, objects, objects, st.none() | objects)
def test_the_hash_of_a_graph_covers_everything_except_ui_fields(
    data: Any, policy: Any, mark: Any, ui: Any
) -> None:
    node = Node("a", "step", "ä", "does it", data, ui=ui, policy_document=policy or None)
    edges = (
        Edge("e1", "a", "out", "b", "in", FLOW, mark),
        Edge("e2", "a", "out", "b", "in", FLOW, {"channel": FLOW, **mark}, "curve"),
    )
    graph = Graph((node, Node("b", "step", "b")), edges)
    content = graph.to_document()
    content["nodes"][0].pop("ui", None)
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    try:
        expected = hashlib.sha256(text.encode()).hexdigest()
    except UnicodeEncodeError:
        with pytest.raises(UnicodeEncodeError):
            graph_hash(graph)
    else:
        assert graph_hash(graph) == expected
    assert graph_content(graph) == content
    assert is_plain_document(graph) == is_plain(graph.to_document())


@pytest.mark.parametrize("depth", [MAX_JSON_DEPTH - 4, MAX_JSON_DEPTH - 3])
def test_the_plain_document_check_respects_the_depth_limit(depth: int) -> None:
    data: Any = 1
    for _ in range(depth):
        data = [data]
    for node in (
        Node("a", "step", "a", data={"x": data}),
        Node("a", "step", "a", ui={"x": data}),
        Node("a", "step", "a", policy_document={"default": data}),
    ):
        graph = Graph((node,), ())
        assert is_plain_document(graph) == is_plain(graph.to_document())
        assert is_plain_document(graph) == (depth == MAX_JSON_DEPTH - 4)


def test_the_document_is_shared_and_to_document_returns_a_copy() -> None:
    graph = parse_graph("a b", "a>b")
    plan = Plan("p1", "", "Doing", graph, graph_hash(graph), "2026-01-01T00:00:00Z")
    assert graph.document is graph.document
    for own in (graph.to_document(), plan.as_json()):
        own["nodes"][0]["data"]["x"] = own["edges"][0]["data"]["x"] = 1
        own["nodes"].clear()
    assert graph.document == graph.to_document()
    assert plan.as_json(graph=graph.document) == plan.as_json()


def test_a_plan_as_json_has_its_graph_and_status() -> None:
    graph = parse_graph("a b", "a>b")
    plan = Plan("p1", "do it", "Doing", graph, graph_hash(graph), "2026-01-01T00:00:00Z")
    shown = plan.as_json("executing")
    assert shown["status"] == "executing"
    assert plan.as_json()["status"] == "draft"
    assert {"nodes": shown["nodes"], "edges": shown["edges"]} == graph.to_document()
    assert (shown["plan_id"], shown["hash"], shown["revision"]) == ("p1", plan.hash, 1)


def test_hash_of_an_unreadable_graph_is_its_own_and_leaves_places_out() -> None:
    graph = parse_graph("a b", "a>b")
    document = graph.to_document()
    moved = {
        **document,
        "nodes": [{**node, "ui": {"position": {"x": 1, "y": 2}}} for node in document["nodes"]],
    }
    assert unreadable_hash(document) == unreadable_hash(moved)
    assert unreadable_hash(document) != graph_hash(graph)
    assert unreadable_hash(document) != unreadable_hash({**document, "edges": []})


@pytest.mark.parametrize(
    ("nodes", "edges", "title"),
    [
        ("a", "", "A"),
        ("a b c", "a>b b>c", "A to C"),
        ("c b a", "a>b b>c", "A to C"),
        ("a b c", "a>c b>c", "A to C"),
        ("a t b", "a>b", "A to B"),
        ("a b", "a>b b>a", ""),
        ("", "", ""),
    ],
)
def test_a_graph_without_a_title_is_called_by_its_first_and_last_step(
    nodes: str, edges: str, title: str
) -> None:
    graph = Graph(
        tuple(Node(each, "text", each.upper()) for each in nodes.split()),
        tuple(
            Edge(each, each[0], "output", each[2], "input", "flow", {"channel": "flow"}, None)
            for each in edges.split()
        ),
    )
    assert title_of_steps(graph) == title


def test_a_large_graph_is_called_by_its_steps_in_a_moment() -> None:
    names = [f"n{number}" for number in range(20_000)]
    edges = tuple(
        Edge(end, start, "output", end, "input", "flow", {"channel": "flow"}, None)
        for start, end in pairwise(names)
    )
    graph = Graph(tuple(Node(each, "text", each) for each in names), edges)
    with cpu_within(2):
        assert title_of_steps(graph) == "n0 to n19999"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Find  a\nhotel", "Find a hotel"),
        ("Find a hotel in Lisbon", "Find a hotel in…"),
        ("Find a hotel in", "Find a hotel in"),
        ("Find hotels, in Lisbon", "Find hotels, in…"),
        ("Find the hotel - today", "Find the hotel…"),
        ("x" * 40, "x" * 19 + "…"),
        ("In " + "x" * 40, "In " + "x" * 16 + "…"),
        ("", ""),
    ],
)
def test_a_title_made_of_a_text_ends_with_a_whole_word(text: str, title: str) -> None:
    assert title_of_text(text, 20) == title
