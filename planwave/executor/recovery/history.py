"""Stored events of one execution that is resumed, by graph run.

Until its node opens it again, a nested run is known by its stored events only. They are enough to
list its open requests and to accept answers. The run resumes once its node opens it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final, cast

from planwave.errors import InvalidTransition
from planwave.events import Event
from planwave.events.budget import Spending
from planwave.events.paths import nested_prefix, parent_path, path_prefix
from planwave.events.plan_payloads import REPLAN, PlanRequestedData, is_for_model
from planwave.events.request_text import is_change_request
from planwave.events.types import (
    WAITING,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionStarted,
    ExecutionWarned,
    NestedRunOpened,
    NodeCompleted,
    NodeWaiting,
    PauseKind,
    PlanRefused,
    PlanRequested,
    PlanRevised,
    TypedEvent,
    pause_kind,
    typed_event,
)
from planwave.executor.stored_runs import StoredGraphRun
from planwave.graph.json_values import size_of
from planwave.graph.model import Json
from planwave.shapes.common import GraphDocument, OutputsDocument

_ENDS: Final = frozenset(
    {"node.completed", "node.failed", "node.skipped", "node.blocked", "node.cancelled"}
)


class StoredGraphRuns:
    """All stored graph runs of one execution: each run of each graph.

    Attributes:
        root: The run of the execution's own graph.
        documents: The graphs of nested runs by hash.
    """

    def __init__(self) -> None:
        self.root = StoredGraphRun()
        self.documents: dict[str, GraphDocument] = {}
        self._runs = {"": [self.root]}
        self._children: dict[str, list[StoredGraphRun]] = {}

    def add(self, event: Event) -> None:
        """Add an event of a node, or of a graph run, or a change of the execution's own graph."""
        typed = typed_event(event)
        if (
            typed.type == "plan.requested"
            or typed.type == "plan.revised"
            or typed.type == "plan.refused"
        ):
            self.root.add_plan_event(typed)
            return
        path = typed.path or ""
        is_of_graph = typed.type.startswith("wave.")
        self._get_or_create(path and path + "/" if is_of_graph else path_prefix(path)).add(typed)
        match typed.type:
            case "node.retrying":
                self.mark_failed_for_restart(path)
            case "nested_run.opened":
                self._open(path, typed)
            case "nested_run.abandoned":
                self._mark_for_restart(nested_prefix(path, typed.data["key"]))
            case _:
                pass

    def runs_at(self, prefix: str) -> list[StoredGraphRun]:
        """Return the runs with a prefix, the latest first."""
        return [run for run in reversed(self._runs.get(prefix, ())) if not run.must_restart]

    def runs_in(self, path: str) -> list[StoredGraphRun]:
        """Return the runs that a node opened, in the order of their beginning."""
        return [run for run in self._children.get(path, ()) if not run.must_restart]

    def latest_run(self, prefix: str) -> StoredGraphRun | None:
        """Return the newest run with a prefix, if it is part of the newest run around it."""
        run = self._runs[prefix][-1] if prefix in self._runs else None
        if run is None or run.parent is None or self.latest_run(run.parent.prefix) is run.parent:
            return run
        return None

    def mark_failed_for_restart(self, path: str) -> None:
        """Mark the failed nested runs of a node, so that its next attempt restarts them."""
        for run in self.latest_in(path):
            if any(is_unsuccessful(event) for event in run.events):
                self._mark_for_restart(run.prefix)

    def latest_in(self, path: str) -> list[StoredGraphRun]:
        """Return the newest runs inside a node that it has not opened again."""
        runs = self._children.get(path, ())
        return [run for run in runs if not run.is_resumed and self.latest_run(run.prefix) is run]

    def _get_or_create(self, prefix: str) -> StoredGraphRun:
        return self.latest_run(prefix) or self._create(prefix)

    def _create(self, prefix: str) -> StoredGraphRun:
        path = parent_path(prefix)
        run = StoredGraphRun(prefix, self._get_or_create(path_prefix(path)))
        before = self.latest_run(prefix)
        if before is not None:
            run.highest_attempt = before.highest_attempt
        self._runs.setdefault(prefix, []).append(run)
        self._children.setdefault(path, []).append(run)
        return run

    def _open(self, path: str, event: NestedRunOpened) -> None:
        data = event.data
        prefix = nested_prefix(path, data["key"])
        if "document" in data:
            self.documents[data["graph"]] = data["document"]
        run = self.latest_run(prefix)
        if run is None or not run.must_restart:
            run = self._create(prefix)
        run.identity = (data["graph"], data["inputs"])
        run.attempt_number = event.attempt or 1
        run.attempt_offset = data.get("before", 0)
        run.count_attempt(run.attempt_offset)
        run.must_restart = False

    def _mark_for_restart(self, prefix: str) -> None:
        """Begin a new run in place of the newest one; its attempt numbers continue."""
        run = self.latest_run(prefix)
        if run is not None and not run.must_restart:
            following = self._create(prefix)
            following.identity, following.must_restart = run.identity, True


class StoredNestedRuns(StoredGraphRuns):
    """The stored nested runs of an execution that resumes: of each the newest."""

    def __contains__(self, prefix: str) -> bool:
        return self.get(prefix) is not None

    def get(self, prefix: str) -> StoredGraphRun | None:
        """Return a nested run that its node has not opened again."""
        run = self.latest_run(prefix)
        return None if run is None or run.parent is None or run.is_resumed else run

    def pop(self, prefix: str) -> StoredGraphRun | None:
        """Return a nested run that its node opens again."""
        run = self.get(prefix)
        if run is not None:
            run.is_resumed = True
            for path, event in run.latest().items():
                if event.type in _ENDS:
                    self.discard(path)
        return run

    def pop_once_values(self, path: str) -> tuple[dict[str, Json], str | None]:
        """Remove the once values of a node, and return them with what they depend on."""
        run = self.latest_run(path_prefix(path))
        if run is None:
            return {}, None
        return run.once_values.pop(path, {}), run.depends_on.pop(path, None)

    def requests(self) -> list[tuple[str, NodeWaiting]]:
        """Return the open requests of all nested runs by id, oldest first."""
        runs = filter(None, map(self.get, self._runs))
        requests = [each for run in runs for each in run.requests().items()]
        return sorted(requests, key=lambda each: each[1].seq)

    def parked_attempt(self, path: str) -> int | None:
        """Return the number of the parked attempt of a nested node, None where it is not parked."""
        run = self.get(path_prefix(path))
        latest = None if run is None else run.latest().get(path)
        return latest.attempt if latest is not None and latest.type == "node.parked" else None

    def unfinished_inside(self, path: str) -> list[TypedEvent]:
        """Return the last event of each unfinished node inside a node, innermost first."""
        unfinished: list[TypedEvent] = []
        for run in self.latest_in(path):
            for inner, event in run.latest().items():
                unfinished += self.unfinished_inside(inner)
                if event.type not in _ENDS:
                    unfinished.append(event)
        return unfinished

    def discard_inside(self, prefix: str) -> None:
        """Remove what nodes of an ended run have not taken up again, so that no later run does."""
        run = self.latest_run(prefix)
        for path in () if run is None else {*run.latest(), *run.once_values}:
            self.discard(path)

    def discard(self, path: str) -> None:
        """Remove the nested runs and once values of a node."""
        self.pop_once_values(path)
        for run in self._children.pop(path, ()):
            for inner in {*run.latest(), *run.once_values}:
                self.discard(inner)
            self._runs.pop(run.prefix, None)


def is_unsuccessful(event: TypedEvent) -> bool:
    """Return whether an event says that a node failed or was cancelled, and no policy handled it."""
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
        own_requests: The events with the open requests of the execution itself, by id: for approval of its plan,
            while no node has started, for a higher budget, or for approval of a change of its graph.
        own_events: The pauses, their ends and the warnings of the execution, in order.
        plan_request: The event with the change that was being written, or waits for a person; None without one.
        plan_asks: What asks for the next change: nodes that failed since the last request, and what nodes
            want that was not requested yet.
        plan_requests: How many changes were requested of a model.
        plan_own_requests: How many of these the execution asked for itself.
        plan_changes: How many were made, by people too.
        spending: The usage that was paid.
        budget_waits: The paths of the nodes that wait for the budget.
        active_s: Seconds the execution was neither paused nor without a process, by event times.
        state_bytes: Size of all results of nodes that ran, of all once values, of requests and emitted
            events, and of the documents of nested graphs.
        streamed_bytes: Size of what attempts that did not complete had streamed.
        start_count: Number of ``node.started`` events.
        nested_runs: The nested runs.
    """

    __slots__ = (
        "_since",
        "active_s",
        "budget_waits",
        "is_started",
        "last_seq",
        "nested_runs",
        "own_events",
        "own_requests",
        "pause_reason",
        "plan_asks",
        "plan_changes",
        "plan_own_requests",
        "plan_request",
        "plan_requests",
        "spending",
        "start_count",
        "state_bytes",
        "streamed_bytes",
    )  # fmt: skip

    def __init__(self, events: Iterable[Event]) -> None:
        self.last_seq = 0
        self.is_started = False
        self.pause_reason: PauseKind | None = None
        self.own_requests: dict[str, ExecutionPaused] = {}
        self.own_events: list[TypedEvent] = []
        self.plan_request: PlanRequested | None = None
        self.plan_asks: list[PlanRequestedData] = []
        self.plan_requests = self.plan_own_requests = self.plan_changes = 0
        self.spending = Spending()
        self.budget_waits: dict[str, None] = {}
        self.active_s = 0.0
        self.state_bytes = self.start_count = self.streamed_bytes = 0
        self.nested_runs = StoredNestedRuns()
        self._since: datetime | None = None
        last: Event | None = None
        for event in events:
            typed = typed_event(event)
            match typed.type:
                case (
                    "execution.started"
                    | "execution.paused"
                    | "execution.resumed"
                    | "execution.warned"
                ):
                    self._add_execution_event(typed, last)
                case "plan.requested" | "plan.revised" | "plan.refused":
                    self._add_plan_event(typed)
                case "usage" if event.path is None:  # of the model that writes changes
                    self._count(typed)
                case _ if event.path is None and event.type.startswith("execution."):
                    pass
                case _:
                    self._add_node_event(typed)
            self.spending.observe(typed)
            last = event
        if last is not None:
            self.last_seq = last.seq
            self._stop_clock(last)

    @property
    def change_request_id(self) -> str | None:
        """The id of the open request for approval of a change of the graph; None without one."""
        asked = self.own_requests.items()
        return next((i for i, each in asked if is_change_request(each.data.get("request"))), None)

    def take_own_events(self) -> list[TypedEvent]:
        """Return the events of the execution's own graph, and drop them."""
        root = self.nested_runs.root
        events, root.events = root.events, []
        return events

    def _add_execution_event(
        self,
        event: ExecutionStarted | ExecutionPaused | ExecutionResumed | ExecutionWarned,
        last: Event | None,
    ) -> None:
        self.own_events.append(event)
        if event.type == "execution.started":
            self.is_started = True
            self._since = event_time(event.at)
        elif event.type == "execution.paused":
            self.pause_reason = pause_kind(event.data)
            if (request_id := event.data.get("request_id")) is not None:
                self.own_requests[request_id] = event
            self._stop_clock(event)
        elif event.type == "execution.resumed":
            self.pause_reason = None
            self.own_requests.pop(event.data.get("request_id", ""), None)
            if last is not None:
                self._stop_clock(last)
            self._since = event_time(event.at)

    def _add_plan_event(self, event: PlanRequested | PlanRevised | PlanRefused) -> None:
        self.nested_runs.add(event)
        self.plan_request = event if event.type == "plan.requested" else None
        if event.type == "plan.requested":
            asked = event.data
            self.plan_requests += is_for_model(asked)
            self.plan_own_requests += asked["by"] != "person"
            self.plan_asks = [
                each
                for each in self.plan_asks
                if each["by"] == "node" and each.get("path") != asked.get("path")
                if asked["by"] != "person"  # what nodes asked for comes first, or was refused
            ]
        self.plan_changes += event.type == "plan.revised"

    def _stop_clock(self, event: Event) -> None:
        if self._since is not None:
            passed = event_time(event.at) - self._since
            self.active_s += max(passed.total_seconds(), 0.0)
            self._since = None

    def _add_node_event(self, event: TypedEvent) -> None:
        self.nested_runs.add(event)
        if event.type == "node.parked" and event.data.get("budget"):
            self.budget_waits[event.path or ""] = None
        elif event.type in ("node.unparked", "node.cancelled"):
            self.budget_waits.pop(event.path or "", None)
        if "[" not in (path := event.path or ""):
            self._add_ask(event, path)
        self._count(event)

    def _add_ask(self, event: TypedEvent, path: str) -> None:
        if event.type == "node.failed" and not event.data.get("handled"):
            self.plan_asks.append({"change": 0, "by": "failure", "path": path})
        elif event.type == "node.event" and event.data.get("event_type") == REPLAN:
            asked = cast("Mapping[str, str]", event.data.get("data"))
            self.plan_asks.append(
                {"change": 0, "by": "node", "path": path, "request": asked["request"]}
            )

    def _count(self, event: TypedEvent) -> None:
        """Count starts of nodes, and what is stored."""
        match event.type:
            case "node.started":
                self.start_count += 1
            case "node.completed":
                self.state_bytes += _result_bytes(event)
            case "once.stored":
                self.state_bytes += size_of(event.data["value"])
            case "node.event":
                self.state_bytes += size_of(event.data.get("data"))
            case "node.log" | "usage":
                self.state_bytes += size_of(event.data)
            case "node.cancelled" | "node.failed" | "node.retrying":
                self.streamed_bytes += _value_bytes(event.data.get("streamed"))
            case "node.waiting" if not event.data.get("interrupted"):
                self.state_bytes += size_of([event.data.get("request"), event.data.get("state")])
            case "nested_run.opened":
                if "document" in event.data:
                    self.state_bytes += size_of(event.data["document"])
            case _:
                pass


def _result_bytes(event: NodeCompleted) -> int:
    """Return the size of a result, 0 where its node did not run."""
    if _NOT_RUN & event.data.keys():
        return 0
    return _value_bytes(event.data.get("outputs"))


def _value_bytes(outputs: OutputsDocument | None) -> int:
    return sum(size_of(output.get("value")) for output in (outputs or {}).values())


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
