"""Events as typed log entries, one for each thing a node does: the other of the two log projections.

``type`` is one of ``step_start start_prompt logic_check wait_input input_received llm_response
llm_error error message timer subagent_call_start subagent_call_end subagent_call_error``. ``message``
is what a node told the caller, ``timer`` that it waits for a time, and that this has come. A failure
is told once:
``llm_error`` for a node that had asked a model, else ``error``. What somebody asked of the whole
execution is told of ``system``: a pause as ``wait_input``, its end as ``input_received``, and that
it was taken up after its process had ended as ``step_start``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.events.request_text import TIMEOUT, answer_text, is_timer, request_text
from planwave.events.types import MESSAGE, WAITING, Event, message_text, pause_kind
from planwave.expressions.json_text import to_text
from planwave.graph.outputs import outputs_from_json
from planwave.graph.upstream_text import result_text

SYSTEM: Final = "system"
"""Stands where a node id would, for what concerns the whole execution."""

_LOGGED_EVENTS: Final = frozenset(
    {"logic_check", "subagent_call_start", "subagent_call_end", "subagent_call_error"}
)
"""Node events that are entries as they are."""
_ANSWERED: Final = "answered"
"""Why executions go on where a node has told of it."""


class LogEntry(NamedTuple):
    """One line: ``timestamp`` is UTC, ``node_id`` a node's path, ``content`` for people.

    ``seq`` is that of the event it tells of.
    """

    seq: int
    timestamp: str
    node_id: str
    type: str
    content: str

    def as_json(self) -> dict[str, str]:
        """Give ``{"timestamp", "nodeId", "type", "content"}``."""
        return {
            "timestamp": self.timestamp,
            "nodeId": self.node_id,
            "type": self.type,
            "content": self.content,
        }


class TypedLog:
    """Turns events into entries one after the other.

    It remembers names, who asked a model, and which requests are timers.
    """

    __slots__ = ("_prompted", "_timers", "_titles")

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._prompted: set[str] = set()
        self._timers: set[str] = set()

    def entry_for(self, event: Event) -> LogEntry | None:
        """Give the entry of an event, or None for one that is not worth a line."""
        data, path = event.data, event.path or SYSTEM
        match event.type:
            case "execution.created":
                self._learn_titles(data.get("graph") or {})
            case "node.started":
                self._prompted.discard(path)
                again = ", again: it was cut off" if data.get("reentry") else ""
                title = self._titles.get(path) or data.get("name") or path
                return _entry(event, "step_start", f"{title}{again}")
            case "node.event":
                return self._node_event_entry(event, path)
            case "node.waiting" | "node.answered":
                return self._request_entry(event)
            case "node.cancelled" if event.attempt is not None:  # else it was not at work
                return _entry(event, "error", f"Cancelled: {to_text(data.get('cause'))}")
            case "node.completed" if path in self._prompted:
                return _entry(event, "llm_response", _result_of(data))
            case "node.failed" | "node.retrying":
                kind = "llm_error" if path in self._prompted else "error"
                return _entry(event, kind, _message_of(data))
            case "execution.paused" | "execution.resumed":
                return _pause_entry(event)
            case _:
                return _end_entry(event)
        return None

    def _request_entry(self, event: Event) -> LogEntry:
        data, request_id = event.data, event.data.get("request_id")
        if event.type == "node.waiting":
            is_time = is_timer(data.get("request"))
            if is_time:
                self._timers.add(str(request_id))
            return _entry(
                event, "timer" if is_time else "wait_input", request_text(data.get("request"))
            )
        is_late = data.get("by") == TIMEOUT
        if is_late and request_id in self._timers:
            return _entry(event, "timer", "The time has come.")
        late = "Nobody answered in time: " if is_late else ""
        return _entry(event, "input_received", f"{late}{answer_text(data.get('answer'))}")

    def _learn_titles(self, graph: Mapping[str, Any]) -> None:
        for node in graph.get("nodes", ()):
            name = node.get("name")
            named = f"{name} " if name and name != node["id"] else ""
            self._titles[node["id"]] = f"{named}{node['type']} node"

    def _node_event_entry(self, event: Event, path: str) -> LogEntry | None:
        kind, said = str(event.data.get("event_type")), event.data.get("data")
        fields = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
        if kind == "prompt":
            self._prompted.add(path)
            return _entry(event, "start_prompt", to_text(fields.get("prompt")))
        if kind == MESSAGE:
            return _entry(event, MESSAGE, message_text(said))
        if kind in _LOGGED_EVENTS:
            return _entry(event, kind, to_text(fields.get("message", said)))
        return None


def execution_log_entries(events: Iterable[Event]) -> list[LogEntry]:
    """Give the log of an execution as entries, in the order of its events."""
    log = TypedLog()
    return [entry for event in events if (entry := log.entry_for(event)) is not None]


def _entry(event: Event, kind: str, content: str) -> LogEntry:
    return LogEntry(event.seq, event.at, event.path or SYSTEM, kind, content)


def _pause_entry(event: Event) -> LogEntry | None:
    """Give the entry of a pause or its end; where a node asked and was answered, it has told that."""
    reason = str(event.data.get("reason"))
    if event.type == "execution.paused":
        is_told = pause_kind(event.data) == WAITING
        return None if is_told else _entry(event, "wait_input", f"Execution paused: {reason}")
    if reason == _ANSWERED:
        return None
    if reason == "recovery":
        return _entry(event, "step_start", "Execution resumed: the service was started again")
    return _entry(event, "input_received", f"Execution resumed: {reason}")


def _end_entry(event: Event) -> LogEntry | None:
    """Give the entry of an execution that ended for a reason no node has told."""
    if event.type == "execution.cancelled":
        return _entry(event, "error", f"Cancelled: {to_text(event.data.get('cause'))}")
    if event.type == "execution.failed" and "node" not in (event.data.get("error") or {}):
        return _entry(event, "error", _message_of(event.data))
    return None


def _result_of(data: Mapping[str, Any]) -> str:
    return result_text(outputs_from_json(data.get("outputs")))


def _message_of(data: Mapping[str, Any]) -> str:
    error: Mapping[str, Any] = data.get("error") or {}
    return str(error.get("message") or error.get("code") or "unknown error")
