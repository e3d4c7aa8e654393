"""The reducer: messages in, new state, events and effects out; no clock, no task, no I/O.

One turn of the driver is: ``reduce`` for each message in the mailbox, then ``finish_turn``. The caller
makes ``run.events`` durable, performs ``run.effects``, and calls ``commit`` for those that change state
once they are durable.
"""

from __future__ import annotations

from typing import assert_never

from planwave.events.types import (
    EXECUTION_CANCELLED,
    EXECUTION_COMPLETED,
    EXECUTION_FAILED,
    EXECUTION_STARTED,
    WAITING,
    StartedData,
)
from planwave.executor.driver import (
    attempts,
    commands,
    nested_runs,
    parking,
    reservations,
    timeouts,
)
from planwave.executor.driver.progress import begin_graph, decide
from planwave.executor.driver.resume import resume_execution
from planwave.executor.driver.run_state import Now, RunState
from planwave.executor.messages import (
    AnswerRequest,
    AttemptFailed,
    AttemptSucceeded,
    AttemptSuspended,
    AttemptTimer,
    BudgetReleased,
    BudgetReserved,
    BudgetTimer,
    BytesStored,
    CancelExecution,
    CancelNode,
    DeliverOutcome,
    ExecutionTimer,
    IdleChanged,
    IdleEnded,
    KeepOnceValue,
    Message,
    NestedRunAbandoned,
    NestedRunRequested,
    NodeActivityChanged,
    NodeEmitted,
    OnceValueMade,
    PauseExecution,
    PlaceGranted,
    RequestTimer,
    ResultReused,
    ResumeExecution,
    RetryTimer,
    StartAttempt,
    Timer,
    TimerFired,
)
from planwave.executor.recovery.history import is_paused_by_request
from planwave.executor.scheduling.decisions import RunOutcome
from planwave.graph.model import Json


def begin(
    run: RunState, now: Now, *, is_recovery: bool = False, approval: Json | None = None
) -> None:
    """Start an execution, or resume it where its stored events end.

    Args:
        run: The execution.
        now: The time.
        is_recovery: Whether an earlier process left it running.
        approval: The request that is to be answered before anything starts.
    """
    run.now = now
    run.began_s = now.loop_s
    timeouts.start_execution_timer(run)
    if is_paused_by_request(run.pause_reason):
        run.slots.close()
    if run.pause_reason is not None:
        run.paused_since = now.loop_s
    if run.budget is not None:
        reservations.begin(run, run.budget)
    if is_recovery:
        commands.record_resume(run, "recovery")
    if run.history is not None and run.history.is_started:
        resume_execution(run, run.history)
        return
    schedule, topology = run.root.schedule, run.root.program.topology
    data: StartedData = {"waves": schedule.waves.total}
    if True in topology.linked:
        data["linked"] = [i for i, on in zip(topology.ids, topology.linked, strict=True) if on]
    if unreached := schedule.not_reached:
        data["not_reached"] = [topology.ids[n] for n in unreached]
    run.emit(EXECUTION_STARTED, data)
    if approval is not None:
        commands.ask_for_approval(run, approval)
    else:
        begin_graph(run, run.root)


def reduce(run: RunState, message: Message, now: Now) -> None:  # noqa: C901 - one case a message
    """Apply one message to the state; messages about attempts that have ended change nothing."""
    run.now = now
    match message:
        case AttemptSucceeded():
            attempts.succeeded(run, message)
        case AttemptSuspended(attempt, suspension):
            attempts.suspended(run, attempt, suspension)
        case AttemptFailed():
            attempts.raised(run, message)
        case ResultReused():
            attempts.reused(run, message)
        case NodeEmitted():
            attempts.emitted(run, message)
        case OnceValueMade():
            attempts.store_once_value(run, message)
        case BytesStored(size):
            if run.limits is not None:
                run.limits.add_stored(size)
        case NestedRunRequested():
            nested_runs.open_nested_run(run, message)
        case NestedRunAbandoned():
            nested_runs.abandon_nested_run(run, message)
        case NodeActivityChanged(attempt):
            nested_runs.activity_changed(run, attempt)
        case BudgetReserved():
            reservations.reserve(run, message)
        case BudgetReleased():
            reservations.release(run, message)
        case CancelExecution():
            commands.cancel_execution(run, message)
        case CancelNode() | PauseExecution() | ResumeExecution() | AnswerRequest():
            commands.apply_command(run, message)
        case TimerFired(timer):
            _timer_fired(run, timer)
        case PlaceGranted():
            if run.place == "wanted":
                run.change_place("held")
        case IdleChanged(attempt):
            parking.idle_changed(run, attempt)
        case IdleEnded():
            parking.idle_ended(run, message)
        case _:
            assert_never(message)


def _timer_fired(run: RunState, timer: Timer) -> None:
    match timer:
        case BudgetTimer():
            reservations.time_passed(run)
        case RetryTimer(attempt):
            attempts.retry(run, attempt)
        case AttemptTimer(attempt):
            attempts.timed_out(run, attempt)
        case RequestTimer(request_id):
            commands.request_expired(run, request_id)
        case ExecutionTimer():
            timeouts.execution_timed_out(run, timer)
        case _:
            assert_never(timer)


def finish_turn(run: RunState) -> None:
    """End a turn: decide what follows from its facts, fill the slots, conclude."""
    decide(run)
    if run.budget is not None and not run.is_ending:
        reservations.follow(run, run.budget)
    if not run.is_stopping and run.place == "held":
        _fill_slots(run)
    parking.return_idle(run)
    _conclude(run)
    parking.follow_place(run)


def _fill_slots(run: RunState) -> None:
    if run.slots.has_returns:
        run.effects += run.slots.grant_returns()
    while (attempt := run.slots.next_start()) is not None:
        if attempts.started(run, attempt):
            run.effects.append(StartAttempt(attempt))


def _conclude(run: RunState) -> None:
    """Emit the end of the execution, or a change between paused and running, if due."""
    if run.pending_outcome is not None:
        _end(run, run.pending_outcome)
    elif run.requests or run.pause_reason is not None or reservations.must_ask(run):
        is_idle = run.slots.is_idle or run.is_out_of_time
        if run.pause_reason is None and is_idle:
            if reservations.must_ask(run):
                reservations.ask(run)
            else:
                commands.record_pause(run, WAITING)
        elif run.pause_reason == WAITING and not is_idle:
            commands.record_resume(run, "nothing is waited for any more")


def _end(run: RunState, outcome: RunOutcome) -> None:
    root = run.root
    outcome = outcome if run.error is None else "failed"
    if outcome == "completed":
        failures = root.handled_failures
        run.emit(EXECUTION_COMPLETED, {"handled_failures": failures} if failures else {})
    elif outcome == "failed":
        run.error = run.error or root.first_failure()
        run.emit(EXECUTION_FAILED, {"error": run.error, "failures": list(root.failures)})
    else:
        run.emit(EXECUTION_CANCELLED, {"cause": run.cancel_cause})
    run.outcome = outcome


def commit(run: RunState, effect: StartAttempt | DeliverOutcome | KeepOnceValue, now: Now) -> None:
    """Apply what changes only once the events of a turn are durable."""
    run.now = now
    match effect:
        case StartAttempt(attempt):
            attempts.begin(run, attempt)
        case DeliverOutcome():
            nested_runs.delivered(run, effect)
        case KeepOnceValue(node_run, key, value):
            node_run.once_values[key] = value
        case _:
            assert_never(effect)
