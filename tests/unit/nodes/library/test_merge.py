from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.inputs import Inputs
from planwave.graph.model import Arrival, DataValue, Node
from planwave.nodes.library.merge import Merge
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events


async def merged(data: dict[str, Any], inputs: Inputs) -> DataValue:
    context = context_for(Node("m", "merge", "M"))
    result, _ = await result_and_events(Merge().execute(data, inputs, context))
    return result.outputs["output"]


@pytest.mark.parametrize(
    ("values", "together"),
    [((), []), (("a",), ["a"]), (("a", {"k": 1}, None), ["a", {"k": 1}, None]), (([1],), [[1]])],
)
async def test_the_inputs_become_a_list_in_edge_order(values: Any, together: Any) -> None:
    assert await merged({}, make_inputs(*values)) == DataValue("json", together)


async def test_in_object_mode_the_keys_are_the_source_nodes() -> None:
    two = make_inputs("a", 2)
    again = Arrival("e9", "s0", "Source 0", "errors", "input", DataValue("json", []))
    inputs = Inputs((*two.arrivals, again))
    assert await merged({"mode": "object"}, two) == DataValue("json", {"s0": "a", "s1": 2})
    assert await merged({"mode": "object"}, inputs) == DataValue("json", {"s0": ["a", []], "s1": 2})
    assert await merged({"mode": "object"}, Inputs()) == DataValue("json", {})


async def test_in_object_mode_keys_replace_the_ids_of_their_nodes() -> None:
    data = {"mode": "object", "keys": {"s1": "second", "s9": "nothing"}}
    value = await merged(data, make_inputs("a", 2))
    assert value == DataValue("json", {"s0": "a", "second": 2})


async def test_a_wire_into_the_mode_is_not_merged() -> None:
    assert await merged({}, make_inputs("a", ("mode", "object"))) == DataValue("json", {"s0": "a"})


async def test_the_result_is_a_copy_of_the_inputs() -> None:
    value = {"a": [1]}
    result = await merged({}, make_inputs(value))
    result.value[0]["a"].append(2)
    assert value == {"a": [1]}
