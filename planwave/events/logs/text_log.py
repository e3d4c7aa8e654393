"""Events as log lines for people, one of two log projections.

The lines have the wording of the first planwave service, which had none for pauses, answers, repeated
entries and cancellations; this module adds those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal, cast, get_args

from planwave.events.budget import amount_text
from planwave.events.plan_payloads import change_text, names_of, request_of_change_text
from planwave.events.request_text import (
    TIMEOUT,
    answer_text,
    end_of_timer,
    field_of,
    is_budget_request,
    is_change_request,
    is_timer,
    request_text,
)
from planwave.events.types import (
    MESSAGE,
    TERMINAL,
    WAITING,
    Event,
    ExecutionPaused,
    ExecutionResumed,
    NodeAnswered,
    NodeBlockedData,
    NodeCompletedData,
    NodeWaiting,
    ResumedData,
    SupersededDocument,
    TypedEvent,
    error_message,
    message_text,
    pause_kind,
    typed_event,
)
from planwave.expressions.json_text import to_text
from planwave.shapes.common import GraphDocument

_LINE_BREAKS: Final = frozenset("\n\r\v\f\x85\u2028\u2029")
_CONTROL: Final = re.compile(
    r"\r\n|[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)
"""Control characters but for tabs, and those that turn the direction of writing."""
Level = Literal["debug", "info", "warning", "error"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""The levels of lines, the lowest first."""
RECOVERED: Final = "Execution resumed in another process: the one before had ended or was cut off"
_WAITS_FOR_APPROVAL: Final = "Waiting for approval of the plan"


def one_line(text: str) -> str:
    """Return text on one line: a name, a message or an error cannot look like another line of the log.

    Line breaks are shown as ``\u23ce``, other control characters as their pictures.
    """
    return _CONTROL.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    character = match[0]
    if character in "\r\n" or character in _LINE_BREAKS or character == "\r\n":
        return "\u23ce"
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def level_of(event: Event) -> Level:
    """Return how much an event matters to people who read a log."""
    data = event.data
    match event.type:
        case "node.failed":
            return "warning" if data.get("handled") else "error"
        case "execution.failed":
            return "error"
        case (
            "node.retrying" | "execution.warned" | "node.blocked" | "node.cancelled"
            | "plan.refused"
        ):  # fmt: skip
            return "warning"
        case "node.waiting" if data.get("interrupted"):
            return "warning"
        case "execution.paused" if is_budget_request(data.get("request")):
            return "warning"
        case "execution.paused" if "request_id" not in data and pause_kind(data) == WAITING:
            return "debug"  # the line of the step says for what it waits
        case "execution.resumed" if data.get("reason") == "answered" and "answer" not in data:
            return "debug"
        case "node.log":
            level = str(data.get("level")).lower()
            return level if level in LEVELS else "info"
        case "wave.started":
            return "debug"
        case _:
            return "info"


class TextLog:
    """Converts events to sentences, one event at a time.

    The log keeps the nodes' names, the requests that are timers, those that people are to answer, whether
    the last pause was for a time, and the failed dependencies already
    named: nodes blocked by the same dependency share one sentence.
    """

    __slots__ = ("_asked", "_blockers", "_budget_requests", "_is_timed", "_names", "_timers")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._blockers: set[str] = set()
        self._timers: set[str] = set()
        self._asked: set[str] = set()
        self._is_timed = False
        self._budget_requests: set[str] = set()

    def line_for(self, event: Event) -> str | None:
        """Return the sentence of an event on one line, None for an event that is not logged.

        Nested nodes are named by their whole path.
        """
        line = self._line(event)
        return None if line is None else one_line(line)

    def _line(self, event: Event) -> str | None:
        typed, path = typed_event(event), event.path
        if path is None or typed.type == "wave.started":
            return self._execution_line(typed)
        if typed.type == "node.waiting" or typed.type == "node.answered":
            return self._request_line(typed, path)
        return self._node_line(typed, path)

    def _node_line(self, event: TypedEvent, node: str) -> str | None:
        match event.type:
            case "node.started":
                self._learn_name(node, event.data.get("name"))
                again = " again, as it was cut off" if event.data.get("reentry") else ""
                return f"Starting node {self._label(node)}{again}"
            case "node.completed":
                return f"Completed node {node} ({_origin_of(event.data)})"
            case "node.failed":
                return f"Failed node {self._label(node)} - {error_message(event.data.get('error'))}"
            case "node.blocked":
                return self._blocked_by(event.data)
            case "node.cancelled" if event.attempt is not None:  # else the node never ran
                return f"Cancelled node {self._label(node)} - {to_text(event.data.get('cause'))}"
            case "node.log" if event.data.get("level") == "warning":
                return f"Warning: node {self._label(node)} - {event.data.get('message')}"
            case "node.event" if event.data.get("event_type") == MESSAGE:
                text = message_text(event.data.get("data"))
                return f"Message from node {self._label(node)} - {text}"
            case _:
                return None

    def _request_line(self, event: NodeWaiting | NodeAnswered, node: str) -> str:
        request_id = str(event.data.get("request_id"))
        if event.type == "node.waiting":
            request = event.data.get("request")
            if is_timer(request):
                self._timers.add(request_id)
                return f"Waiting until {end_of_timer(request)}: node {self._label(node)}"
            self._asked.add(request_id)
            cut_off = " was cut off and may have acted" if event.data.get("interrupted") else ""
            return f"Waiting for an answer: node {self._label(node)}{cut_off}"
        answer = answer_text(event.data.get("answer"))
        self._asked.discard(request_id)
        if event.data.get("by") != TIMEOUT:
            return f"Answered node {self._label(node)} - {answer}"
        if request_id in self._timers:
            return f"The time has come: node {self._label(node)} goes on"
        return f"No answer in time: node {self._label(node)} goes on with {answer}"

    def _execution_line(self, event: TypedEvent) -> str | None:
        match event.type:
            case "execution.created":
                self._learn_names(event.data.get("graph"))
                return _dropped_policies(event.data.get("supersedes"))
            case "execution.started":
                return "Starting execution..."
            case "plan.revised":
                self._names |= names_of(event.data["graph_change"])
                return f"Plan changed: {change_text(event.data)}"
            case "plan.requested":
                return f"A change of the plan {request_of_change_text(event.data)}"
            case "plan.refused":
                return f"Plan not changed: {error_message(event.data['error'])}"
            case "wave.started":
                inside = f"{event.path}/" if event.path else ""
                nodes = [f"{inside}{node}" for node in event.data.get("nodes") or ()]
                return f"Executing {len(nodes)} nodes in parallel: {nodes}"
            case "execution.paused" | "execution.resumed":
                return self._pause_line(event)
            case "execution.warned":
                return f"Warning: {event.data['message']}"
            case _ if event.type in TERMINAL:
                return f"Execution completed. Status: {event.type.removeprefix('execution.')}"
            case _:
                pass
        return None

    def _pause_line(self, event: ExecutionPaused | ExecutionResumed) -> str:
        reason, request_id = event.data.get("reason"), event.data.get("request_id")
        if event.type == "execution.paused":
            request = event.data.get("request")
            if request_id is not None and is_budget_request(request):
                self._budget_requests.add(request_id)
                return f"Waiting for a higher budget - {request_text(request)}"
            if is_change_request(request):
                return f"Waiting for approval of a change of the plan - {request_text(request)}"
            if request_id is not None:
                return _WAITS_FOR_APPROVAL
            is_waiting = pause_kind(event.data) == WAITING
            self._is_timed = is_waiting and bool(self._timers) and not self._asked
            return f"Execution paused: {'waiting for a time' if self._is_timed else reason}"
        if reason == "recovery":
            return RECOVERED
        if request_id in self._budget_requests:
            return f"Budget - {_budget_answer(event.data)}"
        if "answer" in event.data:
            return f"Answered for the plan - {answer_text(event.data.get('answer'))}"
        if reason == "answered" and self._is_timed:
            return "Execution resumed: the wait is over"
        return f"Execution resumed: {reason}"

    def _learn_names(self, graph: GraphDocument | None) -> None:
        self._names = {} if graph is None else names_of(graph)

    def _learn_name(self, path: str, name: str | None) -> None:
        """Record the name of a nested node; the graph has the names of the others."""
        if name is not None:
            self._names[path] = name

    def _label(self, path: str) -> str:
        return f"{path}: {self._names.get(path) or path.rpartition('/')[2]}"

    def _blocked_by(self, data: NodeBlockedData) -> str | None:
        cause = data.get("cause")
        blocker = str((cause and cause.get("node")) or "?")
        if blocker in self._blockers:
            return None
        self._blockers.add(blocker)
        return f"Cannot proceed - dependencies failed: {[blocker]}"


def execution_logs(events: Iterable[Event]) -> list[str]:
    """Return the log of an execution as sentences, in the order of its events."""
    log = TextLog()
    return [line for event in events if (line := log.line_for(event)) is not None]


def _budget_answer(data: ResumedData) -> str:
    """Return the answer to the request for a higher budget, or that none was needed any more."""
    if "answer" not in data:
        return str(data.get("reason"))
    value = field_of(data["answer"], "value")
    limits = cast("dict[str, float]", value) if isinstance(value, dict) else {}
    raised = ", ".join(amount_text(name, most) for name, most in limits.items())
    return f"{answer_text(data['answer'])}{f' to {raised}' if raised else ''}"


def _dropped_policies(superseded: SupersededDocument | None) -> str | None:
    """Return which policies of the request an edited plan has no nodes for."""
    dropped = (superseded or {}).get("dropped_policies")
    return f"Policies dropped - nodes not in the edited plan: {dropped}" if dropped else None


def _origin_of(data: NodeCompletedData) -> str:
    """Return where a result comes from: an earlier execution, the client, or a run of some seconds."""
    reused = data.get("reused")
    if reused:
        return f"reused from execution {reused.get('execution_id')}"
    if data.get("changed"):
        return "given by the fork"
    return f"took {data.get('duration_s') or 0.0:.2f}s"
