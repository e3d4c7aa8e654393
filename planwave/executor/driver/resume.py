"""Takes a graph up where its stored events leave it: what was cut off is entered again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from planwave.events import Event
from planwave.events.unreadable import guard_stored
from planwave.executor.driver.commands import CommandReducer
from planwave.executor.driver.publisher import Publisher
from planwave.executor.driver.slots import Slots
from planwave.executor.recovery.history import History
from planwave.executor.recovery.replay import reenter, replay
from planwave.executor.requests import PendingRequests, request_from_event
from planwave.executor.state import Attempt, GraphRun
from planwave.graph.protocols import Suspension


class _Driver(Protocol):
    """What taking up needs of the execution."""

    execution_id: str
    publisher: Publisher
    slots: Slots


class _Reducer(Protocol):
    """What taking up needs of those who settle outcomes."""

    requests: PendingRequests
    commands: CommandReducer

    def mark_changed(self, graph_run: GraphRun) -> None: ...
    def delay_retry(self, attempt: Attempt, delay_s: float) -> None: ...
    def wait_for_answer(
        self, attempt: Attempt, suspension: Suspension, *, is_interrupted: bool = False
    ) -> None: ...


def resume_execution(
    driver: _Driver, reducer: _Reducer, graph_run: GraphRun, history: History
) -> None:
    """Take up an execution: its own graph, and what is asked in nested runs.

    Those run on once the nodes they are inside of ask for them.
    """
    resume_graph(driver, reducer, graph_run, history.take_own_events())
    with guard_stored(driver.execution_id):
        for request_id, event in history.nested_runs.requests():
            request = request_from_event(event)
            reducer.requests.add(request_id, request)
            reducer.commands.start_request_timer(request_id, request)


def resume_graph(
    driver: _Driver, reducer: _Reducer, graph_run: GraphRun, events: Sequence[Event]
) -> None:
    """Take up one graph.

    Args:
        driver: Whose it is.
        reducer: Settles what follows.
        graph_run: The graph, nothing of which has been started.
        events: Its own events, in order.
    """
    watched = {request_id for request_id, _ in reducer.requests}
    with guard_stored(driver.execution_id):
        left = replay(graph_run, events, reducer.requests, driver.publisher.time())
        for request_id, request in reducer.requests:
            if request_id not in watched:
                reducer.commands.start_request_timer(request_id, request)
    for attempt in left.interrupted:
        _reenter(driver, reducer, attempt)
    for attempt in left.ready:
        if attempt.decision is not None:
            reducer.commands.apply_decision(attempt, attempt.decision)
        else:
            driver.slots.enqueue(attempt)
    for attempt, wait_s in left.retries:
        reducer.delay_retry(attempt, wait_s)
    reducer.mark_changed(graph_run)


def _reenter(driver: _Driver, reducer: _Reducer, attempt: Attempt) -> None:
    """Make an attempt that was cut off once more; ask first where it may act but once."""
    graph_run, node = attempt.graph_run, attempt.node
    if not attempt.at_most_once:
        following = graph_run.attempts[node] = reenter(attempt)
        driver.slots.enqueue(following)
        return
    del graph_run.attempts[node]
    message = (
        f"Node {attempt.path!r} was cut off while it ran. It may act only once, and nobody knows "
        "whether it did. Run it again, give its result, or let it fail?"
    )
    actions: list[Any] = ["run_again", "give_result", "fail"]
    request = {"kind": "interrupted", "message": message, "actions": actions}
    reducer.wait_for_answer(attempt, Suspension(request), is_interrupted=True)
