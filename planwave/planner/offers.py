"""What a plan may use, told to the model: node types, providers, and the JSON Schema of a reply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from planwave.graph.capabilities import Catalogue, NodeFacts
from planwave.graph.model import LINK, Json, Port
from planwave.prompts.render import ProviderCard, TypeCard
from planwave.providers.api import Providers

DEFAULT_TYPE = "agent"
_MODEL_FIELDS = frozenset({"provider", "model"})
_SOCKET_SIDE = "bottom"
"""Sockets of data fields: the fields themselves are listed, so these would say it twice."""
_MODELS_SHOWN = 12
_OPTIONAL_FIELDS = 18
"""Providers refuse schemas with more than 24 optional fields; nodes and edges use 6 besides."""
_KEPT = frozenset({"type", "enum", "const", "anyOf", "items", "properties", "required"})
"""Schema keywords that every provider with structured output takes."""


def calls_model(catalogue: Catalogue, node_type: str) -> bool:
    """Say whether nodes of a type ask a model, so that ``data`` has ``provider`` and ``model``."""
    return bool(getattr(_implementation(catalogue, node_type), "calls_model", False))


def type_cards(catalogue: Catalogue) -> list[TypeCard]:
    """Give every type that runs as a step, the default one first."""
    return [_card(catalogue, facts) for facts in _steps(catalogue)]


def provider_cards(providers: Providers) -> list[ProviderCard]:
    """Give every available provider with some of its models, its default model first."""
    cards: list[ProviderCard] = []
    for info in providers.list():
        if info.available:
            first = (info.default_model,) if info.default_model else ()
            models = tuple(dict.fromkeys((*first, *info.models)))[:_MODELS_SHOWN]
            cards.append(ProviderCard(info.name, models))
    return cards


def reply_schema(catalogue: Catalogue) -> dict[str, Json] | None:
    """Give the JSON Schema of a plan, closed in every object, as strict providers demand.

    None where the node types have more data fields than such a schema can hold: JSON in the text
    is asked for then.
    """
    types = [facts.node_type for facts in _steps(catalogue)]
    fields: dict[str, Json] = {}
    for name in types:
        for field, schema in _closed_fields(catalogue, name):
            known = fields.setdefault(field, schema)
            if known != schema:
                fields[field] = {"anyOf": [*known.get("anyOf", [known]), schema]}
    if len(fields) > _OPTIONAL_FIELDS:
        return None
    text: Json = {"type": "string"}
    node = {
        "id": text,
        "name": text,
        "description": text,
        "type": {"type": "string", "enum": types},
        "provider": text,
        "model": text,
    }
    if fields:
        node["data"] = _object(fields, required=())
    edge = {
        "source": text,
        "target": text,
        "channel": {"type": "string", "enum": ["flow", "link"]},
        "source_handle": text,
        "target_handle": text,
    }
    return _object(
        {
            "title": text,
            "nodes": {
                "type": "array",
                "items": _object(node, required=("id", "name", "description", "type")),
            },
            "edges": {
                "type": "array",
                "items": _object(edge, required=("source", "target", "channel")),
            },
        },
        required=("title", "nodes", "edges"),
    )


def _steps(catalogue: Catalogue) -> Iterator[NodeFacts]:
    names = sorted(catalogue.names(), key=lambda name: (name != DEFAULT_TYPE, name))
    for name in names:
        facts = catalogue.facts(name)
        if facts is not None and facts.executes:
            yield facts


def _card(catalogue: Catalogue, facts: NodeFacts) -> TypeCard:
    fields = [
        _field_line(field, schema)
        for field, schema in _fields(catalogue, facts.node_type)
        if field not in _MODEL_FIELDS
    ]
    return TypeCard(
        facts.node_type,
        facts.purpose,
        _handles(facts.inputs),
        _handles(facts.outputs),
        fields,
        facts.template_fields or (),
    )


def _handles(ports: Iterable[Port]) -> list[str]:
    return [
        f"{port.name} ({port.type}{', link' if port.channel == LINK else ''})"
        for port in ports
        if port.side != _SOCKET_SIDE
    ]


def _field_line(field: str, schema: Mapping[str, Json]) -> str:
    """Give ``name (kind)`` and the field's own description, where it has one."""
    told = schema.get("description")
    plain = _closed(schema)
    kind = "value" if plain is None else _kind(plain)
    return f"{field} ({kind})" + (f": {told}" if told else "")


def _kind(schema: Mapping[str, Json]) -> str:
    if "enum" in schema:
        return " | ".join(str(choice) for choice in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(choice) for choice in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items') or {})}"
    if properties := schema.get("properties"):
        return "{" + ", ".join(f"{name}: {_kind(s)}" for name, s in properties.items()) + "}"
    return str(schema.get("const") or schema.get("type") or "value")


def _implementation(catalogue: Catalogue, node_type: str) -> Any:
    try:
        return catalogue.implementation(node_type)
    except KeyError:
        return None


def _fields(catalogue: Catalogue, node_type: str) -> Iterator[tuple[str, dict[str, Json]]]:
    """Give the data fields of a type as JSON Schemas, references resolved where they can be."""
    model = getattr(_implementation(catalogue, node_type), "Data", None)
    if model is None:
        return
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})
    for field, found in schema.get("properties", {}).items():
        yield field, _resolved(found, definitions, ())


def _closed_fields(catalogue: Catalogue, node_type: str) -> Iterator[tuple[str, dict[str, Json]]]:
    for field, schema in _fields(catalogue, node_type):
        if field not in _MODEL_FIELDS and (closed := _closed(schema)) is not None:
            yield field, closed


def _resolved(schema: Json, definitions: Mapping[str, Json], seen: tuple[str, ...]) -> Json:
    """Put definitions in place of references; one that holds itself becomes "anything"."""
    if isinstance(schema, list):
        return [_resolved(s, definitions, seen) for s in schema]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return schema
    table: dict[str, Json] = schema  # pyright: ignore[reportUnknownVariableType]
    reference = table.get("$ref")
    if isinstance(reference, str):
        name = reference.rsplit("/", 1)[-1]
        return {} if name in seen else _resolved(definitions.get(name), definitions, (*seen, name))
    return {key: _resolved(value, definitions, seen) for key, value in table.items()}


def _closed(schema: Mapping[str, Json]) -> dict[str, Json] | None:
    """Give a schema in the keywords all providers take, or None where it admits open objects.

    "Anything" narrows to text, which is what a model means by it.
    """
    kept = {key: value for key, value in schema.items() if key in _KEPT} or {"type": "string"}
    if choices := kept.get("anyOf"):
        closed = [_closed(c) for c in choices if c.get("type") != "null"]
        if None in closed:
            return None
        return closed[0] if len(closed) == 1 else {"anyOf": closed}
    if kept.get("type") == "array":
        items = _closed(kept.get("items") or {})
        return None if items is None else {"type": "array", "items": items}
    if kept.get("type") == "object" or "properties" in kept:
        return _closed_object(kept)
    return kept


def _closed_object(schema: Mapping[str, Json]) -> dict[str, Json] | None:
    properties: dict[str, Json] = {}
    for name, found in schema.get("properties", {}).items():
        if (closed := _closed(found)) is None:
            return None
        properties[name] = closed
    if not properties:
        return None
    return _object(properties, required=schema.get("required", ()))


def _object(properties: Mapping[str, Json], required: Iterable[str]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
