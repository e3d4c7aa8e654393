from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.model import DataValue, Node
from planwave.nodes.library.switch import Switch
from tests.support.nodes.node_checks import check_node, locations
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
async def test_the_first_case_equal_to_the_value_chooses_the_branch(
    data: dict[str, Any], value: Any, handle: str
) -> None:
    result, events = await result_and_events(
        Switch().execute(data, make_inputs(value), context_for(NODE))
    )
    assert result.outputs == {handle: DataValue("any", value)}
    (event,) = events
    assert event.event_type == "logic_check"
    assert event.data["handle"] == handle


async def test_the_value_may_be_wired() -> None:
    inputs = make_inputs("passed on", ("value", 2))
    result, _ = await result_and_events(
        Switch().execute({"cases": [1, 2]}, inputs, context_for(NODE))
    )
    assert result.outputs == {"case-1": DataValue("any", "passed on")}


@pytest.mark.parametrize(
    ("data", "outputs", "found"),
    [
        ({"cases": ["a", "b"]}, ["case-0", "case-1", "default", "error"], []),
        ({"cases": ["a", "b"]}, ["case-2"], [("unknown-handle", "/sourceHandle")]),
        ({"cases": "{{ goal }}"}, ["case-9"], []),
        ({"cases": ["a", " a"]}, [], [("never-matches", "/data/cases/1")]),
        ({"cases": ["a", "A"]}, [], []),
        ({"cases": ["a", "A"], "caseSensitive": False}, [], [("never-matches", "/data/cases/1")]),
        ({"cases": []}, [], [("invalid-data", "/data/cases")]),
    ],
)
def test_repeated_cases_and_edges_through_no_case_are_found(
    data: dict[str, Any], outputs: list[str], found: list[tuple[str, str]]
) -> None:
    assert locations(check_node("switch", data, outputs=outputs)) == found
