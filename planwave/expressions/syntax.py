"""The syntax of templates, read with Jinja2's parser, whose grammar MiniJinja shares.

The render worker has the last word: what only MiniJinja refuses fails when it is rendered. MiniJinja
is not asked here, because its parser overflows the stack, and so ends the process, on a text such as
``a+a+…`` of 60 kB. Jinja2's parser takes the same loop for each operator, and every walk of this
module is a loop.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import takewhile
from typing import NamedTuple

import jinja2
from jinja2 import nodes

from planwave.errors import TemplateError
from planwave.expressions.errors import FORBIDDEN, syntax_error
from planwave.expressions.filters import FILTERS, UNDEFINED_VALUE, FilterCall
from planwave.expressions.json_text import Json
from planwave.expressions.paths import PathStep, ValuePath
from planwave.expressions.syntax_errors import describe_syntax
from planwave.expressions.variables import FUNCTIONS, NODES, ROOT_VARIABLES, Variable

MAX_NESTING = 32
"""Brackets in one expression: Jinja2's parser needs some 15 frames of the Python stack for each."""
MAX_BLOCKS = 64
MAX_STEPS = 64
MAX_FILTERS = 16
_MAX_INDEX = 10**9 - 1
_MAX_CACHED = 1_024
_MAX_CACHED_CHARS = 4_096
"""Longest template whose parsed form is cached; longer ones are parsed each time."""
_BLOCK_TAGS = ("if", "for", "macro", "call", "filter", "with", "set")
_INNER_TAGS = ("else", "elif")
_LOOP_TAGS = ("break", "continue")
_FORBIDDEN_TAGS = ("include", "import", "from", "extends", "block")
_KNOWN_TAGS = {*_BLOCK_TAGS, *(f"end{tag}" for tag in _BLOCK_TAGS), *_INNER_TAGS, *_LOOP_TAGS}
# fmt: off
ENGINE_FILTERS = frozenset((
    "abs", "attr", "batch", "bool", "capitalize", "chain", "count", "d", "default", "dictsort", "e",
    "escape", "filesizeformat", "first", "float", "format", "fromjson", "groupby", "indent", "int",
    "items", "join", "last", "length", "lines", "list", "lower", "map", "max", "min", "pluralize",
    "pprint", "reject", "rejectattr", "replace", "reverse", "round", "safe", "select", "selectattr", "slice",
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
_GUARDS = ("default", "d", "defined", "undefined")
"""Filters and tests that mark an expression as handling a missing variable."""
_ENGINE_NAMES = (*FUNCTIONS, "loop", "super", "caller", "self")
_COMMON_STRING = re.compile(r"(?:[^\\\x0b]|\\[\\nt'\"])*")
"""A text literal with the escapes that Jinja2 and MiniJinja read alike."""
_ESCAPE = re.compile(r"(\\[\\nt'\"])|\\")
_CLOSINGS = {"{{": "}}", "{%": "%}", "{#": "#}"}
_TRIM = re.compile(r"\{[{%#][-+]|-[}%#]\}")
_JINJA = jinja2.Environment(
    extensions=["jinja2.ext.loopcontrols"],
    keep_trailing_newline=True,
    autoescape=True,  # Jinja2 renders nothing here
)


class ParsedTemplate(NamedTuple):
    """A template that was checked.

    Attributes:
        source: The text.
        parts: Literals and plain paths, in order; None if the template needs the engine.
        expression: The expression, if the template needs the engine and is a single expression.
        variables: The variables that the engine may look up.
        references: The variables from outside the template.
    """

    source: str
    parts: tuple[str | ValuePath, ...] | None
    expression: str | None
    variables: tuple[Variable, ...]
    references: tuple[Variable, ...]


class Token(NamedTuple):
    """A token of a template: its kind as Jinja2 names it, its text, and its position."""

    kind: str
    value: str
    start: int

    @property
    def end(self) -> int:
        """The position after the token."""
        return self.start + len(self.value)


def parse_template(text: str) -> ParsedTemplate:
    """Parse and check a template.

    Raises:
        TemplateError: ``template-syntax``; ``template-forbidden`` for tags that load other
            templates, and for filters and tests that the engine does not have.
    """
    return _parse_cached(text) if len(text) <= _MAX_CACHED_CHARS else _parse(text)


def _parse(text: str) -> ParsedTemplate:
    readable = _hide_returns(text)
    try:
        tokens = _Tokens(_JINJA.lex(readable))
        # Python warns of escapes such as \d; where there is one, no text literal of the tree is used.
        tree = _JINJA.parse(_ESCAPE.sub(lambda variable: variable[1] or "_", readable))
    except jinja2.TemplateSyntaxError as error:
        if unclosed := _unclosed(readable):
            raise syntax_error(unclosed) from None
        raise describe_syntax(error.message or "", error.lineno, readable) from None
    except RecursionError:
        raise syntax_error("an expression is nested too deep", hint=None) from None
    except ValueError:  # from int()
        raise syntax_error("a number in an expression is too long", hint=None) from None
    if not (tokens.has_tags or tokens.has_rare_strings or _TRIM.search(text)):
        parts = _plain_parts(tokens.parts, tree)
        if parts is not None:
            paths = (part for part in parts if isinstance(part, ValuePath))
            references = dict.fromkeys(
                variable for path in paths for variable in _variables_of(path)
            )
            return ParsedTemplate(text, parts, None, (), tuple(references))
    names = _Names(tree, computed_keys=tokens.has_rare_strings)
    is_alone = len(tokens.parts) == 1 and text.startswith("{{") and text.endswith("}}")
    expression = _show_returns(tokens.parts[0].text) if is_alone else None
    return ParsedTemplate(text, None, expression, names.variables, names.references)


_parse_cached = lru_cache(_MAX_CACHED)(_parse)


def expression_tokens(text: str) -> Sequence[Token]:
    """Return the tokens of a template with their positions, but for white space.

    Raises:
        TemplateError: ``template-syntax``.
    """
    readable = text.replace("\r", " ")  # Jinja2 would make it a line feed
    tokens: list[Token] = []
    end = 0
    try:
        for _, kind, value in _JINJA.lex(readable):
            start = readable.index(value, end)  # before it, white space may have been trimmed
            end = start + len(value)
            if kind != "whitespace":
                tokens.append(Token(kind, value, start))
    except jinja2.TemplateSyntaxError as error:
        raise describe_syntax(error.message or "", error.lineno, readable) from None
    return tokens


def binds(text: str, name: str) -> bool:
    """Return whether a template gives a name a value of its own: by ``set``, ``for`` or a macro.

    Raises:
        TemplateError: ``template-syntax``.
    """
    try:
        tree = _JINJA.parse(text)
    except jinja2.TemplateSyntaxError as error:
        raise describe_syntax(error.message or "", error.lineno, text) from None
    return any(each.name == name and each.ctx != "load" for each in tree.find_all(nodes.Name))


def _unclosed(text: str) -> str | None:
    """Return a message that locates the delimiter that is opened and never closed, or None."""
    begin = None
    end = 0
    with suppress(jinja2.TemplateSyntaxError):
        for _, kind, value in _JINJA.lex(text):
            start = text.index(value, end)  # before it, white space may have been trimmed
            end = start + len(value)
            if kind.endswith("_begin"):
                begin = start, value
            elif kind.endswith("_end"):
                begin = None
    if begin is None:
        return None
    start, delimiter = begin
    closing = "endraw" if "raw" in delimiter else _CLOSINGS[delimiter[:2]]
    if closing in text[start + len(delimiter) :]:
        return None
    before = _show_returns(text[:start])
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f"{delimiter.strip()} in line {line}, column {column} is never closed"


def _hide_returns(text: str) -> str:
    """Replace carriage returns by other white space, because Jinja2 makes them line feeds."""
    return text.replace("\x0b", "\x0b\x1c").replace("\r", "\x0b\x1d")


def _show_returns(text: str) -> str:
    return text.replace("\x0b\x1d", "\r").replace("\x0b\x1c", "\x0b")


class _Part(NamedTuple):
    """A literal, or the source of an expression."""

    text: str
    is_expression: bool = False


class _Tokens:
    """What the tokens of a template show and its tree does not; raises for tags and nesting.

    Attributes:
        parts: Literals and expressions, in order; comments count as literals.
        has_tags: Whether there is a ``{% … %}`` besides ``raw``.
        has_rare_strings: Whether Jinja2 may read a text literal unlike MiniJinja.
    """

    def __init__(self, tokens: Iterator[tuple[int, str, str]]) -> None:
        self.parts: list[_Part] = []
        self.has_tags = False
        self.has_rare_strings = False
        self._opened: list[str] = []
        kind = value = ""
        for _, kind, value in tokens:
            if kind == "variable_begin":
                source = "".join(value for _, value in self._until("variable_end", tokens))
                self.parts.append(_Part(source.strip(), is_expression=True))
            elif kind == "block_begin":
                self.has_tags = True
                inside = self._until("block_end", tokens)
                self._check_tag(next((value for kind, value in inside if kind == "name"), ""))
            else:
                self.parts.append(_Part(value if kind == "data" else ""))
        if kind in ("raw_begin", "comment_begin"):
            raise jinja2.TemplateSyntaxError(f"{value} is never closed", 1)

    def _until(self, end: str, tokens: Iterator[tuple[int, str, str]]) -> list[tuple[str, str]]:
        """Return kind and text of the tokens of one expression or tag, after checking them."""
        inside = [
            (kind, value) for _, kind, value in takewhile(lambda token: token[1] != end, tokens)
        ]
        depth = 0
        for kind, value in inside:
            if kind == "operator":
                depth += (value in "([{") - (value in ")]}")
                if depth > MAX_NESTING:
                    raise syntax_error(f"brackets are nested deeper than {MAX_NESTING}", hint=None)
            elif kind == "string" and not _COMMON_STRING.fullmatch(value):
                self.has_rare_strings = True
        return inside

    def _check_tag(self, tag: str) -> None:
        if tag in _FORBIDDEN_TAGS:
            raise TemplateError(
                f"{{% {tag} %}} is not allowed: a template cannot load another one",
                code=FORBIDDEN,
                hint="write the text here, or pass it in from another step",
            )
        if tag and tag not in _KNOWN_TAGS:
            tags = ", ".join(_BLOCK_TAGS)
            raise syntax_error(f"unknown tag {{% {tag[:40]} %}}", hint=f"known tags: {tags}, raw")
        if tag in _LOOP_TAGS and "for" not in self._opened:
            raise syntax_error(f"{{% {tag} %}} stands outside of a loop", hint=None)
        if tag in _BLOCK_TAGS and tag != "set":  # set may have no end
            self._opened.append(tag)
            if len(self._opened) > MAX_BLOCKS:
                raise syntax_error(f"blocks are nested deeper than {MAX_BLOCKS}", hint=None)
        elif tag.startswith("end") and tag != "endset":
            del self._opened[-1:]


def _plain_parts(
    parts: Iterable[_Part], tree: nodes.Template
) -> tuple[str | ValuePath, ...] | None:
    """Return literals and paths; None if an expression is more than a path."""
    outputs = (child for output in tree.body for child in output.iter_child_nodes())
    expressions = (child for child in outputs if not isinstance(child, nodes.TemplateData))
    plain: list[str | ValuePath] = []
    for part in parts:
        if part.is_expression:
            path = _plain_path(next(expressions), _show_returns(part.text))
            if path is None:
                return None
            plain.append(path)
        else:
            plain.append(_show_returns(part.text))
    return tuple(plain)


def _plain_path(node: nodes.Node, source: str) -> ValuePath | None:
    """Return a plain path, or a text literal, with filters that run in process; None if it is more."""
    calls: list[FilterCall] = []
    while isinstance(node, nodes.Filter) and node.node is not None:
        call = _filter_call(node)
        if call is None:
            return None
        calls.append(call)
        node = node.node
    base, steps, _ = _split_path(node)
    if len(steps) > MAX_STEPS:
        raise syntax_error(f"a path has more than {MAX_STEPS} steps", hint=None)
    if len(calls) > MAX_FILTERS:
        raise syntax_error(f"more than {MAX_FILTERS} filters in a row", hint=None)
    keys = tuple(step for step in steps if step is not None)
    filters = tuple(reversed(calls))
    match base:
        case nodes.Name(name=root) if len(keys) == len(steps):
            return ValuePath(source, root, keys, filters)
        case nodes.Const(value=str() as literal) if not steps:
            return ValuePath(source, None, (), filters, literal)
        case _:
            return None


def _filter_call(node: nodes.Filter) -> FilterCall | None:
    spec = FILTERS.get(node.name)
    arguments = tuple(map(_literal, node.args))
    if node.kwargs or node.dyn_args or node.dyn_kwargs or UNDEFINED_VALUE in arguments:
        return None
    return FilterCall(node.name, arguments) if spec and spec.accepts(arguments) else None


def _literal(node: nodes.Node) -> Json:
    """Return the value of a literal, or ``UNDEFINED_VALUE``."""
    match node:
        case nodes.Const(value=float() as number) if not math.isfinite(number):
            return UNDEFINED_VALUE
        case nodes.Const(value=value):
            return value
        case nodes.Neg(node=nodes.Const(value=int() | float() as number)) if (
            type(number) is not bool
        ):
            return -number
        case _:
            return UNDEFINED_VALUE


def _split_path(
    node: nodes.Node,
) -> tuple[nodes.Node, list[PathStep | None], list[nodes.Node]]:
    """Split ``a.b[c]`` into ``a``, its steps (None for one that is computed), and its subscripts."""
    steps: list[PathStep | None] = []
    subscripts: list[nodes.Node] = []
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        if isinstance(node, nodes.Getattr):
            steps.append(node.attr)
        else:
            steps.append(_step(node.arg))
            subscripts.append(node.arg)
        node = node.node
    return node, steps[::-1], subscripts[::-1]


def _step(subscript: nodes.Node) -> PathStep | None:
    step = _literal(subscript)
    if isinstance(step, int) and abs(step) > _MAX_INDEX:
        raise syntax_error("an index in an expression is too large", hint=None)
    return step if isinstance(step, str | int) and not isinstance(step, bool) else None


def _variable(name: str, steps: Sequence[PathStep | None], *, guarded: bool = False) -> Variable:
    key, handle = [*steps, None, None][:2]
    if name not in (NODES, "inputs") or key is None:
        return Variable(name, None, guarded)
    named = handle if name == NODES and isinstance(handle, str) else None
    return Variable(name, str(key), guarded, named)


def _variables_of(path: ValuePath) -> tuple[Variable, ...]:
    """Return the root of a plain path; nothing for a text literal."""
    if path.root is None:
        return ()
    guarded = bool(path.filters) and path.filters[0].handles_undefined
    return (_variable(path.root, path.steps, guarded=guarded),)


class _Names:
    """The names in an engine template; raises for unknown filters and tests.

    A name that is guarded once counts as guarded in the whole template, because other blocks may
    depend on that check. A name that the template binds somewhere does not come from outside.

    Attributes:
        variables: Every name that is looked up.
        references: Those from outside the template.
    """

    def __init__(self, tree: nodes.Template, *, computed_keys: bool) -> None:
        self._computed_keys = computed_keys
        self._found: dict[Variable, None] = {}
        self._bound: set[str] = set()
        self._guarded: set[str] = set()
        self._values: set[str] = set()
        stack = tree.body[::-1]
        while stack:
            statement = stack.pop()
            children = list(statement.iter_child_nodes())
            if isinstance(statement, nodes.Output):
                for child in children:
                    self._visit([child])
                continue
            if isinstance(statement, nodes.Macro):
                self._bound.add(statement.name)
            self._visit([child for child in children if not isinstance(child, nodes.Stmt)])
            stack += [child for child in reversed(children) if isinstance(child, nodes.Stmt)]
        self.variables = tuple(
            variable._replace(guarded=variable.name in self._guarded) for variable in self._found
        )
        self.references = tuple(
            variable for variable in self.variables if self._is_external(variable.name)
        )

    def _is_external(self, name: str) -> bool:
        if name in FUNCTIONS and name in self._values and name not in self._bound:
            return True  # not called, so an input of that name, or a mistake
        return name in ROOT_VARIABLES or not (name in self._bound or name in _ENGINE_NAMES)

    def _visit(self, expressions: list[nodes.Node]) -> None:
        """Record the names in one ``{{ … }}`` or in one tag."""
        here: dict[Variable, None] = {}
        is_guarded = False
        stack = expressions[::-1]
        while stack:
            node = stack.pop()
            base, steps, subscripts = _split_path(node)
            if isinstance(base, nodes.Name):
                if base.ctx == "load":
                    here[_variable(base.name, () if self._computed_keys else steps)] = None
                    self._values.add(base.name)
                else:
                    self._bound.add(base.name)
                stack += reversed(subscripts)
                continue
            if base is not node:
                stack += [*reversed(subscripts), base]
                continue
            children = list(node.iter_child_nodes())
            match node:
                case nodes.NSRef(name=name):
                    here[Variable(name)] = None
                    self._bound.add(name)
                case nodes.Filter(name=name):
                    _check_name("filter", name, ENGINE_FILTERS)
                    is_guarded |= name in _GUARDS
                case nodes.Test(name=name):
                    _check_name("test", name, ENGINE_TESTS)
                    is_guarded |= name in _GUARDS
                case nodes.Call(node=called):
                    children[:1] = _read_by_call(called, here)
                case _:
                    pass
            stack += reversed(children)
        self._found |= here
        if is_guarded:
            self._guarded |= {variable.name for variable in here}


def _read_by_call(called: nodes.Node, variables: dict[Variable, None]) -> list[nodes.Node]:
    """Return the expressions that a call reads before its arguments."""
    match called:
        case nodes.Getattr(node=owner):
            return [owner]  # the name of a method is no step of a path
        case nodes.Name(name=name) if name in FUNCTIONS:
            variables[Variable(name)] = None
            return []
        case _:
            return [called]


def _check_name(kind: str, name: str, names: frozenset[str]) -> None:
    if name not in names:
        raise TemplateError(
            f"there is no {kind} {name[:40]!r}",
            code=FORBIDDEN,
            hint=f"{kind}s are {', '.join(sorted(names))}",
        )
