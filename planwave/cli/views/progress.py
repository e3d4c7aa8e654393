"""The state of a running execution for display: events go in, lines come out. No terminal here.

Only the state that a screen shows is folded from the events; the store holds everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from planwave.cli.formatting import (
    DID_NOT_RUN,
    awaited,
    counted,
    duration,
    error_text,
    json_object,
    one_line,
    plan_progress_text,
    shown_status,
    status_reason,
)
from planwave.events import ENDED_STATUS, Event, OpenRequest
from planwave.events.budget import Spending
from planwave.events.logs.call_lines import CallEvents
from planwave.events.paths import outermost_path
from planwave.events.request_text import answer_text, is_timer
from planwave.events.types import (
    MESSAGE,
    PLANNING,
    REQUESTED,
    TEXT_DISCARDED,
    WAITING,
    PauseKind,
    message_text,
    pause_kind,
    typed_event,
)
from planwave.events.usage import UsageTotal
from planwave.graph.editing.revision import changed_graph
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, FLOW, Graph
from planwave.graph.reading.documents import read_graph
from planwave.graph.shape import measure
from planwave.graph.topology import topology_of

_WARNINGS = 5
"""Warnings of a node that are shown beside it; the log has all."""
NODE_END_STATUSES = frozenset(
    {
        "completed", *DID_NOT_RUN, "failed", "skipped", "blocked", "cancelled", "linked",
        "not_reached",
    }
)  # fmt: skip
_TAIL_CHARS = 600
_SOON_S = 3_600.0
"""A command keeps showing a run that waits for a timer of at most this length."""


_NEVER_BEGUN: Final = frozenset({"pending", "skipped", "blocked", "cancelled"})
"""The statuses of nodes that may not have begun."""


@dataclass(slots=True)
class NodeLine:
    """One node on the screen.

    Attributes:
        needs: Names of the nodes whose results it takes.
        started: When the current attempt began, in seconds since 1970; None before it.
        seconds: Duration of a settled node; None before that, and if the node never started.
        tail: The end of the text streamed by the current attempt.
        note: The reason, error or warning shown beside the node; one line.
        warnings: The first warnings that the node logged in this attempt.
    """

    id: str
    name: str
    needs: tuple[str, ...] = ()
    status: str = "pending"
    started: float | None = None
    seconds: float | None = None
    attempt: int | None = None
    tail: str = ""
    note: str = ""
    warnings: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class WaveLines:
    """One wave on the screen."""

    number: int
    nodes: list[NodeLine] = field(default_factory=list[NodeLine])

    @property
    def is_settled(self) -> bool:
        """Whether every node of the wave has its final status."""
        return all(node.status in NODE_END_STATUSES for node in self.nodes)


class RunProgress:
    """The state of a run, as far as its events have been applied.

    Attributes:
        is_fork: Whether the run may reuse results of another execution.
        waves: The waves of this run; before its start, all of the plan.
        planned_steps: Number of steps of the plan, also of those that this run leaves out.
        reason: The reason of a pause.
        requests: The open requests by id, oldest first.
        timers: Ids of all requests so far that are timers rather than questions.
        calls: The calls of tools so far.
        call_line: The line of the last event, where it was about a call.
        written_waves: Number of waves already printed above the live area of the screen.

    Args:
        graph: The graph that runs.
        waves: Node ids wave by wave, as planned.
        clock: Seconds since 1970, as the times of events are.
        began: When the run was created, by the same clock; None for the time of its first event.
        is_fork: See the attribute.
    """

    def __init__(
        self,
        graph: Graph,
        waves: Sequence[Sequence[str]],
        clock: Callable[[], float] = time.time,
        *,
        began: float | None = None,
        is_fork: bool = False,
    ) -> None:
        self.is_fork = is_fork
        self.nodes: dict[str, NodeLine] = {}
        self._set_graph(graph, waves)
        self.status = "starting"
        self.reason = ""
        self.is_planning = False
        self.pause: PauseKind | None = None
        self.error = ""
        self.requests: dict[str, OpenRequest] = {}
        self.timers: set[str] = set()
        self.written_waves = 0
        self.calls = CallEvents()
        self.call_line: str | None = None
        self._active: set[str] = set()
        self._spending = Spending()
        self._clock = clock
        self._began, self._at = began, began or 0.0

    def _set_graph(self, graph: Graph, waves: Sequence[Sequence[str]]) -> None:
        """Show a graph; the nodes that have begun stay as they are."""
        self._graph = graph
        begun = {
            own_id: node
            for own_id, node in self.nodes.items()
            if node.started is not None or node.status not in _NEVER_BEGUN
        }
        needs: dict[str, list[str]] = {}
        for edge in graph.edges:
            source = graph.by_id.get(edge.source)
            if source is not None and edge.channel == FLOW:
                needs.setdefault(edge.target, []).append(source.name or source.id)
        self.nodes = {
            node.id: begun.get(node.id)
            or NodeLine(node.id, node.name or node.id, tuple(needs.get(node.id, ())))
            for node in graph.nodes
        }
        self.waves = [
            WaveLines(number, [self.nodes[i] for i in ids if i in self.nodes])
            for number, ids in enumerate(waves, start=1)
        ]
        self.planned_steps = len(self.counted_nodes)

    @property
    def usage(self) -> UsageTotal:
        """The paid tokens and cost so far."""
        return self._spending.total

    @property
    def elapsed(self) -> float:
        """Seconds from the creation of the run to now, or to its end."""
        return self.event_elapsed + self._now() - self._at

    @property
    def event_elapsed(self) -> float:
        """Seconds from the creation of the run to the last event."""
        return 0.0 if self._began is None else self._at - self._began

    def _now(self) -> float:
        """Return the time by the clock of the events, in seconds since 1970."""
        return self._at if self.status in ENDED_STATUS else max(self._clock(), self._at)

    @property
    def is_idle(self) -> bool:
        """Whether the run has ended, or is paused until a user resumes it or answers.

        Not idle: a run that waits for a timer of at most an hour, and a run whose pause was
        requested while nodes are still active.
        """
        if self.status == "paused" and self.pause == WAITING and self._waits_for_timer:
            return False
        if self.status == "paused":
            return self.pause != REQUESTED or not self._active
        return self.status in ENDED_STATUS

    @property
    def pause_reason(self) -> str:
        """The reason of a pause: what the run waits for, or why it was paused."""
        if self.pause != WAITING or not self.requests:
            return self.reason
        waits = [
            awaited(request_id, each.request if request_id in self.timers else None)
            for request_id, each in self.requests.items()
        ]
        return one_line(f"waiting {', '.join(waits)}")

    @property
    def questions(self) -> list[OpenRequest]:
        """The open requests that a person answers, oldest first; timers are left out."""
        return [each for name, each in self.requests.items() if name not in self.timers]

    @property
    def _waits_for_timer(self) -> bool:
        timers = (self.requests[name] for name in self.timers & self.requests.keys())
        return any((each.timeout_s or 0.0) <= _SOON_S for each in timers)

    @property
    def counted_nodes(self) -> list[NodeLine]:
        """The nodes that belong to a wave."""
        return [node for wave in self.waves for node in wave.nodes]

    def running_for(self, node: NodeLine) -> float | None:
        """Return the duration of a node, so far if it is not settled; None if it never started."""
        if node.seconds is not None or node.started is None:
            return node.seconds
        return self._now() - node.started

    def apply(self, event: Event) -> None:
        """Apply one event; unknown types change nothing.

        An event of a nested node also shows in the node of the graph that contains it.
        """
        typed = typed_event(event)
        self._at = _seconds(event)
        self._began = self._at if self._began is None else self._began
        self._spending.observe(typed)
        self.call_line = self.calls.read(event)
        if event.path is None:
            return self._own_event(event)
        if event.type != "node.delta":
            self._track_activity(event, event.path)
        if (node := self.nodes.get(event.path)) is not None:
            if event.type == "node.delta":
                self._delta(node, event)
            elif event.type.startswith("node."):
                self._node(node, event)
        elif self.call_line is not None and (holder := self.nodes.get(outermost_path(event.path))):
            holder.tail = self.call_line
        elif self.calls.is_question(event.path):
            pass  # an approval is no step: its end reads as if the call had been made
        elif event.type in _EVENT_WORDS and (holder := self.nodes.get(outermost_path(event.path))):
            holder.tail = f"{event.path[len(holder.id) :]} {_EVENT_WORDS[event.type]}"

    def is_skipped(self, node_id: str) -> bool:
        """Return whether a node of the graph was skipped."""
        node = self.nodes.get(node_id)
        return node is not None and node.status == "skipped"

    def _track_activity(self, event: Event, path: str) -> None:
        """Update the active nodes and the open requests, nested nodes included."""
        data = event.data
        match event.type.removeprefix("node."):
            case "started":
                self._active.add(path)
            case "waiting":
                self._active.discard(path)
                request_id = str(data["request_id"])
                self.requests[request_id] = OpenRequest(
                    request_id, path, data.get("request"), event.at, data.get("timeout_s")
                )
                if is_timer(data.get("request")):
                    self.timers.add(request_id)
            case "answered":
                self.requests.pop(str(data["request_id"]), None)
                if self.pause != REQUESTED:
                    self._active.add(path)
            case "completed" | "failed" | "cancelled":
                self._active.discard(path)
                closed = [each for each in self.requests.values() if each.path == path]
                for each in closed:
                    del self.requests[each.request_id]
            case "retrying" | "parked":
                self._active.discard(path)
            case "unparked" if self.pause != REQUESTED:
                self._active.add(path)
            case _:
                pass

    def _started(self, event: Event) -> None:
        self.status = "executing"
        for status in ("linked", "not_reached"):
            for node_id in event.data.get(status) or ():
                if node_id in self.nodes:
                    self.nodes[node_id].status = status
        for wave in self.waves:
            wave.nodes = [node for node in wave.nodes if node.status != "linked"]
        self.planned_steps = len(self.counted_nodes)
        if event.data.get("not_reached"):
            self._keep_reached()

    def _keep_reached(self) -> None:
        """Take the nodes that do not run out of the waves, and number the waves as this run does."""
        reached = {node.id for node in self.counted_nodes if node.status != "not_reached"}
        topology = topology_of(self._graph)
        depth = topology.depths({topology.index[node_id] for node_id in reached})
        waves: dict[int, WaveLines] = {}
        for node_id in filter(reached.__contains__, self.nodes):
            number = depth[topology.index[node_id]] + 1
            waves.setdefault(number, WaveLines(number)).nodes.append(self.nodes[node_id])
        self.waves = [waves[number] for number in sorted(waves)]

    def _own_event(self, event: Event) -> None:
        """Apply an event of the execution itself."""
        self.is_planning = event.type == "plan.requested" or (
            self.is_planning and not event.type.startswith(("plan.", "execution."))
        )
        if event.type == "plan.revised":
            document = changed_graph(self._graph.document, event.data["graph_change"])
            graph, _ = read_graph(document)
            self._set_graph(graph, measure(graph).waves)
        elif event.type.startswith("execution."):
            self._execution(event)

    def _execution(self, event: Event) -> None:
        kind = event.type.removeprefix("execution.")
        if kind == "started":
            self._started(event)
        elif kind == "resumed":
            self.status, self.reason, self.pause = "executing", "", None
            self.requests.pop(str(event.data.get("request_id")), None)
        elif kind != "created":
            self.status, self.reason = kind, str(event.data.get("reason") or "")
            self.pause = pause_kind(event.data) if kind == "paused" else None
            if "request_id" in event.data:
                request_id = str(event.data["request_id"])
                request = event.data.get("request")
                self.requests[request_id] = OpenRequest(request_id, None, request, event.at)
            if kind in ENDED_STATUS:
                self.requests.clear()
            self.error = error_text(event.data.get("error")) or str(event.data.get("cause") or "")

    def _delta(self, node: NodeLine, event: Event) -> None:
        if event.attempt != node.attempt or event.data.get("kind", "text") != "text":
            return
        node.tail = (node.tail + str(event.data.get("text", "")))[-_TAIL_CHARS:]

    def _node(self, node: NodeLine, event: Event) -> None:
        kind = event.type.removeprefix("node.")
        if kind == "started":
            node.status, node.note, node.tail, node.warnings = "running", "", "", []
            node.started, node.attempt = self._at, event.attempt
        elif kind == "answered":
            is_time = event.data.get("request_id") in self.timers
            node.status, node.note = (
                "running",
                "" if is_time else answer_text(event.data.get("answer")),
            )
        elif kind in ("completed", "failed", "skipped", "blocked", "cancelled"):
            node.status, node.tail = shown_status(kind, event.data), ""
            node.seconds = self._duration(node, event)
            reason = status_reason(node.status, event.data)
            node.note = reason or "; ".join(node.warnings) or _route_of(event.data)
        elif kind in ("retrying", "waiting"):
            node.status, node.note = kind, status_reason(kind, event.data)
        elif kind in ("parked", "unparked"):  # the nested node has the request
            node.status = "waiting" if kind == "parked" else "running"
        elif (words := _plan_progress(event)) is not None:
            node.tail = words
        elif kind == "event" and event.data.get("event_type") == TEXT_DISCARDED:
            node.tail = ""
        elif kind == "log" and event.data.get("level") == "warning":
            message = str(
                event.data.get("message", "")
            )  # said again by a nested call, it is shown once
            node.warnings = [*dict.fromkeys([*node.warnings, message])][:_WARNINGS]

    def _duration(self, node: NodeLine, event: Event) -> float | None:
        if node.status in DID_NOT_RUN:
            return None
        took = event.data.get("duration_s")
        if took is not None:
            return float(took)
        return None if node.started is None else self._at - node.started


def progress_of(created: Event) -> RunProgress:
    """Return the progress of a run as of its first event.

    Raises:
        GraphInvalid: The stored graph is invalid: it was changed in the database.
    """
    graph, _ = read_graph(created.data["graph"])
    is_fork = bool(created.data.get("parent"))
    return RunProgress(graph, measure(graph).waves, began=_seconds(created), is_fork=is_fork)


def _seconds(event: Event) -> float:
    return datetime.fromisoformat(event.at).timestamp()


def event_line(event: Event, progress: RunProgress) -> str | None:
    """Return the plain line of an event for pipes and logs; None for events that need no line."""
    kind = event.type
    if kind == "execution.started":
        return _start_line(progress)
    if kind == "wave.started" and event.path is None:
        named = [str(each) for each in event.data.get("nodes") or ()]
        runs = [each for each in named if not progress.is_skipped(each)]
        return _wave_line(runs, progress) if runs else None
    if kind == "execution.paused":
        return f"paused: {progress.pause_reason}"
    if kind == "execution.resumed":
        return f"resumed: {event.data.get('reason')}"
    if (message := message_line(event, progress)) is not None:
        return message
    if progress.calls.is_question(event.path):
        return None
    if (words := _plan_progress(event)) is not None:
        return f"planning   {event.path}: {words}"
    node = _node_line(event, progress)
    if node is None or kind not in _EVENT_WORDS:
        return None
    if event.data.get("request_id") in progress.timers and kind == "node.answered":
        return f"continued  {node.id}{_name_suffix(node)}"
    word = shown_status(_EVENT_WORDS[kind], event.data)
    seconds = f" ({duration(node.seconds)})" if node.seconds is not None else ""
    note = f": {one_line(node.note)}" if node.note else ""
    return f"{word:<10} {node.id}{_name_suffix(node)}{seconds}{note}"


def _start_line(progress: RunProgress) -> str:
    """Return the line of the start: the steps and waves of this run, and of how many steps."""
    total, runs = progress.planned_steps, len(progress.counted_nodes)
    waves = sum(bool(wave.nodes) for wave in progress.waves)
    steps = counted(total, "step") if runs == total else f"{runs} of {counted(total, 'step')}"
    return f"running {steps} in {counted(waves, 'wave')}"


def _wave_line(ids: Sequence[str], progress: RunProgress) -> str:
    """Return the line of nodes that start together, with their waves as the forecast of this part numbers them.

    A run numbers waves without skipped entry nodes, so that nodes of two such waves may start together.
    """
    numbers = [
        str(wave.number) for wave in progress.waves if any(node.id in ids for node in wave.nodes)
    ]
    word = "wave" if len(numbers) < 2 else "waves"
    return f"{word} {' and '.join(numbers)} of {len(progress.waves)}: {', '.join(ids)}"


def _node_line(event: Event, progress: RunProgress) -> NodeLine | None:
    """Return the node of an event; a nested node is built from this event alone."""
    path, data = event.path or "", event.data
    if path in progress.nodes or outermost_path(path) not in progress.nodes:
        return progress.nodes.get(path)
    status = shown_status(event.type.removeprefix("node."), data)
    took = None if status in DID_NOT_RUN else data.get("duration_s")
    note = status_reason(status, data)
    if event.type == "node.answered":
        note = answer_text(data.get("answer"))
    name = str(data.get("name") or path)
    return NodeLine(path, name, seconds=None if took is None else float(took), note=note)


def _route_of(facts: Mapping[str, Any]) -> str:
    """Return the handles that a node chose; empty if the default handle is among them."""
    handles: list[str] = list(facts.get("outputs") or ())
    return "" if DEFAULT_SOURCE_HANDLE in handles else ", ".join(handles)


def message_line(event: Event, progress: RunProgress) -> str | None:
    """Return the line of a call of a tool, or of a node's message to the caller; else None."""
    if progress.call_line is not None:
        return f"  {progress.calls.agent_of(event.path or '')}: {one_line(progress.call_line)}"
    if event.type != "node.event" or event.data.get("event_type") != MESSAGE:
        return None
    node = progress.nodes.get(event.path or "")
    return f"{node.name if node else event.path}: {one_line(message_text(event.data.get('data')))}"


def _plan_progress(event: Event) -> str | None:
    """Return a line on the progress of a node that writes a plan; None for other events."""
    if event.type != "node.event" or event.data.get("event_type") != PLANNING:
        return None
    data = json_object(event.data.get("data"))
    return plan_progress_text(str(data.get("kind")), data)


_EVENT_WORDS = {
    "node.started": "started",
    "node.completed": "completed",
    "node.failed": "failed",
    "node.retrying": "retrying",
    "node.skipped": "skipped",
    "node.blocked": "blocked",
    "node.waiting": "waiting",
    "node.answered": "answered",
    "node.cancelled": "cancelled",
}


def _name_suffix(node: NodeLine) -> str:
    return f"  {one_line(node.name)}" if node.name != node.id else ""
