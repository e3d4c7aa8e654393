"""The syntax of JavaScript expressions: a Pratt parser with a closed list of operators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from planwave.interop.importing.javascript.tokens import (
    MAX_LENGTH,
    Token,
    Untranslatable,
    next_token,
)

MAX_NESTING: Final = 24
"""How deep an expression may be nested: Python's stack and that of planwave's templates are not deeper."""
MAX_OPERATIONS: Final = 100
"""Operators, fields and calls of one expression."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, a number, true, false or null."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Undefined:
    """``undefined``."""


@dataclass(frozen=True, slots=True)
class Name:
    """A variable, such as ``$json``."""

    name: str


@dataclass(frozen=True, slots=True)
class Member:
    """A field: ``owner.name``, ``owner[key]``, ``owner?.name``."""

    owner: Node
    key: Node
    is_optional: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A call: ``called(arguments)``."""

    called: Node
    arguments: tuple[Node, ...]
    is_optional: bool


@dataclass(frozen=True, slots=True)
class Unary:
    """``!operand``, ``-operand``, ``+operand``."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """``left operator right``."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Conditional:
    """``test ? then : other``."""

    test: Node
    then: Node
    other: Node


@dataclass(frozen=True, slots=True)
class Array:
    """``[items]``."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Object:
    """``{key: value}``; a spread has the key None."""

    fields: tuple[tuple[str | None, Node], ...]


@dataclass(frozen=True, slots=True)
class TemplateLiteral:
    """A text in backticks, in parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression that stands for one text, such as ``/,/g``."""

    text: str
    is_global: bool


Node = (
    Constant
    | Undefined
    | Name
    | Member
    | Call
    | Unary
    | Binary
    | Conditional
    | Array
    | Object
    | TemplateLiteral
    | Pattern
)

_PATTERN: Final = re.compile(
    r"/(?P<text>(?:[^/\\\[\](){}.*+?^$|\n]|\\[ntr/\\\[\](){}.*+?^$|\"'`,:;=<>!#%&@~_-])+)/(?P<flags>[gmsu]*)(?![A-Za-z])"
)
"""A regular expression without anything that means more than itself."""
_ESCAPED: Final = re.compile(r"\\(.)")
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r"}
_BINARY: Final[Mapping[str, int]] = {
    "??": 2, "||": 3, "&&": 4, "==": 8, "!=": 8, "===": 8, "!==": 8, "<": 9, ">": 9, "<=": 9, ">=": 9,
    "+": 11, "-": 11, "*": 12, "/": 12, "%": 12,
}  # fmt: skip
_CONDITIONAL: Final = 1
_UNARY_POWER: Final = 14
_UNARY: Final = frozenset("!-+")
_WORDS: Final[Mapping[str, Node]] = {
    "true": Constant(True),
    "false": Constant(False),
    "null": Constant(None),
    "undefined": Undefined(),
}
_REFUSED: Final[Mapping[str, str]] = {
    "=>": "an arrow function", "=": "an assignment", "+=": "an assignment", "-=": "an assignment",
    "*=": "an assignment", "/=": "an assignment", "%=": "an assignment", "**=": "an assignment",
    "&&=": "an assignment", "||=": "an assignment", "??=": "an assignment", "<<=": "an assignment",
    ">>=": "an assignment", ">>>=": "an assignment", "&=": "an assignment", "|=": "an assignment",
    "^=": "an assignment", "++": "an assignment", "--": "an assignment", ";": "several statements",
    "...": "a spread", "&": "an operator on bits", "|": "an operator on bits",
    "^": "an operator on bits", "~": "an operator on bits", "<<": "an operator on bits",
    ">>": "an operator on bits", ">>>": "an operator on bits", "**": "a power", ",": "a sequence",
    "/": "a regular expression", "function": "a function", "new": "the operator new",
    "typeof": "the operator typeof", "void": "the operator void", "delete": "the operator delete",
    "in": "the operator in", "instanceof": "the operator instanceof", "await": "await",
    "async": "a function", "this": "this", "class": "a class", "let": "a statement",
    "const": "a statement", "var": "a statement", "return": "a statement", "if": "a statement",
    "for": "a statement", "while": "a statement", "throw": "a statement", "yield": "yield",
    "NaN": "NaN", "Infinity": "Infinity", "super": "super", "import": "import",
}  # fmt: skip
"""Operators and words that are not read, and what they are called."""


@lru_cache(maxsize=256)
def parse(text: str) -> Node:
    """Parse one expression.

    Raises:
        Untranslatable: The text is none, or has parts that are not read; it holds the whole text.
    """
    if len(text) > MAX_LENGTH:
        raise Untranslatable(f"it has more than {MAX_LENGTH} characters", text)
    try:
        return _Parser(text, 0, len(text)).whole()
    except Untranslatable as error:
        raise Untranslatable(error.reason, text) from None


class _Parser:
    def __init__(self, text: str, start: int, end: int, depth: int = 0) -> None:
        self._text, self._end, self._depth = text, end, depth
        self._operations = 0
        self._token = next_token(text, start, end)

    def whole(self) -> Node:
        node = self._expression(0)
        if self._token.kind != "end":
            raise self._unexpected()
        return node

    def _expression(self, power: int) -> Node:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise Untranslatable("it is nested too deep")
        left = self._postfix(self._primary())
        while (operator := self._operator()) is not None:
            if operator == "?" and power <= _CONDITIONAL:
                left = self._conditional(left)
                continue
            binding = _BINARY.get(operator)
            if binding is None or binding <= power:
                break
            self._advance_over_operation()
            right = self._expression(binding)
            here = "||" if operator == "&&" else operator
            if {here, *_operators_of(left), *_operators_of(right)} >= {"??", "||"}:
                raise Untranslatable("?? and || without brackets")
            left = Binary(operator, left, right)
        self._depth -= 1
        return left

    def _conditional(self, test: Node) -> Node:
        self._advance()
        then = self._expression(0)
        self._expect(":")
        return Conditional(test, then, self._expression(0))

    def _primary(self) -> Node:
        token = self._token
        match token.kind:
            case "number" | "string":
                self._advance()
                return Constant(token.value)
            case "template":
                self._advance()
                return self._template(token)
            case "name":
                name = str(token.value)
                if name in _REFUSED:
                    raise Untranslatable(_REFUSED[name])
                self._advance()
                return _WORDS.get(name) or Name(name)
            case _:
                return self._bracket(str(token.value))

    def _bracket(self, operator: str) -> Node:
        if operator in _UNARY:
            self._advance()
            return Unary(operator, self._expression(_UNARY_POWER))
        if operator == "(":
            self._advance()
            if self._operator() == ")":
                raise Untranslatable("an arrow function")
            node = self._expression(0)
            self._expect(")")
            return _Bracketed(node) if isinstance(node, Binary) else node
        if operator == "[":
            self._advance()
            return Array(self._list("]"))
        if operator == "{":
            return self._object()
        if operator in ("/", "/="):
            return self._pattern()
        raise self._unexpected()

    def _pattern(self) -> Node:
        """Read a regular expression; one that stands for more than one text is refused."""
        match = _PATTERN.match(self._text, self._token.start, self._end)
        if match is None:
            raise Untranslatable(_REFUSED["/"])
        text = _ESCAPED.sub(lambda each: _CONTROLS.get(each[1], each[1]), match["text"])
        self._token = next_token(self._text, match.end(), self._end)
        return Pattern(text, "g" in match["flags"])

    def _postfix(self, node: Node) -> Node:
        while (operator := self._operator()) in (".", "?.", "[", "("):
            self._advance_over_operation()
            is_optional = operator == "?."
            if is_optional and self._operator() in ("[", "("):
                operator = str(self._token.value)
                self._advance()
            if operator == "[":
                key = self._expression(0)
                self._expect("]")
                node = Member(node, key, is_optional)
            elif operator == "(":
                node = Call(node, self._list(")"), is_optional)
            elif self._token.kind == "name":
                node = Member(node, Constant(str(self._token.value)), is_optional)
                self._advance()
            else:
                raise self._unexpected()
        if self._token.kind == "template":
            raise Untranslatable("a tagged template literal")
        return node

    def _list(self, closing: str) -> tuple[Node, ...]:
        items = list[Node]()
        while self._operator() != closing:
            items.append(self._expression(0))
            if self._operator() != closing:
                self._expect(",")
        self._advance()
        return tuple(items)

    def _object(self) -> Node:
        self._advance()
        fields = list[tuple[str | None, Node]]()
        while self._operator() != "}":
            fields.append(self._field())
            if self._operator() != "}":
                self._expect(",")
        self._advance()
        return Object(tuple(fields))

    def _field(self) -> tuple[str | None, Node]:
        token = self._token
        self._advance()
        if token.value == "..." and token.kind == "operator":
            return None, self._expression(0)
        if token.kind not in ("name", "string", "number") or isinstance(token.value, float):
            raise Untranslatable("a computed key of an object")
        key = str(token.value)
        if token.kind == "name" and self._operator() in (",", "}"):
            if key in _REFUSED:
                raise Untranslatable(_REFUSED[key])
            return key, _WORDS.get(key) or Name(key)
        self._expect(":")
        return key, self._expression(0)

    def _template(self, token: Token) -> Node:
        parts = list[Node]()
        for part in token.parts:
            if isinstance(part, str):
                parts.append(Constant(part))
            else:
                parts.append(_Parser(self._text, *part, depth=self._depth).whole())
        return TemplateLiteral(tuple(parts))

    def _operator(self) -> str | None:
        return str(self._token.value) if self._token.kind == "operator" else None

    def _advance(self) -> None:
        self._token = next_token(self._text, self._token.end, self._end)

    def _advance_over_operation(self) -> None:
        self._operations += 1
        if self._operations > MAX_OPERATIONS:
            raise Untranslatable(f"it has more than {MAX_OPERATIONS} operations")
        self._advance()

    def _expect(self, operator: str) -> None:
        if self._operator() != operator:
            raise self._unexpected()
        self._advance()

    def _unexpected(self) -> Untranslatable:
        value = str(self._token.value)
        if self._token.kind == "end":
            return Untranslatable("it is not complete")
        if self._token.kind in ("name", "operator") and value in _REFUSED:
            return Untranslatable(_REFUSED[value])
        return Untranslatable(f"{value!r} is not expected there")


class _Bracketed(Binary):
    """An operation in brackets, which may stand beside any other."""

    def __init__(self, inner: Binary) -> None:
        Binary.__init__(self, inner.operator, inner.left, inner.right)


def _operators_of(node: Node) -> tuple[str, ...]:
    """Return the operator of an operation that has no brackets, or none."""
    if not isinstance(node, Binary) or isinstance(node, _Bracketed):
        return ()
    return ("||",) if node.operator == "&&" else (node.operator,)
