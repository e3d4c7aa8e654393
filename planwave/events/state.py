"""State is the fold of events: what an execution looks like after the facts told so far.

``ExecutionState.apply`` is one table look-up and a few assignments an event, so folding is linear
and a live state costs its owner little. The same events always give the same state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from planwave.errors import InvalidTransition
from planwave.events.changes import REDUCERS
from planwave.events.charging import UsageLedger
from planwave.events.course import is_timer
from planwave.events.graphs import NestedGraphs
from planwave.events.node_state import NO_USAGE, NodeState, OpenRequest, UsageTotal
from planwave.events.vocabulary import TRANSIENT, Event, PauseKind

ENDED_STATUS: Final = frozenset({"completed", "failed", "cancelled"})
"""Execution statuses that never change again."""


@dataclass(slots=True)
class ExecutionState:
    """One execution as far as the events tell; ``nodes`` by path, in graph order, nested ones last.

    ``requests`` holds the open ones, oldest first; ``closed_requests`` says of the others what
    closed them: ``answered``, ``timeout`` or ``cancelled``. ``created_at``, ``started_at`` and
    ``completed_at`` are UTC. ``charges`` knows which usage was paid.
    """

    execution_id: str = ""
    status: str = "starting"
    goal: str = ""
    title: str = ""
    plan_id: str | None = None
    plan_hash: str | None = None
    flow_id: str | None = None
    flow_version: str | None = None
    graph: dict[str, Any] | None = None
    inputs: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    parent: Any = None
    created_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    last_seq: int = 0
    error: dict[str, Any] | None = None
    reason: str | None = None
    pause: PauseKind | None = None
    cause: Any = None
    failures: list[str] = field(default_factory=list[str])
    handled_failures: list[str] = field(default_factory=list[str])
    waves_total: int = 0
    nodes: dict[str, NodeState] = field(default_factory=dict[str, NodeState])
    requests: dict[str, OpenRequest] = field(default_factory=dict[str, OpenRequest])
    closed_requests: dict[str, str] = field(default_factory=dict[str, str])
    usage: UsageTotal = NO_USAGE
    nested_graphs: NestedGraphs = field(default_factory=NestedGraphs)
    usage_ledger: UsageLedger = field(default_factory=UsageLedger, repr=False, compare=False)
    _waves_begun: set[int] = field(default_factory=set[int], repr=False)
    _waves_done: set[int] = field(default_factory=set[int], repr=False)
    _requests_by_path: dict[str, set[str]] = field(default_factory=dict[str, set[str]], repr=False)

    @property
    def waves(self) -> dict[str, int]:
        """``{"current", "total"}``: the lowest unfinished wave (the last one when all are).

        A wave of which nothing ran, as all of it was skipped, is passed over.
        """
        if self.status == "completed":
            return {"current": self.waves_total, "total": self.waves_total}
        current, last_begun = 1, max(self._waves_begun, default=0)
        while current in self._waves_done or (
            current < last_begun and current not in self._waves_begun
        ):
            current += 1
        return {"current": min(current, self.waves_total), "total": self.waves_total}

    @property
    def is_over(self) -> bool:
        """Whether the execution has ended for good."""
        return self.status in ENDED_STATUS

    @property
    def waiting_for_input(self) -> bool:
        """Whether somebody is asked something; who waits for a time asks nobody."""
        return next(self._user_requests(), None) is not None

    @property
    def current_node_id(self) -> str | None:
        """The node of the oldest open request that asks somebody."""
        first = next(self._user_requests(), None)
        return None if first is None else first.path

    def _user_requests(self) -> Iterator[OpenRequest]:
        return (each for each in self.requests.values() if not is_timer(each.request))

    def apply(self, event: Event) -> None:
        """Take in the next fact.

        Raises:
            InvalidTransition: ``seq`` does not follow, or the event is of another execution.
        """
        self._check_order(event)
        change = REDUCERS.get(event.type)
        if change is not None:
            change(self, event)

    def _check_order(self, event: Event) -> None:
        if event.type in TRANSIENT:
            if event.seq != 0:
                raise InvalidTransition(f"{event.type} is never stored, yet has seq {event.seq}")
        elif event.seq != self.last_seq + 1:
            raise InvalidTransition(
                f"event {event.type} has seq {event.seq} where {self.last_seq + 1} must follow"
            )
        else:
            self.last_seq = event.seq
        if not self.execution_id:
            self.execution_id = event.execution_id
        elif event.execution_id != self.execution_id:
            raise InvalidTransition(
                f"event of execution {event.execution_id!r} told to {self.execution_id!r}"
            )

    def node(self, path: str | None) -> NodeState:
        """Give a node's state, making it if the events had not named it yet.

        Raises:
            InvalidTransition: ``path`` is None.
        """
        if path is None:
            raise InvalidTransition("an event about a node has no path")
        state = self.nodes.get(path)
        if state is None:
            state = self.nodes[path] = NodeState(path)
        return state

    def open_request(self, request: OpenRequest) -> None:
        """Note that a node asks something."""
        self.requests[request.request_id] = request
        self._requests_by_path.setdefault(request.path, set()).add(request.request_id)

    def has_open_request(self, path: str) -> bool:
        """Say whether a node has an open request."""
        return path in self._requests_by_path

    def close_requests_of(self, path: str) -> None:
        """Forget the open requests of a node that has ended."""
        for request_id in sorted(self._requests_by_path.get(path, ())):
            self.close_request(request_id, "cancelled")

    def close_request(self, request_id: str, by: str) -> None:
        """Note that a request is not open any more."""
        request = self.requests.pop(request_id, None)
        if request is None:
            return
        self.closed_requests[request_id] = by
        others = self._requests_by_path[request.path]
        others.discard(request_id)
        if not others:
            del self._requests_by_path[request.path]

    def end(self, status: str, at: str) -> None:
        """End the execution; nothing waits any more."""
        self.status = status
        self.completed_at = at
        self.reason = self.pause = None
        for request_id in list(self.requests):
            self.close_request(request_id, "cancelled")

    def record_wave_started(self, wave: int) -> None:
        """Note that the first node of a wave has started."""
        self._waves_begun.add(wave)

    def record_wave_completed(self, wave: int) -> None:
        """Note that all of a wave is settled."""
        self._waves_done.add(wave)

    def as_json(self, *, nodes: bool = True) -> dict[str, Any]:
        """Give the whole state as JSON, or with ``nodes=False`` all but what is told of nodes."""
        told: dict[str, Any] = {
            "execution_id": self.execution_id,
            "status": self.status,
            "goal": self.goal,
            "title": self.title,
            "plan_id": self.plan_id,
            "plan_hash": self.plan_hash,
            "flow_id": self.flow_id,
            "flow_version": self.flow_version,
            "graph": self.graph,
            "inputs": self.inputs,
            "options": self.options,
            "parent": self.parent,
            "created_at": self.created_at,
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "last_seq": self.last_seq,
            "error": self.error,
            "reason": self.reason,
            "cause": self.cause,
            "failures": list(self.failures),
            "handled_failures": list(self.handled_failures),
            "waves": self.waves,
            "usage": self.usage.as_json(),
            "waitingForInput": self.waiting_for_input,
            "currentNodeId": self.current_node_id,
            "requests": [request.as_json() for request in self.requests.values()],
        }
        if nodes:
            told["nodes"] = [node.as_json() for node in self.nodes.values()]
        return told


def fold(events: Iterable[Event]) -> ExecutionState:
    """Give the state of an execution after these events.

    Raises:
        InvalidTransition: The events are not one execution's, numbered 1, 2, 3 … (deltas 0).
    """
    state = ExecutionState()
    for event in events:
        state.apply(event)
    return state
