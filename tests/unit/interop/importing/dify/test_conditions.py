"""Conditions of if-else steps: each operator gives what Dify's own evaluation gives."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.interop.importing.dify.conditions import OPERATORS
from planwave.interop.importing.importer import import_text
from planwave.testing import run_sync
from tests.support.interop.dify_apps import app, chain, edge, open_graph_of, start, step

CASES: list[tuple[str, Any, Any, bool]] = [
    ("contains", "a cat", "cat", True),
    ("contains", "a dog", "cat", False),
    ("contains", "", "cat", False),
    ("contains", ["cat", "dog"], "cat", True),
    ("not contains", "a dog", "cat", True),
    ("not contains", "", "cat", True),
    ("not contains", "a cat", "cat", False),
    ("start with", "cats", "cat", True),
    ("start with", "a cat", "cat", False),
    ("start with", None, "cat", False),
    ("end with", "a cat", "cat", True),
    ("end with", "cats", "cat", False),
    ("is", "cat", "cat", True),
    ("is", "Cat", "cat", False),
    ("is", None, "cat", False),
    ("is", True, "true", True),
    ("is", False, True, False),
    ("is not", "dog", "cat", True),
    ("is not", "cat", "cat", False),
    ("is not", None, "cat", False),
    ("empty", "", "", True),
    ("empty", [], "", True),
    ("empty", "x", "", False),
    ("not empty", "x", "", True),
    ("not empty", None, "", False),
    ("in", "cat", ["cat", "dog"], True),
    ("in", "cow", ["cat", "dog"], False),
    ("in", "", ["", "dog"], False),
    ("not in", "cow", ["cat"], True),
    ("not in", "", ["cat"], True),
    ("not in", "cat", '["cat"]', False),
    ("all of", ["a", "b", "c"], ["a", "b"], True),
    ("all of", ["a"], ["a", "b"], False),
    ("all of", [], ["a"], False),
    ("=", 5, "5", True),
    ("=", 5.0, "5", True),
    ("=", None, "0", False),
    ("≠", 4, "5", True),
    ("≠", None, "5", False),
    (">", 6, "5", True),
    (">", 5, "5", False),
    ("<", 4.5, "5", True),
    ("≥", 5, "5", True),
    ("≤", 5, 5, True),
    ("≤", 6, 5, False),
    ("null", None, "", True),
    ("null", "", "", False),
    ("not null", 0, "", True),
    ("exists", {"name": "f"}, "", True),
    ("exists", None, "", False),
    ("not exists", None, "", True),
]


def branch(value: Any, condition: dict[str, Any], **inputs: Any) -> Any:
    """Run an app of one condition; return what its end gives."""
    cases = [{"case_id": "yes", "logical_operator": "and", "conditions": [condition]}]
    ways = [
        step("a", "template-transform", template="yes", variables=[]),
        step("b", "template-transform", template="no", variables=[]),
    ]
    variables = [["a", "output"], ["b", "output"]]
    last = step("c", "variable-aggregator", output_type="string", variables=variables)
    edges = [
        *chain("s", "if"), edge("if", "a", "yes"), edge("if", "b", "false"), edge("a", "c"), edge("b", "c")
    ]  # fmt: skip
    made = import_text(
        app([start("v", "other"), step("if", "if-else", cases=cases), *ways, last], edges)
    )
    assert made.report["summary"]["placeholder"] == 0, made.report
    return run_sync(open_graph_of(made), {"v": value, **inputs}).output


def of(operator: str, value: Any) -> dict[str, Any]:
    return {"comparison_operator": operator, "value": value, "variable_selector": ["s", "v"]}


@pytest.mark.parametrize(("operator", "value", "expected", "holds"), CASES)
def test_an_operator_gives_what_dify_gives(
    operator: str, value: Any, expected: Any, holds: bool
) -> None:
    condition = of(operator, expected) | {"varType": "boolean" if isinstance(value, bool) else ""}
    assert branch(value, condition) == ("yes" if holds else "no")


def test_each_operator_is_tried() -> None:
    assert {operator for operator, *_ in CASES} == OPERATORS


@pytest.mark.parametrize(("value", "other", "expected"), [("x-1", "1", "yes"), ("x-1", "2", "no")])
def test_the_other_side_may_hold_references(value: str, other: str, expected: str) -> None:
    assert branch(value, of("is", "x-{{#s.other#}}"), other=other) == expected


def test_a_number_may_be_compared_with_a_reference() -> None:
    assert branch(3, of("<", "{{#s.other#}}"), other=4) == "yes"


@pytest.mark.parametrize(
    "condition",
    [
        of("like", "a"),
        of("is", ["a"]),
        of(">", "many"),
        of("in", "no list"),
        of("is", "{{#gone.text#}}"),
        of("is", "a") | {"sub_variable_condition": {"conditions": []}},
        of("is", "a") | {"variable_selector": ["gone", "text"]},
    ],
)
def test_what_cannot_be_carried_over_makes_the_step_a_placeholder(
    condition: dict[str, Any],
) -> None:
    cases = [{"case_id": "true", "logical_operator": "and", "conditions": [condition]}]
    made = import_text(app([start("v"), step("if", "if-else", cases=cases)], chain("s", "if")))
    assert made.document["nodes"][1]["type"] == "placeholder"
    assert made.report["lost"]


@pytest.mark.parametrize(
    ("word", "conditions", "expected"),
    [
        ("and", [], "yes"),
        ("or", [], "no"),
        ("or", ["no", "cat"], "yes"),
        ("and", ["no", "cat"], "no"),
    ],
)
def test_conditions_are_joined(word: str, conditions: list[str], expected: str) -> None:
    fields = {
        "logical_operator": word,
        "conditions": [of("is", each) for each in conditions],
    }
    steps = [
        start("v"),
        step("if", "if-else", **fields),
        step("a", "end", outputs=[{"variable": "o", "value_selector": ["s", "v"]}]),
    ]
    made = import_text(app(steps, [*chain("s", "if"), edge("if", "a", "true")]))
    result = run_sync(open_graph_of(made), {"v": "cat"})
    assert result.output == ({"o": "cat"} if expected == "yes" else None)
