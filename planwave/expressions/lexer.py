"""Cut a text into literal parts, ``{{ … }}``, ``{% … %}`` and ``{# … #}``; cut those into tokens.

One pass, linear in the text, no recursion. Strings inside delimiters hide delimiters, as they do in
MiniJinja, so this file and the worker agree on where an expression ends.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from planwave.expressions.faults import syntax_error

MAX_NESTING = 64
"""Brackets in one expression, and blocks in one template; MiniJinja itself stops near 150."""

SegmentKind = Literal["text", "expression", "block", "comment", "raw"]


class Segment(NamedTuple):
    """One part of a template. ``source`` is the text, or what stands between the delimiters."""

    kind: SegmentKind
    source: str
    trims: bool = False
    """The delimiters carry whitespace control (``-`` or ``+``)."""


class Token(NamedTuple):
    """One token of an expression: ``node`` is name, number, string or op."""

    kind: str
    text: str


_OPENING = re.compile(r"\{\{|\{%|\{#")
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_INSIDE = re.compile(rf"(?s:{_STRING})|['\"]|[-+]?%\}}|-?\}}\}}|[()\[\]{{}}]")
_RAW_END = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_TOKEN = re.compile(
    rf"\s+|(?P<name>[^\W\d]\w*)|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    rf"|(?P<string>(?s:{_STRING}))|(?P<op>==|!=|<=|>=|//|\*\*|['\"](?s:.*)|[^\s\w])"
)
# A quote that starts no string takes the rest, else each further quote would scan to the end.
_PAIRS = {")": "(", "]": "[", "}": "{"}


def has_template(text: str) -> bool:
    """Tell whether a text holds anything but literal characters."""
    return "{" in text and _OPENING.search(text) is not None


def split(text: str) -> list[Segment]:
    """Cut a template into segments, in order; empty literals are left out.

    Raises:
        TemplateError: ``template-syntax``: something is opened and not closed, or nested too deep.
    """
    segments: list[Segment] = []
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        if opening.start() > at:
            segments.append(Segment("text", text[at : opening.start()]))
        if opening.group() == "{#":
            at = _comment_end(text, opening.end())
            segments.append(Segment("comment", ""))
            continue
        segment, at = _delimited(text, opening)
        if segment.kind == "block" and segment.source.split(None, 1)[:1] == ["raw"]:
            segment, at = _raw(text, at)
        segments.append(segment)
    if at < len(text):
        segments.append(Segment("text", text[at:]))
    return segments


def _comment_end(text: str, start: int) -> int:
    end = text.find("#}", start)
    if end < 0:
        raise syntax_error("a comment {# is never closed by #}")
    return end + 2


def _raw(text: str, start: int) -> tuple[Segment, int]:
    end = _RAW_END.search(text, start)
    if end is None:
        raise syntax_error("{% raw %} is never closed by {% endraw %}")
    return Segment("raw", text[start : end.start()]), end.end()


def _delimited(text: str, opening: re.Match[str]) -> tuple[Segment, int]:
    """Give the segment that starts at ``opening`` and the place after it."""
    is_block = opening.group() == "{%"
    closing = "%}" if is_block else "}}"
    start = opening.end()
    opened: list[str] = []
    at = start
    while (found := _INSIDE.search(text, at)) is not None:
        mark = found.group()
        at = found.end()
        if mark.endswith(closing) and mark[0] not in "'\"" and not opened:
            inner = text[start : found.start()]
            trims = len(mark) > 2 or inner[:1] in ("-", "+")
            inner = inner[1:] if inner[:1] in ("-", "+") else inner
            return Segment("block" if is_block else "expression", inner.strip(), trims), at
        if mark.endswith("}}") and mark[0] not in "'\"":
            # Braces of a map literal stand where the end mark could be: take them one by one.
            at = found.end() - 1
            mark = "}"
        _track_bracket(mark, opened)
    raise syntax_error(f"{opening.group()} is never closed by {closing}")


def _track_bracket(mark: str, opened: list[str]) -> None:
    """Follow one bracket or quote inside an expression."""
    if mark in ("'", '"'):
        raise syntax_error("a string in an expression is never closed", hint=None)
    if mark in "([{":
        opened.append(mark)
        if len(opened) > MAX_NESTING:
            raise syntax_error(f"brackets are nested deeper than {MAX_NESTING}", hint=None)
    elif mark in _PAIRS and (not opened or opened.pop() != _PAIRS[mark]):
        raise syntax_error(f"{mark!r} closes nothing", hint=None)


def tokenize(source: str) -> list[Token]:
    """Cut an expression or block into tokens, without white space; any character has a token."""
    return [
        Token(match.lastgroup, match.group())
        for match in _TOKEN.finditer(source)
        if match.lastgroup is not None
    ]
