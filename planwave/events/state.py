"""State of an execution: the fold of its events.

``ExecutionState.apply`` is one table look-up and a few assignments an event, so folding is linear
and a live state is cheap to keep. The same events always give the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import ErrorDocument, InvalidTransition
from planwave.events.budget import ActiveTime, Budget
from planwave.events.graphs import NestedGraphs
from planwave.events.node_state import ENDED_NODE, NodeState, OpenRequest
from planwave.events.paths import ancestor_paths
from planwave.events.plan_changes import PlanChanges, approval_after
from planwave.events.plan_payloads import PlanRevisedData
from planwave.events.request_text import field_of, is_approved, is_plan_approval, is_timer
from planwave.events.types import (
    TEXT_DISCARDED,
    TRANSIENT,
    Event,
    ExecutionCancelled,
    ExecutionCompleted,
    ExecutionCreated,
    ExecutionFailed,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionStarted,
    ExecutionWarned,
    NestedRunOpened,
    NodeAnswered,
    NodeBlocked,
    NodeCancelled,
    NodeCompleted,
    NodeDelta,
    NodeEmitted,
    NodeFailed,
    NodeOutcome,
    NodeParked,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeUnparked,
    NodeWaiting,
    PauseKind,
    PlanRevised,
    StartedData,
    Usage,
    WaveCompleted,
    WaveStarted,
    pause_kind,
    typed_event,
)
from planwave.events.unreadable import unreadable_error
from planwave.events.usage import NO_USAGE, UsageLedger, UsageTotal
from planwave.events.waves import WaveProgress
from planwave.graph.result import LastNodes, Result
from planwave.principals import PrincipalDocument
from planwave.shapes.common import GraphDocument, OptionsDocument, ParentDocument

if TYPE_CHECKING:
    from planwave.shapes.common import ExecutionStatus, NodeStatus
    from planwave.shapes.executions import BudgetResponse, PlanApprovalResponse, WaveResponse

ENDED_STATUS: Final = frozenset({"completed", "failed", "cancelled"})
"""Execution statuses that never change again."""


@dataclass(slots=True)
class ExecutionState:
    """One execution according to its events; ``nodes`` by path, in graph order, nested nodes last.

    ``requests`` are the open requests, oldest first; ``closed_requests`` has how each other request
    was closed: ``answered``, ``timeout``, ``cancelled`` with its node, or ``ended`` with the execution.
    ``created_at``, ``started_at`` and ``completed_at`` are UTC. ``usage_ledger`` decides which usage was paid. ``approval`` is
    ``{"plan_hash", "approved_in"?, "answer"?}`` where the plan needs one. ``budget`` has the limits of
    what it may use, None without one; ``trigger`` is what started it, None without one; ``last_at`` is the time of the last event.
    ``graph`` and ``plan_hash`` are those after the last of the ``changes``.
    """

    execution_id: str = ""
    status: ExecutionStatus = "starting"
    goal: str = ""
    title: str = ""
    plan_id: str | None = None
    plan_hash: str | None = None
    revision: int | None = None
    flow: str | None = None
    graph: GraphDocument | None = None
    inputs: dict[str, dict[str, Any]] | None = None
    options: OptionsDocument | None = None
    parent: ParentDocument | None = None
    trigger: Any = None
    created_by: PrincipalDocument | None = None
    approval: PlanApprovalResponse | None = None
    budget: Budget | None = None
    active_time: ActiveTime = field(default_factory=ActiveTime, repr=False, compare=False)
    last_at: str = ""
    created_at: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    last_seq: int = 0
    error: ErrorDocument | None = None
    reason: str | None = None
    pause: PauseKind | None = None
    cause: Any = None
    failures: list[str] = field(default_factory=list[str])
    handled_failures: list[str] = field(default_factory=list[str])
    waves: WaveProgress = field(default_factory=WaveProgress)
    changes: PlanChanges = field(default_factory=PlanChanges)
    nodes: dict[str, NodeState] = field(default_factory=dict[str, NodeState])
    requests: dict[str, OpenRequest] = field(default_factory=dict[str, OpenRequest])
    closed_requests: dict[str, str] = field(default_factory=dict[str, str])
    usage: UsageTotal = NO_USAGE
    nested_graphs: NestedGraphs = field(default_factory=NestedGraphs)
    usage_ledger: UsageLedger = field(default_factory=UsageLedger, repr=False, compare=False)
    _requests_by_path: dict[str | None, set[str]] = field(
        default_factory=dict[str | None, set[str]], repr=False
    )

    def is_handled(self, node: NodeState) -> bool:
        """Return whether the run continued after a node failed.

        The policy of the node handled the failure, or a node around it completed, such as a loop
        that skips failed items.
        """
        if node.handled or node.status != "failed":
            return node.handled
        around = map(self.nodes.get, ancestor_paths(node.path))
        return any(each is not None and each.status == "completed" for each in around)

    def result(self) -> Result:
        """Return what its last nodes delivered, so far or at its end."""
        if self.graph is None:
            return Result({})
        last = LastNodes.of_document(self.graph)
        delivered = (
            (each, self.nodes[each].delivered) for each in {*last.ends, *last.sinks, *last.starts}
        )
        return last.result({node_id: outputs for node_id, outputs in delivered if outputs})

    @property
    def is_over(self) -> bool:
        """Whether the execution has ended."""
        return self.status in ENDED_STATUS

    @property
    def is_approved(self) -> bool:
        """Whether a person approved the plan, in this execution or an earlier one."""
        approval = self.approval or {}
        was_approved = "approved_in" in approval or "approved_revision" in approval
        return was_approved or is_approved(approval.get("answer"))

    def budget_json(self) -> BudgetResponse | None:
        """Return ``{"limits", "used", "warned"}`` of the budget; None without one."""
        if self.budget is None:
            return None
        wall_s = self.active_time.until(self.last_at) if self.last_at else 0.0
        return self.budget.as_json(self.budget.used(self.usage, wall_s))

    def wave_json(self) -> WaveResponse:
        """Return ``{"current", "total"}``; see ``WaveProgress.as_json``."""
        return self.waves.as_json(has_completed=self.status == "completed")

    @property
    def waiting_for_input(self) -> bool:
        """Whether it waits for a person's answer; timers do not count."""
        return next(self._user_requests(), None) is not None

    @property
    def current_node_id(self) -> str | None:
        """The node of the oldest open request to a person, None without one or for a plan."""
        first = next(self._user_requests(), None)
        return None if first is None else first.path

    def _user_requests(self) -> Iterator[OpenRequest]:
        return (each for each in self.requests.values() if not is_timer(each.request))

    def apply(self, event: Event) -> None:
        """Apply the next event.

        Raises:
            InvalidTransition: ``seq`` does not follow, or the event is of another execution.
        """
        self._check_order(event)
        typed = typed_event(event)
        reducer = REDUCERS.get(typed.type)
        if reducer is not None:
            reducer(self, typed)
        if event.seq:
            self.last_at = event.at

    def _check_order(self, event: Event) -> None:
        if not self.execution_id:
            self.execution_id = event.execution_id
        elif event.execution_id != self.execution_id:
            raise InvalidTransition(
                f"event of execution {event.execution_id!r} told to {self.execution_id!r}"
            )
        if event.type in TRANSIENT:
            if event.seq != 0:
                raise InvalidTransition(f"{event.type} is never stored, yet has seq {event.seq}")
        elif event.seq != self.last_seq + 1:
            raise InvalidTransition(
                f"event {event.type} has seq {event.seq} where {self.last_seq + 1} must follow"
            )
        else:
            self.last_seq = event.seq

    def node(self, path: str | None) -> NodeState:
        """Return a node's state; create it where no event has named the node yet.

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
        """Record a request of a node, or of the execution."""
        self.requests[request.request_id] = request
        self._requests_by_path.setdefault(request.path, set()).add(request.request_id)

    def has_open_request(self, path: str) -> bool:
        """Return whether a node has an open request."""
        return path in self._requests_by_path

    def close_requests_of(self, path: str) -> None:
        """Close the open requests of a node that has ended, as cancelled."""
        for request_id in sorted(self._requests_by_path.get(path, ())):
            self.close_request(request_id, "cancelled")

    def close_request(self, request_id: str, by: str) -> None:
        """Close a request and record what closed it."""
        request = self.requests.pop(request_id, None)
        if request is None:
            return
        self.closed_requests[request_id] = by
        others = self._requests_by_path[request.path]
        others.discard(request_id)
        if not others:
            del self._requests_by_path[request.path]

    def end(self, status: ExecutionStatus, at: str) -> None:
        """End the execution and close its open requests."""
        self.status = status
        self.completed_at = at
        self.reason = self.pause = self.changes.open = None
        if self.budget is not None:
            self.active_time.stop(at)
        for request_id in list(self.requests):
            self.close_request(request_id, "ended")

    def as_json(self, *, nodes: bool = True) -> dict[str, Any]:
        """Return the state as JSON; with ``nodes=False`` without the nodes."""
        document: dict[str, Any] = {
            "execution_id": self.execution_id,
            "status": self.status,
            "goal": self.goal,
            "title": self.title,
            "plan_id": self.plan_id,
            "plan_hash": self.plan_hash,
            "revision": self.revision,
            "flow": self.flow,
            "graph": self.graph,
            "inputs": self.inputs,
            "options": self.options,
            "parent": self.parent,
            "approval": self.approval,
            "created_by": self.created_by,
            "budget": self.budget_json(),
            "created_at": self.created_at,
            "started_at": self.started_at,
            "completed_at": self.completed_at,
            "last_seq": self.last_seq,
            "error": self.error,
            "reason": self.reason,
            "cause": self.cause,
            "failures": list(self.failures),
            "handled_failures": list(self.handled_failures),
            "waves": self.wave_json(),
            "usage": self.usage.as_json(),
            "waitingForInput": self.waiting_for_input,
            "currentNodeId": self.current_node_id,
            "requests": [request.as_json() for request in self.requests.values()],
        }
        document |= self.changes.as_json()
        if nodes:
            document["nodes"] = [node.as_json() for node in self.nodes.values()]
        return document


def fold(events: Iterable[Event]) -> ExecutionState:
    """Return the state of an execution after these stored events.

    Raises:
        Conflict: ``unreadable``: the events are not one execution's, numbered 1, 2, 3 ….
    """
    state = ExecutionState()
    try:
        for event in events:
            state.apply(event)
    except InvalidTransition as error:
        raise unreadable_error(state.execution_id, error.message) from error
    return state


def _created(state: ExecutionState, event: ExecutionCreated) -> None:
    data = event.data
    state.created_at = event.at
    state.goal = data.get("goal") or ""
    state.title = data.get("title") or ""
    state.plan_id = data.get("plan_id")
    state.plan_hash = data.get("plan_hash")
    state.revision = data.get("revision")
    state.flow = data.get("flow")
    state.graph = data.get("graph")
    state.inputs = data.get("inputs")
    state.options = data.get("options")
    state.parent = data.get("parent")
    state.trigger = data.get("trigger")
    state.created_by = data.get("created_by")
    approval = data.get("approval")
    state.approval = None if approval is None else {**approval}
    limits = (state.options or {}).get("budget") or {}
    limited = {name: most for name, most in limits.items() if most is not None}
    state.budget = Budget(limited) if limited else None
    state.waves.total = data.get("waves") or 0
    for node in (state.graph or {}).get("nodes", ()):
        state.node(node["id"])


def _started(state: ExecutionState, event: ExecutionStarted) -> None:
    state.status = "executing"
    state.started_at = state.started_at or event.at
    if state.budget is not None:
        state.active_time.start(event.at)
    _set_shape(state, event.data)


def _set_shape(state: ExecutionState, data: StartedData | PlanRevisedData) -> None:
    state.waves.total = data.get("waves") or 0
    for status in ("linked", "not_reached"):
        for node_id in data.get(status) or ():
            state.node(node_id).status = status


def _plan_revised(state: ExecutionState, event: PlanRevised) -> None:
    state.changes.record(event, state)
    _set_shape(state, event.data)


def _paused(state: ExecutionState, event: ExecutionPaused) -> None:
    state.status = "paused"
    state.reason, state.pause = event.data.get("reason"), pause_kind(event.data)
    if state.budget is not None:
        state.budget.observe(event)
        state.active_time.stop(event.at)
    request_id = event.data.get("request_id")
    if request_id is not None:
        request = event.data.get("request")
        state.open_request(OpenRequest(request_id, None, request, event.at))
        if state.approval is None and is_plan_approval(request):
            # The operator requires it since the execution was created.
            state.approval = {"plan_hash": field_of(request, "plan_hash")}


def _resumed(state: ExecutionState, event: ExecutionResumed) -> None:
    state.usage_ledger.observe(event)
    state.status = "executing"
    state.reason = state.pause = None
    request_id = event.data.get("request_id")
    if request_id is not None:
        request = state.requests.get(request_id)
        state.close_request(request_id, "answered" if "answer" in event.data else "cancelled")
        if request is not None:
            state.approval = approval_after(state.approval, request.request, event.data)
    if state.budget is not None:
        state.budget.observe(event)
        state.active_time.stop(state.last_at)
        state.active_time.start(event.at)


def _warned(state: ExecutionState, event: ExecutionWarned) -> None:
    if state.budget is not None:
        state.budget.observe(event)


def _completed(state: ExecutionState, event: ExecutionCompleted) -> None:
    state.end("completed", event.at)
    state.handled_failures = list(event.data.get("handled_failures") or ())


def _failed(state: ExecutionState, event: ExecutionFailed) -> None:
    state.end("failed", event.at)
    state.error = event.data.get("error")
    state.failures = list(event.data.get("failures") or ())


def _cancelled(state: ExecutionState, event: ExecutionCancelled) -> None:
    state.end("cancelled", event.at)
    state.cause = event.data.get("cause")


def _wave_started(state: ExecutionState, event: WaveStarted) -> None:
    if event.path is None:
        state.waves.begun.add(event.data["wave"])


def _wave_completed(state: ExecutionState, event: WaveCompleted) -> None:
    if event.path is None:
        state.waves.done.add(event.data["wave"])


def _node_parked(state: ExecutionState, event: NodeParked) -> None:
    node = state.node(event.path)
    node.status = "waiting"
    node.duration_s = event.data.get("duration_s", node.duration_s)


def _node_unparked(state: ExecutionState, event: NodeUnparked) -> None:
    state.node(event.path).status = "running"
    state.usage_ledger.observe(event)


def _begin_node(state: ExecutionState, event: NodeStarted | NodeCompleted) -> NodeState:
    """Return the state of a node that begins; if it had ended, a new state that keeps its usage.

    A nested node begins again after its end where its run is opened again.
    """
    node = state.node(event.path)
    if node.status in ENDED_NODE:
        node = state.nodes[node.path] = NodeState(node.path, usage=node.usage)
    return node


def _node_started(state: ExecutionState, event: NodeStarted) -> None:
    node = _begin_node(state, event)
    node.status, node.name = "running", event.data.get("name")
    node.begin_attempt(event.attempt)
    node.error = node.traceback = None
    node.started_at = node.started_at or event.at
    node.wave = event.data.get("wave", node.wave)
    node.via = event.data.get("via", node.via)
    state.usage_ledger.observe(event)


def _end_node(state: ExecutionState, event: NodeOutcome, status: NodeStatus) -> NodeState:
    node = state.node(event.path)
    node.status = status
    node.completed_at = event.at
    if event.attempt is not None:
        node.attempt = event.attempt
    node.duration_s = event.data.get("duration_s", node.duration_s)
    node.restore_text(event.data.get("streamed"))
    state.usage_ledger.observe(event)
    if state.requests:
        state.close_requests_of(node.path)
    return node


def _node_completed(state: ExecutionState, event: NodeCompleted) -> None:
    origin = event.data.get("reused")
    if origin:
        _begin_node(state, event)
    node = _end_node(state, event, "completed")
    if origin:  # a result is reused from the node of the same path
        node.reused = {
            "execution_id": origin["execution_id"],
            "path": node.path,
            "failed_inside": origin.get("failed_inside", False),
        }
    node.wave = event.data.get("wave", node.wave)
    node.outputs = event.data.get("outputs") or {}
    node.error = node.traceback = None


def _node_failed(state: ExecutionState, event: NodeFailed) -> None:
    node = _end_node(state, event, "failed")
    node.error, node.traceback = event.data.get("error"), event.data.get("traceback")
    node.handled = bool(event.data.get("handled"))
    node.outputs = event.data.get("outputs") or node.outputs


def _node_retrying(state: ExecutionState, event: NodeRetrying) -> None:
    node = state.node(event.path)
    node.status = "retrying"
    node.error, node.traceback = event.data.get("error"), event.data.get("traceback")
    node.restore_text(event.data.get("streamed"))
    state.usage_ledger.observe(event)


def _node_skipped(state: ExecutionState, event: NodeSkipped) -> None:
    node = _end_node(state, event, "skipped")
    node.reason = event.data.get("reason")
    node.handle = event.data.get("handle")


def _node_blocked(state: ExecutionState, event: NodeBlocked) -> None:
    _end_node(state, event, "blocked").cause = event.data.get("cause")


def _node_cancelled(state: ExecutionState, event: NodeCancelled) -> None:
    _end_node(state, event, "cancelled").cause = event.data.get("cause")


def _node_waiting(state: ExecutionState, event: NodeWaiting) -> None:
    node, data = state.node(event.path), event.data
    node.status = "waiting"
    node.duration_s = data.get("duration_s", node.duration_s)
    state.usage_ledger.observe(event)
    request_id, timeout_s = data["request_id"], data.get("timeout_s")
    state.open_request(OpenRequest(request_id, node.path, data.get("request"), event.at, timeout_s))


def _node_answered(state: ExecutionState, event: NodeAnswered) -> None:
    node = state.node(event.path)
    state.close_request(event.data["request_id"], event.data.get("by") or "answered")
    node.answer = event.data.get("answer")
    if node.status == "waiting" and not state.has_open_request(node.path):
        node.status = "running"


def _node_event(state: ExecutionState, event: NodeEmitted) -> None:
    kind = event.data.get("event_type")
    if kind == "prompt":
        state.node(event.path).prompt = event.data.get("data")
    elif kind == TEXT_DISCARDED:
        state.node(event.path).discard_text()


def _nested_run_opened(state: ExecutionState, event: NestedRunOpened) -> None:
    state.nested_graphs.record(event.path, event.data)


def _usage(state: ExecutionState, event: Usage) -> None:
    is_paid = state.usage_ledger.is_paid(event)
    if is_paid:
        state.usage = state.usage.plus(event.data)
    if event.path is not None:
        node = state.node(event.path)
        if is_paid:
            node.usage = node.usage.plus(event.data)
        node.provider = event.data.get("provider") or node.provider
        node.model = event.data.get("model") or node.model


def _delta(state: ExecutionState, event: NodeDelta) -> None:
    if event.path is None:
        return state.changes.write(event)
    node = state.node(event.path)
    attempt = event.attempt or node.attempt
    if attempt < node.attempt or node.status in ENDED_NODE:
        return  # a late delta of an attempt whose text was dropped
    if attempt > node.attempt:
        node.begin_attempt(attempt)
    node.stream(event.data["kind"], event.data["offset"], event.data["text"])


REDUCERS: Final[Mapping[str, Callable[[ExecutionState, Any], None]]] = {
    "execution.created": _created,
    "execution.started": _started,
    "execution.paused": _paused,
    "execution.resumed": _resumed,
    "execution.warned": _warned,
    "execution.completed": _completed,
    "execution.failed": _failed,
    "execution.cancelled": _cancelled,
    "plan.requested": lambda state, event: state.changes.request(event),
    "plan.revised": _plan_revised,
    "plan.refused": lambda state, event: state.changes.refuse(event),
    "wave.started": _wave_started,
    "wave.completed": _wave_completed,
    "node.started": _node_started,
    "node.completed": _node_completed,
    "node.failed": _node_failed,
    "node.retrying": _node_retrying,
    "node.skipped": _node_skipped,
    "node.blocked": _node_blocked,
    "node.waiting": _node_waiting,
    "node.answered": _node_answered,
    "node.parked": _node_parked,
    "node.unparked": _node_unparked,
    "node.cancelled": _node_cancelled,
    "node.event": _node_event,
    "nested_run.opened": _nested_run_opened,
    "usage": _usage,
    "node.delta": _delta,
}
"""Reducers by event type. Events without a reducer (``node.log``) only advance ``last_seq``."""
