"""Changes of its own graph that an execution asks for while it runs, or that a person asks for in words.

From ``plan.requested`` on nothing starts and the execution does not end; what runs goes on. A model writes the
change meanwhile (``WriteChange``), and what has begun stays the same until its reply comes. The reply is made the
graph that is run by ``revisions``, where need be once a person has approved it, or refused: then the execution goes on,
or ends, as it would have without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from planwave.errors import GraphInvalid, NodeError, PermanentError, PlanwaveError
from planwave.events.plan_payloads import (
    MAX_REQUEST_CHARS,
    REPLAN,
    PlanRefusedData,
    PlanRequestedData,
)
from planwave.events.types import (
    NODE_EVENT,
    NODE_LOG,
    PLAN_REFUSED,
    PLAN_REQUESTED,
    NodeEventData,
)
from planwave.executor.messages import WriteChange

if TYPE_CHECKING:
    from planwave.events import Event
    from planwave.executor.driver.run_state import RunState
    from planwave.executor.recovery.history import History
    from planwave.executor.state import Attempt, GraphRun
    from planwave.graph.model import Json

_HOLD: Final = "planning"


def node_failed(run: RunState, graph_run: GraphRun, path: str) -> None:
    """Have a failure that no policy has handled ask for a change, if the options say so; else it stops the graph."""
    if graph_run is not run.root:
        return
    if run.options.replans_on_failure:
        run.planning.later.append({"change": 0, "by": "failure", "path": path})
        run.planning.is_due = True
        _request_if_due(run)  # at once: a failure without a request stops the run
    elif run.planning.open is None:
        run.root.stop()  # at once: what is answered in the same turn goes on no more


def take_request(run: RunState, attempt: Attempt, data: Json) -> NodeError | None:
    """Keep the change that a node asks for until it completes; return why it may ask for none."""
    if attempt.graph_run is not run.root:
        return _no_replan("graphs that run inside a step are never changed")
    if not run.options.replans_by_nodes:
        return _no_replan("the steps of this execution may ask for none")
    if attempt.replan is not None:
        return _no_replan("it has asked for one already")
    request = cast("dict[str, Json]", data).get("request") if isinstance(data, dict) else None
    if not isinstance(request, str) or not 0 < len(request.strip()) <= MAX_REQUEST_CHARS:
        return _no_replan(f'its data are {{"request"}}, 1 to {MAX_REQUEST_CHARS} characters')
    attempt.replan = request.strip()
    return None


def _no_replan(why: str) -> PermanentError:
    return PermanentError(
        f"the step cannot ask for a change of the plan: {why}",
        code="no-replan",
        hint="steps of an execution's own plan may, each once, with the option replan: {by_nodes: true}",
    )


def node_completed(run: RunState, attempt: Attempt, request: str) -> None:
    """Store what a node that completes asks for, so that it counts once however often the node was begun."""
    event: NodeEventData = {"event_type": REPLAN, "data": {"request": request}}
    run.emit(NODE_EVENT, event, attempt.path, attempt.number)
    asked: PlanRequestedData = {
        "change": 0, "by": "node", "path": attempt.path, "request": request,
    }  # fmt: skip
    run.planning.later.append(asked)
    run.planning.is_due = True


def follow(run: RunState) -> None:
    """Request the next change, if one is due; else let a failure stop the run.

    A failure comes first, since all failures are told in its words; what nodes want comes one by one. Its event
    comes after all that failed in the same turn: the model is told what came before the event, also after a crash.
    """
    _request_if_due(run)
    planning = run.planning
    if planning.open is None or not planning.is_new:
        return
    planning.is_new = False
    run.emit(PLAN_REQUESTED, planning.open)
    if planning.open["by"] == "failure":
        planning.later = [each for each in planning.later if each["by"] == "node"]
    _hold(run, planning.open)


def _request_if_due(run: RunState) -> None:
    planning = run.planning
    if planning.open is None and planning.is_due:
        planning.is_due = False  # until it is closed
        _request_next(run)


def _request_next(run: RunState) -> None:
    planning = run.planning
    later, planning.later = planning.later, []
    wanted = [each for each in later if each["by"] == "node"]
    asked = next((each for each in later if _is_unhandled(run, each)), None)
    if planning.own < planning.most and not run.root.is_stopped:
        asked = asked or (wanted.pop(0) if wanted else None)
        if asked is not None:
            planning.later = wanted
            planning.count, planning.own = planning.count + 1, planning.own + 1
            planning.open = {**asked, "change": planning.made + 1}
            planning.is_new = True
            return
    is_over = planning.own >= planning.most
    why = f"{planning.most} changes were asked for" if is_over else "a failure stops the run"
    for each in wanted:
        message = f"the plan is not changed any more: {why}"
        run.emit(NODE_LOG, {"message": message, "level": "warning"}, each.get("path"))
    run.root.stop()
    run.mark_changed(run.root)


def request_change(run: RunState, asked: PlanRequestedData) -> None:
    """Have a model write a change, and hold the execution until it is made or refused."""
    run.planning.count += 1
    run.emit(PLAN_REQUESTED, asked)
    _hold(run, asked)


def _is_unhandled(run: RunState, asked: PlanRequestedData) -> bool:
    return asked["by"] == "failure" and asked.get("path") in run.root.failures


def propose(run: RunState, asked: PlanRequestedData) -> None:
    """Hold the execution for a change that a person has made, and that waits for the approval of the plan."""
    run.emit(PLAN_REQUESTED, asked)
    run.planning.open = asked
    run.slots.close(_HOLD)


def _hold(run: RunState, asked: PlanRequestedData) -> None:
    run.planning.open = asked
    run.slots.close(_HOLD)
    run.effects.append(WriteChange(run.planning.count, asked))


def restore(run: RunState, history: History) -> None:
    """Take up the change that was being written, or waited for a person, when an earlier process ended."""
    planning = run.planning
    planning.count, planning.own = history.plan_requests, history.plan_own_requests
    planning.made = history.plan_changes
    if history.plan_request is None:
        return
    asked = history.plan_request.data
    if planning.request_id is None:
        _hold(run, asked)
    else:
        planning.open = asked
        run.slots.close(_HOLD)
    planning.later = [
        each for each in history.plan_asks if each["by"] == "node" or run.options.replans_on_failure
    ]


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
    """Let nodes start again, unless the next change is due."""
    run.planning.open = run.planning.request_id = None
    run.planning.is_due = True
    run.slots.reopen(_HOLD)
    run.mark_changed(run.root)


def events_until_request(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events of an execution up to the last request of a change.

    What came since is not shown to the model: asked again after a crash, it is asked the same then, and so is
    served its recorded replies.
    """
    for number in range(len(events), 0, -1):
        if events[number - 1].type == PLAN_REQUESTED.name:
            return events[:number]
    return events


def abandon(run: RunState, graph_run: GraphRun) -> None:
    """Drop the change that was requested, as the execution ends."""
    if graph_run is run.root:
        run.planning.open = run.planning.request_id = None
        run.planning.later, run.planning.is_new = [], False
