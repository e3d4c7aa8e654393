from __future__ import annotations

from typing import Any

import pytest

from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue, Graph, Node
from planwave.nodes.library.if_ import If
from planwave.nodes.registry import default_registry
from tests.support.graph.builders import make_edge
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
        ({"age": 9}, [{"field": "age", "operator": "greaterThan", "value": 18}], "false"),
        ({"user": {"name": "Ada"}}, [{"field": "user.name", "operator": "exists"}], "condition-0"),
        ({"user": {}}, [{"field": "user.name", "operator": "notExists"}], "condition-0"),
        ({"user": {}}, [{"field": "user.name", "operator": "notEquals", "value": "x"}], "false"),
        ({"tags": []}, [{"field": "tags", "operator": "isEmpty"}], "condition-0"),
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
        (7, [{"operator": "lessThan", "value": 8}], "condition-0"),
        ([], [{"operator": "isEmpty"}], "condition-0"),
        (None, [{"operator": "exists"}], "false"),
        (None, [{"operator": "notExists"}], "condition-0"),
        ({"a": None}, [{"field": "a", "operator": "equals", "value": None}], "condition-0"),
    ],
)
async def test_fields_and_values_are_compared_as_they_are(
    value: Any, conditions: list[dict[str, Any]], handle: str
) -> None:
    assert await branch(value, *conditions) == handle


async def test_the_check_tells_fields_and_operators_that_compare_with_nothing() -> None:
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


def found(conditions: Any, *handles: str) -> list[tuple[str, str, str]]:
    """Return the findings of an ``if`` whose edges leave through some handles."""
    node = Node("i", "if", "I", data={"conditions": conditions})
    edges = tuple(make_edge("i", f"t{n}", source_handle=h) for n, h in enumerate(handles))
    findings = default_registry().check(node, Graph((node,), edges))
    return [(each.code, each.pointer, each.message) for each in findings]


def test_a_condition_needs_what_its_operator_compares_with() -> None:
    assert found([{"operator": "exists"}, {"operator": "isEmpty"}, {"operator": "notExists"}]) == []
    for operator in ("equals", "equal", "lessThan"):
        (fault,) = found([{"operator": operator}])
        assert fault[:2] == ("invalid-data", "/data/conditions/0/value")
    assert found([{"operator": "equals", "value": None}]) == []


def test_conditions_that_never_hold_are_told() -> None:
    conditions = [
        {"operator": "contains", "value": " "},
        {"operator": "equal", "value": "", "caseSensitive": True},
        {"operator": "equals", "value": ""},
    ]
    (fault,) = found(conditions)
    assert fault[:2] == ("never-matches", "/data/conditions/0/value")


def test_edges_leave_through_the_conditions_there_are() -> None:
    conditions = [{"operator": "exists"}]
    assert found(conditions, "condition-0", "false", "error") == []
    (fault,) = found(conditions, "condition-1")
    assert fault[:2] == ("unknown-handle", "/data/conditions")
    assert "leaves through 'condition-1', but there is only 1 branch" in fault[2]


def test_conditions_may_come_from_templates() -> None:
    assert found("{{ goal }}", "condition-7") == []
    assert found([{"operator": "equals", "value": "{{ goal }}"}]) == []
    (fault,) = found("none")
    assert fault[:2] == ("invalid-data", "/data/conditions")
