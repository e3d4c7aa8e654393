"""Tells a new schedule what is known to have become of its nodes, in the order it happened.

The kernel decides alike on the same facts in the same order, so what followed from them need not be
told: only outcomes, answers and starts are. What had no outcome yet is left to be taken up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from planwave.events import Event
from planwave.executor.decisions import Decisions, Status
from planwave.executor.flight import PARKED, QUEUED, Flight, Scope
from planwave.executor.past import seconds_between
from planwave.executor.requests import Requests, request_of
from planwave.executor.runtime import Outputs
from planwave.graph.values import DataValue


class Unfinished(NamedTuple):
    """What had not ended, each list in the order the nodes became ready.

    Attributes:
        cut_off: Attempts that had begun.
        ready: Attempts that had not.
        retries: Attempts that wait for their time, and for how many seconds more.
    """

    cut_off: list[Flight]
    ready: list[Flight]
    retries: list[tuple[Flight, float]]


def replay(scope: Scope, facts: Iterable[Event], requests: Requests, now: str) -> Unfinished:
    """Bring a new scope to where the stored events of its graph leave it.

    Args:
        scope: The graph, nothing of which has been started.
        facts: Its own events, in order.
        requests: Gets those that are still open.
        now: The time, as events carry it.
    """
    told = _Replay(scope, requests)
    told.follow(scope.schedule.start())
    for event in facts:
        if event.type == "wave.started":
            scope.waves_ahead.pop(event.data["wave"], None)
        elif event.type in _FACTS:
            told.tell(event)
    told.follow(scope.schedule.decide())
    return told.unfinished(now)


class _Replay:
    def __init__(self, scope: Scope, requests: Requests) -> None:
        self._scope = scope
        self._requests = requests
        self._index = scope.program.topology.index
        self._began: set[int] = set()
        self._due: dict[int, tuple[str, float]] = {}

    def follow(self, decisions: Decisions) -> None:
        """Take note of what may start; all else that follows is in the events."""
        for node, via in decisions.starts:
            if via is not None:
                self._scope.runtime.winners[node] = via
            self._scope.flights[node] = Flight(self._scope, node, self._scope.before + 1)

    def tell(self, event: Event) -> None:
        """Tell one fact about a node."""
        self.follow(self._scope.schedule.decide())
        path = event.path or ""
        _FACTS[event.type](self, self._index[path[len(self._scope.prefix) :]], event)

    def unfinished(self, now: str) -> Unfinished:
        """Say what had no outcome."""
        left = Unfinished([], [], [])
        for node, flight in self._scope.flights.items():
            if flight.phase is PARKED:
                continue
            if node in self._due:
                since, delay_s = self._due[node]
                passed = seconds_between(since, now)
                left.retries.append((flight, max(delay_s - passed, 0.0)))
            elif node in self._began:
                left.cut_off.append(flight)
            else:
                left.ready.append(flight)
        return left

    # -- facts -------------------------------------------------------------------------------------

    def started(self, node: int, event: Event) -> None:
        """An attempt had begun; the arrival that won a ``join: any`` is obeyed."""
        flight = self._scope.flights[node]
        flight.attempt = event.attempt or 1
        flight.reentry = event.data.get("reentry", 0)
        via = event.data.get("via")
        if via is not None:
            edges = self._scope.program.graph.edges
            feeds = self._scope.program.topology.incoming[node]
            self._scope.runtime.winners[node] = next(e for e in feeds if edges[e].id == via)
        self._began.add(node)
        self._due.pop(node, None)

    def completed(self, node: int, event: Event) -> None:
        """It had a result; one that was given from outside is settled already."""
        if event.data.get("given"):
            return
        outputs = self._scope.runtime.outputs[node] = _outputs_of(event.data)
        self._end(node)
        self._scope.schedule.completed(node, outputs)

    def failed(self, node: int, event: Event) -> None:
        """It had failed for good."""
        scope, error, path = self._scope, event.data["error"], event.path or ""
        outputs: Outputs | None = None
        if event.data.get("handled"):
            outputs = scope.runtime.outputs[node] = _outputs_of(event.data)
            scope.handled.append(path)
        else:
            scope.note_failure(path, error, bool(event.data.get("retryable")))
        self._end(node)
        scope.schedule.failed(node, f"{error['code']}: {error['message']}", outputs)

    def retrying(self, node: int, event: Event) -> None:
        """It was to be tried again."""
        following = Flight(self._scope, node, event.data["next_attempt"])
        self._scope.flights[node] = following
        self._began.discard(node)
        self._due[node] = (event.at, event.data["delay_s"])

    def waiting(self, node: int, event: Event) -> None:
        """It waited for an answer."""
        flight = self._scope.flights[node]
        flight.attempt = event.attempt or 1
        flight.ran_s = event.data.get("duration_s", 0.0)
        flight.own_s = event.data.get("own_time_s", flight.ran_s)
        self._requests.add(event.data["request_id"], request_of(event, flight))
        self._end(node)
        self._scope.schedule.waits(node)

    def answered(self, node: int, event: Event) -> None:
        """It was answered."""
        request = self._requests.take(event.data["request_id"])
        if request is None or request.flight is None:
            return
        asked = request.flight
        if request.is_interrupted:
            following = again(asked)
            following.decided = event.data["answer"]
        else:
            following = answered(asked, request.suspension.state, event.data["answer"])
        self._scope.flights[node] = following
        self._scope.schedule.answered(node)

    def parked(self, node: int, event: Event) -> None:
        """It waited for what is inside it."""
        flight = self._scope.flights[node]
        flight.attempt = event.attempt or 1
        flight.ran_s = event.data.get("duration_s", 0.0)
        flight.own_s = event.data.get("own_time_s", 0.0)
        flight.phase = PARKED
        flight.begun = True
        self._began.discard(node)
        self._due.pop(node, None)
        self._scope.schedule.waits(node)

    def unparked(self, node: int, event: Event) -> None:
        """It went on."""
        self._scope.flights[node].phase = QUEUED
        self._scope.schedule.answered(node)

    def cancelled(self, node: int, event: Event) -> None:
        """It was cancelled by itself; where that followed from something else, it is known."""
        self._requests.drop(event.path or "")
        if self._scope.schedule.status[node] not in (Status.RUNNING, Status.WAITING):
            return
        self._end(node)
        self._scope.cancelled(event.path or "", event.data.get("cause") or "")
        self._scope.schedule.cancelled(node, event.data.get("cause") or "")

    def _end(self, node: int) -> None:
        self._scope.flights.pop(node, None)
        self._began.discard(node)
        self._due.pop(node, None)


def answered(asked: Flight, state: Any, answer: Any) -> Flight:
    """Give the flight that goes on after an answer."""
    following = Flight(
        asked.scope, asked.node, asked.attempt, resume=(state, answer), answers=asked.answers + 1
    )
    following.begun = True
    return asked.followed_by(following)


def again(cut_off: Flight) -> Flight:
    """Give the flight that makes an attempt that was cut off once more."""
    following = Flight(
        cut_off.scope, cut_off.node, cut_off.attempt, cut_off.resume, cut_off.answers,
        cut_off.reentry + 1,
    )  # fmt: skip
    return cut_off.followed_by(following)


def _outputs_of(data: Mapping[str, Any]) -> Outputs:
    given: Mapping[str, Any] = data.get("outputs") or {}
    return {handle: DataValue(each["type"], each["value"]) for handle, each in given.items()}


_FACTS: Final[Mapping[str, Callable[[_Replay, int, Event], None]]] = {
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
