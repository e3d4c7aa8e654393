"""Plans as JSON, and the hash they are bound to."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planwave.graph.model import Graph, Node
from planwave.graph.plan import Plan, canonical_json, graph_hash
from tests.fakes.catalogue import graph_of


def test_equal_json_has_one_text() -> None:
    assert canonical_json({"b": [1, {"d": 1, "c": "ü"}], "a": None}) == (
        '{"a":null,"b":[1,{"c":"ü","d":1}]}'
    )


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([1e-4, 9.99e-5, 1e15, 9999999999999998.0, 1e16, 2**63, 2**64, "\ud800", "\x7f"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    max_leaves=12,
))  # fmt: skip
def test_the_text_of_json_is_that_of_the_standard_library(value: Any) -> None:
    assert canonical_json(value) == json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_has_no_text(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": [None, (number,)]})


class _Own(dict[str, Any]):
    """An object of somebody's own."""


@pytest.mark.parametrize("value", [UUID(int=1), date(2026, 1, 2)])
def test_what_is_not_json_has_no_text(value: Any) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        canonical_json({"a": [value]})


def test_objects_of_other_types_are_looked_into() -> None:
    assert canonical_json({"a": _Own(b=1)}) == '{"a":{"b":1}}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": _Own(b=math.nan)})


def test_moving_a_node_on_the_canvas_keeps_the_hash_and_changing_its_data_does_not() -> None:
    plain = Node("a", "step", "a")
    placed = plain._replace(ui={"x": 1})
    changed = plain._replace(data={"x": 1})
    hashes = [graph_hash(Graph((node,), ())) for node in (plain, placed, changed)]
    assert hashes[0] == hashes[1] != hashes[2]
    assert len(hashes[0]) == 64


def test_a_plan_shows_its_graph_and_its_status() -> None:
    graph = graph_of("a b", "a>b")
    plan = Plan("p1", "do it", "Doing", graph, graph_hash(graph), "2026-01-01T00:00:00Z")
    shown = plan.as_json("executing")
    assert shown["status"] == "executing"
    assert plan.as_json()["status"] == "draft"
    assert {"nodes": shown["nodes"], "edges": shown["edges"]} == graph.to_document()
    assert (shown["plan_id"], shown["hash"], shown["revision"]) == ("p1", plan.hash, 1)
