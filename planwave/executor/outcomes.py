"""What each message in the mailbox means: from outcomes to schedule facts and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from planwave.errors import LimitExceeded, NodeError, NodeTimeout, PlanwaveError
from planwave.executor.attempt import json_fault
from planwave.executor.deadlines import Deadlines
from planwave.executor.decisions import Cause, Decisions, Final
from planwave.executor.flight import OVER, Flight, Scope, outputs_document
from planwave.executor.options import RunOptions
from planwave.executor.publisher import Publisher
from planwave.executor.runtime import Outputs
from planwave.executor.slots import NestedAnswer, Slots
from planwave.graph.capabilities import ExecutionResult, NodeEvent, Suspension
from planwave.graph.model import ERROR_HANDLE, Json
from planwave.graph.values import DataValue


class Driver(Protocol):
    """What outcomes need of the execution they are settled for."""

    publisher: Publisher
    options: RunOptions
    slots: Slots
    deadlines: Deadlines[Any]
    root: Scope
    status: str

    def time(self) -> float: ...
    def watch_time(self, flight: Flight) -> None: ...
    def abort(self, flight: Flight) -> None: ...


class Outcomes:
    """Settles messages for one execution. Every method here runs inside a turn of the driver."""

    def __init__(self, execution: Driver) -> None:
        self._execution = execution
        self._emit = execution.publisher.emit
        self._touched: dict[Scope, None] = {}
        self._open: dict[str, tuple[Flight, Json]] = {}
        self._claimed: set[str] = set()
        self._ended: Final | None = None
        self._cause = ""
        self._paused = False
        self.final: Final | None = None
        self.error: dict[str, Any] | None = None

    # -- beginning and end -------------------------------------------------------------------------

    def begin(self, scope: Scope) -> None:
        """Start the execution's own graph."""
        waves = scope.schedule.waves
        data: dict[str, Any] = {"waves": waves.total}
        topology = scope.program.topology
        if True in topology.linked:
            data["linked"] = [i for i, on in zip(topology.ids, topology.linked, strict=True) if on]
        if unreached := scope.schedule.not_reached:
            data["not_reached"] = [topology.ids[n] for n in unreached]
        self._emit("execution.started", data)
        self._tell_given(scope)
        self._follow(scope, scope.schedule.start())

    def _tell_given(self, scope: Scope) -> None:
        """Tell the results of nodes that were settled from outside; they were never started."""
        for node, outputs in enumerate(scope.runtime.outputs) if scope.given else ():
            if outputs is not None:
                data = {"outputs": outputs_document(outputs), "duration_s": 0.0, "given": True}
                self._emit("node.completed", data, scope.prefix + scope.program.topology.ids[node])

    def decide(self) -> None:
        """Ask every schedule that was told something what follows."""
        if self._touched:
            touched, self._touched = self._touched, {}
            for scope in touched:
                self._follow(scope, scope.schedule.decide())
        limit = self._execution.options.max_events
        if limit is not None and self.error is None and self._execution.publisher.seq > limit:
            met = self._execution.publisher.seq
            self._fail_all(LimitExceeded("events", limit, met).as_json())

    def conclude(self) -> None:
        """Say that the execution is paused, or over."""
        if self._ended is not None:
            self._finish(self._ended)
        elif self._open and not self._paused and self._execution.slots.idle:
            self._paused = True
            self._execution.status = "paused"
            self._emit("execution.paused", {"reason": "waiting for an answer"})

    def _finish(self, ended: Final) -> None:
        scope = self._execution.root
        if self.error is not None:
            ended = "failed"
        if ended == "completed":
            data: dict[str, Any] = {"handled_failures": scope.handled} if scope.handled else {}
        elif ended == "failed":
            self.error = self.error or scope.first_failure()
            data = {"error": self.error, "failures": list(scope.failures)}
        else:
            data = {"cause": self._cause}
        self._emit(f"execution.{ended}", data)
        self.final = ended

    def _follow(self, scope: Scope, decisions: Decisions) -> None:
        """Turn decisions into events and queued starts."""
        if decisions.skipped or decisions.blocked or decisions.cancelled:
            self._tell_unrun(scope, decisions)
        for wave in decisions.waves_completed:
            if wave in scope.started_waves:
                self._emit("wave.completed", {"wave": wave}, scope.path)
        for node, via in decisions.starts:
            if via is not None:
                scope.runtime.winners[node] = via
            flight = scope.flights[node] = Flight(scope, node)
            self._execution.slots.enqueue(flight)
        if decisions.finished is not None:
            if scope.parent is None:
                self._ended = decisions.finished
            else:
                self._nested_ended(scope, decisions.finished)

    def _tell_unrun(self, scope: Scope, decisions: Decisions) -> None:
        ids, prefix = scope.program.topology.ids, scope.prefix
        for node, cause in decisions.skipped:
            data: dict[str, Any] = {"reason": cause.reason}
            if cause.handle is not None:
                data["handle"] = cause.handle
            self._emit("node.skipped", data, prefix + ids[node])
        for node, cause in decisions.blocked:
            self._emit("node.blocked", {"cause": _first_cause(scope, cause)}, prefix + ids[node])
        for node, cause in decisions.cancelled:
            self._open = {r: f for r, f in self._open.items() if f[0].path != prefix + ids[node]}
            self._emit("node.cancelled", {"cause": cause.reason}, prefix + ids[node])

    def let_go(self) -> None:
        """Forget the driver; nothing is settled any more, ``final`` and ``error`` remain."""
        del self._execution

    # -- attempts ----------------------------------------------------------------------------------

    def started(self, flight: Flight) -> None:
        """A flight got a slot: say so, and that its wave began where it is the first."""
        if flight.resume is not None:
            return
        scope = flight.scope
        wave = scope.schedule.waves.number[flight.node]
        if wave not in scope.started_waves:
            scope.started_waves.add(wave)
            self._emit(
                "wave.started",
                {"wave": wave, "nodes": scope.nodes_in_wave(wave)},
                scope.path,
            )
        data: dict[str, Any] = {"wave": wave}
        via = scope.runtime.winners.get(flight.node) if scope.runtime.winners else None
        if via is not None:
            data["via"] = scope.program.graph.edges[via].id
        self._emit("node.started", data, flight.path, flight.attempt)

    def gave(self, flight: Flight, result: ExecutionResult | Suspension) -> None:
        """An attempt ended well, or suspended."""
        if flight.phase is OVER:
            return
        self._land(flight)
        if isinstance(result, Suspension):
            request_id = f"{flight.path}#{flight.attempt}.{self._execution.publisher.seq + 1}"
            self._open[request_id] = (flight, result.state)
            flight.scope.schedule.waits(flight.node)
            data = {"request_id": request_id, "request": result.request}
            self._emit("node.waiting", data, flight.path, flight.attempt)
            return
        outputs = flight.scope.runtime.outputs[flight.node] = result.outputs
        data = {"outputs": outputs_document(outputs), "duration_s": self._duration(flight)}
        self._emit("node.completed", data, flight.path, flight.attempt)
        flight.scope.schedule.completed(flight.node, outputs)

    def failed(self, flight: Flight, error: BaseException) -> None:
        """An attempt ended with an exception."""
        if flight.phase is OVER:
            return
        self._land(flight)
        known = _as_node_error(error)
        policy = flight.scope.program.steps[flight.node].node.policy
        if known.retryable and flight.attempt < policy.retry.attempts:
            self._retry_later(flight, known, policy.retry.backoff_s * 2 ** (flight.attempt - 1))
            return
        self._fail(flight, known.as_json())

    def _fail(self, flight: Flight, error: dict[str, Any]) -> None:
        scope, node = flight.scope, flight.node
        policy = scope.program.steps[node].node.policy
        outputs: Outputs | None = None
        if policy.on_error == "continue":
            outputs = {ERROR_HANDLE: DataValue("json", error)}
        elif policy.on_error == "default" and policy.default is not None:
            outputs = {policy.default["handle"]: DataValue("any", policy.default["value"])}
        data: dict[str, Any] = {"error": error, "handled": outputs is not None}
        data["duration_s"] = self._duration(flight)
        if outputs is not None:
            scope.runtime.outputs[node] = outputs
            data["outputs"] = outputs_document(outputs)
            scope.handled.append(flight.path)
        else:
            scope.failures[flight.path] = error
        self._emit("node.failed", data, flight.path, flight.attempt)
        scope.schedule.failed(node, f"{error['code']}: {error['message']}", outputs)

    def _retry_later(self, flight: Flight, error: NodeError, delay_s: float) -> None:
        following = Flight(flight.scope, flight.node, flight.attempt + 1)
        flight.scope.flights[flight.node] = following
        self._execution.slots.hold_back(following)
        self._execution.deadlines.after(delay_s, (self._retry, following, None))
        data = {"error": error.as_json(), "delay_s": delay_s, "next_attempt": following.attempt}
        self._emit("node.retrying", data, flight.path, flight.attempt)

    def _retry(self, flight: Flight, _: object) -> None:
        if flight.phase is not OVER:
            self._execution.slots.enqueue(flight)

    def said(self, flight: Flight, event: NodeEvent) -> None:
        """A running node said something that is to be kept."""
        if flight.phase is OVER:
            return
        kind, data = event.event_type, event.data
        if (fault := json_fault(data)) is not None:
            message = f"event {kind!r} was not kept: its data is {fault}"
            kind, data = "log", {"message": message, "level": "warning"}
        is_object = isinstance(data, dict)
        if kind == "log":
            log = cast("dict[str, Any]", data) if is_object else {"message": data}
            said = {"message": str(log.get("message", "")), "level": log.get("level", "info")}
            self._emit("node.log", said, flight.path, flight.attempt)
        elif kind == "usage" and is_object:
            self._emit("usage", cast("dict[str, Any]", data), flight.path, flight.attempt)
        else:
            self._emit(
                "node.event", {"event_type": kind, "data": data}, flight.path, flight.attempt
            )

    def overdue(self, flight: Flight, limit_s: float) -> None:
        """An attempt's deadline came; nested runs and earlier flights do not count."""
        if flight.phase is OVER or flight.nesting:
            return
        left = limit_s - flight.own_time(self._time())
        if left > 1e-3:
            self._execution.deadlines.after(left, (self.overdue, flight, limit_s))
            return
        self._abort_children(flight, "the node ran out of time")
        self._execution.abort(flight)
        error = NodeTimeout(
            f"node {flight.path!r} did not finish within {limit_s:g} s",
            hint="raise the node's timeoutS",
            retryable=True,
        )
        self.failed(flight, error)

    def _land(self, flight: Flight) -> None:
        """Take a flight out of the air, with what is nested in it; its schedule has news."""
        self._abort_children(flight, "the node that asked for it has ended")
        self._execution.slots.leave(flight)
        del flight.scope.flights[flight.node]
        self._touched[flight.scope] = None

    # -- commands ----------------------------------------------------------------------------------

    def cancelled(self, scope: Scope, cause: str) -> None:
        """Cancel everything that is not settled."""
        self.decide()  # what was in the mailbox before comes first
        if self._ended is None and self.final is None:
            self._cause = cause
            self._cancel_scope(scope, cause)

    def out_of_time(self, scope: Scope, limit_s: float) -> None:
        """The execution's own deadline came."""
        self.decide()
        if self._ended is None and self.final is None:
            message = f"the execution did not finish within {limit_s:g} s"
            self._fail_all({"code": "run-timeout", "message": message})

    def _fail_all(self, error: dict[str, Any]) -> None:
        self.error = error
        self._cancel_scope(self._execution.root, error["message"])
        self.decide()

    def _cancel_scope(self, scope: Scope, cause: str) -> None:
        scope.schedule.cancel(cause)
        self._touched[scope] = None
        for flight in list(scope.flights.values()):
            self._abort_children(flight, cause)
            self._land(flight)
            self._execution.abort(flight)
            self._emit("node.cancelled", {"cause": cause}, flight.path, flight.attempt)
            scope.schedule.cancelled(flight.node, cause)

    def _abort_children(self, flight: Flight, cause: str) -> None:
        for child in flight.children or ():
            self._cancel_scope(child, cause)

    def claim(self, request_id: str) -> bool:
        """Take a request for answering; False if it is not open or already claimed."""
        if request_id not in self._open or request_id in self._claimed:
            return False
        self._claimed.add(request_id)
        return True

    def answered(self, request_id: str, answer: Json) -> None:
        """A waiting node goes on with an answer."""
        self.decide()
        if request_id not in self._open:
            return
        waiting, state = self._open.pop(request_id)
        if self._paused:
            self._paused = False
            self._execution.status = "executing"
            self._emit("execution.resumed", {})
        data = {"request_id": request_id, "answer": answer}
        self._emit("node.answered", data, waiting.path, waiting.attempt)
        scope = waiting.scope
        scope.schedule.answered(waiting.node)
        flight = Flight(scope, waiting.node, waiting.attempt, resume=(state, answer))
        scope.flights[waiting.node] = flight
        self._execution.slots.enqueue(flight)

    # -- nested runs -------------------------------------------------------------------------------

    def nest(self, flight: Flight, scope: Scope) -> None:
        """A running node asked for a nested run: it gives its slot back until that has ended."""
        if flight.phase is OVER:
            return
        if not flight.nesting:
            flight.nested_since = self._time()
        self._execution.slots.enter_nested(flight)
        flight.nesting += 1
        flight.children = [*(flight.children or ()), scope]
        self._tell_given(scope)
        self._follow(scope, scope.schedule.start())

    def unnest(self, flight: Flight, scope: Scope) -> None:
        """A node no longer waits for its nested run."""
        self.decide()
        if flight.phase is not OVER and scope in (flight.children or ()):
            self._cancel_scope(scope, "its node does not wait for it any more")

    def _nested_ended(self, scope: Scope, ended: Final) -> None:
        flight, asked = scope.parent, scope.asked
        if flight is None or flight.phase is OVER:
            return
        if flight.children:
            flight.children.remove(scope)
        result: Mapping[str, Outputs] | NodeError = scope.results()
        if ended != "completed":
            error = scope.first_failure()
            result = NodeError(error["message"], code="nested-run-failed", hint=error.get("hint"))
        flight.nesting -= 1
        if not flight.nesting:
            flight.nested_s += self._time() - flight.nested_since
            self._execution.watch_time(flight)
        self._execution.slots.come_back(NestedAnswer(flight, asked, result))

    def _time(self) -> float:
        return self._execution.time()

    def _duration(self, flight: Flight) -> float:
        return round(self._execution.time() - flight.started, 6) if flight.started else 0.0


def _first_cause(scope: Scope, cause: Cause) -> dict[str, Any]:
    """Give ``{"node", "error"}`` of the failure that blocked a node."""
    if cause.node is None:
        return {"node": None, "error": {"code": "blocked", "message": cause.reason}}
    path = scope.prefix + scope.program.topology.ids[cause.node]
    unknown = {"code": "node-cancelled", "message": cause.reason}
    return {"node": path, "error": scope.failures.get(path, unknown)}


def _as_node_error(error: BaseException) -> NodeError:
    """Give any exception of a node as a NodeError; planned errors keep code and hint."""
    if isinstance(error, NodeError):
        return error
    if isinstance(error, PlanwaveError):
        return NodeError(error.message, code=error.code, hint=error.hint)
    return NodeError(f"{type(error).__name__}: {error}")
