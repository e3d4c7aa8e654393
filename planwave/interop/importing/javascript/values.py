"""Planwave expressions with what is known of their values, so that each translation is right for all of them."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Final, Literal

from planwave.interop.importing.javascript.tokens import Untranslatable
from planwave.interop.importing.templates import quoted

Kind = str
"""``string``, ``number``, ``boolean``, ``null``, ``undefined``, ``array`` or ``object``."""

ANY: Final[frozenset[Kind]] = frozenset(("string", "number", "boolean", "null", "array", "object"))
"""What JSON may be."""
MISSING: Final[frozenset[Kind]] = frozenset(("null", "undefined"))
STRING: Final[frozenset[Kind]] = frozenset(("string",))
NUMBER: Final[frozenset[Kind]] = frozenset(("number",))
BOOLEAN: Final[frozenset[Kind]] = frozenset(("boolean",))
NULL: Final[frozenset[Kind]] = frozenset(("null",))
ARRAY: Final[frozenset[Kind]] = frozenset(("array",))
OBJECT: Final[frozenset[Kind]] = frozenset(("object",))
STRUCTURES: Final[frozenset[Kind]] = frozenset(("array", "object"))
MAX_CHARACTERS: Final = 8_000
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_METHODS: Final = frozenset(("keys", "values", "items", "get", "count", "index"))
"""Fields that planwave's template engine takes for methods where an object lacks them."""
_UNDEFINED: Final = '"undefined"'
_ATOM: Final = re.compile(r"[\w.]+(?:\[(?:\d+|\"[^\"\\\]]*\")\]|\.\w+)*\Z|\"[^\"\\]*\"\Z")


@dataclass(frozen=True, slots=True)
class Value:
    """An expression of planwave's templates that gives the value of one in JavaScript.

    Attributes:
        text: The expression. Where the value may be undefined, it fails there: see ``guarded``.
        kinds: What the value may be.
        owner: Of the field of something: that.
        step: Of a field: its key, or an expression in brackets for one that is calculated.
        plain: The expression as one path with filters, which planwave reads without the engine; None
            if it is more than that.
        pieces: Of texts joined to one: the parts.
        constant: Of a text or a number that is written there: itself.
        is_whole: Whether a number is written without a fraction.
        is_path: Whether it is a path alone.
    """

    text: str
    kinds: frozenset[Kind] = ANY
    owner: Value | None = None
    step: str | int | Value | None = None
    plain: str | None = None
    pieces: tuple[str, ...] = ()
    constant: str | int | float | None = None
    is_whole: bool = False
    is_path: bool = False

    def __post_init__(self) -> None:
        if len(self.text) > MAX_CHARACTERS:
            raise Untranslatable(f"its translation has more than {MAX_CHARACTERS} characters")

    @property
    def atom(self) -> str:
        """The expression as an operand."""
        return bracketed(self.text)

    def may_be(self, kinds: Set[Kind]) -> bool:
        """Return whether it may be of one of these kinds."""
        return not self.kinds.isdisjoint(kinds)

    def is_always(self, kinds: Set[Kind]) -> bool:
        """Return whether it is of one of these kinds."""
        return self.kinds <= kinds

    def guarded(self, default: str = "none") -> str:
        """Return an operand that gives ``default`` where JavaScript has undefined."""
        if "undefined" not in self.kinds:
            return self.atom
        if self.is_always({"undefined"}):
            return default
        return f"({self.lookup()} | default({default}))"

    def lookup(self) -> str:
        """Return an operand that is undefined, and does not fail, where JavaScript has undefined."""
        if self.owner is None or self.step is None or "undefined" not in self.kinds:
            return self.atom
        return _access(self.owner.guarded("{}"), self.step)

    def field(self, key: str | int | Value) -> Value:
        """Return a field of it."""
        plain = None
        if self.is_path and not isinstance(key, Value):
            is_name = isinstance(key, str) and _NAME.match(key)
            plain = f"{self.plain}{f'.{key}' if is_name else f'[{_key(key)}]'}"
        return Value(
            _access(self.atom, key),
            ANY | {"undefined"},
            owner=self,
            step=key,
            plain=plain,
            is_path=plain is not None,
        )

    def result(self) -> Value:
        """Return it with null in place of undefined, as the value of a whole expression."""
        if "undefined" not in self.kinds:
            return self
        # Without the engine, a text has no characters by number.
        is_plain = self.plain is not None and not isinstance(self.step, int)
        guard = " | default(none)" if self.is_path else ""
        plain = f"{self.plain}{guard}" if is_plain else None
        return Value(self.guarded(), (self.kinds - {"undefined"}) | {"null"}, plain=plain)


def bracketed(text: str) -> str:
    """Return an expression as an operand: in brackets, unless it is a path or a literal."""
    if _ATOM.match(text) or (text.startswith("(") and _closes_last(text)):
        return text
    return f"({text})"


def _closes_last(text: str) -> bool:
    """Return whether the bracket that a text begins with is closed by its last character."""
    depth, quote, position = 0, "", 0
    while position < len(text):
        character = text[position]
        if quote:
            position += character == "\\"
            quote = "" if character == quote else quote
        elif character == '"':
            quote = character
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                return position == len(text) - 1
        position += 1
    return False


def _access(owner: str, key: str | int | Value) -> str:
    if isinstance(key, Value):
        return f"{owner}[{key.text}]"
    if isinstance(key, str) and key in _METHODS:
        there = f"{owner} is mapping and {quoted(key)} in ({owner}.keys() | list)"
        return f"({owner}.get({quoted(key)}) if {there})"
    if isinstance(key, str) and _NAME.match(key) and not key.startswith("_"):
        return f"{owner}.{key}"
    return f"{owner}[{_key(key)}]"


def _key(key: str | int) -> str:
    return str(key) if isinstance(key, int) else quoted(key)


def constant(value: str | float | bool | None) -> Value:
    """Return a literal."""
    if value is None:
        return Value("none", NULL)
    if isinstance(value, bool):
        return Value("true" if value else "false", BOOLEAN)
    if isinstance(value, str):
        return Value(quoted(value), STRING, constant=value)
    if isinstance(value, float) and value.is_integer():
        return Value(f"{value!r}", NUMBER, constant=value)
    return Value(repr(value), NUMBER, constant=value, is_whole=isinstance(value, int))


def undefined() -> Value:
    """Return ``undefined``."""
    return Value("none if false", frozenset(("undefined",)))


def structure(text: str, kind: Literal["array", "object"]) -> Value:
    """Return a list or an object that is written there."""
    return Value(text, frozenset((kind,)))


def path(text: str, kinds: frozenset[Kind] = ANY) -> Value:
    """Return a path of planwave, such as ``input`` or ``nodes["a"].output``."""
    return Value(text, kinds, plain=text, is_path=True)


def truth(value: Value) -> str:
    """Return a condition that holds where JavaScript takes a value for true."""
    if value.is_always(STRUCTURES):
        return "true"
    operand = value.guarded()
    tests = [operand]
    if "array" in value.kinds:
        tests.append(f"{operand} is sequence")
    if "object" in value.kinds:
        tests.append(f"{operand} is mapping")
    return operand if len(tests) == 1 else f"({' or '.join(tests)})"


def text_of(value: Value) -> str:
    """Return an operand that gives what ``String(value)`` gives, as a part of a text."""
    if value.is_always(STRING):
        return value.atom
    if value.is_always(frozenset(("undefined",))):
        return '"undefined"'
    if value.is_always(NUMBER):
        x = value.atom
        return x if value.is_whole else f"({x} | int if {x} == {x} | int else {x})"
    operand = value.guarded('"undefined"')
    if value.is_always(BOOLEAN | NULL):
        return f"({operand} | tojson)"
    cases = list[str]()
    if value.may_be(STRING | {"undefined"}):
        cases.append(f"{operand} if {operand} is string else ")
    if "array" in value.kinds:
        cases.append(f'{operand} | join(",") if {operand} is sequence else ')
    if "object" in value.kinds:
        cases.append(f'"[object Object]" if {operand} is mapping else ')
    if value.may_be(NUMBER) and not (value.is_whole or value.is_path or value.owner):
        is_whole = (
            f"{operand} is number and {operand} is not boolean and {operand} == {operand} | int"
        )
        cases.append(f"{operand} | int if {is_whole} else ")
    return f"({''.join(cases)}{operand} | tojson)"


def joined(*values: Value) -> Value:
    """Return the text that values joined to one text give."""
    pieces = list[str]()
    for value in values:
        pieces += value.pieces or (text_of(value),)
    if len(pieces) == 1 and not values[0].is_always(STRING):
        pieces.append('""')
    return Value(" ~ ".join(pieces), STRING, pieces=tuple(pieces))


def number_of(value: Value) -> str:
    """Return an operand that gives ``Number(value)``; it fails where JavaScript gives NaN."""
    if value.is_always(NUMBER):
        return value.atom
    if value.is_always(STRUCTURES | {"undefined"}):
        raise Untranslatable("arithmetic with what is no number")
    # Without the default, planwave takes undefined for 0; the text fails, as it is no number.
    return f"({value.guarded(_UNDEFINED)} | float)"
