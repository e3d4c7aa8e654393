"""The closed list of filters that run in process: pure, bounded, typed, with literal arguments.

Names and results follow MiniJinja, so that a template has the same result in the worker. Two
differences are deliberate: a value that is not text becomes compact JSON if a filter needs text, and
``tojson`` does not escape for HTML.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

from planwave.errors import TemplateError
from planwave.expressions.errors import FAILED, NUMBER_HINT, TOO_LARGE, UNDEFINED
from planwave.expressions.json_text import Json, to_text
from planwave.validation import json_type

MAX_TEXT = 8 * 1024 * 1024
"""The limit in characters of a filter's result: the hard cap of template output."""
_MAX_DEPTH = 64
"""Levels of the values that ``fromjson`` makes."""


class UndefinedValue:
    """The value of a path that does not exist; only filters with a default accept it."""

    __slots__ = ()


UNDEFINED_VALUE = UndefinedValue()


class Filter(NamedTuple):
    """One filter: its function and the kinds of arguments it takes."""

    run: Callable[..., Json]
    argument_types: tuple[type | tuple[type, ...], ...] = ()
    required: int = 0

    def accepts(self, arguments: tuple[Json, ...]) -> bool:
        """Return whether the filter accepts these literal arguments; if not, the engine renders."""
        if not self.required <= len(arguments) <= len(self.argument_types):
            return False
        pairs = zip(arguments, self.argument_types, strict=False)
        return all(_is_type(argument, kind) for argument, kind in pairs)


def _is_type(argument: Json, kind: type | tuple[type, ...]) -> bool:
    if isinstance(argument, bool):
        return kind is bool or kind is object
    return isinstance(argument, kind)


class FilterCall(NamedTuple):
    """One use of a filter in a template."""

    name: str
    arguments: tuple[Json, ...]

    @property
    def handles_undefined(self) -> bool:
        """Whether the filter accepts the value of a path that does not exist."""
        return self.name in ("default", "d") or (self.name == "fromjson" and bool(self.arguments))


def apply_filters(value: Json, calls: tuple[FilterCall, ...]) -> Json:
    """Apply filters to a value, left to right.

    Raises:
        TemplateError: A filter does not accept its value, or its result is too large.
    """
    for call in calls:
        if value is UNDEFINED_VALUE and not call.handles_undefined:
            raise TemplateError(f"the value of filter {call.name} is undefined", code=UNDEFINED)
        value = FILTERS[call.name].run(value, *call.arguments)
    return value


def wrong_type(name: str, value: Json, expected: str) -> TemplateError:
    """Return the error of a filter that was applied to a value of another type."""
    return TemplateError(
        f"filter {name} needs {expected}, not {json_type(value)}",
        code=FAILED,
        hint="convert the value first",
    )


def not_a_number(value: Json) -> TemplateError:
    """Return the error of a value that a filter cannot read as a number."""
    text = value if isinstance(value, str) else None
    subject = json_type(value) if text is None else repr(text[:60] + "…" * (len(text) > 60))
    return TemplateError(f"{subject} is not a number", code=FAILED, hint=NUMBER_HINT)


def _check_length(length: int) -> None:
    if length > MAX_TEXT:
        raise TemplateError(
            f"a filter's result would be longer than {MAX_TEXT} characters, met {length}",
            code=TOO_LARGE,
        )


def _items(name: str, value: Json) -> list[Json]:
    """Return the items of a list, the keys of an object, the characters of a text; [] for null."""
    if isinstance(value, (list, dict, str)):
        return list(cast(Iterable[Json], value))
    if value is None:
        return []
    raise wrong_type(name, value, "a list, an object or text")


def _first(value: Json) -> Json:
    items = _items("first", value) if value is not None else None
    return _item_at("first", items, 0)


def _last(value: Json) -> Json:
    items = _items("last", value) if isinstance(value, (list, str)) else None
    return _item_at("last", items, -1)


def _item_at(name: str, items: list[Json] | None, index: int) -> Json:
    if items is None:
        raise TemplateError(f"filter {name} needs a list or text", code=FAILED)
    return items[index] if items else UNDEFINED_VALUE


def _length(value: Json) -> int:
    if isinstance(value, (list, dict, str)):
        return len(cast(list[Json], value))
    raise wrong_type("length", value, "a list, an object or text")


def _join(value: Json, separator: str = "") -> str:
    parts = [to_text(item) for item in _items("join", value)]
    _check_length(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _replace(value: Json, old: str, new: str) -> str:
    text = to_text(value)
    _check_length(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def _title(value: Json) -> str:
    """Capitalise words after white space and punctuation, except after an apostrophe."""
    out: list[str] = []
    starts = True
    for char in to_text(value):
        out.append(char.upper() if starts else char.lower())
        starts = char != "'" and not char.isalnum()
    return "".join(out)


def _split(value: Json, separator: str | None = None) -> list[str]:
    if not isinstance(value, str):
        raise wrong_type("split", value, "text")
    if separator == "":
        raise TemplateError("filter split needs a separator that is not empty", code=FAILED)
    return value.split(separator)


def _int(value: Json, default: Json = UNDEFINED_VALUE) -> Json:
    return _number(value, default, lambda number: int(number))


def _float(value: Json, default: Json = UNDEFINED_VALUE) -> Json:
    return _number(value, default, lambda number: float(number))


def _number(value: Json, default: Json, convert: Callable[[int | float], int | float]) -> Json:
    try:
        if value is None and default is UNDEFINED_VALUE:
            return convert(0)
        if isinstance(value, (bool, int, float)):
            return convert(value)
        if isinstance(value, str) and len(value) <= 400:
            return convert(_read_number(value))
    except (ValueError, OverflowError):
        pass
    if default is not UNDEFINED_VALUE:
        return default
    raise not_a_number(value)


def _read_number(text: str) -> int | float:
    stripped = text.strip()
    digits = stripped[1:] if stripped[:1] in ("-", "+") else stripped
    if digits.isascii() and digits.isdigit():
        return int(stripped)
    number = float(stripped)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _round(value: Json, digits: int = 0) -> Json:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong_type("round", value, "a number")
    if isinstance(value, int) or not math.isfinite(value) or abs(digits) > 15:
        return value
    rounded = round(value, digits)
    return int(rounded) if digits <= 0 else rounded


def _abs(value: Json) -> Json:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong_type("abs", value, "a number")
    return abs(value)


def _sort_key(value: Json) -> tuple[int, Any]:
    """Return a key that sorts mixed JSON by type, then by value, ignoring case."""
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, (int, float)):
        return (2, value)
    if isinstance(value, str):
        return (3, value.lower())
    return (4, json.dumps(value, sort_keys=True))


def _sort(value: Json) -> list[Json]:
    return sorted(_items("sort", value), key=_sort_key)


def _unique(value: Json) -> list[Json]:
    by_key: dict[tuple[int, Any], Json] = {}
    for item in _items("unique", value):
        by_key.setdefault(_sort_key(item), item)
    return list(by_key.values())


def _reverse(value: Json) -> Json:
    if value is None:
        return None
    if isinstance(value, str):
        return value[::-1]
    return _items("reverse", value)[::-1]


def _capitalize(value: Json) -> str:
    text = to_text(value)
    return text[:1].upper() + text[1:].lower()


def _list(value: Json) -> list[Json]:
    return _items("list", value)


def _lower(value: Json) -> str:
    return to_text(value).lower()


def _upper(value: Json) -> str:
    return to_text(value).upper()


def _bool(value: Json) -> bool:
    return bool(value)


def _default(value: Json, other: Json = "", falsy: bool = False) -> Json:
    if value is UNDEFINED_VALUE or (falsy and not value):
        return other
    return value


def _trim(value: Json, chars: str | None = None) -> str:
    return to_text(value).strip(chars)


def _tojson(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fromjson(value: Json, default: Json = UNDEFINED_VALUE) -> Json:
    """Return the JSON value in a text; a number, a list or an object stays as it is.

    Args:
        value: The text.
        default: The result where the text is not JSON, or where there is none.

    Raises:
        TemplateError: The text is not JSON, and there is no default.
    """
    if value is None or value is UNDEFINED_VALUE:
        reason = "null is no text"
    elif not isinstance(value, str):
        return value
    else:
        try:
            parsed = json.loads(value, parse_constant=_not_in_json)
            _check_depth(parsed)
        except (ValueError, RecursionError) as error:
            reason = f"it is no JSON: {str(error)[:100]}"
        else:
            return parsed
    if default is not UNDEFINED_VALUE:
        return default
    raise TemplateError(
        f"filter fromjson cannot read its value: {reason}",
        code=FAILED,
        hint="give a default: | fromjson(none)",
    )


def _not_in_json(name: str) -> Json:
    raise ValueError(f"{name} is no number of JSON")


def _check_depth(value: Json) -> None:
    level: list[Json] = [value]
    for _ in range(_MAX_DEPTH):
        inside: list[Json] = []
        for each in level:
            if isinstance(each, dict):
                inside.extend(cast("dict[str, Json]", each).values())
            elif isinstance(each, list):
                inside.extend(cast("list[Json]", each))
        if not inside:
            return
        level = inside
    raise ValueError(f"it is nested deeper than {_MAX_DEPTH} levels")


FILTERS: dict[str, Filter] = {
    "abs": Filter(_abs),
    "bool": Filter(_bool),
    "capitalize": Filter(_capitalize),
    "count": Filter(_length),
    "d": Filter(_default, (object, bool)),
    "default": Filter(_default, (object, bool)),
    "first": Filter(_first),
    "float": Filter(_float, (object,)),
    "fromjson": Filter(fromjson, (object,)),
    "int": Filter(_int, (object,)),
    "join": Filter(_join, (str,)),
    "last": Filter(_last),
    "length": Filter(_length),
    "list": Filter(_list),
    "lower": Filter(_lower),
    "replace": Filter(_replace, (str, str), 2),
    "reverse": Filter(_reverse),
    "round": Filter(_round, (int,)),
    "sort": Filter(_sort),
    "split": Filter(_split, (str,)),
    "string": Filter(to_text),
    "title": Filter(_title),
    "tojson": Filter(_tojson),
    "trim": Filter(_trim, (str,)),
    "unique": Filter(_unique),
    "upper": Filter(_upper),
}
"""The filters that run in process, by name."""
