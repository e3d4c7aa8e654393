"""Events as log lines for people, one of two log projections.

The lines have the wording of the first planwave service, which had none for pauses, answers, repeated
entries and cancellations; this module adds those.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planwave.events.request_text import TIMEOUT, answer_text, end_of_timer, is_timer
from planwave.events.types import MESSAGE, TERMINAL, Event, message_text


class TextLog:
    """Converts events to sentences, one event at a time.

    The log keeps the nodes' names, the requests that are timers, and the failed dependencies already
    named: nodes blocked by the same dependency share one sentence.
    """

    __slots__ = ("_blockers", "_names", "_timers")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._blockers: set[str] = set()
        self._timers: set[str] = set()

    def line_for(self, event: Event) -> str | None:
        """Return the sentence of an event, None for an event that is not logged.

        Nested nodes are named by their whole path.
        """
        if event.path is None or event.type == "wave.started":
            return self._execution_line(event)
        if event.type in ("node.waiting", "node.answered"):
            return self._request_line(event, event.path)
        return self._node_line(event, event.path)

    def _node_line(self, event: Event, node: str) -> str | None:
        data = event.data
        match event.type:
            case "node.started":
                self._learn_name(node, data.get("name"))
                again = " again, as it was cut off" if data.get("reentry") else ""
                return f"Starting node {self._label(node)}{again}"
            case "node.completed" if data.get("reused"):
                return f"Completed node {node} (taken over from execution {_origin_of(data)})"
            case "node.completed" if data.get("changed"):
                return f"Completed node {node} (given by the fork)"
            case "node.completed":
                return f"Completed node {node} (took {data.get('duration_s') or 0.0:.2f}s)"
            case "node.failed":
                return f"Failed node {self._label(node)} - {_message_of(data)}"
            case "node.blocked":
                return self._blocked_by(data)
            case "node.cancelled" if event.attempt is not None:  # else the node never ran
                return f"Cancelled node {self._label(node)} - {data.get('cause')}"
            case "node.event" if data.get("event_type") == MESSAGE:
                return f"Message from node {self._label(node)} - {message_text(data.get('data'))}"
            case _:
                return None

    def _request_line(self, event: Event, node: str) -> str:
        data = event.data
        if event.type == "node.waiting":
            request = data.get("request")
            if not is_timer(request):
                return f"Waiting for an answer: node {self._label(node)}"
            self._timers.add(data["request_id"])
            return f"Waiting until {end_of_timer(request)}: node {self._label(node)}"
        answer = answer_text(data.get("answer"))
        if data.get("by") != TIMEOUT:
            return f"Answered node {self._label(node)} - {answer}"
        if data.get("request_id") in self._timers:
            return f"The time has come: node {self._label(node)} goes on"
        return f"No answer in time: node {self._label(node)} goes on with {answer}"

    def _execution_line(self, event: Event) -> str | None:
        data = event.data
        match event.type:
            case "execution.created":
                self._learn_names(data.get("graph"))
            case "execution.started":
                return "Starting execution..."
            case "wave.started":
                inside = f"{event.path}/" if event.path else ""
                nodes = [f"{inside}{node}" for node in data.get("nodes") or ()]
                return f"Executing {len(nodes)} nodes in parallel: {nodes}"
            case "execution.paused":
                return f"Execution paused: {data.get('reason')}"
            case "execution.resumed" if data.get("reason") == "recovery":
                return "Execution resumed: the service was started again"
            case "execution.resumed":
                return f"Execution resumed: {data.get('reason')}"
            case _ if event.type in TERMINAL:
                return f"Execution completed. Status: {event.type.removeprefix('execution.')}"
            case _:
                pass
        return None

    def _learn_names(self, graph: dict[str, Any] | None) -> None:
        nodes: list[dict[str, Any]] = (graph or {}).get("nodes", [])
        self._names = {n["id"]: n.get("name") or n["id"] for n in nodes}

    def _learn_name(self, path: str, name: str | None) -> None:
        """Record the name of a nested node; the graph has the names of the others."""
        if name is not None:
            self._names[path] = name

    def _label(self, path: str) -> str:
        return f"{path}: {self._names.get(path) or path.rpartition('/')[2]}"

    def _blocked_by(self, data: Mapping[str, Any]) -> str | None:
        cause: dict[str, Any] = data.get("cause") or {}
        blocker = str(cause.get("node") or "?")
        if blocker in self._blockers:
            return None
        self._blockers.add(blocker)
        return f"Cannot proceed - dependencies failed: {[blocker]}"


def execution_logs(events: Iterable[Event]) -> list[str]:
    """Return the log of an execution as sentences, in the order of its events."""
    log = TextLog()
    return [line for event in events if (line := log.line_for(event)) is not None]


def _origin_of(data: Mapping[str, Any]) -> str:
    reused: dict[str, Any] = data["reused"]
    return str(reused.get("execution_id"))


def _message_of(data: Mapping[str, Any]) -> str:
    error: dict[str, Any] = data.get("error") or {}
    return str(error.get("message") or error.get("code") or "unknown error")
