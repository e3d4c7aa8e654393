"""JSON Schemas of other programs, as far as they are schemas: what is none is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_MOST_LEVELS: Final = 24


def usable_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the part of a schema that is certainly valid, and whether that is all of it.

    Args:
        schema: Any object.
    """
    kept = _usable(schema, _MOST_LEVELS)
    return kept, kept == dict(schema)


def _usable(schema: Mapping[str, Any], levels: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for word, value in schema.items():
        if word == "properties" and isinstance(value, dict) and levels:
            parts = cast("dict[str, Any]", value)
            kept[word] = {
                name: _usable(cast("dict[str, Any]", part), levels - 1)
                for name, part in parts.items()
                if isinstance(part, dict)
            }
        elif word in ("items", "additionalProperties") and isinstance(value, dict) and levels:
            kept[word] = _usable(cast("dict[str, Any]", value), levels - 1)
        elif (is_valid := _WORDS.get(word)) is not None and is_valid(value):
            kept[word] = value
    return kept


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        names = cast("list[Any]", value)
        return _are_names(names) and bool(names) and _TYPES.issuperset(names)
    return isinstance(value, str) and value in _TYPES


def _are_names(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    names = cast("list[Any]", value)
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _are_values(value: Any) -> bool:
    return isinstance(value, list) and bool(cast("list[Any]", value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_anything(value: Any) -> bool:
    return True


_WORDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "type": _is_type,
    "required": _are_names,
    "enum": _are_values,
    "const": _is_anything,
    "default": _is_anything,
    "description": _is_text,
    "title": _is_text,
    "additionalProperties": _is_flag,
    "minimum": _is_number,
    "maximum": _is_number,
    "minItems": _is_count,
    "maxItems": _is_count,
    "minLength": _is_count,
    "maxLength": _is_count,
    "uniqueItems": _is_flag,
}
"""The words that are kept, each with the values that it may have."""
