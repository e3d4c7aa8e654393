from __future__ import annotations

from typing import Any, get_args

import pytest

from planwave.nodes.conditions import MISSING, Operator, evaluate, value_at


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("name", "Ada"),
        ("tags.1", "b"),
        ("tags.2", MISSING),
        ("tags.-1", MISSING),
        ("tags.x", MISSING),
        ("tags", ["a", "b"]),
        ("deep.0", "key"),
        ("name.first", MISSING),
        ("nope", MISSING),
        ("none", None),
        ("", MISSING),
    ],
)
def test_a_dotted_path_leads_into_objects_and_lists(path: str, found: Any) -> None:
    value = {"name": "Ada", "tags": ["a", "b"], "deep": {"0": "key"}, "none": None}
    at = value_at(value, path.split("."))
    assert at == found or at is found


CASES = [
    # (operator, met, wanted, holds)
    ("equals", "Yes", "Yes", True),
    ("equals", "Yes", "yes", False),
    ("equals", " Yes", "Yes", False),
    ("equals", 5, 5.0, True),
    ("equals", "5", 5, True),
    ("equals", 5, "5", True),
    ("equals", True, 1, False),
    ("equals", 1, True, False),
    ("equals", True, "true", True),
    ("equals", "false", False, True),
    ("equals", {"a": [1]}, {"a": [1]}, True),
    ("equals", {"a": [1]}, '{"a":[1]}', True),
    ("equals", None, None, True),
    ("equals", "", "", True),
    ("notEquals", "a", "b", True),
    ("notEquals", "a", "a", False),
    ("contains", ["a", "b"], "B", True),
    ("notContains", "abc", "b", False),
    ("notContains", "abc", "B", True),
    ("notContains", ["a", "b"], "c", True),
    ("notContains", [1, 2], "2", False),
    ("notContains", {"key": 1}, "key", False),
    ("notContains", {"key": 1}, "other", True),
    ("greaterThan", 3, 2, True),
    ("greaterThan", 2, 3, False),
    ("greaterThan", 3, 3, False),
    ("greaterThan", "10", "9", True),
    ("greaterThan", "10", 9, True),
    ("greaterThan", "b", "a", True),
    ("greaterThan", "2026-02-01", "2026-01-31", True),
    ("greaterThan", True, 0, False),
    ("greaterThan", [1], 0, False),
    ("greaterThan", "nan", 0, False),
    ("greaterThan", "1_000", 1, False),
    ("greaterThan", 2**60 + 1, 2**60, True),
    ("lessThan", 1.5, 2, True),
    ("lessThan", 2, 1.5, False),
    ("lessThan", "a", 2, False),
    ("startsWith", "Hello", "He", True),
    ("startsWith", "Hello", "he", False),
    ("startsWith", 1234, 12, True),
    ("endsWith", "Hello", "lo", True),
    ("endsWith", "Hello", "lO", False),
    ("isEmpty", "", None, True),
    ("isEmpty", None, None, True),
    ("isEmpty", [], None, True),
    ("isEmpty", {}, None, True),
    ("isEmpty", 0, None, False),
    ("isEmpty", False, None, False),
    ("isEmpty", " ", None, False),
    ("exists", 0, None, True),
    ("exists", "", None, True),
    ("exists", None, None, False),
    ("notExists", None, None, True),
    ("notExists", 0, None, False),
    # These two compare texts and never match an empty one.
    ("equal", "YES", " yes ", True),
    ("equal", " yes", "yes", False),
    ("equal", "", "", False),
    ("equal", 5, 5, True),
    ("contains", "oh Yes!", "yes", True),
    ("contains", {"Go": 1}, '"go":1', True),
    ("contains", "abc", "  ", False),
]


@pytest.mark.parametrize(("operator", "value", "expected", "held"), CASES)
def test_each_operator_compares_values(
    operator: Any, value: Any, expected: Any, held: bool
) -> None:
    assert evaluate(operator, value, expected, case_sensitive=None) is held


@pytest.mark.parametrize(
    ("operator", "value", "expected", "case_sensitive", "held"),
    [
        ("equals", "Yes", "yes", False, True),
        ("equals", {"A": ["B"]}, {"a": ["b"]}, False, True),
        ("equals", "Yes", "yes", True, False),
        ("startsWith", "Hello", "he", False, True),
        ("endsWith", "Hello", "LO", False, True),
        ("notContains", ["A"], "a", False, False),
        ("greaterThan", "B", "a", False, True),
        ("greaterThan", "B", "a", True, False),
        ("equal", "Yes", "yes", True, False),
        ("equal", "yes", " yes ", True, False),
        ("equal", "", "", True, True),
        ("contains", "Yes", "yes", True, False),
        ("contains", "Yes", "ye", False, True),
        ("contains", ["Yes"], "yes", False, True),
        ("contains", "abc", "", True, True),
    ],
)
def test_case_sensitivity_can_be_set(
    operator: Any, value: Any, expected: Any, case_sensitive: bool, held: bool
) -> None:
    assert evaluate(operator, value, expected, case_sensitive=case_sensitive) is held


@pytest.mark.parametrize("operator", get_args(Operator))
@pytest.mark.parametrize("case_sensitive", [None, True, False])
def test_for_a_missing_value_only_not_exists_holds(operator: Any, case_sensitive: Any) -> None:
    held = evaluate(operator, MISSING, "x", case_sensitive=case_sensitive)
    assert held == (operator == "notExists")
