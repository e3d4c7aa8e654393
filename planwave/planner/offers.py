"""What a plan may use, told to the model: node types, providers, and the JSON Schema of a reply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from planwave.errors import InputError
from planwave.graph.capabilities import Catalogue, NodeFacts
from planwave.graph.model import LINK, Json, Port
from planwave.prompts.render import ProviderCard, TypeCard
from planwave.providers.api import Providers
from planwave.providers.local_catalogue import MODEL_FILES

DEFAULT_TYPE = "agent"
_MODEL_FIELDS = frozenset({"provider", "model"})
_SOCKET_SIDE = "bottom"
"""Sockets of data fields: the fields themselves are listed, so these would say it twice."""
_MODELS_SHOWN = 12
_WAYS_SHOWN = 3
_KEPT = frozenset({"type", "enum", "const", "anyOf", "items", "properties", "required"})
"""Schema keywords that all providers take; the reader knows the rest."""


def calls_model(catalogue: Catalogue, node_type: str) -> bool:
    """Say whether nodes of a type ask a model, so that ``data`` has ``provider`` and ``model``."""
    return bool(getattr(_implementation(catalogue, node_type), "calls_model", False))


def type_cards(catalogue: Catalogue) -> list[TypeCard]:
    """Give every type that runs as a step, the default one first."""
    return [_card(catalogue, facts) for facts in _steps(catalogue)]


def provider_cards(providers: Providers) -> list[ProviderCard]:
    """Give every available provider with some of its models, its default model first.

    A model too weak to plan is not one to choose for a step unasked, so it is left out.
    """
    cards: list[ProviderCard] = []
    for info in providers.list():
        first = (info.default_model,) if info.default_model else ()
        models = dict.fromkeys((*first, *info.models))
        able = [model for model in models if providers.profile(info.name, model).plans]
        if info.available and (able or not models):
            cards.append(ProviderCard(info.name, tuple(able[:_MODELS_SHOWN])))
    return cards


def check_can_plan(providers: Providers, provider: str, model: str) -> None:
    """Refuse a model that cannot write plans before it is fetched, loaded or asked.

    Raises:
        InputError: It cannot (``model-cannot-plan``); the hint names models that can.
    """
    if providers.profile(provider, model).plans:
        return
    able = [(card.name, card.models[0]) for card in provider_cards(providers) if card.models]
    able = able or [("local", file.name) for file in MODEL_FILES.values() if file.plans]
    first, *others = able[:_WAYS_SHOWN]
    ways = [f"--provider {first[0]} --model {first[1]}", *("/".join(other) for other in others)]
    raise InputError(
        f"{provider}/{model} is too small to write plans",
        code="model-cannot-plan",
        hint=f"plan with another: {', or '.join(ways)}; "
        f"{model} still runs the steps of a graph that name it",
    )


def reply_schema(catalogue: Catalogue) -> dict[str, Json]:
    """Give the JSON Schema of a plan; ``data`` may hold the fields of any node type."""
    types = [facts.node_type for facts in _steps(catalogue)]
    fields: dict[str, Json] = {}
    for name in types:
        for field, schema in _fields(catalogue, name):
            if field in _MODEL_FIELDS:
                continue
            known = fields.setdefault(field, schema)
            if known != schema:
                fields[field] = {"anyOf": [*known.get("anyOf", [known]), schema]}
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
    nodes = _object(node, required=("id", "name", "description", "type"))
    edges = _object(edge, required=("source", "target", "channel"))
    plan = {
        "title": text,
        "nodes": {"type": "array", "items": nodes},
        "edges": {"type": "array", "items": edges},
    }
    return _object(plan, required=tuple(plan))


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
    return f"{field} ({_kind(schema)})"


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
    """Give the data fields of a type as plain JSON Schemas.

    A field whose schema says ``"planned": false`` is not for plans.
    """
    model = getattr(_implementation(catalogue, node_type), "Data", None)
    if model is None:
        return
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})
    for field, found in schema.get("properties", {}).items():
        if found.get("planned") is False:
            continue
        yield field, _plain(_resolved(found, definitions, ()))


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


def _plain(schema: Mapping[str, Json]) -> dict[str, Json]:
    """Give a schema in few keywords; "anything" becomes text, which is what models mean by it."""
    kept = {key: value for key, value in schema.items() if key in _KEPT} or {"type": "string"}
    if choices := kept.pop("anyOf", None):
        plain = [_plain(choice) for choice in choices if choice.get("type") != "null"]
        return plain[0] if len(plain) == 1 else {"anyOf": plain}
    if "items" in kept:
        kept["items"] = _plain(kept["items"])
    if "properties" in kept:
        properties = {name: _plain(found) for name, found in kept["properties"].items()}
        return _object(properties, required=kept.get("required", ()))
    return kept


def _object(properties: Mapping[str, Json], required: Iterable[str]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
