"""Tells a new schedule what is known to have become of its nodes, in the order it happened.

The kernel decides alike on the same facts in the same order, so what followed from them need not be
told: only outcomes, answers and starts are. What had no outcome yet is left to be taken up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from planwave.events import Event
from planwave.executor.node_api.runtime import Outputs
from planwave.executor.recovery.history import seconds_between
from planwave.executor.requests import PendingRequests, request_from_event
from planwave.executor.scheduling.decisions import Decisions, NodeStatus
from planwave.executor.state import PARKED, QUEUED, Attempt, GraphRun
from planwave.graph.model import DataValue


class Unfinished(NamedTuple):
    """What had not ended, each list in the order the nodes became ready.

    Attributes:
        interrupted: Attempts that had begun.
        ready: Attempts that had not.
        retries: Attempts that wait for their time, and for how many seconds more.
    """

    interrupted: list[Attempt]
    ready: list[Attempt]
    retries: list[tuple[Attempt, float]]


def replay(
    graph_run: GraphRun, events: Iterable[Event], requests: PendingRequests, now: str
) -> Unfinished:
    """Bring a new scope to where the stored events of its graph leave it.

    Args:
        graph_run: The graph, nothing of which has been started.
        events: Its own events, in order.
        requests: Gets those that are still open.
        now: The time, as events carry it.
    """
    told = _Replay(graph_run, requests)
    told.add_starts(graph_run.schedule.start())
    for event in events:
        if event.type == "wave.started":
            graph_run.unstarted_waves.pop(event.data["wave"], None)
        elif event.type in _APPLY:
            told.apply(event)
    told.add_starts(graph_run.schedule.decide())
    return told.unfinished(now)


class _Replay:
    def __init__(self, graph_run: GraphRun, requests: PendingRequests) -> None:
        self._scope = graph_run
        self._requests = requests
        self._index = graph_run.program.topology.index
        self._begun: set[int] = set()
        self._retry_times: dict[int, tuple[str, float]] = {}

    def add_starts(self, decisions: Decisions) -> None:
        """Take note of what may start; all else that follows is in the events."""
        for node, via in decisions.starts:
            if via is not None:
                self._scope.runtime.join_winners[node] = via
            self._scope.attempts[node] = Attempt(self._scope, node, self._scope.attempt_offset + 1)

    def apply(self, event: Event) -> None:
        """Tell one fact about a node."""
        self.add_starts(self._scope.schedule.decide())
        path = event.path or ""
        _APPLY[event.type](self, self._index[path[len(self._scope.prefix) :]], event)

    def unfinished(self, now: str) -> Unfinished:
        """Say what had no outcome."""
        left = Unfinished([], [], [])
        for node, attempt in self._scope.attempts.items():
            if attempt.phase is PARKED:
                continue
            if node in self._retry_times:
                since, delay_s = self._retry_times[node]
                passed = seconds_between(since, now)
                left.retries.append((attempt, max(delay_s - passed, 0.0)))
            elif node in self._begun:
                left.interrupted.append(attempt)
            else:
                left.ready.append(attempt)
        return left

    # -- facts -------------------------------------------------------------------------------------

    def started(self, node: int, event: Event) -> None:
        """An attempt had begun; the arrival that won a ``join: any`` is obeyed."""
        attempt = self._scope.attempts[node]
        attempt.number = event.attempt or 1
        attempt.reentries = event.data.get("reentry", 0)
        via = event.data.get("via")
        if via is not None:
            edges = self._scope.program.graph.edges
            feeds = self._scope.program.topology.incoming[node]
            self._scope.runtime.join_winners[node] = next(e for e in feeds if edges[e].id == via)
        self._begun.add(node)
        self._retry_times.pop(node, None)

    def completed(self, node: int, event: Event) -> None:
        """It had a result; one that was given from outside is settled already."""
        if event.data.get("given"):
            return
        outputs = self._scope.runtime.outputs[node] = _outputs_from_json(event.data)
        self._end(node)
        self._scope.schedule.completed(node, outputs)

    def failed(self, node: int, event: Event) -> None:
        """It had failed for good."""
        graph_run, error, path = self._scope, event.data["error"], event.path or ""
        outputs: Outputs | None = None
        if event.data.get("handled"):
            outputs = graph_run.runtime.outputs[node] = _outputs_from_json(event.data)
            graph_run.handled_failures.append(path)
        else:
            graph_run.record_failure(path, error, bool(event.data.get("retryable")))
        self._end(node)
        graph_run.schedule.failed(node, f"{error['code']}: {error['message']}", outputs)

    def retrying(self, node: int, event: Event) -> None:
        """It was to be tried again."""
        following = Attempt(self._scope, node, event.data["next_attempt"])
        self._scope.attempts[node] = following
        self._begun.discard(node)
        self._retry_times[node] = (event.at, event.data["delay_s"])

    def waiting(self, node: int, event: Event) -> None:
        """It waited for an answer."""
        attempt = self._scope.attempts[node]
        attempt.number = event.attempt or 1
        attempt.elapsed_s = event.data.get("duration_s", 0.0)
        attempt.own_s = event.data.get("own_time_s", attempt.elapsed_s)
        self._requests.add(event.data["request_id"], request_from_event(event, attempt))
        self._end(node)
        self._scope.schedule.waits(node)

    def answered(self, node: int, event: Event) -> None:
        """It was answered."""
        request = self._requests.close(event.data["request_id"])
        if request is None or request.attempt is None:
            return
        asked = request.attempt
        if request.is_interrupted:
            following = reenter(asked)
            following.decision = event.data["answer"]
        else:
            following = continue_with(asked, request.suspension.state, event.data["answer"])
        self._scope.attempts[node] = following
        self._scope.schedule.answered(node)

    def parked(self, node: int, event: Event) -> None:
        """It waited for what is inside it."""
        attempt = self._scope.attempts[node]
        attempt.number = event.attempt or 1
        attempt.elapsed_s = event.data.get("duration_s", 0.0)
        attempt.own_s = event.data.get("own_time_s", 0.0)
        attempt.phase = PARKED
        attempt.was_started = True
        self._begun.discard(node)
        self._retry_times.pop(node, None)
        self._scope.schedule.waits(node)

    def unparked(self, node: int, event: Event) -> None:
        """It went on."""
        self._scope.attempts[node].phase = QUEUED
        self._scope.schedule.answered(node)

    def cancelled(self, node: int, event: Event) -> None:
        """It was cancelled by itself; where that followed from something else, it is known."""
        self._requests.cancel(event.path or "")
        if self._scope.schedule.status[node] not in (NodeStatus.RUNNING, NodeStatus.WAITING):
            return
        self._end(node)
        self._scope.record_cancelled(event.path or "", event.data.get("cause") or "")
        self._scope.schedule.cancelled(node, event.data.get("cause") or "")

    def _end(self, node: int) -> None:
        self._scope.attempts.pop(node, None)
        self._begun.discard(node)
        self._retry_times.pop(node, None)


def continue_with(waiting: Attempt, state: Any, answer: Any) -> Attempt:
    """Give the flight that goes on after an answer."""
    following = Attempt(
        waiting.graph_run,
        waiting.node,
        waiting.number,
        resume_args=(state, answer),
        answer_count=waiting.answer_count + 1,
    )
    following.was_started = True
    return waiting.replaced_by(following)


def reenter(interrupted: Attempt) -> Attempt:
    """Give the flight that makes an attempt that was cut off once more."""
    following = Attempt(
        interrupted.graph_run, interrupted.node, interrupted.number, interrupted.resume_args, interrupted.answer_count,
        interrupted.reentries + 1,
    )  # fmt: skip
    return interrupted.replaced_by(following)


def _outputs_from_json(data: Mapping[str, Any]) -> Outputs:
    given: Mapping[str, Any] = data.get("outputs") or {}
    return {handle: DataValue(each["type"], each["value"]) for handle, each in given.items()}


_APPLY: Final[Mapping[str, Callable[[_Replay, int, Event], None]]] = {
    "node.started": _Replay.started,
    "node.completed": _Replay.completed,
    "node.failed": _Replay.failed,
    "node.retrying": _Replay.retrying,
    "node.waiting": _Replay.waiting,
    "node.answered": _Replay.answered,
    "node.parked": _Replay.parked,
    "node.unparked": _Replay.unparked,
    "node.cancelled": _Replay.cancelled,
}
