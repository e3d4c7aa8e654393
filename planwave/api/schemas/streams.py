"""JSON Schemas of streams: events, messages of the WebSocket, and a plan while it is written.

OpenAPI has no place for the messages of a WebSocket, so these schemas are components that no
operation answers with. The schemas of events are those of ``planwave/events/types.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NotRequired, get_args

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from planwave.events.types import (
    TRANSIENT,
    NestedRunAbandonedData,
    NestedRunOpenedData,
    OnceStoredData,
    TypedEvent,
)
from planwave.shapes.streams import (
    DrainingMessage,
    ErrorMessage,
    PartMessage,
    PlanEdge,
    PlanFix,
    PlanNode,
    PlanOperation,
    PlanRepair,
    PlanText,
    PlanTitle,
    PongMessage,
    SnapshotMessage,
)

EVENT: Final = "ExecutionEvent"
PLAN_EVENT: Final = "PlanStreamEvent"
SOCKET_MESSAGE: Final = "SocketMessage"
_REF: Final = "#/components/schemas/{model}"

_PLAN_PARTS: Final[dict[str, Any]] = {
    "delta": PlanText,
    "title": PlanTitle,
    "node": PlanNode,
    "edge": PlanEdge,
    "operation": PlanOperation,
    "repair": PlanRepair,
    "fix": PlanFix,
}
_PLAN_ENDS: Final = {
    "plan": "PlanResponse",
    "proposal": "ReplanResponse",
    "problem": "Problem",
    "server_draining": "Problem",
}
_MESSAGES: Final = (SnapshotMessage, PartMessage, PongMessage, ErrorMessage, DrainingMessage)
_STORED_IN_NODE_EVENT: Final[Mapping[str, Any]] = {
    "nested_run.opened": NestedRunOpenedData,
    "nested_run.abandoned": NestedRunAbandonedData,
    "once.stored": OnceStoredData,
}
"""Types that only a reader knows: they are sent as ``node.event``, with these data in ``data.data``."""


def stream_schemas() -> dict[str, Any]:
    """Return the schemas of streamed messages and of their parts, by name."""
    event_types = list(_event_types())
    stored = _STORED_IN_NODE_EVENT.values()
    schemas = definitions(*event_types, *stored, *_PLAN_PARTS.values(), *_MESSAGES)
    event_names = [kind.__name__ for kind in event_types]
    message_names = [kind.__name__ for kind in _MESSAGES]
    schemas[EVENT] = {
        "description": "An event of an execution.",
        "oneOf": [_ref(name) for name in event_names],
    }
    schemas[SOCKET_MESSAGE] = {
        "description": "A message of the WebSocket with `mode=events`: one of these, or events.",
        "oneOf": [
            *(_ref(name) for name in message_names),
            {"type": "array", "items": _ref(EVENT)},
        ],
    }
    plan_parts = {name: kind.__name__ for name, kind in _PLAN_PARTS.items()} | _PLAN_ENDS
    schemas[PLAN_EVENT] = {
        "description": "An event of a plan, or of a change of one, while it is written: its name, and its data.",
        "oneOf": [_plan_event(name, data) for name, data in plan_parts.items()],
    }
    return schemas


def _event_types() -> Iterator[Any]:
    """Yield a type for the JSON of each event that is sent."""
    for member in get_args(TypedEvent):
        literal, data = get_args(member)
        (name,) = get_args(literal)
        if name in _STORED_IN_NODE_EVENT:
            continue
        is_of_node = name.startswith("node.") and name not in TRANSIENT
        path = str if is_of_node else NotRequired[str]
        words = name.replace("_", ".").split(".")
        fields = {"execution_id": str, "seq": int, "at": str, "type": literal, "path": path}
        fields |= {"attempt": NotRequired[int], "data": data}
        # A class of this name cannot be written down; the type checker knows events by TypedEvent.
        class_name = "".join(map(str.title, words)) + "Event"
        yield TypedDict(class_name, fields)  # pyright: ignore[reportArgumentType]


def definitions(*kinds: Any) -> dict[str, Any]:
    """Return the JSON Schemas of types and of their parts, by name."""
    all_kinds: Any = tuple.__class_getitem__(kinds)
    return TypeAdapter(all_kinds).json_schema(ref_template=_REF)["$defs"]


def _plan_event(name: str, data: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"event": {"const": name}, "data": _ref(data)},
        "required": ["event", "data"],
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": _REF.format(model=name)}
