"""The form of operations: errors that do not depend on the plan they are applied to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from planwave.errors import InvalidOperation
from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.json_values import pointer_part
from planwave.graph.model import FLOW, ID_HINT, Json, is_id
from planwave.graph.operations import (
    AddEdge,
    AddNode,
    Operation,
    Rename,
    ReplaceGraph,
    SetTitle,
    UpdateNode,
)
from planwave.graph.reading.documents import names_schema
from planwave.graph.reading.fields import CHANNEL_HINT
from planwave.validation import json_type

MAX_TITLE_CHARS: Final = 200
NODES, EDGES = "nodes", "edges"

_TEXT: Final = (str,)
_OBJECT: Final = (dict,)
_OPTIONAL_TEXT: Final = (str, type(None))
_OPTIONAL_OBJECT: Final = (dict, type(None))
_FIELD_TYPES: Final[Mapping[str, Mapping[str, tuple[type, ...]]]] = {
    NODES: {
        "id": _TEXT,
        "type": _TEXT,
        "name": _OPTIONAL_TEXT,
        "description": _OPTIONAL_TEXT,
        "data": _OPTIONAL_OBJECT,
        "policy": _OPTIONAL_OBJECT,
        "ui": _OPTIONAL_OBJECT,
    },
    EDGES: {
        "id": _OPTIONAL_TEXT,
        "source": _TEXT,
        "sourceHandle": _OPTIONAL_TEXT,
        "target": _TEXT,
        "targetHandle": _OPTIONAL_TEXT,
        "type": _OPTIONAL_TEXT,
        "data": _OBJECT,
    },
}
"""The types of the fields of nodes and edges; a field that may be null may be missing."""


def check_operations(operations: Sequence[Operation]) -> None:
    """Check the form of operations, which does not depend on the plan they are applied to.

    A service calls it before it compares versions: a request that no version could take is wrong,
    not outdated (RFC 9110, section 13.2.1).

    Raises:
        InvalidOperation: With every error, at its pointer.
    """
    errors: list[Diagnostic] = []
    for number, operation in enumerate(operations):
        errors += _operation_errors(operation, f"/operations/{number}")
    if errors:
        raise InvalidOperation(errors)


def _operation_errors(operation: Operation, pointer: str) -> list[Diagnostic]:
    match operation:
        case AddNode(node):
            return form_errors(NODES, node, f"{pointer}/node")
        case AddEdge(edge):
            return form_errors(EDGES, with_channel(edge), f"{pointer}/edge")
        case ReplaceGraph(graph):
            return _graph_errors(graph, f"{pointer}/graph")
        case UpdateNode(_, changes) if "id" in changes:
            message = "an update cannot change the id of a node"
            hint = "use the operation rename"
            return [Diagnostic("invalid-field", "error", message, f"{pointer}/set/id", hint=hint)]
        case Rename(node_id, new_id) if new_id != node_id:
            return _id_errors(new_id, f"{pointer}/to")
        case SetTitle(title) if not _is_title(title):
            hint = f"write 1 to {MAX_TITLE_CHARS} characters without line breaks"
            message = "a title is one line of text"
            return [Diagnostic("invalid-title", "error", message, f"{pointer}/title", hint=hint)]
        case _:
            return []


def with_channel(edge: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return an edge that an operation adds, as a flow edge where it names no channel.

    Graph documents have to name the channel of each edge.
    """
    data = edge.get("data")
    if data is None:
        return {**edge, "data": {"channel": FLOW}}
    if isinstance(data, dict) and cast("dict[str, Json]", data).get("channel") is None:
        return {**edge, "data": {**data, "channel": FLOW}}
    return edge


def form_errors(kind: str, item: Any, pointer: str) -> list[Diagnostic]:
    """Return the errors in the form of a node or an edge; empty if it has the form of the API.

    Args:
        kind: ``NODES`` or ``EDGES``.
        item: What should be one of them.
        pointer: Where it is.
    """
    what = kind[:-1]
    article = "a" if what == "node" else "an"
    if not isinstance(item, Mapping):
        message = f"{article} {what} must be an object, got {json_type(item)}"
        return [Diagnostic("invalid-field", "error", message, pointer)]
    fields = cast("Mapping[str, Json]", item)
    errors: list[Diagnostic] = []
    for name, types in _FIELD_TYPES[kind].items():
        value = fields.get(name)
        if isinstance(value, types):
            continue
        here = f"{pointer}/{name}"
        if value is None and (kind, name) == (EDGES, "data"):
            errors += _channel_errors({}, here)
        elif value is None:
            message = f"{article} {what} needs {name}"
            errors.append(Diagnostic("missing-field", "error", message, here))
        else:
            expected = json_type("" if str in types else {})
            message = f"{name} must be {expected}, got {json_type(value)}"
            errors.append(Diagnostic("invalid-field", "error", message, here))
    if kind == EDGES and isinstance(data := fields.get("data"), dict):
        errors += _channel_errors(cast("dict[str, Json]", data), f"{pointer}/data")
    own_id = fields.get("id")
    if kind == NODES and isinstance(own_id, str):
        errors += _id_errors(own_id, f"{pointer}/id")
    return errors


def _channel_errors(data: Mapping[str, Json], pointer: str) -> list[Diagnostic]:
    """Return the error of an edge without a channel; the check reports one that is unknown."""
    channel = data.get("channel")
    if isinstance(channel, str):
        return []
    code, message = "missing-channel", "an edge needs a channel"
    if channel is not None:
        code, message = "invalid-field", f"channel must be text, got {json_type(channel)}"
    return [Diagnostic(code, "error", message, f"{pointer}/channel", hint=CHANNEL_HINT)]


def _id_errors(own_id: str, pointer: str) -> list[Diagnostic]:
    if is_id(own_id):
        return []
    message = f"{short_repr(own_id)} cannot be an id"
    return [Diagnostic("invalid-id", "error", message, pointer, hint=ID_HINT)]


def _is_title(text: str) -> bool:
    text = text.strip()
    return bool(text) and len(text) <= MAX_TITLE_CHARS and text.isprintable()


def _graph_errors(graph: Mapping[str, Json], pointer: str) -> list[Diagnostic]:
    errors: list[Diagnostic] = []
    for name in (NODES, EDGES):
        items = graph.get(name)
        if not isinstance(items, list):
            message = f"{name} must be an array, got {json_type(items)}"
            errors.append(Diagnostic("invalid-field", "error", message, f"{pointer}/{name}"))
            continue
        for number, item in enumerate(cast("list[Json]", items)):
            errors += form_errors(name, item, f"{pointer}/{name}/{number}")
    errors += [
        Diagnostic(
            "unknown-field",
            "error",
            f"unknown field {short_repr(name)}; a graph has nodes and edges",
            f"{pointer}/{pointer_part(name)}",
        )
        for name in graph.keys() - {NODES, EDGES}
        if not names_schema(name, graph)
    ]
    return errors
