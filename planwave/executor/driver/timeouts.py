"""Time limits of attempts, of requests and of the whole execution."""

from __future__ import annotations

from typing import Final

from planwave.errors import NodeTimeout
from planwave.executor.driver.run_state import RunState
from planwave.executor.messages import (
    AttemptTimer,
    ExecutionTimer,
    LoadingEnded,
    RequestTimer,
    SetTimer,
)
from planwave.executor.recovery.history import seconds_between
from planwave.executor.requests import PendingRequest
from planwave.executor.state import DONE, Attempt

EARLY_S: Final = 1e-3
"""A timer may fire this much before its time."""


def start_execution_timer(run: RunState) -> None:
    """Set the timer of the whole execution, where its time is limited."""
    limit_s = run.options.run_timeout_s
    if limit_s is not None:
        left_s = limit_s - (run.history.active_s if run.history is not None else 0.0)
        run.effects.append(SetTimer(ExecutionTimer(limit_s), run.now.loop_s + max(left_s, 0.0)))


def start_attempt_timer(run: RunState, attempt: Attempt) -> None:
    """Set the timer of an attempt's own time, where that is limited and no timer is set."""
    if attempt.limit_s is not None and not attempt.has_deadline:
        attempt.has_deadline = True
        left_s = attempt.limit_s - attempt.own_time(run.now.loop_s)
        run.effects.append(SetTimer(AttemptTimer(attempt), run.now.loop_s + max(left_s, 0.0)))


def attempt_timeout(run: RunState, attempt: Attempt) -> NodeTimeout | None:
    """Return the error of an attempt whose timer fired; None if it has own time left."""
    attempt.has_deadline = False
    if attempt.phase is DONE or attempt.own_since < 0.0 or attempt.limit_s is None:
        return None  # a node that only waits gets a new timer when it proceeds
    if attempt.loading:
        return None  # so does one that loads something
    if attempt.limit_s - attempt.own_time(run.now.loop_s) > EARLY_S:
        start_attempt_timer(run, attempt)
        return None
    return NodeTimeout(
        f"node {attempt.path!r} did not finish within {attempt.limit_s:g} s",
        hint="raise the node's timeoutS",
    )


def loading_ended(run: RunState, message: LoadingEnded) -> None:
    """Set the timer of an attempt again, where it fired while something was loaded."""
    attempt = message.attempt
    if attempt.phase is not DONE and attempt.own_since >= 0.0 and not attempt.loading:
        start_attempt_timer(run, attempt)


def attempt_limit_s(run: RunState, attempt: Attempt) -> float | None:
    """Return the limit of an attempt's own time: the node's, or that of the execution's options."""
    program = attempt.graph_run.program
    own = program.steps[attempt.node].node.policy.timeout_s if program.has_timeouts else None
    return run.options.node_timeout_s if own is None else own


def start_request_timer(run: RunState, request_id: str, request: PendingRequest) -> None:
    """Set the timer of a request, where its time is limited."""
    limit_s = request.suspension.timeout_s
    if limit_s is not None:
        left_s = max(limit_s - seconds_between(request.since, run.now.at), 0.0)
        run.effects.append(SetTimer(RequestTimer(request_id), run.now.loop_s + left_s))
