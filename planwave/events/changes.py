"""What each type of event changes about the state of an execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from planwave.events.node_state import ENDED_NODE, NodeState, OpenRequest
from planwave.events.vocabulary import RUN_GRAPH, Event, pause_kind

if TYPE_CHECKING:
    from planwave.events.state import ExecutionState


def _created(state: ExecutionState, event: Event) -> None:
    data = event.data
    state.created_at = event.at
    state.goal = data.get("goal") or ""
    state.title = data.get("title") or ""
    state.plan_id = data.get("plan_id")
    state.plan_hash = data.get("plan_hash")
    state.flow_id = data.get("flow_id")
    state.flow_version = data.get("flow_version")
    state.graph = data.get("graph")
    state.inputs = data.get("inputs")
    state.options = data.get("options")
    state.parent = data.get("parent")
    for node in (state.graph or {}).get("nodes", ()):
        state.node(node["id"])


def _started(state: ExecutionState, event: Event) -> None:
    state.status = "executing"
    state.started_at = state.started_at or event.at
    state.waves_total = event.data.get("waves") or 0
    for status in ("linked", "not_reached"):
        for node_id in event.data.get(status) or ():
            state.node(node_id).status = status


def _paused(state: ExecutionState, event: Event) -> None:
    state.status = "paused"
    state.reason, state.pause = event.data.get("reason"), pause_kind(event.data)


def _resumed(state: ExecutionState, event: Event) -> None:
    state.usage_ledger.observe(event)
    state.status = "executing"
    state.reason = state.pause = None


def _completed(state: ExecutionState, event: Event) -> None:
    state.end("completed", event.at)
    state.handled_failures = list(event.data.get("handled_failures") or ())


def _failed(state: ExecutionState, event: Event) -> None:
    state.end("failed", event.at)
    state.error = event.data.get("error")
    state.failures = list(event.data.get("failures") or ())


def _cancelled(state: ExecutionState, event: Event) -> None:
    state.end("cancelled", event.at)
    state.cause = event.data.get("cause")


def _wave_started(state: ExecutionState, event: Event) -> None:
    if event.path is None:
        state.record_wave_started(event.data["wave"])


def _wave_completed(state: ExecutionState, event: Event) -> None:
    if event.path is None:
        state.record_wave_completed(event.data["wave"])


def _node_parked(state: ExecutionState, event: Event) -> None:
    node = state.node(event.path)
    node.status = "waiting"
    node.duration_s = event.data.get("duration_s", node.duration_s)


def _node_unparked(state: ExecutionState, event: Event) -> None:
    state.node(event.path).status = "running"
    state.usage_ledger.observe(event)


def _begin_node(state: ExecutionState, event: Event) -> NodeState:
    """Give a node that begins; of one in a nested run that is made anew, what it used stays."""
    node = state.node(event.path)
    if node.status in ENDED_NODE:
        node = state.nodes[node.path] = NodeState(node.path, usage=node.usage)
    return node


def _node_started(state: ExecutionState, event: Event) -> None:
    node = _begin_node(state, event)
    node.status, node.name = "running", event.data.get("name")
    node.begin_attempt(event.attempt)
    node.error = None
    node.started_at = node.started_at or event.at
    node.wave = event.data.get("wave", node.wave)
    node.via = event.data.get("via", node.via)
    state.usage_ledger.observe(event)


def _end_node(state: ExecutionState, event: Event, status: str) -> NodeState:
    node = state.node(event.path)
    node.status = status
    node.completed_at = event.at
    if event.attempt is not None:
        node.attempt = event.attempt
    node.duration_s = event.data.get("duration_s", node.duration_s)
    state.usage_ledger.observe(event)
    if state.requests:
        state.close_requests_of(node.path)
    return node


def _node_completed(state: ExecutionState, event: Event) -> None:
    if event.data.get("reused"):
        _begin_node(state, event)
    node = _end_node(state, event, "completed")
    node.outputs = event.data.get("outputs") or {}
    node.error = None


def _node_failed(state: ExecutionState, event: Event) -> None:
    node = _end_node(state, event, "failed")
    node.error = event.data.get("error")
    node.handled = bool(event.data.get("handled"))
    node.outputs = event.data.get("outputs") or node.outputs


def _node_retrying(state: ExecutionState, event: Event) -> None:
    node = state.node(event.path)
    node.status = "retrying"
    node.error = event.data.get("error")
    state.usage_ledger.observe(event)


def _node_skipped(state: ExecutionState, event: Event) -> None:
    node = _end_node(state, event, "skipped")
    node.reason = event.data.get("reason")
    node.handle = event.data.get("handle")


def _node_blocked(state: ExecutionState, event: Event) -> None:
    _end_node(state, event, "blocked").cause = event.data.get("cause")


def _node_cancelled(state: ExecutionState, event: Event) -> None:
    _end_node(state, event, "cancelled").cause = event.data.get("cause")


def _node_waiting(state: ExecutionState, event: Event) -> None:
    node = state.node(event.path)
    node.status = "waiting"
    data = event.data
    node.duration_s = data.get("duration_s", node.duration_s)
    state.usage_ledger.observe(event)
    request_id = data["request_id"]
    state.open_request(
        OpenRequest(request_id, node.path, data.get("request"), event.at, data.get("timeout_s"))
    )


def _node_answered(state: ExecutionState, event: Event) -> None:
    node = state.node(event.path)
    state.close_request(event.data["request_id"], event.data.get("by") or "answered")
    node.answer = event.data.get("answer")
    if node.status == "waiting" and not state.has_open_request(node.path):
        node.status = "running"


def _node_event(state: ExecutionState, event: Event) -> None:
    kind, said = event.data.get("event_type"), event.data.get("data")
    if kind == "prompt":
        state.node(event.path).prompt = said
    elif kind == RUN_GRAPH and said:
        state.nested_graphs.record(event.path, said)


def _usage(state: ExecutionState, event: Event) -> None:
    is_paid = state.usage_ledger.is_paid(event)
    if is_paid:
        state.usage = state.usage.plus(event.data)
    if event.path is not None:
        node = state.node(event.path)
        if is_paid:
            node.usage = node.usage.plus(event.data)
        node.provider = event.data.get("provider") or node.provider
        node.model = event.data.get("model") or node.model


def _delta(state: ExecutionState, event: Event) -> None:
    node = state.node(event.path)
    attempt = event.attempt or node.attempt
    if attempt < node.attempt or node.status in ENDED_NODE:
        return  # a straggler of an attempt whose text was dropped
    if attempt > node.attempt:
        node.begin_attempt(attempt)
    node.stream(event.data["kind"], event.data["offset"], event.data["text"])


REDUCERS: Final[Mapping[str, Callable[[ExecutionState, Event], None]]] = {
    "execution.created": _created,
    "execution.started": _started,
    "execution.paused": _paused,
    "execution.resumed": _resumed,
    "execution.completed": _completed,
    "execution.failed": _failed,
    "execution.cancelled": _cancelled,
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
    "usage": _usage,
    "node.delta": _delta,
}
"""Types that change no state (``node.log``) and later ones are only counted."""
