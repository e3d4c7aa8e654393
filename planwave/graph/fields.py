"""Reading one node or edge field by field, with a diagnostic for each that is not as it must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from planwave.graph.diagnostics import Diagnostic
from planwave.graph.model import (
    DEFAULT_POLICY,
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    ID_PATTERN,
    LINK,
    Channel,
    Edge,
    Node,
)
from planwave.graph.policy import read_policy
from planwave.graph.strict import Room, copied, pointer_of_name, shown, value_faults

NODE_FIELDS: Final = ("id", "type", "name", "description", "data", "policy", "ui")
EDGE_FIELDS: Final = ("id", "source", "sourceHandle", "target", "targetHandle", "type", "data")
CHANNELS: Final[tuple[Channel, ...]] = (FLOW, LINK)
LONGEST_HANDLE: Final = 256

_is_id = re.compile(ID_PATTERN).fullmatch
_PLACES_SHOWN: Final = 8
_ID_HINT: Final = "ids are 1 to 64 of the characters A-Z a-z 0-9 _ . -"


_FAULTY: Final = object()
"""Stands for a value whose faults are already reported."""


class FieldReader:
    """Reads nodes and edges the careful way and collects what it finds."""

    def __init__(self, room: Room) -> None:
        self.findings: list[Diagnostic] = []
        self._room = room

    def node(self, raw: Any, number: int) -> Node:
        """Read one node; a faulty one only serves to find further faults."""
        at, named = f"/nodes/{number}", f"node {number}"
        fields = self._object(raw, at, NODE_FIELDS, named)
        if fields is None:
            return Node("", "", "")
        node_id = self._id(fields, at, named, required=True) or ""
        node_type = self._text(fields, "type", at, required=f"node {node_id or number}") or ""
        document = self._fields(fields, "policy", at)
        policy = DEFAULT_POLICY
        if document is not None:
            policy, faults = read_policy(document, f"{at}/policy")
            self.findings += faults
        return Node(
            node_id,
            node_type,
            self._text(fields, "name", at) or node_id,
            self._text(fields, "description", at) or "",
            self._fields(fields, "data", at) or {},
            policy,
            self._fields(fields, "ui", at),
            document,
        )

    def edge(self, raw: Any, number: int, fresh_id: Callable[[], str]) -> Edge | None:
        """Read one edge, or give None where it is faulty."""
        at, named = f"/edges/{number}", f"edge {number}"
        before = len(self.findings)
        fields = self._object(raw, at, EDGE_FIELDS, named)
        if fields is None:
            return None
        edge_id = self._id(fields, at, named)
        named = f"edge {edge_id!r}" if edge_id else named
        source = self._text(fields, "source", at, required=named) or ""
        target = self._text(fields, "target", at, required=named) or ""
        source_handle = self._handle(fields, "sourceHandle", at) or DEFAULT_SOURCE_HANDLE
        target_handle = self._handle(fields, "targetHandle", at) or DEFAULT_TARGET_HANDLE
        edge_type = self._text(fields, "type", at)
        data = self._fields(fields, "data", at)
        ends = f"{named} ({shown(source)} to {shown(target)})"
        channel = self._channel(fields, data, at, ends, edge_id)
        if len(self.findings) > before or channel is None or data is None:
            return None
        edge_id = edge_id or fresh_id()
        return Edge(edge_id, source, source_handle, target, target_handle, channel, data, edge_type)

    def dropped_edge(self, edge: Edge, number: int, first: int) -> None:
        """Note that an edge says what an earlier one says and was left out."""
        ends = f"{edge.source}.{edge.source_handle} to {edge.target}.{edge.target_handle}"
        self.findings.append(
            Diagnostic(
                "duplicate-edge",
                "info",
                f"edge {number} repeats edge {first} ({ends}, {edge.channel})",
                f"/edges/{number}",
                edge=edge.id,
                fix=f"kept edge {first}, dropped edge {number}",
            )
        )

    def _add(self, code: str, message: str, pointer: str, **more: Any) -> None:
        self.findings.append(Diagnostic(code, "error", message, pointer, **more))

    def _object(
        self, raw: Any, at: str, allowed: tuple[str, ...], named: str
    ) -> Mapping[str, Any] | None:
        """Give the known fields of an object; unknown and unsound ones are reported."""
        if type(raw) is not dict:
            self._add("invalid-field", f"{named} must be an object, got {shown(raw)}", at)
            return None
        fields: dict[str, Any] = {}
        for name, value in cast("dict[Any, Any]", raw).items():
            if name not in allowed:
                hint = f"known fields are {', '.join(allowed)}"
                message = f"{named} has the unknown field {shown(name)}"
                self._add("unknown-field", message, at + pointer_of_name(name), hint=hint)
            elif faults := value_faults(value, f"{at}/{name}", self._room):
                self.findings += faults
                fields[name] = _FAULTY
            else:
                fields[name] = value
        return fields

    def _id(
        self, fields: Mapping[str, Any], at: str, named: str, *, required: bool = False
    ) -> str | None:
        value = fields.get("id")
        if value is None and required:
            self._add("missing-field", f"{named} has no id", f"{at}/id", hint=_ID_HINT)
        if value is None or value is _FAULTY:
            return None
        if type(value) is not str or not _is_id(value):
            message = f"{named}: {shown(value)} cannot be an id"
            self._add("invalid-id", message, f"{at}/id", hint=_ID_HINT)
            return None
        return value

    def _text(
        self, fields: Mapping[str, Any], name: str, at: str, *, required: str = ""
    ) -> str | None:
        """Give a text field; ``required`` names its owner where it may not be left out."""
        value = fields.get(name)
        if value is _FAULTY:
            return None
        if required and (value is None or value == ""):
            self._add("missing-field", f"{required} has no {name}", f"{at}/{name}")
        elif value is not None and type(value) is not str:
            message = f"{name} must be a string, got {shown(value)}"
            self._add("invalid-field", message, f"{at}/{name}")
        else:
            return value
        return None

    def _handle(self, fields: Mapping[str, Any], name: str, at: str) -> str | None:
        value = self._text(fields, name, at)
        if value is not None and not 0 < len(value) <= LONGEST_HANDLE:
            message = f"{name} must be 1 to {LONGEST_HANDLE} characters, or left out"
            self._add("invalid-field", message, f"{at}/{name}")
        return value

    def _fields(self, fields: Mapping[str, Any], name: str, at: str) -> dict[str, Any] | None:
        """Copy a field that holds an object."""
        value = fields.get(name)
        if value is None or value is _FAULTY:
            return None
        if type(value) is dict:
            return copied(cast("dict[str, Any]", value), self._room)
        message = f"{name} must be an object, got {shown(value)}"
        self._add("invalid-field", message, f"{at}/{name}")
        return None

    def _channel(
        self,
        fields: Mapping[str, Any],
        data: Mapping[str, Any] | None,
        at: str,
        named: str,
        edge_id: str | None,
    ) -> Channel | None:
        if data is None and fields.get("data") is not None:
            return None
        value = None if data is None else data.get("channel")
        for channel in CHANNELS:
            if value == channel:
                return channel
        code, message = "unknown-channel", f"{named}: unknown channel {shown(value)}"
        if value is None:
            code, message = "missing-channel", f"{named} does not say its channel"
        hint = 'write "data": {"channel": "flow"}, or "link" for a dependency used on demand'
        self._add(code, message, f"{at}/data/channel", edge=edge_id, hint=hint)
        return None


def repeated_ids(
    ids: Sequence[str], kind: str, numbers: Sequence[int] | None = None
) -> list[Diagnostic]:
    """Report each id that several nodes or several edges share, with all their places.

    Args:
        ids: The ids in document order; empty ones are left out.
        kind: ``nodes`` or ``edges``.
        numbers: Position of each in the document, where that is not its position in ``ids``.
    """
    places: dict[str, list[str]] = {}
    for position, one in enumerate(ids):
        number = position if numbers is None else numbers[position]
        places.setdefault(one, []).append(f"/{kind}/{number}/id")
    return [
        Diagnostic(
            "duplicate-id",
            "error",
            f"{kind[:-1]} id {one!r} is used {len(at)} times: {', '.join(at[:_PLACES_SHOWN])}",
            at[1],
            node=one if kind == "nodes" else None,
            edge=one if kind == "edges" else None,
            hint="give each its own id",
        )
        for one, at in places.items()
        if one and len(at) > 1
    ]
