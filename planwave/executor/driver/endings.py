"""How attempts, nested runs, graphs and the execution end, and what the schedules decide then.

One module, because these call each other: a schedule decides that nodes are cancelled, a cancelled attempt
cancels the graphs inside it, and their end is a fact for the schedule of the graph around them.
"""

from __future__ import annotations

from collections.abc import Sequence

from planwave.errors import NESTED_FAILED, ErrorDocument, NodeError
from planwave.events.streamed_text import STREAMED_KINDS, streamed_document
from planwave.events.types import (
    NODE_BLOCKED,
    NODE_CANCELLED,
    NODE_COMPLETED,
    NODE_EVENT,
    NODE_SKIPPED,
    RUN_GRAPH,
    WAVE_COMPLETED,
    CancelledData,
    EventType,
    NestedRunAbandonedData,
    NestedRunOpenedData,
    NodeCompletedData,
    NodeSkippedData,
    PayloadT,
    StartedData,
)
from planwave.executor.driver import plan_requests
from planwave.executor.driver.parking import mark_active, return_outcome, set_idle
from planwave.executor.driver.run_state import RunBudget, RunState
from planwave.executor.driver.timeouts import EARLY_S
from planwave.executor.limits import without_cut_secret
from planwave.executor.messages import (
    AttemptTimer,
    CancelReply,
    CancelTask,
    CancelTimer,
    CloseLinks,
    ExecutionTimer,
    RequestTimer,
    RetryTimer,
    SetTimer,
)
from planwave.executor.requests import PendingRequest
from planwave.executor.scheduling.joins import NO_INPUT
from planwave.executor.scheduling.types import Decisions, RunOutcome
from planwave.executor.state import (
    BACKOFF,
    DONE,
    PARKED,
    QUEUED,
    Attempt,
    GraphRun,
    NestedRun,
)
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, ERROR_HANDLE
from planwave.graph.outputs import outputs_to_json
from planwave.shapes.common import OutputsDocument

# -- decisions -------------------------------------------------------------------------------------


def decide(run: RunState) -> None:
    """Apply the decisions of every schedule with new facts, and check the run's limits.

    The schedule of a graph that may become another one just now decides nothing. A change that is due is requested
    before: else the execution could go on, or end, without it.
    """
    plan_requests.follow(run)
    while run.changed:
        changed, run.changed = run.changed, {}
        for graph_run in changed:
            if run.planning.open is None or graph_run is not run.root:
                _cancel_unbegun(run, graph_run)
                apply_decisions(run, graph_run, graph_run.schedule.decide())
    if run.limits is not None and run.error is None:
        exceeded = run.limits.exceeded(run.seq)
        if exceeded is not None:
            fail_execution(run, exceeded.as_json())


def _cancel_unbegun(run: RunState, graph_run: GraphRun) -> None:
    """Cancel the nodes of a stopped graph that wait for their first slot; whatever has begun finishes."""
    cause = graph_run.schedule.stop_cause
    if cause is None or not run.slots.has_queued:
        return
    for attempt in [each for each in graph_run.attempts.values() if not each.has_begun]:
        end_attempt(run, attempt)
        run.emit(NODE_CANCELLED, {"cause": cause.reason}, attempt.path)
        graph_run.schedule.cancelled(attempt.node, cause.reason)


def apply_decisions(run: RunState, graph_run: GraphRun, decisions: Decisions) -> None:
    """Turn decisions into events and queued starts."""
    starts, skipped, blocked, cancelled, waves_completed, finished, paused, unneeded = decisions
    if skipped or blocked or cancelled:
        emit_not_run(run, graph_run, decisions)
    for wave in waves_completed:
        if wave not in graph_run.unstarted_waves:
            run.emit(WAVE_COMPLETED, {"wave": wave}, graph_run.path)
    for node, via in starts:
        if via is not None:
            graph_run.join_winners[node] = via
        attempt = graph_run.attempts[node] = Attempt(graph_run, node, graph_run.attempt_offset + 1)
        run.slots.enqueue(attempt)
    if unneeded:
        release_idle(run, graph_run, unneeded)
    if graph_run.nested_run is not None:
        set_idle(run, graph_run, graph_run.nested_run, paused)
    if finished is not None:
        if graph_run.nested_run is None:
            run.pending_outcome = finished
        else:
            _end_nested_run(run, graph_run, graph_run.nested_run, finished)


def shape_of(graph_run: GraphRun) -> StartedData:
    """Return how many waves a graph has, and which of its nodes do not run by themselves."""
    schedule, topology = graph_run.schedule, graph_run.program.topology
    data: StartedData = {"waves": schedule.waves.total}
    if True in topology.linked:
        data["linked"] = [i for i, on in zip(topology.ids, topology.linked, strict=True) if on]
    if unreached := schedule.not_reached:
        data["not_reached"] = [topology.ids[n] for n in unreached]
    return data


def begin_graph(run: RunState, graph_run: GraphRun) -> None:
    """Begin a graph of which nothing is stored; nodes with preset results never start."""
    for node, outputs in enumerate(graph_run.outputs) if graph_run.has_presets else ():
        if outputs is not None:
            data: NodeCompletedData = {
                "outputs": outputs_to_json(outputs),
                "duration_s": 0.0,
                "wave": graph_run.schedule.waves.number[node],
                "given": True,
            }
            path = graph_run.prefix + graph_run.program.topology.ids[node]
            run.emit(NODE_COMPLETED, data, path)
    apply_decisions(run, graph_run, graph_run.schedule.start())


def release_idle(run: RunState, graph_run: GraphRun, unneeded: Sequence[int]) -> None:
    """Cancel the nodes that are no longer needed and wait for something; those that run finish."""
    for node in unneeded:
        attempt = graph_run.attempts.get(node)
        if attempt is None or attempt.phase in (QUEUED, BACKOFF, PARKED):
            graph_run.schedule.release(node)
    run.mark_changed(graph_run)


def emit_not_run(run: RunState, graph_run: GraphRun, decisions: Decisions) -> None:
    """Emit which nodes are skipped, blocked and cancelled by decisions."""
    ids, prefix = graph_run.program.topology.ids, graph_run.prefix
    for node, cause in decisions.skipped:
        reason = _not_taken(graph_run, node) if cause is NO_INPUT.cause else None
        data: NodeSkippedData = {"reason": reason or cause.reason}
        if cause.handle is not None:
            data["handle"] = cause.handle
        run.emit(NODE_SKIPPED, data, prefix + ids[node])
    for node, cause in decisions.blocked:
        run.emit(NODE_BLOCKED, {"cause": graph_run.first_cause(cause)}, prefix + ids[node])
    for node, cause in decisions.cancelled:
        request = cancel_request(run, prefix + ids[node])
        if request is not None and request.attempt is not None:
            cancel_nested_runs(run, request.attempt, cause.reason)
            request.attempt.close()
        parked = graph_run.attempts.get(node)
        if parked is not None:
            end_attempt(run, parked)
            run.effects.append(CancelTask(parked))
        waiting = None if request is None else request.attempt
        told = cancelled_data(run, cause.reason, parked or waiting)
        run.emit(NODE_CANCELLED, told, prefix + ids[node])


def _not_taken(graph_run: GraphRun, node: int) -> str | None:
    """Return which decisions kept input from a skipped node; None if nothing was decided."""
    topology = graph_run.program.topology
    decided: dict[int, str] = {}
    for edge in topology.incoming[node]:
        source, handle = topology.sources[edge], topology.handles[edge]
        outputs = graph_run.outputs[source]
        if outputs and len(outputs) == 1 and handle not in outputs:
            decided[source] = f"{topology.ids[source]} {_decision(next(iter(outputs)), handle)}"
    return f"not taken: {', '.join(decided.values())}" if decided else None


def _decision(chosen: str, handle: str) -> str:
    if chosen == ERROR_HANDLE:
        return "failed"
    if chosen == DEFAULT_SOURCE_HANDLE:  # a value, not a decision
        return f"has no value on {handle!r}"
    return f"decided {chosen!r}"


# -- ends ------------------------------------------------------------------------------------------


def fail_execution(run: RunState, error: ErrorDocument) -> None:
    """Fail the execution, and cancel every node that has not ended."""
    run.error = error
    cancel_graph_run(run, run.root, error["message"])
    decide(run)


def execution_timed_out(run: RunState, timer: ExecutionTimer) -> None:
    """Fail the execution, unless it was paused meanwhile: pauses, and waits for a place, do not count."""
    decide(run)
    if run.is_ending:
        return
    idle_s = run.idle_s
    more_s, run.extended_s = idle_s - run.extended_s, idle_s
    if more_s > EARLY_S:
        run.effects.append(SetTimer(timer, run.now.loop_s + more_s))
    else:
        message = f"the execution did not finish within {timer.limit_s:g} s"
        fail_execution(run, {"code": "run-timeout", "message": message})


def end_attempt(run: RunState, attempt: Attempt, *, is_final: bool = True) -> None:
    """Remove an attempt from its slot and graph run; cancel its nested runs and timers.

    The nested runs of a node that waits for an answer itself go on; nobody waits for them meanwhile.

    Args:
        run: The execution.
        attempt: The attempt that has ended.
        is_final: No other attempt takes over what runs inside the node.
    """
    node_run = attempt.node_run
    if node_run is not None and node_run.is_between_attempts:
        run.effects += [CancelReply(reply) for reply in node_run.drop_waiters()]
    elif node_run is not None or run.history is not None:
        cancel_nested_runs(run, attempt, "the node that asked for it has ended")
    if attempt.has_deadline:
        run.effects.append(CancelTimer(AttemptTimer(attempt)))
    if attempt.phase is BACKOFF:
        run.effects.append(CancelTimer(RetryTimer(attempt)))
    run.slots.remove(attempt)
    attempt.task = None  # its context refers to the attempt: a cycle would keep both
    if is_final:
        attempt.close()
    if run.budget is not None:
        _release_budget(run, run.budget, attempt)
    graph_run = attempt.graph_run
    del graph_run.attempts[attempt.node]
    run.mark_changed(graph_run)


def _release_budget(run: RunState, budget: RunBudget, attempt: Attempt) -> None:
    """Free what the calls of an attempt that ends hold; drop those that wait."""
    for reply in budget.calls_of(attempt):
        budget.held.pop(reply, None)
        if budget.waiting.pop(reply, None) is not None:
            attempt.budget_waits -= 1
            run.effects.append(CancelReply(reply))


def cancel_graph_run(run: RunState, graph_run: GraphRun, cause: str) -> None:
    """Cancel all of a running graph that has not ended, the innermost nodes first."""
    plan_requests.abandon(run, graph_run)
    graph_run.schedule.cancel(cause)
    for attempt in list(graph_run.attempts.values()):
        if attempt.phase is PARKED:
            continue  # it waits: the schedule decides that it is cancelled
        cancel_nested_runs(run, attempt, cause)
        end_attempt(run, attempt)
        run.effects.append(CancelTask(attempt))
        data = cancelled_data(run, cause, attempt)
        run.emit(NODE_CANCELLED, data, attempt.path, attempt.number)
        graph_run.schedule.cancelled(attempt.node, cause)
    run.changed.pop(graph_run, None)
    apply_decisions(run, graph_run, graph_run.schedule.decide())


def cancelled_data(run: RunState, cause: str, attempt: Attempt | None) -> CancelledData:
    """Return why a node is cancelled, with what its attempt had streamed; it may have had none."""
    data: CancelledData = {"cause": cause}
    if attempt is not None and (streamed := streamed_by(run, attempt)) is not None:
        data["streamed"] = streamed
    return data


def streamed_by(run: RunState, attempt: Attempt) -> OutputsDocument | None:
    """Return what an attempt that does not complete has streamed, by kind; None for nothing.

    It is without secrets, which no piece of it has to hold whole, and cut where a result would be too large.
    """
    texts: dict[str, str] = {}
    streamed = attempt.streamed or {}
    for kind in STREAMED_KINDS:
        if (kept := streamed.get(kind)) is not None:
            text = str(run.redact(str(kept)))
            text = without_cut_secret(text) if kept.is_cut else text
            texts[kind] = text if run.limits is None else run.limits.kept_text(text)
    return streamed_document(texts) or None


def cancel_nested_runs(run: RunState, attempt: Attempt, cause: str) -> None:
    """Cancel what is nested in an attempt."""
    if attempt.node_run is not None:
        attempt.node_run.drop_waiters()
        for child in attempt.node_run.open_graph_runs():
            cancel_graph_run(run, child, cause)
    if run.history is not None:
        cancel_stored(run, attempt.path, cause)


def cancel_stored(run: RunState, path: str, cause: str) -> None:
    """Cancel the stored nested nodes inside a node that has not asked for their graphs again."""
    if run.history is None:
        return
    for event in run.history.nested_runs.unfinished_inside(path):
        inner = event.path or ""
        cancel_request(run, inner)
        record_stored(run, NODE_CANCELLED, {"cause": cause}, inner, event.attempt)


def record_stored(
    run: RunState, event_type: EventType[PayloadT], data: PayloadT, path: str, attempt: int | None
) -> None:
    """Emit an event of a stored nested node whose nested run has not been opened again yet.

    Once the run is opened again, it resumes from this event.
    """
    run.emit(event_type, data, path, attempt)
    if run.history is not None:
        run.history.nested_runs.add(run.events[-1])


def cancel_request(run: RunState, path: str) -> PendingRequest | None:
    """Close the request of a node that no longer waits; return it."""
    request_id = run.requests.id_at(path)
    if request_id is None:
        return None
    run.effects.append(CancelTimer(RequestTimer(request_id)))
    return run.requests.cancel(path)


# -- nested runs -----------------------------------------------------------------------------------


def _end_nested_run(
    run: RunState, graph_run: GraphRun, nested_run: NestedRun, outcome: RunOutcome
) -> None:
    """End a nested run, so that its node may proceed."""
    if nested_run.graph_run is not graph_run:
        return
    node_run, attempt = nested_run.node_run, nested_run.node_run.attempt
    del run.graph_runs[graph_run.prefix]
    if run.history is not None:
        run.history.nested_runs.discard_inside(graph_run.prefix)
    run.effects.append(CloseLinks(graph_run))
    nested_run.graph_run = None
    nested_run.attempt_offset = graph_run.highest_attempt
    node_run.open_count -= 1
    mark_active(graph_run)
    around = attempt.graph_run
    around.highest_attempt = max(around.highest_attempt, graph_run.highest_attempt)
    if attempt.phase is DONE and not node_run.is_between_attempts:
        return
    nested_run.outcome = graph_run.results()
    if outcome != "completed":
        error = graph_run.first_failure()
        nested_run.outcome = NodeError(
            error["message"],
            code=NESTED_FAILED,
            hint=error.get("hint"),
            retryable=graph_run.is_retryable,
            cause=graph_run.failure_origin(),
        )
    if nested_run.is_abandoned:
        record_nested_run(run, attempt, {"key": nested_run.key, "dropped": True})
    waiters, nested_run.waiters = nested_run.waiters, []
    for reply in waiters:
        attempt.open_nested_runs -= 1
        return_outcome(run, attempt, reply, nested_run.outcome)


def record_nested_run(
    run: RunState, attempt: Attempt, data: NestedRunOpenedData | NestedRunAbandonedData
) -> None:
    """Emit the event that a node opened a nested run, or abandoned it."""
    run.emit(NODE_EVENT, {"event_type": RUN_GRAPH, "data": data}, attempt.path, attempt.number)
