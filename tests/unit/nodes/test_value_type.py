"""The types that are nothing but a value: text, number, boolean and json."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.errors import NodeError
from planwave.graph.inputs import Inputs
from planwave.graph.model import LINK, DataValue, Node
from planwave.nodes.library.boolean import Boolean
from planwave.nodes.library.json_ import JsonValue
from planwave.nodes.library.number import Number
from planwave.nodes.library.text import Text
from planwave.nodes.value_type import ValueType
from tests.support.graph.builders import make_edge
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

NODE = Node("v", "value", "V")

WHOLE = {"output": DataValue("integer", 3), "integer": DataValue("integer", 3)}


@pytest.mark.parametrize(
    ("kind", "data", "outputs"),
    [
        (Number(), {"value": 3}, WHOLE),
        (Number(), {"value": 3.5}, {"output": DataValue("number", 3.5)}),
        (Boolean(), {"value": True}, {"output": DataValue("boolean", True)}),
        (JsonValue(), {"value": [1, None]}, {"output": DataValue("json", [1, None])}),
        (JsonValue(), {"value": "x"}, {"output": DataValue("json", "x")}),
        (Text(), {"text": {"a": 1}}, {"output": DataValue("text", '{"a":1}')}),
    ],
)
async def test_a_value_has_the_same_type_when_executed_and_over_links(
    kind: ValueType, data: dict[str, Any], outputs: dict[str, DataValue]
) -> None:
    result, _ = await result_and_events(
        kind.execute(data, make_inputs("ignored"), context_for(NODE))
    )
    assert result.outputs == outputs
    for handle, value in outputs.items():
        assert await kind.materialize(data, handle, context_for(NODE)) == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Number(), "5"), (Number(), True), (Boolean(), 1), (Boolean(), "true"), (Number(), None)],
)
async def test_a_value_of_another_type_fails_the_node(kind: ValueType, value: Any) -> None:
    with pytest.raises(NodeError, match=r"data\.value") as caught:
        await result_and_events(kind.execute({"value": value}, Inputs(), context_for(NODE)))
    assert caught.value.code == "invalid-data"
    with pytest.raises(NodeError, match=r"node 'v': data\.value takes \w+, but the flow edge"):
        await result_and_events(kind.execute({}, make_inputs(("value", value)), context_for(NODE)))


async def test_a_fraction_has_no_value_on_the_integer_output() -> None:
    wrong = r"'v' has no value for its output 'integer', only for 'output' \(0\.5\)"
    with pytest.raises(NodeError, match=wrong) as caught:
        await Number().materialize({"value": 0.5}, "integer", context_for(NODE))
    assert caught.value.code == "no-value"
    edge = make_edge("v", "t", source_handle="integer")
    with pytest.raises(NodeError, match=wrong):
        await result_and_events(
            Number().execute({"value": 0.5}, Inputs(), context_for(NODE, edges=[edge]))
        )


async def test_error_and_link_edges_need_no_integer_value() -> None:
    edges = [
        make_edge("v", "t", source_handle="error"),
        make_edge("v", "t", source_handle="integer", channel=LINK),
    ]
    execution = Number().execute({"value": 0.5}, Inputs(), context_for(NODE, edges=edges))
    result, _ = await result_and_events(execution)
    assert list(result.outputs) == ["output"]


async def test_a_linked_value_node_uses_the_link_into_it() -> None:
    edge = make_edge("s", "v", channel=LINK, target_handle="value")
    context = context_for(NODE, edges=[edge], links={("v", "value"): [DataValue("integer", 8)]})
    assert await Number().materialize({"value": 1}, "output", context) == DataValue("integer", 8)


async def test_the_result_is_a_copy_of_the_data() -> None:
    data = {"value": {"a": [1]}}
    (await JsonValue().materialize(data, "output", context_for(NODE))).value["a"].append(2)
    assert data == {"value": {"a": [1]}}
