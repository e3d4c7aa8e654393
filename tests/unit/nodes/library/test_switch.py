from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.model import DataValue, Graph, Node
from planwave.nodes.library.switch import Switch
from planwave.nodes.registry import default_registry
from tests.support.graph.builders import make_edge
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

NODE = Node("s", "switch", "S")


@pytest.mark.parametrize(
    ("data", "value", "handle"),
    [
        ({"cases": ["a", "b"]}, "b", "case-1"),
        ({"cases": ["a", "b"]}, " b\n", "case-1"),
        ({"cases": ["a", "b"]}, "B", "default"),
        ({"cases": ["a", "b"], "caseSensitive": False}, "B", "case-1"),
        ({"cases": [1, True, None, {"k": 1}]}, 1, "case-0"),
        ({"cases": [1, True, None, {"k": 1}]}, True, "case-1"),
        ({"cases": [1, True, None, {"k": 1}]}, {"k": 1}, "case-3"),
        ({"cases": ["x"], "value": "x"}, "not looked at", "case-0"),
        ({"cases": ["x", "x"], "value": "x"}, "", "case-0"),
        ({"cases": ["x"], "value": ""}, "x", "default"),
    ],
)
async def test_the_first_case_that_the_value_is_chooses_the_branch(
    data: dict[str, Any], value: Any, handle: str
) -> None:
    result, events = await result_and_events(
        Switch().execute(data, make_inputs(value), context_for(NODE))
    )
    assert result.outputs == {handle: DataValue("any", value)}
    (event,) = events
    assert event.event_type == "logic_check"
    assert event.data["handle"] == handle


async def test_a_wire_brings_the_value() -> None:
    inputs = make_inputs("passed on", ("value", 2))
    result, _ = await result_and_events(
        Switch().execute({"cases": [1, 2]}, inputs, context_for(NODE))
    )
    assert result.outputs == {"case-1": DataValue("any", "passed on")}


def found(data: dict[str, Any], *handles: str) -> list[tuple[str, str]]:
    node = Node("s", "switch", "S", data=data)
    edges = tuple(make_edge("s", f"t{n}", source_handle=h) for n, h in enumerate(handles))
    return [(f.code, f.pointer) for f in default_registry().check(node, Graph((node,), edges))]


def test_edges_leave_through_the_cases_there_are() -> None:
    assert found({"cases": ["a", "b"]}, "case-0", "case-1", "default", "error") == []
    assert found({"cases": ["a", "b"]}, "case-2") == [("unknown-handle", "/data/cases")]
    assert found({"cases": "{{ goal }}"}, "case-9") == []


def test_a_case_that_is_there_before_is_told() -> None:
    assert found({"cases": ["a", " a"]}) == [("never-matches", "/data/cases/1")]
    assert found({"cases": ["a", "A"]}) == []
    assert found({"cases": ["a", "A"], "caseSensitive": False}) == [
        ("never-matches", "/data/cases/1")
    ]
    assert found({"cases": []}) == [("invalid-data", "/data/cases")]
