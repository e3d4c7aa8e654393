"""Changes of the graph of an execution while it runs or waits.

A change makes a new run of the changed graph, brought by the stored events to where the run before it was: just as
another process would take it up. So an execution goes on the same way whether its process ends after a change or
not. Attempts in flight stay, with their tasks, and belong to the new run; what links have opened for them is closed
once their tasks have ended.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import cast

from planwave.errors import Conflict, GraphInvalid, InvalidTransition, PlanwaveError
from planwave.events import Event, ExecutionState, fold
from planwave.events.plan_changes import NO_GRAPH
from planwave.events.plan_payloads import PlanRequestedData, PlanRevisedData
from planwave.events.request_text import is_about_running, is_approved, rejection_text
from planwave.events.types import (
    PLAN_REVISED,
    REQUESTED,
    USAGE,
    WAITING,
    WAVE_COMPLETED,
    PausedData,
    ResumedData,
)
from planwave.executor.driver import plan_requests
from planwave.executor.driver.commands import (
    record_pause,
    record_resume,
    replied,
    require_not_ending,
)
from planwave.executor.driver.endings import emit_not_run, release_idle, shape_of
from planwave.executor.driver.run_state import RunState
from planwave.executor.messages import (
    AnswerChange,
    ChangeCallEnded,
    ChangeWritten,
    CloseLinks,
    RequestChange,
    RevisePlan,
)
from planwave.executor.recovery.history import History, is_paused_by_request
from planwave.executor.recovery.replay import replay
from planwave.executor.requests import ANSWERED, OWN_PATH, PendingRequests, own_request
from planwave.executor.scheduling.types import Cause, Decisions, NodeStatus, NotRun
from planwave.executor.state import DONE, GraphRun
from planwave.graph.editing.revision import FROZEN_NODE, revision_findings
from planwave.graph.model import Json
from planwave.graph.plan import graph_hash
from planwave.graph.reading.documents import read_graph

_NO_CAUSE = Cause(None, "")


@replied
def revise(run: RunState, command: RevisePlan) -> None:
    """Change the graph that is run, as a person wants it; see ``_revise``.

    The request for approval of another change is closed then: that was written for the graph before.

    Raises:
        Conflict: ``change-requested``: a change is being written already.
    """
    require_not_ending(run)
    request_id = run.planning.request_id
    _require_none_written(run)
    _require_approved(run)
    if command.request is not None:
        _propose(run, command)
        return
    _revise(run, command)
    if request_id is not None:
        run.requests.close(request_id, "cancelled")
        _end_question(run, "the plan was changed otherwise", {"request_id": request_id})
        plan_requests.close(run)


@replied
def request_change(run: RunState, command: RequestChange) -> None:
    """Have a model write the change that a person asks for; what waits for answers runs meanwhile.

    Raises:
        Conflict: ``change-requested``, ``approval-open``: there is another change; ``plan-changed``; ``paused``.
    """
    # All that came before is decided then: replay of the request depends on it.
    require_not_ending(run)
    _require_none_written(run)
    _require_none_asked(run)
    _require_approved(run)
    if run.planning.made + 1 != command.asked["change"]:
        raise plan_changed()
    if is_paused_by_request(run.pause_reason):
        raise paused(run.execution_id)
    if run.pause_reason is not None:
        record_resume(run, "a change of the plan is being written")
    plan_requests.request_change(run, command.asked)


def change_call_ended(run: RunState, message: ChangeCallEnded) -> None:
    """Count what a call of the model that writes a change has used; what it reserved is given back after this."""
    run.emit(USAGE, message.usage, None, message.number)


def change_written(run: RunState, message: ChangeWritten) -> None:
    """Make the change that a model wrote, if the graph can become that, or ask a person first; else refuse it."""
    if run.planning.open is None or message.number != run.planning.count:
        return
    _make_or_refuse(run, message.revision, message.error, message.request)


def _make_or_refuse(
    run: RunState, revision: RevisePlan | None, error: PlanwaveError | None, request: Json = None
) -> None:
    """Make a change that was requested, or ask a person first; refuse one that cannot be."""
    try:
        require_not_ending(run)
        if revision is not None and request is not None:
            _require_possible(run, revision, fold([*revision.stored, *run.events]))
            _ask(run, request)
            return
        if revision is not None:
            _revise(run, revision)
    except PlanwaveError as refusal:
        error = refusal
    if error is not None:
        plan_requests.refuse(run, error)
    else:
        plan_requests.close(run)


# -- changes that a person decides about -----------------------------------------------------------


def _propose(run: RunState, command: RevisePlan) -> None:
    """Ask a person about the change of another person, as the plan needs an approval.

    Raises:
        Conflict: ``approval-open``: a person decides about another change; ``plan-changed``.
        GraphInvalid: The graph cannot become that one.
    """
    _require_none_asked(run)
    state = fold([*command.stored, *run.events])
    change, note = command.data["change"], command.data.get("note")
    _require_present(command, state)
    _require_possible(run, command, state)
    asked: PlanRequestedData = {"change": change, "by": "person"}
    plan_requests.propose(run, {**asked, "request": note} if note else asked)
    _ask(run, command.request)


def _ask(run: RunState, request: Json) -> None:
    """Pause with the request for approval of a change; what runs goes on, and nothing starts before the answer."""
    request_id = run.planning.request_id = f"r{run.seq + 1}"
    run.requests.add(request_id, own_request(request, run.now.at))
    asked: PausedData = {"request_id": request_id, "request": request}
    record_pause(run, run.pause_reason or WAITING, request=asked)


@replied
def answer_change(run: RunState, command: AnswerChange) -> None:
    """Make the change that a person has approved, in one batch with the answer; else refuse it.

    Raises:
        Conflict, Gone: ``request-answered``, ``request-closed``: something else came first.
    """
    require_not_ending(run)
    if run.requests.close(command.request_id) is None:
        raise run.requests.refusal_error(command.request_id)
    data: ResumedData = {"request_id": command.request_id, "answer": command.answer}
    if command.answered_by is not None:
        data["answered_by"] = command.answered_by
    _end_question(run, ANSWERED, data)
    if is_approved(command.answer):
        _make_or_refuse(run, command.revision, command.error)
    else:
        plan_requests.refuse(run, Conflict(rejection_text(command.answer), code="change-rejected"))


def _end_question(run: RunState, reason: str, data: ResumedData) -> None:
    """Go on from the request for approval of a change; a person's pause holds."""
    was_paused = run.pause_reason == REQUESTED
    record_resume(run, reason, data)
    if was_paused:
        record_pause(run, REQUESTED)


# -- the change itself -----------------------------------------------------------------------------


def _revise(run: RunState, command: RevisePlan) -> None:
    """Change the graph that is run.

    Raises:
        Conflict: ``plan-changed``: another change came first, or it was made for another graph.
        GraphInvalid: The graph cannot become that one; its findings say why.
    """
    events = [*command.stored, *run.events]
    state = fold(events)
    _require_present(command, state)
    begun = _require_possible(run, command, state)
    begun_waves, floor = state.waves.begun - state.waves.done, state.waves.floor
    data: PlanRevisedData = {**command.data, "floor": floor}
    event = Event(
        run.execution_id, run.seq + 1, run.now.at, PLAN_REVISED.name, None, None,
        cast("Mapping[str, Json]", data),
    )  # fmt: skip
    state.apply(event)
    following = command.create(floors=state.waves.floors)
    own_events = History([*events, event]).take_own_events()
    try:
        unfinished = replay(following, own_events, PendingRequests(), run.now.at)
    except InvalidTransition as error:
        message = f"what has begun does not fit the changed graph: {error.message}"
        raise Conflict(message, code=FROZEN_NODE) from error
    run.emit(PLAN_REVISED, {**data, **shape_of(following)})
    run.planning.made += 1
    _replace_root(run, following, begun)
    for attempt in unfinished.ready:
        if following.attempts.get(attempt.node) is attempt:
            run.slots.enqueue(attempt)
    _tell_decisions(run, following, begun, begun_waves)
    if unneeded := following.schedule.unneeded():
        release_idle(run, following, unneeded)
    run.mark_changed(following)


def plan_changed() -> Conflict:
    """Return the error of a change that was made for another graph than the one that is run."""
    return Conflict(
        "the plan of the execution was changed meanwhile",
        code="plan-changed",
        hint="read the execution again, and make the change for what it runs now",
    )


def _require_present(command: RevisePlan, state: ExecutionState) -> None:
    """Raise if a change is not the next one, or was made for another graph than the one that is run.

    Raises:
        Conflict: ``plan-changed``.
    """
    present = graph_hash(read_graph(state.graph or NO_GRAPH)[0])
    if (command.data["change"], command.data["base"]) != (len(state.changes) + 1, present):
        raise plan_changed()


def change_requested() -> Conflict:
    """Return the error of a change that comes while a model writes another one."""
    return Conflict(
        "a change of the plan is being written",
        code="change-requested",
        hint="wait until it is made or refused, or cancel the execution",
    )


def approval_open(request_id: str) -> Conflict:
    """Return the error of a change that comes while a person is asked about another one."""
    return Conflict(
        "a person has to decide about another change of the plan first",
        code="approval-open",
        hint=f"answer request {request_id}",
    )


def paused(execution_id: str) -> Conflict:
    """Return the error of words for an execution of which nothing goes on before a person says so."""
    return Conflict(
        f"execution {execution_id} is paused, so no model writes a change of it",
        code="paused",
        hint="resume it: nothing starts while the change is written; or have the change proposed only",
    )


def _require_none_written(run: RunState) -> None:
    if run.planning.open is not None and run.planning.request_id is None:
        raise change_requested()


def _require_none_asked(run: RunState) -> None:
    if (request_id := run.planning.request_id) is not None:
        raise approval_open(request_id)


def _require_approved(run: RunState) -> None:
    for request_id, each in run.requests:
        if each.path == OWN_PATH and not is_about_running(each.suspension.request):
            raise Conflict(
                "a person has to decide about the plan first",
                code="approval-open",
                hint=f"answer request {request_id}, with a changed plan if need be",
            )


def _require_possible(run: RunState, command: RevisePlan, state: ExecutionState) -> frozenset[str]:
    """Return the ids of the nodes that have begun.

    Raises:
        GraphInvalid: The graph cannot become that of the command.
    """
    program = run.root.program
    progress = state.changes.progress(state.nodes, program.graph)
    graph, catalogue = program.graph, program.catalogue
    if findings := revision_findings(graph, command.graph, progress, catalogue):
        raise GraphInvalid(findings)
    return frozenset(progress.begun)


def _replace_root(run: RunState, following: GraphRun, begun: Collection[str]) -> None:
    """Let the run of the changed graph take the place of the one before, with the attempts of what has begun."""
    before, index = run.root, following.program.topology.index
    ids = before.program.topology.ids
    for node, attempt in before.attempts.items():
        if ids[node] in begun:
            attempt.graph_run, attempt.node = following, index[ids[node]]
            following.attempts[attempt.node] = attempt
        else:
            attempt.phase = DONE  # it was only queued
    for _, request in run.requests:
        waiting = request.attempt
        if waiting is not None and waiting.graph_run is before:
            waiting.graph_run, waiting.node = following, index[ids[waiting.node]]
    users = tuple(each for each in before.attempts.values() if each.task is not None)
    run.effects.append(CloseLinks(before, users))
    before.attempts.clear()
    following.parent_runs = before.parent_runs
    following.highest_attempt = max(before.highest_attempt, following.highest_attempt)
    run.changed.pop(before, None)
    run.root = following


def _tell_decisions(
    run: RunState, following: GraphRun, begun: Collection[str], begun_waves: Collection[int]
) -> None:
    """Emit what the schedule has decided about nodes that had not begun, and which waves are over."""
    schedule, topology = following.schedule, following.program.topology
    not_run: dict[NodeStatus, list[NotRun]] = {}
    for node, status in enumerate(schedule.status):
        if not topology.linked[node] and topology.ids[node] not in begun:
            not_run.setdefault(status, []).append((node, schedule.cause.get(node, _NO_CAUSE)))
    skipped, blocked, cancelled = (
        not_run.get(each, ())
        for each in (NodeStatus.SKIPPED, NodeStatus.BLOCKED, NodeStatus.CANCELLED)
    )
    emit_not_run(run, following, Decisions((), skipped, blocked, cancelled, (), None, paused=False))
    for wave in sorted(begun_waves):
        if wave <= schedule.waves.total and schedule.waves.is_over(wave):
            run.emit(WAVE_COMPLETED, {"wave": wave}, following.path)
