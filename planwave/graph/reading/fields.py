"""Read one node or edge field by field, with a diagnostic for each invalid field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final, cast

from planwave.graph.diagnostics import Diagnostic, short_repr
from planwave.graph.json_values import JsonLimits, checked_copy, json_findings, pointer_of_name
from planwave.graph.model import (
    DEFAULT_POLICY,
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    ID_HINT,
    LINK,
    Channel,
    Edge,
    Node,
    is_id,
)
from planwave.graph.reading.policy import read_policy
from planwave.graph.reading.unreadable import (
    ALREADY_REPORTED,
    PLACEHOLDER_PREFIX,
    UNREADABLE,
    UNREADABLE_CHANNEL,
    UNREADABLE_EDGE,
)
from planwave.validation import json_type

NODE_FIELDS: Final = ("id", "type", "name", "description", "data", "policy", "ui")
EDGE_FIELDS: Final = ("id", "source", "sourceHandle", "target", "targetHandle", "type", "data")
_NODE_EXAMPLE: Final = 'a node is {"id": "a", "type": "text", "data": {"text": "…"}}'
_EDGE_EXAMPLE: Final = 'an edge is {"source": "a", "target": "b", "data": {"channel": "flow"}}'
CHANNEL_HINT: Final = 'write "data": {"channel": "flow"}, or "link" for a dependency used on demand'
CHANNELS: Final[tuple[Channel, ...]] = (FLOW, LINK)
MAX_HANDLE_CHARS: Final = 256

_MAX_POINTERS: Final = 8


class _RawElement:
    """A node or an edge as written: its readable fields and the names of the unreadable ones."""

    __slots__ = ("has_unknown_fields", "label", "pointer", "unreadable", "values")

    def __init__(self, pointer: str, label: str) -> None:
        self.pointer, self.label = pointer, label
        self.values: dict[str, Any] = {}
        self.unreadable: set[str] = set()
        self.has_unknown_fields = False


class FieldReader:
    """Reads nodes and edges and collects the findings.

    Args:
        limits: Limits on nesting and strings.

    Attributes:
        checks_values: Whether the values are checked and copied; not needed where all are strict JSON
            within the limits, and have no other owner.
        findings: The errors and changes so far.
        saw_reported: Whether a part was marked ``ALREADY_REPORTED`` by the caller.
        partial_ids: Ids of nodes with an unread field or a malformed id.
    """

    def __init__(self, limits: JsonLimits) -> None:
        self.checks_values = True
        self.findings: list[Diagnostic] = []
        self.saw_reported = False
        self.partial_ids: set[str] = set()
        self._limits = limits

    def node(self, raw: Any, number: int) -> Node:
        """Read one node; an unread type is ``UNREADABLE``."""
        label = f"node {number}"
        entry = self._read_element(raw, f"/nodes/{number}", NODE_FIELDS, label)
        node_id = None if entry is None else self._id(entry, label, required=True)
        name = self._id_or_placeholder(node_id, number)
        if entry is None:
            return Node(name, UNREADABLE, name)
        entry.label = label if node_id is None else f"node {node_id!r}"
        node_type = self._text(entry, "type", is_required=True) or UNREADABLE
        document = self._object(entry, "policy")
        policy = DEFAULT_POLICY
        if document is not None:
            policy, errors = read_policy(document, f"{entry.pointer}/policy", node_id or "")
            self.findings += errors
            if errors:
                entry.unreadable.add("policy")
        node = Node(
            name,
            node_type,
            self._text(entry, "name") or name,
            self._text(entry, "description") or "",
            self._object(entry, "data") or {},
            policy,
            self._object(entry, "ui"),
            document,
        )
        if entry.has_unknown_fields or entry.unreadable - {"name", "ui"}:
            self.partial_ids.add(name)
        return node

    def edge(self, raw: Any, number: int, next_id: Callable[[], str]) -> Edge:
        """Read one edge; an end, a handle or a channel that is not known is ``UNREADABLE``."""
        label = f"edge {number}"
        entry = self._read_element(raw, f"/edges/{number}", EDGE_FIELDS, label)
        if entry is None:
            return UNREADABLE_EDGE
        edge_id = self._id(entry, label)
        label = f"edge {edge_id!r}" if edge_id else label
        entry.label = label
        source = self._text(entry, "source", is_required=True) or UNREADABLE
        target = self._text(entry, "target", is_required=True) or UNREADABLE
        source_handle = self._handle(entry, "sourceHandle", DEFAULT_SOURCE_HANDLE)
        target_handle = self._handle(entry, "targetHandle", DEFAULT_TARGET_HANDLE)
        edge_type = self._text(entry, "type")
        data = self._object(entry, "data") or {}
        channel = _read_channel(data.get("channel"))
        edge = Edge(
            edge_id or next_id(),
            source,
            source_handle,
            target,
            target_handle,
            channel,
            data,
            edge_type,
        )
        if channel == UNREADABLE_CHANNEL:
            self._report_channel(entry, edge, f"{label} ({_ends_text(edge)})", edge_id)
        return edge

    def report_duplicate_edge(self, edge: Edge, number: int, first: int) -> None:
        """Report an edge that repeats an earlier one and was left out."""
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

    def is_reported(self, value: object) -> bool:
        """Return whether the caller has reported this value; set ``saw_reported`` if so."""
        self.saw_reported = self.saw_reported or value is ALREADY_REPORTED
        return value is ALREADY_REPORTED

    def _add(self, code: str, message: str, pointer: str, **more: Any) -> None:
        self.findings.append(Diagnostic(code, "error", message, pointer, **more))

    def _read_element(
        self, raw: Any, pointer: str, allowed: tuple[str, ...], label: str
    ) -> _RawElement | None:
        """Return the fields of an object; report unknown and invalid ones."""
        if type(raw) is not dict:
            if not self.is_reported(raw):
                self._add(
                    "invalid-field",
                    f"{label} must be an object, got {short_repr(raw)}",
                    pointer,
                    hint=_NODE_EXAMPLE if allowed is NODE_FIELDS else _EDGE_EXAMPLE,
                )
            return None
        entry = _RawElement(pointer, label)
        for name, value in cast("dict[Any, Any]", raw).items():
            is_reported = self.is_reported(value)
            if name not in allowed:
                entry.has_unknown_fields = True
                if not is_reported:
                    hint = f"known fields are {', '.join(allowed)}"
                    message = f"{label} has the unknown field {short_repr(name)}"
                    self._add("unknown-field", message, pointer + pointer_of_name(name), hint=hint)
            elif is_reported:
                entry.unreadable.add(name)
            elif self.checks_values and (
                errors := json_findings(value, f"{pointer}/{name}", self._limits)
            ):
                self.findings += errors
                entry.unreadable.add(name)
                entry.values[name] = self._valid_fields(value)
            else:
                entry.values[name] = value
        return entry

    def _valid_fields(self, value: Any) -> dict[str, Any] | None:
        """Return the valid fields of an object that also has invalid ones."""
        if type(value) is not dict:
            return None
        fields = cast("dict[str, Any]", value).items()
        return {k: v for k, v in fields if not json_findings({k: v}, limits=self._limits)}

    def _id_or_placeholder(self, node_id: str | None, number: int) -> str:
        if node_id is None:
            node_id = f"{PLACEHOLDER_PREFIX}{number}"
        if not is_id(node_id):
            self.partial_ids.add(node_id)
        return node_id

    def _id(self, entry: _RawElement, label: str, *, required: bool = False) -> str | None:
        """Return an id, even an invalid one if edges can still refer to it."""
        value = entry.values.get("id")
        if value is None:
            if required and "id" not in entry.unreadable:
                self._add(
                    "missing-field", f"{label} has no id", f"{entry.pointer}/id", hint=ID_HINT
                )
            return None
        if type(value) is str and is_id(value):
            return value
        message = f"{label}: {short_repr(value)} cannot be an id"
        if type(value) is not str:
            message = f"{label}: an id is text, not {json_type(value)} ({short_repr(value)})"
        self._add("invalid-id", message, f"{entry.pointer}/id", hint=ID_HINT)
        if type(value) is not str or value.startswith(PLACEHOLDER_PREFIX):
            return None
        return value if 0 < len(value) <= MAX_HANDLE_CHARS else None

    def _text(self, entry: _RawElement, name: str, *, is_required: bool = False) -> str | None:
        value = entry.values.get(name)
        if name in entry.unreadable:
            return None
        if is_required and (value is None or value == ""):
            self._add("missing-field", f"{entry.label} has no {name}", f"{entry.pointer}/{name}")
        elif value is not None and type(value) is not str:
            message = f"{entry.label}: {name} must be text, got {short_repr(value)}"
            self._add("invalid-field", message, f"{entry.pointer}/{name}")
        else:
            return value
        entry.unreadable.add(name)
        return None

    def _handle(self, entry: _RawElement, name: str, default: str) -> str:
        value = self._text(entry, name)
        if value is not None and not 0 < len(value) <= MAX_HANDLE_CHARS:
            message = (
                f"{entry.label}: {name} must be 1 to {MAX_HANDLE_CHARS} characters, or left out"
            )
            self._add("invalid-field", message, f"{entry.pointer}/{name}")
            return UNREADABLE
        if value is not None:
            return value
        # An unknown field may be this one, written under a wrong name.
        return UNREADABLE if name in entry.unreadable or entry.has_unknown_fields else default

    def _object(self, entry: _RawElement, name: str) -> dict[str, Any] | None:
        """Return a field that holds an object, copied if the values are checked."""
        value = entry.values.get(name)
        if value is None:
            return None
        if type(value) is dict:
            document = cast("dict[str, Any]", value)
            return checked_copy(document, self._limits) if self.checks_values else document
        message = f"{entry.label}: {name} must be an object, got {short_repr(value)}"
        self._add("invalid-field", message, f"{entry.pointer}/{name}")
        entry.unreadable.add(name)
        return None

    def _report_channel(
        self, entry: _RawElement, edge: Edge, label: str, edge_id: str | None
    ) -> None:
        value = edge.data.get("channel")
        if value is None and ("data" in entry.unreadable or _has_no_end(edge)):
            return  # reported already, or probably no edge at all
        code, message = "unknown-channel", f"{label}: unknown channel {short_repr(value)}"
        if value is None:
            code, message = "missing-channel", f"{label} has no channel"
        pointer = f"{entry.pointer}/data/channel"
        self._add(code, message, pointer, edge=edge_id, hint=CHANNEL_HINT)


def _read_channel(value: Any) -> Channel:
    for channel in CHANNELS:
        if value == channel:
            return channel
    return UNREADABLE_CHANNEL


def _has_no_end(edge: Edge) -> bool:
    return UNREADABLE in (edge.source, edge.target)


def _ends_text(edge: Edge) -> str:
    return " to ".join(
        "?" if end == UNREADABLE else short_repr(end) for end in (edge.source, edge.target)
    )


def duplicate_ids(
    ids: Sequence[str], kind: str, numbers: Sequence[int] | None = None
) -> list[Diagnostic]:
    """Report each id that several nodes or several edges share, with all its pointers.

    Args:
        ids: The ids in document order; empty ones are ignored.
        kind: ``nodes`` or ``edges``.
        numbers: Position of each in the document; None if it is the position in ``ids``.
    """
    if len(set(ids)) == len(ids):
        return []
    pointers: dict[str, list[str]] = {}
    for number, each in zip(count() if numbers is None else numbers, ids, strict=False):
        pointers.setdefault(each, []).append(f"/{kind}/{number}/id")
    return [
        Diagnostic(
            "duplicate-id",
            "error",
            f"{kind[:-1]} id {each!r} is used {len(at)} times: {', '.join(at[:_MAX_POINTERS])}",
            at[1],
            node=each if kind == "nodes" else None,
            edge=each if kind == "edges" else None,
            hint="give each its own id",
        )
        for each, at in pointers.items()
        if each and len(at) > 1
    ]
