"""What a node does while graphs run inside it: own work, nothing, or waiting for answers; its outcomes."""

from __future__ import annotations

from planwave.errors import NodeError
from planwave.events.types import NODE_PARKED, NODE_UNPARKED
from planwave.executor.driver.run_state import RunState
from planwave.executor.driver.timeouts import start_attempt_timer
from planwave.executor.messages import (
    ChangePlace,
    DeliverOutcome,
    IdleChanged,
    IdleEnded,
    PlaceGranted,
    Reply,
)
from planwave.executor.state import (
    DONE,
    NESTED,
    PARKED,
    RUNNING,
    Attempt,
    GraphRun,
    NestedOutcome,
    NestedRun,
    ReplyTo,
)


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


def return_outcome(
    run: RunState, attempt: Attempt, reply: ReplyTo, outcome: NestedOutcome | None
) -> None:
    """Deliver a nested outcome to a node, at once or when the node gets a slot again."""
    if isinstance(outcome, NodeError):  # one error object per waiter, as raising changes it
        outcome = NodeError(
            outcome.message,
            code=outcome.code,
            hint=outcome.hint,
            retryable=outcome.retryable,
            cause=outcome.cause,
        )
    attempt.due_outcomes += 1
    delivery = DeliverOutcome(attempt, reply, outcome)
    if attempt.phase is NESTED:
        run.slots.queue_return(delivery)
    else:
        run.effects.append(delivery)


def set_idle(run: RunState, graph_run: GraphRun, nested_run: NestedRun, is_idle: bool) -> None:
    """Record whether a nested run only waits for answers; perhaps its node then does so too."""
    if graph_run.is_idle == is_idle or nested_run.graph_run is not graph_run:
        return
    graph_run.is_idle = is_idle
    nested_run.node_run.waiting += 1 if is_idle else -1
    if is_idle:
        update_activity(run, nested_run.node_run.attempt)


# -- the running place of the execution ------------------------------------------------------------


def place_granted(run: RunState, _: PlaceGranted) -> None:
    """Let nodes start that have waited for the place."""
    if run.place == "wanted":
        run.change_place("held")


def idle_changed(run: RunState, message: IdleChanged) -> None:
    """Follow which tasks of a node wait for something that comes only after a while."""
    _follow_idle(run, message.attempt)


def _follow_idle(run: RunState, attempt: Attempt) -> None:
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
            _follow_idle(run, each.attempt)
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
