"""Results that a fork reuses from its parent execution, instead of paying for them again.

A node runs again if a dependency of its result has changed, or if the parent has no result for it.
Its nested runs are compared in the same way, node by node: each nested graph is matched with the
parent's nested run of the same key, if inputs and variables are equal. The graphs may differ: nodes
that a change does not affect have the same result key in both.

The parent may be a fork that ended before it reused all it could. So its own ancestors are searched
too, the latest first, except for nodes that a later execution reran or had preset.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from planwave.errors import PlanwaveError
from planwave.events.types import NodeCompletedData, ReuseOrigin
from planwave.events.unreadable import guard_stored, unreadable_error
from planwave.executor.node_api.host import NodeHost
from planwave.executor.node_api.nested import NO_FLOORS, create_graph_run
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.recovery.replay import replay
from planwave.executor.requests import PendingRequests
from planwave.executor.reuse.parent_runs import ParentHistory
from planwave.executor.reuse.result_key import LinkFailed, dependencies, result_key
from planwave.executor.state import Attempt, GraphRun, ParentGraphRun
from planwave.executor.stored_runs import HowMade, StoredGraphRun
from planwave.graph.model import DataValue, Json
from planwave.graph.outputs import Outputs
from planwave.graph.protocols import NodeTypes
from planwave.graph.reading.documents import read_graph

_log = logging.getLogger(__name__)


class ReusedResult(NamedTuple):
    """The result of a node that did not run, with the extra data of its ``node.completed``."""

    outputs: Outputs
    event_data: NodeCompletedData


class OnceValue(NamedTuple):
    """A stored once value; it may be null."""

    value: Json


class ContinuedAttempt(NamedTuple):
    """An attempt of an earlier execution that a node of a fork continues."""

    execution_id: str
    number: int


class ParentExecution(NamedTuple):
    """The parent execution of a fork, or one of the parent's ancestors.

    Attributes:
        execution_id: Its id.
        program: Its graph.
        history: The stored events of all its graphs.
        host: The services of its nodes.
        options, inputs: Its own options and inputs.
        wave_floors: The waves of nodes of a graph that was changed while it ran; see ``WaveProgress``.
        excluded: Ids of the nodes whose results are not reused, because a later execution reran
            them or had them preset.
    """

    execution_id: str
    program: Program
    history: ParentHistory
    host: NodeHost
    options: RunOptions
    inputs: Mapping[str, Mapping[str, Json]] | None
    excluded: frozenset[str] = frozenset()
    wave_floors: Mapping[str, tuple[int, bool]] = NO_FLOORS


class Reuse:
    """The results that a fork may reuse from its parent execution.

    Args:
        execution_id: Id of the parent execution.
        parents: The parent and its own ancestors, the latest first; empty if the parent is gone.
        rerun: Ids of nodes that run in any case.
        preset: ``{node_id: {handle: value}}``: values that settle these nodes, whatever the parent has.
        is_retry: The nodes of ``rerun`` reuse results of their nested runs; otherwise they restart
            with all their nested runs.

    Attributes:
        execution_id: Id of the parent execution.
        own_runs: The earlier runs of the fork's own graph; empty if the stored events are invalid.
    """

    def __init__(
        self,
        execution_id: str,
        parents: Sequence[ParentExecution],
        rerun: Collection[str],
        preset: Mapping[str, Mapping[str, Json]],
        *,
        is_retry: bool = False,
    ) -> None:
        self.execution_id, self._parents = execution_id, parents
        self._rerun, self._preset = frozenset(rerun), preset
        self._is_retry = is_retry
        self._restarted = frozenset[str]() if is_retry else self._rerun
        self._programs: dict[str, Program] = {}
        self._continued: dict[str, ContinuedAttempt] = {}
        self.own_runs: Sequence[ParentGraphRun] = [*self._replay_own_graphs()]

    @property
    def execution_ids(self) -> Sequence[str]:
        """The ids of the parent and of its own ancestors, the latest first."""
        return [each.execution_id for each in self._parents]

    def parent_runs_of(
        self,
        attempt: Attempt,
        graph_run: GraphRun,
        identity: tuple[str, str],
        inputs: Mapping[str, Mapping[str, Json]],
        variables: Mapping[str, Json],
    ) -> Sequence[ParentGraphRun]:
        """Return the earlier runs that a nested run may reuse results from, the latest first.

        Args:
            attempt: The attempt that starts the nested run.
            graph_run: The nested run.
            identity: Hashes of the graph, and of inputs and variables.
            inputs: Inputs of the nested graph.
            variables: Names for its expressions, besides those of the enclosing graph.
        """
        outside = {parent_run.record: parent_run for parent_run in self._counterparts(attempt)}
        if not outside or self._must_restart(attempt):
            return ()
        parent_runs: list[ParentGraphRun] = []
        for number, record in self._records_at(graph_run.prefix, identity[1]):
            around = None if record.parent is None else outside.get(record.parent)
            if around is None or record.identity is None:
                continue
            before, is_same = self._parents[number], record.identity[0] == identity[0]
            with suppress(PlanwaveError):  # the nested run reuses nothing from this one
                program = (
                    graph_run.program if is_same else self._program_of(before, record.identity[0])
                )
                seen = {**around.graph_run.values.variables, **variables}
                host, options = before.host, before.options
                then = create_graph_run(program, host, options, inputs, graph_run.prefix, seen)
                parent_runs.append(self._replayed(ParentGraphRun(record, then, number)))
                if is_same and then.is_complete:
                    break  # older runs cannot add results
        return parent_runs

    def _records_at(self, prefix: str, of_inputs: str) -> Iterator[tuple[int, StoredGraphRun]]:
        """Yield ``(generation, run)`` of the runs of a key with the same inputs, the latest first."""
        for number, before in enumerate(self._parents):
            for record in before.history.runs_at(prefix):
                if record.identity is not None and record.identity[1] == of_inputs:
                    yield number, record

    def _replay_own_graphs(self) -> Iterator[ParentGraphRun]:
        for number, before in enumerate(self._parents):
            with suppress(PlanwaveError):
                graph_run = create_graph_run(
                    before.program, before.host, before.options, before.inputs,
                    floors=before.wave_floors,
                )  # fmt: skip
                yield self._replayed(ParentGraphRun(before.history.root, graph_run, number))

    def _counterparts(self, attempt: Attempt) -> Iterator[ParentGraphRun]:
        """Yield the earlier graph runs that a node may reuse results from, the latest first."""
        node_id = attempt.graph_run.program.topology.ids[attempt.node]
        for parent_run in attempt.graph_run.parent_runs:
            passed_over = self._parents[parent_run.generation].excluded
            if attempt.graph_run.nested_run is not None or node_id not in passed_over:
                yield parent_run

    def _candidates(self, attempt: Attempt) -> Iterator[_Candidate]:
        """Yield the earlier nodes of the same path, the latest first."""
        node_id = attempt.graph_run.program.topology.ids[attempt.node]
        for parent_run in self._counterparts(attempt):
            number = parent_run.graph_run.program.topology.index.get(node_id)
            if number is not None:
                yield _Candidate(parent_run, number, parent_run.record.how_made(attempt.path))

    def _program_of(self, parent: ParentExecution, graph_hash: str) -> Program:
        """Return a nested graph of an earlier execution, by its hash."""
        if graph_hash not in self._programs:
            document = parent.history.documents.get(graph_hash)
            if document is None:
                raise unreadable_error(parent.execution_id, "a nested graph is missing")
            graph, _ = read_graph(document)
            self._programs[graph_hash] = Program(graph, parent.program.catalogue)
        return self._programs[graph_hash]

    async def result_of(self, attempt: Attempt, host: NodeHost) -> ReusedResult | None:
        """Return the reusable result of a node that is about to run, or None if the node has to run.

        A result is reusable if it belongs to the node of the same path and has the same result key;
        see ``result_key.py``.
        """
        graph_run, node = attempt.graph_run, attempt.node
        if graph_run.nested_run is None:
            node_id = graph_run.program.topology.ids[node]
            if (preset := self._preset.get(node_id)) is not None:
                outputs = {handle: DataValue("any", value) for handle, value in preset.items()}
                return ReusedResult(outputs, {"changed": True})
            if node_id in self._restarted:
                return None
        then = [each for each in self._candidates(attempt) if self._has_result(attempt, each)]
        same = await self._first_match(attempt, host, then)
        if same is None:
            return await self._continue_attempt(attempt, host)
        before = self._parents[same.parent_run.generation]
        if before.history.has_dependencies_inside(same.parent_run.record, attempt.path):
            return await self._continue_attempt(attempt, host)
        outputs = same.parent_run.graph_run.outputs[same.node]
        types = set(before.history.types_used(same.parent_run.record, attempt.path))
        if outputs is None or not _are_current(types, graph_run.program.catalogue):
            return None
        origin: ReuseOrigin = {"execution_id": before.execution_id}
        if before.history.has_failed_inside(same.parent_run.record, attempt.path):
            origin["failed_inside"] = True
        data: NodeCompletedData = {"reused": origin}
        if types:
            data["versions"] = dict(types)
        if same.how_made.depends_on is not None:
            data["depends_on"] = same.how_made.depends_on
        return ReusedResult(outputs, data)

    async def _continue_attempt(self, attempt: Attempt, host: NodeHost) -> None:
        """Record the earlier attempt that a node's first attempt continues, if any.

        That is an unfinished attempt of the parent, or one whose result does not hold any more because something
        that it depends on has changed: it made the same calls until it met the change. Later attempts
        start over: the stored progress may be the reason why the first one failed.
        """
        if attempt.number > 1 or self._must_restart(attempt):
            return
        last = [each for each in self._candidates(attempt) if not each.parent_run.generation]
        then = [each for each in last if each.unfinished_attempt(attempt) is not None]
        same = await self._first_match(attempt, host, then)
        number = None if same is None else same.unfinished_attempt(attempt)
        execution_id = self.execution_id
        for each in self._latest_that_ran(attempt):
            if number is None and await self._holds_until_change(attempt, each, host):
                number = each.parent_run.record.completed_attempt(attempt.path)
                execution_id = self._parents[each.parent_run.generation].execution_id
        if number is not None:
            self._continued[attempt.path] = ContinuedAttempt(execution_id, number)

    def _latest_that_ran(self, attempt: Attempt) -> Iterator[_Candidate]:
        """Yield the nodes of the parent that ran, or those that ran where it reused their results."""
        origins = {self.execution_id}
        for each in self._candidates(attempt):
            if self._parents[each.parent_run.generation].execution_id not in origins:
                continue
            origin = each.parent_run.record.reused.get(attempt.path)
            if origin is None:
                yield each
            else:
                origins.add(origin)

    async def _holds_until_change(
        self, attempt: Attempt, candidate: _Candidate, host: NodeHost
    ) -> bool:
        """Return whether what a completed node has recorded may be served until its calls differ."""
        record = candidate.parent_run.record
        history = self._parents[candidate.parent_run.generation].history
        if history.has_failed_inside(record, attempt.path):
            return False
        types = history.types_used(record, attempt.path)
        if not _are_current(types, attempt.graph_run.program.catalogue):
            return False
        if candidate.how_made.depends_on is None:
            return True
        with suppress(Exception):  # it was logged when the results were compared
            return candidate.how_made.still_holds(await dependencies(host, attempt))
        return False

    def continued_attempt(self, path: str, attempt: int) -> ContinuedAttempt | None:
        """Return the earlier attempt that an attempt of a node continues, if any."""
        return self._continued.get(path) if attempt == 1 else None

    def was_recorded(
        self, path: str, continued: ContinuedAttempt, usage: Mapping[str, Json]
    ) -> bool:
        """Return whether an earlier execution recorded a call with this usage for an attempt."""
        return any(
            each.history.consume_usage(path, continued.number, usage)
            for each in self._parents
            if each.execution_id == continued.execution_id
        )

    async def once_value(self, attempt: Attempt, key: str, host: NodeHost) -> OnceValue | None:
        """Return a once value of an earlier node with the same result key, or None."""
        if self._must_restart(attempt):
            return None
        then = [each for each in self._candidates(attempt) if key in each.how_made.once_values]
        same = await self._first_match(attempt, host, then)
        return None if same is None else OnceValue(same.how_made.once_values[key])

    async def _first_match(
        self, attempt: Attempt, host: NodeHost, candidates: Sequence[_Candidate]
    ) -> _Candidate | None:
        if not candidates:
            return None
        try:
            depends_on = await dependencies(host, attempt)
            now = await result_key(host, attempt.graph_run.values, attempt.node)
            for each in candidates:
                host_then = self._parents[each.parent_run.generation].host
                values = each.parent_run.graph_run.values
                if each.how_made.still_holds(depends_on) and now == await result_key(
                    host_then, values, each.node, each.how_made
                ):
                    return each
        except LinkFailed:
            pass  # so will the node
        except PlanwaveError:
            pass  # an expression cannot be resolved: running the node reports that better
        except Exception:  # noqa: BLE001 - a type may raise anything; the node can run all the same
            where = f"{attempt.path!r} of execution {self.execution_id}"
            _log.exception("%s runs: what its result follows from cannot be said", where)
        return None

    def _has_result(self, attempt: Attempt, candidate: _Candidate) -> bool:
        """Return whether an earlier node has a result.

        For a node of ``rerun``, the direct parent does not count; older executions do. For a retry,
        a result without what failed inside the node does not count.
        """
        history = self._parents[candidate.parent_run.generation].history
        if self._is_retry and history.has_failed_inside(candidate.parent_run.record, attempt.path):
            return False
        if not candidate.parent_run.generation and attempt.graph_run.nested_run is None:
            node_id = attempt.graph_run.program.topology.ids[attempt.node]
            if node_id in self._rerun:
                return False
        return candidate.parent_run.graph_run.has_completed(candidate.node)

    def _must_restart(self, attempt: Attempt) -> bool:
        if attempt.graph_run.nested_run is not None:
            return False
        return attempt.graph_run.program.topology.ids[attempt.node] in self._restarted

    def _replayed(self, parent_run: ParentGraphRun) -> ParentGraphRun:
        """Replay the stored events of a graph run into it."""
        facts = parent_run.record.events
        with guard_stored(self._parents[parent_run.generation].execution_id):
            replay(parent_run.graph_run, facts, PendingRequests(), facts[-1].at if facts else "")
        return parent_run


async def result_to_reuse(reuse: Reuse, attempt: Attempt, host: NodeHost) -> ReusedResult | None:
    """Return the result that a fork's node reuses, or None if the node has to run.

    The node also has to run if the lookup fails: the stored parent may be damaged.
    """
    try:
        return await reuse.result_of(attempt, host)
    except Exception:  # noqa: BLE001 - whatever is wrong with the parent, the node can run
        return None


def _are_current(types: Iterable[tuple[str, int]], catalogue: NodeTypes) -> bool:
    """Return whether the catalogue has these types in these versions."""
    facts = ((catalogue.type_info(each), version) for each, version in types)
    return all(fact is not None and fact.version == version for fact, version in facts)


class _Candidate(NamedTuple):
    """The node of the same path in an earlier execution."""

    parent_run: ParentGraphRun
    node: int
    how_made: HowMade

    def unfinished_attempt(self, attempt: Attempt) -> int | None:
        """Return the number of its unfinished attempt, if any."""
        return self.parent_run.record.unfinished_attempt(attempt.path)
