"""What the real providers refuse of the tools of a request, in their words; a request is refused as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_COMBINED = ("oneOf", "anyOf", "allOf", "enum", "not")
_LOOKS_AROUND = re.compile(r"\(\?<?[=!]")
_TYPES = {"array", "boolean", "integer", "null", "number", "object", "string"}
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")


def tool_refusal(shape: str, body: Mapping[str, Any]) -> str | None:
    """Return why a provider refuses the tools of a request; None if it takes them."""
    for number, tool in enumerate(body.get("tools") or []):
        called = tool.get("function", tool)
        schema = called.get("parameters", called.get("input_schema"))
        if schema is None:  # one of the provider's own
            continue
        name = called.get("name", "")
        if not _TOOL_NAME.fullmatch(name):
            return f"Invalid 'tools[{number}].name': string does not match pattern. Expected '^[a-zA-Z0-9_-]+$'."
        find = _anthropic if shape == "anthropic" else _openai
        if "gemini" in str(body.get("model")):
            find = _gemini
        if reason := next(find(schema, called), None):
            return f"Invalid schema for function '{name}': {reason}"
    return None


def _openai(schema: Mapping[str, Any], called: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object":
        yield f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    if "properties" not in schema:
        yield "In context=(), object schema missing properties."
    if any(word in schema for word in _COMBINED):
        yield "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    if len(called.get("description") or "") > 1_024:
        yield "string too long. Expected a string with maximum length 1024."
    for where, part in _parts(schema):
        for reason in _faults_of_openai(part, schema):
            yield f"In context={where}, {reason}"


def _faults_of_openai(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    kinds = part["type"] if isinstance(part.get("type"), list) else [part.get("type")]
    if not all(kind is None or kind in _TYPES for kind in kinds):
        yield f"{part['type']!r} is not valid under any of the given schemas."
    if "description" in part and not isinstance(part["description"], str):
        yield f"{part['description']!r} is not of type 'string'."
    if "array" in kinds and not isinstance(part.get("items"), dict):
        yield "array schema missing items."
    if isinstance(part.get("exclusiveMinimum"), bool):
        yield "True is not of type 'number'."
    if isinstance(pattern := part.get("pattern"), str):
        yield from _faults_of_pattern(pattern)
    if isinstance(part.get("$ref"), str) and not _resolves(part["$ref"], schema):
        yield f"reference to unknown component {part['$ref']!r}."


def _faults_of_pattern(pattern: str) -> Iterator[str]:
    if _LOOKS_AROUND.search(pattern):
        yield "regex look-around is not supported."
    try:
        re.compile(pattern)
    except re.error:
        yield f"{pattern!r} is not a 'regex'."


def _anthropic(schema: Mapping[str, Any], called: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "input_schema.type: Input should be 'object'"
    if any(word in schema for word in ("oneOf", "allOf", "anyOf")):
        yield "input_schema does not support oneOf, allOf, or anyOf at the top level"
    for _, part in _parts(schema):
        for name in part.get("properties") or {}:
            if not _PROPERTY.fullmatch(name):
                yield "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
        if isinstance(part.get("items"), list) or isinstance(part.get("exclusiveMinimum"), bool):
            yield "JSON schema is invalid. It must match JSON Schema draft 2020-12"
        if isinstance(part.get("$ref"), str) and not _resolves(part["$ref"], schema):
            yield "JSON schema is invalid. It must match JSON Schema draft 2020-12"


def _gemini(schema: Mapping[str, Any], called: Mapping[str, Any]) -> Iterator[str]:
    known = {"anyOf", "default", "description", "enum", "format", "items", "maxItems", "maxLength", "maximum",
             "minItems", "minLength", "minimum", "nullable", "pattern", "properties", "required", "title", "type"}  # fmt: skip
    for where, part in _parts(schema):
        for word in part:
            if word not in known:
                yield f'Unknown name "{word}" at {where}: Cannot find field.'
        if isinstance(part.get("type"), list):
            yield f"Proto field is not repeating, cannot start list at {where}."
        if part.get("type") == "null":
            yield f'Invalid value at {where}.type (TYPE_ENUM), "null"'
        if part.get("type") == "string" and part.get("format") not in (None, "enum", "date-time"):
            yield f"{where}.format: only 'enum' and 'date-time' are supported for STRING type"
        if part.get("type") == "array" and "items" not in part:
            yield f"{where}.items: missing field."
        if not all(isinstance(each, str) for each in part.get("enum", ())):
            yield f"Invalid value at {where}.enum (TYPE_STRING)"


def _parts(
    schema: Any, where: tuple[Any, ...] = ()
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    if not isinstance(schema, dict):
        return
    yield where, schema
    for word, value in schema.items():
        if word in _NAMED and isinstance(value, dict):
            for name, inner in value.items():
                yield from _parts(inner, (*where, word, name))
        elif word in _MANY and isinstance(value, list):
            for number, inner in enumerate(value):
                yield from _parts(inner, (*where, word, number))
        elif word in _ONE:
            yield from _parts(value, (*where, word))


def _resolves(reference: str, schema: Any) -> bool:
    if not reference.startswith("#"):
        return False
    for step in filter(None, reference[1:].split("/")):
        if not isinstance(schema, dict) or step not in schema:
            return False
        schema = schema[step]
    return True
