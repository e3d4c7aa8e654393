"""What a run executes: a built graph, a stored execution, or a fork of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from planwave.errors import NotFound, PlanwaveError
from planwave.events import Event, ExecutionState, fold
from planwave.executor.driver.execution import utc_now
from planwave.executor.inputs import plan_inputs, validate_inputs, wave_count
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.graph.checking.checker import check
from planwave.graph.model import Graph, Json
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import Catalogue
from planwave.ids import new_id
from planwave.principals import LIBRARY
from planwave.service.executions.fork import ForkRequest, build_fork
from planwave.service.executions.loading import run_spec_from_events
from planwave.service.executions.parent_results import parent_data
from planwave.service.executions.plan_approval import (
    approval_of_fork,
    approval_request,
    hash_to_approve,
)
from planwave.service.library.graphs import BuiltGraph
from planwave.service.library.stores import RunStore
from planwave.service.plans.documents import raise_for_run
from planwave.service.streaming.stored_execution import load_events, load_record
from planwave.storage.records import ExecutionRecord, StoredCall


@dataclass(slots=True, kw_only=True)
class LoadedRun:
    """One execution in memory.

    Attributes:
        graph: The graph that is run.
        catalogue: The node types.
        record: Its record.
        events: Its durable events; the driver appends to them.
        inputs: ``{node_id: {handle: value}}``.
        parent: The relation to the parent of a fork; see ``executions/parent_results.py``.
        approval: The approval that the graph needs; see ``executions/plan_approval.py``.
        written_by: ``model`` if a model wrote the graph.
        flows: The ids of the only stored flows that may run in it; None for any.
        is_stored: Whether ``record`` and the first event are in the store.
        epoch: The owner's epoch.
        calls: What was recorded of its calls when it was last driven.
    """

    graph: Graph
    catalogue: Catalogue
    record: ExecutionRecord
    events: list[Event]
    inputs: Mapping[str, Mapping[str, Json]]
    options: RunOptions
    goal: str = ""
    trigger: Json = None
    parent: Json = None
    approval: Mapping[str, Json] | None = None
    written_by: Literal["model"] | None = None
    flows: Sequence[str] | None = None
    is_stored: bool = False
    epoch: int = 1
    calls: Sequence[StoredCall] = ()
    _program: Program | None = None

    @property
    def program(self) -> Program:
        """The graph bound to its node types; reading a stored run does not need it.

        Raises:
            GraphInvalid: The graph does not fit the node types that are registered here.
        """
        if self._program is None:
            raise_for_run(check(self.graph, self.catalogue))
            self._program = Program(self.graph, self.catalogue)
        return self._program

    def state(self) -> ExecutionState:
        """Return the state of the execution after its durable events."""
        return fold(self.events)

    def approval_request(self) -> Json | None:
        """Return the request before the first node starts; None if there is none."""
        plan_hash = hash_to_approve(self.approval, self.graph)
        if plan_hash is None:
            return None
        title = self.record.title
        # Another graph is another run here: there is no execution that a changed plan could replace.
        return approval_request(plan_hash, title=title, goal=self.goal, is_editable=False)


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
    values = validate_inputs(program, built.inputs if inputs is None else inputs)
    goal = goal or built.goal
    approval = {"plan_hash": graph_hash(program.graph)} if require_approval else None
    title = built.title or goal
    return _create(
        program, values, options, goal=goal, title=title, approval=approval,
        written_by=built.written_by,
    )  # fmt: skip


def _create(
    program: Program,
    inputs: Mapping[str, Mapping[str, Json]],
    options: RunOptions,
    *,
    goal: str,
    title: str,
    trigger: Json = None,
    parent: Mapping[str, Json] | None = None,
    approval: Mapping[str, Json] | None = None,
    written_by: Literal["model"] | None = None,
    flows: Sequence[str] | None = None,
) -> LoadedRun:
    waves = wave_count(program, plan_inputs(program, inputs, options))
    execution_id, at = new_id(), utc_now()
    facts: dict[str, Any] = {"goal": goal, "title": title, "options": options.as_json()}
    facts |= {
        name: value
        for name, value in (
            ("inputs", inputs),
            ("trigger", trigger),
            ("parent", parent),
            ("approval", approval),
            ("written_by", written_by),
        )
        if value
    }
    if flows is not None:
        facts["flows"] = list(flows)
    facts |= {"graph": program.graph.document, "waves": waves}
    facts["created_by"] = LIBRARY.as_json()
    record = ExecutionRecord(execution_id, None, goal, title, "starting", at, created_by=LIBRARY)
    created = Event(execution_id, 1, at, "execution.created", None, None, facts)
    return LoadedRun(
        graph=program.graph,
        catalogue=program.catalogue,
        _program=program,
        record=record,
        events=[created],
        inputs=inputs,
        options=options,
        goal=goal,
        trigger=trigger,
        parent=parent,
        approval=approval,
        written_by=written_by,
        flows=flows,
    )


async def load_stored(store: RunStore, catalogue: Catalogue, execution_id: str) -> LoadedRun:
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
    return LoadedRun(
        graph=spec.graph,
        catalogue=catalogue,
        record=record,
        events=list(events),
        inputs=spec.inputs,
        options=spec.options,
        goal=spec.goal,
        trigger=spec.trigger,
        parent=spec.parent,
        approval=spec.approval,
        written_by=spec.written_by,
        flows=spec.flows,
        is_stored=True,
        epoch=record.epoch,
    )


async def create_fork(
    store: RunStore,
    catalogue: Catalogue,
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
    before = await load_stored(store, catalogue, parent_id)
    state = before.state()
    wanted = request(state)
    fork = build_fork(state, before.graph, wanted)
    raise_for_run(check(fork.graph, catalogue))
    program = Program(fork.graph, catalogue)
    preset = validate_inputs(program, fork.preset)
    return _create(
        program,
        validate_inputs(program, fork.inputs),
        wanted.options or before.options,
        goal=before.goal,
        title=before.record.title,
        trigger=before.trigger,
        parent=parent_data(parent_id, fork.rerun, preset, is_retry=wanted.is_retry),
        approval=approval_of_fork(state, graph_hash(fork.graph), required=False),
        written_by=before.written_by,
        flows=before.flows,
    )


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
