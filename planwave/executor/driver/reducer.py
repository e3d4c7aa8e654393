"""What each message about an attempt means: from outcomes to schedule facts and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from planwave.errors import NodeError, NodeTimeout
from planwave.events.types import WAITING, PauseKind
from planwave.executor.driver.attempts import event_of
from planwave.executor.driver.commands import CommandReducer
from planwave.executor.driver.deadlines import DeadlineTimers
from planwave.executor.driver.nested_runs import NestedRuns
from planwave.executor.driver.parking import Parking
from planwave.executor.driver.publisher import Publisher
from planwave.executor.driver.resume import resume_execution, resume_graph
from planwave.executor.driver.slots import Slots
from planwave.executor.limits import RunLimits
from planwave.executor.node_api.results import to_node_error
from planwave.executor.node_api.runtime import Host, Outputs
from planwave.executor.options import RunOptions
from planwave.executor.recovery.history import History
from planwave.executor.requests import PendingRequest, PendingRequests
from planwave.executor.reuse.reuse import Reuse, ReusedResult
from planwave.executor.scheduling.decisions import Decisions, RunOutcome
from planwave.executor.state import DONE, PARKED, Attempt, GraphRun, StoredGraphRun
from planwave.graph.model import ERROR_HANDLE, DataValue
from planwave.graph.outputs import outputs_to_json
from planwave.graph.protocols import ExecutionResult, NodeEvent, Suspension


class _Driver(Protocol):
    """What outcomes need of the execution they are settled for."""

    @property
    def host(self) -> Host: ...

    execution_id: str
    publisher: Publisher
    options: RunOptions
    slots: Slots
    deadlines: DeadlineTimers[Any]
    root: GraphRun
    history: History | None
    reuse: Reuse | None

    def time(self) -> float: ...
    def post(self, callback: Any, subject: Any, payload: Any) -> None: ...
    def start_timeout_timer(self, attempt: Attempt) -> None: ...
    def after_commit(self, call: Callable[[], None]) -> None: ...
    def cancel_task(self, attempt: Attempt) -> None: ...


class Reducer:
    """Settles messages for one execution. Every method here runs inside a turn of the driver."""

    def __init__(self, execution: _Driver) -> None:
        self._execution = execution
        self.emit = execution.publisher.emit
        self._slots = execution.slots
        self.requests = PendingRequests()
        self.parking = Parking(execution, self)
        self.nested_runs = NestedRuns(execution, self)
        self.node_run_of = self.nested_runs.node_run_of
        self.commands = CommandReducer(execution, self)
        self._changed: dict[GraphRun, None] = {}
        self.limits = RunLimits(execution.options) if execution.options.has_bounds else None
        self._pending_outcome: RunOutcome | None = None
        self.pause_reason: PauseKind | None = None
        self.outcome: RunOutcome | None = None
        self.error: dict[str, Any] | None = None
        if execution.history is not None:
            self.pause_reason = execution.history.pause_reason
            if self.limits is not None:
                self.limits.restore(execution.history.result_bytes, execution.history.start_count)

    # -- beginning and end -------------------------------------------------------------------------

    @property
    def is_ending(self) -> bool:
        """Whether it is decided how the execution ends."""
        return self._pending_outcome is not None or self.outcome is not None

    def begin(self, graph_run: GraphRun) -> None:
        """Start the execution's own graph, or take it up where its stored events leave it."""
        past = self._execution.history
        if past is not None and past.is_started:
            resume_execution(self._execution, self, graph_run, past)
            return
        waves = graph_run.schedule.waves
        data: dict[str, Any] = {"waves": waves.total}
        topology = graph_run.program.topology
        if True in topology.linked:
            data["linked"] = [i for i, on in zip(topology.ids, topology.linked, strict=True) if on]
        if unreached := graph_run.schedule.not_reached:
            data["not_reached"] = [topology.ids[n] for n in unreached]
        self.emit("execution.started", data)
        self._begin_new(graph_run)

    def begin_nested(self, graph_run: GraphRun, stored: StoredGraphRun | None) -> None:
        """Start a graph nested in a node, or take it up where its stored events leave it."""
        if stored is not None:
            resume_graph(self._execution, self, graph_run, stored.events)
        else:
            self._begin_new(graph_run)

    def graph_run_at(self, prefix: str) -> GraphRun | None:
        """Give a running graph by what goes before the ids of its nodes."""
        return self.nested_runs.graph_runs.get(prefix) if prefix else self._execution.root

    def _begin_new(self, graph_run: GraphRun) -> None:
        self._emit_presets(graph_run)
        self.apply_decisions(graph_run, graph_run.schedule.start())

    def _emit_presets(self, graph_run: GraphRun) -> None:
        """Tell the results of nodes that were settled from outside; they were never started."""
        for node, outputs in enumerate(graph_run.runtime.outputs) if graph_run.has_presets else ():
            if outputs is not None:
                data = {"outputs": outputs_to_json(outputs), "duration_s": 0.0, "given": True}
                self.emit(
                    "node.completed", data, graph_run.prefix + graph_run.program.topology.ids[node]
                )

    def decide(self) -> None:
        """Ask every schedule that was told something what follows."""
        while self._changed:
            touched, self._changed = self._changed, {}
            for graph_run in touched:
                self.apply_decisions(graph_run, graph_run.schedule.decide())
        if self.limits is not None and self.error is None:
            passed = self.limits.exceeded(self._execution.publisher.seq)
            if passed is not None:
                self.commands.fail_execution(passed.as_json())

    def conclude(self) -> None:
        """Say that the execution is paused, or over."""
        if self._pending_outcome is not None:
            self._finish(self._pending_outcome)
        elif self.requests.by_id or self.pause_reason is not None:
            self._pause_or_resume()

    def _pause_or_resume(self) -> None:
        is_idle = self._slots.is_idle
        if self.pause_reason is None and is_idle:
            self.commands.record_pause(WAITING)
        elif self.pause_reason == WAITING and not is_idle:
            self.commands.record_resume("nothing is waited for any more")

    def _finish(self, outcome: RunOutcome) -> None:
        graph_run = self._execution.root
        outcome = outcome if self.error is None else "failed"
        if outcome == "completed":
            data: dict[str, Any] = (
                {"handled_failures": graph_run.handled_failures}
                if graph_run.handled_failures
                else {}
            )
        elif outcome == "failed":
            self.error = self.error or graph_run.first_failure()
            data = {"error": self.error, "failures": list(graph_run.failures)}
        else:
            data = {"cause": self.commands.cancel_cause}
        self.emit(f"execution.{outcome}", data)
        self.outcome = outcome

    def apply_decisions(self, graph_run: GraphRun, decisions: Decisions) -> None:
        """Turn decisions into events and queued starts."""
        starts, skipped, blocked, cancelled, waves_completed, finished, paused = decisions
        if skipped or blocked or cancelled:
            self._emit_not_run(graph_run, decisions)
        for wave in waves_completed:
            if wave not in graph_run.unstarted_waves:
                self.emit("wave.completed", {"wave": wave}, graph_run.path)
        for node, via in starts:
            if via is not None:
                graph_run.runtime.join_winners[node] = via
            attempt = graph_run.attempts[node] = Attempt(
                graph_run, node, graph_run.attempt_offset + 1
            )
            self._slots.enqueue(attempt)
        if graph_run.nested_run is not None:
            self.parking.set_idle(graph_run, paused)
        if finished is not None:
            if graph_run.nested_run is None:
                self._pending_outcome = finished
            else:
                self.nested_runs.end(graph_run, finished)

    def _emit_not_run(self, graph_run: GraphRun, decisions: Decisions) -> None:
        ids, prefix = graph_run.program.topology.ids, graph_run.prefix
        for node, cause in decisions.skipped:
            data: dict[str, Any] = {"reason": cause.reason}
            if cause.handle is not None:
                data["handle"] = cause.handle
            self.emit("node.skipped", data, prefix + ids[node])
        for node, cause in decisions.blocked:
            self.emit("node.blocked", {"cause": graph_run.first_cause(cause)}, prefix + ids[node])
        for node, cause in decisions.cancelled:
            self.requests.cancel(prefix + ids[node])
            parked = graph_run.attempts.get(node)
            if parked is not None:
                self.end_attempt(parked)
            self.emit("node.cancelled", {"cause": cause.reason}, prefix + ids[node])

    def release(self) -> None:
        """Forget the driver; nothing is settled any more, ``final`` and ``error`` remain."""
        self.commands.release()
        self.requests = PendingRequests()
        del self._execution, self.nested_runs, self.node_run_of, self.parking

    # -- attempts ----------------------------------------------------------------------------------

    def wait_for_answer(
        self, attempt: Attempt, suspension: Suspension, *, is_interrupted: bool = False
    ) -> None:
        """A node waits for an answer."""
        publisher = self._execution.publisher
        request_id = f"r{publisher.seq + 1}"
        request = PendingRequest(
            attempt.path, attempt.number, suspension, publisher.time(), is_interrupted, attempt
        )
        self.requests.add(request_id, request)
        attempt.graph_run.schedule.waits(attempt.node)
        data = {**request.as_event_data(request_id), **attempt.stop_clock(self._execution.time())}
        self.emit("node.waiting", data, attempt.path, attempt.number)
        self.commands.start_request_timer(request_id, request)

    def started(self, attempt: Attempt) -> bool:
        """A flight got a slot: say so, and that its wave began where it is the first.

        One that goes on after a wait has begun before; of one that may act but once it is kept that
        it went on.

        Returns:
            False where the execution fails, as its nodes were started too often.
        """
        if attempt.was_started and not attempt.at_most_once:
            return True
        if self.limits is not None and (passed := self.limits.count_start()) is not None:
            self.commands.fail_execution(passed.as_json())
            return False
        graph_run = attempt.graph_run
        wave = graph_run.schedule.waves.number[attempt.node]
        nodes = graph_run.unstarted_waves.pop(wave, None)
        if nodes is not None:
            self.emit("wave.started", {"wave": wave, "nodes": nodes}, graph_run.path)
        data: dict[str, Any] = {"wave": wave}
        winners = graph_run.runtime.join_winners
        if winners and (via := winners.get(attempt.node)) is not None:
            data["via"] = graph_run.program.graph.edges[via].id
        if attempt.reentries and not attempt.was_started:
            data["reentry"] = attempt.reentries
        if graph_run.program.versions and (
            versions := graph_run.program.type_versions(attempt.node)
        ):
            data["versions"] = versions
        if graph_run.nested_run is not None and (
            name := graph_run.program.steps[attempt.node].node.name
        ):
            data["name"] = name
        self.emit("node.started", data, attempt.path, attempt.number)
        return True

    def succeeded(self, attempt: Attempt, result: ExecutionResult | Suspension) -> None:
        """An attempt ended well, or suspended."""
        if attempt.phase is DONE:
            return
        if self.limits is not None and isinstance(result, ExecutionResult):
            refused = self.limits.add_result(attempt.path, result.outputs)
            if refused is not None:
                self.failed(attempt, refused)
                return
        self.end_attempt(attempt)
        if isinstance(result, Suspension):
            self.wait_for_answer(attempt, result)
            return
        graph_run, node = attempt.graph_run, attempt.node
        outputs = graph_run.runtime.outputs[node] = result.outputs
        data = {
            "outputs": outputs_to_json(outputs),
            "duration_s": attempt.elapsed(self._execution.time()),
        }
        self.emit("node.completed", data, attempt.path, attempt.number)
        graph_run.schedule.completed(node, outputs)

    def reused(self, attempt: Attempt, result: ReusedResult) -> None:
        """A node has its result without having run."""
        if attempt.phase is DONE:
            return
        self.end_attempt(attempt)
        outputs = attempt.graph_run.runtime.outputs[attempt.node] = result.outputs
        data = {"outputs": outputs_to_json(outputs), "duration_s": 0.0, **result.event_data}
        self.emit("node.completed", data, attempt.path, attempt.number)
        attempt.graph_run.schedule.completed(attempt.node, outputs)

    def failed(self, attempt: Attempt, error: BaseException) -> None:
        """An attempt ended with an exception."""
        if attempt.phase is DONE:
            return
        self.end_attempt(attempt)
        known = to_node_error(error)
        policy = attempt.graph_run.program.steps[attempt.node].node.policy
        tried = attempt.number - attempt.graph_run.attempt_offset
        if known.retryable and tried < policy.retry.attempts:
            self._schedule_retry(attempt, known, policy.retry.wait_s(tried))
            return
        self._fail(attempt, known)

    def _fail(self, attempt: Attempt, known: NodeError) -> None:
        graph_run, node, error = attempt.graph_run, attempt.node, known.as_json()
        policy = graph_run.program.steps[node].node.policy
        outputs: Outputs | None = None
        if policy.on_error == "continue":
            outputs = {ERROR_HANDLE: DataValue("json", error)}
        elif policy.on_error == "default" and policy.default is not None:
            outputs = {policy.default["handle"]: DataValue("any", policy.default["value"])}
        data: dict[str, Any] = {"error": error, "handled": outputs is not None}
        data["duration_s"] = attempt.elapsed(self._execution.time())
        if known.retryable:
            data["retryable"] = True
        if outputs is not None:
            graph_run.runtime.outputs[node] = outputs
            data["outputs"] = outputs_to_json(outputs)
            graph_run.handled_failures.append(attempt.path)
        else:
            graph_run.record_failure(attempt.path, error, known.retryable)
        self.emit("node.failed", data, attempt.path, attempt.number)
        graph_run.schedule.failed(node, f"{error['code']}: {error['message']}", outputs)

    def _schedule_retry(self, attempt: Attempt, error: NodeError, delay_s: float) -> None:
        if self._execution.history is not None:
            self._execution.history.nested_runs.mark_failed_for_restart(attempt.path)
        following = attempt.replaced_by(
            Attempt(attempt.graph_run, attempt.node, attempt.number + 1)
        )
        attempt.graph_run.attempts[attempt.node] = following
        data = {"error": error.as_json(), "delay_s": delay_s, "next_attempt": following.number}
        self.emit("node.retrying", data, attempt.path, attempt.number)
        self.delay_retry(following, delay_s)

    def delay_retry(self, attempt: Attempt, delay_s: float) -> None:
        """Keep an attempt back for so many seconds."""
        self._slots.hold_back(attempt)
        self._execution.deadlines.after(delay_s, (self._retry, attempt, None))

    def _retry(self, attempt: Attempt, _: object) -> None:
        if attempt.phase is not DONE:
            self._slots.enqueue(attempt)

    def emitted(self, attempt: Attempt, event: NodeEvent) -> None:
        """A running node said something that is to be kept."""
        if attempt.phase is DONE:
            return
        kind, data = event_of(event)
        self.emit(kind, data, attempt.path, attempt.number)

    def timed_out(self, attempt: Attempt, limit_s: float) -> None:
        """An attempt's deadline came; only its own work counts."""
        attempt.has_deadline = False
        if attempt.phase is DONE or attempt.own_since < 0.0:
            return  # where it only waits, the deadline is set again once it goes on
        if limit_s - attempt.own_time(self._execution.time()) > 1e-3:
            self._execution.start_timeout_timer(attempt)
            return
        self.cancel_nested_runs(attempt, "the node ran out of time")
        self._execution.cancel_task(attempt)
        error = NodeTimeout(
            f"node {attempt.path!r} did not finish within {limit_s:g} s",
            hint="raise the node's timeoutS",
            retryable=True,
        )
        self.failed(attempt, error)

    def end_attempt(self, attempt: Attempt) -> None:
        """Take a flight out of the air, with what is nested in it; its schedule has news."""
        if attempt.node_run is not None or self._execution.history is not None:
            self.cancel_nested_runs(attempt, "the node that asked for it has ended")
        self._slots.remove(attempt)
        graph_run = attempt.graph_run
        del graph_run.attempts[attempt.node]
        self._changed[graph_run] = None

    def cancel_graph_run(self, graph_run: GraphRun, cause: str) -> None:
        """Cancel all of a running graph that is not settled, and tell that: the innermost first."""
        graph_run.schedule.cancel(cause)
        for attempt in list(graph_run.attempts.values()):
            if attempt.phase is PARKED:
                continue  # it waits: the schedule says what becomes of it
            self.cancel_nested_runs(attempt, cause)
            self.end_attempt(attempt)
            self._execution.cancel_task(attempt)
            self.emit("node.cancelled", {"cause": cause}, attempt.path, attempt.number)
            graph_run.schedule.cancelled(attempt.node, cause)
        self._changed.pop(graph_run, None)
        self.apply_decisions(graph_run, graph_run.schedule.decide())

    def cancel_nested_runs(self, attempt: Attempt, cause: str) -> None:
        """Cancel what is nested in an attempt."""
        if attempt.node_run is not None:
            for child in attempt.node_run.drop_waiters():
                self.cancel_graph_run(child, cause)
        if self._execution.history is not None:
            self.cancel_stored(self._execution.history, attempt.path, cause)

    def cancel_stored(self, history: History, path: str, cause: str) -> None:
        """Cancel what is inside a node and was not asked for again."""
        for event in history.nested_runs.unfinished_inside(path):
            inner = event.path or ""
            self.requests.cancel(inner)
            self.parking.record_stored("node.cancelled", {"cause": cause}, inner, event.attempt)

    def mark_changed(self, graph_run: GraphRun) -> None:
        """Note that a graph's schedule has news."""
        self._changed[graph_run] = None
