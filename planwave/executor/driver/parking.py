"""Park nodes that only wait for answers inside them, and unpark them when an answer comes."""

from __future__ import annotations

from planwave.events.paths import ancestor_paths, path_prefix
from planwave.events.types import NODE_PARKED, NODE_UNPARKED
from planwave.executor.driver.effects import CancelTask
from planwave.executor.driver.progress import mark_active, record_stored
from planwave.executor.driver.run_state import RunState
from planwave.executor.messages import ParkNode
from planwave.executor.state import PARKED, QUEUED, Attempt


def free_or_park(run: RunState, message: ParkNode) -> None:
    """Free the slot of a node that only waits for nested runs; park it if those only wait too."""
    attempt = message.attempt
    if attempt.activity != message.activity:
        return
    if attempt.only_nests:
        free_slot(run, attempt)
    if attempt.only_waits:
        _park(run, attempt)


def free_slot(run: RunState, attempt: Attempt) -> None:
    """Free the slot of a node that only waits for nested runs, and stop its own clock."""
    attempt.stop_own_clock(run.now.loop_s)
    run.slots.enter_nested(attempt)


def _park(run: RunState, attempt: Attempt) -> None:
    graph_run, node, node_run = attempt.graph_run, attempt.node, attempt.node_run
    if node_run is not None:
        node_run.drop_waiters()
    run.slots.remove(attempt)
    run.effects.append(CancelTask(attempt))
    parked = Attempt(
        graph_run,
        node,
        attempt.number,
        attempt.resume_args,
        attempt.answer_count,
        attempt.reentries,
    )
    data = attempt.stop_clock(run.now.loop_s)
    graph_run.attempts[node] = attempt.replaced_by(parked)
    parked.phase = PARKED
    parked.was_started = True
    run.emit(NODE_PARKED, data, attempt.path, attempt.number)
    graph_run.schedule.waits(node)
    run.mark_changed(graph_run)


def unpark(run: RunState, path: str) -> None:
    """Queue every parked node around a nested node, the outermost first.

    Args:
        run: The execution.
        path: The nested node that was answered or cancelled.
    """
    for around in ancestor_paths(path):
        prefix = path_prefix(around)
        graph_run = run.graph_run_at(prefix)
        if graph_run is None:
            _unpark_stored(run, around)
            continue
        attempt = graph_run.attempts.get(graph_run.program.topology.index[around[len(prefix) :]])
        if attempt is not None and attempt.phase is PARKED:
            run.emit(NODE_UNPARKED, {}, around, attempt.number)
            graph_run.schedule.answered(attempt.node)
            mark_active(graph_run)
            attempt.phase = QUEUED
            run.slots.enqueue(attempt)


def _unpark_stored(run: RunState, path: str) -> None:
    number = None if run.history is None else run.history.nested_runs.parked_attempt(path)
    if number is not None:
        record_stored(run, NODE_UNPARKED, {}, path, number)
