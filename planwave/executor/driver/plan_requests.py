"""Changes of its own graph that an execution asks for while it runs.

From ``plan.requested`` on nothing starts and the execution does not end; what runs goes on. A model writes the
change meanwhile (``WriteChange``), and what has begun stays the same until its reply comes. The reply is made the
graph that is run by ``revisions``, where need be once a person has approved it, or refused: then the execution goes on,
or ends, as it would have without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from planwave.errors import Conflict, GraphInvalid, PlanwaveError
from planwave.events.plan_payloads import PlanRefusedData, PlanRequestedData
from planwave.events.types import PLAN_REFUSED, PLAN_REQUESTED
from planwave.executor.messages import WriteChange

if TYPE_CHECKING:
    from planwave.executor.driver.run_state import RunState
    from planwave.executor.recovery.history import History
    from planwave.executor.state import GraphRun

_HOLD: Final = "planning"


def node_failed(run: RunState, graph_run: GraphRun, path: str) -> None:
    """Request a change after a failure that no policy has handled; else stop the run, if its options say so."""
    planning = run.planning
    if graph_run is not run.root or not run.options.max_replans or graph_run.is_stopped:
        return
    asked: PlanRequestedData = {"change": planning.made + 1, "by": "failure", "path": path}
    if planning.open is None:
        _request(run, asked) if _may_request(run) else graph_run.stop()
    elif planning.requested_at < run.events[0].seq:  # else it is part of what is written just now
        planning.later.append(asked)


def _may_request(run: RunState) -> bool:
    return run.planning.count < run.options.max_replans


def _request(run: RunState, asked: PlanRequestedData) -> None:
    run.planning.count += 1
    run.emit(PLAN_REQUESTED, asked)
    _hold(run, asked)


def _is_spent(run: RunState) -> bool:
    """Return whether nothing is left of an amount of the budget of the execution."""
    budget = run.budget
    if budget is None:
        return False
    used = budget.used(run.active_s)
    return any(used[name] >= most for name, most in budget.limits.items())


def _hold(run: RunState, asked: PlanRequestedData) -> None:
    planning = run.planning
    planning.open, planning.requested_at = asked, run.seq
    run.slots.close(_HOLD)
    if _is_spent(run):
        refuse(run, Conflict("the budget of the execution is used up", code="budget-used"))
    else:
        run.effects.append(WriteChange(planning.count, asked))


def restore(run: RunState, history: History) -> None:
    """Take up the change that was being written, or waited for a person, when an earlier process ended."""
    planning = run.planning
    planning.count, planning.made = history.plan_requests, history.plan_changes
    if history.plan_request is None:
        return
    asked = history.plan_request.data
    if planning.request_id is None:
        _hold(run, asked)
        return
    planning.open, planning.requested_at = asked, run.seq
    planning.later = [
        {"change": asked["change"], "by": "failure", "path": each} for each in history.failed_since
    ]
    run.slots.close(_HOLD)


def refuse(run: RunState, error: PlanwaveError) -> None:
    """Go on without the change that was requested, or end as without it."""
    asked = run.planning.open
    if asked is None:
        return
    data: PlanRefusedData = {"change": asked["change"], "error": error.as_json()}
    if isinstance(error, GraphInvalid):
        data["diagnostics"] = [each.as_json() for each in error.diagnostics]
    run.emit(PLAN_REFUSED, data)
    close(run)


def close(run: RunState) -> None:
    """Let nodes start again; request the next change, for what has failed meanwhile."""
    planning = run.planning
    planning.open = planning.request_id = None
    run.slots.reopen(_HOLD)
    later, planning.later = planning.later, []
    asked = next((each for each in later if each.get("path") in run.root.failures), None)
    if asked is not None and _may_request(run) and not run.root.is_stopped:
        _request(run, {**asked, "change": planning.made + 1})
    else:
        run.root.stop()
    run.mark_changed(run.root)


def abandon(run: RunState, graph_run: GraphRun) -> None:
    """Drop the change that was requested, as the execution ends."""
    if graph_run is run.root:
        run.planning.open = run.planning.request_id = None
