"""Whether a value of one JSON Schema can fit another: what is certain of an edge before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from planwave.graph.model import Json

_DEEPEST: Final = 8
"""Levels that are compared; a schema may contain itself."""
_NUMBERS: Final = frozenset({"integer", "number"})
_LIST: Final = frozenset({"array"})
_OBJECT: Final = frozenset({"object"})
_NAMES: Final = {
    "array": "a list", "object": "an object", "string": "text", "boolean": "true or false",
    "integer": "a whole number", "number": "a number", "null": "null",
}  # fmt: skip


class _Schema(NamedTuple):
    """A part of a JSON Schema, and the definitions that it may refer to."""

    part: Mapping[str, Any]
    definitions: Mapping[str, Any]

    def inner(self, part: object) -> _Schema:
        """Return a schema inside this one; one that allows everything if it is none."""
        inside = cast("Mapping[str, Any]", part if isinstance(part, Mapping) else {})
        return _Schema(inside, self.definitions).resolved()

    def resolved(self) -> _Schema:
        """Return the definition that the schema refers to, or the schema itself."""
        name = str(self.part.get("$ref", "")).rpartition("/")[2]
        return _Schema(self.definitions.get(name, {}), self.definitions) if name else self

    @property
    def kinds(self) -> frozenset[str] | None:
        """The JSON types of its values; None if it does not say."""
        choices = self.part.get("anyOf") or self.part.get("oneOf")
        if choices is None:
            named = self.part.get("type")
            listed = [named] if isinstance(named, str) else cast("Sequence[str]", named or ())
            found = frozenset(listed)
            return (found | _NUMBERS if "number" in found else found) or None
        kinds = [self.inner(each).kinds for each in choices]
        return None if None in kinds else frozenset[str]().union(*filter(None, kinds))

    @property
    def properties(self) -> Mapping[str, Any]:
        return self.part.get("properties") or {}


def schema_mismatch(given: Mapping[str, Json], taken: Mapping[str, Json]) -> str | None:
    """Return why no value of a schema fits another, as in ``it is a list, not an object``; None if one may.

    Compared are the kinds of values, of the items of lists and of fields, and which fields are required.

    Args:
        given: The schema of the values.
        taken: The schema that they have to fit.
    """
    schemas = [_Schema(each, cast("Any", each.get("$defs") or {})) for each in (given, taken)]
    return _mismatch(schemas[0].resolved(), schemas[1].resolved(), "it", 0)


def _mismatch(given: _Schema, taken: _Schema, what: str, depth: int) -> str | None:
    mine, theirs = given.kinds, taken.kinds
    if mine is None or theirs is None or depth > _DEEPEST:
        return None
    if mine.isdisjoint(theirs):
        return f"{what} is {_kinds_text(mine)}, not {_kinds_text(theirs)}"
    if mine == theirs == _LIST:
        items = given.inner(given.part.get("items")), taken.inner(taken.part.get("items"))
        return _mismatch(*items, f"an item of {'the list' if what == 'it' else what}", depth + 1)
    if mine == theirs == _OBJECT:
        return _field_mismatch(given, taken, what, depth)
    return None


def _field_mismatch(given: _Schema, taken: _Schema, what: str, depth: int) -> str | None:
    if not given.properties or given.part.get("additionalProperties"):
        return None
    for name in cast("Sequence[str]", taken.part.get("required") or ()):
        if name not in given.properties:
            return f"{what} has no field {name!r}"
        fields = given.inner(given.properties[name]), taken.inner(taken.properties.get(name))
        own = f"its field {name!r}" if what == "it" else f"field {name!r} of {what}"
        if reason := _mismatch(*fields, own, depth + 1):
            return reason
    return None


def _kinds_text(kinds: frozenset[str]) -> str:
    shown = kinds - {"integer"} if "number" in kinds else kinds
    return " or ".join(_NAMES.get(each, each) for each in sorted(shown))
