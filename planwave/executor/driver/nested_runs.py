"""Graphs that run inside nodes: opened when a node asks, ended with the node at the latest."""

from __future__ import annotations

from typing import cast

from planwave.errors import PermanentError
from planwave.events.types import NestedRunOpenedData
from planwave.executor.driver.attempts import ensure_node_run
from planwave.executor.driver.endings import (
    begin_graph,
    cancel_graph_run,
    decide,
    record_nested_run,
)
from planwave.executor.driver.parking import (
    ensure_active,
    return_outcome,
    start_own_time,
    update_activity,
)
from planwave.executor.driver.resume import resume_graph
from planwave.executor.driver.run_state import RunState
from planwave.executor.messages import (
    DeliverOutcome,
    NestedRunAbandoned,
    NestedRunRequested,
    NodeActivityChanged,
    OutcomeTaken,
    Reply,
)
from planwave.executor.state import DONE, RUNNING, Attempt, GraphRun, NestedRun
from planwave.executor.stored_runs import StoredGraphRun
from planwave.graph.plan import graph_content
from planwave.shapes.common import GraphDocument


def open_nested_run(run: RunState, request: NestedRunRequested) -> None:
    """Open a nested run for a node, or give it the known outcome.

    The node gives its slot back until the last of its nested runs has ended.
    """
    attempt = request.attempt
    if attempt.phase is DONE:
        run.effects.append(Reply(request.reply, attempt.ended_error()))
        return
    node_run = ensure_node_run(attempt)
    nested_run = node_run.nested_runs.get(request.key)
    stored = None if nested_run is not None else _stored(run, request)
    existing = nested_run or stored
    if (
        existing is not None
        and existing.identity is not None
        and existing.identity != request.identity
    ):
        run.effects.append(Reply(request.reply, _mismatch(request, existing.identity)))
        return
    if nested_run is None:
        nested_run = NestedRun(request.key, node_run, request.identity, attempt.number)
        node_run.nested_runs[request.key] = nested_run
    elif nested_run.graph_run is None:
        outcome = nested_run.outcome_for(attempt.number)
        if outcome is not None:
            return_outcome(run, attempt, request.reply, outcome)
            return
    ensure_active(run, attempt)
    _add_waiter(attempt, nested_run, request)
    if nested_run.graph_run is None and request.graph_run is not None:
        _start(run, attempt, nested_run, request.graph_run, stored)
    update_activity(run, attempt)


def _add_waiter(attempt: Attempt, nested_run: NestedRun, request: NestedRunRequested) -> None:
    attempt.open_nested_runs += 1
    nested_run.waiters.append(request.reply)
    if not request.is_counted:
        attempt.has_other_tasks = True
    elif attempt.waits is None:
        attempt.waits = {request.reply}
    else:
        attempt.waits.add(request.reply)


def _stored(run: RunState, request: NestedRunRequested) -> StoredGraphRun | None:
    return None if run.history is None else run.history.nested_runs.get(request.prefix)


def _start(
    run: RunState,
    attempt: Attempt,
    nested_run: NestedRun,
    graph_run: GraphRun,
    stored: StoredGraphRun | None,
) -> None:
    """Start a nested run, from the beginning or from its stored events."""
    if stored is not None and run.history is not None:
        run.history.nested_runs.pop(graph_run.prefix)
        nested_run.attempt_number = stored.attempt_number
        nested_run.attempt_offset = (
            stored.highest_attempt if stored.must_restart else stored.attempt_offset
        )
    graph_run.nested_run, nested_run.graph_run = nested_run, graph_run
    graph_run.depth = attempt.graph_run.depth + 1
    graph_run.attempt_offset = max(nested_run.attempt_offset, attempt.graph_run.attempt_offset)
    graph_run.highest_attempt = max(
        graph_run.attempt_offset, stored.highest_attempt if stored is not None else 0
    )
    nested_run.outcome, nested_run.is_abandoned = None, False
    nested_run.node_run.open_count += 1
    run.graph_runs[graph_run.prefix] = graph_run
    if stored is not None and not stored.must_restart:
        resume_graph(run, graph_run, stored.events)
        return
    nested_run.attempt_number = attempt.number
    record_nested_run(run, attempt, _opening(run, nested_run, graph_run))
    begin_graph(run, graph_run)


def _opening(run: RunState, nested_run: NestedRun, graph_run: GraphRun) -> NestedRunOpenedData:
    """Return what is stored of a nested run that begins; each graph's document is stored once."""
    graph_hash, inputs_hash = nested_run.identity
    data: NestedRunOpenedData = {
        "key": nested_run.key, "graph": graph_hash, "inputs": inputs_hash
    }  # fmt: skip
    if graph_hash not in run.recorded_graphs:
        run.recorded_graphs.add(graph_hash)
        document = graph_content(graph_run.program.graph)
        data["document"] = cast("GraphDocument", document)
        if run.limits is not None:
            run.limits.add_graph(document)
    if graph_run.attempt_offset:
        data["before"] = graph_run.attempt_offset
    return data


def abandon_nested_run(run: RunState, message: NestedRunAbandoned) -> None:
    """Cancel a nested run that its node no longer waits for."""
    decide(run)
    attempt, reply = message.attempt, message.reply
    node_run = attempt.node_run
    nested_run = None if node_run is None else node_run.nested_runs.get(message.key)
    if attempt.phase is DONE or nested_run is None or reply not in nested_run.waiters:
        return
    ensure_active(run, attempt)
    nested_run.waiters.remove(reply)
    attempt.open_nested_runs -= 1
    return_outcome(run, attempt, reply, None)
    if nested_run.graph_run is not None and not nested_run.waiters:
        nested_run.is_abandoned = True
        cancel_graph_run(run, nested_run.graph_run, "its node does not wait for it any more")
        decide(run)  # the nested run must end before the node may open it again


def delivered(run: RunState, delivery: DeliverOutcome) -> None:
    """Account for the delivery of a durable nested outcome to a node; restart its own clock."""
    attempt = delivery.attempt
    if attempt.waits is not None:
        attempt.waits.discard(delivery.reply)
    if attempt.phase is RUNNING:
        start_own_time(run, attempt)


def outcome_taken(run: RunState, message: OutcomeTaken) -> None:
    """Follow what a node does now that one of its tasks has gone on with an outcome."""
    message.attempt.due_outcomes -= 1
    if message.attempt.has_waits:
        _follow_activity(run, message.attempt)


def activity_changed(run: RunState, message: NodeActivityChanged) -> None:
    """Follow what a node does beside its nested runs; see ``NodeActivityChanged``."""
    _follow_activity(run, message.attempt)


def _follow_activity(run: RunState, attempt: Attempt) -> None:
    if attempt.does_own_work:
        ensure_active(run, attempt)
    update_activity(run, attempt)


def _mismatch(request: NestedRunRequested, identity: tuple[str, str]) -> PermanentError:
    what = "another graph" if identity[0] != request.identity[0] else "other inputs or variables"
    path = request.attempt.path
    return PermanentError(
        f"node {path!r} asked for its nested run {request.key!r} with {what} than before",
        code="resume-mismatch",
        hint="a key names one run for as long as its node lasts: name another run by another key, "
        "and take what may differ when the node is entered again through runtime.once",
    )
