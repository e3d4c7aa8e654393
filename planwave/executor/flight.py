"""The driver's bookkeeping: running graphs (scopes), running attempts (flights), and what is inside."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from enum import Enum
from typing import Any, NamedTuple

from planwave.errors import NESTED_FAILED, NodeError
from planwave.executor.decisions import Cause, Status
from planwave.executor.earlier import Life
from planwave.executor.program import Program
from planwave.executor.runtime import Outputs, Runtime
from planwave.executor.schedule import Schedule
from planwave.graph.model import Json


class Phase(Enum):
    """Where an attempt is; only ``FLYING`` holds a slot."""

    QUEUED = "queued"
    FLYING = "flying"
    NESTED = "nested"
    BACKOFF = "backoff"
    PARKED = "parked"
    OVER = "over"


QUEUED, FLYING, NESTED, BACKOFF, PARKED, OVER = Phase
"""The phases by themselves: they are asked for several times a node."""


class Scope:
    """One running graph: the execution's own (``prefix`` ""), or one nested inside a node.

    Attributes:
        run: What a nested one is to the node it is inside of; None for the execution's own.
        depth: How many graphs it is inside of.
        failures: The error of every unhandled failed node by its path, in order of failing.
        before: The highest attempt that its nodes, or nodes inside them, may have had before it was
            made anew; theirs go on from there.
        highest: The highest attempt that any of them has had by now, or is about to have.
        is_retryable: The first of them might not come again.
        rests: Nothing goes on in it before a request inside is answered.
        earlier: Of a fork: what it goes by, the latest first; see ``reuse.py``.
        waves_ahead: The ids of the nodes of each wave that has not begun, in graph order.
    """

    __slots__ = (
        "before", "depth", "earlier", "failures", "flights", "given", "handled", "highest",
        "is_retryable", "path",
        "prefix", "program", "rests", "run", "runtime", "schedule", "waves_ahead",
    )  # fmt: skip

    def __init__(self, program: Program, schedule: Schedule, runtime: Runtime) -> None:
        self.program = program
        self.schedule = schedule
        self.runtime = runtime
        self.prefix = runtime.prefix
        self.path = runtime.prefix[:-1] or None
        self.run: NestedRun | None = None
        self.depth = self.before = self.highest = 0
        self.rests = self.is_retryable = False
        self.earlier: Sequence[Shadow] = ()
        self.given = runtime.outputs.count(None) < len(runtime.outputs)
        self.flights: dict[int, Flight] = {}
        self.failures: dict[str, dict[str, Any]] = {}
        self.handled: list[str] = []
        self.waves_ahead: dict[int, list[str]] = {}
        for node_id, wave in zip(program.topology.ids, schedule.waves.number, strict=True):
            self.waves_ahead.setdefault(wave, []).append(node_id)

    def results(self) -> dict[str, Outputs]:
        """Give the outputs of every node that has any, by id."""
        ids = self.program.topology.ids
        return {ids[n]: given for n, given in enumerate(self.runtime.outputs) if given is not None}

    def note_failure(self, path: str, error: dict[str, Any], retryable: bool) -> None:
        """Note that a node failed, and nothing made up for it."""
        if not self.failures:
            self.is_retryable = retryable
        self.failures[path] = error

    def first_failure(self) -> dict[str, Any]:
        """Give why this graph failed: its first unhandled failure, naming the node it began at.

        What fails through several graphs is told of once, however deep they lie in each other.
        """
        for path, error in self.failures.items():
            message = error["message"]
            if error["code"] != NESTED_FAILED:
                message = f"node {path!r} failed: {message}"
            return {**error, "message": message, "node": path}
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

    @property
    def is_whole(self) -> bool:
        """Whether every node that was to run has a result of its own."""
        ran = (Status.COMPLETED, Status.SKIPPED)
        linked, statuses = self.program.topology.linked, self.schedule.status
        return all(on or each in ran for on, each in zip(linked, statuses, strict=True))

    def cancelled(self, path: str, cause: str) -> None:
        """Note that a node was cancelled by itself: this graph has failed by that."""
        self.failures[path] = {"code": "node-cancelled", "message": cause}

    def airborne(self) -> Iterator[Flight]:
        """Give every unsettled flight of this graph and of those nested in it."""
        for flight in self.flights.values():
            yield flight
            for child in flight.inside.open_scopes() if flight.inside else ():
                yield from child.airborne()


class Shadow(NamedTuple):
    """A graph of an execution before a fork, as it was left; what the same graph of the fork goes by.

    Attributes:
        generation: How many executions lie between that one and the fork.
    """

    life: Life
    scope: Scope
    generation: int = 0


class Flight:
    """One attempt of one node, from its start to its outcome.

    Once its phase is ``OVER`` the driver has settled it; whatever its task still says is dropped.

    Attributes:
        resume: ``(state, answer)`` where it goes on after an answer, the ``answers``-th of this
            attempt.
        reentry: How often it was cut off by the end of a process before.
        begun: It goes on after a wait: that it began was told before.
        started: When it was launched, by the clock of the loop; below 0 before.
        ran_s: How long its attempt ran before it waited, or was parked, last.
        own_s: How long its attempt had done its own work when its own clock was stopped last.
        own_since: When its own clock was started, by the clock of the loop; below 0 while it stands.
        decided: What a person said is to become of it after it was cut off, where nothing came of
            that as yet.
        limit_s: Bounds its own time.
        has_deadline: A deadline of its own time is set.
        nesting: The nested runs it waits for.
        busy: Calls of its own, and results of nested runs, that it has yet to get.
        covered: Of these calls, how often one goes around the wait for a nested run.
        stirs: Grows with all it is seen to do while it waits for nested runs.
        inside: What runs inside its node, or None if nothing did.
    """

    __slots__ = (
        "answers", "attempt", "begun", "busy", "covered", "decided", "has_deadline", "inside", "limit_s",
        "nesting", "node", "offsets", "own_s", "own_since", "path", "phase", "ran_s", "reentry",
        "resume", "scope", "started", "stirs", "task",
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
        if attempt > scope.highest:  # it may be cancelled before it begins
            scope.highest = attempt
        self.path = scope.prefix + scope.program.topology.ids[node]
        self.resume = resume
        self.answers = answers
        self.reentry = reentry
        self.phase = QUEUED
        self.task: asyncio.Task[None] | None = None
        self.started = -1.0
        self.ran_s = self.own_s = 0.0
        self.own_since = -1.0
        self.limit_s: float | None = None
        self.begun = self.has_deadline = False
        self.decided: Json = None
        self.nesting = self.busy = self.covered = self.stirs = 0
        self.inside: Inside | None = None
        self.offsets: dict[str, int] | None = None

    def followed_by(self, following: Flight) -> Flight:
        """Give what is inside the node to the flight that goes on in place of this one."""
        if following.attempt == self.attempt:
            following.ran_s, following.own_s = self.ran_s, self.own_s
        following.inside, self.inside = self.inside, None
        if following.inside is not None:
            following.inside.flight = following
        return following

    def refusal(self) -> NodeError:
        """Give the error of who asks for something in this attempt's name once it is settled."""
        return NodeError(f"attempt {self.attempt} of node {self.path!r} is over")

    @property
    def acts_once(self) -> bool:
        """Whether what it does must not be done twice."""
        step = self.scope.program.steps[self.node]
        return (step.node.policy.effect or step.facts.effect) == "once"

    def ran(self, now: float) -> float:
        """Give the seconds its attempt has run by now; nothing of what it waited counts."""
        ran_s = self.ran_s + (now - self.started if self.started >= 0.0 else 0.0)
        return _microseconds(ran_s)

    def rest(self, now: float) -> dict[str, Any]:
        """Note that it waits from now on; return its times as events carry them.

        ``duration_s`` is how long its attempt has run, ``own_time_s`` how long of that it has done
        its own work.
        """
        self.ran_s, self.started = self.ran(now), -1.0
        self.stop_own_clock(now)
        return {"duration_s": self.ran_s, "own_time_s": _microseconds(self.own_s)}

    def start_own_clock(self, now: float) -> None:
        """Note that it does its own work from now on."""
        if self.own_since < 0.0:
            self.own_since = now

    def stop_own_clock(self, now: float) -> None:
        """Note that it only waits from now on."""
        self.own_s, self.own_since = self.own_time(now), -1.0

    def own_time(self, now: float) -> float:
        """Return how many seconds this attempt has done its own work, before its waits too."""
        return self.own_s + (now - self.own_since if self.own_since >= 0.0 else 0.0)

    @property
    def only_nests(self) -> bool:
        """Whether it holds a slot, and all its own code does is to wait for nested runs.

        A call of its own that goes around such a wait (``with context.busy():``) waits too.
        """
        return self.phase is FLYING and self.nesting > 0 and self.busy <= self.covered


class NestedRun:
    """One graph that a node runs, or ran, inside itself under a key.

    Attributes:
        key: Its name within the node.
        inside: All that runs inside that node.
        identity: Hashes of the graph, and of inputs and variables.
        attempt: The node's attempt in which it was opened.
        scope: The running graph, None before and after.
        outcome: What it came to; None where it has not ended, or came to nothing.
        before: The highest attempt of its nodes so far, where it is to be made anew.
        asked: Where its outcome is waited for.
        is_dropped: The node let go of it while it ran.
    """

    __slots__ = (
        "asked", "attempt", "before", "identity", "inside", "is_dropped", "key", "outcome", "scope"
    )  # fmt: skip

    def __init__(self, key: str, inside: Inside, identity: tuple[str, str], attempt: int) -> None:
        self.key = key
        self.inside = inside
        self.identity = identity
        self.attempt = attempt
        self.scope: Scope | None = None
        self.outcome: Mapping[str, Outputs] | NodeError | None = None
        self.before = 0
        self.asked: list[asyncio.Future[Any]] = []
        self.is_dropped = False

    def outcome_for(self, attempt: int) -> Mapping[str, Outputs] | NodeError | None:
        """Give what it came to, or None where an attempt of its node has to make it anew."""
        is_spent = isinstance(self.outcome, NodeError) and self.attempt < attempt
        return None if is_spent or self.is_dropped else self.outcome


class Inside:
    """What runs, ran and was kept inside one node; it lasts as long as the node, over all attempts.

    Attributes:
        flight: The attempt that is at work, or will be.
        runs: The nested runs by key, those that have ended too.
        open: How many have not.
        resting: How many of those wait for answers, with nothing else to do.
        kept: The values of ``once`` by key.
        making: Held by those who make such a value.
    """

    __slots__ = ("flight", "kept", "making", "open", "resting", "runs")

    def __init__(self, flight: Flight) -> None:
        self.flight = flight
        self.runs: dict[str, NestedRun] = {}
        self.open = self.resting = 0
        self.kept: dict[str, Json] = {}
        self.making: dict[str, asyncio.Lock] = {}

    def open_scopes(self) -> list[Scope]:
        """Give the running graphs."""
        if not self.open:
            return []
        return [run.scope for run in self.runs.values() if run.scope is not None]

    def let_go(self) -> list[Scope]:
        """Give the running graphs, which nobody waits for any more."""
        for run in self.runs.values() if self.open else ():
            run.asked.clear()
        return self.open_scopes()


def _microseconds(seconds: float) -> float:
    return int(seconds * 1e6 + 0.5) / 1e6  # ``round`` takes three times as long


current_flight: ContextVar[Flight] = ContextVar("current_flight")
"""The attempt a task works for; tasks it starts inherit it, so that late ones are known as late."""


def outputs_document(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Give outputs as events carry them: ``{handle: {"type", "value"}}``."""
    document: dict[str, Any] = {}
    for handle, (kind, value) in outputs.items():  # a comprehension is a call more for each node
        document[handle] = {"type": kind, "value": value}
    return document
