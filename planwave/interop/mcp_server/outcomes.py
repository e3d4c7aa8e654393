"""An execution as the tools return it: status, result, failures, open requests, and the next step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from planwave.events import ENDED_STATUS
from planwave.events.outcome import missing_text
from planwave.events.outcome import outcome_of as partial_outcome_of
from planwave.events.request_text import field_of, is_timer, request_text
from planwave.jsonio import dumps_exact

if TYPE_CHECKING:
    from planwave.events import Event, ExecutionState, NodeState
    from planwave.service.service import Service

_ENDS: Final = frozenset(
    {"execution.paused", "execution.completed", "execution.failed", "execution.cancelled"}
)
_MAX_FAILURES: Final = 20
_ASK_AGAIN: Final = "The execution continues. Call `result` with its execution_id and a wait_s."
_ANSWER: Final = (
    "The execution waits for a person. Ask them, then call `answer` with the execution_id, the "
    "request_id, and one of the actions as decision."
)
_WAITS_FOR_TIME: Final = "The execution waits for a time. Call `result` later."
_PAUSED: Final = "The execution was paused. It is resumed with `planwave resume` or in the web UI."
_FAILED: Final = (
    "`result` has the results of the other nodes. `planwave retry` runs the failed part again."
)


def is_at_rest(state: ExecutionState) -> bool:
    """Return whether an execution has ended, or goes on only with help: time is none."""
    if state.status == "paused":
        return not _waits_for_time(state)
    return state.status in ENDED_STATUS


async def outcome_of(service: Service, execution_id: str) -> dict[str, Any]:
    """Return what has become of an execution, as JSON.

    Raises:
        NotFound: No execution has this id.
    """
    state = await service.executions.state(execution_id)
    outcome = status_of(state)
    partial = partial_outcome_of(state)
    if partial["outcome"] is not None:
        outcome |= partial
    if state.status == "completed" or partial["outcome"] is not None:
        outcome["result"] = state.result().value.value
    if state.status in ("completed", "failed") and (failures := _failures(state)):
        outcome["failures"] = failures
    if state.status == "failed":
        outcome["error"] = state.error
    if state.status == "cancelled":
        outcome["cause"] = state.cause
    return outcome


def status_of(state: ExecutionState) -> dict[str, Any]:
    """Return how far an execution is, with its open requests and the next step."""
    status: dict[str, Any] = {
        "execution_id": state.execution_id,
        "plan_id": state.plan_id,
        "title": state.title,
        "status": state.status,
        "waves": state.wave_json(),
    }
    requests = [_request_json(state, each.as_json()) for each in state.requests.values()]
    if requests:
        status["requests"] = requests
    if (advice := _next_step(state)) is not None:
        status["next"] = advice
    return status


def text_of(outcome: Mapping[str, Any]) -> str:
    """Return an outcome as a model reads it best: the result of a completed execution alone, else a few lines.

    A result that is not all there comes first, then what is missing of it.
    """
    lines: list[str] = []
    if "result" in outcome:
        value = outcome["result"]
        lines.append(value if isinstance(value, str) else dumps_exact(value))
        if outcome["status"] == "completed":
            return lines[0]
    lines += [f"status: {outcome['status']}", f"execution_id: {outcome['execution_id']}"]
    lines += [
        f"missing: the result of {each['path']!r} ({missing_text(each)})"
        for each in outcome.get("missing", ())
    ]
    failures = outcome.get("failures", ())
    if (error := outcome.get("error")) is not None and not failures:
        lines.append(f"error: {_sentence(error)}")
    if (cause := outcome.get("cause")) is not None:
        lines.append(f"cause: {cause}")
    lines += [f"node {each['node']!r} failed: {_sentence(each)}" for each in failures]
    lines += [_request_line(each) for each in outcome.get("requests", ())]
    if (advice := outcome.get("next")) is not None:
        lines.append(advice)
    return "\n".join(lines)


def may_be_at_rest(event: Event) -> bool:
    """Return whether an execution may be at rest after an event; see ``is_at_rest``."""
    return event.type in _ENDS


def _request_json(state: ExecutionState, request: Mapping[str, Any]) -> dict[str, Any]:
    node = state.nodes.get(request["path"] or "")
    content = request["request"]
    return {
        "request_id": request["request_id"],
        "node": request["path"],
        "name": node.name if node is not None else None,
        "prompt": request_text(content),
        "request": content,
        "since": request["since"],
    }


def _request_line(request: Mapping[str, Any]) -> str:
    actions: Any = field_of(request["request"], "actions")
    choice = f" (decision: {' or '.join(map(str, actions))})" if actions else ""
    return f"request {request['request_id']}: {request['prompt']}{choice}"


def _failures(state: ExecutionState) -> list[dict[str, Any]]:
    failed = [node for node in state.nodes.values() if node.status == "failed" and node.error]
    return [_failure_json(state, node) for node in failed[:_MAX_FAILURES]]


def _failure_json(state: ExecutionState, node: NodeState) -> dict[str, Any]:
    return {"node": node.path, "handled": state.is_handled(node), **(node.error or {})}


def _sentence(error: Mapping[str, Any]) -> str:
    hint = error.get("hint")
    return f"{error.get('message')}; {hint}" if hint else f"{error.get('message')}"


def _next_step(state: ExecutionState) -> str | None:
    if state.status == "failed":
        return _FAILED
    if state.status in ENDED_STATUS:
        return None
    if state.status != "paused":
        return _ASK_AGAIN
    if not state.requests:
        return _PAUSED
    return _WAITS_FOR_TIME if _waits_for_time(state) else _ANSWER


def _waits_for_time(state: ExecutionState) -> bool:
    requests = [each.request for each in state.requests.values()]
    return bool(requests) and all(map(is_timer, requests))
