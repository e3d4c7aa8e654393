"""Plain paths: ``input.items[0].name | upper``, parsed and walked here, without an engine.

The walk knows dicts with text keys and lists, nothing else: no attribute, method or property of a
Python object can be reached, whatever the path says.
"""

from __future__ import annotations

import ast
from typing import NamedTuple, cast

from planwave.errors import TemplateError
from planwave.expressions.faults import UNDEFINED, syntax_error
from planwave.expressions.filters import FILTERS, UNDEFINED_VALUE, FilterCall, apply_filters
from planwave.expressions.lexer import Token, tokenize
from planwave.expressions.text import Json

MAX_STEPS = 64
MAX_FILTERS = 16
# fmt: off
KEYWORDS = frozenset((
    "and", "or", "not", "in", "is", "if", "else", "elif", "for", "recursive", "true", "false",
    "none", "True", "False", "None", "break", "continue", "endfor", "endif", "endset", "endmacro",
    "endcall", "endfilter", "endwith",
))
# fmt: on
"""Names that are never variables."""

PathStep = str | int


class ValuePath(NamedTuple):
    """One plain path (or a text literal, then ``root`` is None) and the filters applied to it."""

    source: str
    root: str | None
    steps: tuple[PathStep, ...]
    filters: tuple[FilterCall, ...] = ()
    literal: str = ""


class _TokenReader:
    """Reads tokens from left to right; ``None`` past the end."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> str | None:
        return self._tokens[self._at].text if self._at < len(self._tokens) else None

    def take(self) -> Token | None:
        if self._at >= len(self._tokens):
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def skip(self, text: str) -> bool:
        """Step over one token if it is ``text``."""
        if self.peek() != text:
            return False
        self._at += 1
        return True


class _NeedsEngine(Exception):
    """The expression needs the engine."""


def parse_path(source: str) -> ValuePath | None:
    """Read an expression as a plain path with filters of the closed list; None when it is more.

    Raises:
        TemplateError: ``template-syntax``: empty, or a path or filter chain that is too long.
    """
    reader = _TokenReader(tokenize(source))
    if reader.peek() is None:
        raise syntax_error("the expression is empty")
    try:
        first = reader.take()
        root, literal = _path_root(first)
        steps = () if root is None else _steps(reader)
        filters = _filters(reader)
    except _NeedsEngine:
        return None
    return ValuePath(source, root, steps, filters, literal)


def _path_root(token: Token | None) -> tuple[str | None, str]:
    if token is not None and token.kind == "string":
        return None, _string(token.text)
    if token is None or token.kind != "name" or token.text in KEYWORDS:
        raise _NeedsEngine
    return token.text, ""


def _string(source: str) -> str:
    """Read a text literal; escapes beyond the common ones are left to the engine."""
    body = source[1:-1]
    if "\\" not in body:
        return body
    plain = body.replace("\\\\", "").replace("\\n", "").replace("\\t", "")
    if "\\" in plain.replace("\\'", "").replace('\\"', "") or "\n" in body or "\r" in body:
        raise _NeedsEngine
    return cast(str, ast.literal_eval(source))


def _steps(reader: _TokenReader) -> tuple[PathStep, ...]:
    steps: list[PathStep] = []
    while reader.peek() in (".", "["):
        steps.append(_attribute(reader) if reader.skip(".") else _subscript(reader))
        if len(steps) > MAX_STEPS:
            raise syntax_error(f"a path has more than {MAX_STEPS} steps", hint=None)
    return tuple(steps)


def _attribute(reader: _TokenReader) -> PathStep:
    token = reader.take()
    if token is None or token.kind not in ("name", "number"):
        raise syntax_error('a name is missing after "." in an expression', hint=None)
    return token.text if token.kind == "name" else _index(token)


def _subscript(reader: _TokenReader) -> PathStep:
    reader.skip("[")
    negative = reader.skip("-")
    token = reader.take()
    if token is None or not reader.skip("]"):
        raise _NeedsEngine
    if token.kind == "string" and not negative:
        return _string(token.text)
    index = _index(token)
    return -index if negative else index


def _index(token: Token) -> int:
    # Nine digits are past any list; int() on a megabyte of digits would be slow.
    if token.kind != "number" or not token.text.isascii() or not token.text.isdecimal():
        raise _NeedsEngine
    if len(token.text) > 9:
        raise syntax_error("an index in an expression is too large", hint=None)
    return int(token.text)


def _filters(reader: _TokenReader) -> tuple[FilterCall, ...]:
    calls: list[FilterCall] = []
    while reader.skip("|"):
        token = reader.take()
        if token is None or token.kind != "name":
            raise syntax_error('a filter name is missing after "|"', hint=None)
        arguments = _arguments(reader) if reader.skip("(") else ()
        known = FILTERS.get(token.text)
        if known is None or not known.accepts(arguments):
            raise _NeedsEngine
        calls.append(FilterCall(token.text, arguments))
        if len(calls) > MAX_FILTERS:
            raise syntax_error(f"more than {MAX_FILTERS} filters in a row", hint=None)
    if reader.peek() is not None:
        raise _NeedsEngine
    return tuple(calls)


def _arguments(reader: _TokenReader) -> tuple[Json, ...]:
    arguments: list[Json] = []
    while not reader.skip(")"):
        if arguments and not reader.skip(","):
            raise _NeedsEngine
        arguments.append(_literal(reader))
    return tuple(arguments)


_LITERAL_WORDS: dict[str, Json] = {
    "true": True, "True": True, "false": False, "False": False, "none": None, "None": None,
}  # fmt: skip


def _literal(reader: _TokenReader) -> Json:
    negative = reader.skip("-")
    token = reader.take()
    match token:
        case Token("string", text) if not negative:
            return _string(text)
        case Token("name", text) if text in _LITERAL_WORDS and not negative:
            return _LITERAL_WORDS[text]
        case Token("number", text) if len(text) <= 18 and text.isascii():
            value = int(text) if text.isdecimal() else float(text)
            return -value if negative else value
        case _:
            raise _NeedsEngine


def evaluate_path(path: ValuePath, root: Json) -> Json:
    """Give the value of a plain path. ``root`` is the root's value, or ``UNDEFINED_VALUE``.

    Raises:
        TemplateError: ``template-undefined`` where a step leads nowhere and no ``default`` helps;
            a filter does not fit its value; ``template-too-large``.
    """
    value, walked = (path.literal, 0) if path.root is None else _walk(path, root)
    if value is UNDEFINED_VALUE and not (path.filters and path.filters[0].handles_undefined):
        raise _undefined(path, root, walked)
    result = apply_filters(value, path.filters)
    if result is UNDEFINED_VALUE:
        raise TemplateError(
            f"{{{{ {path.source} }}}} is undefined: nothing is in there",
            code=UNDEFINED,
            hint='add | default("…") at the end',
        )
    return result


def _walk(path: ValuePath, root: Json) -> tuple[Json, int]:
    """Follow the steps; give the value and how many steps led somewhere."""
    value = root
    for walked, step in enumerate(path.steps):
        if value is UNDEFINED_VALUE:
            return value, walked
        value = _child(value, step)
        if value is UNDEFINED_VALUE:
            return value, walked
    return value, len(path.steps)


def _child(value: Json, step: PathStep) -> Json:
    if isinstance(value, dict):
        children = cast(dict[str, Json], value)
        return children.get(step if isinstance(step, str) else str(step), UNDEFINED_VALUE)
    if isinstance(value, list) and isinstance(step, int):
        items = cast(list[Json], value)
        return items[step] if -len(items) <= step < len(items) else UNDEFINED_VALUE
    return UNDEFINED_VALUE


def _undefined(path: ValuePath, root: Json, walked: int) -> TemplateError:
    """Name the first step that leads nowhere, and what is there instead."""
    here = path.root or ""
    if root is UNDEFINED_VALUE:
        return TemplateError(
            f"{here!r} is undefined in {{{{ {path.source} }}}}",
            code=UNDEFINED,
            hint='use input, inputs.<handle>, nodes["id"].output, trigger, goal or default(…)',
        )
    value = root
    for step in path.steps[:walked]:
        value = _child(value, step)
        here += _step_text(step)
    missing = _step_text(path.steps[walked])
    return TemplateError(
        f"{here}{missing} is undefined in {{{{ {path.source} }}}}: {here} {_describe(value)}",
        code=UNDEFINED,
        hint='correct the path, or add | default("…")',
    )


def _step_text(step: PathStep) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{step!r}]"


def _describe(value: Json) -> str:
    if isinstance(value, dict):
        keys = [str(key)[:40] for key in cast(dict[str, Json], value)]
        more = ", …" if len(keys) > 8 else ""
        return f"has {', '.join(keys[:8])}{more}" if keys else "is an empty object"
    if isinstance(value, list):
        return f"is a list of {len(cast(list[Json], value))}"
    if value is None:
        return "is null"
    return "is text" if isinstance(value, str) else "is not an object"
