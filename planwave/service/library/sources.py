"""What a run executes: a built graph, a stored execution, or a fork of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planwave.errors import NotFound, PlanwaveError
from planwave.events import Event, ExecutionState, fold
from planwave.executor.driver.execution import utc_now
from planwave.executor.inputs import plan_inputs, validate_inputs, wave_count
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.graph.model import Graph, Json
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import NodeTypes
from planwave.ids import new_id
from planwave.principals import LIBRARY
from planwave.service.executions.fork import ForkRequest, fork_spec
from planwave.service.executions.run_spec import RunSpec, new_execution, run_spec_from_events
from planwave.service.library.graphs import BuiltGraph
from planwave.service.library.stores import RunStore
from planwave.service.streaming.stored_execution import load_events, load_record
from planwave.storage.records import ExecutionRecord, StoredCall


@dataclass(slots=True, kw_only=True)
class LoadedRun:
    """One execution in memory.

    Attributes:
        record: Its record.
        spec: What it is to run.
        events: Its durable events; the driver appends to them.
        program: Its graph bound to its node types, once that is needed: not to read a stored run.
        is_stored: Whether ``record`` and the first event are in the store.
        epoch: The owner's epoch; None where another run may own it.
        calls: What was recorded of its calls when it was last read.
        causes: What nodes raised that failed in this process, by path.
    """

    record: ExecutionRecord
    spec: RunSpec
    events: list[Event]
    program: Program | None = None
    is_stored: bool = False
    epoch: int | None = None
    calls: Sequence[StoredCall] = ()
    causes: dict[str, BaseException] = field(default_factory=dict[str, BaseException])

    def state(self) -> ExecutionState:
        """Return the state of the execution after its durable events."""
        return fold(self.events)

    async def catch_up(self, store: RunStore) -> None:
        """Read the events that another run may have stored meanwhile."""
        last_seq = len(self.events)
        self.events.extend(await store.events(self.record.execution_id, after=last_seq))


def new_run(
    built: BuiltGraph,
    inputs: Mapping[str, Mapping[str, Json]] | None,
    options: RunOptions,
    goal: str,
    *,
    require_approval: bool = False,
) -> LoadedRun:
    """Return a new execution of a graph.

    Raises:
        InputError: The inputs are invalid, or the options leave nothing to run.
    """
    program = built.program
    goal = goal or built.goal
    spec = RunSpec(
        graph=program.graph,
        inputs=validate_inputs(program, built.inputs if inputs is None else inputs),
        options=options,
        goal=goal,
        title=built.title or goal,
        approval={"plan_hash": graph_hash(program.graph)} if require_approval else None,
        written_by=built.written_by,
    )
    return _create(spec, program)


def _create(spec: RunSpec, program: Program) -> LoadedRun:
    waves = wave_count(program, plan_inputs(program, spec.inputs, spec.options))
    record, created = new_execution(spec, waves, new_id(), utc_now(), by=LIBRARY)
    return LoadedRun(record=record, spec=spec, events=[created], program=program, epoch=1)


async def load_stored(store: RunStore, execution_id: str) -> LoadedRun:
    """Return a stored execution.

    Raises:
        NotFound: No execution has this id.
        Conflict: ``unreadable``: the stored events were changed from outside.
    """
    try:
        record = await load_record(store, execution_id)
    except NotFound as error:
        error.hint = "pass the whole id, which RunResult.execution_id has"
        raise
    events = await load_events(store, execution_id)
    spec = run_spec_from_events(execution_id, events, None)
    return LoadedRun(record=record, spec=spec, events=[*events], is_stored=True)


async def create_fork(
    store: RunStore,
    catalogue: NodeTypes,
    parent_id: str,
    request: Callable[[ExecutionState], ForkRequest],
) -> LoadedRun:
    """Return a new execution that reuses the results of another.

    Args:
        store: Where the other one is stored.
        catalogue: The node types.
        parent_id: The id of the other one.
        request: Returns what to change, given the state of the other one.

    Raises:
        NotFound, Conflict, GraphInvalid, InputError: See ``ExecutionService.fork``.
    """
    before = await load_stored(store, parent_id)
    state = before.state()
    return _create(*fork_spec(before.spec, state, request(state), catalogue))


async def first_graph(store: RunStore, parent: Mapping[str, Any] | None) -> Graph | None:
    """Return the graph that the forks of an execution began with; None if it is none or cannot be read.

    Args:
        store: Where the executions are stored.
        parent: The relation of the execution to its parent.
    """
    graph: Graph | None = None
    seen: set[str] = set()
    while parent is not None and parent["execution_id"] not in seen:
        seen.add(parent["execution_id"])
        try:
            events = await load_events(store, parent["execution_id"], limit=1)
            spec = run_spec_from_events(parent["execution_id"], events, None)
        except PlanwaveError:  # it was deleted
            return None
        graph, parent = spec.graph, spec.parent
    return graph


class RunJournal:
    """The journal of a run: appends to its store and to :attr:`LoadedRun.events`.

    The first batch also stores a new execution, in the same commit: no caller has its id earlier.
    """

    def __init__(self, store: RunStore, run: LoadedRun) -> None:
        self._store, self._run = store, run

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        """Make a batch durable; see ``Journal``."""
        run = self._run
        if run.is_stored:
            await self._store.append(execution_id, epoch, events)
        else:
            await self._store.create_execution(run.record, [*run.events, *events])
            run.is_stored = True
        run.events.extend(events)
