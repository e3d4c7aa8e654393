"""start, end, text and parser."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Node
from planwave.nodes.authoring.node_type import NodeType
from planwave.nodes.library.end import End
from planwave.nodes.library.parser import Parser
from planwave.nodes.library.start import Start
from planwave.nodes.library.text import Text
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events


@pytest.mark.parametrize(
    ("node_type", "data", "inputs", "expected"),
    [
        (Start(), {}, Inputs(), DataValue("text", "")),
        (Start(), {"initialInput": None}, Inputs(), DataValue("text", "")),
        (Start(), {"initialInput": "hello"}, Inputs(), DataValue("text", "hello")),
        (Start(), {"initialInput": {"a": 1}}, Inputs(), DataValue("json", {"a": 1})),
        (End(), {}, make_inputs([1, 2]), DataValue("any", [1, 2])),
        (End(), {}, Inputs(), DataValue("text", "")),
        (Text(), {"text": "fixed"}, make_inputs("ignored"), DataValue("text", "fixed")),
        (Text(), {"text": {"a": 1}}, Inputs(), DataValue("text", '{"a":1}')),
        (Text(), {"text": None}, Inputs(), DataValue("text", "")),
        (Text(), {}, make_inputs(("text", 5)), DataValue("text", "5")),
        (Parser(), {"template": [1, "a"]}, make_inputs("x"), DataValue("json", [1, "a"])),
        (Parser(), {"template": "a"}, make_inputs(("topic", "x")), DataValue("text", "a")),
    ],
)
async def test_simple_types_give_their_value(
    node_type: NodeType, data: dict[str, Any], inputs: Inputs, expected: DataValue
) -> None:
    context = context_for(Node("n", node_type.node_type, "N"))
    result, _ = await result_and_events(node_type.execute(data, inputs, context))
    assert result.outputs == {"output": expected}
