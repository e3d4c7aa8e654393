"""What may be asked of a running execution: cancel, pause and resume it, answer its requests.

Place in the mailbox decides every race: of a cancel and a finish, or of two answers, the first in
the mailbox holds, and whoever asked is told once that is durable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from planwave.errors import Conflict, NodeError
from planwave.events.types import PAUSE_REASONS, REQUESTED, WAITING, PauseKind
from planwave.executor.driver.deadlines import DeadlineTimers
from planwave.executor.driver.parking import Parking
from planwave.executor.driver.publisher import Publisher
from planwave.executor.driver.slots import Slots
from planwave.executor.program import BoundNode
from planwave.executor.recovery.history import History, is_paused_by_request, seconds_between
from planwave.executor.recovery.replay import continue_with, reenter
from planwave.executor.requests import ANSWERED, PendingRequest, PendingRequests
from planwave.executor.state import Attempt, GraphRun
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, DataValue, Json
from planwave.graph.ports import has_output
from planwave.graph.protocols import ExecutionResult


class _Driver(Protocol):
    """What commands need of the execution they are for."""

    publisher: Publisher
    slots: Slots
    deadlines: DeadlineTimers[Any]
    root: GraphRun
    history: History | None

    def time(self) -> float: ...
    def cancel_task(self, attempt: Attempt) -> None: ...


class _Reducer(Protocol):
    """What commands need of those who settle outcomes."""

    requests: PendingRequests
    parking: Parking
    emit: Any
    pause_reason: PauseKind | None
    error: dict[str, Any] | None

    @property
    def is_ending(self) -> bool: ...
    def decide(self) -> None: ...
    def end_attempt(self, attempt: Attempt) -> None: ...
    def cancel_nested_runs(self, attempt: Attempt, cause: str) -> None: ...
    def cancel_stored(self, history: History, path: str, cause: str) -> None: ...
    def cancel_graph_run(self, graph_run: GraphRun, cause: str) -> None: ...
    def mark_changed(self, graph_run: GraphRun) -> None: ...
    def succeeded(self, attempt: Attempt, result: ExecutionResult) -> None: ...
    def failed(self, attempt: Attempt, error: BaseException) -> None: ...


class CommandReducer:
    """Settles what callers and timers ask for. Every method runs inside a turn of the driver.

    Attributes:
        cancel_cause: Why the execution was cancelled, "" where it was not.
    """

    def __init__(self, driver: _Driver, reducer: _Reducer) -> None:
        self._driver, self._reducer = driver, reducer
        self.cancel_cause = ""
        self._paused_at: float | None = None
        self._paused_s = self._extended_s = 0.0

    def release(self) -> None:
        """Forget the driver; nothing is settled any more."""
        del self._driver, self._reducer

    # -- the whole execution -----------------------------------------------------------------------

    def cancel_all(self, graph_run: GraphRun, cause: str) -> None:
        """Cancel everything that is not settled."""
        self._reducer.decide()  # what was in the mailbox before comes first
        if not self._reducer.is_ending:
            self.cancel_cause = cause
            self._reducer.cancel_graph_run(graph_run, cause)

    def time_out(self, graph_run: GraphRun, limit_s: float) -> None:
        """The execution's own deadline came; pauses do not count."""
        self._reducer.decide()
        if self._reducer.is_ending:
            return
        now = self._driver.time()
        paused_s = self._paused_s + (0.0 if self._paused_at is None else now - self._paused_at)
        more_s, self._extended_s = paused_s - self._extended_s, paused_s
        if more_s > 1e-3:
            self._driver.deadlines.after(more_s, (self.time_out, graph_run, limit_s))
        else:
            message = f"the execution did not finish within {limit_s:g} s"
            self.fail_execution({"code": "run-timeout", "message": message})

    def fail_execution(self, error: dict[str, Any]) -> None:
        """Fail the execution; what is not settled is cancelled."""
        self._reducer.error = error
        self._reducer.cancel_graph_run(self._driver.root, error["message"])
        self._reducer.decide()

    def request_pause(self, _: GraphRun, reason: str) -> None:
        """Start nothing more; what is at work goes on to its end."""
        self._require_not_ending()
        if self._reducer.pause_reason == REQUESTED:
            return
        self._driver.slots.close()
        self.record_pause(REQUESTED, reason)

    def record_pause(self, kind: PauseKind, reason: str | None = None) -> None:
        """Say that the execution is paused, how, and why."""
        self._reducer.pause_reason = kind
        if self._paused_at is None:
            self._paused_at = self._driver.time()
        self._reducer.emit(
            "execution.paused", {"reason": reason or PAUSE_REASONS[kind], "kind": kind}
        )

    def request_resume(self, _: GraphRun, reason: str) -> None:
        """Go on after a pause.

        Raises:
            Conflict: ``not-paused``: nothing but an answer helps, or nothing is held up.
        """
        self._require_not_ending()
        if not is_paused_by_request(self._reducer.pause_reason):
            raise Conflict(
                "the execution is not paused by request",
                code="not-paused",
                hint="answer its open requests" if self._reducer.requests else None,
            )
        self.record_resume(reason)
        self._driver.slots.reopen()

    def begin(self) -> None:
        """Go on counting the pause in which the execution is taken up, if it is paused."""
        if self._reducer.pause_reason is not None:
            self._paused_at = self._driver.time()

    def resume_recovered(self) -> None:
        """The execution is taken up because its process ended."""
        self.record_resume("recovery")

    def record_resume(self, reason: str) -> None:
        """Say that the execution is paused no more, and why."""
        self._reducer.pause_reason = None
        if self._paused_at is not None:
            self._paused_s += self._driver.time() - self._paused_at
            self._paused_at = None
        data = {"reason": reason, "epoch": self._driver.publisher.epoch}
        self._reducer.emit("execution.resumed", data)

    def _require_not_ending(self) -> None:
        self._reducer.decide()
        if self._reducer.is_ending:
            raise Conflict("the execution has just ended")

    # -- one node ----------------------------------------------------------------------------------

    def cancel_node(self, path: str, cause: str) -> None:
        """Cancel one node; what depends on it is blocked.

        Raises:
            Conflict: ``not-running``: it neither runs nor waits.
        """
        self._require_not_ending()
        request = self._reducer.requests.cancel(path)
        if request is not None and request.attempt is None:
            self._record_stored("node.cancelled", {"cause": cause}, path, request.attempt_number)
            return
        attempt = request.attempt if request is not None else self._active_attempt(path)
        if attempt is None and self._cancel_parked(path, cause):
            return
        if attempt is None:
            raise Conflict(
                f"node {path!r} neither runs nor waits",
                code="not-running",
                hint="cancel the whole execution, or wait until the node has started",
            )
        graph_run, node = attempt.graph_run, attempt.node
        if request is None:
            self._reducer.end_attempt(attempt)
            self._driver.cancel_task(attempt)
        graph_run.record_cancelled(path, cause)
        self._reducer.emit("node.cancelled", {"cause": cause}, path, attempt.number)
        self._reducer.mark_changed(graph_run)
        graph_run.schedule.cancelled(node, cause)
        self._reducer.parking.mark_active(graph_run)
        self._reducer.parking.unpark(path)

    def _cancel_parked(self, path: str, cause: str) -> bool:
        """Cancel a parked node of a nested run that nobody has asked for again; False for others."""
        past = self._driver.history
        attempt = None if past is None else past.nested_runs.parked_attempt(path)
        if past is None or attempt is None:
            return False
        self._reducer.cancel_stored(past, path, cause)
        self._record_stored("node.cancelled", {"cause": cause}, path, attempt)
        return True

    def _active_attempt(self, path: str) -> Attempt | None:
        return next((f for f in self._driver.root.active_attempts() if f.path == path), None)

    # -- requests ----------------------------------------------------------------------------------

    def start_request_timer(self, request_id: str, request: PendingRequest) -> None:
        """Set the deadline of a request, where it has one."""
        limit_s = request.suspension.timeout_s
        if limit_s is not None:
            passed = seconds_between(request.since, self._driver.publisher.time())
            left = max(limit_s - passed, 0.0)
            self._driver.deadlines.after(left, (self.expire_request, request_id, None))

    def expire_request(self, request_id: str, _: object) -> None:
        """Nobody answered in time: the node goes on with the answer for that case."""
        self._reducer.decide()  # what was in the mailbox before may have closed it
        requests = self._reducer.requests
        if request_id in requests and requests.claim(request_id):
            answer = next(r for i, r in requests if i == request_id).suspension.timeout_answer
            self._answer(request_id, answer, "timeout")

    def answer_request(self, request_id: str, answer: Json) -> None:
        """A waiting node goes on with an answer.

        Raises:
            Conflict, Gone: ``request-answered``, ``request-closed``: something else came first.
        """
        self._reducer.decide()
        self._answer(request_id, answer)

    def _answer(self, request_id: str, answer: Json, by: str = ANSWERED) -> None:
        request = self._reducer.requests.close(request_id, by)
        if request is None:
            raise self._reducer.requests.refusal_error(request_id)
        if self._reducer.pause_reason == WAITING:
            self.record_resume("answered")
        data = {"request_id": request_id, "answer": answer}
        if by != ANSWERED:
            data["by"] = by
        asked = request.attempt
        if asked is None:
            self._record_stored("node.answered", data, request.path, request.attempt_number)
            return
        self._reducer.emit("node.answered", data, asked.path, asked.number)
        asked.graph_run.schedule.answered(asked.node)
        self._reducer.parking.mark_active(asked.graph_run)
        self._reducer.parking.unpark(asked.path)
        following = (
            reenter(asked)
            if request.is_interrupted
            else continue_with(asked, request.suspension.state, answer)
        )
        asked.graph_run.attempts[asked.node] = following
        if request.is_interrupted:
            self.apply_decision(following, answer)
        else:
            self._driver.slots.enqueue(following)

    def _record_stored(
        self, kind: str, data: dict[str, Any], path: str, attempt: int | None
    ) -> None:
        """Tell what becomes of a stored node; the nodes it is inside of go on."""
        self._reducer.parking.record_stored(kind, data, path, attempt)
        self._reducer.parking.unpark(path)

    def apply_decision(self, attempt: Attempt, answer: Json) -> None:
        """Have a node that was cut off become what a person said."""
        if not self._resolve_interrupted(attempt, answer):
            self._driver.slots.enqueue(attempt)

    def _resolve_interrupted(self, attempt: Attempt, answer: Json) -> bool:
        """Settle a node that was cut off as was decided; False where it is to run again."""
        said = cast("Mapping[str, Json]", answer if isinstance(answer, Mapping) else {})
        if said.get("decision") == "give_result":
            step = attempt.graph_run.program.steps[attempt.node]
            self._reducer.succeeded(attempt, ExecutionResult(_outputs(step, said.get("value"))))
            return True
        if said.get("decision") == "fail":
            error = NodeError(
                f"node {attempt.path!r} was cut off, and it was decided to let it fail",
                code="interrupted",
            )
            self._reducer.failed(attempt, error)
            return True
        return False


def _outputs(step: BoundNode, value: Json) -> dict[str, DataValue]:
    """Give a result as handles: by name where it is an object of the node's outputs."""
    if isinstance(value, dict):
        given = cast("dict[str, Json]", value)
        if given and all(has_output(step.facts, handle) for handle in given):
            return {handle: DataValue("any", each) for handle, each in given.items()}
    fixed = [port.name for port in step.facts.outputs if port.name in step.handles]
    handle = DEFAULT_SOURCE_HANDLE if DEFAULT_SOURCE_HANDLE in fixed or not fixed else fixed[0]
    return {handle: DataValue("any", value)}
