"""Typed access to documents of which nothing is known for sure: what has another type counts as missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


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
