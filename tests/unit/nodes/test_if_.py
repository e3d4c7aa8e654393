from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.model import Node
from planwave.graph.values import DataValue, Inputs
from planwave.nodes.if_ import If
from tests.fakes.node_context import arrivals, context_for, outcome_of

NODE = Node("i", "if", "I")


def condition(operator: str, value: str) -> dict[str, str]:
    return {"operator": operator, "value": value}


async def branch(value: Any, *conditions: dict[str, str]) -> str:
    data = {"conditions": list(conditions)}
    inputs = Inputs() if value is None else arrivals(value)
    result, _ = await outcome_of(If().execute(data, inputs, context_for(NODE)))
    (handle,) = result.outputs
    return handle


@pytest.mark.parametrize(
    ("value", "conditions", "handle"),
    [
        ("YES", [condition("equal", " yes ")], "condition-0"),
        (" yes", [condition("equal", "yes")], "false"),
        ("oh Yes!", [condition("contains", "yes")], "condition-0"),
        ("no", [condition("contains", "yes")], "false"),
        ("b", [condition("equal", "a"), condition("equal", "b")], "condition-1"),
        ("ab", [condition("contains", "b"), condition("equal", "ab")], "condition-0"),
        ("", [condition("equal", ""), condition("contains", "  ")], "false"),
        ({"Decision": "Go"}, [condition("contains", '"decision":"go"')], "condition-0"),
        (3, [condition("equal", "3")], "condition-0"),
        (None, [condition("contains", "x")], "false"),
    ],
)
async def test_the_first_condition_that_holds_chooses_the_branch(
    value: Any, conditions: list[dict[str, str]], handle: str
) -> None:
    assert await branch(value, *conditions) == handle


async def test_the_input_is_passed_on_unchanged_and_the_check_is_told() -> None:
    data = {"conditions": [condition("equal", "no"), condition("contains", "K")]}
    result, events = await outcome_of(If().execute(data, arrivals({"k": 1}), context_for(NODE)))
    assert result.outputs == {"condition-1": DataValue("any", {"k": 1})}
    (event,) = events
    assert event.event_type == "logic_check"
    assert event.data == {
        "message": 'Condition 1 (equal "no") evaluated as false; '
        'Condition 2 (contains "K") evaluated as true',
        "handle": "condition-1",
    }
