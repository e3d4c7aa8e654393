"""Conditions of n8n's if, filter and switch as expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from planwave.interop.importing.javascript import operators
from planwave.interop.importing.javascript.values import (
    NUMBER,
    STRING,
    Value,
    constant,
    number_of,
    text_of,
)
from planwave.interop.importing.n8n.fields import Fields
from planwave.interop.importing.reading import object_of, objects_in
from planwave.interop.importing.reading import text_of as read_text

_Comparison = Callable[[Value, Value], str]


def _text_equals(left: Value, right: Value) -> str:
    return f"{left.guarded()} == {right.guarded()}"


def _method(name: str) -> _Comparison:
    def compare(left: Value, right: Value) -> str:
        return f"{_text(left)}.{name}({text_of(right)})"

    return compare


def _text(value: Value) -> str:
    """Return a text; nothing is an empty one."""
    if value.is_always(STRING):
        return value.atom
    return f'({value.guarded(chr(34) * 2)} | default("", true) | string)'


def _contains(left: Value, right: Value) -> str:
    return f"{text_of(right)} in {_text(left)}"


def _in_list(left: Value, right: Value) -> str:
    return f"{right.guarded()} in {left.guarded('[]')}"


def _ordered(operator: str) -> _Comparison:
    def compare(left: Value, right: Value) -> str:
        if isinstance(right.constant, int | float) or left.is_always(NUMBER):
            return operators.binary(operator, left, right).text
        return f"{number_of(left)} {operator} {number_of(right)}"

    return compare


def _number_equals(left: Value, right: Value) -> str:
    if isinstance(right.constant, int | float):
        return f"{left.guarded()} == {right.text}"
    return f"{number_of(left)} == {number_of(right)}"


def _not(compare: _Comparison) -> _Comparison:
    return lambda left, right: f"not ({compare(left, right)})"


def _exists(left: Value, right: Value) -> str:
    return f"{left.guarded()} is not none"


def _empty(left: Value, right: Value) -> str:
    return f"not {left.guarded()}"


def _absent(left: Value, right: Value) -> str:
    """Return whether a number or a truth value is empty: neither 0 nor false is."""
    return f'{left.guarded()} in [none, ""]'


def _length(operator: str) -> _Comparison:
    return lambda left, right: f"({left.guarded('[]')} | length) {operator} {number_of(right)}"


def _is(value: bool) -> _Comparison:
    return lambda left, right: f"{left.guarded()} is {'true' if value else 'false'}"


_COMMON: Final = {
    "exists": _exists, "notExists": _not(_exists), "empty": _empty, "notEmpty": _not(_empty),
    "isEmpty": _empty, "isNotEmpty": _not(_empty),
}  # fmt: skip
_SINGLE: Final = {
    **_COMMON, "empty": _absent, "notEmpty": _not(_absent), "isEmpty": _absent,
    "isNotEmpty": _not(_absent),
}  # fmt: skip
_BY_TYPE: Final[Mapping[str, Mapping[str, _Comparison]]] = MappingProxyType(
    {
        "string": {
            "equals": _text_equals, "notEquals": _not(_text_equals), "equal": _text_equals,
            "notEqual": _not(_text_equals), "contains": _contains, "notContains": _not(_contains),
            "startsWith": _method("startswith"), "notStartsWith": _not(_method("startswith")),
            "endsWith": _method("endswith"), "notEndsWith": _not(_method("endswith")), **_COMMON,
        },
        "number": {
            "equals": _number_equals, "notEquals": _not(_number_equals), "equal": _number_equals,
            "notEqual": _not(_number_equals), "gt": _ordered(">"), "lt": _ordered("<"), "gte": _ordered(">="),
            "lte": _ordered("<="), "larger": _ordered(">"), "smaller": _ordered("<"),
            "largerEqual": _ordered(">="), "smallerEqual": _ordered("<="), **_SINGLE,
        },
        "boolean": {
            "true": _is(True), "false": _is(False), "equals": _text_equals, "equal": _text_equals,
            "notEquals": _not(_text_equals), "notEqual": _not(_text_equals), **_SINGLE,
        },
        "array": {
            "contains": _in_list, "notContains": _not(_in_list), "lengthEquals": _length("=="),
            "lengthNotEquals": _length("!="), "lengthGt": _length(">"), "lengthLt": _length("<"),
            "lengthGte": _length(">="), "lengthLte": _length("<="), **_COMMON,
        },
        "object": _COMMON,
    }
)  # fmt: skip


def condition_of(fields: Fields, given: Any, pointer: str) -> str:
    """Return an expression that is true where the conditions hold, in the form since version 2 of if."""
    conditions = object_of({"given": given}, "given")
    options = object_of(conditions, "options")
    is_sensitive = options.get("caseSensitive") is not False
    parts = list[str]()
    for number, each in objects_in(conditions, "conditions"):
        operator = object_of(each, "operator")
        place = f"{pointer}/conditions/{number}"
        parts.append(
            _comparison(
                fields,
                (read_text(operator, "type"), read_text(operator, "operation")),
                (each.get("leftValue"), each.get("rightValue")),
                place,
                ("leftValue", "rightValue"),
                is_sensitive,
            )
        )
    return _combined(parts, read_text(conditions, "combinator") == "or", fields, given, pointer)


def old_condition_of(fields: Fields, parameters: Mapping[str, Any], pointer: str) -> str:
    """Return the same of version 1: ``{string: [{value1, operation, value2}]}``."""
    given, parts = object_of(parameters, "conditions"), list[str]()
    for kind in given:
        for number, each in objects_in(given, kind):
            default = "smaller" if kind == "number" else "equal"
            parts.append(
                _comparison(
                    fields,
                    (kind, read_text(each, "operation") or default),
                    (each.get("value1"), each.get("value2")),
                    f"{pointer}/conditions/{kind}/{number}",
                    ("value1", "value2"),
                    True,
                )
            )
    is_any = read_text(parameters, "combineOperation") == "any"
    return _combined(parts, is_any, fields, dict(given), f"{pointer}/conditions")


def rule_of(
    fields: Fields,
    kind: str,
    operation: str,
    values: tuple[Any, Any],
    pointer: str,
) -> str:
    """Return one comparison of an older switch."""
    return _comparison(fields, (kind, operation), values, pointer, ("", "value2"), True)


def _comparison(
    fields: Fields,
    operator: tuple[str, str],
    values: tuple[Any, Any],
    pointer: str,
    names: tuple[str, str],
    is_sensitive: bool,
) -> str:
    kind, operation = operator
    compare = _BY_TYPE.get(kind, {}).get(operation)
    if compare is None:
        fields.lose(f"the condition {kind}.{operation}", f"{kind}.{operation}", pointer)
        return "false"
    left, right = (
        fields.translated("" if value is None else value, f"{pointer}/{name}".rstrip("/"))
        for value, name in zip(values, names, strict=True)
    )
    if kind == "number" and isinstance(right.constant, str):
        right = _as_number(right.constant) or right
    if kind == "boolean" and right.constant in ("true", "false"):
        right = constant(right.constant == "true")
    if not is_sensitive and kind == "string":
        left, right = (Value(f"{_text(each)} | lower", STRING) for each in (left, right))
    return compare(left, right)


def _as_number(text: str) -> Value | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return constant(int(number) if number.is_integer() else number)


def _combined(parts: list[str], is_any: bool, fields: Fields, given: Any, pointer: str) -> str:
    if not parts:
        fields.lose("a condition without any comparison", str(given), pointer)
        return "false"
    if len(parts) == 1:  # it stands before an "if" of its own
        return f"({parts[0]})" if " if " in parts[0] else parts[0]
    return (" or " if is_any else " and ").join(f"({part})" for part in parts)
