"""Commands to a running execution: cancel, pause and resume it, answer its requests.

The order in the mailbox decides every race: of a cancel and the last result, or of two answers, the
first in the mailbox holds. The caller gets the reply once the command is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TypeVar, cast

from planwave.errors import Conflict, PermanentError, PlanwaveError
from planwave.events.budget import WALL_S, is_raised, stop_cause
from planwave.events.paths import ancestor_paths, path_prefix
from planwave.events.request_text import (
    end_of_timer,
    is_approved,
    is_budget_request,
    is_timer,
    refusal_cause,
)
from planwave.events.types import (
    EXECUTION_PAUSED,
    EXECUTION_RESUMED,
    NODE_ANSWERED,
    NODE_CANCELLED,
    NODE_UNPARKED,
    PAUSE_REASONS,
    REQUESTED,
    WAITING,
    EventType,
    NodeAnsweredData,
    PausedData,
    PauseKind,
    PayloadT,
    ResumedData,
)
from planwave.executor.driver.attempts import failed, reenter_interrupted, succeeded
from planwave.executor.driver.endings import (
    begin_graph,
    cancel_graph_run,
    cancel_nested_runs,
    cancel_request,
    cancel_stored,
    cancelled_data,
    decide,
    end_attempt,
    record_stored,
)
from planwave.executor.driver.parking import mark_active, unpark
from planwave.executor.driver.run_state import RunBudget, RunState
from planwave.executor.driver.timeouts import EARLY_S
from planwave.executor.messages import (
    AnswerRequest,
    AttemptSucceeded,
    CancelExecution,
    CancelNode,
    CancelTask,
    CancelTimer,
    Command,
    PauseExecution,
    Reply,
    RequestTimer,
    ResumeExecution,
)
from planwave.executor.program import BoundNode
from planwave.executor.recovery.history import is_paused_by_request
from planwave.executor.recovery.replay import continue_with, reenter
from planwave.executor.requests import ANSWERED, OWN_PATH, own_request
from planwave.executor.state import PARKED, QUEUED, Attempt
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json
from planwave.graph.ports import has_output
from planwave.graph.protocols import ExecutionResult
from planwave.principals import PrincipalDocument

CommandT = TypeVar("CommandT", bound=Command)


def replied(apply: Callable[[RunState, CommandT], None]) -> Callable[[RunState, CommandT], None]:
    """Have the caller of a command get a reply, which says whether the command was refused."""

    @wraps(apply)
    def applied(run: RunState, command: CommandT) -> None:
        refusal: PlanwaveError | None = None
        try:
            apply(run, command)
        except PlanwaveError as error:
            refusal = error
        if command.reply is not None:
            run.effects.append(Reply(command.reply, refusal))

    return applied


# -- the whole execution ---------------------------------------------------------------------------


def cancel_execution(run: RunState, message: CancelExecution) -> None:
    """Cancel everything that has not ended."""
    decide(run)  # apply earlier messages first
    if not run.is_ending:
        run.cancel_cause = message.cause
        cancel_graph_run(run, run.root, message.cause)


@replied
def pause(run: RunState, command: PauseExecution) -> None:
    """Start no more nodes; running nodes finish."""
    require_not_ending(run)
    if run.pause_reason != REQUESTED:
        run.slots.close()
        record_pause(run, REQUESTED, command.reason)


def record_pause(
    run: RunState, kind: PauseKind, reason: str | None = None, request: PausedData | None = None
) -> None:
    """Emit that the execution is paused, how, and why; with the request it makes itself."""
    run.pause_reason = kind
    if run.paused_since is None:
        run.paused_since = run.now.loop_s
    data: PausedData = {"reason": reason or PAUSE_REASONS[kind], "kind": kind}
    run.emit(EXECUTION_PAUSED, data if request is None else {**data, **request})


@replied
def resume(run: RunState, command: ResumeExecution) -> None:
    """Go on after a pause.

    Raises:
        Conflict: ``not-paused``: only an answer helps, or nothing is paused.
    """
    require_not_ending(run)
    if not is_paused_by_request(run.pause_reason):
        raise not_paused((each, pending.suspension.request) for each, pending in run.requests)
    record_resume(run, command.reason)
    if not run.is_out_of_time:
        run.slots.reopen()


def not_paused(requests: Iterable[tuple[str, Json]]) -> Conflict:
    """Return the error of a resume that only an answer can bring about, or that is not needed.

    Args:
        requests: The open requests by id, oldest first.
    """
    code = "not-paused"
    request_id, request = next(iter(requests), (None, None))
    if request_id is None:
        return Conflict("the execution is not paused", code=code)
    hint = f"answer request {request_id}"
    if is_timer(request):
        return Conflict(f"it waits for a timer until {end_of_timer(request)}", code=code, hint=hint)
    return Conflict(f"it waits for an answer to {request_id}", code=code, hint=hint)


def record_resume(run: RunState, reason: str, answered: ResumedData | None = None) -> None:
    """Emit that the execution is no longer paused, and why; with the answer to its own request."""
    run.pause_reason = None
    if run.paused_since is not None:
        run.paused_s += run.now.loop_s - run.paused_since
        run.paused_since = None
    data: ResumedData = {"reason": reason, "epoch": run.epoch}
    run.emit(EXECUTION_RESUMED, data if answered is None else {**data, **answered})


def require_not_ending(run: RunState) -> None:
    """Apply what has been decided before; raise if the execution has just ended.

    Raises:
        Conflict: It has.
    """
    decide(run)
    if run.is_ending:
        raise Conflict("the execution has just ended")


# -- one node --------------------------------------------------------------------------------------


@replied
def cancel_node(run: RunState, command: CancelNode) -> None:
    """Cancel one node; nodes that depend on it are blocked.

    Raises:
        Conflict: ``not-running``: it neither runs nor waits.
    """
    path, cause = command.path, command.cause
    require_not_ending(run)
    request = cancel_request(run, path)
    if request is not None and request.attempt is None:
        _record_stored(run, NODE_CANCELLED, {"cause": cause}, path, request.attempt_number)
        return
    attempt = request.attempt if request is not None else _active_attempt(run, path)
    if attempt is None and _cancel_stored_parked(run, path, cause):
        return
    if attempt is None:
        raise Conflict(
            f"node {path!r} neither runs nor waits",
            code="not-running",
            hint="cancel the whole execution, or wait until the node has started",
        )
    graph_run, node = attempt.graph_run, attempt.node
    if request is None:
        end_attempt(run, attempt)
        run.effects.append(CancelTask(attempt))
    else:
        cancel_nested_runs(run, attempt, cause)
        attempt.close()
    if not graph_run.schedule.is_unneeded(node):
        graph_run.record_cancelled(path, cause)
    run.emit(NODE_CANCELLED, cancelled_data(run, cause, attempt), path, attempt.number)
    run.mark_changed(graph_run)
    graph_run.schedule.cancelled(node, cause)
    mark_active(graph_run)
    _unpark_around(run, path)


def _cancel_stored_parked(run: RunState, path: str, cause: str) -> bool:
    """Cancel a parked node of a stored nested run; return False for others."""
    number = None if run.history is None else run.history.nested_runs.parked_attempt(path)
    if number is None:
        return False
    cancel_stored(run, path, cause)
    _record_stored(run, NODE_CANCELLED, {"cause": cause}, path, number)
    return True


def _active_attempt(run: RunState, path: str) -> Attempt | None:
    prefix = path_prefix(path)
    graph_run = run.graph_run_at(prefix)
    node = None if graph_run is None else graph_run.program.topology.index.get(path[len(prefix) :])
    return None if graph_run is None or node is None else graph_run.attempts.get(node)


# -- parked nodes ----------------------------------------------------------------------------------


def _unpark_around(run: RunState, path: str) -> None:
    """Let every parked node around a nested node go on, the outermost first.

    Args:
        run: The execution.
        path: The nested node that was answered or cancelled.
    """
    for around in ancestor_paths(path):
        _unpark(run, around)


def unpark_node(run: RunState, path: str) -> None:
    """Let a parked node go on, and every parked node around it before."""
    _unpark_around(run, path)
    _unpark(run, path)


def _unpark(run: RunState, path: str) -> None:
    prefix = path_prefix(path)
    graph_run = run.graph_run_at(prefix)
    if graph_run is None:
        _unpark_stored(run, path)
        return
    attempt = graph_run.attempts.get(graph_run.program.topology.index[path[len(prefix) :]])
    if attempt is None or attempt.phase is not PARKED:
        return
    if attempt.task is not None:
        unpark(run, attempt)
    else:
        _execute_again(run, attempt)


def _execute_again(run: RunState, attempt: Attempt) -> None:
    """Queue a parked node whose task ended with its process, to be executed from the top."""
    run.emit(NODE_UNPARKED, {}, attempt.path, attempt.number)
    attempt.graph_run.schedule.answered(attempt.node)
    mark_active(attempt.graph_run)
    if attempt.replayable:
        attempt.phase = QUEUED
        run.slots.enqueue(attempt)
    else:
        reenter_interrupted(run, attempt)


def _unpark_stored(run: RunState, path: str) -> None:
    number = None if run.history is None else run.history.nested_runs.parked_attempt(path)
    if number is not None:
        record_stored(run, NODE_UNPARKED, {}, path, number)


# -- requests --------------------------------------------------------------------------------------


@replied
def answer(run: RunState, command: AnswerRequest) -> None:
    """Resume a waiting node, or the execution, with a person's answer; see ``_answer``."""
    decide(run)
    _answer(run, command.request_id, command.answer, answered_by=command.answered_by)


def request_expired(run: RunState, timer: RequestTimer) -> None:
    """Answer an expired request with its timeout answer."""
    request_id = timer.request_id
    decide(run)  # an earlier message may have closed the request
    if request_id in run.requests and run.requests.claim(request_id):
        timeout_answer = run.requests.by_id[request_id].suspension.timeout_answer
        _answer(run, request_id, timeout_answer, "timeout")


def _answer(
    run: RunState,
    request_id: str,
    answer: Json,
    by: str = ANSWERED,
    answered_by: PrincipalDocument | None = None,
) -> None:
    """Resume a waiting node with an answer.

    Raises:
        Conflict, Gone: ``request-answered``, ``request-closed``: something else came first.
    """
    request = run.requests.close(request_id, by)
    if request is None:
        raise run.requests.refusal_error(request_id)
    if request.path == OWN_PATH:
        event_data: ResumedData = {"request_id": request_id, "answer": answer}
        if answered_by is not None:
            event_data["answered_by"] = answered_by
        if run.budget is not None and is_budget_request(request.suspension.request):
            _decide_on_budget(run, run.budget, event_data, answer)
        else:
            _decide_on_plan(run, event_data, answer)
        return
    run.effects.append(CancelTimer(RequestTimer(request_id)))
    if run.pause_reason == WAITING and not run.waits_for_decision:
        record_resume(run, "answered")
    data: NodeAnsweredData = {"request_id": request_id, "answer": answer}
    if by != ANSWERED:
        data["by"] = by
    if answered_by is not None:
        data["answered_by"] = answered_by
    waiting = request.attempt
    if waiting is None:
        _record_stored(run, NODE_ANSWERED, data, request.path, request.attempt_number)
        return
    run.emit(NODE_ANSWERED, data, waiting.path, waiting.number)
    waiting.graph_run.schedule.answered(waiting.node)
    mark_active(waiting.graph_run)
    _unpark_around(run, waiting.path)
    following = (
        reenter(waiting)
        if request.is_interrupted
        else continue_with(waiting, request.suspension.state, answer)
    )
    waiting.graph_run.attempts[waiting.node] = following
    if request.is_interrupted:
        apply_decision(run, following, answer)
    else:
        run.slots.enqueue(following)


def ask_for_approval(run: RunState, request: Json) -> None:
    """Open the request for approval of the plan; nothing starts before its answer."""
    request_id = f"r{run.seq + 1}"
    run.requests.add(request_id, own_request(request, run.now.at))
    record_pause(run, WAITING, request={"request_id": request_id, "request": request})


def _decide_on_plan(run: RunState, event_data: ResumedData, answer: Json) -> None:
    """Begin the graph if its plan is approved; else cancel the execution."""
    was_paused = run.pause_reason == REQUESTED
    record_resume(run, ANSWERED, event_data)
    if is_approved(answer):
        begin_graph(run, run.root)
        if was_paused:
            record_pause(run, REQUESTED)
    else:
        run.cancel_cause = refusal_cause(answer)
        cancel_graph_run(run, run.root, run.cancel_cause)


def _decide_on_budget(
    run: RunState, budget: RunBudget, event_data: ResumedData, answer: Json
) -> None:
    """Go on with the limits of the answer, which its event sets; else cancel the execution."""
    was_paused = run.pause_reason == REQUESTED
    record_resume(run, ANSWERED, event_data)
    if is_raised(answer):
        if budget.is_out_of_time:
            budget.is_out_of_time = False
            run.slots.reopen()
            close_out_of_time(run, budget)
        if was_paused:
            run.slots.close()
            record_pause(run, REQUESTED)
    else:
        run.cancel_cause = stop_cause(answer)
        cancel_graph_run(run, run.root, run.cancel_cause)


def close_out_of_time(run: RunState, budget: RunBudget) -> None:
    """Let nothing start any more where the time in the budget is used up."""
    limit_s = budget.limits.get(WALL_S)
    if limit_s is not None and run.active_s >= limit_s - EARLY_S:
        budget.is_out_of_time = True
        run.slots.close()


def _record_stored(
    run: RunState, event_type: EventType[PayloadT], data: PayloadT, path: str, attempt: int | None
) -> None:
    """Emit an event of a stored nested node, and unpark the nodes around it."""
    record_stored(run, event_type, data, path, attempt)
    _unpark_around(run, path)


def apply_decision(run: RunState, attempt: Attempt, answer: Json) -> None:
    """Apply a person's decision on an interrupted attempt: set its result, fail it, or run it."""
    decision = cast("Mapping[str, Json]", answer if isinstance(answer, Mapping) else {})
    match decision.get("decision"):
        case "give_result":
            step = attempt.graph_run.program.steps[attempt.node]
            result = ExecutionResult(_outputs(step, decision.get("value")))
            succeeded(run, AttemptSucceeded(attempt, result))
        case "fail":
            message = f"node {attempt.path!r} was interrupted, and a person decided to let it fail"
            failed(run, attempt, PermanentError(message, code="interrupted"))
        case _:
            run.slots.enqueue(attempt)


def _outputs(step: BoundNode, value: Json) -> dict[str, DataValue]:
    """Return a result by handle: an object's keys where they are outputs of the node."""
    if isinstance(value, dict):
        by_handle = cast("dict[str, Json]", value)
        if by_handle and all(has_output(step.facts, handle) for handle in by_handle):
            return {handle: DataValue("any", each) for handle, each in by_handle.items()}
    fixed = [port.name for port in step.facts.outputs if port.name in step.handles]
    handle = DEFAULT_SOURCE_HANDLE if DEFAULT_SOURCE_HANDLE in fixed or not fixed else fixed[0]
    return {handle: DataValue("any", value)}
