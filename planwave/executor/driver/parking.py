"""Nodes that only wait for answers inside them give up their task, and go on when one comes."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

from planwave.events.paths import ancestor_paths, path_prefix
from planwave.executor.driver.publisher import Publisher
from planwave.executor.driver.slots import Slots
from planwave.executor.recovery.history import History
from planwave.executor.state import NESTED, PARKED, QUEUED, RUNNING, Attempt, GraphRun

_IDLE_ROUNDS: Final = 12
"""Rounds of the event loop in which a node can do something with what it got last.

What it got reaches its code through some tasks and locks of its own, a round for each.
"""


class _Driver(Protocol):
    """What parking needs of the execution."""

    publisher: Publisher
    slots: Slots
    root: GraphRun
    history: History | None

    def time(self) -> float: ...
    def post(self, callback: Any, subject: Any, payload: Any) -> None: ...
    def cancel_task(self, attempt: Attempt) -> None: ...


class _Reducer(Protocol):
    """What parking needs of those who settle outcomes."""

    emit: Any

    def mark_changed(self, graph_run: GraphRun) -> None: ...
    def graph_run_at(self, prefix: str) -> GraphRun | None: ...


class Parking:
    """Parks the nodes of one execution; what is public runs inside a turn of the driver."""

    def __init__(self, driver: _Driver, reducer: _Reducer) -> None:
        self._driver, self._reducer = driver, reducer

    # -- parking -----------------------------------------------------------------------------------

    def set_idle(self, graph_run: GraphRun, is_idle: bool) -> None:
        """Note whether a nested run can only wait for answers; perhaps so can its node now."""
        run = graph_run.nested_run
        if run is None or graph_run.is_idle == is_idle or run.graph_run is not graph_run:
            return
        graph_run.is_idle = is_idle
        run.node_run.waiting += 1 if is_idle else -1
        if is_idle:
            self.park_if_idle(run.node_run.attempt)

    def mark_active(self, graph_run: GraphRun) -> None:
        """Note that something goes on in a graph again, or that it has ended."""
        if graph_run.is_idle and graph_run.nested_run is not None:
            graph_run.is_idle = False
            graph_run.nested_run.node_run.waiting -= 1

    def park_if_idle(self, attempt: Attempt, _: object = None) -> None:
        """Free a node's slot, or park it, if it still only waits once its code had time to go on."""
        if attempt.only_nests or _is_idle(attempt):
            self._recheck(attempt, attempt.activity, _IDLE_ROUNDS)

    def _recheck(self, attempt: Attempt, activity: int, rounds: int) -> None:
        if attempt.activity != activity or attempt.phase not in (RUNNING, NESTED):
            return
        if rounds:
            loop = asyncio.get_running_loop()
            loop.call_soon(self._recheck, attempt, activity, rounds - 1)
        else:
            self._driver.post(self._rest, attempt, activity)

    def _rest(self, attempt: Attempt, stirs: int) -> None:
        if attempt.activity != stirs:
            return
        if attempt.only_nests:
            self.free_slot(attempt)
        if _is_idle(attempt):
            self._park(attempt)

    def free_slot(self, attempt: Attempt) -> None:
        """Free the slot of a node that only waits for nested runs; its own time stands still."""
        attempt.stop_own_clock(self._driver.time())
        self._driver.slots.enter_nested(attempt)

    def _park(self, attempt: Attempt) -> None:
        graph_run, node, node_run = attempt.graph_run, attempt.node, attempt.node_run
        if node_run is not None:
            node_run.drop_waiters()
        self._driver.slots.remove(attempt)
        self._driver.cancel_task(attempt)
        resting = Attempt(
            graph_run,
            node,
            attempt.number,
            attempt.resume_args,
            attempt.answer_count,
            attempt.reentries,
        )
        data = attempt.stop_clock(self._driver.time())
        graph_run.attempts[node] = attempt.replaced_by(resting)
        resting.phase = PARKED
        resting.was_started = True
        self._reducer.emit("node.parked", data, attempt.path, attempt.number)
        graph_run.schedule.waits(node)
        self._reducer.mark_changed(graph_run)

    # -- going on ----------------------------------------------------------------------------------

    def unpark(self, path: str) -> None:
        """Have every node go on that was parked for what is inside it, outermost first.

        Args:
            path: The node inside them about which there is news.
        """
        for asker in ancestor_paths(path):
            prefix = path_prefix(asker)
            graph_run = self._reducer.graph_run_at(prefix)
            if graph_run is None:
                self._unpark_stored(asker)
                continue
            attempt = graph_run.attempts.get(graph_run.program.topology.index[asker[len(prefix) :]])
            if attempt is not None and attempt.phase is PARKED:
                self._reducer.emit("node.unparked", {}, asker, attempt.number)
                graph_run.schedule.answered(attempt.node)
                self.mark_active(graph_run)
                attempt.phase = QUEUED
                self._driver.slots.enqueue(attempt)

    def _unpark_stored(self, parent_path: str) -> None:
        past = self._driver.history
        attempt = None if past is None else past.nested_runs.parked_attempt(parent_path)
        if attempt is not None:
            self.record_stored("node.unparked", {}, parent_path, attempt)

    def record_stored(
        self, kind: str, data: dict[str, Any], path: str, attempt: int | None
    ) -> None:
        """Tell what becomes of a node in a nested run that nobody has asked for again yet.

        Once its node asks, the run goes on from that.
        """
        self._reducer.emit(kind, data, path, attempt)
        if self._driver.history is not None:
            told = self._driver.publisher.pending[-1]
            self._driver.history.nested_runs.add(path_prefix(path), told)


def _is_idle(attempt: Attempt) -> bool:
    node_run = attempt.node_run
    return (
        attempt.phase is NESTED
        and node_run is not None
        and not attempt.own_calls
        and 0 < node_run.open_count == node_run.waiting
        and attempt.open_nested_runs > 0
    )
