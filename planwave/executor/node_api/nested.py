"""Ask for a nested run: check and prepare the graph, post the request, wait for the outcome."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from planwave.errors import LimitExceeded, PermanentError
from planwave.executor.inputs import validate_inputs
from planwave.executor.messages import NestedRunAbandoned, NestedRunRequested
from planwave.executor.node_api.graph_runs import create_graph_run
from planwave.executor.node_api.mailbox import Mailbox
from planwave.executor.node_api.own_work import calls_around
from planwave.executor.node_api.runtime import Host
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.state import (
    DONE,
    Attempt,
    GraphRun,
    Outputs,
    ParentGraphRun,
    current_attempt,
)
from planwave.executor.values import GraphValues
from planwave.graph.checking.cycles import cycle_diagnostics
from planwave.graph.json_values import NotJson, to_json_each
from planwave.graph.model import Graph, Json
from planwave.graph.plan import canonical_json, graph_hash
from planwave.graph.protocols import Catalogue

_MAX_PREPARED: Final = 64
"""How many prepared graphs are kept, those used last."""
_MAX_KEY_LENGTH: Final = 100
_PATH_SEPARATORS: Final = frozenset("[]/")
"""What separates the parts of a path."""


class ParentRuns(Protocol):
    """Earlier runs that a nested run of a fork may reuse results from."""

    def parent_runs_of(
        self,
        attempt: Attempt,
        graph_run: GraphRun,
        identity: tuple[str, str],
        inputs: Mapping[str, Mapping[str, Json]],
        variables: Mapping[str, Json],
    ) -> Sequence[ParentGraphRun]: ...


class PreparedGraph(NamedTuple):
    """A nested graph bound to its node types, with the hash of its content."""

    program: Program
    hash: str


class NestedGraphs:
    """The nested graphs that the nodes of one execution run.

    Args:
        mailbox: Receives the requests.
        options: Options of the execution.
        parent: For a fork: the earlier runs to reuse results from.
    """

    def __init__(self, mailbox: Mailbox, options: RunOptions, parent: ParentRuns | None) -> None:
        self._mailbox, self._options, self._parent = mailbox, options, parent
        self._prepared: dict[int, PreparedGraph] = {}

    async def run(
        self,
        host: Host,
        values: GraphValues,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Json],
        variables: Mapping[str, Json],
    ) -> Mapping[str, Outputs]:
        """Run a graph inside a running node; see ``RuntimeApi.run_graph``."""
        attempt = current_attempt.get()
        _check_not_ended(attempt)
        _check_key(attempt, key)
        self._check_depth(attempt)
        program, of_graph = self._prepare(graph, values.program.catalogue)
        _check_acyclic(attempt, program)
        preset = validate_inputs(program, inputs)
        try:
            variables = to_json_each(variables)
        except NotJson as fault:
            message = f"node {attempt.path!r} names, for run {key!r}, a variable that is {fault}"
            raise PermanentError(message, code="invalid-inputs") from fault
        of_inputs = canonical_json([preset, dict(variables)]).encode("utf-8")
        identity = of_graph, hashlib.sha256(of_inputs).hexdigest()
        prefix = f"{attempt.path}[{key}]/"
        graph_run: GraphRun | None = None
        if not _has_outcome(attempt, key):
            visible = {**values.variables, **variables} if variables else values.variables
            graph_run = create_graph_run(program, host, self._options, preset, prefix, visible)
            if self._parent is not None:
                graph_run.parent_runs = self._parent.parent_runs_of(
                    attempt, graph_run, identity, preset, variables
                )
        return await self._request(attempt, key, identity, prefix, graph_run)

    async def _request(
        self,
        attempt: Attempt,
        key: str,
        identity: tuple[str, str],
        prefix: str,
        graph_run: GraphRun | None,
    ) -> Mapping[str, Outputs]:
        """Post the request and wait for the outcome, without counting calls around the wait."""
        reply, outcome = self._mailbox.expect_reply()
        covered = calls_around.get()
        attempt.covered += covered
        self._mailbox.post(NestedRunRequested(attempt, key, identity, prefix, graph_run, reply))
        try:
            return await outcome or {}
        except asyncio.CancelledError:
            self._mailbox.post(NestedRunAbandoned(attempt, key, reply))
            raise
        finally:
            attempt.covered -= covered
            self._mailbox.forget(reply)

    def _prepare(self, graph: Graph, catalogue: Catalogue) -> PreparedGraph:
        """Return a graph that is ready to run; a loop runs the same one again and again."""
        ready = self._prepared.pop(id(graph), None)
        if ready is None:
            ready = PreparedGraph(Program(graph, catalogue), graph_hash(graph))
            if len(self._prepared) >= _MAX_PREPARED:
                del self._prepared[next(iter(self._prepared))]
        self._prepared[id(graph)] = ready  # it holds the graph, so that its id stays unique
        return ready

    def _check_depth(self, attempt: Attempt) -> None:
        most, depth = self._options.max_depth, attempt.graph_run.depth + 1
        if most is not None and depth > most:
            exceeded = LimitExceeded("nested_depth", most, depth, what="graphs inside graphs")
            raise PermanentError(
                f"node {attempt.path!r} cannot run a graph inside itself: {exceeded.message}",
                code=LimitExceeded.code,
                hint="nest less deep, or raise the limit; a graph that runs itself never ends",
            )


def _has_outcome(attempt: Attempt, key: str) -> bool:
    nested_run = None if attempt.node_run is None else attempt.node_run.nested_runs.get(key)
    return nested_run is not None and nested_run.outcome_for(attempt.number) is not None


def _check_not_ended(attempt: Attempt) -> None:
    if attempt.phase is DONE:
        raise attempt.ended_error()


def _check_key(attempt: Attempt, key: object) -> None:
    is_text = isinstance(key, str)  # a node may pass a number
    if not is_text or not key or len(key) > _MAX_KEY_LENGTH or _PATH_SEPARATORS.intersection(key):
        raise PermanentError(
            f"node {attempt.path!r} cannot name a nested run {key!r}",
            code="invalid-key",
            hint=f"a key is text of 1 to {_MAX_KEY_LENGTH} characters, none of them [, ] or /",
        )


def _check_acyclic(attempt: Attempt, program: Program) -> None:
    topology = program.topology
    if len(topology.order) == len(topology):
        return
    cycle = cycle_diagnostics(topology)[0]
    raise PermanentError(
        f"node {attempt.path!r} cannot run a graph inside itself: {cycle.message}",
        code=cycle.code,
        hint=cycle.hint,
    )
