"""Graph runs, made ready in the task of a node: the execution's own, and those nested in nodes.

For a nested run the graph is checked and prepared, the request posted, and the outcome awaited.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from planwave.errors import LimitExceeded, PermanentError
from planwave.executor.inputs import adapt_inputs, copy_inputs, flow_inputs, plan_inputs
from planwave.executor.linked_graphs import (
    ByNode,
    linked_graph,
    require_linked,
    settled_values,
)
from planwave.executor.messages import NestedRunAbandoned, NestedRunRequested
from planwave.executor.node_api.context import calls_around
from planwave.executor.node_api.mailbox import Mailbox
from planwave.executor.node_api.runtime import GraphRuntime
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.executor.scheduling.schedule import Schedule
from planwave.executor.state import (
    DONE,
    Attempt,
    GraphRun,
    Outputs,
    current_attempt,
)
from planwave.executor.values import GraphValues
from planwave.expressions.json_text import copy_json
from planwave.expressions.variables import FLOW_INPUTS, NODES
from planwave.graph.checking.cycles import cycle_diagnostics
from planwave.graph.json_values import NotJson, to_json, to_json_each
from planwave.graph.model import DEFAULT_TARGET_HANDLE, DataValue, Graph, Json
from planwave.graph.plan import canonical_json, graph_hash
from planwave.graph.protocols import NodeTypes, WrittenBy
from planwave.graph.subgraphs import subgraphs_of

if TYPE_CHECKING:  # both are built on this module
    from planwave.executor.node_api.host import NodeHost
    from planwave.executor.reuse.reuse import Reuse

_MAX_PREPARED: Final = 64
"""How many prepared graphs are kept, those used last."""
_MAX_KEY_LENGTH: Final = 100
NO_FLOORS: Final[Mapping[str, tuple[int, bool]]] = {}
"""No graph was changed while it was run."""
_PATH_SEPARATORS: Final = frozenset("[]/")
"""What separates the parts of a path."""


Admit = Callable[[Graph, WrittenBy], None]
"""Raises ``NodeError`` for a graph that may not run inside one that was not written by a person."""


class PreparedGraph(NamedTuple):
    """A nested graph bound to its node types, with the hash of its content.

    ``admitted`` has the authors for whom it was admitted.
    """

    program: Program
    hash: str
    admitted: set[WrittenBy]


class NestedGraphs:
    """The nested graphs that the nodes of one execution run.

    Args:
        mailbox: Receives the requests.
        options: Options of the execution.
        parent: For a fork: the earlier runs to reuse results from.
        admit: Decides about graphs inside one that was not written by a person; None admits all.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        options: RunOptions,
        parent: Reuse | None,
        admit: Admit | None = None,
    ) -> None:
        self._mailbox, self._options, self._parent = mailbox, options, parent
        self._admit = admit
        self._prepared: dict[int, PreparedGraph] = {}

    async def run(
        self,
        host: NodeHost,
        values: GraphValues,
        key: str,
        graph: Graph,
        inputs: Mapping[str, Json],
        variables: Mapping[str, Json],
        written_by: WrittenBy | None,
    ) -> Mapping[str, Outputs]:
        """Run a graph inside a running node; see ``RuntimeApi.run_graph``."""
        attempt = self._check(key)
        prepared = self._prepare(graph, values.program.catalogue)
        author = written_by or attempt.graph_run.values.written_by
        self._require_admitted(prepared, attempt, author)
        _check_acyclic(attempt, prepared.program)
        node_inputs = copy_inputs(prepared.program, inputs)
        preset: ByNode = adapt_inputs(prepared.program, node_inputs)
        if preset != node_inputs:
            # A type completed them, perhaps with a new id: the run of a key has the same inputs always.
            preset = cast("ByNode", await host.once(f"inputs {key}", _ready(cast("Json", preset))))
        variables = _json_variables(attempt, key, variables)
        return await self._open(host, values, key, prepared, preset, variables, author)

    def _require_admitted(
        self, prepared: PreparedGraph, attempt: Attempt, author: WrittenBy | None
    ) -> None:
        """Have a graph judged that does not stand in a node of a plan, which was checked with it."""
        if author is None or self._admit is None or author in prepared.admitted:
            return
        around = attempt.graph_run.values
        if author != around.written_by or prepared.hash not in _graphs_in(around, attempt.node):
            self._admit(prepared.program.graph, author)
        prepared.admitted.add(author)

    async def run_linked(
        self,
        host: NodeHost,
        values: GraphValues,
        key: str,
        target: int,
        inputs: Mapping[str, Json],
        variables: Mapping[str, Json],
    ) -> Outputs:
        """Run a linked node inside a running node; see ``RuntimeApi.run_linked``."""
        attempt, program = self._check(key), values.program
        if attempt.graph_run.prefix != values.prefix:
            raise PermanentError(
                f"node {attempt.path!r} cannot run {program.topology.ids[target]!r}: "
                "it is linked in another graph",
                code="not-linked",
            )
        node = values.number_of(attempt.path)
        require_linked(program, node, target)
        handle_inputs = _checked_inputs(attempt, key, inputs)
        arriving, named = settled_values(values, node, target, handle_inputs)
        if program.join_any:
            # A node may begin before all that lead to it have settled.
            arriving, named = await host.once(f"linked {key}", _ready([arriving, named]))
        graph = linked_graph(program, node, target, handle_inputs, arriving)
        prepared = self._prepare(graph, program.catalogue, has_entries=False)
        _check_acyclic(attempt, prepared.program)
        caller, ids = program.topology.ids[node], program.topology.ids
        preset = {**arriving, **({caller: handle_inputs} if handle_inputs else {})}
        visible = {**_json_variables(attempt, key, variables), **({NODES: named} if named else {})}
        author = values.written_by
        outputs = await self._open(host, values, key, prepared, preset, visible, author)
        return outputs.get(ids[target], {})

    def _check(self, key: object) -> Attempt:
        """Return the attempt that asks for a nested run, if it may ask for one."""
        attempt = current_attempt.get()
        _check_not_ended(attempt)
        _check_key(attempt, key)
        self._check_depth(attempt)
        return attempt

    async def _open(
        self,
        host: NodeHost,
        values: GraphValues,
        key: str,
        prepared: PreparedGraph,
        preset: ByNode,
        variables: Mapping[str, Json],
        author: WrittenBy | None,
    ) -> Mapping[str, Outputs]:
        """Create the run of a prepared graph, unless its outcome is known, and wait for the outcome."""
        attempt, (program, of_graph, _) = current_attempt.get(), prepared
        of_inputs = canonical_json([preset, dict(variables)]).encode("utf-8")
        identity = of_graph, hashlib.sha256(of_inputs).hexdigest()
        prefix = f"{attempt.path}[{key}]/"
        graph_run: GraphRun | None = None
        if not _has_outcome(attempt, key):
            visible = {**values.variables, **variables} if variables else values.variables
            graph_run = create_graph_run(
                program, host, self._options, preset, prefix, visible, author
            )
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
        is_counted = attempt.counts(asyncio.current_task())
        self._mailbox.post(
            NestedRunRequested(attempt, key, identity, prefix, graph_run, reply, is_counted)
        )
        try:
            return await outcome or {}
        except asyncio.CancelledError:
            self._mailbox.post(NestedRunAbandoned(attempt, key, reply))
            raise
        finally:
            attempt.covered -= covered
            if attempt.waits is not None:
                attempt.waits.discard(reply)
            self._mailbox.forget(reply)
            del outcome  # its error keeps this frame: the cycle would keep the graph run

    def _prepare(
        self, graph: Graph, catalogue: NodeTypes, *, has_entries: bool = True
    ) -> PreparedGraph:
        """Return a graph that is ready to run; a loop runs the same one again and again."""
        ready = self._prepared.pop(id(graph), None)
        if ready is None:
            program = Program(graph, catalogue, has_entries=has_entries)
            ready = PreparedGraph(program, graph_hash(graph), set())
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


def _graphs_in(values: GraphValues, node: int) -> set[str]:
    """Return the hashes of the graphs that stand in the data of a node."""
    program = values.program
    return {graph_hash(each) for each in subgraphs_of(program.steps[node].node, program.catalogue)}


def _ready(value: Json) -> Callable[[], Awaitable[Json]]:
    async def give() -> Json:
        return value

    return give


def _checked_inputs(attempt: Attempt, key: str, inputs: Mapping[str, Json]) -> dict[str, Json]:
    """Return a copy of the values for the handles of a linked node."""
    try:
        values: dict[str, Json] = copy_json(to_json(inputs))
    except NotJson as error:
        message = f"node {attempt.path!r} gives, to run {key!r}, inputs that are {error}"
        raise PermanentError(
            message, code="invalid-inputs", hint="inputs are {handle: value}, with JSON values"
        ) from error
    if not isinstance(values, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"node {attempt.path!r} gives, to run {key!r}, inputs that are no object"
        raise PermanentError(message, code="invalid-inputs", hint="inputs are {handle: value}")
    return values


def _json_variables(
    attempt: Attempt, key: str, variables: Mapping[str, Json]
) -> Mapping[str, Json]:
    try:
        return to_json_each(variables)
    except NotJson as error:
        message = f"node {attempt.path!r} names, for run {key!r}, a variable that is {error}"
        raise PermanentError(message, code="invalid-inputs") from error


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


def create_graph_run(
    program: Program,
    host: NodeHost,
    options: RunOptions,
    inputs: Mapping[str, Mapping[str, Json]] | None,
    prefix: str = "",
    variables: Mapping[str, Json] | None = None,
    written_by: WrittenBy | None = None,
    floors: Mapping[str, tuple[int, bool]] = NO_FLOORS,
) -> GraphRun:
    """Create the run of an execution's own graph, or of one nested in a node.

    Args:
        program: The graph to run.
        host: The services of the execution's nodes.
        options: Scheduling and failure policy; for the execution's own graph, also its part.
        inputs: ``{node_id: {handle: value}}``: nodes settled with these values.
        prefix: Goes before the ids of nested nodes in their paths.
        variables: Names for expressions of a nested graph; None for those of the execution.
        written_by: Who wrote the graph, if no person did.
        floors: The waves of nodes of a graph that was changed while it was run; see ``WaveProgress``.
    """
    # Node ids of options are those of the execution's own graph.
    entry = plan_inputs(program, inputs, RunOptions() if prefix else options)
    names = host.variables if variables is None else variables
    if own := flow_inputs(program, entry):
        around = dict(cast("Mapping[str, Json]", names.get(FLOW_INPUTS, {})))
        around.pop(DEFAULT_TARGET_HANDLE, None)  # the whole input of another graph
        names = {**names, FLOW_INPUTS: around | own}
    values = GraphValues(program, prefix, names, written_by)
    for node, preset in entry.preset.items():
        values.outputs[node] = {h: DataValue("any", v) for h, v in preset.items()}
    index = program.topology.index
    rules = program.scheduling_rules(options)
    holds_stop = rules.stop_on_failure and not prefix  # only this one may be changed
    schedule = Schedule(
        program.topology,
        rules._replace(
            floors={index[node_id]: wave for node_id, wave in floors.items()},
            stop_on_failure=rules.stop_on_failure and not holds_stop,
        ),
        preset={node: preset.keys() for node, preset in entry.preset.items()},
        part=entry.part,
        dropped=entry.dropped,
    )
    graph_run = GraphRun(values, schedule, GraphRuntime(values, host))
    graph_run.holds_stop = holds_stop
    return graph_run
