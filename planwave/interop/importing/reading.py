"""Typed access to documents of which nothing is known for sure: what has another type counts as missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NoReturn, cast

_MOST_LEVELS: Final = 32
"""Levels of a JSON text; the graphs around it are nested, too."""


def text_of(document: Mapping[str, Any], name: str) -> str:
    """Return a text; of a number its digits, of anything else ""."""
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return value if isinstance(value, str) else str(value)


def object_of(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object, or an empty one."""
    value = document.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(document: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list, or an empty one."""
    value = document.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects_in(document: Mapping[str, Any], name: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the objects of a list, each with its place in the list."""
    return [(i, item) for i, item in enumerate(list_of(document, name)) if isinstance(item, dict)]


def number_of(document: Mapping[str, Any], name: str) -> float | None:
    """Return a number, or None."""
    value = document.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def position_of(position: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return ``(x, y)`` of ``{"x", "y"}``, or None."""
    x, y = number_of(position, "x"), number_of(position, "y")
    return None if x is None or y is None else (x, y)


def json_of(text: str) -> Any:
    """Return the value of a JSON text that stands in a document.

    Raises:
        ValueError: It is none, or one that no graph holds: nested too deep, or with ``NaN``.
    """
    try:
        value = json.loads(text, parse_constant=_refused)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return value
    raise ValueError("it is nested too deep")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
