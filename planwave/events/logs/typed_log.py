"""Events as typed log entries, the other of the two log projections.

``type`` is one of ``step_start start_prompt logic_check wait_input input_received llm_response
llm_error error message timer tool_call_end tool_call_error subagent_call_start subagent_call_end
subagent_call_error``. ``message`` is a node's message to the caller; ``timer`` is the start and the end
of a wait for a time. A failure is logged once: as ``llm_error`` for a node that had prompted a model, else
as ``error``. Calls of tools and approvals of calls are the agent's, in the words of ``call_lines``. The
content of ``subagent_call_…`` is JSON: ``{"type", "parentNodeId", "subagentNodeId", "subagentName",
"callId", "depth", "parentCallId"?, "message"?}``. Entries about the whole execution have the node id
``system``: a pause is ``wait_input``, its end ``input_received``, and a recovery after the process had
ended ``step_start``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, cast

from planwave.events.logs.call_lines import CallEvents, call_level
from planwave.events.logs.text_log import RECOVERED, Level, level_of, one_line
from planwave.events.plan_payloads import change_text, request_of_change_text
from planwave.events.request_text import TIMEOUT, answer_text, is_timer, request_text
from planwave.events.types import (
    MESSAGE,
    WAITING,
    Event,
    ExecutionPaused,
    ExecutionResumed,
    NodeAnswered,
    NodeEmitted,
    NodeWaiting,
    PlanRefused,
    PlanRequested,
    PlanRevised,
    TypedEvent,
    error_message,
    message_text,
    pause_kind,
    typed_event,
)
from planwave.expressions.json_text import to_text
from planwave.graph.outputs import outputs_from_json
from planwave.graph.result import result_text

SYSTEM: Final = "system"
"""Node id of entries about the whole execution."""

_LOGIC_CHECK: Final = "logic_check"
_SUBAGENT_CALLS: Final = frozenset(
    {"subagent_call_start", "subagent_call_end", "subagent_call_error"}
)
"""Node events that are logged under their own type, as is ``logic_check``."""
_ANSWERED: Final = "answered"
"""Reason of an ``execution.resumed`` that needs no entry: ``node.answered`` has one."""


class LogEntry(NamedTuple):
    """One line: ``timestamp`` is UTC, ``node_id`` a node's path, ``content`` for people.

    ``seq`` is the number of the logged event. ``level`` and ``traceback`` are as ``planwave logs`` has them.
    """

    seq: int
    timestamp: str
    node_id: str
    type: str
    content: str
    level: Level = "info"
    traceback: str | None = None

    def as_json(self) -> dict[str, str]:
        """Return ``{"timestamp", "nodeId", "type", "content", "level", "traceback"?}``."""
        traceback = {} if self.traceback is None else {"traceback": self.traceback}
        return {
            "timestamp": self.timestamp,
            "nodeId": self.node_id,
            "type": self.type,
            "content": self.content,
            "level": self.level,
            **traceback,
        }


class TypedLog:
    """Converts events to entries, one event at a time.

    The log keeps the nodes' names, the nodes that have prompted a model, and the requests that are timers.
    A node that is entered again, after an answer or a crash, emits its prompt and its calls of agents
    again; these have one entry in an attempt.
    """

    __slots__ = ("_calls", "_logged", "_prompted", "_timers", "_titles")

    def __init__(self) -> None:
        self._calls = CallEvents()
        self._titles: dict[str, str] = {}
        self._prompted: set[str] = set()
        self._timers: set[str] = set()
        self._logged: set[tuple[str, int | None, str, str]] = set()

    def entry_for(self, event: Event) -> LogEntry | None:
        """Return the entry of an event, None for an event that is not logged."""
        call = self._calls.read(event)
        if call is not None and event.data.get("event_type") not in _SUBAGENT_CALLS:
            return self._call_entry(event, call)
        return None if self._calls.is_question(event.path) else self._event_entry(event)

    def _call_entry(self, event: Event, call: str) -> LogEntry:
        """Return the entry about a call of a tool: that it ended, or what a person is asked or said of it."""
        kinds = {"node.waiting": "wait_input", "node.answered": "input_received"}
        kind = kinds.get(event.type) or str(event.data.get("event_type"))
        agent = self._calls.agent_of(event.path or "")
        trace = event.data.get("traceback")
        return LogEntry(event.seq, event.at, agent, kind, call, call_level(event, call), trace)

    def _event_entry(self, event: Event) -> LogEntry | None:
        path, typed = event.path or SYSTEM, typed_event(event)
        match typed.type:
            case "execution.created":
                self._learn_titles(typed.data.get("graph") or {})
            case "plan.requested" | "plan.revised" | "plan.refused":
                return self._plan_entry(typed)
            case "node.started":
                self._prompted.discard(path)
                again = ", again: it was cut off" if typed.data.get("reentry") else ""
                title = self._titles.get(path) or typed.data.get("name") or path
                return _entry(event, "step_start", one_line(f"{title}{again}"))
            case "node.event":
                return self._node_event_entry(typed, path)
            case "node.waiting" | "node.answered":
                return self._request_entry(typed)
            case "node.cancelled" if event.attempt is not None:  # else the node never ran
                return _entry(event, "error", f"Cancelled: {to_text(typed.data.get('cause'))}")
            case "node.completed" if path in self._prompted:
                result = outputs_from_json(typed.data.get("outputs"))
                return _entry(event, "llm_response", result_text(result))
            case "node.failed" | "node.retrying":
                kind = "llm_error" if path in self._prompted else "error"
                again = "; tries again" if typed.type == "node.retrying" else ""
                return _entry(event, kind, f"{error_message(typed.data.get('error'))}{again}")
            case "execution.paused" | "execution.resumed":
                return _pause_entry(typed)
            case _:
                return _warning_entry(typed) or _end_entry(typed)
        return None

    def _request_entry(self, event: NodeWaiting | NodeAnswered) -> LogEntry:
        if event.type == "node.waiting":
            request = event.data.get("request")
            is_time = is_timer(request)
            if is_time:
                self._timers.add(str(event.data.get("request_id")))
            return _entry(event, "timer" if is_time else "wait_input", request_text(request))
        is_late = event.data.get("by") == TIMEOUT
        if is_late and event.data.get("request_id") in self._timers:
            return _entry(event, "timer", "The time has come.")
        late = "Nobody answered in time: " if is_late else ""
        return _entry(event, "input_received", f"{late}{answer_text(event.data.get('answer'))}")

    def _learn_titles(self, graph: Mapping[str, Any]) -> None:
        for node in graph.get("nodes", ()):
            name = node.get("name")
            named = f"{name} " if name and name != node["id"] else ""
            self._titles[node["id"]] = f"{named}{node['type']} node"

    def _plan_entry(self, event: PlanRequested | PlanRevised | PlanRefused) -> LogEntry:
        """Return the entry about a change of the plan: that it is written, made or refused."""
        if event.type == "plan.requested":
            why = request_of_change_text(event.data)
            return _entry(event, "wait_input", f"A change of the plan {why}")
        if event.type == "plan.refused":
            told = f"Plan not changed: {error_message(event.data['error'])}"
            return _entry(event, "input_received", told)
        self._learn_titles(event.data["graph_change"])
        return _entry(event, "input_received", f"Plan changed: {change_text(event.data)}")

    def _node_event_entry(self, event: NodeEmitted, path: str) -> LogEntry | None:
        kind, data = str(event.data.get("event_type")), event.data.get("data")
        fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        if kind == "prompt":
            self._prompted.add(path)
            if self._is_repeated(event, path, kind, to_text(data)):
                return None
            return _entry(event, "start_prompt", to_text(fields.get("prompt")))
        if kind == MESSAGE:
            return _entry(event, MESSAGE, message_text(data))
        if kind in _SUBAGENT_CALLS and "agent" in fields:
            call = to_text(_subagent_call(kind, fields))
            return None if self._is_repeated(event, path, kind, call) else _entry(event, kind, call)
        if kind in _SUBAGENT_CALLS or kind == _LOGIC_CHECK:
            return _entry(event, kind, to_text(fields.get("message", data)))
        return None

    def _is_repeated(self, event: NodeEmitted, path: str, kind: str, content: str) -> bool:
        """Return whether this attempt of the node has emitted the same before."""
        key = path, event.attempt, kind, content
        if key in self._logged:
            return True
        self._logged.add(key)
        return False


def _subagent_call(kind: str, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the call of an agent by another one in the form of the typed log.

    ``parentNodeId`` is the agent above all others, ``depth`` 1 for an agent that it calls itself;
    ``message`` is the task, or the error.
    """
    agent, depth = call["agent"], int(call.get("depth", 0))
    root = str(call.get("path", "")).rsplit("[", depth)[0] if depth else str(call.get("path", ""))
    content: dict[str, Any] = {
        "type": kind,
        "parentNodeId": root.rpartition("/")[2],
        "subagentNodeId": agent["id"],
        "subagentName": agent["name"],
        "callId": call.get("call_id"),
        "depth": depth + 1,
    }
    if call.get("parent_call_id") is not None:
        content["parentCallId"] = call["parent_call_id"]
    if "error" in call:
        content["message"] = call["error"]["message"]
    elif "arguments" in call:
        content["message"] = call["arguments"].get("task")
    return content


def execution_log_entries(events: Iterable[Event]) -> list[LogEntry]:
    """Return the log of an execution as entries, in the order of its events."""
    log = TypedLog()
    return [entry for event in events if (entry := log.entry_for(event)) is not None]


def _entry(event: Event, kind: str, content: str) -> LogEntry:
    trace, level = event.data.get("traceback"), level_of(event)
    return LogEntry(event.seq, event.at, event.path or SYSTEM, kind, content, level, trace)


def _pause_entry(event: ExecutionPaused | ExecutionResumed) -> LogEntry | None:
    """Return the entry of a pause or its end, None where the node's request or answer has an entry."""
    reason = str(event.data.get("reason"))
    if "request_id" in event.data:  # the execution itself asks
        if event.type == "execution.paused":
            return _entry(event, "wait_input", request_text(event.data.get("request")))
        answer = answer_text(event.data["answer"]) if "answer" in event.data else reason
        return _entry(event, "input_received", answer)
    if event.type == "execution.paused":
        is_told = pause_kind(event.data) == WAITING
        return None if is_told else _entry(event, "wait_input", f"Execution paused: {reason}")
    if reason == _ANSWERED:
        return None
    if reason == "recovery":
        return _entry(event, "step_start", RECOVERED)
    return _entry(event, "input_received", f"Execution resumed: {reason}")


def _warning_entry(event: TypedEvent) -> LogEntry | None:
    """Return the entry of a warning of the execution or of a node."""
    if event.type == "execution.warned":
        return _entry(event, _LOGIC_CHECK, event.data["message"])
    if event.type == "node.log" and event.data.get("level") == "warning":
        return _entry(event, _LOGIC_CHECK, to_text(event.data.get("message")))
    return None


def _end_entry(event: TypedEvent) -> LogEntry | None:
    """Return the entry of a cancelled execution, or of a failed one whose error names no node."""
    if event.type == "execution.cancelled":
        return _entry(event, "error", f"Cancelled: {to_text(event.data.get('cause'))}")
    if event.type == "execution.failed":
        error = event.data.get("error")
        return None if error and "node" in error else _entry(event, "error", error_message(error))
    return None
