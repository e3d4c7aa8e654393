"""The syntax of templates: segments and tokens, plain paths, block tags, known names, variables.

Each pass is linear in the text and without recursion. Delimiters inside strings are ignored, as in
MiniJinja, so this module and the render worker agree on the end of an expression. Unknown filters
and tests are found before a run; a test compares both lists with the installed engine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, NamedTuple, cast

from planwave.errors import TemplateError
from planwave.expressions.errors import FORBIDDEN, syntax_error
from planwave.expressions.filters import FILTERS, FilterCall
from planwave.expressions.json_text import Json
from planwave.expressions.paths import PathStep, ValuePath

MAX_NESTING = 64
"""Brackets in one expression, and blocks in one template; MiniJinja itself stops near 150."""

SegmentKind = Literal["text", "expression", "block", "comment", "raw"]


class Segment(NamedTuple):
    """One part of a template. ``source`` is the text, or the text between the delimiters."""

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
# An unclosed quote takes the rest of the text; else each further quote would scan to the end.
_PAIRS = {")": "(", "]": "[", "}": "{"}


def has_template(text: str) -> bool:
    """Return whether a text contains a template delimiter."""
    return "{" in text and _OPENING.search(text) is not None


def split(text: str) -> list[Segment]:
    """Split a template into segments, in order, without empty literals.

    Raises:
        TemplateError: ``template-syntax``: a delimiter or bracket is not closed, or nested too deep.
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
    """Return the segment that starts at ``opening`` and the position after it."""
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
            # These braces may close a map literal instead of the expression: take one at a time.
            at = found.end() - 1
            mark = "}"
        _track_bracket(mark, opened)
    raise syntax_error(f"{opening.group()} is never closed by {closing}")


def _track_bracket(mark: str, opened: list[str]) -> None:
    """Record one bracket or quote inside an expression."""
    if mark in ("'", '"'):
        raise syntax_error("a string in an expression is never closed", hint=None)
    if mark in "([{":
        opened.append(mark)
        if len(opened) > MAX_NESTING:
            raise syntax_error(f"brackets are nested deeper than {MAX_NESTING}", hint=None)
    elif mark in _PAIRS and (not opened or opened.pop() != _PAIRS[mark]):
        raise syntax_error(f"{mark!r} closes nothing", hint=None)


def tokenize(source: str) -> list[Token]:
    """Split an expression or block into tokens, without white space; every character is kept."""
    return [
        Token(match.lastgroup, match.group())
        for match in _TOKEN.finditer(source)
        if match.lastgroup is not None
    ]


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


class _TokenReader:
    """A reader of tokens from left to right; ``None`` past the end."""

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
        """Consume the next token if it is ``text``; return whether it was."""
        if self.peek() != text:
            return False
        self._at += 1
        return True


class _NeedsEngine(Exception):
    """The expression is not a plain path and needs the engine."""


def parse_path(source: str) -> ValuePath | None:
    """Parse an expression as a plain path with in-process filters; return None if it is more.

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
    """Return the value of a text literal; literals with rare escapes need the engine."""
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
    # Nine digits exceed any list; int() on a megabyte of digits would be slow.
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


_CLOSERS = {
    "if": "endif",
    "for": "endfor",
    "macro": "endmacro",
    "call": "endcall",
    "filter": "endfilter",
    "with": "endwith",
    "set": "endset",
}
_INNER_TAGS = {"else": ("if", "for"), "elif": ("if",)}
_LOOP_TAGS = ("break", "continue")
_FORBIDDEN_TAGS = frozenset(("include", "import", "from", "extends", "block"))
# Possessive: a long run of spaces must not be tried in every split.
_ASSIGNMENT = re.compile(r"set\b[\w\s.,(]*+\)?\s*+=(?!=)")
_TAG = re.compile(r"\w+")


def check_blocks(segments: Iterable[Segment]) -> None:
    """Check every ``{% … %}`` of one template.

    Raises:
        TemplateError: ``template-forbidden`` for tags that load other templates; else
            ``template-syntax``, naming the tag.
    """
    opened: list[str] = []
    for segment in segments:
        if segment.kind != "block":
            continue
        match = _TAG.match(segment.source)
        if match is None:
            raise syntax_error("a block {% %} names no tag")
        _check_tag(match.group(), segment.source, opened)
    if opened:
        raise syntax_error(f"{{% {opened[-1]} %}} is never closed by {_closing_tag(opened[-1])}")


def _closing_tag(tag: str) -> str:
    return f"{{% {_CLOSERS[tag]} %}}"


def _check_tag(tag: str, source: str, opened: list[str]) -> None:
    if tag in _FORBIDDEN_TAGS:
        raise TemplateError(
            f"{{% {tag} %}} is not allowed: a template cannot load another one",
            code=FORBIDDEN,
            hint="write the text here, or pass it in from another step",
        )
    if tag in _CLOSERS:
        if tag == "set" and _ASSIGNMENT.match(source):
            return
        opened.append(tag)
        if len(opened) > MAX_NESTING:
            raise syntax_error(f"blocks are nested deeper than {MAX_NESTING}", hint=None)
        return
    _check_inner_tag(tag, opened)


def _check_inner_tag(tag: str, opened: list[str]) -> None:
    """Check a tag that is only allowed inside another block."""
    inside = opened[-1] if opened else None
    if tag in _INNER_TAGS:
        if inside not in _INNER_TAGS[tag]:
            raise syntax_error(f"{{% {tag} %}} stands outside of its block", hint=None)
    elif tag in _LOOP_TAGS:
        if "for" not in opened:
            raise syntax_error(f"{{% {tag} %}} stands outside of a loop", hint=None)
    elif tag in _CLOSERS.values():
        if inside is None or _CLOSERS[inside] != tag:
            expected = f"expected {_closing_tag(inside)}" if inside else "no block is open"
            raise syntax_error(f"{{% {tag} %}} closes no block here ({expected})", hint=None)
        opened.pop()
    else:
        known = ", ".join(_CLOSERS)
        raise syntax_error(f"unknown tag {{% {tag} %}}", hint=f"known tags: {known}, raw")


# fmt: off
ENGINE_FILTERS = frozenset((
    "abs", "attr", "batch", "bool", "capitalize", "chain", "count", "d", "default", "dictsort", "e",
    "escape", "filesizeformat", "first", "float", "format", "groupby", "indent", "int", "items",
    "join", "last", "length", "lines", "list", "lower", "map", "max", "min", "pluralize", "pprint",
    "reject", "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "slice",
    "sort", "split", "string", "striptags", "sum", "title", "tojson", "trim", "truncate", "unique",
    "upper", "urlencode", "wordwrap", "zip",
))
ENGINE_TESTS = frozenset((
    "boolean", "defined", "divisibleby", "endingwith", "eq", "equalto", "escaped", "even", "false",
    "filter", "float", "ge", "greaterthan", "gt", "in", "integer", "iterable", "le", "lessthan",
    "lower", "lt", "mapping", "ne", "none", "number", "odd", "safe", "sameas", "sequence",
    "startingwith", "string", "test", "true", "undefined", "upper",
))
# fmt: on


def check_names(segments: Iterable[Segment]) -> None:
    """Check every filter and test that a template names.

    Raises:
        TemplateError: ``template-forbidden``: the engine has no filter or test of that name.
    """
    for segment in segments:
        if segment.kind in ("expression", "block"):
            tokens = tokenize(segment.source)
            for at, token in enumerate(tokens):
                if token.kind == "name":
                    _check_name([before.text for before in tokens[max(at - 2, 0) : at]], token.text)


def _check_name(before: list[str], name: str) -> None:
    """Check a name that is a filter or a test, judging by the two tokens before it."""
    if before[-1:] == ["|"] and name not in ENGINE_FILTERS:
        raise _unknown_name("filter", name, ENGINE_FILTERS)
    is_test = before == ["is", "not"] or (before[-1:] == ["is"] and name != "not")
    if is_test and name not in ENGINE_TESTS:
        raise _unknown_name("test", name, ENGINE_TESTS)


def _unknown_name(kind: str, name: str, known: Iterable[str]) -> TemplateError:
    return TemplateError(
        f"there is no {kind} {name[:40]!r}",
        code=FORBIDDEN,
        hint=f"{kind}s are {', '.join(sorted(known))}",
    )


NODES = "nodes"
_KEYED = (NODES, "inputs")
WELL_KNOWN = frozenset(("input", "inputs", NODES, "trigger", "goal", "PREVIOUS_OUTPUT"))
_ENGINE_NAMES = frozenset(("range", "dict", "namespace", "loop", "super", "caller", "self"))
_GUARDS = {"|": ("default", "d"), "is": ("defined", "undefined"), "not": ("defined", "undefined")}
"""Tokens, and the names after them, that mark a template as handling a missing variable."""
_SIMPLE_STRING = re.compile(r"['\"][^\\]*['\"]\Z")


class VariableRef(NamedTuple):
    """One variable a template refers to.

    Attributes:
        root: ``input``, ``inputs``, ``nodes``, ``trigger``, ``goal``, ``PREVIOUS_OUTPUT`` or the
            name of a bare variable.
        key: The node's id in ``nodes["id"]`` and ``nodes.id``, the handle in ``inputs.topic``; None
            if it is computed.
        pointer: JSON pointer of the field, relative to ``node.data``.
        guarded: Whether the template handles a missing variable: ``default``, ``is defined``.
        handle: The output in ``nodes["id"].output``; None if it is computed or not named.
    """

    root: str
    key: str | None
    pointer: str
    guarded: bool = False
    handle: str | None = None


class Variable(NamedTuple):
    """A variable reference without the pointer of its field."""

    name: str
    key: str | None = None
    guarded: bool = False
    handle: str | None = None


def variables_of_path(path: ValuePath) -> tuple[Variable, ...]:
    """Return the root of a plain path; nothing for a text literal."""
    if path.root is None:
        return ()
    guarded = bool(path.filters) and path.filters[0].handles_undefined
    if path.root not in _KEYED or not path.steps:
        return (Variable(path.root, None, guarded),)
    key, *beyond = path.steps
    named = path.root == NODES and beyond and isinstance(beyond[0], str)
    return (Variable(path.root, str(key), guarded, str(beyond[0]) if named else None),)


def variables_of_segments(
    segments: Iterable[Segment],
) -> tuple[tuple[Variable, ...], frozenset[str]]:
    """Return every name an engine template may look up, and the names it binds itself.

    The first result also contains bound names such as loop variables. A name that is guarded once
    counts as guarded in the whole template, because other blocks may depend on that check.
    """
    found: dict[Variable, None] = {}
    bound: set[str] = set()
    guarded: set[str] = set()
    for segment in segments:
        if segment.kind not in ("expression", "block"):
            continue
        tokens = tokenize(segment.source)
        if segment.kind == "block":
            bound |= _bound_names(tokens)
            tokens = tokens[1:]
        here = [_variable_at(tokens, at) for at in range(len(tokens)) if _is_lookup(tokens, at)]
        found |= dict.fromkeys(here)
        if any(a.text in _GUARDS.get(b.text, ()) for b, a in pairwise(tokens)):
            guarded |= {root.name for root in here}
    roots = (root._replace(guarded=root.name in guarded) for root in found)
    return tuple(roots), frozenset(bound)


def is_external(variable: Variable, bound: frozenset[str]) -> bool:
    """Return whether a variable comes from outside the template, judging by the text."""
    if variable.name in WELL_KNOWN:
        return True
    return variable.name not in bound and variable.name not in _ENGINE_NAMES


def _is_lookup(tokens: list[Token], at: int) -> bool:
    """Return whether a name is a variable: not a key, filter, test, keyword or keyword argument."""
    if tokens[at].kind != "name" or tokens[at].text in KEYWORDS:
        return False
    before = tokens[at - 1].text if at else ""
    if before in (".", "|", "is"):
        return False
    if before == "not" and at >= 2 and tokens[at - 2].text == "is":
        return False
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    return after != "="


def _variable_at(tokens: list[Token], at: int) -> Variable:
    name = tokens[at].text
    if name not in _KEYED:
        return Variable(name)
    key, end = _literal_key(tokens, at + 1)
    handle = _literal_key(tokens, end)[0] if key is not None and name == NODES else None
    return Variable(name, key, handle=handle)


def _literal_key(tokens: list[Token], at: int) -> tuple[str | None, int]:
    """Return the key of a literal step ``["key"]`` or ``.key``, and the position after it."""
    following = [*tokens[at : at + 3], *[Token("op", "")] * 3][:3]
    match following:
        case [Token(_, "["), Token("string", text), Token(_, "]")] if _SIMPLE_STRING.match(text):
            return text[1:-1], at + 3
        case [Token(_, "."), Token("name", text), Token(_, after)] if after != "(":
            return text, at + 2
        case _:
            return None, at


def _bound_names(tokens: list[Token]) -> set[str]:
    """Return the names a block binds: loop targets, assigned names, macro parameters."""
    if not tokens:
        return set()
    names = [token.text for token in tokens if token.kind == "name"]
    match tokens[0].text:
        case "for":
            return set(names[1 : names.index("in")]) if "in" in names else set()
        case "set" | "with":
            targets = {
                a.text for a, b in pairwise(tokens) if a.kind == "name" and b.text in ("=", ",")
            }
            return targets | set(names[1:2] if tokens[0].text == "set" else ())
        case "macro":
            return set(names[1:])
        case "call" if len(tokens) > 1 and tokens[1].text == "(":
            end = next(at for at, token in enumerate(tokens) if token.text == ")")
            return {token.text for token in tokens[2:end] if token.kind == "name"}
        case "filter":
            return set(names[1:2])
        case _:
            return set()
