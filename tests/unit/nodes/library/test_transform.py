from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.model import DataValue, Node
from planwave.nodes.library.transform import Transform
from tests.support.nodes.node_checks import check_node, locations
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

NODE = Node("t", "transform", "T")


async def transformed(data: dict[str, Any], *arrived: Any) -> DataValue:
    result, _ = await result_and_events(
        Transform().execute(data, make_inputs(*arrived), context_for(NODE))
    )
    return result.outputs["output"]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ({"expression": 3}, DataValue("integer", 3)),
        ({"expression": "x"}, DataValue("text", "x")),
        ({"expression": [1, "a"]}, DataValue("json", [1, "a"])),
        ({"expression": None}, DataValue("json", None)),
        ({"fields": {"a": 1, "b": ["x"]}}, DataValue("json", {"a": 1, "b": ["x"]})),
        ({"fields": {}}, DataValue("json", {})),
    ],
)
async def test_the_result_has_the_type_of_the_expression(
    data: dict[str, Any], value: DataValue
) -> None:
    assert await transformed(data, "in") == value


async def test_expression_and_fields_may_be_wired() -> None:
    assert await transformed({"expression": "x"}, ("expression", 5)) == DataValue("integer", 5)
    assert await transformed({}, ("fields", {"a": 1})) == DataValue("json", {"a": 1})


async def test_the_result_is_a_copy_of_the_data() -> None:
    data = {"expression": {"a": [1]}}
    result = await transformed(data)
    result.value["a"].append(2)
    assert data == {"expression": {"a": [1]}}


@pytest.mark.parametrize("data", [{}, {"expression": 1, "fields": {}}])
async def test_exactly_one_of_expression_and_fields_is_required(data: dict[str, Any]) -> None:
    with pytest.raises(NodeError, match="one of the two") as caught:
        await transformed(data)
    assert caught.value.code == "invalid-data"
    assert locations(check_node("transform", data)) == [("invalid-data", "/data")]


@pytest.mark.parametrize(
    ("data", "inputs", "found"),
    [
        ({"expression": "{{ goal | upper }}"}, [], []),
        ({"expression": ["{{ goal }}", "fixed"]}, [], []),
        ({"expression": "goal | upper"}, [], [("invalid-data", "/data/expression")]),
        ({"expression": "goal"}, ["expression"], []),
        ({}, ["expression"], []),
        ({"fields": {}}, ["expression"], [("invalid-data", "/data")]),
        ({"fields": "{{ inputs }}"}, [], []),
    ],
)
def test_a_written_expression_needs_braces(
    data: dict[str, Any], inputs: list[str], found: list[tuple[str, str]]
) -> None:
    assert locations(check_node("transform", data, inputs=inputs)) == found
