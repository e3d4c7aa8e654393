"""The shape of a plan as a model writes it, and every way it can differ from it.

The shape that is asked for has ``steps``, each with the earlier steps that it depends on. Two others are
read: nodes with a list of edges (``channel``, ``source_handle``), and the graph document
(``data.channel``, ``sourceHandle``). All other fields are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import Json
from planwave.validation import describe_error, json_type


class ReplySource(BaseModel):
    """What a step reads of an earlier one: an output, and the input that it goes to."""

    model_config = ConfigDict(extra="forbid", strict=True)

    step: str
    handle: str | None = None
    input: str | None = None


class ReplyNode(BaseModel):
    """One step as written; null means "left open", as absent does.

    ``sources`` names the handles of steps that it depends on; ``depends_on`` may name them too.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str
    name: str | None = None
    depends_on: list[str] | None = None
    sources: list[ReplySource] | None = Field(None, alias="from")
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
    _list_name: str = PrivateAttr("nodes")

    @property
    def unread(self) -> UnreadParts:
        """The refused parts of the reply, which this plan leaves out."""
        return self._unread

    @property
    def list_name(self) -> str:
        """The name that the reply has for its nodes: ``steps`` or ``nodes``."""
        return self._list_name

    def as_written(self, unread: UnreadParts, list_name: str) -> ReplyPlan:
        """Record the refused parts, and the name of the nodes."""
        self._unread, self._list_name = unread, list_name
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
    document, name = _with_lists(cast("dict[str, Json]", value))
    if stranger := _not_a_plan(document):
        return None, [stranger]
    findings: list[Diagnostic] = []
    unread = ALL_READ
    try:
        plan = ReplyPlan.model_validate(document)
    except ValidationError as error:
        differences = error.errors(include_url=False)
        findings = [_shape_error(each, document, name) for each in differences]
        unread = _unread_parts([each["loc"] for each in differences], document)
        plan = _partial_plan(document, unread)
    if not plan.nodes and "nodes" not in unread.lists:
        return None, [
            *findings,
            Diagnostic("empty-plan", "error", f"the plan has no {name}", f"/{name}"),
        ]
    return plan.as_written(unread, name), findings


def _with_lists(document: dict[str, Json]) -> tuple[dict[str, Json], str]:
    """Return a reply with ``nodes`` and ``edges``, and the name that it has for its nodes.

    Edges may be missing where the nodes say themselves what they depend on.
    """
    is_old = "nodes" in document or ("edges" in document and "steps" not in document)
    name = "nodes" if is_old else "steps"
    if not is_old:
        document = {"nodes" if key == name else key: part for key, part in document.items()}
    nodes = document.get("nodes")
    listed = cast("list[Json]", nodes) if isinstance(nodes, list) else ()
    has_sources = any(
        isinstance(each, dict) and {"depends_on", "from"} & each.keys() for each in listed
    )
    if "edges" not in document and (name == "steps" or has_sources):
        document = {**document, "edges": []}
    return document, name


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
                if name == "nodes" and field not in _field_names(ReplyNode):
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
    return ReplyPlan.model_validate(parts)


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


def _shape_error(
    error: Mapping[str, Any], document: Mapping[str, Json], list_name: str
) -> Diagnostic:
    location: tuple[str | int, ...] = error["loc"]
    node = _node_at(location, document)
    known = _known_fields(location, list_name)
    if location[:1] == ("nodes",):
        location = list_name, *location[1:]
    pointer = pointer_of(location)
    where = pointer_of(location[:-1]) or "the top of the plan"
    field = str(location[-1]) if location else "the plan"
    hint = None
    match error["type"]:
        case "missing":
            code, message = "missing-field", f"missing field {field!r} at {where}"
        case "extra_forbidden":
            code, message = "unknown-field", f"unknown field {field!r} at {where}"
            hint = f"fields known there: {', '.join(known)}"
        case _:
            code, message = "invalid-field", describe_error(pointer, error)
    return Diagnostic(code, "error", message, pointer, node=node, hint=hint)


def _known_fields(location: Sequence[str | int], list_name: str) -> list[str]:
    match location:
        case ("nodes", int(), "from", *_, _):
            return _field_names(ReplySource)
        case ("nodes" | "edges" as name, int(), *_):
            return [field for field in _field_names(_ENTRIES[name]) if field != "ui"]
        case _:
            names = {"nodes": list_name}
            return [names.get(name, name) for name in _field_names(ReplyPlan)]


def _field_names(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _node_at(location: Sequence[str | int], document: Mapping[str, Json]) -> str | None:
    match location:
        case ("nodes", int() as index, *_):
            name = document["nodes"][index]
            node_id = name.get("id") if isinstance(name, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            return node_id if isinstance(node_id, str) else None
        case _:
            return None
