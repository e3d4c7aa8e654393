"""Resume an execution from its stored events; interrupted attempts run again."""

from __future__ import annotations

from collections.abc import Sequence

from planwave.events import Event
from planwave.events.unreadable import guard_stored
from planwave.executor.driver.attempts import delay_retry, wait_for_answer
from planwave.executor.driver.commands import apply_decision
from planwave.executor.driver.run_state import RunState
from planwave.executor.driver.timeouts import start_request_timer
from planwave.executor.recovery.history import History
from planwave.executor.recovery.replay import reenter, replay
from planwave.executor.requests import request_from_event
from planwave.executor.state import Attempt, GraphRun
from planwave.graph.protocols import Suspension


def resume_execution(run: RunState, history: History) -> None:
    """Resume an execution: its own graph, and the open requests of nested runs.

    A nested run resumes once its node opens it again.
    """
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
    known = {request_id for request_id, _ in run.requests}
    with guard_stored(run.execution_id):
        unfinished = replay(graph_run, events, run.requests, run.now.at)
        for request_id, request in run.requests:
            if request_id not in known:
                start_request_timer(run, request_id, request)
    for attempt in unfinished.interrupted:
        _reenter(run, attempt)
    for attempt in unfinished.ready:
        if attempt.decision is not None:
            apply_decision(run, attempt, attempt.decision)
        else:
            run.slots.enqueue(attempt)
    for attempt, wait_s in unfinished.retries:
        delay_retry(run, attempt, wait_s)
    run.mark_changed(graph_run)


def _reenter(run: RunState, attempt: Attempt) -> None:
    """Run an interrupted attempt again; ask a person first where it must act only once."""
    graph_run, node = attempt.graph_run, attempt.node
    if not attempt.at_most_once:
        following = graph_run.attempts[node] = reenter(attempt)
        run.slots.enqueue(following)
        return
    del graph_run.attempts[node]
    message = (
        f"Node {attempt.path!r} was cut off while it ran. It may act only once, and nobody knows "
        "whether it did. Run it again, give its result, or let it fail?"
    )
    actions = ["run_again", "give_result", "fail"]
    request = {"kind": "interrupted", "message": message, "actions": actions}
    wait_for_answer(run, attempt, Suspension(request), is_interrupted=True)
