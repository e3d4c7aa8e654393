"""JSON Schemas (Draft 2020-12) of forms, from untrusted sources: check a schema, validate a value.

A schema comes from a model or over the network and is checked in this process, so its cost is
bounded before it is used:

* References stay inside the schema (``#/$defs/…``) and are not recursive; nothing is fetched.
* With references expanded, a schema has at most ``MAX_PARTS`` parts, on at most 64
  levels. An object with ``unevaluated…`` counts twice, a pattern as ``PATTERN_PARTS``.
* Parts of the schema times size of the answer is at most ``MAX_WORK``.
* Patterns are matched in linear time (no look-around, no back-references) by automata of at most
  ``PATTERN_BYTES``.

Formats are not checked: they are hints for the program that shows the form.

This module loads ``jsonschema_rs``, so it is imported at first use: most processes check no form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import Final, NamedTuple, cast

from jsonschema_rs import (
    Draft202012Validator,
    ReferencingError,
    RegexOptions,
    ValidationError,
    ValidationErrorKind,
)

from planwave.graph.diagnostics import short_repr
from planwave.graph.json_values import json_findings, pointer_part
from planwave.graph.model import Json
from planwave.jsonio import MAX_JSON_DEPTH
from planwave.nodes.conditions import MISSING, value_at

MAX_PARTS: Final = 2_000
PATTERN_PARTS: Final = 20
PATTERN_BYTES: Final = 64 * 1024
MAX_WORK: Final = 1_000_000
"""About one second in the worst case measured, a few milliseconds usually."""
MAX_WORK_FOR_ALL_ERRORS: Final = 20_000
"""Up to this work every error of an answer is reported; above it only the first, which is cheaper."""

_CHARS_PER_PART: Final = 32
_MAX_MESSAGE_CHARS: Final = 300
_LOCAL_REF: Final = re.compile(r"#(?:/[A-Za-z0-9_.$ -]+)+")
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_DYNAMIC_REFS: Final = ("$dynamicRef", "$recursiveRef")
_CONDITIONS: Final = frozenset({"then", "else", "dependentSchemas"})
"""Keywords whose schema holds only where the rest of the value has a form."""
_UNEVALUATED: Final = ("unevaluatedProperties", "unevaluatedItems")


class FormError(NamedTuple):
    """An error in a schema or in an answer; ``pointer`` is its JSON pointer.

    ``unexpected`` is the name of a field that may not be there, where ``certain_errors`` found one.
    """

    pointer: str
    message: str
    hint: str | None = None
    unexpected: str | None = None


def check_schema(schema: Json) -> list[FormError]:
    """Return the errors of a form's schema; a schema that is too costly to use is an error."""
    return _check_and_count(schema)[1]


def validate(schema: Json, form: Json) -> list[FormError]:
    """Return every error of a filled-in form; an unusable schema is one error.

    Args:
        schema: The form's schema.
        form: The answer; valid JSON.
    """
    parts, unusable = _check_and_count(schema)
    if unusable:
        message = f"the requested form cannot be checked: {unusable[0].message}"
        return [FormError("", message, "correct the schema of the form")]
    work = parts * _value_size(form)
    if work > MAX_WORK:
        hint = "send a smaller answer, or request a simpler form"
        return [FormError("", f"too large to be checked against a form of {parts} parts", hint)]
    validator = _validator(schema)
    if work <= MAX_WORK_FOR_ALL_ERRORS:
        return _form_errors(validator.iter_errors(form))
    try:
        validator.validate(form)
    except ValidationError as error:
        return [_form_error(error)]
    return []


def certain_errors(schema: Json, value: Json, is_open: Callable[[str], bool]) -> list[FormError]:
    """Return the errors that a value has whatever its open texts become, as far as they are found.

    An open text stands for a value that is not known yet. Left out are errors of parts with such texts,
    and all errors that only a condition brings; names of fields are never open. An unusable schema, or
    one that costs too much for this value, gives no error.

    Args:
        schema: The schema.
        value: Valid JSON.
        is_open: Whether a text stands for another value.
    """
    parts, unusable = _check_and_count(schema)
    if unusable or parts * _value_size(value) > MAX_WORK_FOR_ALL_ERRORS:
        return []
    open_paths = frozenset(_open_prefixes(value, is_open))
    errors: list[FormError] = []
    for error in _validator(schema).iter_errors(value):
        if not open_paths or _is_certain(error, open_paths):
            errors += _errors_of_fields(error, value)
    return list(dict.fromkeys(errors))


def _open_prefixes(
    value: Json, is_open: Callable[[str], bool], path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of the open texts in a value, and of all parts around them."""
    if isinstance(value, str):
        if is_open(value):
            yield from (path[:length] for length in range(len(path) + 1))
        return
    inside: Iterable[tuple[str | int, Json]] = ()
    if isinstance(value, dict):
        inside = cast("dict[str, Json]", value).items()
    elif isinstance(value, list):
        inside = enumerate(cast("list[Json]", value))
    for key, part in inside:
        yield from _open_prefixes(part, is_open, (*path, key))


def _is_certain(error: ValidationError, open_paths: frozenset[tuple[str | int, ...]]) -> bool:
    if not _CONDITIONS.isdisjoint(map(str, error.schema_path)):
        return False
    names = isinstance(error.kind, ValidationErrorKind.Required) or _is_of_names(error)
    return names or tuple(error.instance_path) not in open_paths


def _is_of_names(error: ValidationError) -> bool:
    """Return whether fields are there that may not be."""
    if isinstance(error.kind, ValidationErrorKind.AdditionalProperties):
        return True
    is_false = isinstance(error.kind, ValidationErrorKind.FalseSchema)  # an object without fields
    return is_false and list(error.schema_path)[-1:] == ["additionalProperties"]


def _errors_of_fields(error: ValidationError, value: Json) -> Iterator[FormError]:
    """Yield an error for each field that may not be there, in place of one for all."""
    whole, kind = _form_error(error), error.kind
    if not _is_of_names(error):
        yield whole
        return
    if isinstance(kind, ValidationErrorKind.AdditionalProperties):
        names = kind.unexpected
    else:
        for step in error.instance_path:
            value = value[step]
        names = list(cast("dict[str, Json]", value))
    for name in names:
        pointer = f"{whole.pointer}/{pointer_part(name)}"
        yield FormError(pointer, f"there is no field {name!r}", unexpected=name)


def document_errors(schema: Json) -> list[FormError]:
    """Return the errors of a schema as a document: JSON that keeps to the rules of the dialect."""
    if unsound := json_findings(schema):
        return [FormError(finding.pointer, finding.message, finding.hint) for finding in unsound]
    return _form_errors(_dialect().iter_errors(schema))


@lru_cache(maxsize=1_000)
def is_usable_pattern(pattern: str) -> bool:
    """Return whether a pattern can be matched in linear time, by an automaton that is not too large."""
    try:
        _validator({"pattern": pattern})
    except ValueError:
        return False
    return True


def is_plain_reference(reference: str) -> bool:
    """Return whether a reference is a plain path inside the schema."""
    return _LOCAL_REF.fullmatch(reference) is not None


def _check_and_count(schema: Json) -> tuple[int, list[FormError]]:
    """Return the number of a schema's parts, and its errors."""
    if unsound := json_findings(schema):
        return 0, [FormError(finding.pointer, finding.message, finding.hint) for finding in unsound]
    try:
        parts = _CostEstimate(schema).total_parts()
    except _UnusableSchema as error:
        return 0, [error.error]
    if errors := _form_errors(_dialect().iter_errors(schema)):
        return parts, errors
    try:
        _validator(schema)
    except (ValueError, ReferencingError) as error:  # a ValidationError is a ValueError
        return parts, [_form_error(error)]
    return parts, []


@cache
def _dialect() -> Draft202012Validator:
    """Return the validator of schemas (the meta-schema)."""
    return Draft202012Validator({"$ref": _DIALECT}, validate_formats=True, offline=True)


def _validator(schema: Json) -> Draft202012Validator:
    return Draft202012Validator(
        schema,
        validate_formats=False,
        offline=True,
        mask="the value",  # what people fill in may be secret, and long
        pattern_options=RegexOptions(size_limit=PATTERN_BYTES),
    )


def _form_errors(errors: Iterable[ValidationError]) -> list[FormError]:
    return list(dict.fromkeys(_form_error(error) for error in errors))


def _form_error(error: Exception) -> FormError:
    """Convert an error of the library; other errors than ``ValidationError`` have a message only."""
    path: list[str | int] = getattr(error, "instance_path", [])
    pointer = "".join(f"/{pointer_part(step)}" for step in path)
    kind, hint = getattr(error, "kind", None), None
    if isinstance(kind, ValidationErrorKind.Format) and kind.format == "regex":
        hint = "patterns have no look-around and no back-references, and are not too large"
    message: str = getattr(error, "message", str(error))
    if len(message) > _MAX_MESSAGE_CHARS:
        message = f"{message[:_MAX_MESSAGE_CHARS]}…"
    return FormError(pointer, message, hint)


def _value_size(value: Json) -> int:
    """Return the number of values in a value; long texts count as several."""
    count, chars = 0, 0
    stack: list[Json] = [value]
    while stack:
        item = stack.pop()
        count += 1
        if isinstance(item, str):
            chars += len(item)
        elif isinstance(item, dict):
            named = cast("dict[str, Json]", item)
            chars += sum(map(len, named))
            stack += named.values()
        elif isinstance(item, list):
            stack += cast("list[Json]", item)
    return count + chars // _CHARS_PER_PART


class _UnusableSchema(Exception):
    """A schema that may not be used; raised and caught in this module."""

    def __init__(self, pointer: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.error = FormError(pointer, message, hint)


class _SchemaSize(NamedTuple):
    """The number of parts and levels of a part of a schema, references expanded."""

    parts: int = 1
    levels: int = 1


class _CostEstimate:
    """Measurement of a schema before it is used; visits each part once."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._sizes: dict[str, _SchemaSize] = {}
        self._resolving: set[str] = set()

    def total_parts(self) -> int:
        """Return the number of parts.

        Raises:
            _UnusableSchema: The schema may not be used.
        """
        parts = self._visit(self._schema, "", 1).parts
        if parts > MAX_PARTS:
            message = f"it has more than {MAX_PARTS} parts, references followed"
            raise _UnusableSchema("", message, "ask for less in one form")
        return parts

    def _visit(self, part: Json, pointer: str, level: int) -> _SchemaSize:
        if level > MAX_JSON_DEPTH:
            raise _too_deep(pointer)
        if isinstance(part, list):
            items = cast("list[Json]", part)
            below = [self._visit(v, f"{pointer}/{n}", level + 1) for n, v in enumerate(items)]
            return _enclosing_size(below)
        if not isinstance(part, dict):
            return _SchemaSize()
        named = cast("dict[str, Json]", part)
        below = [
            self._visit(value, f"{pointer}/{pointer_part(name)}", level + 1)
            for name, value in named.items()
        ]
        below += self._visit_reference(named, pointer, level + 1)
        return _weighted(_enclosing_size(below), named)

    def _visit_reference(
        self, named: dict[str, Json], pointer: str, level: int
    ) -> list[_SchemaSize]:
        """Return the size of an object's reference target; an empty list if it has no reference."""
        if "$id" in named and pointer and isinstance(named["$id"], str):
            message = "only the whole schema may have an $id"
            raise _UnusableSchema(f"{pointer}/$id", message, "refer to parts by #/$defs/…")
        for name in _DYNAMIC_REFS:
            if isinstance(named.get(name), str):
                raise _UnusableSchema(f"{pointer}/{name}", f"{name} is not for forms", "use $ref")
        to = named.get("$ref")
        return [self._visit_target(to, f"{pointer}/$ref", level)] if isinstance(to, str) else []

    def _visit_target(self, reference: str, pointer: str, level: int) -> _SchemaSize:
        extent = self._sizes.get(reference)
        if extent is None:
            target = self._resolve(reference, pointer)
            if reference in self._resolving:
                message = f"the reference {short_repr(reference)} leads back to itself"
                raise _UnusableSchema(
                    pointer, message, "write out as many levels as people shall fill in"
                )
            self._resolving.add(reference)
            extent = self._sizes[reference] = self._visit(target, reference[1:], level)
            self._resolving.discard(reference)
        elif level + extent.levels > MAX_JSON_DEPTH:
            raise _too_deep(pointer)
        return extent

    def _resolve(self, reference: str, pointer: str) -> Json:
        if _LOCAL_REF.fullmatch(reference) is None:
            message = f"the reference {short_repr(reference)} leads out of the schema, or is no plain path"
            raise _UnusableSchema(
                pointer, message, "refer to parts by #/$defs/…; nothing is fetched"
            )
        part = value_at(self._schema, reference[2:].split("/"))
        if part is MISSING:
            message = f"there is nothing at {short_repr(reference)}"
            raise _UnusableSchema(pointer, message, "name a part that is there")
        return part


def _enclosing_size(below: list[_SchemaSize]) -> _SchemaSize:
    parts = 1 + sum(each.parts for each in below)
    return _SchemaSize(parts, 1 + max((each.levels for each in below), default=0))


def _weighted(size: _SchemaSize, named: dict[str, Json]) -> _SchemaSize:
    """Add the extra cost of patterns and ``unevaluated…``."""
    parts = size.parts + PATTERN_PARTS * isinstance(named.get("pattern"), str)
    patterns = named.get("patternProperties")
    if isinstance(patterns, dict):
        parts += PATTERN_PARTS * len(cast("dict[str, Json]", patterns))
    return size._replace(parts=parts * 2 if any(name in named for name in _UNEVALUATED) else parts)


def _too_deep(pointer: str) -> _UnusableSchema:
    message = f"it nests deeper than {MAX_JSON_DEPTH} levels, references followed"
    return _UnusableSchema(pointer, message, "ask for less in one form")
