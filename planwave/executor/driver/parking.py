"""What a node does beside the graphs that run inside it: own work, nothing, or waiting for answers."""

from __future__ import annotations

from planwave.events.types import NODE_PARKED, NODE_UNPARKED
from planwave.executor.driver.run_state import RunState
from planwave.executor.messages import AttemptTimer, ChangePlace, IdleEnded, Reply, SetTimer
from planwave.executor.state import DONE, NESTED, PARKED, RUNNING, Attempt, GraphRun


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


# -- the running place of the execution ------------------------------------------------------------


def idle_changed(run: RunState, attempt: Attempt) -> None:
    """Follow which tasks of a node wait for something that comes only after a while."""
    if attempt.idle_waits and attempt.phase is not DONE:
        run.idle[attempt] = None
    else:
        run.idle.pop(attempt, None)


def idle_ended(run: RunState, message: IdleEnded) -> None:
    """Let a task go on that has waited so, once the execution has its place."""
    if message.attempt.phase is DONE:
        run.effects.append(Reply(message.reply, message.attempt.ended_error()))
    else:
        run.returning.append(message)


def return_idle(run: RunState) -> None:
    """Let the tasks go on that wait for the place only, if it is there."""
    if run.returning and (run.place == "held" or run.is_stopping):
        for each in run.returning:
            each.attempt.idle_waits.discard(each.wait)
            idle_changed(run, each.attempt)
            run.effects.append(Reply(each.reply))
        run.returning.clear()


def follow_place(run: RunState) -> None:
    """Ask for a running place, or give it back, by what the nodes do now.

    Without one, only starts of nodes wait, and tasks that would go on after a wait.
    """
    if not run.shares_places or run.outcome is not None:
        return  # the end of an execution gives its place back anyway
    if run.slots.has_working(run.idle):
        if run.place != "held":  # code that cannot be held up works beside its nested runs
            run.change_place("held", ChangePlace("taken"))
    elif not run.is_stopping and (run.slots.wants_to_start or run.returning):
        if run.place == "none":
            run.change_place("wanted", ChangePlace("wanted"))
    elif run.place != "none":
        run.change_place("none", ChangePlace("freed"))
