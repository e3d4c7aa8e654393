"""Templates in a node's data: compiled once, resolved before every attempt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from planwave.errors import TemplateError
from planwave.expressions.errors import (
    FAILED,
    UNAVAILABLE,
    at_field,
    byte_length,
    syntax_error,
    too_large,
)
from planwave.expressions.filters import UNDEFINED_VALUE
from planwave.expressions.json_text import Json, copy_json, to_text
from planwave.expressions.paths import ValuePath, evaluate_path
from planwave.expressions.variables import NODES, Variable, VariableRef

if TYPE_CHECKING:
    from planwave.expressions.syntax import ParsedTemplate

MAX_DEPTH = 128
"""Limit on the nesting of a node's data; the limits on graphs are far lower."""
DEFAULT_OUTPUT_BYTES = 1024 * 1024
SCALAR_TYPES: Final = frozenset[type]({int, float, bool, type(None)})
"""Types of values that cannot contain a template."""

_OPENING = re.compile(r"\{[{%#]")

Key = str | int


class VariableSource(Protocol):
    """The variables of templates by root name; a root may be computed when it is looked up."""

    def lookup(self, root: str) -> Json:
        """Return the value of a root.

        Raises:
            KeyError: The root is unknown.
        """
        ...


class TemplateEngine(Protocol):
    """An engine for templates that are more than plain paths, such as ``Renderer``."""

    max_output_bytes: int

    async def render(self, source: str, variables: dict[str, Json]) -> str: ...

    async def evaluate(self, expression: str, variables: dict[str, Json]) -> Json: ...


@dataclass(frozen=True, slots=True)
class _Field:
    """A text with expressions, its location and its compiled form."""

    keys: tuple[Key, ...]
    pointer: str
    program: ParsedTemplate


class Template:
    """The compiled expressions of one JSON value; can be resolved any number of times.

    Attributes:
        references: Every variable that the texts name, in document order.
    """

    __slots__ = ("_fields", "_value", "references")

    def __init__(
        self, value: Json, fields: tuple[_Field, ...], references: tuple[VariableRef, ...]
    ) -> None:
        self._value = value
        self._fields = fields
        self.references = references

    async def resolve(self, variables: VariableSource, engine: TemplateEngine | None) -> Json:
        """Return a copy of the value with every expression replaced by its result.

        Results are not rendered again: ``{{`` inside a result is unchanged.

        Raises:
            TemplateError: The message starts with the name of the field, as in ``data.text``.
        """
        cache: dict[str, Json] = {}
        resolved = copy_json(self._value)
        for field in self._fields:
            try:
                value = await _run(field.program, _CachedVariables(variables, cache), engine)
            except TemplateError as error:
                raise at_field(error, _name(field.keys)) from error
            except (TypeError, ValueError, RecursionError) as error:
                fault = TemplateError(
                    f"a value in the expression is not JSON: {error}", code=FAILED
                )
                raise at_field(fault, _name(field.keys)) from error
            if not field.keys:
                return value
            parent = resolved
            for key in field.keys[:-1]:
                parent = parent[key]
            parent[field.keys[-1]] = value
        return resolved


class _CachedVariables:
    """A variable source that looks up each root at most once during one resolve."""

    def __init__(self, source: VariableSource, cache: dict[str, Json]) -> None:
        self._source = source
        self._cache = cache

    def value(self, root: str) -> Json:
        if root not in self._cache:
            try:
                self._cache[root] = self._source.lookup(root)
            except KeyError:
                self._cache[root] = UNDEFINED_VALUE
        return self._cache[root]

    def variables(self, needed: tuple[Variable, ...]) -> dict[str, Json]:
        """Return the variables for an engine template; of ``nodes`` only the named ids, if known."""
        chosen = {root.name: self.value(root.name) for root in needed}
        ids = [root.key for root in needed if root.name == NODES]
        nodes = chosen.get(NODES)
        if isinstance(nodes, dict) and None not in ids:
            by_id = cast(dict[str, Json], nodes)
            chosen[NODES] = {key: by_id[key] for key in ids if key in by_id}
        return {name: value for name, value in chosen.items() if value is not UNDEFINED_VALUE}


async def _run(
    program: ParsedTemplate, lookup: _CachedVariables, engine: TemplateEngine | None
) -> Json:
    if program.parts is None:
        if engine is None:
            raise TemplateError(
                "this expression needs the render worker, which is not available here",
                code=UNAVAILABLE,
                hint="use one plain path with filters, such as {{ input.name | upper }}",
            )
        variables = lookup.variables(program.variables)
        if program.expression is not None:
            return await engine.evaluate(program.expression, variables)
        return await engine.render(program.source, variables)
    limit = DEFAULT_OUTPUT_BYTES if engine is None else engine.max_output_bytes
    return _fill(program.parts, lookup, limit)


def _fill(parts: tuple[str | ValuePath, ...], lookup: _CachedVariables, limit: int) -> Json:
    """Join the parts of a text; a single path keeps its JSON type."""
    if len(parts) == 1 and not isinstance(parts[0], str):
        return _evaluate(parts[0], lookup)
    texts: list[str] = []
    length = 0
    for part in parts:
        text = part if isinstance(part, str) else to_text(_evaluate(part, lookup))
        length += byte_length(text, limit - length) if length <= limit else len(text)
        if length > limit:
            raise too_large("the rendered text", limit, length, "template_output_bytes")
        texts.append(text)
    return "".join(texts)


def _evaluate(path: ValuePath, lookup: _CachedVariables) -> Json:
    return evaluate_path(path, None if path.root is None else lookup.value(path.root))


def has_template(text: str) -> bool:
    """Return whether a text contains a template delimiter."""
    return "{" in text and _OPENING.search(text) is not None


def compile_template(
    value: Json, *, fields: tuple[str, ...] | None = None, max_bytes: int | None = None
) -> Template | None:
    """Compile and check the expressions in a node's data; return None if there are none.

    Args:
        value: ``node.data``, or any JSON value; it must not be changed afterwards.
        fields: Top-level fields that may contain expressions; the others stay literal. None: all.
        max_bytes: Limit on the UTF-8 length of a text in such a field. None: no limit.

    Raises:
        TemplateError: ``template-syntax``, ``template-forbidden`` or ``template-too-large``; the
            message starts with the name of the field, as in ``data.text``.
    """
    if isinstance(value, dict):
        items = cast("dict[str, Json]", value).values()
        if SCALAR_TYPES.issuperset(map(type, items)):
            return None  # avoids the walk
    compiled_fields: list[_Field] = []
    references: dict[VariableRef, None] = {}
    for keys, text in _texts(value, fields):
        if max_bytes is None and not has_template(text):
            continue
        pointer = _pointer(keys)
        try:
            if max_bytes is not None and (size := byte_length(text, max_bytes)) > max_bytes:
                raise too_large("the text", max_bytes, size, "template_bytes")
            if not has_template(text):
                continue
            program = _parse(text)
        except TemplateError as error:
            raise at_field(error, _name(keys)) from error
        compiled_fields.append(_Field(keys, pointer, program))
        for each in program.references:
            references[VariableRef(each.name, each.key, pointer, each.guarded, each.handle)] = None
    return Template(value, tuple(compiled_fields), tuple(references)) if compiled_fields else None


def _parse(text: str) -> ParsedTemplate:
    # Lazy: test_building_and_running_a_graph_without_a_model_loads_no_sdk
    from planwave.expressions.syntax import parse_template

    return parse_template(text)


def _texts(value: Json, fields: tuple[str, ...] | None) -> Iterator[tuple[tuple[Key, ...], str]]:
    """Yield every text in the fields that may contain expressions, in document order."""
    stack: list[tuple[tuple[Key, ...], Json]] = [((), value)]
    while stack:
        keys, item = stack.pop()
        if isinstance(item, str):
            yield keys, item
            continue
        if not isinstance(item, (dict, list)):
            continue
        if len(keys) >= MAX_DEPTH:
            raise syntax_error(f"{_name(keys[:8])}…: nested deeper than {MAX_DEPTH}", hint=None)
        children = _children(cast("dict[str, Json] | list[Json]", item))
        chosen = [
            ((*keys, key), child)
            for key, child in children
            if keys or fields is None or key in fields or isinstance(key, int)
        ]
        stack.extend(reversed(chosen))


def _children(item: dict[str, Json] | list[Json]) -> list[tuple[Key, Json]]:
    return list(item.items()) if isinstance(item, dict) else list(enumerate(item))


def _name(keys: tuple[Key, ...]) -> str:
    """Return the name of a field in messages, as in ``data.items.0``; empty for the value itself."""
    return ".".join(("data", *map(str, keys))) if keys else ""


def _pointer(keys: tuple[Key, ...]) -> str:
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)
