"""What each message about an attempt means: from outcomes to schedule facts and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from planwave.errors import NodeError, NodeTimeout
from planwave.events.vocabulary import WAITING, PauseKind
from planwave.executor.attempt import as_node_error
from planwave.executor.bounds import Bounds
from planwave.executor.commands import Commands
from planwave.executor.deadlines import Deadlines
from planwave.executor.decisions import Decisions, Final
from planwave.executor.dormant import StoredRun
from planwave.executor.flight import OVER, PARKED, Flight, Scope, outputs_document
from planwave.executor.nesting import Nesting
from planwave.executor.options import RunOptions
from planwave.executor.parking import Parking
from planwave.executor.past import Past
from planwave.executor.publisher import Publisher
from planwave.executor.requests import OpenRequest, Requests
from planwave.executor.reuse import Reuse, TakenOver
from planwave.executor.runtime import Host, Outputs
from planwave.executor.saying import fact_of
from planwave.executor.slots import Slots
from planwave.executor.taking_up import take_up, take_up_all
from planwave.graph.capabilities import ExecutionResult, NodeEvent, Suspension
from planwave.graph.model import ERROR_HANDLE
from planwave.graph.values import DataValue


class Driver(Protocol):
    """What outcomes need of the execution they are settled for."""

    @property
    def host(self) -> Host: ...

    execution_id: str
    publisher: Publisher
    options: RunOptions
    slots: Slots
    deadlines: Deadlines[Any]
    root: Scope
    past: Past | None
    reuse: Reuse | None

    def time(self) -> float: ...
    def post(self, take: Any, about: Any, what: Any) -> None: ...
    def watch_time(self, flight: Flight) -> None: ...
    def after_commit(self, call: Callable[[], None]) -> None: ...
    def abort(self, flight: Flight) -> None: ...


class Outcomes:
    """Settles messages for one execution. Every method here runs inside a turn of the driver."""

    def __init__(self, execution: Driver) -> None:
        self._execution = execution
        self.emit = execution.publisher.emit
        self._slots = execution.slots
        self.requests = Requests()
        self.parking = Parking(execution, self)
        self.nesting = Nesting(execution, self)
        self.inside_of = self.nesting.inside_of
        self.commands = Commands(execution, self)
        self._touched: dict[Scope, None] = {}
        self.bounds = Bounds(execution.options) if execution.options.has_bounds else None
        self._ended: Final | None = None
        self.pause: PauseKind | None = None
        self.final: Final | None = None
        self.error: dict[str, Any] | None = None
        if execution.past is not None:
            self.pause = execution.past.pause
            if self.bounds is not None:
                self.bounds.hold(execution.past.held_bytes, execution.past.steps)

    # -- beginning and end -------------------------------------------------------------------------

    @property
    def is_ending(self) -> bool:
        """Whether it is decided how the execution ends."""
        return self._ended is not None or self.final is not None

    def begin(self, scope: Scope) -> None:
        """Start the execution's own graph, or take it up where its stored events leave it."""
        past = self._execution.past
        if past is not None and past.is_started:
            take_up_all(self._execution, self, scope, past)
            return
        waves = scope.schedule.waves
        data: dict[str, Any] = {"waves": waves.total}
        topology = scope.program.topology
        if True in topology.linked:
            data["linked"] = [i for i, on in zip(topology.ids, topology.linked, strict=True) if on]
        if unreached := scope.schedule.not_reached:
            data["not_reached"] = [topology.ids[n] for n in unreached]
        self.emit("execution.started", data)
        self._begin_anew(scope)

    def begin_nested(self, scope: Scope, stored: StoredRun | None) -> None:
        """Start a graph nested in a node, or take it up where its stored events leave it."""
        if stored is not None:
            take_up(self._execution, self, scope, stored.facts)
        else:
            self._begin_anew(scope)

    def scope_at(self, prefix: str) -> Scope | None:
        """Give a running graph by what goes before the ids of its nodes."""
        return self.nesting.scopes.get(prefix) if prefix else self._execution.root

    def _begin_anew(self, scope: Scope) -> None:
        self._tell_given(scope)
        self.follow(scope, scope.schedule.start())

    def _tell_given(self, scope: Scope) -> None:
        """Tell the results of nodes that were settled from outside; they were never started."""
        for node, outputs in enumerate(scope.runtime.outputs) if scope.given else ():
            if outputs is not None:
                data = {"outputs": outputs_document(outputs), "duration_s": 0.0, "given": True}
                self.emit("node.completed", data, scope.prefix + scope.program.topology.ids[node])

    def decide(self) -> None:
        """Ask every schedule that was told something what follows."""
        while self._touched:
            touched, self._touched = self._touched, {}
            for scope in touched:
                self.follow(scope, scope.schedule.decide())
        if self.bounds is not None and self.error is None:
            passed = self.bounds.passed(self._execution.publisher.seq)
            if passed is not None:
                self.commands.fail_all(passed.as_json())

    def conclude(self) -> None:
        """Say that the execution is paused, or over."""
        if self._ended is not None:
            self._finish(self._ended)
        elif self.requests.by_id or self.pause is not None:
            self._rest_or_go_on()

    def _rest_or_go_on(self) -> None:
        is_idle = self._slots.idle
        if self.pause is None and is_idle:
            self.commands.pause(WAITING)
        elif self.pause == WAITING and not is_idle:
            self.commands.go_on("nothing is waited for any more")

    def _finish(self, ended: Final) -> None:
        scope = self._execution.root
        ended = ended if self.error is None else "failed"
        if ended == "completed":
            data: dict[str, Any] = {"handled_failures": scope.handled} if scope.handled else {}
        elif ended == "failed":
            self.error = self.error or scope.first_failure()
            data = {"error": self.error, "failures": list(scope.failures)}
        else:
            data = {"cause": self.commands.cause}
        self.emit(f"execution.{ended}", data)
        self.final = ended

    def follow(self, scope: Scope, decisions: Decisions) -> None:
        """Turn decisions into events and queued starts."""
        starts, skipped, blocked, cancelled, waves_completed, finished, paused = decisions
        if skipped or blocked or cancelled:
            self._tell_unrun(scope, decisions)
        for wave in waves_completed:
            if wave not in scope.waves_ahead:
                self.emit("wave.completed", {"wave": wave}, scope.path)
        for node, via in starts:
            if via is not None:
                scope.runtime.winners[node] = via
            flight = scope.flights[node] = Flight(scope, node, scope.before + 1)
            self._slots.enqueue(flight)
        if scope.run is not None:
            self.parking.note(scope, paused)
        if finished is not None:
            if scope.run is None:
                self._ended = finished
            else:
                self.nesting.ended(scope, finished)

    def _tell_unrun(self, scope: Scope, decisions: Decisions) -> None:
        ids, prefix = scope.program.topology.ids, scope.prefix
        for node, cause in decisions.skipped:
            data: dict[str, Any] = {"reason": cause.reason}
            if cause.handle is not None:
                data["handle"] = cause.handle
            self.emit("node.skipped", data, prefix + ids[node])
        for node, cause in decisions.blocked:
            self.emit("node.blocked", {"cause": scope.first_cause(cause)}, prefix + ids[node])
        for node, cause in decisions.cancelled:
            self.requests.drop(prefix + ids[node])
            parked = scope.flights.get(node)
            if parked is not None:
                self.land(parked)
            self.emit("node.cancelled", {"cause": cause.reason}, prefix + ids[node])

    def let_go(self) -> None:
        """Forget the driver; nothing is settled any more, ``final`` and ``error`` remain."""
        self.commands.let_go()
        self.requests = Requests()
        del self._execution, self.nesting, self.inside_of, self.parking

    # -- attempts ----------------------------------------------------------------------------------

    def wait(self, flight: Flight, asked: Suspension, *, is_interrupted: bool = False) -> None:
        """A node waits for an answer."""
        publisher = self._execution.publisher
        request_id = f"r{publisher.seq + 1}"
        request = OpenRequest(
            flight.path, flight.attempt, asked, publisher.time(), is_interrupted, flight
        )
        self.requests.add(request_id, request)
        flight.scope.schedule.waits(flight.node)
        data = {**request.as_data(request_id), **flight.rest(self._execution.time())}
        self.emit("node.waiting", data, flight.path, flight.attempt)
        self.commands.watch_request(request_id, request)

    def started(self, flight: Flight) -> bool:
        """A flight got a slot: say so, and that its wave began where it is the first.

        One that goes on after a wait has begun before; of one that may act but once it is kept that
        it went on.

        Returns:
            False where the execution fails, as its nodes were started too often.
        """
        if flight.begun and not flight.acts_once:
            return True
        if self.bounds is not None and (passed := self.bounds.step()) is not None:
            self.commands.fail_all(passed.as_json())
            return False
        scope = flight.scope
        wave = scope.schedule.waves.number[flight.node]
        nodes = scope.waves_ahead.pop(wave, None)
        if nodes is not None:
            self.emit("wave.started", {"wave": wave, "nodes": nodes}, scope.path)
        data: dict[str, Any] = {"wave": wave}
        winners = scope.runtime.winners
        if winners and (via := winners.get(flight.node)) is not None:
            data["via"] = scope.program.graph.edges[via].id
        if flight.reentry and not flight.begun:
            data["reentry"] = flight.reentry
        if scope.program.versions and (versions := scope.program.versions_at(flight.node)):
            data["versions"] = versions
        if scope.run is not None and (name := scope.program.steps[flight.node].node.name):
            data["name"] = name
        self.emit("node.started", data, flight.path, flight.attempt)
        return True

    def gave(self, flight: Flight, result: ExecutionResult | Suspension) -> None:
        """An attempt ended well, or suspended."""
        if flight.phase is OVER:
            return
        if self.bounds is not None and isinstance(result, ExecutionResult):
            refused = self.bounds.take(flight.path, result.outputs)
            if refused is not None:
                self.failed(flight, refused)
                return
        self.land(flight)
        if isinstance(result, Suspension):
            self.wait(flight, result)
            return
        scope, node = flight.scope, flight.node
        outputs = scope.runtime.outputs[node] = result.outputs
        data = {
            "outputs": outputs_document(outputs),
            "duration_s": flight.ran(self._execution.time()),
        }
        self.emit("node.completed", data, flight.path, flight.attempt)
        scope.schedule.completed(node, outputs)

    def took_over(self, flight: Flight, result: TakenOver) -> None:
        """A node has its result without having run."""
        if flight.phase is OVER:
            return
        self.land(flight)
        outputs = flight.scope.runtime.outputs[flight.node] = result.outputs
        data = {"outputs": outputs_document(outputs), "duration_s": 0.0, **result.facts}
        self.emit("node.completed", data, flight.path, flight.attempt)
        flight.scope.schedule.completed(flight.node, outputs)

    def failed(self, flight: Flight, error: BaseException) -> None:
        """An attempt ended with an exception."""
        if flight.phase is OVER:
            return
        self.land(flight)
        known = as_node_error(error)
        policy = flight.scope.program.steps[flight.node].node.policy
        attempt = flight.attempt - flight.scope.before
        if known.retryable and attempt < policy.retry.attempts:
            self._retry_later(flight, known, policy.retry.wait_s(attempt))
            return
        self._fail(flight, known)

    def _fail(self, flight: Flight, known: NodeError) -> None:
        scope, node, error = flight.scope, flight.node, known.as_json()
        policy = scope.program.steps[node].node.policy
        outputs: Outputs | None = None
        if policy.on_error == "continue":
            outputs = {ERROR_HANDLE: DataValue("json", error)}
        elif policy.on_error == "default" and policy.default is not None:
            outputs = {policy.default["handle"]: DataValue("any", policy.default["value"])}
        data: dict[str, Any] = {"error": error, "handled": outputs is not None}
        data["duration_s"] = flight.ran(self._execution.time())
        if known.retryable:
            data["retryable"] = True
        if outputs is not None:
            scope.runtime.outputs[node] = outputs
            data["outputs"] = outputs_document(outputs)
            scope.handled.append(flight.path)
        else:
            scope.note_failure(flight.path, error, known.retryable)
        self.emit("node.failed", data, flight.path, flight.attempt)
        scope.schedule.failed(node, f"{error['code']}: {error['message']}", outputs)

    def _retry_later(self, flight: Flight, error: NodeError, delay_s: float) -> None:
        if self._execution.past is not None:
            self._execution.past.dormant.try_again(flight.path)
        following = flight.followed_by(Flight(flight.scope, flight.node, flight.attempt + 1))
        flight.scope.flights[flight.node] = following
        data = {"error": error.as_json(), "delay_s": delay_s, "next_attempt": following.attempt}
        self.emit("node.retrying", data, flight.path, flight.attempt)
        self.wait_to_retry(following, delay_s)

    def wait_to_retry(self, flight: Flight, delay_s: float) -> None:
        """Keep an attempt back for so many seconds."""
        self._slots.hold_back(flight)
        self._execution.deadlines.after(delay_s, (self._retry, flight, None))

    def _retry(self, flight: Flight, _: object) -> None:
        if flight.phase is not OVER:
            self._slots.enqueue(flight)

    def said(self, flight: Flight, event: NodeEvent) -> None:
        """A running node said something that is to be kept."""
        if flight.phase is OVER:
            return
        kind, data = fact_of(event)
        self.emit(kind, data, flight.path, flight.attempt)

    def overdue(self, flight: Flight, limit_s: float) -> None:
        """An attempt's deadline came; only its own work counts."""
        flight.has_deadline = False
        if flight.phase is OVER or flight.own_since < 0.0:
            return  # where it only waits, the deadline is set again once it goes on
        if limit_s - flight.own_time(self._execution.time()) > 1e-3:
            self._execution.watch_time(flight)
            return
        self.abort_children(flight, "the node ran out of time")
        self._execution.abort(flight)
        error = NodeTimeout(
            f"node {flight.path!r} did not finish within {limit_s:g} s",
            hint="raise the node's timeoutS",
            retryable=True,
        )
        self.failed(flight, error)

    def land(self, flight: Flight) -> None:
        """Take a flight out of the air, with what is nested in it; its schedule has news."""
        if flight.inside is not None or self._execution.past is not None:
            self.abort_children(flight, "the node that asked for it has ended")
        self._slots.leave(flight)
        scope = flight.scope
        del scope.flights[flight.node]
        self._touched[scope] = None

    def cancel_scope(self, scope: Scope, cause: str) -> None:
        """Cancel all of a running graph that is not settled, and tell that: the innermost first."""
        scope.schedule.cancel(cause)
        for flight in list(scope.flights.values()):
            if flight.phase is PARKED:
                continue  # it waits: the schedule says what becomes of it
            self.abort_children(flight, cause)
            self.land(flight)
            self._execution.abort(flight)
            self.emit("node.cancelled", {"cause": cause}, flight.path, flight.attempt)
            scope.schedule.cancelled(flight.node, cause)
        self._touched.pop(scope, None)
        self.follow(scope, scope.schedule.decide())

    def abort_children(self, flight: Flight, cause: str) -> None:
        """Cancel what is nested in an attempt."""
        if flight.inside is not None:
            for child in flight.inside.let_go():
                self.cancel_scope(child, cause)
        if self._execution.past is not None:
            self.close_stored(self._execution.past, flight.path, cause)

    def close_stored(self, past: Past, path: str, cause: str) -> None:
        """Cancel what is inside a node and was not asked for again."""
        for event in past.dormant.open_below(path):
            inner = event.path or ""
            self.requests.drop(inner)
            self.parking.tell_stored("node.cancelled", {"cause": cause}, inner, event.attempt)

    def touch(self, scope: Scope) -> None:
        """Note that a graph's schedule has news."""
        self._touched[scope] = None
