"""Resume an execution from its stored events; interrupted attempts run again."""

from __future__ import annotations

from collections.abc import Sequence

from planwave.events import Event
from planwave.events.request_text import is_about_running
from planwave.events.unreadable import guard_stored
from planwave.executor.driver import plan_requests
from planwave.executor.driver.attempts import delay_retry, reenter_interrupted
from planwave.executor.driver.commands import apply_decision
from planwave.executor.driver.endings import emit_not_run
from planwave.executor.driver.run_state import RunState
from planwave.executor.driver.timeouts import start_request_timer
from planwave.executor.recovery.history import History
from planwave.executor.recovery.replay import Unfinished, replay
from planwave.executor.requests import own_request, request_from_event
from planwave.executor.state import GraphRun


def resume_execution(run: RunState, history: History) -> None:
    """Resume an execution: its own graph, and the open requests of nested runs.

    A nested run resumes once its node opens it again. Where the plan is not approved yet, there is
    only the request for that.
    """
    asked = {
        request_id: each.data.get("request") for request_id, each in history.own_requests.items()
    }
    for request_id, request in asked.items():
        run.requests.add(request_id, own_request(request, history.own_requests[request_id].at))
    if not all(map(is_about_running, asked.values())):
        return
    plan_requests.restore(run, history)
    resume_graph(run, run.root, history.take_own_events())
    with guard_stored(run.execution_id):
        for request_id, event in history.nested_runs.requests():
            request = request_from_event(event)
            run.requests.add(request_id, request)
            start_request_timer(run, request_id, request)


def resume_graph(run: RunState, graph_run: GraphRun, events: Sequence[Event]) -> None:
    """Resume one graph.

    Args:
        run: The execution.
        graph_run: The graph, nothing of which has been started.
        events: Its own events, in order.
    """
    open_ids = {request_id for request_id, _ in run.requests}
    with guard_stored(run.execution_id):
        unfinished = replay(graph_run, events, run.requests, run.now.at)
        for request_id, request in run.requests:
            if request_id not in open_ids:
                start_request_timer(run, request_id, request)
    emit_not_run(run, graph_run, unfinished.untold)
    unneeded = set(graph_run.schedule.unneeded())
    for node in sorted(unneeded):  # an interrupted one is not run again either
        graph_run.schedule.release(node)
    _queue_unfinished(run, unfinished.without(unneeded))
    run.mark_changed(graph_run)


def _queue_unfinished(run: RunState, unfinished: Unfinished) -> None:
    for attempt in unfinished.interrupted:
        reenter_interrupted(run, attempt)
    for attempt in unfinished.ready:
        if attempt.decision is not None:
            apply_decision(run, attempt, attempt.decision)
        else:
            run.slots.enqueue(attempt)
    for attempt, wait_s in unfinished.retries:
        delay_retry(run, attempt, wait_s)
