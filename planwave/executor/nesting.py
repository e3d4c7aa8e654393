"""Graphs that run inside nodes: opened when a node asks, ended with the node at the latest."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from planwave.errors import NESTED_FAILED, LimitExceeded, NodeError
from planwave.events.vocabulary import RUN_GRAPH
from planwave.executor.asked import settle
from planwave.executor.decisions import Decisions
from planwave.executor.decisions import Final as Ended
from planwave.executor.dormant import StoredRun
from planwave.executor.entry import own_inputs
from planwave.executor.flight import (
    FLYING,
    NESTED,
    OVER,
    Flight,
    Inside,
    NestedRun,
    Scope,
    current_flight,
)
from planwave.executor.options import RunOptions
from planwave.executor.parking import Parking, calls_around
from planwave.executor.past import Past
from planwave.executor.program import Program
from planwave.executor.reuse import Reuse
from planwave.executor.runtime import Host, Outputs, Runtime
from planwave.executor.scope import open_scope
from planwave.executor.slots import NestedAnswer, Slots
from planwave.graph.capabilities import Catalogue
from planwave.graph.cycles import cycle_diagnostics
from planwave.graph.json_values import NotJson, to_json_each
from planwave.graph.model import Graph, Json
from planwave.graph.plan import canonical_json, content_of, graph_hash

_PROGRAMS_KEPT: Final = 64
"""Of so many graphs, those asked for last, it is known how to run them."""
_LONGEST_KEY: Final = 100
_RESERVED: Final = frozenset("[]/")
"""What separates the parts of a path."""


class Driver(Protocol):
    """What nested runs need of the execution they are part of."""

    @property
    def host(self) -> Host: ...

    slots: Slots
    options: RunOptions
    past: Past | None
    reuse: Reuse | None

    def time(self) -> float: ...
    def post(self, take: Any, about: Any, what: Any) -> None: ...
    def watch_time(self, flight: Flight) -> None: ...
    def after_commit(self, call: Callable[[], None]) -> None: ...


class Settler(Protocol):
    """What nested runs need of those who settle outcomes."""

    emit: Any
    parking: Parking

    def decide(self) -> None: ...
    def begin_nested(self, scope: Scope, stored: StoredRun | None) -> None: ...
    def follow(self, scope: Scope, decisions: Decisions) -> None: ...
    def cancel_scope(self, scope: Scope, cause: str) -> None: ...


class _Ask(NamedTuple):
    """What a node asks for: a graph to be run under a key, and where it waits for the outcome.

    The graph is not made ready where its outcome is known.
    """

    key: str
    identity: tuple[str, str]
    prefix: str
    scope: Scope | None
    asked: asyncio.Future[Any]


class _Ready(NamedTuple):
    program: Program
    hash: str


class Nesting:
    """The nested runs of one execution; what is not a coroutine runs inside a turn of the driver.

    Attributes:
        scopes: The running ones by prefix.
    """

    def __init__(self, driver: Driver, settler: Settler) -> None:
        self._driver, self._settler = driver, settler
        self._ready: dict[int, _Ready] = {}
        self._told = set[str]() if driver.past is None else driver.past.dormant.told_graphs
        self.scopes: dict[str, Scope] = {}

    async def run(
        self,
        runtime: Runtime,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Any],
        variables: Mapping[str, Json],
    ) -> Mapping[str, Outputs]:
        """Run a graph inside a running node; see ``RuntimeApi.run_graph``."""
        flight = current_flight.get()
        _refuse_over(flight)
        _refuse_key(flight, key)
        self._refuse_depth(flight)
        program, of_graph = self._made_ready(graph, runtime.program.catalogue)
        _refuse_cycle(flight, program)
        given = own_inputs(program, inputs)
        try:
            variables = to_json_each(variables)
        except NotJson as fault:
            message = f"node {flight.path!r} names, for run {key!r}, a variable that is {fault}"
            raise NodeError(message, code="invalid-inputs") from fault
        of_inputs = canonical_json([given, dict(variables)]).encode("utf-8")
        identity = of_graph, hashlib.sha256(of_inputs).hexdigest()
        seen = {**runtime.variables, **variables} if variables else runtime.variables
        driver, prefix = self._driver, f"{flight.path}[{key}]/"
        scope: Scope | None = None
        if not _has_outcome(flight, key):
            scope = open_scope(program, driver.host, driver.options, given, prefix, seen)
            if driver.reuse is not None:
                scope.earlier = driver.reuse.within(flight, scope, identity, given, variables)
        asked: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        covered = calls_around.get()
        flight.covered += covered
        driver.post(self.nest, flight, _Ask(key, identity, prefix, scope, asked))
        try:
            outcome: Mapping[str, Outputs] = await asked
        except asyncio.CancelledError:
            driver.post(self.unnest, flight, (key, asked))
            raise
        finally:
            flight.covered -= covered
        return outcome

    def _made_ready(self, graph: Graph, catalogue: Catalogue) -> _Ready:
        """Give a graph made ready to run; a loop asks for the same one again and again."""
        ready = self._ready.pop(id(graph), None)
        if ready is None:
            ready = _Ready(Program(graph, catalogue), graph_hash(graph))
            if len(self._ready) >= _PROGRAMS_KEPT:
                del self._ready[next(iter(self._ready))]
        self._ready[id(graph)] = ready  # it has the graph, so nothing else gets its id
        return ready

    def _refuse_depth(self, flight: Flight) -> None:
        most, depth = self._driver.options.max_depth, flight.scope.depth + 1
        if most is not None and depth > most:
            passed = LimitExceeded("nested_depth", most, depth, what="graphs inside graphs")
            raise NodeError(
                f"node {flight.path!r} cannot run a graph inside itself: {passed.message}",
                code=LimitExceeded.code,
                hint="nest less deep, or raise the limit; a graph that runs itself never ends",
            )

    # -- inside a turn -----------------------------------------------------------------------------

    def nest(self, flight: Flight, ask: _Ask) -> None:
        """A running node asked for a nested run: it gives its slot back until that has ended."""
        if flight.phase is OVER:
            return settle(ask.asked, flight.refusal())
        inside = self.inside_of(flight)
        run = inside.runs.get(ask.key)
        stored = None if run is not None else self._stored(ask)
        known = run.identity if run is not None else stored.identity if stored else None
        if known is not None and known != ask.identity:
            return settle(ask.asked, _mismatch(flight, ask, known))
        if run is None:
            run = inside.runs[ask.key] = NestedRun(ask.key, inside, ask.identity, flight.attempt)
        elif run.scope is None and (outcome := run.outcome_for(flight.attempt)) is not None:
            return self._return(NestedAnswer(flight, ask.asked, _given(outcome)))
        flight.nesting += 1
        flight.stirs += 1
        run.asked.append(ask.asked)
        if flight.only_nests:
            self._settler.parking.free_slot(flight)
        if run.scope is None and ask.scope is not None:
            self._open(flight, run, ask.scope, stored)
        self._settler.parking.consider(flight)

    def inside_of(self, flight: Flight) -> Inside:
        """Give what is inside a node, with what is stored of that."""
        if flight.inside is None:
            flight.inside = Inside(flight)
            if self._driver.past is not None:
                flight.inside.kept = self._driver.past.dormant.take_kept(flight.path)
        return flight.inside

    def _stored(self, ask: _Ask) -> StoredRun | None:
        past = self._driver.past
        return None if past is None else past.dormant.run_of(ask.prefix)

    def _open(self, flight: Flight, run: NestedRun, scope: Scope, stored: StoredRun | None) -> None:
        """Begin a nested run, anew or where its stored events leave it."""
        if stored is not None and self._driver.past is not None:
            self._driver.past.dormant.take(scope.prefix)
            run.attempt = stored.attempt
            run.before = stored.highest if stored.is_spent else stored.before
        scope.run, run.scope = run, scope
        scope.depth = flight.scope.depth + 1
        scope.before = max(run.before, flight.scope.before)
        scope.highest = max(scope.before, stored.highest if stored is not None else 0)
        run.outcome, run.is_dropped = None, False
        run.inside.open += 1
        self.scopes[scope.prefix] = scope
        if stored is None or stored.is_spent:
            run.attempt = flight.attempt
            graph, inputs = run.identity
            said: dict[str, Json] = {"key": run.key, "graph": graph, "inputs": inputs}
            if graph not in self._told:
                self._told.add(graph)
                said["document"] = content_of(scope.program.graph)
            if scope.before:
                said["before"] = scope.before
            self._tell(flight, said)
            stored = None
        self._settler.begin_nested(scope, stored)

    def unnest(self, flight: Flight, left: tuple[str, asyncio.Future[Any]]) -> None:
        """A node no longer waits for its nested run."""
        self._settler.decide()
        key, asked = left
        run = flight.inside.runs.get(key) if flight.inside is not None else None
        if flight.phase is OVER or run is None or asked not in run.asked:
            return
        run.asked.remove(asked)
        self._give(flight, asked, None)
        if run.scope is not None and not run.asked:
            run.is_dropped = True
            self._settler.cancel_scope(run.scope, "its node does not wait for it any more")
            self._settler.decide()  # it is over before it may be asked for again

    def ended(self, scope: Scope, ended: Ended) -> None:
        """A nested run has come to its end: its node may go on."""
        run = scope.run
        if run is None or run.scope is not scope:
            return
        inside, flight = run.inside, run.inside.flight
        del self.scopes[scope.prefix]
        run.scope = None
        run.before = scope.highest
        inside.open -= 1
        self._settler.parking.wake(scope)
        around = flight.scope
        around.highest = max(around.highest, scope.highest)
        if flight.phase is OVER:
            return
        run.outcome = scope.results()
        if ended != "completed":
            error = scope.first_failure()
            message, hint = error["message"], error.get("hint")
            run.outcome = NodeError(
                message, code=NESTED_FAILED, hint=hint, retryable=scope.is_retryable
            )
        if run.is_dropped:
            self._tell(flight, {"key": run.key, "dropped": True})
        asked, run.asked = run.asked, []
        for each in asked:
            self._give(flight, each, run.outcome)

    def hand_over(self, answer: NestedAnswer) -> None:
        """Give a node what a nested run came to, now that it is durable."""
        flight = answer.flight
        settle(answer.asked, answer.result)
        flight.busy -= 1
        flight.stirs += 1
        if flight.phase is FLYING:
            flight.start_own_clock(self._driver.time())
            self._driver.watch_time(flight)
        self._settler.parking.consider(flight)

    def _give(self, flight: Flight, asked: asyncio.Future[Any], outcome: Any) -> None:
        flight.nesting -= 1
        self._return(NestedAnswer(flight, asked, _given(outcome)))

    def _return(self, answer: NestedAnswer) -> None:
        """Let a node go on with a result: at once where it holds a slot, else once it has one."""
        answer.flight.busy += 1
        if answer.flight.phase is NESTED:
            self._driver.slots.come_back(answer)
        else:
            self._driver.after_commit(partial(self.hand_over, answer))

    def _tell(self, flight: Flight, said: Json) -> None:
        data = {"event_type": RUN_GRAPH, "data": said}
        self._settler.emit("node.event", data, flight.path, flight.attempt)


def _has_outcome(flight: Flight, key: str) -> bool:
    run = flight.inside.runs.get(key) if flight.inside is not None else None
    return run is not None and run.outcome_for(flight.attempt) is not None


def _given(outcome: Any) -> Any:
    """Give an outcome to be given to a node: an error of its own, which keeps what raises it."""
    if isinstance(outcome, NodeError):
        return NodeError(
            outcome.message, code=outcome.code, hint=outcome.hint, retryable=outcome.retryable
        )
    return outcome


def _refuse_over(flight: Flight) -> None:
    if flight.phase is OVER:
        raise flight.refusal()


def _refuse_key(flight: Flight, key: object) -> None:
    is_text = isinstance(key, str)  # who counts easily gives a number
    if not is_text or not key or len(key) > _LONGEST_KEY or _RESERVED.intersection(key):
        raise NodeError(
            f"node {flight.path!r} cannot name a nested run {key!r}",
            code="invalid-key",
            hint=f"a key is text of 1 to {_LONGEST_KEY} characters, none of them [, ] or /",
        )


def _refuse_cycle(flight: Flight, program: Program) -> None:
    topology = program.topology
    if len(topology.order) == len(topology):
        return
    found = cycle_diagnostics(topology)[0]
    raise NodeError(
        f"node {flight.path!r} cannot run a graph inside itself: {found.message}",
        code=found.code,
        hint=found.hint,
    )


def _mismatch(flight: Flight, ask: _Ask, known: tuple[str, str]) -> NodeError:
    what = "another graph" if known[0] != ask.identity[0] else "other inputs or variables"
    return NodeError(
        f"node {flight.path!r} asked for its nested run {ask.key!r} with {what} than before",
        code="resume-mismatch",
        hint="a key names one run for as long as its node lasts: name another run by another key, "
        "and take what may differ when the node is entered again through runtime.once",
    )
