"""Comparing a JSON value with another: the operators that conditions of nodes are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, cast

from planwave.expressions import to_text
from planwave.graph.model import Json

Operator = Literal[
    "equal",
    "contains",
    "equals",
    "notEquals",
    "notContains",
    "greaterThan",
    "lessThan",
    "exists",
    "notExists",
    "startsWith",
    "endsWith",
    "isEmpty",
]
LENIENT: Final = frozenset({"equal", "contains"})
"""Operators that read both sides as text in which case and space around the wanted text do not
matter, unless a condition says that case does."""
UNARY: Final = frozenset({"exists", "notExists", "isEmpty"})
"""Operators that compare with nothing."""

MISSING: Final[Any] = object()
"""Stands for a value that is not there."""


def value_at(value: Json, path: Iterable[str]) -> Json:
    """Return the part of a value at some keys and positions (``user``, ``0``), or ``MISSING``."""
    for part in path:
        if isinstance(value, dict) and part in value:
            value = cast("dict[str, Json]", value)[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):  # pyright: ignore[reportUnknownArgumentType]
            value = cast("list[Json]", value)[int(part)]
        else:
            return MISSING
    return value


def evaluate(
    operator: Operator, actual: Json, expected: Json, *, case_sensitive: bool | None
) -> bool:
    """Return whether a comparison holds.

    A missing value satisfies only ``notExists``. Null counts as missing, except for ``isEmpty``.

    Args:
        operator: How to compare.
        actual: The value to test, or ``MISSING``.
        expected: The value to compare with.
        case_sensitive: Whether case matters in texts; None leaves that to the operator.
    """
    if operator in ("exists", "notExists"):
        return (actual is not MISSING and actual is not None) == (operator == "exists")
    if actual is MISSING:
        return False
    if operator == "isEmpty":
        return actual in (None, "", [], {})
    if operator in LENIENT and case_sensitive is None:
        return _evaluate_lenient(
            operator, to_text(actual).lower(), to_text(expected).strip().lower()
        )
    if case_sensitive is False:
        actual, expected = _lowercased(actual), _lowercased(expected)
    return _COMPARISONS[operator](actual, expected)


def _evaluate_lenient(operator: Operator, actual: str, expected: str) -> bool:
    if not expected:
        return False
    return actual == expected if operator == "equal" else expected in actual


def _lowercased(value: Json) -> Json:
    """Return a copy of a value with all its texts in lower case."""
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, list):
        return [_lowercased(each) for each in cast("list[Json]", value)]
    if isinstance(value, dict):
        return {_lowercased(k): _lowercased(v) for k, v in cast("dict[str, Json]", value).items()}
    return value


def _equal(actual: Json, expected: Json) -> bool:
    """Return whether two values are equal, or equal as text if one of them is text."""
    if isinstance(actual, bool) != isinstance(expected, bool):
        return isinstance(actual, str | bool) and to_text(actual) == to_text(expected)
    return actual == expected or (
        isinstance(actual, str) != isinstance(expected, str)
        and to_text(actual) == to_text(expected)
    )


def _contains(actual: Json, expected: Json) -> bool:
    """Return whether a list has an item, an object a key, or another value, as text, a substring."""
    if isinstance(actual, list):
        return any(_equal(each, expected) for each in cast("list[Json]", actual))
    if isinstance(actual, dict):
        return to_text(expected) in actual
    return to_text(expected) in to_text(actual)


def _number(value: Json) -> float | None:
    if isinstance(value, int | float):
        return None if isinstance(value, bool) else value
    if not isinstance(value, str) or "_" in value:
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _greater_than(actual: Json, expected: Json) -> bool:
    """Compare as numbers if both are numbers or numeric texts, else compare two texts."""
    left, right = _number(actual), _number(expected)
    if left is not None and right is not None:
        return left > right
    return isinstance(actual, str) and isinstance(expected, str) and actual > expected


_COMPARISONS: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "equal": _equal,
    "equals": _equal,
    "notEquals": lambda actual, wanted: not _equal(actual, wanted),
    "contains": _contains,
    "notContains": lambda actual, wanted: not _contains(actual, wanted),
    "greaterThan": _greater_than,
    "lessThan": lambda actual, wanted: _greater_than(wanted, actual),
    "startsWith": lambda actual, wanted: to_text(actual).startswith(to_text(wanted)),
    "endsWith": lambda actual, wanted: to_text(actual).endswith(to_text(wanted)),
}
