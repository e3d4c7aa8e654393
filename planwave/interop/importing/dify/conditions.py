"""Conditions of if-else steps and loops as expressions: one row an operator, as Dify's own evaluation has it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from planwave.interop.importing.dify.values import (
    Missing,
    Read,
    as_list,
    concatenated,
    parts_of,
    selector_of,
)
from planwave.interop.importing.reading import json_of, list_of, objects_in, text_of
from planwave.interop.importing.templates import json_expression

Resolve = Callable[[tuple[str, ...]], Read | Missing]
"""What reads a selector where the condition stands."""


class Condition(NamedTuple):
    """A condition as an expression, or why there is none.

    Attributes:
        expression: It; "" if there is none.
        missing: What could not be carried over.
    """

    expression: str
    missing: Missing | None = None


class _Operands(NamedTuple):
    """What a condition compares: expressions of the value, of the other one, and of that as a number or list."""

    value: str
    text: str
    number: str | None
    items: str | None
    boolean: str | None


_Rule = Callable[[_Operands], str | None]


def _number(operator: str) -> _Rule:
    def rule(of: _Operands) -> str | None:
        if of.number is None:
            return None
        return f"({of.value} is not none and {of.value} {operator} {of.number})"

    return rule


def _is(of: _Operands) -> str:
    if of.boolean is not None:
        return f"{of.value} == {of.boolean}"
    return f"{of.value} == {of.text}"


def _is_not(of: _Operands) -> str:
    other = of.text if of.boolean is None else of.boolean
    return f"({of.value} is not none and {of.value} != {other})"


def _in(of: _Operands) -> str | None:
    return None if of.items is None else f"({of.value} and {of.value} in {of.items})"


def _not_in(of: _Operands) -> str | None:
    return None if of.items is None else f"not ({of.value} and {of.value} in {of.items})"


_OPERATORS: Final[Mapping[str, _Rule]] = MappingProxyType(
    {
        "contains": lambda of: f"({of.value} and {of.text} in {of.value})",
        "not contains": lambda of: f"not ({of.value} and {of.text} in {of.value})",
        "start with": lambda of: f"({of.value} and {of.value}.startswith({of.text}))",
        "end with": lambda of: f"({of.value} and {of.value}.endswith({of.text}))",
        "is": _is,
        "is not": _is_not,
        "empty": lambda of: f"not {of.value}",
        "not empty": lambda of: of.value,
        "in": _in,
        "not in": _not_in,
        "=": _number("=="),
        "≠": _number("!="),
        ">": _number(">"),
        "<": _number("<"),
        "≥": _number(">="),
        "≤": _number("<="),
        "null": lambda of: f"{of.value} is none",
        "not null": lambda of: f"{of.value} is not none",
        "exists": lambda of: f"{of.value} is not none",
        "not exists": lambda of: f"{of.value} is none",
    }
)
_UNARY: Final = frozenset({"empty", "not empty", "null", "not null", "exists", "not exists"})
_TEXTUAL: Final = frozenset({"contains", "not contains", "start with", "end with", "is", "is not"})
_OLDER_NAMES: Final = {"!=": "≠", ">=": "≥", "<=": "≤", "==": "=", "is null": "null"}
_LIST_ONLY: Final = "all of"
OPERATORS: Final = frozenset({*_OPERATORS, _LIST_ONLY})
"""The operators that are translated."""


def conditions_of(
    fields: Mapping[str, Any], resolve: Resolve, conditions: str = "conditions"
) -> Condition:
    """Return the conditions of a case or a loop, joined by its ``logical_operator``."""
    each = [_condition(condition, resolve) for _, condition in objects_in(fields, conditions)]
    if len(each) < len(list_of(fields, conditions)):
        return Condition("", Missing("a condition is no object"))
    for condition in each:
        if condition.missing is not None:
            return condition
    word = text_of(fields, "logical_operator") or "and"
    if word not in ("and", "or"):
        return Condition("", Missing(f"{word!r} is no way to join conditions"))
    if not each:
        return Condition("true" if word == "and" else "false")
    if len(each) == 1:
        return each[0]
    return Condition(f"({f' {word} '.join(one.expression for one in each)})")


def _condition(condition: Mapping[str, Any], resolve: Resolve) -> Condition:
    operator = text_of(condition, "comparison_operator")
    operator = _OLDER_NAMES.get(operator, operator)
    selector = selector_of(condition.get("variable_selector"))
    if operator not in OPERATORS:
        return Condition("", Missing(f"the operator {operator!r} is not known"))
    if condition.get("sub_variable_condition"):
        return Condition("", Missing("it looks into the properties of files"))
    value = resolve(selector)
    if isinstance(value, Missing):
        return Condition("", value)
    if operator in _UNARY:
        of = _Operands(value.operand, "", None, None, None)
        return Condition(_OPERATORS[operator](of) or "")
    expected = _expected(condition, resolve)
    if isinstance(expected, Missing):
        return Condition("", expected)
    if operator == _LIST_ONLY:
        return _all_of(value, condition)
    is_text_missing = operator in _TEXTUAL and not expected.text
    made = None if is_text_missing else _OPERATORS[operator](expected._replace(value=value.operand))
    if made is None:
        return Condition("", Missing(f"{operator} does not fit {condition.get('value')!r}"))
    return Condition(made)


def _expected(condition: Mapping[str, Any], resolve: Resolve) -> _Operands | Missing:
    """Return what a value is compared with; ``value`` is left open."""
    raw = condition.get("value")
    is_boolean = "bool" in text_of(condition, "varType") or isinstance(raw, bool)
    if (items := as_list(raw)) is not None:
        return _Operands("", "", None, json_expression(items), None)
    if isinstance(raw, bool):
        word = "true" if raw else "false"
        return _Operands("", word, None, None, word)
    if not isinstance(raw, str | int | float):
        return Missing(f"{raw!r} cannot be compared with")
    text = raw if isinstance(raw, str) else json.dumps(raw)
    parts: list[str | Read] = []
    for part in parts_of(text):
        read = resolve(part.selector) if part.selector else part.text
        if isinstance(read, Missing):
            return read
        parts.append(read)
    boolean = {"true": "true", "1": "true", "false": "false", "0": "false"}.get(text.lower())
    return _Operands(
        "",
        _as_text(parts),
        _as_number(text, parts),
        _as_items(text),
        boolean if is_boolean else None,
    )


def _as_text(parts: list[str | Read]) -> str:
    if len(parts) == 1 and isinstance(parts[0], Read) and parts[0].kind != "text":
        return f"({parts[0].operand} | string)"
    return concatenated(parts)


def _as_number(text: str, parts: list[str | Read]) -> str | None:
    if any(isinstance(part, Read) for part in parts):
        return f"({concatenated(parts)} | float)"
    with suppress(ValueError):
        return str(int(text))
    with suppress(ValueError):
        number = float(text)
        return repr(number) if number - number == 0 else None
    return None


def _as_items(text: str) -> str | None:
    """Return a list that is written as JSON."""
    with suppress(ValueError):
        items = as_list(json_of(text))
        return None if items is None else json_expression(items)
    return None


def _all_of(value: Read, condition: Mapping[str, Any]) -> Condition:
    raw = condition.get("value")
    items = as_list(raw) or [raw]
    texts = [json_expression(item) for item in items]
    if not all(texts):
        return Condition("", Missing(f"{raw!r} cannot be compared with"))
    each = [f"{text} in {value.operand}" for text in texts]
    return Condition(f"({' and '.join([value.operand, *each])})")
