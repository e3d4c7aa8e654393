"""Stored events of one execution that is resumed, by graph run.

Until its node opens it again, a nested run is known by its stored events only. They are enough to
list its open requests and to accept answers. The run resumes once its node opens it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Final

from planwave.errors import InvalidTransition
from planwave.events import Event
from planwave.events.paths import nested_prefix, parent_path, path_prefix
from planwave.events.types import (
    WAITING,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionStarted,
    NestedRunOpened,
    NodeCompleted,
    NodeWaiting,
    PauseKind,
    TypedEvent,
    pause_kind,
    typed_event,
)
from planwave.executor.state import StoredGraphRun
from planwave.graph.json_values import size_of
from planwave.graph.model import Json

_ENDS: Final = frozenset(
    {"node.completed", "node.failed", "node.skipped", "node.blocked", "node.cancelled"}
)


class StoredNestedRuns:
    """The stored nested runs of one execution, of each the newest, and the once values of its nodes.

    Attributes:
        recorded_graphs: The hashes of the graphs that are stored.
    """

    def __init__(self) -> None:
        self.recorded_graphs: set[str] = set()
        self._runs: dict[str, StoredGraphRun] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._once_values: dict[str, dict[str, Json]] = {}

    def __contains__(self, prefix: str) -> bool:
        return prefix in self._runs

    def add(self, prefix: str, event: Event) -> None:
        """Add an event of a nested run; prefix "": an event of the execution's own graph."""
        typed = typed_event(event)
        if prefix:
            self._get_or_create(prefix).add(typed)
        path = typed.path or ""
        match typed.type:
            case "node.retrying":
                self.mark_failed_for_restart(path)
            case "once.stored":
                values = self._once_values.setdefault(path, {})
                values[typed.data["key"]] = typed.data["value"]
            case "nested_run.opened":
                self._open(path, typed)
            case "nested_run.abandoned":
                prefix = nested_prefix(path, typed.data["key"])
                if prefix in self._runs:
                    self._mark_for_restart(prefix)
            case _:
                pass

    def get(self, prefix: str) -> StoredGraphRun | None:
        """Return a nested run that its node has not opened again."""
        return self._runs.get(prefix)

    def pop(self, prefix: str) -> StoredGraphRun | None:
        """Remove a nested run that its node opens again, and return it."""
        run = self._runs.pop(prefix, None)
        if run is not None:
            self._children[run.parent_path].pop(prefix, None)
            for path, event in run.latest().items():
                run.highest_attempt = max([run.highest_attempt, *self._attempts_inside(path)])
                if event.type in _ENDS:
                    self.discard(path)
        return run

    def pop_once_values(self, path: str) -> dict[str, Json]:
        """Remove the once values of a node, and return them."""
        return self._once_values.pop(path, {})

    def requests(self) -> list[tuple[str, NodeWaiting]]:
        """Return the open requests of all nested runs by id, oldest first."""
        requests = [each for run in self._runs.values() for each in run.requests().items()]
        return sorted(requests, key=lambda each: each[1].seq)

    def parked_attempt(self, path: str) -> int | None:
        """Return the number of the parked attempt of a nested node, None where it is not parked."""
        run = self._runs.get(path_prefix(path))
        latest = None if run is None else run.latest().get(path)
        return latest.attempt if latest is not None and latest.type == "node.parked" else None

    def unfinished_inside(self, path: str) -> list[TypedEvent]:
        """Return the last event of each unfinished node inside a node, innermost first."""
        unfinished: list[TypedEvent] = []
        for prefix in self._children.get(path, ()):
            for inner, event in self._runs[prefix].latest().items():
                unfinished += self.unfinished_inside(inner)
                if event.type not in _ENDS:
                    unfinished.append(event)
        return unfinished

    def mark_failed_for_restart(self, path: str) -> None:
        """Mark the failed nested runs of a node, so that its next attempt restarts them."""
        for prefix in list(self._children.get(path, ())):
            if any(_is_unsuccessful(event) for event in self._runs[prefix].events):
                self._mark_for_restart(prefix)

    def discard(self, path: str) -> None:
        """Remove the nested runs and once values of a node."""
        self._once_values.pop(path, None)
        for prefix in self._children.pop(path, ()):
            run = self._runs.pop(prefix, None)
            for inner in {event.path for event in run.events} if run else ():
                self.discard(inner or "")

    def _get_or_create(self, prefix: str) -> StoredGraphRun:
        run = self._runs.get(prefix)
        if run is None:
            parent = parent_path(prefix)
            run = self._runs[prefix] = StoredGraphRun(parent)
            self._children.setdefault(parent, {})[prefix] = None
        return run

    def _open(self, path: str, event: NestedRunOpened) -> None:
        data = event.data
        prefix = nested_prefix(path, data["key"])
        if prefix in self._runs:
            self._mark_for_restart(prefix)
        if "document" in data:
            self.recorded_graphs.add(data["graph"])
        run = self._get_or_create(prefix)
        run.identity = (data["graph"], data["inputs"])
        run.attempt_number = event.attempt or 1
        run.attempt_offset = data.get("before", 0)
        run.highest_attempt = max(run.highest_attempt, run.attempt_offset)
        run.must_restart = False

    def _mark_for_restart(self, prefix: str) -> None:
        """Drop the events of a nested run that restarts; its attempt numbers continue."""
        run = self._runs[prefix]
        for inner in {event.path or "" for event in run.events}:
            run.highest_attempt = max([run.highest_attempt, *self._attempts_inside(inner)])
            self.discard(inner)
        run.events = []
        run.must_restart = True

    def _attempts_inside(self, path: str) -> Iterator[int]:
        for prefix in self._children.get(path, ()):
            run = self._runs[prefix]
            yield run.highest_attempt
            for inner in {event.path or "" for event in run.events}:
                yield from self._attempts_inside(inner)


def _is_unsuccessful(event: TypedEvent) -> bool:
    if event.type == "node.failed":
        return not event.data.get("handled")
    return event.type == "node.cancelled"


_NOT_RUN: Final = frozenset({"given", "reused", "changed"})
"""Keys of a ``node.completed`` whose node did not run."""


def is_paused_by_request(reason: PauseKind | None) -> bool:
    """Return whether a paused execution needs a command to resume."""
    return reason is not None and reason != WAITING


class History:
    """The stored events of one execution, for a driver that resumes it.

    Attributes:
        last_seq: Number of the last event.
        is_started: ``execution.started`` is stored.
        pause_reason: How the execution is paused, None where it is not.
        active_s: Seconds the execution was neither paused nor without a process, by event times.
        result_bytes: Size of all results of nodes that ran, and of all once values.
        start_count: Number of ``node.started`` events.
        nested_runs: The nested runs.
    """

    __slots__ = (
        "_own_events",
        "_since",
        "active_s",
        "is_started",
        "last_seq",
        "nested_runs",
        "pause_reason",
        "result_bytes",
        "start_count"
    )  # fmt: skip

    def __init__(self, events: Iterable[Event]) -> None:
        self.last_seq = 0
        self.is_started = False
        self.pause_reason: PauseKind | None = None
        self.active_s = 0.0
        self.result_bytes = self.start_count = 0
        self.nested_runs = StoredNestedRuns()
        self._own_events: list[Event] = []
        self._since: datetime | None = None
        last: Event | None = None
        for event in events:
            typed = typed_event(event)
            match typed.type:
                case "execution.started" | "execution.paused" | "execution.resumed":
                    self._add_execution_event(typed, last)
                case _ if event.path is None and event.type.startswith("execution."):
                    pass
                case _:
                    self._add_node_event(typed)
            last = event
        if last is not None:
            self.last_seq = last.seq
            self._stop_clock(last)

    def take_own_events(self) -> list[Event]:
        """Return the events of the execution's own graph, and drop them."""
        events, self._own_events = self._own_events, []
        return events

    def _add_execution_event(
        self, event: ExecutionStarted | ExecutionPaused | ExecutionResumed, last: Event | None
    ) -> None:
        if event.type == "execution.started":
            self.is_started = True
            self._since = event_time(event.at)
        elif event.type == "execution.paused":
            self.pause_reason = pause_kind(event.data)
            self._stop_clock(event)
        elif event.type == "execution.resumed":
            self.pause_reason = None
            if last is not None:
                self._stop_clock(last)
            self._since = event_time(event.at)

    def _stop_clock(self, event: Event) -> None:
        if self._since is not None:
            passed = event_time(event.at) - self._since
            self.active_s += max(passed.total_seconds(), 0.0)
            self._since = None

    def _add_node_event(self, event: TypedEvent) -> None:
        path = event.path or ""
        is_of_graph = event.type.startswith("wave.")
        prefix = path and path + "/" if is_of_graph else path_prefix(path)
        if not prefix:
            self._own_events.append(event)
        self.nested_runs.add(prefix, event)
        match event.type:
            case "node.started":
                self.start_count += 1
            case "node.completed":
                self.result_bytes += _result_bytes(event)
            case "once.stored":
                self.result_bytes += size_of(event.data["value"])
            case _:
                pass


def _result_bytes(event: NodeCompleted) -> int:
    """Return the size of a result, 0 where its node did not run."""
    if _NOT_RUN & event.data.keys():
        return 0
    outputs = event.data.get("outputs") or {}
    return sum(size_of(output.get("value")) for output in outputs.values())


def seconds_between(earlier: str, later: str) -> float:
    """Return the seconds between two event times, 0 where the clock went back."""
    return max((event_time(later) - event_time(earlier)).total_seconds(), 0.0)


def event_time(at: str) -> datetime:
    """Return the time of an event.

    Raises:
        InvalidTransition: It is not a time with a time zone.
    """
    with suppress(ValueError):
        time = datetime.fromisoformat(at)
        if time.tzinfo is not None:
            return time
    raise InvalidTransition(f"{at!r} is not the time of an event")
