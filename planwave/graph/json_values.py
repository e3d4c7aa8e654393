"""JSON as Python values: check, copy, measure and point into them, without recursion.

There are two rules, one for each source of a value:

* A *document* (a graph, a form, policies, an answer) is also read and written by other programs,
  so ``json_findings`` and ``checked_copy`` reject what some reader or store cannot keep: NUL
  characters, integers beyond 1e308, more than 64 levels.
* A *value* that nodes pass on is written and read only by the store, which keeps all of JSON.
  ``to_json`` accepts every value that the store returns unchanged, so that no work is lost.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.graph.diagnostics import Diagnostic, limit_exceeded, short_repr
from planwave.graph.model import Json
from planwave.jsonio import MAX_JSON_DEPTH, SCALAR_TYPES
from planwave.validation import described

NO_LIMIT: Final = 1 << 62
"""Stands for "no limit" where comparing with a number is cheaper than testing for None."""

MAX_VALUE_DEPTH: Final = 200
"""Most levels of a value that nodes pass on: JSON readers elsewhere give up at about this depth."""

_INTEGER_BITS: Final = 14_000
"""Python itself refuses to write or read integers of more than 4300 digits."""
_MAX_NUMBER: Final = 10**308


class NotJson(ValueError):
    """A value is not JSON; the text says what it is instead, as in "a set"."""


class JsonLimits(NamedTuple):
    """Limits of a document, and the depth at which the checked value stands in it.

    Attributes:
        depth: Most levels of nesting in the whole document.
        string_bytes: Most bytes in one string.
        levels_above: Levels around the value.
    """

    depth: int = MAX_JSON_DEPTH
    string_bytes: int = NO_LIMIT
    levels_above: int = 0


DEFAULT_LIMITS: Final = JsonLimits()
"""Only the nesting that is always enforced, seen from the document itself."""


class RepeatedKeys(dict[str, Any]):
    """An object that named a key twice; ``names`` says which."""

    names: tuple[str, ...] = ()


_OBJECT_TYPES: Final[tuple[type, ...]] = (dict, RepeatedKeys)
_PLAIN_CONTAINERS: Final[tuple[type, ...]] = (dict, list)
_JSON_CONTAINERS: Final[tuple[type, ...]] = (dict, RepeatedKeys, list)
_EXACT_TYPES: Final[frozenset[type]] = SCALAR_TYPES | {float, dict, list}


def pointer_part(name: object) -> str:
    """Return one step of a JSON pointer, escaped (RFC 6901)."""
    return str(name).replace("~", "~0").replace("/", "~1")


def pointer_of_name(name: object) -> str:
    """Return ``/name`` for a field name of any type, short and printable."""
    spelled = short_repr(name)
    return f"/{pointer_part(spelled[1:-1] if isinstance(name, str) else spelled)}"


def to_json(value: Any) -> Json:
    """Return a value as the store returns it: tuples become lists, subclasses become plain types.

    A value that already has this form is returned itself, not copied.

    Raises:
        NotJson: The value is not JSON, nests deeper than ``MAX_VALUE_DEPTH``, or has a lone surrogate.
    """
    if type(value) is str and value.isascii():  # most results are, or a small number
        return value
    if value is None or (type(value) is int and value.bit_length() < 64):
        return value
    is_exact = True
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        is_exact = is_exact and type(item) in _EXACT_TYPES
        if isinstance(item, (dict, list, tuple)):
            if depth >= MAX_VALUE_DEPTH:
                raise NotJson(f"nested deeper than {MAX_VALUE_DEPTH}")
            if isinstance(item, dict):
                members = cast("dict[Any, Any]", item)
                is_exact = _check_keys(members) and is_exact
                stack.extend((child, depth + 1) for child in members.values())
            else:
                stack.extend((child, depth + 1) for child in cast("list[Any]", item))
        elif (reason := _scalar_error(item)) is not None:
            raise NotJson(reason)
    return value if is_exact else json.loads(json.dumps(value))


def to_json_each(values: Mapping[Any, Any]) -> dict[str, Json]:
    """Return named values, each converted with ``to_json``.

    Raises:
        NotJson: As ``to_json``, or a name is not text.
    """
    named = dict(values)
    _check_keys(named)
    return {str(name): to_json(value) for name, value in named.items()}


def _check_keys(members: dict[Any, Any]) -> bool:
    """Return whether all keys are plain text.

    Raises:
        NotJson: A key is not text, or has a lone surrogate.
    """
    is_exact = True
    for key in members:
        if not isinstance(key, str) or not is_utf8_text(key):
            raise NotJson(f"an object with the key {key!r}")
        is_exact = is_exact and type(key) is str
    return is_exact


def _scalar_error(item: Any) -> str | None:
    if item is None or isinstance(item, str):
        return None if item is None or is_utf8_text(item) else "text with a lone surrogate"
    if isinstance(item, float):
        return None if math.isfinite(item) else f"the number {item}"
    if isinstance(item, int):
        too_long = item.bit_length() > _INTEGER_BITS
        return "an integer of more than 4000 digits" if too_long else None
    return described(item)


def is_utf8_text(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8, so has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def size_of(value: Json) -> int:
    """Return the bytes of a value's compact JSON in UTF-8, with escapes counted as one byte.

    The value is not serialized: an ASCII text costs constant time.
    """
    if not isinstance(value, (dict, list, tuple)):  # most results are texts
        return 2 + _utf8(value) if isinstance(value, str) else len(str(value))
    size = 0
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            size += 2 + _utf8(item)
        elif isinstance(item, dict):
            pairs = cast("dict[str, Json]", item)
            size += max(2, 4 * len(pairs) + 1) + _utf8("".join(pairs))
            stack += pairs.values()
        elif isinstance(item, (list, tuple)):
            items = cast("list[Json]", item)
            size += max(2, len(items) + 1)
            stack += items
        else:  # "True" and "None" are as long as "true" and "null"
            size += len(str(item))
    return size


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def is_storable_text(text: str, max_bytes: int = NO_LIMIT) -> bool:
    """Return whether a string can be stored: no NUL, no lone surrogate, at most ``max_bytes``."""
    if "\0" in text:
        return False
    if text.isascii():  # nearly all are
        return len(text) <= max_bytes
    return is_utf8_text(text) and _utf8(text) <= max_bytes


def checked_copy(value: dict[str, Any], limits: JsonLimits) -> dict[str, Any] | None:
    """Return a deep copy of a JSON object, or None if ``json_findings`` has findings."""
    depth, most, above = limits
    top = value.copy()
    stack: list[tuple[Any, int]] = [(top, depth - above)]
    while stack:
        box, levels = stack.pop()
        named = type(box) in _OBJECT_TYPES
        if levels < 1 or (named and not _are_storable_keys(box, most)):
            return None
        for key, item in box.items() if named else enumerate(box):
            if type(item) is str:
                if not is_storable_text(item, most):
                    return None
            elif type(item) in _PLAIN_CONTAINERS:
                box[key] = inner = item.copy()
                stack.append((inner, levels - 1))
            elif not _is_valid_scalar(item):
                return None
    return top


def _are_storable_keys(box: dict[Any, Any], most: int) -> bool:
    try:
        together = "".join(box)
    except TypeError:
        return False
    if len(together) <= most and is_storable_text(together):
        return True
    return all(is_storable_text(name, most) for name in box)


def _is_valid_scalar(item: object) -> bool:
    if item is None or item is True or item is False:
        return True
    if type(item) is int:
        return -_MAX_NUMBER < item < _MAX_NUMBER
    return type(item) is float and item - item == 0


class _Location(NamedTuple):
    """The location of a value; its pointer is built only for a finding."""

    parent: _Location | None
    name: object

    def pointer(self) -> str:
        parts: list[str] = []
        location: _Location | None = self
        while location is not None:
            parts.append(pointer_part(location.name))
            location = location.parent
        return "".join(f"/{part}" for part in reversed(parts))


def json_findings(
    value: Json, pointer: str = "", limits: JsonLimits = DEFAULT_LIMITS
) -> list[Diagnostic]:
    """Return a finding for each part of a value that is not JSON or cannot be stored.

    Args:
        value: Any Python value.
        pointer: JSON pointer of the value itself.
        limits: Depth and bytes; nesting beyond the depth is reported alone.
    """
    errors: list[Diagnostic] = []
    stack: list[tuple[Any, _Location | None, int]] = [
        (value, None, limits.depth - limits.levels_above)
    ]
    while stack:
        item, location, depth_left = stack.pop()
        if type(item) not in _JSON_CONTAINERS:
            if not _is_valid_leaf(item, limits.string_bytes):
                errors.append(_leaf_error(item, _pointer_text(pointer, location), limits))
            continue
        if depth_left < 1:
            actual = f"more than {limits.depth}"
            where = _pointer_text(pointer, location)
            return [limit_exceeded("json_depth", limits.depth, actual, "nesting", where)]
        named = type(item) in _OBJECT_TYPES
        repeated = type(item) is RepeatedKeys
        if named and (repeated or not _are_storable_keys(item, limits.string_bytes)):
            errors += _key_errors(item, _pointer_text(pointer, location), limits)
        pairs = item.items() if named else enumerate(item)
        stack += reversed(
            [(inner, _Location(location, name), depth_left - 1) for name, inner in pairs]
        )
    return errors


def _pointer_text(pointer: str, location: _Location | None) -> str:
    return pointer + location.pointer() if location else pointer


def _is_valid_leaf(item: object, most: int) -> bool:
    return is_storable_text(item, most) if type(item) is str else _is_valid_scalar(item)


def _key_errors(box: dict[Any, Any], where: str, limits: JsonLimits) -> list[Diagnostic]:
    repeated = box.names if isinstance(box, RepeatedKeys) else ()
    errors = [
        Diagnostic("duplicate-key", "error", f"key {short_repr(name)} appears twice", where)
        for name in repeated
    ]
    for name in box:
        if type(name) is not str:
            message = f"{where or '/'} has the key {short_repr(name)}, which is not text"
            hint = "keys of JSON objects are text"
            errors.append(Diagnostic("not-json-value", "error", message, where, hint=hint))
        elif not is_storable_text(name, limits.string_bytes):
            errors.append(_leaf_error(name, where, limits))
    return errors


def _leaf_error(item: object, where: str, limits: JsonLimits) -> Diagnostic:
    place = where or "the document"
    if type(item) is str:
        if is_storable_text(item):
            actual = len(item.encode("utf-8"))
            return limit_exceeded("string_bytes", limits.string_bytes, actual, "a string", where)
        part = "a NUL character" if "\0" in item else "half a surrogate pair"
        message = f"{place}: text contains {part}, which cannot be stored"
        return Diagnostic("invalid-text", "error", message, where)
    if type(item) in (int, float):
        message = f"{place}: NaN, infinity and numbers beyond 1e308 are not JSON"
        return Diagnostic("invalid-number", "error", message, where)
    message = f"{place} is a Python {type(item).__name__}, not a JSON value"
    hint = "use plain dict, list, str, int, float, bool and None"
    if isinstance(item, type):
        message = f"{place} is the Python class {item.__name__}, not a JSON value"
        hint = _class_hint(item)
    return Diagnostic("not-json-value", "error", message, where, hint=hint)


def _class_hint(kind: type) -> str:
    """Return what to write in place of a class: most are meant as the JSON Schema of their values."""
    name = kind.__name__
    if hasattr(kind, "model_json_schema"):
        return f"write {name}.model_json_schema(), which is the JSON Schema of its values"
    if dataclasses.is_dataclass(kind):
        return f"write pydantic.TypeAdapter({name}).json_schema(), which is the JSON Schema of its values"
    return f"write its name as text: {name!r}"
