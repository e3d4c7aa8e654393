"""The budget of the execution: calls reserve amounts of it, wait for it, and are granted it.

A call that does not fit waits, and its node holds no slot meanwhile. The first calls in the queue that
fit go on when others end or a person raises the budget. Where only waiting calls are left, the
execution is paused with one request for more.

A call of the model that writes a change of the graph waits for others, too, but for no person: once nothing
is held that could be given back, it is refused, and so is the change.
"""

from __future__ import annotations

from typing import cast

from planwave.errors import Conflict
from planwave.events.budget import WALL_S, WARNED_AT
from planwave.events.types import EXECUTION_WARNED, WAITING
from planwave.executor.driver.commands import (
    close_out_of_time,
    record_pause,
    record_resume,
    unpark_node,
)
from planwave.executor.driver.endings import decide
from planwave.executor.driver.parking import ensure_active, return_outcome, update_activity
from planwave.executor.driver.run_state import BudgetCall, ChangeCall, RunBudget, RunState
from planwave.executor.driver.timeouts import EARLY_S
from planwave.executor.messages import BudgetReleased, BudgetReserved, BudgetTimer, Reply, SetTimer
from planwave.executor.requests import own_request
from planwave.executor.state import DONE


def begin(run: RunState, budget: RunBudget) -> None:
    """Take over the waits and the open request of an earlier process; start the clock."""
    history = run.history
    if history is not None:
        budget.stored_waits = dict(history.budget_waits)
    close_out_of_time(run, budget)


def reserve(run: RunState, message: BudgetReserved) -> None:
    """Let a call go on if it fits; else it waits."""
    attempt, budget = message.attempt, run.budget
    if attempt is None:
        if budget is not None:
            budget.change_waiting = message.reply, ChangeCall(message.amounts)
        return
    if attempt.phase is DONE or budget is None:
        error = attempt.ended_error() if attempt.phase is DONE else None
        run.effects.append(Reply(message.reply, error))
        return
    ensure_active(run, attempt)
    call = BudgetCall(attempt, message.amounts)
    if budget.fits(call.amounts):
        budget.held[message.reply] = call
        return_outcome(run, attempt, message.reply, None)
        return
    budget.waiting[message.reply] = call
    attempt.budget_waits += 1
    if not message.is_counted:
        attempt.has_other_tasks = True
    elif attempt.waits is None:
        attempt.waits = {message.reply}
    else:
        attempt.waits.add(message.reply)
    update_activity(run, attempt)


def release(run: RunState, message: BudgetReleased) -> None:
    """Free what a call held, or drop it from the queue."""
    budget, reply, attempt = run.budget, message.reply, message.attempt
    if budget is None:
        return
    budget.held.pop(reply, None)
    if attempt is None:
        if budget.change_waiting is not None and budget.change_waiting[0] == reply:
            budget.change_waiting = None
    elif budget.waiting.pop(reply, None) is not None and attempt.phase is not DONE:
        attempt.budget_waits -= 1
        ensure_active(run, attempt)
        update_activity(run, attempt)


def follow(run: RunState, budget: RunBudget) -> None:
    """At the end of a turn: grant what fits now, warn, and close a request that is not needed any more."""
    _grant_change(run, budget)
    if budget.waiting:
        _grant(run, budget)
    if budget.stored_waits and budget.budget.request_id is None and not budget.is_out_of_time:
        _execute_stored(run, budget)
    if (data := budget.due_warning(run.active_s)) is not None:
        run.emit(EXECUTION_WARNED, data)
    _start_timer(run, budget)
    request_id = budget.budget.request_id
    if request_id is not None and not budget.is_waited_for and not run.is_ending:
        run.requests.close(request_id, "cancelled")
        record_resume(run, "the budget suffices", {"request_id": request_id})
    decide(run)


def _grant_change(run: RunState, budget: RunBudget) -> None:
    """Let the call go on that writes a change, if it fits; refuse it where it never will."""
    if budget.change_waiting is None:
        return
    reply, call = budget.change_waiting
    if budget.fits(call.amounts):
        budget.change_waiting, budget.held[reply] = None, call
        run.effects.append(Reply(reply))
    elif budget.is_out_of_time or not budget.held:
        budget.change_waiting = None
        error = Conflict(
            "the rest of the budget does not suffice for a model to write it", code="budget-used"
        )
        run.effects.append(Reply(reply, error))


def _grant(run: RunState, budget: RunBudget) -> None:
    for reply, call in list(budget.waiting.items()):
        if not budget.fits(call.amounts):
            continue
        del budget.waiting[reply]
        budget.held[reply] = call
        attempt = call.attempt
        attempt.budget_waits -= 1
        unpark_node(run, attempt.path)
        return_outcome(run, attempt, reply, None)


def _execute_stored(run: RunState, budget: RunBudget) -> None:
    """Let the nodes go on that waited in a process that has ended: their calls reserve again."""
    waits, budget.stored_waits = budget.stored_waits, {}
    for path in waits:
        unpark_node(run, path)


def must_ask(run: RunState) -> bool:
    """Return whether the execution can go on only with a higher budget, and nobody is asked yet."""
    budget = run.budget
    return budget is not None and budget.is_waited_for and budget.budget.request_id is None


def ask(run: RunState) -> None:
    """Pause the execution with the request for a higher budget."""
    budget = cast("RunBudget", run.budget)
    request_id, request = f"r{run.seq + 1}", budget.request(run.active_s)
    run.requests.add(request_id, own_request(request, run.now.at))
    record_pause(run, WAITING, request={"request_id": request_id, "request": request})


# -- time ------------------------------------------------------------------------------------------


def time_passed(run: RunState, _: BudgetTimer) -> None:
    """Warn when the time in the budget is nearly used up; let nothing start when it is."""
    budget = run.budget
    if budget is None or run.is_ending:
        return
    decide(run)
    budget.has_timer = False
    if run.pause_reason is None:
        close_out_of_time(run, budget)


def _start_timer(run: RunState, budget: RunBudget) -> None:
    limit_s = budget.limits.get(WALL_S)
    is_passing = run.pause_reason is None and not budget.is_out_of_time
    if limit_s is None or budget.has_timer or not is_passing:
        return
    budget.has_timer = True
    due_s = limit_s if WALL_S in budget.budget.warned else WARNED_AT * limit_s
    left_s = max(due_s - run.active_s, EARLY_S)
    run.effects.append(SetTimer(BudgetTimer(), run.now.loop_s + left_s))
