from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Node
from planwave.nodes.library.if_ import If
from tests.support.nodes.node_checks import check_node, locations
from tests.support.nodes.node_context import context_for, make_inputs, result_and_events

NODE = Node("i", "if", "I")


def condition(operator: str, value: str) -> dict[str, str]:
    return {"operator": operator, "value": value}


async def branch(value: Any, *conditions: dict[str, str]) -> str:
    data = {"conditions": list(conditions)}
    inputs = Inputs() if value is None else make_inputs(value)
    result, _ = await result_and_events(If().execute(data, inputs, context_for(NODE)))
    (handle,) = result.outputs
    return handle


@pytest.mark.parametrize(
    ("value", "conditions", "handle"),
    [
        ("b", [condition("equal", "a"), condition("equal", "b")], "condition-1"),
        ("ab", [condition("contains", "b"), condition("equal", "ab")], "condition-0"),
        ("", [condition("equal", ""), condition("contains", "  ")], "false"),
        (None, [condition("contains", "x")], "false"),
    ],
)
async def test_the_first_condition_that_holds_chooses_the_branch(
    value: Any, conditions: list[dict[str, str]], handle: str
) -> None:
    assert await branch(value, *conditions) == handle


async def test_the_input_is_passed_on_unchanged_and_the_check_is_logged() -> None:
    data = {"conditions": [condition("equal", "no"), condition("contains", "K")]}
    result, events = await result_and_events(
        If().execute(data, make_inputs({"k": 1}), context_for(NODE))
    )
    assert result.outputs == {"condition-1": DataValue("any", {"k": 1})}
    (event,) = events
    assert event.event_type == "logic_check"
    assert event.data == {
        "message": 'Condition 1 (equal "no") evaluated as false; '
        'Condition 2 (contains "K") evaluated as true',
        "handle": "condition-1",
    }


@pytest.mark.parametrize(
    ("value", "conditions", "handle"),
    [
        ({"age": 20}, [{"field": "age", "operator": "greaterThan", "value": 18}], "condition-0"),
        ({"user": {"name": "Ada"}}, [{"field": "user.name", "operator": "exists"}], "condition-0"),
        ({"user": {}}, [{"field": "user.name", "operator": "notExists"}], "condition-0"),
        ({"user": {}}, [{"field": "user.name", "operator": "notEquals", "value": "x"}], "false"),
        (
            {"name": "Ada"},
            [{"field": "name", "operator": "contains", "value": "DA"}],
            "condition-0",
        ),
        (
            {"name": "Ada"},
            [{"field": "name", "operator": "contains", "value": "DA", "caseSensitive": True}],
            "false",
        ),
        ("abc", [{"operator": "startsWith", "value": "b"}, {"operator": "exists"}], "condition-1"),
        (None, [{"operator": "exists"}], "false"),
        (None, [{"operator": "notExists"}], "condition-0"),
        ({"a": None}, [{"field": "a", "operator": "equals", "value": None}], "condition-0"),
    ],
)
async def test_fields_are_looked_up_and_compared_by_their_values(
    value: Any, conditions: list[dict[str, Any]], handle: str
) -> None:
    assert await branch(value, *conditions) == handle


async def test_the_logged_check_names_fields_and_operators_without_a_value() -> None:
    data = {
        "conditions": [
            {"field": "a.b", "operator": "greaterThan", "value": 5},
            {"field": "a", "operator": "isEmpty"},
            {"operator": "exists"},
        ]
    }
    result, (event,) = await result_and_events(
        If().execute(data, make_inputs({"a": {"b": 5}}), context_for(NODE))
    )
    assert list(result.outputs) == ["condition-2"]
    assert event.data["message"] == (
        'Condition 1 (a.b greaterThan "5") evaluated as false; '
        "Condition 2 (a isEmpty) evaluated as false; Condition 3 (exists) evaluated as true"
    )


NO_VALUE = [("invalid-data", "/data/conditions/0/value")]


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ([{"operator": "exists"}, {"operator": "isEmpty"}, {"operator": "notExists"}], []),
        ([{"operator": "equals"}], NO_VALUE),
        ([{"operator": "equal"}], NO_VALUE),
        ([{"operator": "lessThan"}], NO_VALUE),
        ([{"operator": "equals", "value": None}], []),
        ([{"operator": "contains", "value": " "}], [("never-matches", "/data/conditions/0/value")]),
        ([{"operator": "equal", "value": "", "caseSensitive": True}], []),
        ([{"operator": "equals", "value": ""}], []),
        ([{"operator": "equals", "value": "{{ goal }}"}], []),
        ("{{ goal }}", []),
        ("none", [("invalid-data", "/data/conditions")]),
        ([], [("invalid-data", "/data/conditions")]),
        (None, [("missing-required-input", "/data/conditions")]),
    ],
)
def test_conditions_are_checked_against_their_operators(
    conditions: Any, found: list[tuple[str, str]]
) -> None:
    data = {} if conditions is None else {"conditions": conditions}
    assert locations(check_node("if", data)) == found


def test_a_condition_that_never_holds_is_a_warning() -> None:
    (finding,) = check_node("if", {"conditions": [{"operator": "equal", "value": "  "}]})
    assert (finding.code, finding.severity) == ("never-matches", "warning")


def test_an_edge_that_leaves_through_no_condition_is_an_error() -> None:
    data: dict[str, Any] = {"conditions": [{"operator": "exists"}]}
    assert check_node("if", data, outputs=["condition-0", "false", "error"]) == []
    (finding,) = check_node("if", data, outputs=["condition-1"])
    assert (finding.code, finding.pointer) == ("unknown-handle", "/sourceHandle")
    assert finding.message == "'n' has no output 'condition-1'; it has only 1 branch"
    assert finding.hint == "use one of condition-0, false"
    assert check_node("if", {"conditions": "{{ goal }}"}, outputs=["condition-7"]) == []
