"""Graphs that run inside nodes: opened when a node asks, ended with the node at the latest."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from planwave.errors import NESTED_FAILED, LimitExceeded, NodeError
from planwave.events.types import RUN_GRAPH
from planwave.executor.driver.futures import resolve_future
from planwave.executor.driver.parking import Parking
from planwave.executor.driver.slots import NestedReply, Slots
from planwave.executor.inputs import validate_inputs
from planwave.executor.node_api.own_work import calls_around
from planwave.executor.node_api.runtime import GraphRuntime, Host, Outputs
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.recovery.history import History
from planwave.executor.reuse.reuse import Reuse
from planwave.executor.scheduling.decisions import Decisions
from planwave.executor.scheduling.decisions import RunOutcome as Ended
from planwave.executor.state import (
    DONE,
    NESTED,
    RUNNING,
    Attempt,
    GraphRun,
    NestedRun,
    NodeRun,
    StoredGraphRun,
    create_graph_run,
    current_attempt,
)
from planwave.graph.checking.cycles import cycle_diagnostics
from planwave.graph.json_values import NotJson, to_json_each
from planwave.graph.model import Graph, Json
from planwave.graph.plan import canonical_json, graph_content, graph_hash
from planwave.graph.protocols import Catalogue

_MAX_PREPARED: Final = 64
"""Of so many graphs, those asked for last, it is known how to run them."""
_MAX_KEY_LENGTH: Final = 100
_PATH_SEPARATORS: Final = frozenset("[]/")
"""What separates the parts of a path."""


class _Driver(Protocol):
    """What nested runs need of the execution they are part of."""

    @property
    def host(self) -> Host: ...

    slots: Slots
    options: RunOptions
    history: History | None
    reuse: Reuse | None

    def time(self) -> float: ...
    def post(self, callback: Any, subject: Any, payload: Any) -> None: ...
    def start_timeout_timer(self, attempt: Attempt) -> None: ...
    def after_commit(self, call: Callable[[], None]) -> None: ...


class _Reducer(Protocol):
    """What nested runs need of those who settle outcomes."""

    emit: Any
    parking: Parking

    def decide(self) -> None: ...
    def begin_nested(self, graph_run: GraphRun, stored: StoredGraphRun | None) -> None: ...
    def apply_decisions(self, graph_run: GraphRun, decisions: Decisions) -> None: ...
    def cancel_graph_run(self, graph_run: GraphRun, cause: str) -> None: ...


class NestedRunRequested(NamedTuple):
    """What a node asks for: a graph to be run under a key, and where it waits for the outcome.

    The graph is not made ready where its outcome is known.
    """

    key: str
    identity: tuple[str, str]
    prefix: str
    graph_run: GraphRun | None
    reply: asyncio.Future[Any]


class PreparedGraph(NamedTuple):
    """A nested graph bound to its node types, with the hash of its content."""

    program: Program
    hash: str


class NestedRuns:
    """The nested runs of one execution; what is not a coroutine runs inside a turn of the driver.

    Attributes:
        graph_runs: The running ones by prefix.
    """

    def __init__(self, driver: _Driver, reducer: _Reducer) -> None:
        self._driver, self._reducer = driver, reducer
        self._prepared: dict[int, PreparedGraph] = {}
        self._recorded_graphs = (
            set[str]() if driver.history is None else driver.history.nested_runs.recorded_graphs
        )
        self.graph_runs: dict[str, GraphRun] = {}

    async def run(
        self,
        runtime: GraphRuntime,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Any],
        variables: Mapping[str, Json],
    ) -> Mapping[str, Outputs]:
        """Run a graph inside a running node; see ``RuntimeApi.run_graph``."""
        attempt = current_attempt.get()
        _check_not_ended(attempt)
        _check_key(attempt, key)
        self._check_depth(attempt)
        program, of_graph = self._prepare(graph, runtime.program.catalogue)
        _check_acyclic(attempt, program)
        given = validate_inputs(program, inputs)
        try:
            variables = to_json_each(variables)
        except NotJson as fault:
            message = f"node {attempt.path!r} names, for run {key!r}, a variable that is {fault}"
            raise NodeError(message, code="invalid-inputs") from fault
        of_inputs = canonical_json([given, dict(variables)]).encode("utf-8")
        identity = of_graph, hashlib.sha256(of_inputs).hexdigest()
        seen = {**runtime.variables, **variables} if variables else runtime.variables
        driver, prefix = self._driver, f"{attempt.path}[{key}]/"
        graph_run: GraphRun | None = None
        if not _has_outcome(attempt, key):
            graph_run = create_graph_run(program, driver.host, driver.options, given, prefix, seen)
            if driver.reuse is not None:
                graph_run.parent_runs = driver.reuse.parent_runs_of(
                    attempt, graph_run, identity, given, variables
                )
        asked: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        covered = calls_around.get()
        attempt.covered += covered
        driver.post(self.open, attempt, NestedRunRequested(key, identity, prefix, graph_run, asked))
        try:
            outcome: Mapping[str, Outputs] = await asked
        except asyncio.CancelledError:
            driver.post(self.abandon, attempt, (key, asked))
            raise
        finally:
            attempt.covered -= covered
        return outcome

    def _prepare(self, graph: Graph, catalogue: Catalogue) -> PreparedGraph:
        """Give a graph made ready to run; a loop asks for the same one again and again."""
        ready = self._prepared.pop(id(graph), None)
        if ready is None:
            ready = PreparedGraph(Program(graph, catalogue), graph_hash(graph))
            if len(self._prepared) >= _MAX_PREPARED:
                del self._prepared[next(iter(self._prepared))]
        self._prepared[id(graph)] = ready  # it has the graph, so nothing else gets its id
        return ready

    def _check_depth(self, attempt: Attempt) -> None:
        most, depth = self._driver.options.max_depth, attempt.graph_run.depth + 1
        if most is not None and depth > most:
            passed = LimitExceeded("nested_depth", most, depth, what="graphs inside graphs")
            raise NodeError(
                f"node {attempt.path!r} cannot run a graph inside itself: {passed.message}",
                code=LimitExceeded.code,
                hint="nest less deep, or raise the limit; a graph that runs itself never ends",
            )

    # -- inside a turn -----------------------------------------------------------------------------

    def open(self, attempt: Attempt, request: NestedRunRequested) -> None:
        """A running node asked for a nested run: it gives its slot back until that has ended."""
        if attempt.phase is DONE:
            return resolve_future(request.reply, attempt.ended_error())
        node_run = self.node_run_of(attempt)
        run = node_run.nested_runs.get(request.key)
        stored = None if run is not None else self._stored(request)
        known = run.identity if run is not None else stored.identity if stored else None
        if known is not None and known != request.identity:
            return resolve_future(request.reply, _mismatch(attempt, request, known))
        if run is None:
            run = node_run.nested_runs[request.key] = NestedRun(
                request.key, node_run, request.identity, attempt.number
            )
        elif run.graph_run is None and (outcome := run.outcome_for(attempt.number)) is not None:
            return self._return(NestedReply(attempt, request.reply, _own_copy(outcome)))
        attempt.open_nested_runs += 1
        attempt.activity += 1
        run.waiters.append(request.reply)
        if attempt.only_nests:
            self._reducer.parking.free_slot(attempt)
        if run.graph_run is None and request.graph_run is not None:
            self._start(attempt, run, request.graph_run, stored)
        self._reducer.parking.park_if_idle(attempt)

    def node_run_of(self, attempt: Attempt) -> NodeRun:
        """Give what is inside a node, with what is stored of that."""
        if attempt.node_run is None:
            attempt.node_run = NodeRun(attempt)
            if self._driver.history is not None:
                attempt.node_run.once_values = self._driver.history.nested_runs.pop_once_values(
                    attempt.path
                )
        return attempt.node_run

    def _stored(self, request: NestedRunRequested) -> StoredGraphRun | None:
        past = self._driver.history
        return None if past is None else past.nested_runs.get(request.prefix)

    def _start(
        self, attempt: Attempt, run: NestedRun, graph_run: GraphRun, stored: StoredGraphRun | None
    ) -> None:
        """Begin a nested run, anew or where its stored events leave it."""
        if stored is not None and self._driver.history is not None:
            self._driver.history.nested_runs.pop(graph_run.prefix)
            run.attempt_number = stored.attempt_number
            run.attempt_offset = (
                stored.highest_attempt if stored.must_restart else stored.attempt_offset
            )
        graph_run.nested_run, run.graph_run = run, graph_run
        graph_run.depth = attempt.graph_run.depth + 1
        graph_run.attempt_offset = max(run.attempt_offset, attempt.graph_run.attempt_offset)
        graph_run.highest_attempt = max(
            graph_run.attempt_offset, stored.highest_attempt if stored is not None else 0
        )
        run.outcome, run.is_abandoned = None, False
        run.node_run.open_count += 1
        self.graph_runs[graph_run.prefix] = graph_run
        if stored is None or stored.must_restart:
            run.attempt_number = attempt.number
            graph, inputs = run.identity
            said: dict[str, Json] = {"key": run.key, "graph": graph, "inputs": inputs}
            if graph not in self._recorded_graphs:
                self._recorded_graphs.add(graph)
                said["document"] = graph_content(graph_run.program.graph)
            if graph_run.attempt_offset:
                said["before"] = graph_run.attempt_offset
            self._record(attempt, said)
            stored = None
        self._reducer.begin_nested(graph_run, stored)

    def abandon(self, attempt: Attempt, abandoned: tuple[str, asyncio.Future[Any]]) -> None:
        """A node no longer waits for its nested run."""
        self._reducer.decide()
        key, asked = abandoned
        run = attempt.node_run.nested_runs.get(key) if attempt.node_run is not None else None
        if attempt.phase is DONE or run is None or asked not in run.waiters:
            return
        run.waiters.remove(asked)
        self._queue_reply(attempt, asked, None)
        if run.graph_run is not None and not run.waiters:
            run.is_abandoned = True
            self._reducer.cancel_graph_run(run.graph_run, "its node does not wait for it any more")
            self._reducer.decide()  # it is over before it may be asked for again

    def end(self, graph_run: GraphRun, outcome: Ended) -> None:
        """A nested run has come to its end: its node may go on."""
        run = graph_run.nested_run
        if run is None or run.graph_run is not graph_run:
            return
        node_run, attempt = run.node_run, run.node_run.attempt
        del self.graph_runs[graph_run.prefix]
        run.graph_run = None
        run.attempt_offset = graph_run.highest_attempt
        node_run.open_count -= 1
        self._reducer.parking.mark_active(graph_run)
        around = attempt.graph_run
        around.highest_attempt = max(around.highest_attempt, graph_run.highest_attempt)
        if attempt.phase is DONE:
            return
        run.outcome = graph_run.results()
        if outcome != "completed":
            error = graph_run.first_failure()
            message, hint = error["message"], error.get("hint")
            run.outcome = NodeError(
                message, code=NESTED_FAILED, hint=hint, retryable=graph_run.is_retryable
            )
        if run.is_abandoned:
            self._record(attempt, {"key": run.key, "dropped": True})
        asked, run.waiters = run.waiters, []
        for each in asked:
            self._queue_reply(attempt, each, run.outcome)

    def deliver(self, reply: NestedReply) -> None:
        """Give a node what a nested run came to, now that it is durable."""
        attempt = reply.attempt
        resolve_future(reply.future, reply.result)
        attempt.own_calls -= 1
        attempt.activity += 1
        if attempt.phase is RUNNING:
            attempt.start_own_clock(self._driver.time())
            self._driver.start_timeout_timer(attempt)
        self._reducer.parking.park_if_idle(attempt)

    def _queue_reply(self, attempt: Attempt, future: asyncio.Future[Any], outcome: Any) -> None:
        attempt.open_nested_runs -= 1
        self._return(NestedReply(attempt, future, _own_copy(outcome)))

    def _return(self, answer: NestedReply) -> None:
        """Let a node go on with a result: at once where it holds a slot, else once it has one."""
        answer.attempt.own_calls += 1
        if answer.attempt.phase is NESTED:
            self._driver.slots.queue_return(answer)
        else:
            self._driver.after_commit(partial(self.deliver, answer))

    def _record(self, attempt: Attempt, payload: Json) -> None:
        data = {"event_type": RUN_GRAPH, "data": payload}
        self._reducer.emit("node.event", data, attempt.path, attempt.number)


def _has_outcome(attempt: Attempt, key: str) -> bool:
    run = attempt.node_run.nested_runs.get(key) if attempt.node_run is not None else None
    return run is not None and run.outcome_for(attempt.number) is not None


def _own_copy(outcome: Any) -> Any:
    """Give an outcome to be given to a node: an error of its own, which keeps what raises it."""
    if isinstance(outcome, NodeError):
        return NodeError(
            outcome.message, code=outcome.code, hint=outcome.hint, retryable=outcome.retryable
        )
    return outcome


def _check_not_ended(attempt: Attempt) -> None:
    if attempt.phase is DONE:
        raise attempt.ended_error()


def _check_key(attempt: Attempt, key: object) -> None:
    is_text = isinstance(key, str)  # who counts easily gives a number
    if not is_text or not key or len(key) > _MAX_KEY_LENGTH or _PATH_SEPARATORS.intersection(key):
        raise NodeError(
            f"node {attempt.path!r} cannot name a nested run {key!r}",
            code="invalid-key",
            hint=f"a key is text of 1 to {_MAX_KEY_LENGTH} characters, none of them [, ] or /",
        )


def _check_acyclic(attempt: Attempt, program: Program) -> None:
    topology = program.topology
    if len(topology.order) == len(topology):
        return
    found = cycle_diagnostics(topology)[0]
    raise NodeError(
        f"node {attempt.path!r} cannot run a graph inside itself: {found.message}",
        code=found.code,
        hint=found.hint,
    )


def _mismatch(attempt: Attempt, request: NestedRunRequested, known: tuple[str, str]) -> NodeError:
    what = "another graph" if known[0] != request.identity[0] else "other inputs or variables"
    return NodeError(
        f"node {attempt.path!r} asked for its nested run {request.key!r} with {what} than before",
        code="resume-mismatch",
        hint="a key names one run for as long as its node lasts: name another run by another key, "
        "and take what may differ when the node is entered again through runtime.once",
    )
