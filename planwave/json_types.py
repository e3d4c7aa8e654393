"""The JSON form of Python types: what functions take and give, read and written by pydantic.

Nothing is converted silently. A value is read as strictly as JSON allows: text is no number, but
``"2026-02-03"`` is a date, which JSON has no other form for. A value is written only if it reads back
as what it was.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from functools import cached_property, lru_cache
from types import NoneType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import pydantic_core
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import (
    PydanticInvalidForJsonSchema,
    PydanticUndefinedAnnotation,
    PydanticUserError,
)
from pydantic_core import InitErrorDetails

from planwave.errors import PermanentError
from planwave.validation import describe_error, described

T = TypeVar("T")

SchemaMode = Literal["validation", "serialization"]

_ANY: Final = (Any, object)
_SCALARS: Final = (str, bool, int, float)
_JSON_CLASSES: Final = (*_SCALARS, NoneType, dict, list, tuple)
_REFUSALS: Final = (ValueError, RecursionError)
"""What pydantic raises for a value that it cannot read or write, or that contains itself."""
_MOST_ERRORS: Final = 5
"""Errors of one value in a message; the first ones say what is wrong."""
_DEEPEST: Final = 3
"""Definitions inside each other that ``schema_text`` spells out."""
_VALUES: Final = frozenset({"default", "const", "enum", "examples"})
"""Keywords of a schema that hold values, in which a ``title`` is no keyword."""


class _NotJson(ValueError):
    """A part of a value is not JSON."""


class JsonType(Generic[T]):
    """An annotation as a reader and writer of JSON.

    Attributes:
        annotation: The annotation, ``Annotated`` included.
        is_plain: Whether its values are JSON themselves: ``Any``, or one of text, number and boolean.
    """

    def __init__(self, annotation: Any, what: str = "the value") -> None:
        """Read an annotation.

        Args:
            annotation: Everything that pydantic reads and writes.
            what: The thing that is annotated, for the message.

        Raises:
            TypeError: Its values have no JSON form; the message says why.
        """
        self.annotation = annotation
        self._is_any = _is_any(annotation)
        self.is_plain = is_plain(annotation)
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(Any if self._is_any else annotation)
        except (PydanticUserError, PydanticUndefinedAnnotation) as error:
            raise TypeError(f"{what}: {_declaration_error(annotation, error)}") from error

    def __repr__(self) -> str:
        return f"<JSON of {_name_of(self.annotation)}>"

    def read(self, value: Any, what: str) -> T:
        """Return a JSON value as a Python value of the type.

        Raises:
            NodeError: ``type-mismatch``; the message names the part that does not fit.
        """
        if self._is_any:
            return value
        try:
            return self.validate(value)
        except ValidationError as error:
            raise PermanentError(self._error_text(what, error), code="type-mismatch") from error

    def validate(self, value: Any) -> T:
        """Return a JSON value as a Python value of the type; as ``read``, with pydantic's error.

        Raises:
            ValidationError: The value does not fit.
        """
        read = self._adapter.validate_json(pydantic_core.to_json(value), strict=True)
        if self._has_choices:
            self._require_choices(value, read)
        return read

    def write(self, value: Any, what: str) -> Any:
        """Return a Python value of the type as JSON.

        JSON is taken too where the type reads it as it stands: an object for a model, a tuple for a
        list.

        Raises:
            NodeError: ``invalid-result``: the value is of another type, or would not be read back as
                what it is; ``result-not-json``: JSON has no form for it.
        """
        if self._is_any:
            return written_plainly(value)
        if self.is_plain:
            return value
        try:
            return self._write_checked(value, what)
        except ValidationError as error:
            raise PermanentError(
                self._error_text(what, error),
                code="invalid-result",
                hint=f"return {_name_of(self.annotation)}, or correct the annotation",
            ) from error
        except _REFUSALS as error:
            raise _not_json(what, error) from error

    def dump(self, value: Any, *, warnings: Literal["error", False]) -> Any:
        """Return the JSON of a value; ``warnings`` says whether one of another type is an error."""
        return self._adapter.dump_python(
            value, mode="json", by_alias=True, round_trip=True, warnings=warnings
        )

    def schema(self, mode: SchemaMode) -> dict[str, Any] | None:
        """Return the JSON Schema of what is read (``validation``) or written, without titles.

        It is None where pydantic has none, as for a type with a validator of its own.
        """
        try:
            schema = self._adapter.json_schema(mode=mode, by_alias=True)
        except (PydanticInvalidForJsonSchema, PydanticUserError):
            return None
        return without_titles(schema)

    def require_readable(self, what: str) -> None:
        """Raise TypeError for a type whose JSON it could not read back, or only in part."""
        written, read = self.schema("serialization"), self.schema("validation")
        if written is None or read is None:
            return
        known = dict(_objects(read))
        for where, properties in _objects(written):
            for name, field in properties.items():
                if field.get("writeOnly"):
                    raise TypeError(
                        f"{what}: {name!r} is hidden in JSON, so that its value would be lost; "
                        "leave it out, or read it where it is used"
                    )
                if not field.get("readOnly") and name not in known.get(where, properties):
                    raise TypeError(
                        f"{what}: {name!r} is written under this name but not read under it; give "
                        "the field one alias instead of validation_alias and serialization_alias"
                    )
        if written.get("writeOnly"):
            raise TypeError(f"{what}: {_name_of(self.annotation)} is hidden in JSON, so it is lost")

    def _write_checked(self, value: Any, what: str) -> Any:
        try:
            written = self.dump(value, warnings="error")
            self._require_same(value, self.validate(written), what)
        except _REFUSALS:
            if (plain := _plain_or_none(value)) is None:
                raise
            checked = self.validate(plain)
            self._require_same(value, checked, what, is_json=True)
            written = self.dump(checked, warnings="error")
        return written

    def _require_choices(self, value: Any, read: Any) -> None:
        """Raise ValidationError where a choice was read of another value that only equals it.

        For pydantic ``true`` and 1.0 are ``Literal[1]``, since Python calls them equal.
        """
        try:
            written = self.dump(read, warnings=False)
            by_name = self._adapter.dump_python(read, mode="json", round_trip=True, warnings=False)
        except _REFUSALS:  # it cannot be written as JSON, as the result of a node would say
            return
        change = _converted(value, written, by_name)
        if change is None:
            return
        where, given, becomes = change
        location = ("choice", *where) if self._is_union else where
        expected = {"expected": json.dumps(becomes)}
        raise ValidationError.from_exception_data(
            _name_of(self.annotation),
            [InitErrorDetails(type="literal_error", loc=location, input=given, ctx=expected)],
        )

    def _require_same(self, given: Any, read: Any, what: str, *, is_json: bool = False) -> None:
        """Raise NodeError if a value is read back as another; JSON may become what it stands for."""
        change = _changed(given, read, what, self._is_kept_as_json if is_json else self._is_kept)
        if change is not None:
            where, was, becomes = change
            raise PermanentError(
                f"{where} is {described(was)}, which would be read back as {described(becomes)}",
                code="invalid-result",
                hint=f"declare {type(becomes).__name__} | {type(was).__name__}, or return "
                f"{described(becomes)}",
            )

    def _is_kept(self, given: Any, back: Any) -> bool:
        is_open = self._has_open_parts and isinstance(back, _JSON_CLASSES)
        return is_open or _is_same_kind(given, back)

    @staticmethod
    def _is_kept_as_json(given: Any, back: Any) -> bool:
        return isinstance(given, str) or _is_same_kind(given, back)

    @cached_property
    def _has_open_parts(self) -> bool:
        """Whether a part of the type is ``Any``, where every value becomes plain JSON."""
        schema = self.schema("serialization")
        return schema is None or _is_open(schema)

    @cached_property
    def _has_choices(self) -> bool:
        """Whether a part of the type is one of some numbers or booleans."""
        return _has_number_choices(self._adapter.core_schema)

    @property
    def _is_union(self) -> bool:
        return get_origin(bare(self.annotation)) in (Union, types.UnionType)

    def _error_text(self, what: str, error: ValidationError) -> str:
        found = error.errors(include_url=False)[:_MOST_ERRORS]
        first = 1 if self._is_union else 0
        texts = (describe_error(_path(what, each["loc"][first:]), each) for each in found)
        return ("; or " if self._is_union else "; ").join(dict.fromkeys(texts))


def written_plainly(value: Any) -> Any:
    """Return a value without an annotation as JSON: each part as its own type is written.

    Models, dataclasses, dates, enumerations and the like become JSON, also inside lists and dicts.
    A value that has no JSON form is returned as it is, to be refused where results are checked.
    """
    plain = _plain_or_none(value)
    return value if plain is None else plain


def _plain_or_none(value: Any) -> Any:
    try:
        return _plain(value)
    except _NotJson:
        return None


def _plain(value: Any) -> Any:
    """Return a value as JSON, with the keys of dicts as they are.

    Raises:
        _NotJson: A part has no JSON form, or nests too deep.
    """
    if value is None or type(value) in _SCALARS:
        return value
    try:
        if isinstance(value, dict):
            members = cast("dict[Any, Any]", value)
            return {name: _plain(each) for name, each in members.items()}
        if isinstance(value, list | tuple):
            return [_plain(each) for each in cast("list[Any]", value)]
    except RecursionError as error:
        raise _NotJson from error
    try:
        return _own_type(cast("type[Any]", type(value))).dump(value, warnings=False)
    except (TypeError, *_REFUSALS) as error:
        raise _NotJson from error


@lru_cache(maxsize=1024)
def _own_type(kind: type[Any]) -> JsonType[Any]:
    if kind is object:
        raise TypeError("an object has no JSON form")
    return JsonType(kind)


def without_titles(schema: Any) -> Any:
    """Leave out the titles that pydantic makes of names; they say nothing to a model."""
    if isinstance(schema, list):
        return [without_titles(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _VALUES else without_titles(value)
        for key, value in cast("dict[str, Any]", schema).items()
        if not (key == "title" and isinstance(value, str))
    }


def schema_text(schema: Mapping[str, Any], most: int = 240) -> str:
    """Return a JSON Schema in a few words, as in ``{sku: text, count: integer}``.

    A type that contains itself is named where it comes again, and the text has at most ``most`` characters.
    """
    text = _schema_text(schema, schema.get("$defs", {}), ())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _schema_text(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], inside: tuple[str, ...]
) -> str:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        if name in inside or len(inside) == _DEEPEST or name not in definitions:
            return name
        return _schema_text(definitions[name], definitions, (*inside, name))
    if choices := schema.get("anyOf", schema.get("oneOf")):
        texts = (_schema_text(each, definitions, inside) for each in choices)
        return " or ".join(dict.fromkeys(texts))
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " or ".join(json.dumps(each, ensure_ascii=False) for each in values)
    if schema.get("type") == "array":
        if not schema.get("items"):
            return "list"
        return f"list of {_schema_text(schema['items'], definitions, inside)}"
    if properties := schema.get("properties"):
        fields = (
            f"{name}: {_schema_text(each, definitions, inside)}"
            for name, each in properties.items()
        )
        return f"{{{', '.join(fields)}}}"
    return {"string": "text", None: "any"}.get(schema.get("type"), str(schema.get("type")))


def bare(annotation: Any) -> Any:
    """Return an annotation without what ``Annotated`` adds."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def is_plain(annotation: Any) -> bool:
    """Return whether values of a type are JSON themselves; see ``JsonType``."""
    return _is_any(annotation) or annotation in _SCALARS


def _is_any(annotation: Any) -> bool:
    return annotation in _ANY or isinstance(annotation, TypeVar)


def _name_of(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _declaration_error(
    annotation: Any, error: PydanticUserError | PydanticUndefinedAnnotation
) -> str:
    if error.code == "typed-dict-version":
        return "use typing_extensions.TypedDict instead of typing.TypedDict"
    reason = error.message.splitlines()[0]
    return f"{_name_of(annotation)} is a type that is not JSON: {reason}"


def _path(what: str, location: Iterable[object]) -> str:
    return ".".join(filter(None, [what, *map(str, location)]))


def _not_json(what: str, error: Exception) -> PermanentError:
    is_binary = isinstance(error, UnicodeDecodeError)
    return PermanentError(
        f"{what}: {str(error).splitlines()[0]}",
        code="result-not-json",
        hint="bytes that are no UTF-8 text have no form in JSON; return them as base64 text"
        if is_binary
        else None,
    )


def _changed(
    given: Any, back: Any, where: str, is_kept: Callable[[Any, Any], bool]
) -> tuple[str, Any, Any] | None:
    """Return the first part that is not read back as what it was: where, what it was and is.

    Types are compared, and the keys of dicts. Parts of sets are not, which have no order.
    """
    for name, part, other in _parts(given, back):
        if type(part) is not type(other) or type(part) not in _SCALARS:
            change = _changed(part, other, f"{where}.{name}", is_kept)
            if change is not None:
                return change
    if lost := _lost_keys(given, back):
        return f"a key of {where}", min(lost, key=repr), ""
    return None if is_kept(given, back) else (where, given, back)


def _lost_keys(given: Any, back: Any) -> set[Any]:
    if not (isinstance(given, Mapping) and isinstance(back, Mapping)):
        return set()
    mine, others = cast("Mapping[Any, Any]", given), cast("Mapping[Any, Any]", back)
    return mine.keys() - others.keys()


def _is_same_kind(given: Any, back: Any) -> bool:
    """Return whether a value is of the same kind when it is read back, whatever its parts are.

    Lists and tuples are of one kind, a whole number may become another number, and an object may
    stand for a model.
    """
    if isinstance(back, bool) or (type(given), type(back)) == (float, int):
        return type(given) is type(back)
    if isinstance(given, bool | str):
        return isinstance(back, type(given) if type(given) in _SCALARS else _SCALARS)
    return (
        type(given) is type(back)
        or isinstance(given, _JSON_CLASSES)
        or any(isinstance(given, kind) and isinstance(back, kind) for kind in (Mapping, Set))
    )


def _parts(given: Any, back: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the parts that two values have in common: a name, and both."""
    if isinstance(given, list | tuple) and isinstance(back, list | tuple):
        pairs = zip(cast("list[Any]", given), cast("list[Any]", back), strict=False)
        yield from ((index, *pair) for index, pair in enumerate(pairs))
        return
    mine, others = _members(given), _members(back)
    yield from ((name, part, others[name]) for name, part in mine.items() if name in others)


def _members(value: Any) -> Mapping[Any, Any]:
    """Return the members of a mapping, or the fields of a model or dataclass, by name."""
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value)
    if isinstance(value, BaseModel) or (
        dataclasses.is_dataclass(value) and not isinstance(value, type)
    ):
        return vars(value)
    return {}


def _converted(
    given: Any, written: Any, by_name: Any, where: tuple[int | str, ...] = ()
) -> tuple[tuple[int | str, ...], Any, Any] | None:
    """Return the first number or boolean of a JSON value that was read as another, and where.

    Args:
        given: The JSON value.
        written: What was read, as JSON.
        by_name: The same with the names of fields in place of their aliases, in the same order.
        where: The way to the value.
    """
    if isinstance(given, list) and isinstance(written, list):
        values, others = cast("list[Any]", given), cast("list[Any]", written)
        for index, parts in enumerate(zip(values, others, by_name, strict=False)):
            change = _converted(*parts, (*where, index))
            # A set has no order: the value may stand elsewhere.
            if change is not None and not any(_is_identical(parts[0], each) for each in others):
                return change
    elif isinstance(given, dict) and isinstance(written, dict):
        values, others = cast("dict[str, Any]", given), cast("dict[str, Any]", written)
        for (alias, part), (name, named) in zip(others.items(), by_name.items(), strict=True):
            key = alias if alias in values else name
            if key in values:
                change = _converted(values[key], part, named, (*where, key))
                if change is not None:
                    return change
    elif isinstance(given, int | float) and isinstance(written, int | float):
        is_widened = (type(given), type(written)) == (int, float)
        return None if _is_identical(given, written) or is_widened else (where, given, written)
    return None


def _is_identical(given: Any, other: Any) -> bool:
    return type(given) is type(other) and given == other


def _has_number_choices(schema: Any) -> bool:
    """Return whether a part of a core schema of pydantic takes certain numbers or booleans alone."""
    if isinstance(schema, list | tuple):
        return any(map(_has_number_choices, cast("Sequence[Any]", schema)))
    if not isinstance(schema, Mapping):
        return False
    part = cast("Mapping[str, Any]", schema)
    kind = part.get("type")
    choices = {"literal": part.get("expected"), "enum": part.get("members")}.get(str(kind)) or ()
    values = (each.value if isinstance(each, Enum) else each for each in choices)
    return any(isinstance(each, int | float) for each in values) or any(
        map(_has_number_choices, part.values())
    )


def _objects(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the properties of a schema and of each definition in it, by name."""
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    for name, each in {"": schema, **definitions}.items():
        yield name, each.get("properties", {})


def _is_open(schema: Any) -> bool:
    """Return whether a part of a JSON Schema says nothing about the values there."""
    if not isinstance(schema, dict):
        return False
    part = cast("dict[str, Any]", schema)
    if part.keys() <= {"description", "default"} or part.get("additionalProperties") is True:
        return True
    inner = [part.get("items"), part.get("additionalProperties")]
    for keyword in ("prefixItems", "anyOf", "oneOf", "allOf"):
        inner += part.get(keyword, [])
    for keyword in ("properties", "$defs"):
        inner += part.get(keyword, {}).values()
    return any(map(_is_open, inner))
