"""What a running node says that is to be kept, as the event it becomes."""

from __future__ import annotations

from typing import Any, Final, cast

from planwave.events.types import ONCE, RUN_GRAPH
from planwave.graph.json_values import NotJson, to_json
from planwave.graph.protocols import NodeEvent

_RESERVED: Final = frozenset({ONCE, RUN_GRAPH})
"""Kinds that the driver alone tells: an execution is taken up by them."""


def event_of(event: NodeEvent) -> tuple[str, dict[str, Any]]:
    """Give the type and the data of the event; a warning where it cannot be kept as it is."""
    kind = event.event_type
    try:
        data = to_json(event.data)
    except NotJson as fault:
        kind, data = "log", _warning(f"event {kind!r} was not kept: its data is {fault}")
    if kind in _RESERVED:
        kind, data = "log", _warning(f"event {kind!r} was not kept: that name has a meaning")
    is_object = isinstance(data, dict)
    if kind == "log":
        log = cast("dict[str, Any]", data) if is_object else {"message": data}
        said = {"message": str(log.get("message", "")), "level": log.get("level", "info")}
        return "node.log", said
    if kind == "usage" and is_object:
        return "usage", cast("dict[str, Any]", data)
    return "node.event", {"event_type": kind, "data": data}


def _warning(message: str) -> dict[str, Any]:
    return {"message": message, "level": "warning"}
