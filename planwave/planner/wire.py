"""The shape of a plan as a model writes it, and every way it can differ from it.

Two spellings are read: the one asked for (``channel``, ``source_handle``) and that of a graph
document (``data.channel``, ``sourceHandle``); all other fields are refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Json

_TYPE_NAMES = {
    "string_type": "text",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


class ReplyNode(BaseModel):
    """One step as written; null means "left open", as absent does."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str
    name: str | None = None
    description: str | None = None
    type: str | None = None
    provider: str | None = None
    model: str | None = None
    data: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    ui: dict[str, Any] | None = None


class ReplyEdge(BaseModel):
    """One edge as written, in either spelling."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str | None = None
    source: str
    target: str
    channel: str | None = None
    source_handle: str | None = None
    target_handle: str | None = None
    wire_source_handle: str | None = Field(None, alias="sourceHandle")
    wire_target_handle: str | None = Field(None, alias="targetHandle")
    type: str | None = None
    data: dict[str, Any] | None = None


class ReplyPlan(BaseModel):
    """A whole reply."""

    model_config = ConfigDict(extra="forbid", strict=True)

    title: str | None = None
    nodes: list[ReplyNode]
    edges: list[ReplyEdge]


def parse_reply(value: Json) -> tuple[ReplyPlan | None, list[Diagnostic]]:
    """Give the reply as a :class:`ReplyPlan`, or every difference from its shape.

    Args:
        value: Any JSON value.
    """
    if not isinstance(value, dict):
        message = f"the plan must be an object, got {kind_of(value)}"
        return None, [Diagnostic("not-an-object", "error", message)]
    document: dict[str, Json] = value  # pyright: ignore[reportUnknownVariableType]
    if stranger := _stranger(document):
        return None, [stranger]
    try:
        plan = ReplyPlan.model_validate(document)
    except ValidationError as error:
        return None, [_difference(e, document) for e in error.errors(include_url=False)]
    if not plan.nodes:
        return None, [Diagnostic("empty-plan", "error", "the plan has no nodes", "/nodes")]
    return plan, []


def kind_of(value: Json) -> str:
    """Name a JSON value's kind, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "an array"
        case _:
            return "an object"


def pointer_of(parts: Sequence[str | int]) -> str:
    """Give a JSON pointer (RFC 6901)."""
    return "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in parts)


def _stranger(document: Mapping[str, Json]) -> Diagnostic | None:
    """Recognise what providers send in place of a plan."""
    if document.get("nodes"):
        return None
    if refusal := document.get("refusal"):
        return Diagnostic(
            "refusal",
            "error",
            f"the model refused to plan: {str(refusal)[:200]!r}",
            "/refusal",
            hint="rephrase the goal",
        )
    error = document.get("error")
    if error and "nodes" not in document:
        return Diagnostic(
            "provider-error-reply",
            "error",
            f"the reply is a provider's error, not a plan: {str(error)[:200]}",
            "/error",
            hint="try again, or choose another provider",
        )
    return None


def _difference(error: Mapping[str, Any], document: Mapping[str, Json]) -> Diagnostic:
    location: tuple[str | int, ...] = error["loc"]
    pointer = pointer_of(location)
    where = pointer_of(location[:-1]) or "the top of the plan"
    field = str(location[-1]) if location else "the plan"
    node = _node_at(location, document)
    hint = None
    match error["type"]:
        case "missing":
            code, message = "missing-field", f"missing field {field!r} at {where}"
        case "extra_forbidden":
            code, message = "unknown-field", f"unknown field {field!r} at {where}"
            hint = f"fields known there: {', '.join(_known_fields(location))}"
        case kind if kind in _TYPE_NAMES:
            code = "invalid-field"
            message = f"{pointer} must be {_TYPE_NAMES[kind]}, got {kind_of(error['input'])}"
        case _:
            code, message = "invalid-field", f"{pointer}: {error['msg']}"
    return Diagnostic(code, "error", message, pointer, node=node, hint=hint)


def _known_fields(location: Sequence[str | int]) -> list[str]:
    model = {"nodes": ReplyNode, "edges": ReplyEdge}.get(str(location[0])) or ReplyPlan
    if len(location) == 1:
        model = ReplyPlan
    return [f.alias or name for name, f in model.model_fields.items() if name not in ("ui",)]


def _node_at(location: Sequence[str | int], document: Mapping[str, Json]) -> str | None:
    match location:
        case ("nodes", int() as index, *_):
            name = document["nodes"][index]
            found = name.get("id") if isinstance(name, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            return found if isinstance(found, str) else None
        case _:
            return None
