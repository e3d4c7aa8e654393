"""Comparing a JSON value with another: the operators that conditions of nodes are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

from planwave.expressions import text_of
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
LOOSE: Final = frozenset({"equal", "contains"})
"""Operators that read both sides as text in which case and space around the wanted text do not
matter, unless a condition says that case does."""
LONE: Final = frozenset({"exists", "notExists", "isEmpty"})
"""Operators that compare with nothing."""

MISSING: Final[Any] = object()
"""Stands for a value that is not there."""


def value_at(value: Json, path: str) -> Json:
    """Give what a dotted path (``user.tags.0``) leads to in a value, or ``MISSING``."""
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = cast("dict[str, Json]", value)[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):  # pyright: ignore[reportUnknownArgumentType]
            value = cast("list[Json]", value)[int(part)]
        else:
            return MISSING
    return value


def holds(operator: Operator, met: Json, wanted: Json, *, case_sensitive: bool | None) -> bool:
    """Say whether a comparison holds.

    Nothing holds of a value that is not there but ``notExists``. Null is there only for ``isEmpty``.

    Args:
        operator: How to compare.
        met: The value looked at, ``MISSING`` where there is none.
        wanted: What it is compared with.
        case_sensitive: Whether case matters in texts; None leaves that to the operator.
    """
    if operator in ("exists", "notExists"):
        return (met is not MISSING and met is not None) == (operator == "exists")
    if met is MISSING:
        return False
    if operator == "isEmpty":
        return met in (None, "", [], {})
    if operator in LOOSE and case_sensitive is None:
        return _holds_loosely(operator, text_of(met).lower(), text_of(wanted).strip().lower())
    if case_sensitive is False:
        met, wanted = _folded(met), _folded(wanted)
    return _COMPARED[operator](met, wanted)


def _holds_loosely(operator: Operator, met: str, wanted: str) -> bool:
    if not wanted:
        return False
    return met == wanted if operator == "equal" else wanted in met


def _folded(value: Json) -> Json:
    """Give a value whose texts are in lower case, at every depth."""
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, list):
        return [_folded(each) for each in cast("list[Json]", value)]
    if isinstance(value, dict):
        return {_folded(k): _folded(v) for k, v in cast("dict[str, Json]", value).items()}
    return value


def _is_same(met: Json, wanted: Json) -> bool:
    """Say whether two values are one: alike as they are, or alike as text where one is a text."""
    if isinstance(met, bool) != isinstance(wanted, bool):
        return isinstance(met, str | bool) and text_of(met) == text_of(wanted)
    return met == wanted or (
        isinstance(met, str) != isinstance(wanted, str) and text_of(met) == text_of(wanted)
    )


def _has(met: Json, wanted: Json) -> bool:
    """Say whether a list has an item, an object a key, or any other value as text a part."""
    if isinstance(met, list):
        return any(_is_same(each, wanted) for each in cast("list[Json]", met))
    if isinstance(met, dict):
        return text_of(wanted) in met
    return text_of(wanted) in text_of(met)


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


def _is_above(met: Json, wanted: Json) -> bool:
    """Compare as numbers where both are, texts that read as numbers too; else texts as texts."""
    left, right = _number(met), _number(wanted)
    if left is not None and right is not None:
        return left > right
    return isinstance(met, str) and isinstance(wanted, str) and met > wanted


_COMPARED: Final[Mapping[str, Callable[[Json, Json], bool]]] = {
    "equal": _is_same,
    "equals": _is_same,
    "notEquals": lambda met, wanted: not _is_same(met, wanted),
    "contains": _has,
    "notContains": lambda met, wanted: not _has(met, wanted),
    "greaterThan": _is_above,
    "lessThan": lambda met, wanted: _is_above(wanted, met),
    "startsWith": lambda met, wanted: text_of(met).startswith(text_of(wanted)),
    "endsWith": lambda met, wanted: text_of(met).endswith(text_of(wanted)),
}
