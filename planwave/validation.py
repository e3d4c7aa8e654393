"""What is wrong with the shape of a value, in JSON's words: where, and what it has to be.

What comes from outside is read by pydantic, whose sentences speak of Python and do not say where.
Here they are said anew, for requests, settings, and the data of nodes and plans alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_TYPES: Final = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "an array",
    "tuple_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "none_required": "null",
}
_VALUES: Final = {
    "bool_parsing": "true or false",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
}
_LENGTHS: Final = {
    "string_too_short": ("at least", "min_length", "character"),
    "string_too_long": ("at most", "max_length", "character"),
    "too_short": ("at least", "min_length", "item"),
    "too_long": ("at most", "max_length", "item"),
}
_VALIDATOR_PREFIX: Final = "Value error, "
"""What pydantic puts before a message that a validator of ours wrote."""


def describe_error(where: str, error: Mapping[str, Any]) -> str:
    """Say what pydantic found wrong with a value.

    Args:
        where: What the value is called where it came from.
        error: One of ``ValidationError.errors()``, with its context, best with its input, of which
            nothing but its kind is told.
    """
    kind = str(error["type"])
    context: Mapping[str, Any] = error.get("ctx") or {}
    if kind == "missing":
        return f"{where} is required"
    if kind == "extra_forbidden":
        return f"{where} is not known here"
    if kind in _TYPES:
        return f"{where} has to be {_TYPES[kind]}{_actual_type(error)}"
    if kind in _VALUES:
        return f"{where} has to be {_VALUES[kind].format_map(context)}"
    if kind in _LENGTHS:
        bound, name, unit = _LENGTHS[kind]
        count = context[name]
        if (bound, count) == ("at least", 1):
            return f"{where} may not be empty"
        return f"{where} has to have {bound} {count} {unit}{'' if count == 1 else 's'}"
    said = str(error["msg"]).removeprefix(_VALIDATOR_PREFIX)
    return f"{where}: {said[:1].lower()}{said[1:]}"


def json_type(value: object) -> str:
    """Name a JSON value's kind, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "an array"
        case _:
            return "an object"


def _actual_type(error: Mapping[str, Any]) -> str:
    if "input" not in error:
        return ""
    given = error["input"]
    is_near = error["type"] == "int_type" and isinstance(given, float)
    return f", not {given if is_near else json_type(given)}"
