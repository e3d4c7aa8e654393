"""What may be asked of a running execution: cancel, pause and resume it, answer its requests.

Place in the mailbox decides every race: of a cancel and a finish, or of two answers, the first in
the mailbox holds, and whoever asked is told once that is durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from planwave.errors import Conflict, NodeError
from planwave.events.vocabulary import PAUSE_REASONS, REQUESTED, WAITING, PauseKind
from planwave.executor.deadlines import Deadlines
from planwave.executor.flight import Flight, Scope
from planwave.executor.parking import Parking
from planwave.executor.past import Past, is_held, seconds_between
from planwave.executor.program import Step
from planwave.executor.publisher import Publisher
from planwave.executor.replay import again, answered
from planwave.executor.requests import ANSWERED, OpenRequest, Requests
from planwave.executor.slots import Slots
from planwave.graph.capabilities import ExecutionResult
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Json
from planwave.graph.ports import has_output
from planwave.graph.values import DataValue


class _Driver(Protocol):
    """What commands need of the execution they are for."""

    publisher: Publisher
    slots: Slots
    deadlines: Deadlines[Any]
    root: Scope
    past: Past | None

    def time(self) -> float: ...
    def abort(self, flight: Flight) -> None: ...


class _Settler(Protocol):
    """What commands need of those who settle outcomes."""

    requests: Requests
    parking: Parking
    emit: Any
    pause: PauseKind | None
    error: dict[str, Any] | None

    @property
    def is_ending(self) -> bool: ...
    def decide(self) -> None: ...
    def land(self, flight: Flight) -> None: ...
    def abort_children(self, flight: Flight, cause: str) -> None: ...
    def close_stored(self, past: Past, path: str, cause: str) -> None: ...
    def cancel_scope(self, scope: Scope, cause: str) -> None: ...
    def touch(self, scope: Scope) -> None: ...
    def gave(self, flight: Flight, result: ExecutionResult) -> None: ...
    def failed(self, flight: Flight, error: BaseException) -> None: ...


class Commands:
    """Settles what callers and timers ask for. Every method runs inside a turn of the driver.

    Attributes:
        cause: Why the execution was cancelled, "" where it was not.
    """

    def __init__(self, driver: _Driver, settler: _Settler) -> None:
        self._driver, self._settler = driver, settler
        self.cause = ""
        self._paused_at: float | None = None
        self._paused_s = self._forgiven_s = 0.0

    def let_go(self) -> None:
        """Forget the driver; nothing is settled any more."""
        del self._driver, self._settler

    # -- the whole execution -----------------------------------------------------------------------

    def cancelled(self, scope: Scope, cause: str) -> None:
        """Cancel everything that is not settled."""
        self._settler.decide()  # what was in the mailbox before comes first
        if not self._settler.is_ending:
            self.cause = cause
            self._settler.cancel_scope(scope, cause)

    def out_of_time(self, scope: Scope, limit_s: float) -> None:
        """The execution's own deadline came; pauses do not count."""
        self._settler.decide()
        if self._settler.is_ending:
            return
        now = self._driver.time()
        paused_s = self._paused_s + (0.0 if self._paused_at is None else now - self._paused_at)
        more_s, self._forgiven_s = paused_s - self._forgiven_s, paused_s
        if more_s > 1e-3:
            self._driver.deadlines.after(more_s, (self.out_of_time, scope, limit_s))
        else:
            message = f"the execution did not finish within {limit_s:g} s"
            self.fail_all({"code": "run-timeout", "message": message})

    def fail_all(self, error: dict[str, Any]) -> None:
        """Fail the execution; what is not settled is cancelled."""
        self._settler.error = error
        self._settler.cancel_scope(self._driver.root, error["message"])
        self._settler.decide()

    def paused(self, _: Scope, reason: str) -> None:
        """Start nothing more; what is at work goes on to its end."""
        self._refuse_ending()
        if self._settler.pause == REQUESTED:
            return
        self._driver.slots.close()
        self.pause(REQUESTED, reason)

    def pause(self, kind: PauseKind, reason: str | None = None) -> None:
        """Say that the execution is paused, how, and why."""
        self._settler.pause = kind
        if self._paused_at is None:
            self._paused_at = self._driver.time()
        self._settler.emit(
            "execution.paused", {"reason": reason or PAUSE_REASONS[kind], "kind": kind}
        )

    def resumed(self, _: Scope, reason: str) -> None:
        """Go on after a pause.

        Raises:
            Conflict: ``not-paused``: nothing but an answer helps, or nothing is held up.
        """
        self._refuse_ending()
        if not is_held(self._settler.pause):
            raise Conflict(
                "the execution is not paused by request",
                code="not-paused",
                hint="answer its open requests" if self._settler.requests else None,
            )
        self.go_on(reason)
        self._driver.slots.reopen()

    def begin(self) -> None:
        """Go on counting the pause in which the execution is taken up, if it is paused."""
        if self._settler.pause is not None:
            self._paused_at = self._driver.time()

    def recovered(self) -> None:
        """The execution is taken up because its process ended."""
        self.go_on("recovery")

    def go_on(self, reason: str) -> None:
        """Say that the execution is paused no more, and why."""
        self._settler.pause = None
        if self._paused_at is not None:
            self._paused_s += self._driver.time() - self._paused_at
            self._paused_at = None
        data = {"reason": reason, "epoch": self._driver.publisher.epoch}
        self._settler.emit("execution.resumed", data)

    def _refuse_ending(self) -> None:
        self._settler.decide()
        if self._settler.is_ending:
            raise Conflict("the execution has just ended")

    # -- one node ----------------------------------------------------------------------------------

    def node_cancelled(self, path: str, cause: str) -> None:
        """Cancel one node; what depends on it is blocked.

        Raises:
            Conflict: ``not-running``: it neither runs nor waits.
        """
        self._refuse_ending()
        request = self._settler.requests.drop(path)
        if request is not None and request.flight is None:
            self._tell_stored("node.cancelled", {"cause": cause}, path, request.attempt)
            return
        flight = request.flight if request is not None else self._flying(path)
        if flight is None and self._cancel_parked(path, cause):
            return
        if flight is None:
            raise Conflict(
                f"node {path!r} neither runs nor waits",
                code="not-running",
                hint="cancel the whole execution, or wait until the node has started",
            )
        scope, node = flight.scope, flight.node
        if request is None:
            self._settler.land(flight)
            self._driver.abort(flight)
        scope.cancelled(path, cause)
        self._settler.emit("node.cancelled", {"cause": cause}, path, flight.attempt)
        self._settler.touch(scope)
        scope.schedule.cancelled(node, cause)
        self._settler.parking.wake(scope)
        self._settler.parking.unpark(path)

    def _cancel_parked(self, path: str, cause: str) -> bool:
        """Cancel a parked node of a nested run that nobody has asked for again; False for others."""
        past = self._driver.past
        attempt = None if past is None else past.dormant.parked(path)
        if past is None or attempt is None:
            return False
        self._settler.close_stored(past, path, cause)
        self._tell_stored("node.cancelled", {"cause": cause}, path, attempt)
        return True

    def _flying(self, path: str) -> Flight | None:
        return next((f for f in self._driver.root.airborne() if f.path == path), None)

    # -- requests ----------------------------------------------------------------------------------

    def watch_request(self, request_id: str, request: OpenRequest) -> None:
        """Set the deadline of a request, where it has one."""
        limit_s = request.suspension.timeout_s
        if limit_s is not None:
            passed = seconds_between(request.since, self._driver.publisher.time())
            left = max(limit_s - passed, 0.0)
            self._driver.deadlines.after(left, (self.expired, request_id, None))

    def expired(self, request_id: str, _: object) -> None:
        """Nobody answered in time: the node goes on with the answer for that case."""
        self._settler.decide()  # what was in the mailbox before may have closed it
        requests = self._settler.requests
        if request_id in requests and requests.claim(request_id):
            answer = next(r for i, r in requests if i == request_id).suspension.timeout_answer
            self._answer(request_id, answer, "timeout")

    def answered(self, request_id: str, answer: Json) -> None:
        """A waiting node goes on with an answer.

        Raises:
            Conflict, Gone: ``request-answered``, ``request-closed``: something else came first.
        """
        self._settler.decide()
        self._answer(request_id, answer)

    def _answer(self, request_id: str, answer: Json, by: str = ANSWERED) -> None:
        request = self._settler.requests.take(request_id, by)
        if request is None:
            raise self._settler.requests.refusal(request_id)
        if self._settler.pause == WAITING:
            self.go_on("answered")
        data = {"request_id": request_id, "answer": answer}
        if by != ANSWERED:
            data["by"] = by
        asked = request.flight
        if asked is None:
            self._tell_stored("node.answered", data, request.path, request.attempt)
            return
        self._settler.emit("node.answered", data, asked.path, asked.attempt)
        asked.scope.schedule.answered(asked.node)
        self._settler.parking.wake(asked.scope)
        self._settler.parking.unpark(asked.path)
        following = (
            again(asked)
            if request.is_interrupted
            else answered(asked, request.suspension.state, answer)
        )
        asked.scope.flights[asked.node] = following
        if request.is_interrupted:
            self.decided(following, answer)
        else:
            self._driver.slots.enqueue(following)

    def _tell_stored(self, kind: str, data: dict[str, Any], path: str, attempt: int | None) -> None:
        """Tell what becomes of a stored node; the nodes it is inside of go on."""
        self._settler.parking.tell_stored(kind, data, path, attempt)
        self._settler.parking.unpark(path)

    def decided(self, flight: Flight, answer: Json) -> None:
        """Have a node that was cut off become what a person said."""
        if not self._settle_interrupted(flight, answer):
            self._driver.slots.enqueue(flight)

    def _settle_interrupted(self, flight: Flight, answer: Json) -> bool:
        """Settle a node that was cut off as was decided; False where it is to run again."""
        said = cast("Mapping[str, Json]", answer if isinstance(answer, Mapping) else {})
        if said.get("decision") == "give_result":
            step = flight.scope.program.steps[flight.node]
            self._settler.gave(flight, ExecutionResult(_outputs(step, said.get("value"))))
            return True
        if said.get("decision") == "fail":
            error = NodeError(
                f"node {flight.path!r} was cut off, and it was decided to let it fail",
                code="interrupted",
            )
            self._settler.failed(flight, error)
            return True
        return False


def _outputs(step: Step, value: Json) -> dict[str, DataValue]:
    """Give a result as handles: by name where it is an object of the node's outputs."""
    if isinstance(value, dict):
        given = cast("dict[str, Json]", value)
        if given and all(has_output(step.facts, handle) for handle in given):
            return {handle: DataValue("any", each) for handle, each in given.items()}
    fixed = [port.name for port in step.facts.outputs if port.name in step.handles]
    handle = DEFAULT_SOURCE_HANDLE if DEFAULT_SOURCE_HANDLE in fixed or not fixed else fixed[0]
    return {handle: DataValue("any", value)}
