"""A turn of the driver: messages in; new state, events and effects out; no clock, no task, no I/O.

``turn`` alone changes the state of an execution. Each message has one function, in the table at the end
of this module. The caller makes the events of a turn durable, has ``commit`` start the clocks that run
from then on, and performs the effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from planwave.events import Event
from planwave.events.types import (
    EXECUTION_CANCELLED,
    EXECUTION_COMPLETED,
    EXECUTION_FAILED,
    EXECUTION_STARTED,
    WAITING,
)
from planwave.executor.driver import (
    attempts,
    commands,
    endings,
    nested_runs,
    parking,
    reservations,
    revisions,
    timeouts,
)
from planwave.executor.driver.endings import begin_graph, decide, shape_of
from planwave.executor.driver.resume import resume_execution
from planwave.executor.driver.run_state import Now, RunState
from planwave.executor.messages import (
    AnswerChange,
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
    ChangeCallEnded,
    ChangeWritten,
    DeliverOutcome,
    Effect,
    ExecutionTimer,
    IdleChanged,
    IdleEnded,
    InterruptExecution,
    KeepOnceValue,
    LoadingEnded,
    Message,
    NestedRunAbandoned,
    NestedRunRequested,
    NodeActivityChanged,
    NodeEmitted,
    OnceValueMade,
    OutcomeTaken,
    PauseExecution,
    PlaceGranted,
    RequestChange,
    RequestTimer,
    ResultReused,
    ResumeExecution,
    RetryTimer,
    RevisePlan,
    StartAttempt,
    StartExecution,
)
from planwave.executor.recovery.history import is_paused_by_request
from planwave.executor.scheduling.types import RunOutcome
from planwave.executor.state import DONE


class Turn(NamedTuple):
    """What comes of a turn.

    Attributes:
        events: To be appended as one batch, all of one time.
        effects: To be performed, in order, once the events are durable; tasks are cancelled before.
    """

    events: list[Event]
    effects: list[Effect]


def turn(run: RunState, messages: Iterable[Message], now: Now) -> Turn:
    """Apply messages to the state, in order; then decide what follows, fill the slots, conclude.

    Messages about attempts that have ended change nothing.

    Args:
        run: The execution; ``StartExecution`` is its first message.
        messages: What was posted since the last turn.
        now: The time of the turn.
    """
    run.now = now
    for message in messages:
        FUNCTIONS[type(message)](run, message)
    decide(run)
    if run.budget is not None and not run.is_ending:
        reservations.follow(run, run.budget)
    if not run.is_stopping and run.place == "held":
        _fill_slots(run)
    parking.return_idle(run)
    _conclude(run)
    parking.follow_place(run)
    return Turn(run.drain_events(), run.drain_effects())


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
    elif run.planning.open is not None and run.planning.request_id is None:
        pass  # a model writes a change: nobody else is waited for
    elif run.requests or run.pause_reason is not None or reservations.must_ask(run):
        is_idle = run.slots.is_idle or run.waits_for_decision
        if run.pause_reason is None and is_idle:
            if reservations.must_ask(run) and run.planning.request_id is None:
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


def commit(run: RunState, effects: Sequence[Effect], now: Now) -> list[Effect]:
    """Apply what changes only once the events of a turn are durable.

    Args:
        run: The execution.
        effects: The effects of the turn.
        now: The time at which its events became durable.

    Returns:
        More effects, to be performed after these.
    """
    run.now = now
    for effect in effects:
        if isinstance(effect, StartAttempt):
            if effect.attempt.phase is not DONE:
                attempts.begin(run, effect.attempt)
        elif isinstance(effect, DeliverOutcome):
            nested_runs.delivered(run, effect)
        elif isinstance(effect, KeepOnceValue):
            effect.node_run.once_values[effect.key] = effect.value
    return run.drain_effects()


# -- messages about the whole execution ------------------------------------------------------------


def _start(run: RunState, message: StartExecution) -> None:
    run.began_s = run.now.loop_s
    timeouts.start_execution_timer(run)
    if is_paused_by_request(run.pause_reason):
        run.slots.close()
    if run.pause_reason is not None:
        run.paused_since = run.now.loop_s
    if run.budget is not None:
        reservations.begin(run, run.budget)
    if message.is_recovery:
        commands.record_resume(run, "recovery")
    if run.history is not None and run.history.is_started:
        resume_execution(run, run.history)
        return
    run.emit(EXECUTION_STARTED, shape_of(run.root))
    if message.approval is not None:
        commands.ask_for_approval(run, message.approval)
    else:
        begin_graph(run, run.root)


def _interrupt(run: RunState, _: InterruptExecution) -> None:
    run.is_stopping = True


def _bytes_stored(run: RunState, message: BytesStored) -> None:
    if run.limits is not None:
        run.limits.add_stored(message.size)


FUNCTIONS: Final[Mapping[type[Message], Callable[..., None]]] = {
    StartExecution: _start,
    InterruptExecution: _interrupt,
    AttemptSucceeded: attempts.succeeded,
    AttemptSuspended: attempts.suspended,
    AttemptFailed: attempts.raised,
    ResultReused: attempts.reused,
    NodeEmitted: attempts.emitted,
    OnceValueMade: attempts.store_once_value,
    NestedRunRequested: nested_runs.open_nested_run,
    NestedRunAbandoned: nested_runs.abandon_nested_run,
    NodeActivityChanged: nested_runs.activity_changed,
    OutcomeTaken: nested_runs.outcome_taken,
    BudgetReserved: reservations.reserve,
    BudgetReleased: reservations.release,
    BytesStored: _bytes_stored,
    CancelExecution: commands.cancel_execution,
    CancelNode: commands.cancel_node,
    PauseExecution: commands.pause,
    ResumeExecution: commands.resume,
    AnswerRequest: commands.answer,
    AnswerChange: revisions.answer_change,
    RevisePlan: revisions.revise,
    RequestChange: revisions.request_change,
    ChangeCallEnded: revisions.change_call_ended,
    ChangeWritten: revisions.change_written,
    PlaceGranted: parking.place_granted,
    IdleChanged: parking.idle_changed,
    IdleEnded: parking.idle_ended,
    LoadingEnded: timeouts.loading_ended,
    BudgetTimer: reservations.time_passed,
    RetryTimer: attempts.retry,
    AttemptTimer: attempts.timed_out,
    RequestTimer: commands.request_expired,
    ExecutionTimer: endings.execution_timed_out,
}
"""The function of each message."""
