"""Values that one step of an app reads of another: planwave expressions, and when they are there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from planwave.interop.importing.conversion import Code
from planwave.interop.importing.templates import inserted, literal, path, quoted

ValueKind = Literal["text", "whole", "list", "any"]
"""What is known of a value: ``whole`` for a whole number, ``list`` for a list, ``any`` where nothing is."""
PRINTED_ALIKE: Final = frozenset({"text", "whole"})
"""Kinds of values that are written into texts here as there."""

REFERENCE: Final = re.compile(r"\{\{#([^#{}\n]{1,400})#\}\}")
_SELECTOR: Final = re.compile(r"[A-Za-z0-9_-]{1,50}(?:\.[A-Za-z_][A-Za-z0-9_]{0,59}){1,10}\Z")
CONTEXT: Final = ("context",)
"""The reference to what a model step was given from a search."""


class Read(NamedTuple):
    """An expression of planwave that reads a value.

    Attributes:
        expression: The value, where it is there.
        guard: An expression that says whether it is there; None where it always is.
        kind: What is known of it.
    """

    expression: str
    guard: str | None = None
    kind: ValueKind = "any"

    def field(self, fields: Sequence[str | int]) -> Read:
        """Return what reads a field of a field of the value."""
        if not fields:
            return self
        whole = self.expression
        return Read(path(whole if _is_path(whole) else f"({whole})", fields), self.guard)

    def else_(self, other: str) -> str:
        """Return an expression with another value where it is not there."""
        if self.guard is None:
            return self.expression
        return f"({self.expression} if {self.guard} else {other})"

    @property
    def operand(self) -> str:
        """The value as a part of a larger expression."""
        return self.expression if _is_path(self.expression) else f"({self.expression})"


class Missing(NamedTuple):
    """Why a value cannot be read."""

    message: str
    code: Code = "import-expression"


class TemplatePart(NamedTuple):
    """A part of a text of an app: literal, or a reference.

    Attributes:
        text: The text as it stands there.
        selector: What it refers to; empty for a literal part.
    """

    text: str
    selector: tuple[str, ...] = ()


def parts_of(text: str) -> Iterator[TemplatePart]:
    """Yield the parts of a text with references such as ``{{#1001.text#}}``."""
    position = 0
    for match in REFERENCE.finditer(text):
        if match.start() > position:
            yield TemplatePart(text[position : match.start()])
        yield TemplatePart(match[0], _selector_in(match[1].strip()))
        position = match.end()
    if position < len(text):
        yield TemplatePart(text[position:])


def _selector_in(text: str) -> tuple[str, ...]:
    if _SELECTOR.match(text):
        return tuple(text.split("."))
    return (text,)


def template_of(parts: Sequence[str | Read], missing: str | None = None) -> str:
    """Return a template of literal texts and values.

    Args:
        parts: Texts, as they are to be read, and values.
        missing: An expression in place of values that are not there; None to fail then.
    """
    made: list[str] = []
    for number, part in enumerate(parts):
        if isinstance(part, Read):
            made.append(inserted(part.expression if missing is None else part.else_(missing)))
            continue
        text = literal(part)
        if text.endswith("{") and number + 1 < len(parts):
            text = f"{text[:-1]}{{{{ '{{' }}}}"  # what follows begins with a brace, too
        made.append(text)
    return "".join(made)


def concatenated(parts: Sequence[str | Read]) -> str:
    """Return an expression of the text that parts make together."""
    if not parts:
        return '""'
    if len(parts) == 1:
        first = parts[0]
        return first.operand if isinstance(first, Read) else quoted(first)
    each = (part.operand if isinstance(part, Read) else quoted(part) for part in parts)
    return f"({' ~ '.join(each)})"


def selector_of(value: object) -> tuple[str, ...]:
    """Return a selector as the file has it, ``["1001", "text"]``; () for anything else."""
    if not isinstance(value, list):
        return ()
    items = cast("list[Any]", value)
    if not items or not all(isinstance(item, str | int) for item in items):
        return ()
    return tuple(map(str, items))


def as_list(value: object) -> list[Any] | None:
    """Return a list; None for anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def _is_path(expression: str) -> bool:
    return re.fullmatch(r'[A-Za-z_]\w*(?:\.\w+|\["[^"\\]*"\]|\[\d+\])*', expression) is not None
