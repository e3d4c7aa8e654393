"""The JSON Schema of graph documents over the registered node types, for editors and models.

A file that names it in ``$schema`` is completed and checked while it is written. It says what can be said about each
part by itself; ``check`` says the rest: whether ids exist, edges fit, templates resolve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast, get_args

from planwave.graph.model import ID_PATTERN, Channel, Effect, Join, OnError

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
PLAN_FIELDS: Final = (
    "plan_id", "user_prompt", "title", "status", "revision", "hash", "created_at", "provider", "model",
    "diagnostics", "fixes", "attempts", "forecast", "name", "description", "published", "live_revision",
    "approval", "inputs", "origin", "proposal", "imported_from", "examples", "questions",
)  # fmt: skip
"""What a document may say around its graph, as the plans do that the API shows."""

_Schema = dict[str, Any]
_DATA: Final = "data."
_TEXT: Final[_Schema] = {"type": ["string", "null"]}
_ID: Final[_Schema] = {"type": "string", "pattern": f"^{ID_PATTERN}$"}


def graph_schema(node_types: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of a graph document.

    Args:
        node_types: The types, as ``GET /api/node-types`` shows them: ``{"node_type", "summary", "schema", "inputs"}``.
    """
    data = {f"{_DATA}{each['node_type']}": _data_schema(each) for each in node_types}
    return {
        "$schema": DIALECT,
        "title": "Graph of planwave",
        "description": "Nodes and the edges between them; `planwave check` says whether it can run.",
        "type": "object",
        "properties": {
            "$schema": {
                "type": "string",
                "description": "The address of this schema, for editors.",
            },
            **{name: True for name in PLAN_FIELDS},
            **_graph_properties(),
        },
        "required": ["nodes", "edges"],
        "additionalProperties": False,
        "$defs": {
            "graph": {
                "type": "object",
                "properties": _graph_properties(),
                "required": ["nodes", "edges"],
                "additionalProperties": False,
            },
            "node": _node_schema(node_types),
            "edge": _edge_schema(),
            "policy": _policy_schema(),
            **data,
        },
    }


def _graph_properties() -> _Schema:
    return {
        name: {"type": "array", "items": {"$ref": f"#/$defs/{item}"}}
        for name, item in (("nodes", "node"), ("edges", "edge"))
    }


def _object(properties: Mapping[str, Any], required: Sequence[str] = ()) -> _Schema:
    schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def _node_schema(node_types: Sequence[Mapping[str, Any]]) -> _Schema:
    names = [each["node_type"] for each in node_types]
    properties = {
        "id": {**_ID, "description": "Unique in its graph."},
        "type": {
            "oneOf": [
                {"const": each["node_type"], "description": each["summary"]} for each in node_types
            ]
        },
        "name": {**_TEXT, "description": "What people read; the id by default."},
        "description": {**_TEXT, "description": "The task of the node in words."},
        "data": {"type": ["object", "null"], "description": "The fields of its type."},
        "policy": {"anyOf": [{"$ref": "#/$defs/policy"}, {"type": "null"}]},
        "ui": {"type": ["object", "null"], "description": "Kept for editors, never read."},
    }
    rules: list[_Schema] = []
    for name in names:
        one_of: list[_Schema] = [{"$ref": f"#/$defs/{_DATA}{name}"}, {"type": "null"}]
        rules.append(
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": {"properties": {"data": {"anyOf": one_of}}},
            }
        )
    return {**_object(properties, ("id", "type")), "allOf": rules}


def _edge_schema() -> _Schema:
    channel = {"enum": list(get_args(Channel)), "description": "Values, or what the target uses."}
    properties = {
        "id": {"anyOf": [_ID, {"type": "null"}]},
        "source": {"type": "string"},
        "sourceHandle": {**_TEXT, "description": "An output of the source; `output` by default."},
        "target": {"type": "string"},
        "targetHandle": {**_TEXT, "description": "An input of the target; `input` by default."},
        "type": _TEXT,
        "data": {"type": "object", "properties": {"channel": channel}, "required": ["channel"]},
    }
    return _object(properties, ("source", "target", "data"))


def _policy_schema() -> _Schema:
    names = {"type": ["array", "null"], "items": {"type": "string", "minLength": 1}}
    retry = {
        "attempts": {"type": ["integer", "null"], "minimum": 1},
        "backoffS": {"type": ["number", "null"], "minimum": 0},
        "on": names,
        "notOn": names,
    }
    default = {"handle": {"type": "string", "minLength": 1}, "value": True}
    return _object(
        {
            "join": {"enum": [*get_args(Join), None]},
            "retry": {"anyOf": [_object(retry), {"type": "null"}]},
            "timeoutS": {"type": ["number", "null"], "exclusiveMinimum": 0},
            "onError": {"enum": [*get_args(OnError), None]},
            "default": {"anyOf": [_object(default, ("handle", "value")), {"type": "null"}]},
            "effect": {"enum": [*get_args(Effect), None]},
        }
    )


def _data_schema(node_type: Mapping[str, Any]) -> _Schema:
    """Return the schema of a type's data: fields that an edge may bring are not required, graphs are graphs."""
    wired = {port["name"] for port in node_type["inputs"]}
    schema = _moved(node_type["schema"], f"#/$defs/{_DATA}{node_type['node_type']}")
    required = [name for name in schema.pop("required", ()) if name not in wired]
    fields: dict[str, Any] = schema.get("properties", {})
    for name, field in fields.items():
        if isinstance(field, dict) and cast("_Schema", field).get("graph"):
            fields[name] = _graph_field(cast("_Schema", field))
    return schema | ({"required": required} if required else {})


def _graph_field(field: _Schema) -> _Schema:
    kept = {name: field[name] for name in ("title", "description", "default") if name in field}
    return {**kept, "anyOf": [{"$ref": "#/$defs/graph"}, {"type": "null"}]}


def _moved(value: Any, place: str) -> Any:
    """Return a copy of a schema whose references into itself lead to another place."""
    if isinstance(value, dict):
        members = cast("_Schema", value)
        moved = {name: _moved(member, place) for name, member in members.items()}
        target = members.get("$ref")
        if isinstance(target, str) and target.startswith("#"):
            moved["$ref"] = f"{place}{target[1:]}"
        return moved
    return (
        [_moved(item, place) for item in cast("list[Any]", value)]
        if isinstance(value, list)
        else value
    )
