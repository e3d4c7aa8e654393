"""Templates of a node's data: found and checked once, resolved before every execution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, cast

from planwave.errors import TemplateError
from planwave.expressions.blocks import check_blocks
from planwave.expressions.faults import (
    FAILED,
    UNAVAILABLE,
    byte_length,
    located,
    syntax_fault,
    too_large,
)
from planwave.expressions.filters import UNDEFINED_VALUE
from planwave.expressions.lexer import Segment, cut, has_template
from planwave.expressions.names import check_names
from planwave.expressions.paths import PlainPath, evaluate_path, parse_path
from planwave.expressions.references import (
    NODES,
    Reference,
    Root,
    is_external,
    roots_of_path,
    roots_of_segments,
)
from planwave.expressions.text import Json, copy_of, text_of

MAX_DEPTH = 128
"""Nesting of a node's data; the limits on graphs are far below."""
DEFAULT_OUTPUT_BYTES = 1024 * 1024
_TEXTLESS: Final = frozenset[type]({int, float, bool, type(None)})
"""Types of values in which there is nothing to resolve."""

Key = str | int


class Scope(Protocol):
    """What templates can see, by root name; may compute a root when it is asked for."""

    def lookup(self, root: str) -> Json:
        """Give the value of a root.

        Raises:
            KeyError: The root is unknown.
        """
        ...


class Engine(Protocol):
    """What renders templates that are more than plain paths; the ``Renderer`` is one."""

    max_output_bytes: int

    async def render(self, source: str, variables: dict[str, Json]) -> str: ...

    async def evaluate(self, expression: str, variables: dict[str, Json]) -> Json: ...


class _Plain(NamedTuple):
    """A text made of literals and plain paths; typed when it is one path alone."""

    parts: tuple[str | PlainPath, ...]


class _Rendered(NamedTuple):
    """A text for the engine; ``expression`` when it is one expression alone."""

    source: str
    expression: str | None
    roots: tuple[Root, ...]


@dataclass(frozen=True, slots=True)
class _Field:
    """One text with expressions: where it stands and how it is resolved."""

    keys: tuple[Key, ...]
    pointer: str
    program: _Plain | _Rendered


class Template:
    """The expressions of one JSON value, ready to be resolved any number of times.

    Attributes:
        references: Every variable referred to, as far as the text tells, in document order.
    """

    __slots__ = ("_fields", "_value", "references")

    def __init__(
        self, value: Json, fields: tuple[_Field, ...], references: tuple[Reference, ...]
    ) -> None:
        self._value = value
        self._fields = fields
        self.references = references

    async def resolve(self, scope: Scope, renderer: Engine | None) -> Json:
        """Give a new value with every expression replaced by what it stands for.

        Values are never rendered again: ``{{`` inside a value stays as it is.

        Raises:
            TemplateError: The message starts with the JSON pointer of the field.
        """
        cache: dict[str, Json] = {}
        resolved = copy_of(self._value)
        for field in self._fields:
            try:
                value = await _run(field.program, _Lookup(scope, cache), renderer)
            except TemplateError as error:
                raise located(error, field.pointer) from error
            except (TypeError, ValueError, RecursionError) as error:
                raise TemplateError(
                    f"{field.pointer or '/'}: a value in the expression is not JSON: {error}",
                    code=FAILED,
                ) from error
            if not field.keys:
                return value
            holder = resolved
            for key in field.keys[:-1]:
                holder = holder[key]
            holder[field.keys[-1]] = value
        return resolved


class _Lookup:
    """A scope asked once for each root of one resolve."""

    def __init__(self, scope: Scope, cache: dict[str, Json]) -> None:
        self._scope = scope
        self._cache = cache

    def value(self, root: str) -> Json:
        if root not in self._cache:
            try:
                self._cache[root] = self._scope.lookup(root)
            except KeyError:
                self._cache[root] = UNDEFINED_VALUE
        return self._cache[root]

    def variables(self, roots: tuple[Root, ...]) -> dict[str, Json]:
        """Give what an engine template may need; of ``nodes`` only the ids it names, if it can."""
        chosen = {root.name: self.value(root.name) for root in roots}
        ids = [root.key for root in roots if root.name == NODES]
        nodes = chosen.get(NODES)
        if isinstance(nodes, dict) and None not in ids:
            known = cast(dict[str, Json], nodes)
            chosen[NODES] = {key: known[key] for key in ids if key in known}
        return {name: value for name, value in chosen.items() if value is not UNDEFINED_VALUE}


async def _run(program: _Plain | _Rendered, lookup: _Lookup, renderer: Engine | None) -> Json:
    if isinstance(program, _Rendered):
        if renderer is None:
            raise TemplateError(
                "this expression needs the render worker, and none is here",
                code=UNAVAILABLE,
                hint="use one plain path with filters, such as {{ input.name | upper }}",
            )
        variables = lookup.variables(program.roots)
        if program.expression is not None:
            return await renderer.evaluate(program.expression, variables)
        return await renderer.render(program.source, variables)
    limit = DEFAULT_OUTPUT_BYTES if renderer is None else renderer.max_output_bytes
    return _fill(program.parts, lookup, limit)


def _fill(parts: tuple[str | PlainPath, ...], lookup: _Lookup, limit: int) -> Json:
    if len(parts) == 1 and not isinstance(parts[0], str):
        return _evaluate(parts[0], lookup)
    texts: list[str] = []
    length = 0
    for part in parts:
        text = part if isinstance(part, str) else text_of(_evaluate(part, lookup))
        length += byte_length(text, limit - length) if length <= limit else len(text)
        if length > limit:
            raise too_large("the rendered text", limit, length, "template_output_bytes")
        texts.append(text)
    return "".join(texts)


def _evaluate(path: PlainPath, lookup: _Lookup) -> Json:
    return evaluate_path(path, None if path.root is None else lookup.value(path.root))


def compile_template(
    value: Json, *, fields: tuple[str, ...] | None = None, max_bytes: int | None = None
) -> Template | None:
    """Find and check the expressions in a node's data; None where there are none.

    Args:
        value: ``node.data``, or any JSON value; it must not be changed afterwards.
        fields: Top-level fields that may hold expressions; the others stay literal. None: all.
        max_bytes: UTF-8 length a text in such a field may have. None: any.

    Raises:
        TemplateError: ``template-syntax``, ``template-forbidden`` or ``template-too-large``; the
            message starts with the JSON pointer of the field.
    """
    if isinstance(value, dict):
        held = cast("dict[str, Json]", value).values()
        if _TEXTLESS.issuperset(map(type, held)):
            return None  # spares the walk, and what is set up for it
    found: list[_Field] = []
    references: dict[Reference, None] = {}
    for keys, text in _texts(value, fields):
        if max_bytes is None and not has_template(text):
            continue
        pointer = _pointer(keys)
        try:
            if max_bytes is not None and (met := byte_length(text, max_bytes)) > max_bytes:
                raise too_large("the text", max_bytes, met, "template_bytes")
            if not has_template(text):
                continue
            program, roots = _compile(text)
        except TemplateError as error:
            raise located(error, pointer) from error
        found.append(_Field(keys, pointer, program))
        for root in roots:
            references[Reference(root.name, root.key, pointer, root.guarded, root.handle)] = None
    return Template(value, tuple(found), tuple(references)) if found else None


def _compile(text: str) -> tuple[_Plain | _Rendered, tuple[Root, ...]]:
    segments = cut(text)
    check_blocks(segments)
    parts: list[str | PlainPath] = []
    for segment in segments:
        part = _part(segment)
        if part is None:
            return _rendered(text, segments)
        parts.append(part)
    roots = dict.fromkeys(
        root for part in parts if isinstance(part, PlainPath) for root in roots_of_path(part)
    )
    return _Plain(tuple(parts)), tuple(roots)


def _part(segment: Segment) -> str | PlainPath | None:
    """Give what a segment is in process, or None when it needs the engine."""
    if segment.kind == "text":
        return segment.source
    if segment.kind != "expression":
        return None
    path = parse_path(segment.source)
    return None if segment.trims else path


def _rendered(text: str, segments: list[Segment]) -> tuple[_Rendered, tuple[Root, ...]]:
    check_names(segments)
    roots, bound = roots_of_segments(segments)
    alone = len(segments) == 1 and segments[0].kind == "expression"
    program = _Rendered(text, segments[0].source if alone else None, roots)
    return program, tuple(root for root in roots if is_external(root, bound))


def _texts(value: Json, fields: tuple[str, ...] | None) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Give every text in the fields that may hold expressions, in document order."""
    stack: list[tuple[tuple[Key, ...], Json]] = [((), value)]
    while stack:
        keys, item = stack.pop()
        if isinstance(item, str):
            yield keys, item
            continue
        if not isinstance(item, (dict, list)):
            continue
        if len(keys) >= MAX_DEPTH:
            raise syntax_fault(f"{_pointer(keys[:8])}…: nested deeper than {MAX_DEPTH}", hint=None)
        children = _children(cast("dict[str, Json] | list[Json]", item))
        chosen = [
            ((*keys, key), child)
            for key, child in children
            if keys or fields is None or key in fields or isinstance(key, int)
        ]
        stack.extend(reversed(chosen))


def _children(item: dict[str, Json] | list[Json]) -> list[tuple[Key, Json]]:
    return list(item.items()) if isinstance(item, dict) else list(enumerate(item))


def _pointer(keys: tuple[Key, ...]) -> str:
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)
