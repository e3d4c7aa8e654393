"""The shape of a plan as a model writes it, and every way it can differ from it.

Two spellings are read: the one asked for (``channel``, ``source_handle``) and that of a graph
document (``data.channel``, ``sourceHandle``); all other fields are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Json
from planwave.validation import describe_error, json_type


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


class UnreadParts(NamedTuple):
    """Which parts of a reply were refused.

    Attributes:
        lists: ``nodes`` or ``edges``.
        entries: List and number of a node or edge, and its refused fields; none where all of it is.
    """

    lists: frozenset[str]
    entries: Mapping[tuple[str, int], frozenset[str]]


ALL_READ: Final = UnreadParts(frozenset(), {})


class ReplyPlan(BaseModel):
    """A whole reply."""

    model_config = ConfigDict(extra="forbid", strict=True)

    title: str | None = None
    nodes: list[ReplyNode]
    edges: list[ReplyEdge]
    _unread: UnreadParts = PrivateAttr(ALL_READ)

    @property
    def unread(self) -> UnreadParts:
        """The refused parts of the reply, which this plan leaves out."""
        return self._unread

    def with_unread(self, unread: UnreadParts) -> ReplyPlan:
        """Record the refused parts."""
        self._unread = unread
        return self


_ENTRIES: Final[Mapping[str, type[BaseModel]]] = {"nodes": ReplyNode, "edges": ReplyEdge}


def parse_reply(value: Json) -> tuple[ReplyPlan | None, list[Diagnostic]]:
    """Return a reply as a ``ReplyPlan``, with a diagnostic for each difference from its shape.

    Args:
        value: Any JSON value.

    Returns:
        The plan, or what was written as it must be of one, whose ``unread`` says what was not; None
        where there is nothing to go by.
    """
    if not isinstance(value, dict):
        message = f"the plan must be an object, got {json_type(value)}"
        return None, [Diagnostic("not-an-object", "error", message)]
    document: dict[str, Json] = value  # pyright: ignore[reportUnknownVariableType]
    if stranger := _not_a_plan(document):
        return None, [stranger]
    findings: list[Diagnostic] = []
    try:
        plan = ReplyPlan.model_validate(document)
    except ValidationError as error:
        differences = error.errors(include_url=False)
        findings = [_shape_error(each, document) for each in differences]
        plan = _partial_plan(
            document, _unread_parts([each["loc"] for each in differences], document)
        )
    if not plan.nodes and "nodes" not in plan.unread.lists:
        return None, [
            *findings,
            Diagnostic("empty-plan", "error", "the plan has no nodes", "/nodes"),
        ]
    return plan, findings


def _unread_parts(
    locations: Iterable[tuple[str | int, ...]], document: Mapping[str, Json]
) -> UnreadParts:
    lists: set[str] = set()
    whole: set[tuple[str, int]] = set()
    fields: dict[tuple[str, int], set[str]] = {}
    for place in locations:
        match place:
            case ("nodes" | "edges" as name,):
                lists.add(name)
            case ("nodes" | "edges" as name, int() as number):
                whole.add((name, number))
            case ("nodes" | "edges" as name, int() as number, field, *_):
                refused = fields.setdefault((name, number), set())
                refused.add(str(field))
                if field not in _ENTRIES[name].model_fields and name == "nodes":
                    # It may be the type, which would make another node of it.
                    refused.update({"type"} - document[name][number].keys())
            case _:
                pass  # at the top of the plan, where no node and no edge depends on it
    entries = {entry: frozenset(named) for entry, named in fields.items()}
    return UnreadParts(frozenset(lists), {**entries, **dict.fromkeys(whole, frozenset[str]())})


def _partial_plan(document: Mapping[str, Json], unread: UnreadParts) -> ReplyPlan:
    """Return the valid parts as a plan; a missing required field is empty."""
    title = document.get("title")
    parts: dict[str, Json] = {"title": title if isinstance(title, str) else None}
    for name in _ENTRIES:
        parts[name] = [] if name in unread.lists else [*document[name]]
    for (name, number), refused in unread.entries.items():
        parts[name][number] = _valid_fields(parts[name][number], _ENTRIES[name], refused)
    return ReplyPlan.model_validate(parts).with_unread(unread)


def _valid_fields(entry: Json, model: type[BaseModel], refused: frozenset[str]) -> dict[str, Json]:
    needed = {name: "" for name, field in model.model_fields.items() if field.is_required()}
    fields = cast("dict[str, Json]", entry) if isinstance(entry, dict) else {}
    return {**needed, **{name: value for name, value in fields.items() if name not in refused}}


def pointer_of(parts: Sequence[str | int]) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join("/" + str(p).replace("~", "~0").replace("/", "~1") for p in parts)


def refusal(words: str, pointer: str = "") -> Diagnostic:
    """Return the error of a reply in which the model refuses, with its words."""
    message = f"the model refused to plan: {words[:200]!r}"
    return Diagnostic("refusal", "error", message, pointer, hint="rephrase the goal")


def _not_a_plan(document: Mapping[str, Json]) -> Diagnostic | None:
    """Recognise what providers send in place of a plan."""
    if document.get("nodes"):
        return None
    if words := document.get("refusal"):
        return refusal(str(words), "/refusal")
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


def _shape_error(error: Mapping[str, Any], document: Mapping[str, Json]) -> Diagnostic:
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
        case _:
            code, message = "invalid-field", describe_error(pointer, error)
    return Diagnostic(code, "error", message, pointer, node=node, hint=hint)


def _known_fields(location: Sequence[str | int]) -> list[str]:
    model = _ENTRIES.get(str(location[0]), ReplyPlan)
    if len(location) == 1:
        model = ReplyPlan
    return [f.alias or name for name, f in model.model_fields.items() if name not in ("ui",)]


def _node_at(location: Sequence[str | int], document: Mapping[str, Json]) -> str | None:
    match location:
        case ("nodes", int() as index, *_):
            name = document["nodes"][index]
            node_id = name.get("id") if isinstance(name, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            return node_id if isinstance(node_id, str) else None
        case _:
            return None
