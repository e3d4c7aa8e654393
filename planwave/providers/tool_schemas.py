"""Tools as the protocols of the providers take them: from any JSON Schema to one that is not refused.

A provider refuses the whole request for one tool that it does not like. So each tool is adapted where the
meaning is sure, and one that cannot be saved is left out, with a warning. What the copy says less, the tool checks
itself when it is called.

Source: what the providers answered, by public reports (see the table of ``tests/unit/providers/test_tool_schemas.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from planwave.graph.reading.json_schemas import (
    CUT,
    loosened,
    modern,
    parts_of,
    target_of,
    types_of,
    with_parts,
    written_out,
)
from planwave.providers.protocols import ModelRequest, ToolCall, ToolSpec
from planwave.setting_tables import ToolSchemaDialect

_MAX_DESCRIPTION_CHARS: Final = 1_024
"""OpenAI's limit for the description of a function."""
_PROPERTY_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_.-]")
_MAX_PROPERTY_CHARS: Final = 64
_KEPT_REFERENCE: Final = re.compile(r"#(/(\$defs|definitions)/[A-Za-z0-9_.-]+)?")
_LOOKS_AROUND: Final = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<|\(\?P=|\(\?>|\(\?\(")
_MAX_PATTERN_CHARS: Final = 1_000
_OF_GEMINI: Final = frozenset(
    {
        "anyOf", "default", "description", "enum", "format", "items", "maxItems", "maxLength", "maximum", "minItems",
        "minLength", "minimum", "nullable", "pattern", "properties", "required", "title", "type",
    }
)  # fmt: skip
_FORMATS_OF_GEMINI: Final = frozenset({"date-time", "double", "enum", "float", "int32", "int64"})
_LOST_AT_TOP: Final = ("not", "enum", "const", "if", "then", "else")
_COMBINED: Final = ("allOf", "anyOf", "oneOf")


def dialect_of(of_provider: ToolSchemaDialect, model: str) -> ToolSchemaDialect:
    """Return what the tools of a model have to keep to: Gemini is offered in the protocol of OpenAI too."""
    return "gemini" if of_provider == "openai" and "gemini" in model.lower() else of_provider


@dataclass(frozen=True, slots=True)
class AdaptedTools:
    """The tools of a request as its provider takes them.

    Attributes:
        specs: The tools.
        warnings: Sentences about what was lost.
        renamed: The arguments that have other names than in the tool, by tool: the name for the provider, and the own.
    """

    specs: tuple[ToolSpec, ...]
    warnings: tuple[str, ...] = ()
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def applied_to(self, request: ModelRequest) -> ModelRequest:
        """Return the request with these tools, and calls in the words that the provider knows."""
        must_call = request.must_call and bool(self.specs)
        if not self.renamed:
            return replace(request, tools=self.specs, must_call=must_call)
        names = {
            tool: {own: new for new, own in each.items()} for tool, each in self.renamed.items()
        }
        turns = tuple(
            replace(turn, tool_calls=_renamed_calls(turn.tool_calls, names))
            for turn in request.messages
        )
        return replace(request, tools=self.specs, must_call=must_call, messages=turns)

    def restored(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return calls with the names of arguments that the tools know."""
        return _renamed_calls(calls, self.renamed)


def adapted_tools(tools: Iterable[ToolSpec], dialect: ToolSchemaDialect) -> AdaptedTools:
    """Return the tools as a protocol takes them."""
    if dialect == "json-schema":
        return AdaptedTools(tuple(tools))
    specs: list[ToolSpec] = []
    warnings: list[str] = []
    renamed: dict[str, Mapping[str, str]] = {}
    for tool in tools:
        lost: list[str] = []
        schema = _adapted(tool.parameters, dialect, lost)
        if schema is None:
            warnings.append(f"the tool {tool.name!r} is left out: its arguments are no object")
            continue
        if dialect == "anthropic" and (names := _other_names(schema)):
            schema = _with_names(schema, names)
            renamed[tool.name] = {new: own for own, new in names.items()}
        description = tool.description
        if dialect == "openai" and len(description) > _MAX_DESCRIPTION_CHARS:
            description = f"{description[: _MAX_DESCRIPTION_CHARS - 1]}…"
            lost.append(f"the end of its description ({len(tool.description)} characters)")
        if lost:
            what = ", ".join(dict.fromkeys(lost))
            warnings.append(
                f"the tool {tool.name!r} is offered without {what}, which the provider does not take"
            )
        specs.append(ToolSpec(tool.name, description, schema))
    return AdaptedTools(tuple(specs), tuple(warnings), renamed)


def _adapted(
    schema: Mapping[str, Any], dialect: ToolSchemaDialect, lost: list[str]
) -> dict[str, Any] | None:
    """Return the schema of a tool's arguments for a dialect; None if they are no object."""

    def is_kept(reference: str) -> bool:
        is_plain = _KEPT_REFERENCE.fullmatch(reference) is not None
        return dialect != "gemini" and is_plain and target_of(reference, schema) is not None

    whole = modern(dict(schema))
    merged = _merged_top(whole, whole, lost)
    if merged is None:
        return None
    parameters = written_out(merged, 1, is_kept)
    rewrite = (
        _for_gemini
        if dialect == "gemini"
        else _for_openai
        if dialect == "openai"
        else _closed_arrays
    )
    parameters = _everywhere(parameters, lambda part: rewrite(part, lost))
    parameters = loosened(parameters)
    properties = parameters.get("properties")
    return {
        **parameters,
        "type": "object",
        "properties": properties if isinstance(properties, dict) else {},
    }


def _everywhere(part: Any, rewrite: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if not isinstance(part, dict):
        return part
    words = cast("dict[str, Any]", part)
    return rewrite(with_parts(words, lambda inner: _everywhere(inner, rewrite)))


# -- the top: one object, with nothing combined


def _merged_top(
    schema: Mapping[str, Any], root: Mapping[str, Any], lost: list[str], depth: int = 4
) -> dict[str, Any] | None:
    """Return a schema of an object without the words that no provider takes at the top; None if it is none."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target, beside = (
            target_of(reference, root),
            {k: v for k, v in schema.items() if k != "$ref"},
        )
        named = cast("dict[str, Any]", target) if isinstance(target, dict) else {}
        schema = {**named, **beside} if depth else beside
        return _merged_top(schema, root, lost, max(depth - 1, 0))
    kinds = types_of(schema)
    if kinds and "object" not in kinds:
        return None
    top = {word: value for word, value in schema.items() if word not in (*_LOST_AT_TOP, *_COMBINED)}
    lost += [f"{word!r} at the top" for word in ("not", "enum", "const", "if") if word in schema]
    top["type"] = "object"
    for word in _COMBINED:
        choices = schema.get(word)
        if not isinstance(choices, list) or not depth:
            continue
        merged = [
            _merged_top(cast("dict[str, Any]", each), root, [], depth - 1)
            for each in cast("list[Any]", choices)
            if isinstance(each, dict)
        ]
        objects = [each for each in merged if each is not None]
        if not objects or (word == "allOf" and len(objects) < len(merged)):
            return None
        top = _with_all(top, objects) if word == "allOf" else _with_any(top, objects, lost, word)
    return top


def _with_all(whole: dict[str, Any], parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return an object that has the properties of all parts, and needs what any of them needs."""
    for part in parts:
        whole = _with_properties(whole, part, "allOf")
        whole["required"] = list(dict.fromkeys([*_required(whole), *_required(part)]))
    return whole


def _with_any(
    whole: dict[str, Any], parts: Sequence[Mapping[str, Any]], lost: list[str], word: str
) -> dict[str, Any]:
    """Return an object that has the properties of all parts, and needs what all of them need."""
    common = [
        name for name in _required(parts[0]) if all(name in _required(each) for each in parts)
    ]
    together: dict[str, Any] = {"properties": {}}
    for part in parts:
        together = _with_properties(together, part, "anyOf")
    whole = _with_properties(whole, together, "allOf")
    if required := list(dict.fromkeys([*_required(whole), *common])):
        whole["required"] = required
    lost.append(f"{word!r} at the top, whose properties it has all")
    return whole


def _with_properties(whole: dict[str, Any], part: Mapping[str, Any], word: str) -> dict[str, Any]:
    own, others = _properties(whole), _properties(part)
    joined = {
        name: schema if name not in own or own[name] == schema else {word: [own[name], schema]}
        for name, schema in others.items()
    }
    result = {**part, **whole, "properties": {**own, **joined}}
    for closed in ("additionalProperties", "unevaluatedProperties"):
        result.pop(closed, None)
    result["required"] = _required(whole)
    if not result["required"]:
        del result["required"]
    return result


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}


def _required(schema: Mapping[str, Any]) -> list[str]:
    names = schema.get("required")
    return (
        [each for each in cast("list[Any]", names) if isinstance(each, str)]
        if isinstance(names, list)
        else []
    )


# -- each part


def _closed_arrays(part: dict[str, Any], lost: list[str]) -> dict[str, Any]:
    """Return a part whose arrays have ``items``, and whose named parts are objects."""
    if isinstance(properties := part.get("properties"), dict):
        named = cast("dict[str, Any]", properties)
        part = {
            **part,
            "properties": {k: {} if v is True else v for k, v in named.items() if v is not False},
        }
    if "array" in types_of(part) and not isinstance(part.get("items"), dict):
        most = part.get("prefixItems")
        if part.get("items") is False and isinstance(most, list):
            part = {**part, "maxItems": len(cast("list[Any]", most))}
        part = {**part, "items": {}}
    return part


def _for_openai(part: dict[str, Any], lost: list[str]) -> dict[str, Any]:
    part = _closed_arrays(part, lost)
    pattern, patterns = part.get("pattern"), part.get("patternProperties")
    if isinstance(pattern, str) and not _is_plain_pattern(pattern):
        lost.append(f"the pattern {pattern[:40]!r}")
        part = {CUT: True} | {word: value for word, value in part.items() if word != "pattern"}
    if isinstance(patterns, dict):
        named = cast("dict[str, Any]", patterns)
        plain = {name: value for name, value in named.items() if _is_plain_pattern(name)}
        if len(plain) < len(named):
            lost.append("properties by a pattern")
            part = {CUT: True, **part, "patternProperties": plain}
            part.pop("additionalProperties", None)
    return part


def _is_plain_pattern(pattern: str) -> bool:
    """Return whether a pattern has nothing that an engine in linear time lacks, and Python's lacks neither."""
    if len(pattern) > _MAX_PATTERN_CHARS or _LOOKS_AROUND.search(pattern):
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _for_gemini(part: dict[str, Any], lost: list[str]) -> dict[str, Any]:
    part = with_parts(_nullable(_one_choice(part)), _some_or_null)
    part = _for_openai(part, lost)
    choices = cast("Any", part.get("enum"))
    if isinstance(choices, list) and not all(
        isinstance(each, str) for each in cast("list[Any]", choices)
    ):
        part = {CUT: True} | {word: value for word, value in part.items() if word != "enum"}
    if part.get("format") not in (None, *_FORMATS_OF_GEMINI):
        part = {word: value for word, value in part.items() if word != "format"}
    gone = part.keys() - _OF_GEMINI - {CUT, "$defs", "definitions"}
    lost += [repr(word) for word in sorted(gone - {"additionalProperties", "$schema", "$id"})]
    gemini_part = {word: value for word, value in part.items() if word in _OF_GEMINI}
    if "properties" in gemini_part and "required" in gemini_part:
        gemini_part["required"] = [
            name for name in _required(gemini_part) if name in _properties(gemini_part)
        ]
    return gemini_part | ({CUT: True} if gone or CUT in part else {})


def _one_choice(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part with ``anyOf`` alone of the words that combine, and ``enum`` in place of ``const``."""
    copy = dict(part)
    if "const" in copy:
        copy["enum"] = [copy.pop("const")]
    if "oneOf" in copy and "anyOf" not in copy:
        copy["anyOf"] = copy.pop("oneOf")
    listed = copy.get("allOf")
    if (
        isinstance(listed, list)
        and len(cast("list[Any]", listed)) == 1
        and isinstance(listed[0], dict)
    ):
        del copy["allOf"]
        copy = {**cast("dict[str, Any]", listed[0]), **copy}
    return copy


def _some_or_null(part: Any) -> Any:
    """Return a part for one that is null alone, a type that there is not."""
    is_null = isinstance(part, dict) and cast("dict[str, Any]", part).get("type") == "null"
    return {"nullable": True} if is_null else cast("Any", part)


def _nullable(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part that says by ``nullable`` that it may be null, and has one type."""
    kinds = types_of(part)
    others = [kind for kind in kinds if kind != "null"]
    copy = dict(part)
    if isinstance(part.get("type"), list):
        del copy["type"]
        if len(others) == 1:
            copy["type"] = others[0]
        elif others and "anyOf" not in copy:
            copy["anyOf"] = [
                {"type": kind} | ({"items": {}} if kind == "array" else {}) for kind in others
            ]
    choices: Any = copy.get("anyOf")
    listed = cast("list[Any]", choices) if isinstance(choices, list) else []
    values = [each for each in listed if each != {"type": "null"}]
    if "null" in kinds or len(values) < len(listed):
        copy["nullable"] = True
    if len(values) < len(listed):
        copy["anyOf"] = values
    if listed and len(values) == 1 and isinstance(values[0], dict):
        del copy["anyOf"]
        copy = {**cast("dict[str, Any]", values[0]), **copy}
    return copy


# -- names of arguments


def _other_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return a name that Anthropic takes for each name of a property that it does not."""
    property_names = {name for _, part in parts_of(schema) for name in _properties(part)}
    names: dict[str, str] = {}
    for name in sorted(property_names):
        if _PROPERTY_NAME.fullmatch(name):
            continue
        plain = first = _NOT_IN_NAMES.sub("_", name)[:_MAX_PROPERTY_CHARS] or "_"
        number = 1
        while plain in property_names or plain in names.values():
            number += 1
            ending = f"_{number}"
            plain = first[: _MAX_PROPERTY_CHARS - len(ending)] + ending
        names[name] = plain
    return names


def _with_names(schema: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    def rename(part: dict[str, Any]) -> dict[str, Any]:
        copy = dict(part)
        for word in ("properties", "dependentRequired", "dependentSchemas"):
            if isinstance(held := copy.get(word), dict):
                named = cast("dict[str, Any]", held)
                copy[word] = {names.get(name, name): value for name, value in named.items()}
        if isinstance(dependent := copy.get("dependentRequired"), dict):
            copy["dependentRequired"] = {
                name: [names.get(each, each) for each in needed]
                for name, needed in cast("dict[str, list[str]]", dependent).items()
            }
        if "required" in copy:
            copy["required"] = [names.get(name, name) for name in _required(copy)]
        copy.pop("propertyNames", None)
        return copy

    return _everywhere(schema, rename)


def _renamed_calls(
    calls: Sequence[ToolCall], names: Mapping[str, Mapping[str, str]]
) -> tuple[ToolCall, ...]:
    return tuple(
        call._replace(arguments=_renamed_keys(call.arguments, names[call.name]))
        if call.name in names
        else call
        for call in calls
    )


def _renamed_keys(arguments: str, names: Mapping[str, str]) -> str:
    """Return the JSON of arguments with other names of keys; text that is no JSON stays."""
    is_changed = False

    def rename(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal is_changed
        is_changed = is_changed or any(name in names for name, _ in pairs)
        return {names.get(name, name): value for name, value in pairs}

    try:
        value = json.loads(arguments, object_pairs_hook=rename)
    except (ValueError, RecursionError):
        return arguments
    return json.dumps(value, ensure_ascii=False) if is_changed else arguments
