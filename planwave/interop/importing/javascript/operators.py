"""The operators of JavaScript, right for every JSON value whose kind is not known."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from planwave.interop.importing.javascript.tokens import Untranslatable
from planwave.interop.importing.javascript.values import (
    BOOLEAN,
    MISSING,
    NULL,
    NUMBER,
    STRING,
    STRUCTURES,
    Value,
    joined,
    number_of,
    text_of,
    truth,
)

_NUMERIC: Final = NUMBER | BOOLEAN | NULL
_NUMBER_TEXT: Final = re.compile(r"\s*(?:[+-]?(?:\d|\.\d|Infinity)|0[xob])|\s*\Z", re.IGNORECASE)
"""Texts that JavaScript may take for a number."""


def unary(operator: str, operand: Value) -> Value:
    """Return ``!operand``, ``-operand`` or ``+operand``."""
    if operator == "!":
        return Value(f"not {truth(operand)}", BOOLEAN)
    if operator == "-" and isinstance(operand.constant, int | float):
        return Value(
            f"-{operand.text}", NUMBER, constant=-operand.constant, is_whole=operand.is_whole
        )
    number = number_of(operand)
    return Value(f"-{number}" if operator == "-" else number, NUMBER, is_whole=operand.is_whole)


def binary(operator: str, left: Value, right: Value) -> Value:
    """Return ``left operator right``."""
    return _BINARY[operator](left, right)


def conditional(test: Value, then: Value, other: Value) -> Value:
    """Return ``test ? then : other``."""
    return _either(truth(test), then, other)


def _either(test: str, then: Value, other: Value) -> Value:
    return Value(
        f"{then.lookup()} if {test} else {other.lookup()}",
        then.kinds | other.kinds,
        is_whole=then.is_whole and other.is_whole,
    )


def _or(left: Value, right: Value) -> Value:
    if left.is_always(STRUCTURES):
        return left
    if left.may_be(STRUCTURES):
        return _either(truth(left), Value(left.guarded(), left.kinds - MISSING), right)
    return Value(
        f"{left.guarded()} or {right.lookup()}",
        (left.kinds - MISSING) | right.kinds,
        is_whole=left.is_whole and right.is_whole,
    )


def _and(left: Value, right: Value) -> Value:
    if left.is_always(BOOLEAN) and right.is_always(BOOLEAN):
        return Value(f"{left.atom} and {right.atom}", BOOLEAN)
    return _either(truth(left), right, Value(left.lookup(), left.kinds - STRUCTURES))


def _nullish(left: Value, right: Value) -> Value:
    if not left.may_be(MISSING):
        return left
    found = Value(left.guarded(), left.kinds - MISSING, is_whole=left.is_whole)
    return _either(f"{left.guarded()} is not none", found, right)


def _strictly_equal(left: Value, right: Value) -> Value:
    return Value(_same(left, right), BOOLEAN)


def _strictly_unequal(left: Value, right: Value) -> Value:
    return Value(f"not ({_same(left, right)})", BOOLEAN)


def _same(left: Value, right: Value) -> str:
    for one, other in ((left, right), (right, left)):
        if one.is_always(frozenset(("undefined",))):
            return f"{_sentinel(other)} == {_SENTINEL}"
        if one.is_always(NULL):
            return f"{other.guarded('0')} is none"
        if one.text in ("true", "false"):
            return f"{other.guarded()} is {one.text}"
    if left.is_always(STRUCTURES) or right.is_always(STRUCTURES):
        raise Untranslatable("a comparison with a list or an object")
    a, b = _sentinel(left), _sentinel(right)
    tests = [f"{a} == {b}"]
    if _mixes_numbers(left, right):
        tests.append(f"({a} is boolean) == ({b} is boolean)")
    shared = left.kinds & right.kinds
    if a != b:
        tests += [f"{a} is not sequence"] * ("array" in shared)
        tests += [f"{a} is not mapping"] * ("object" in shared)
    return " and ".join(tests)


_SENTINEL: Final = '"\\u0000undefined"'


def _sentinel(value: Value) -> str:
    """Return an operand with a text that no value has in place of undefined, which is not null."""
    return value.guarded(_SENTINEL)


def _mixes_numbers(left: Value, right: Value) -> bool:
    """Return whether a boolean may meet a number: planwave has true equal to 1."""
    if _is_other_number(left) or _is_other_number(right):
        return False
    return (left.may_be(BOOLEAN) and right.may_be(NUMBER)) or (
        left.may_be(NUMBER) and right.may_be(BOOLEAN)
    )


def _is_other_number(value: Value) -> bool:
    """Return whether a number is written there that no boolean is equal to."""
    return isinstance(value.constant, int | float) and value.constant not in (0, 1)


def _equal(left: Value, right: Value) -> Value:
    return Value(_loosely(left, right), BOOLEAN)


def _unequal(left: Value, right: Value) -> Value:
    return Value(f"not ({_loosely(left, right)})", BOOLEAN)


def _loosely(left: Value, right: Value) -> str:
    for one, other in ((left, right), (right, left)):
        if one.is_always(MISSING):
            return f"{other.guarded()} is none"
        if isinstance(one.constant, str) and (
            other.is_always(STRING) or not _NUMBER_TEXT.match(one.constant)
        ):
            return f"{other.guarded()} == {one.text}"
        if isinstance(one.constant, int | float) and not other.is_always(NUMBER):
            return _equals_number(other, one, one.constant)
    for kinds in (STRING, NUMBER, BOOLEAN):
        if left.is_always(kinds | MISSING) and right.is_always(kinds | MISSING):
            return f"{left.guarded()} == {right.guarded()}"
    raise Untranslatable("== between values whose types are not known")


def _equals_number(value: Value, number: Value, written: float) -> str:
    """Compare with a number that is written there, which "5" and true may be equal to."""
    other = "1" if written == 0 else "0"
    x = value.guarded()
    found = f"({x} | float({other})) == {number.text}"
    return f'{found} or {x} in ["", []]' if written == 0 else found


def _ordered(operator: str) -> Callable[[Value, Value], Value]:
    def translate(left: Value, right: Value) -> Value:
        return Value(_ordering(operator, left, right), BOOLEAN)

    return translate


_SWAPPED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _ordering(operator: str, left: Value, right: Value) -> str:
    if left.is_always(STRUCTURES) or right.is_always(STRUCTURES):
        raise Untranslatable("a comparison with a list or an object")
    if isinstance(left.constant, int | float) and not isinstance(right.constant, int | float):
        return _ordering(_SWAPPED[operator], right, left)
    if left.is_always(STRING) and right.is_always(STRING):
        return f"{left.atom} {operator} {right.atom}"
    if left.is_always(_NUMERIC) and right.is_always(_NUMERIC):
        return f"{number_of(left)} {operator} {number_of(right)}"
    if isinstance(right.constant, int | float):
        return f"({_as_number(left, _false_default(operator, right.constant))}) {operator} {right.text}"
    numbers = f"({number_of(left)}) {operator} ({number_of(right)})"
    are_texts = [f"{each.atom} is string" for each in (left, right) if not each.is_always(STRING)]
    return f"{left.atom} {operator} {right.atom} if {' and '.join(are_texts)} else {numbers}"


def _as_number(value: Value, default: str) -> str:
    """Return a number; ``default`` where JavaScript has NaN, 0 for null and an empty text."""
    if value.may_be(MISSING | STRING | STRUCTURES):
        return f"{value.guarded(_NOT_A_NUMBER)} | default(0, true) | float({default})"
    return f"{value.atom} | float({default})"


_NOT_A_NUMBER: Final = '"?"'


def _false_default(operator: str, number: float) -> str:
    """Return a number with which the comparison is false, as it is with NaN."""
    return repr({"<": number, ">": number, "<=": number + 1, ">=": number - 1}[operator])


def _plus(left: Value, right: Value) -> Value:
    if left.is_always(STRING) or right.is_always(STRING):
        return joined(left, right)
    if left.is_always(_NUMERIC) and right.is_always(_NUMERIC):
        is_whole = left.is_whole and right.is_whole
        return Value(f"{number_of(left)} + {number_of(right)}", NUMBER, is_whole=is_whole)
    if left.is_always(STRUCTURES) or right.is_always(STRUCTURES):
        raise Untranslatable("+ with a list or an object")
    are_texts = [f"{each.atom} is string" for each in (left, right) if each.may_be(STRING)]
    texts = f"{text_of(left)} ~ {text_of(right)}"
    numbers = f"{number_of(left)} + {number_of(right)}"
    return Value(f"{texts} if {' or '.join(are_texts)} else {numbers}", STRING | NUMBER)


def _arithmetic(operator: str) -> Callable[[Value, Value], Value]:
    def translate(left: Value, right: Value) -> Value:
        is_whole = operator != "/" and left.is_whole and right.is_whole
        return Value(f"{number_of(left)} {operator} {number_of(right)}", NUMBER, is_whole=is_whole)

    return translate


def _remainder(left: Value, right: Value) -> Value:
    """Return a remainder with the sign of the left side."""
    a, b = number_of(left), number_of(right)
    sign = f"(-1 if {a} < 0 else 1)"
    is_whole = left.is_whole and right.is_whole
    return Value(f"({a} | abs) % ({b} | abs) * {sign}", NUMBER, is_whole=is_whole)


_BINARY: Final[Mapping[str, Callable[[Value, Value], Value]]] = MappingProxyType(
    {
        "||": _or,
        "&&": _and,
        "??": _nullish,
        "===": _strictly_equal,
        "!==": _strictly_unequal,
        "==": _equal,
        "!=": _unequal,
        "<": _ordered("<"),
        ">": _ordered(">"),
        "<=": _ordered("<="),
        ">=": _ordered(">="),
        "+": _plus,
        "-": _arithmetic("-"),
        "*": _arithmetic("*"),
        "/": _arithmetic("/"),
        "%": _remainder,
    }
)
