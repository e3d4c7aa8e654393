"""What a node does beside the graphs that run inside it: own work, nothing, or waiting for answers."""

from __future__ import annotations

from planwave.events.types import NODE_PARKED, NODE_UNPARKED
from planwave.executor.driver.effects import SetTimer
from planwave.executor.driver.run_state import RunState
from planwave.executor.messages import AttemptTimer
from planwave.executor.state import NESTED, PARKED, RUNNING, Attempt, GraphRun


def update_activity(run: RunState, attempt: Attempt) -> None:
    """Follow what a node does beside its waits: own work takes a slot, waiting frees it.

    A node is parked whose nested runs all wait for answers, and whose code waits for them, or for the
    budget.
    """
    if attempt.phase is RUNNING and attempt.only_nests:
        attempt.stop_own_clock(run.now.loop_s)
        run.slots.enter_nested(attempt)
    elif attempt.phase is NESTED and attempt.does_own_work:
        run.slots.leave_nested(attempt)
        start_own_time(run, attempt)
    if attempt.phase is NESTED and attempt.only_waits:
        _park(run, attempt)


def start_own_time(run: RunState, attempt: Attempt) -> None:
    """Start the own clock of an attempt that works, and the timer of its limit."""
    attempt.start_own_clock(run.now.loop_s)
    start_attempt_timer(run, attempt)


def _park(run: RunState, attempt: Attempt) -> None:
    """Record that a node waits for answers inside it, or for the budget; its task stays."""
    run.slots.park(attempt)
    data = attempt.stop_clock(run.now.loop_s)
    if attempt.budget_waits:
        data["budget"] = True
    run.emit(NODE_PARKED, data, attempt.path, attempt.number)
    attempt.graph_run.schedule.waits(attempt.node)
    run.mark_changed(attempt.graph_run)


def ensure_active(run: RunState, attempt: Attempt) -> None:
    """Let a parked node go on that does something by itself: not all of its tasks are counted.

    The parked nodes around it go on before: a process that takes over enters only those again.
    """
    if attempt.phase is PARKED:
        if attempt.graph_run.nested_run is not None:
            ensure_active(run, attempt.graph_run.nested_run.node_run.attempt)
        unpark(run, attempt)


def unpark(run: RunState, attempt: Attempt) -> None:
    """Record that a parked node goes on, with the task that it has."""
    run.slots.unpark(attempt)
    attempt.started = run.now.loop_s
    run.emit(NODE_UNPARKED, {}, attempt.path, attempt.number)
    attempt.graph_run.schedule.answered(attempt.node)
    mark_active(attempt.graph_run)


def mark_active(graph_run: GraphRun) -> None:
    """Record that a nested run no longer only waits, or that it has ended."""
    if graph_run.is_idle and graph_run.nested_run is not None:
        graph_run.is_idle = False
        graph_run.nested_run.node_run.waiting -= 1


def start_attempt_timer(run: RunState, attempt: Attempt) -> None:
    """Set the timer of an attempt's own time, where that is limited and no timer is set."""
    if attempt.limit_s is not None and not attempt.has_deadline:
        attempt.has_deadline = True
        left_s = attempt.limit_s - attempt.own_time(run.now.loop_s)
        run.effects.append(SetTimer(AttemptTimer(attempt), run.now.loop_s + max(left_s, 0.0)))
