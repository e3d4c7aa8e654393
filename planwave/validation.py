"""Messages for pydantic's validation errors, in JSON's terms: the location and the expected value.

Pydantic's own messages use Python's terms and do not name the location. Requests, settings and the
data of nodes and plans use the messages made here.
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
    "date_type": "a date",
    "datetime_type": "a date and time",
    "time_type": "a time",
    "bytes_type": "text",
    "set_type": "an array",
    "frozen_set_type": "an array",
    "dataclass_type": "an object",
    "dataclass_exact_type": "an object",
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
"""Prefix that pydantic adds to the message of a custom validator."""


def describe_error(where: str, error: Mapping[str, Any]) -> str:
    """Return a message for one of pydantic's validation errors.

    Args:
        where: The name of the value in its document or request.
        error: One of ``ValidationError.errors()``, with its context and, if possible, its input;
            only the type of the input is shown.
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
    if kind == "union_tag_not_found":
        return f"{where}: {context['discriminator']} is required"
    if kind == "union_tag_invalid":
        expected, tag = context["expected_tags"], context["tag"]
        return f"{where}: {context['discriminator']} has to be one of {expected}, not {tag!r}"
    message = str(error["msg"]).removeprefix(_VALIDATOR_PREFIX)
    return f"{where}: {message[:1].lower()}{message[1:]}"


def json_type(value: object) -> str:
    """Return the name of a JSON value's type, for messages."""
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
        case Mapping():
            return "an object"
        case _:
            return described(value)


def described(value: object) -> str:
    """Return the name of a Python value's type with its article, for messages: "a date"."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _actual_type(error: Mapping[str, Any]) -> str:
    if "input" not in error:
        return ""
    value = error["input"]
    is_fraction = error["type"] == "int_type" and isinstance(value, float)
    return f", not {value if is_fraction else json_type(value)}"
