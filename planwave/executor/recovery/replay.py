"""Replay of stored events: brings a new graph run to the state in which its events leave it.

The schedule makes the same decisions after the same outcomes in the same order. So only outcomes,
answers and starts are replayed; what followed from them follows again. Attempts without an outcome
are returned, for the driver to resume.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from planwave.errors import InvalidTransition
from planwave.events import Event
from planwave.events.types import (
    NODE_FAILED,
    PLAN_REFUSED,
    PLAN_REQUESTED,
    PLAN_REVISED,
    NodeAnswered,
    NodeBlocked,
    NodeCancelled,
    NodeCompleted,
    NodeFailed,
    NodeParked,
    NodeRetrying,
    NodeSkipped,
    NodeStarted,
    NodeUnparked,
    NodeWaiting,
    PlanRefused,
    PlanRequested,
    PlanRevised,
    typed_events,
)
from planwave.executor.recovery.history import seconds_between
from planwave.executor.requests import PendingRequests, request_from_event
from planwave.executor.scheduling.types import Decisions, NodeStatus, NotRun
from planwave.executor.state import PARKED, QUEUED, Attempt, GraphRun
from planwave.graph.model import Json
from planwave.graph.outputs import Outputs, outputs_from_json


class Unfinished(NamedTuple):
    """The attempts without an outcome, each list in the order in which the nodes became ready.

    Attributes:
        interrupted: Attempts that were running.
        ready: Attempts that had not started.
        retries: Attempts that wait for their backoff, with the seconds that are left.
        untold: Which nodes do not run, as no event says yet: a change was awaited when that could be decided.
    """

    interrupted: list[Attempt]
    ready: list[Attempt]
    retries: list[tuple[Attempt, float]]
    untold: Decisions

    def without(self, nodes: Collection[int]) -> Unfinished:
        """Return the attempts of all other nodes."""
        return Unfinished(
            [each for each in self.interrupted if each.node not in nodes],
            [each for each in self.ready if each.node not in nodes],
            [each for each in self.retries if each[0].node not in nodes],
            self.untold,
        )


def replay(
    graph_run: GraphRun, events: Iterable[Event], requests: PendingRequests, now: str
) -> Unfinished:
    """Apply the stored events of a graph run to it, and return its unfinished attempts.

    Args:
        graph_run: A new graph run.
        events: Its stored events, in order.
        requests: Open requests are added to these.
        now: The time, as events carry it.

    Raises:
        InvalidTransition: The graph run cannot have had these events.
    """
    events = list(events)
    replayed = _Replay(graph_run, requests, sum(each.type == PLAN_REVISED.name for each in events))
    asking = _failures_with_request(events)
    replayed.add_starts(graph_run.schedule.start())
    for event in typed_events(events):
        if (
            event.type == "plan.requested"
            or event.type == "plan.revised"
            or event.type == "plan.refused"
        ):
            replayed.follow_plan(event)
            continue
        replayed.stop_if_due()
        if event.type == "wave.started":
            graph_run.unstarted_waves.pop(event.data["wave"], None)
        elif (apply := _APPLY.get(event.type)) is not None:
            replayed.decide()
            apply(replayed, replayed.node_at(event), event)
            if event.seq in asking:
                replayed.await_change()
    replayed.stop_if_due()
    replayed.decide()
    return replayed.unfinished(now)


def _failures_with_request(events: Sequence[Event]) -> set[int]:
    """Return the numbers of the failures for which a change was requested at the end of their turn."""
    found, is_requested = set[int](), False
    for event in reversed(events):
        if event.type in (PLAN_REQUESTED.name, PLAN_REVISED.name, PLAN_REFUSED.name):
            is_requested = event.type == PLAN_REQUESTED.name and event.data["by"] == "failure"
        elif is_requested and event.type == NODE_FAILED.name and not event.data.get("handled"):
            found.add(event.seq)
    return found


class _Replay:
    def __init__(self, graph_run: GraphRun, requests: PendingRequests, changes: int) -> None:
        self._graph_run = graph_run
        self._requests = requests
        self._index = graph_run.program.topology.index
        self._started: set[int] = set()
        self._retry_times: dict[int, tuple[str, float]] = {}
        self._is_planning = False
        self._changes_to_come = changes
        self._not_run: tuple[list[NotRun], ...] = ([], [], [])
        self._told: set[int] = set()

    def follow_plan(self, event: PlanRequested | PlanRevised | PlanRefused) -> None:
        """Follow whether a change of the graph is awaited; one that was made forgives what failed before."""
        if event.type == "plan.requested" and event.data["by"] == "person":
            self.stop_if_due()  # it had a turn of its own: all that came before was decided
            self.decide()
        self._is_planning = event.type == "plan.requested"
        if event.type == "plan.revised":
            self._graph_run.held_stop = None
            self._changes_to_come -= 1

    def await_change(self) -> None:
        """Decide nothing from now on: a change of the graph is awaited."""
        self._is_planning = True

    def stop_if_due(self) -> None:
        """Stop the graph after a failure for which no change of it is awaited, and after which none was made."""
        if not (self._is_planning or self._changes_to_come):
            self._graph_run.stop()

    def decide(self) -> None:
        """Follow what the schedule decides: nothing, while its graph may become another one."""
        if not self._is_planning:
            self.add_starts(self._graph_run.schedule.decide())

    def add_starts(self, decisions: Decisions) -> None:
        """Create the attempts that the schedule starts; its other decisions are in the events, or will be."""
        for each, decided in zip(self._not_run, decisions[1:4], strict=True):
            each += decided
        for node, via in decisions.starts:
            if via is not None:
                self._graph_run.join_winners[node] = via
            self._graph_run.attempts[node] = Attempt(
                self._graph_run, node, self._graph_run.attempt_offset + 1
            )

    def node_at(self, event: Event) -> int:
        """Return the number of the node of an event."""
        node = self._index.get((event.path or "")[len(self._graph_run.prefix) :])
        if node is None:
            raise InvalidTransition(f"event {event.seq} is of an unknown node {event.path!r}")
        return node

    def _attempt(self, node: int, event: Event) -> Attempt:
        """Return the attempt of an event."""
        attempt = self._graph_run.attempts.get(node)
        if attempt is None:
            raise InvalidTransition(
                f"event {event.seq} ({event.type}) is of node {event.path!r}, which did not run"
            )
        return attempt

    def unfinished(self, now: str) -> Unfinished:
        """Return the attempts without an outcome."""
        unfinished = Unfinished([], [], [], self._untold())
        for node, attempt in self._graph_run.attempts.items():
            if attempt.phase is PARKED:
                continue
            if node in self._retry_times:
                since, delay_s = self._retry_times[node]
                passed = seconds_between(since, now)
                unfinished.retries.append((attempt, max(delay_s - passed, 0.0)))
            elif node in self._started:
                unfinished.interrupted.append(attempt)
            else:
                unfinished.ready.append(attempt)
        return unfinished

    def _untold(self) -> Decisions:
        """Return which nodes do not run, as no event says although it was decided here.

        Of the facts of one turn the driver decides nothing if the last of them asks for a change.
        """
        told = self._told if self._is_planning else range(len(self._index))
        skipped, blocked, cancelled = (
            [each for each in decided if each[0] not in told] for decided in self._not_run
        )
        return Decisions((), skipped, blocked, cancelled, (), None, paused=False)

    def not_run(self, node: int, event: NodeSkipped | NodeBlocked) -> None:
        """Take note that an event says of a node that it does not run."""
        self._told.add(node)

    # -- events ------------------------------------------------------------------------------------

    def started(self, node: int, event: NodeStarted) -> None:
        """Mark an attempt as started, with the stored winner of its ``join: any``."""
        attempt = self._attempt(node, event)
        attempt.number = event.attempt or 1
        attempt.reentries = event.data.get("reentry", 0)
        via = event.data.get("via")
        if via is not None:
            edges = self._graph_run.program.graph.edges
            incoming = self._graph_run.program.topology.incoming[node]
            winners = [edge for edge in incoming if edges[edge].id == via]
            if not winners:
                raise InvalidTransition(f"event {event.seq} is of an unknown edge {via!r}")
            self._graph_run.join_winners[node] = winners[0]
        self._started.add(node)
        self._retry_times.pop(node, None)

    def completed(self, node: int, event: NodeCompleted) -> None:
        """Complete a node; a preset node is completed already."""
        if event.data.get("given"):
            return
        outputs = self._graph_run.outputs[node] = outputs_from_json(event.data.get("outputs"))
        self._end(node)
        self._graph_run.schedule.completed(node, outputs)

    def failed(self, node: int, event: NodeFailed) -> None:
        """Fail a node."""
        graph_run, error, path = self._graph_run, event.data["error"], event.path or ""
        outputs: Outputs | None = None
        if event.data.get("handled"):
            outputs = graph_run.outputs[node] = outputs_from_json(event.data.get("outputs"))
            graph_run.handled_failures.append(path)
        else:
            graph_run.record_failure(path, error, bool(event.data.get("retryable")))
        self._end(node)
        graph_run.fail(node, f"{error['code']}: {error['message']}", outputs)

    def retrying(self, node: int, event: NodeRetrying) -> None:
        """Schedule the next attempt of a node."""
        following = Attempt(self._graph_run, node, event.data["next_attempt"])
        self._graph_run.attempts[node] = following
        self._started.discard(node)
        self._retry_times[node] = (event.at, event.data["delay_s"])

    def waiting(self, node: int, event: NodeWaiting) -> None:
        """Make a node wait for an answer."""
        attempt = self._attempt(node, event)
        attempt.number = event.attempt or 1
        attempt.elapsed_s = event.data.get("duration_s", 0.0)
        attempt.own_s = event.data.get("own_time_s", attempt.elapsed_s)
        attempt.depends_on = event.data.get("depends_on")
        attempt.replan = event.data.get("replan")
        self._requests.add(event.data["request_id"], request_from_event(event, attempt))
        self._end(node)
        self._graph_run.schedule.waits(node)

    def answered(self, node: int, event: NodeAnswered) -> None:
        """Resume a node after its answer."""
        request = self._requests.close(event.data["request_id"])
        if request is None or request.attempt is None:
            return
        waiting = request.attempt
        if request.is_interrupted:
            following = reenter(waiting)
            following.decision = event.data["answer"]
        else:
            following = continue_with(waiting, request.suspension.state, event.data["answer"])
        self._graph_run.attempts[node] = following
        self._graph_run.schedule.answered(node)

    def parked(self, node: int, event: NodeParked) -> None:
        """Park a node whose nested runs wait for answers."""
        attempt = self._attempt(node, event)
        attempt.number = event.attempt or 1
        attempt.elapsed_s = event.data.get("duration_s", 0.0)
        attempt.own_s = event.data.get("own_time_s", 0.0)
        attempt.phase = PARKED
        attempt.was_started = True
        self._started.discard(node)
        self._retry_times.pop(node, None)
        self._graph_run.schedule.waits(node)

    def unparked(self, node: int, event: NodeUnparked) -> None:
        """Unpark a node: it runs again from the top, or its task went on and was interrupted."""
        attempt = self._attempt(node, event)
        attempt.phase = QUEUED
        if not attempt.replayable:
            attempt.was_started = False
            self._started.add(node)
        self._graph_run.schedule.answered(node)

    def cancelled(self, node: int, event: NodeCancelled) -> None:
        """Cancel a node, unless an earlier event has cancelled it already."""
        path, cause = event.path or "", event.data.get("cause") or ""
        self._told.add(node)
        self._requests.cancel(path)
        schedule = self._graph_run.schedule
        status, is_unneeded = schedule.status[node], schedule.is_unneeded(node)
        if self._is_unbegun(node) and event.attempt is None and not is_unneeded:  # by a stop
            if self._graph_run.is_stopped:  # else a change of the graph takes that away
                self._end(node)
                schedule.cancelled(node, cause)
            return
        is_queued = status is NodeStatus.READY and event.attempt is not None
        if is_queued or status in (NodeStatus.RUNNING, NodeStatus.WAITING):
            self._end(node)
            if not is_unneeded:
                self._graph_run.record_cancelled(path, cause)
            schedule.cancelled(node, cause)
        elif is_unneeded and status < NodeStatus.RUNNING:
            schedule.release(node)

    def _is_unbegun(self, node: int) -> bool:
        attempt = self._graph_run.attempts.get(node)
        return attempt is not None and node not in self._started and not attempt.has_begun

    def _end(self, node: int) -> None:
        self._graph_run.attempts.pop(node, None)
        self._started.discard(node)
        self._retry_times.pop(node, None)


def continue_with(waiting: Attempt, state: Json, answer: Json) -> Attempt:
    """Return the attempt that resumes after an answer."""
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
    """Return the attempt that runs an interrupted attempt again."""
    following = Attempt(
        interrupted.graph_run, interrupted.node, interrupted.number, interrupted.resume_args, interrupted.answer_count,
        interrupted.reentries + 1,
    )  # fmt: skip
    return interrupted.replaced_by(following)


_APPLY: Final[Mapping[str, Callable[[_Replay, int, Any], None]]] = {
    "node.started": _Replay.started,
    "node.completed": _Replay.completed,
    "node.failed": _Replay.failed,
    "node.retrying": _Replay.retrying,
    "node.waiting": _Replay.waiting,
    "node.answered": _Replay.answered,
    "node.parked": _Replay.parked,
    "node.unparked": _Replay.unparked,
    "node.cancelled": _Replay.cancelled,
    "node.skipped": _Replay.not_run,
    "node.blocked": _Replay.not_run,
}
