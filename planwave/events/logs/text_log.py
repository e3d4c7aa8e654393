"""Events as log lines for people, one of two log projections.

The lines have the wording of the first planwave service, which had none for pauses, answers, repeated
entries and cancellations; this module adds those.
"""

from __future__ import annotations

from collections.abc import Iterable

from planwave.events.request_text import TIMEOUT, answer_text, end_of_timer, is_timer
from planwave.events.types import (
    MESSAGE,
    TERMINAL,
    Event,
    GraphDocument,
    NodeAnswered,
    NodeBlockedData,
    NodeCompletedData,
    NodeWaiting,
    TypedEvent,
    error_message,
    message_text,
    typed_event,
)
from planwave.expressions.json_text import to_text


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
            case "node.event" if event.data.get("event_type") == MESSAGE:
                text = message_text(event.data.get("data"))
                return f"Message from node {self._label(node)} - {text}"
            case _:
                return None

    def _request_line(self, event: NodeWaiting | NodeAnswered, node: str) -> str:
        if event.type == "node.waiting":
            request = event.data.get("request")
            if not is_timer(request):
                return f"Waiting for an answer: node {self._label(node)}"
            self._timers.add(event.data["request_id"])
            return f"Waiting until {end_of_timer(request)}: node {self._label(node)}"
        answer = answer_text(event.data.get("answer"))
        if event.data.get("by") != TIMEOUT:
            return f"Answered node {self._label(node)} - {answer}"
        if event.data.get("request_id") in self._timers:
            return f"The time has come: node {self._label(node)} goes on"
        return f"No answer in time: node {self._label(node)} goes on with {answer}"

    def _execution_line(self, event: TypedEvent) -> str | None:
        match event.type:
            case "execution.created":
                self._learn_names(event.data.get("graph"))
            case "execution.started":
                return "Starting execution..."
            case "wave.started":
                inside = f"{event.path}/" if event.path else ""
                nodes = [f"{inside}{node}" for node in event.data.get("nodes") or ()]
                return f"Executing {len(nodes)} nodes in parallel: {nodes}"
            case "execution.paused":
                return f"Execution paused: {event.data.get('reason')}"
            case "execution.resumed" if event.data.get("reason") == "recovery":
                return "Execution resumed: the service was started again"
            case "execution.resumed":
                return f"Execution resumed: {event.data.get('reason')}"
            case _ if event.type in TERMINAL:
                return f"Execution completed. Status: {event.type.removeprefix('execution.')}"
            case _:
                pass
        return None

    def _learn_names(self, graph: GraphDocument | None) -> None:
        nodes = graph["nodes"] if graph else ()
        self._names = {n["id"]: n.get("name") or n["id"] for n in nodes}

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


def _origin_of(data: NodeCompletedData) -> str:
    """Return where a result comes from: an earlier execution, the client, or a run of some seconds."""
    reused = data.get("reused")
    if reused:
        return f"reused from execution {reused.get('execution_id')}"
    if data.get("changed"):
        return "given by the fork"
    return f"took {data.get('duration_s') or 0.0:.2f}s"
