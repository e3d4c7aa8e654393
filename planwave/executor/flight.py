"""The driver's bookkeeping: running graphs (scopes) and running attempts (flights)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from enum import Enum
from typing import Any

from planwave.executor.decisions import Cause, Status
from planwave.executor.program import Program
from planwave.executor.runtime import Outputs, Runtime
from planwave.executor.schedule import Schedule


class Phase(Enum):
    """Where an attempt is; only ``FLYING`` holds a slot."""

    QUEUED = "queued"
    FLYING = "flying"
    NESTED = "nested"
    BACKOFF = "backoff"
    OVER = "over"


QUEUED, FLYING, NESTED, BACKOFF, OVER = Phase
"""The phases by themselves: they are asked for several times a node."""


class Scope:
    """One running graph: the execution's own (``prefix`` ""), or one nested inside a node.

    ``failures`` maps the path of every unhandled failed node to its error, in order of failing.
    """

    __slots__ = (
        "_by_wave", "asked", "failures", "flights", "given", "handled", "parent", "path", "prefix",
        "program", "runtime", "schedule", "started_waves",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        schedule: Schedule,
        runtime: Runtime,
        parent: Flight | None = None,
        asked: asyncio.Future[Any] | None = None,
    ) -> None:
        self.program = program
        self.schedule = schedule
        self.runtime = runtime
        self.prefix = runtime.prefix
        self.path = runtime.prefix[:-1] or None
        self.parent = parent
        self.asked = asked
        self.given = any(outputs is not None for outputs in runtime.outputs)
        self.flights: dict[int, Flight] = {}
        self.started_waves: set[int] = set()
        self.failures: dict[str, dict[str, Any]] = {}
        self.handled: list[str] = []
        self._by_wave: dict[int, list[str]] | None = None

    def results(self) -> dict[str, Outputs]:
        """Give the outputs of every node that has any, by id."""
        ids = self.program.topology.ids
        return {ids[n]: given for n, given in enumerate(self.runtime.outputs) if given is not None}

    def nodes_in_wave(self, wave: int) -> list[str]:
        """Give the ids of a wave's nodes in graph order."""
        if self._by_wave is None:
            self._by_wave = {}
            ids = self.program.topology.ids
            for node, number in enumerate(self.schedule.waves.number):
                self._by_wave.setdefault(number, []).append(ids[node])
        return self._by_wave.get(wave, [])

    def first_failure(self) -> dict[str, Any]:
        """Give why this graph failed: its first unhandled failure, naming the node."""
        for path, error in self.failures.items():
            return {**error, "message": f"node {path!r} failed: {error['message']}", "node": path}
        return {"code": "node-cancelled", "message": "a node was cancelled"}

    def first_cause(self, cause: Cause) -> dict[str, Any]:
        """Give ``{"node", "error"}`` of the failure that blocked a node."""
        if cause.node is None:
            return {"node": None, "error": {"code": "blocked", "message": cause.reason}}
        path = self.prefix + self.program.topology.ids[cause.node]
        unknown = {"code": "node-cancelled", "message": cause.reason}
        return {"node": path, "error": self.failures.get(path, unknown)}

    def has_completed(self, node: int) -> bool:
        """Say whether a node has a result of its own, not one its error policy put in its place."""
        return self.schedule.status[node] is Status.COMPLETED

    def cancelled(self, path: str, cause: str) -> None:
        """Note that a node was cancelled by itself: this graph has failed by that."""
        self.failures[path] = {"code": "node-cancelled", "message": cause}

    def airborne(self) -> Iterator[Flight]:
        """Give every unsettled flight of this graph and of those nested in it."""
        for flight in self.flights.values():
            yield flight
            for child in flight.children or ():
                yield from child.airborne()


class Flight:
    """One attempt of one node, from its start to its outcome.

    Once its phase is ``OVER`` the driver has settled it; whatever its task still says is dropped.
    ``nesting`` counts its open nested runs: its own time stands still while it has any. ``resume``
    is ``(state, answer)`` where it goes on after an answer, the ``answers``-th of this attempt.
    ``limit_s`` bounds its own time. ``reentry`` counts how often it was cut off by the end of a process before.
    """

    __slots__ = (
        "answers", "attempt", "children", "limit_s", "nested_s", "nested_since", "nesting", "node", "offsets",
        "path", "phase", "reentry", "resume", "scope", "started", "task",
    )  # fmt: skip

    def __init__(
        self,
        scope: Scope,
        node: int,
        attempt: int = 1,
        resume: tuple[Any, Any] | None = None,
        answers: int = 0,
        reentry: int = 0,
    ) -> None:
        self.scope = scope
        self.node = node
        self.attempt = attempt
        self.path = scope.prefix + scope.program.topology.ids[node]
        self.resume = resume
        self.answers = answers
        self.reentry = reentry
        self.phase = QUEUED
        self.task: asyncio.Task[None] | None = None
        self.started = 0.0
        self.limit_s: float | None = None
        self.nesting = 0
        self.nested_since = self.nested_s = 0.0
        self.children: list[Scope] | None = None
        self.offsets: dict[str, int] | None = None

    @property
    def acts_once(self) -> bool:
        """Whether what it does must not be done twice."""
        step = self.scope.program.steps[self.node]
        return (step.node.policy.effect or step.facts.effect) == "once"

    def own_time(self, now: float) -> float:
        """Give the seconds this attempt spent on its own work, nested runs left out."""
        nested = self.nested_s + (now - self.nested_since if self.nesting else 0.0)
        return now - self.started - nested


current_flight: ContextVar[Flight] = ContextVar("current_flight")
"""The attempt a task works for; tasks it starts inherit it, so that late ones are known as late."""


def outputs_document(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Give outputs as events carry them: ``{handle: {"type", "value"}}``."""
    return {handle: {"type": kind, "value": value} for handle, (kind, value) in outputs.items()}
