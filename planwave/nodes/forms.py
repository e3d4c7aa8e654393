"""Forms for people: JSON Schemas (Draft 2020-12) that anybody may have written, and what fits them.

A schema comes from a model or over the network and is checked in the process, so nothing in it may
cost more than is known beforehand:

* References stay inside the schema (``#/$defs/…``) and never lead back to where they came from;
  nothing is ever fetched.
* With references followed and written out, a schema has at most ``MOST_PARTS`` parts, on at most 64
  levels. A keyword that looks at its neighbours again (``unevaluated…``) counts them twice, a
  pattern as ``PATTERN_PARTS``.
* Parts of the schema times size of the answer is at most ``MOST_WORK``.
* Patterns are matched in linear time (no look-around, no back-references) by automata of at most
  ``PATTERN_BYTES``.

Formats are not checked: they are hints for whoever shows the form.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from planwave.graph.json_values import DEEPEST, pointer_part, shown, value_faults
from planwave.graph.model import Json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jsonschema_rs import Draft202012Validator, ValidationError

MOST_PARTS: Final = 2_000
PATTERN_PARTS: Final = 20
PATTERN_BYTES: Final = 64 * 1024
MOST_WORK: Final = 1_000_000
"""About a second in the worst case that was found, a few milliseconds in the usual one."""
ALL_TOLD: Final = 20_000
"""Work up to which every fault of an answer is told; above it only the first, which costs far less."""

_CHARS_A_PART: Final = 32
_LONGEST_MESSAGE: Final = 300
_LOCAL: Final = re.compile(r"#(?:/[A-Za-z0-9_.$ -]+)+")
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_ELSEWHERE: Final = ("$dynamicRef", "$recursiveRef")
_AGAIN: Final = ("unevaluatedProperties", "unevaluatedItems")


class FormFault(NamedTuple):
    """What is wrong with a schema, or with an answer; ``pointer`` leads into it."""

    pointer: str
    message: str
    hint: str | None = None


def schema_faults(schema: Json) -> list[FormFault]:
    """Find what is wrong with a form's schema, or too costly in it."""
    return _read(schema)[1]


def form_faults(schema: Json, form: Json) -> list[FormFault]:
    """Find everything in which a filled-in form does not fit its schema.

    Args:
        schema: What it is to fit; one that cannot be used fits nothing.
        form: JSON, known to be sound.
    """
    parts, unusable = _read(schema)
    if unusable:
        message = f"the form that is asked for cannot be checked: {unusable[0].message}"
        return [FormFault("", message, "the schema of the form has to be mended where it was made")]
    work = parts * _size(form)
    if work > MOST_WORK:
        hint = "give less, or ask for a simpler form"
        return [FormFault("", f"too large to be held against a form of {parts} parts", hint)]
    from jsonschema_rs import ValidationError

    validator = _validator(schema)
    if work <= ALL_TOLD:
        return _told(validator.iter_errors(form))
    try:
        validator.validate(form)
    except ValidationError as error:
        return [_fault_of(error)]
    return []


def _read(schema: Json) -> tuple[int, list[FormFault]]:
    """Give the number of a schema's parts, and what is wrong with it."""
    if unsound := value_faults(schema):
        return 0, [FormFault(fault.pointer, fault.message, fault.hint) for fault in unsound]
    try:
        parts = _Measure(schema).whole()
    except _Unfit as error:
        return 0, [error.fault]
    from jsonschema_rs import ReferencingError

    if faults := _told(_dialect().iter_errors(schema)):
        return parts, faults
    try:
        _validator(schema)
    except (ValueError, ReferencingError) as error:  # a ValidationError is a ValueError
        return parts, [_fault_of(error)]
    return parts, []


@cache
def _dialect() -> Draft202012Validator:
    """Give the validator of schemas themselves."""
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator({"$ref": _DIALECT}, validate_formats=True, offline=True)


def _validator(schema: Json) -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator, RegexOptions

    return Draft202012Validator(
        schema,
        validate_formats=False,
        offline=True,
        mask="the value",  # what people fill in may be secret, and long
        pattern_options=RegexOptions(size_limit=PATTERN_BYTES),
    )


def _told(errors: Iterable[ValidationError]) -> list[FormFault]:
    return list(dict.fromkeys(_fault_of(error) for error in errors))


def _fault_of(error: Exception) -> FormFault:
    """Give what the library says; of what is no ``ValidationError`` only the message."""
    from jsonschema_rs import ValidationErrorKind

    path: list[str | int] = getattr(error, "instance_path", [])
    pointer = "".join(f"/{pointer_part(step)}" for step in path)
    kind, hint = getattr(error, "kind", None), None
    if isinstance(kind, ValidationErrorKind.Format) and kind.format == "regex":
        hint = "patterns have no look-around and no back-references, and are not too large"
    message: str = getattr(error, "message", str(error))
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:_LONGEST_MESSAGE]}…"
    return FormFault(pointer, message, hint)


def _size(value: Json) -> int:
    """Give how many values a value holds; long texts count as several."""
    found, chars = 0, 0
    stack: list[Json] = [value]
    while stack:
        item = stack.pop()
        found += 1
        if isinstance(item, str):
            chars += len(item)
        elif isinstance(item, dict):
            named = cast("dict[str, Json]", item)
            chars += sum(map(len, named))
            stack += named.values()
        elif isinstance(item, list):
            stack += cast("list[Json]", item)
    return found + chars // _CHARS_A_PART


class _Unfit(Exception):
    """A schema that is not even to be looked at; never leaves this module."""

    def __init__(self, pointer: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.fault = FormFault(pointer, message, hint)


class _Extent(NamedTuple):
    """How many parts something has, and on how many levels, references followed."""

    parts: int = 1
    levels: int = 1


class _Measure:
    """Measures a schema before anything else looks at it; each part of it once."""

    def __init__(self, schema: Json) -> None:
        self._schema = schema
        self._known: dict[str, _Extent] = {}
        self._within: set[str] = set()

    def whole(self) -> int:
        """Give the number of parts.

        Raises:
            _Unfit: The schema is not one that may be used.
        """
        parts = self._of(self._schema, "", 1).parts
        if parts > MOST_PARTS:
            message = f"it has more than {MOST_PARTS} parts, references followed"
            raise _Unfit("", message, "ask for less in one form")
        return parts

    def _of(self, part: Json, pointer: str, level: int) -> _Extent:
        if level > DEEPEST:
            raise _too_deep(pointer)
        if isinstance(part, list):
            items = cast("list[Json]", part)
            below = [self._of(v, f"{pointer}/{n}", level + 1) for n, v in enumerate(items)]
            return _around(below)
        if not isinstance(part, dict):
            return _Extent()
        named = cast("dict[str, Json]", part)
        below = [
            self._of(value, f"{pointer}/{pointer_part(name)}", level + 1)
            for name, value in named.items()
        ]
        below += self._referred(named, pointer, level + 1)
        return _weighed(_around(below), named)

    def _referred(self, named: dict[str, Json], pointer: str, level: int) -> list[_Extent]:
        """Give the extent of what an object refers to, none where it does not."""
        if "$id" in named and pointer and isinstance(named["$id"], str):
            message = "only the whole schema may have an $id"
            raise _Unfit(f"{pointer}/$id", message, "refer to parts by #/$defs/…")
        for name in _ELSEWHERE:
            if isinstance(named.get(name), str):
                raise _Unfit(f"{pointer}/{name}", f"{name} is not for forms", "use $ref")
        to = named.get("$ref")
        return [self._at(to, f"{pointer}/$ref", level)] if isinstance(to, str) else []

    def _at(self, reference: str, pointer: str, level: int) -> _Extent:
        extent = self._known.get(reference)
        if extent is None:
            target = self._target(reference, pointer)
            if reference in self._within:
                message = f"the reference {shown(reference)} leads back to itself"
                raise _Unfit(pointer, message, "write out as many levels as people shall fill in")
            self._within.add(reference)
            extent = self._known[reference] = self._of(target, reference[1:], level)
            self._within.discard(reference)
        elif level + extent.levels > DEEPEST:
            raise _too_deep(pointer)
        return extent

    def _target(self, reference: str, pointer: str) -> Json:
        if _LOCAL.fullmatch(reference) is None:
            message = (
                f"the reference {shown(reference)} leads out of the schema, or is no plain path"
            )
            raise _Unfit(pointer, message, "refer to parts by #/$defs/…; nothing is fetched")
        found = self._schema
        for step in reference[2:].split("/"):
            if isinstance(found, list) and step.isdecimal() and int(step) < len(found):  # pyright: ignore[reportUnknownArgumentType]
                found = cast("list[Json]", found)[int(step)]
            elif isinstance(found, dict) and step in found:
                found = cast("dict[str, Json]", found)[step]
            else:
                message = f"there is nothing at {shown(reference)}"
                raise _Unfit(pointer, message, "name a part that is there")
        return found


def _around(below: list[_Extent]) -> _Extent:
    parts = 1 + sum(each.parts for each in below)
    return _Extent(parts, 1 + max((each.levels for each in below), default=0))


def _weighed(extent: _Extent, named: dict[str, Json]) -> _Extent:
    """Count what costs more than its part of the text."""
    parts = extent.parts + PATTERN_PARTS * isinstance(named.get("pattern"), str)
    patterns = named.get("patternProperties")
    if isinstance(patterns, dict):
        parts += PATTERN_PARTS * len(cast("dict[str, Json]", patterns))
    return extent._replace(parts=parts * 2 if any(name in named for name in _AGAIN) else parts)


def _too_deep(pointer: str) -> _Unfit:
    message = f"it nests deeper than {DEEPEST} levels, references followed"
    return _Unfit(pointer, message, "ask for less in one form")
