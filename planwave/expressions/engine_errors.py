"""Errors of MiniJinja in planwave's words: what failed, and in which part of the template."""

from __future__ import annotations

import re
from typing import Final, Protocol

from planwave.expressions import errors

_MAX_QUOTED: Final = 80
_MAX_DETAIL: Final = 300

_SENTENCES: Final = {
    "BadEscape": (errors.SYNTAX, "a text has an escape that does not exist: {part}"),
    "BadInclude": (errors.FORBIDDEN, "a template cannot load another one: {part}"),
    "BadSerialization": (errors.FAILED, "the value cannot be written as JSON: {part}"),
    "CannotUnpack": (errors.FAILED, "the value does not have one item for each name in {part}"),
    "EvalBlock": (errors.FAILED, "the block cannot be rendered: {part}"),
    "MissingArgument": (errors.FAILED, "an argument is missing in {part}"),
    "NonKey": (errors.FAILED, "this value cannot be a key of an object: {part}"),
    "NonPrimitive": (errors.FAILED, "text, a number or a boolean is needed in {part}"),
    "OutOfFuel": (errors.TIMEOUT, "the template does too much work"),
    "SyntaxError": (errors.SYNTAX, "the template cannot be parsed at {part}"),
    "TemplateNotFound": (errors.FORBIDDEN, "a template cannot load another one: {part}"),
    "TooManyArguments": (errors.FAILED, "too many arguments, or an unknown one, in {part}"),
    "UndefinedError": (errors.UNDEFINED, "{part} is undefined"),
    "UnknownBlock": (errors.FORBIDDEN, "unknown block in {part}"),
    "UnknownFilter": (errors.FORBIDDEN, "unknown filter in {part}"),
    "UnknownFunction": (errors.FORBIDDEN, "unknown function in {part}"),
    "UnknownMethod": (errors.FORBIDDEN, "unknown method in {part}"),
    "UnknownTest": (errors.FORBIDDEN, "unknown test in {part}"),
}
"""The code and the sentence of each kind of error; ``InvalidOperation`` has sentences of its own."""

_OTHER: Final = "the template cannot be rendered with these values"

_TYPES: Final = {
    "a string": "text",
    "bool": "boolean",
    "map": "object",
    "none": "null",
    "sequence": "list",
    "string": "text",
    **dict.fromkeys(("i32", "i64", "i128", "isize", "u32", "u64", "usize"), "integer"),
}
_TYPE_WORDS: Final = re.compile(rf"\b({'|'.join(_TYPES)})\b")
_OPERATOR: Final = re.compile(r"tried to use (\S+) operator on unsupported types (\w+) and (\w+)")
_CALCULATION: Final = re.compile(r"unable to calculate (\S+ (\S+) (\S+))")
_UNDEFINED: Final = re.compile(r"`(.+)` is undefined")


class EngineError(Protocol):
    """The attributes of ``minijinja.TemplateError`` that a description needs."""

    @property
    def kind(self) -> str: ...
    @property
    def detail(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def range(self) -> tuple[int, int] | None: ...


def describe(error: EngineError, source: str) -> tuple[str, str]:
    """Return the code and the message of an error of the engine.

    Args:
        error: The error.
        source: The template or expression.
    """
    part = _part_of(source, error.range)
    code, sentence = _SENTENCES.get(error.kind, (errors.FAILED, _OTHER))
    if error.kind == "InvalidOperation":
        sentence = _operation(error.detail or "", part)
    elif error.kind == "UndefinedError" and (named := _UNDEFINED.fullmatch(error.detail or "")):
        sentence = f"{named[1]} is undefined"
    elif error.kind == "UndefinedError":
        sentence = "a value in {part} is undefined"
    line = f" (line {error.line})" if error.line and error.line > 1 else ""
    return code, sentence.replace("{part}", part or "the template") + line


def _part_of(source: str, span: tuple[int, int] | None) -> str | None:
    """Return the quoted part of a template at a range of bytes, shortened."""
    if span is None:
        return None
    part = " ".join(source.encode()[span[0] : span[1]].decode("utf-8", "ignore").split())
    part = part.removeprefix("{{").lstrip(" .")  # where the range begins too early
    if not part:
        return None
    return f'"{part}"' if len(part) <= _MAX_QUOTED else f'"{part[:_MAX_QUOTED]}…"'


def _operation(detail: str, part: str | None) -> str:
    """Return the sentence of an operation that these values do not have."""
    if (failed := _CALCULATION.fullmatch(detail)) is not None:
        by_zero = failed[2] in ("/", "//", "%") and float(failed[3]) == 0
        return f'{"division by zero" if by_zero else "the result is too large"} in "{failed[1]}"'
    if (failed := _OPERATOR.fullmatch(detail)) is not None:
        sign, left, right = (_TYPES.get(word, word) for word in failed.groups())
        return f"{sign} cannot be applied to {left} and {right} in {{part}}"
    if part is None and not detail:
        return _OTHER
    reason = _TYPE_WORDS.sub(lambda match: _TYPES[match[0]], detail)[:_MAX_DETAIL]
    return "cannot calculate {part}" + (f": {reason}" if reason else "")
