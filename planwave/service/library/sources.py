"""What a run executes: a built graph, a stored execution, or a fork of one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from planwave.errors import Conflict, InputError, NotFound, PlanwaveError
from planwave.events import Event, ExecutionState, fold
from planwave.executor.driver.execution import utc_now
from planwave.executor.inputs import validate_inputs
from planwave.executor.options import RunOptions
from planwave.executor.program import Program
from planwave.graph.model import DEFAULT_SOURCE_HANDLE, Graph, Json
from planwave.graph.plan import graph_hash
from planwave.graph.protocols import NodeTypes
from planwave.ids import find_id, new_id
from planwave.json_types import written_plainly
from planwave.nodes.authoring.signatures import require_choice
from planwave.principals import LIBRARY
from planwave.service.executions.fork import (
    ForkRequest,
    NewGraph,
    NodeChanges,
    changes_of_fields,
    fork_spec,
    require_owned,
)
from planwave.service.executions.plan_approval import approval_request
from planwave.service.executions.run_spec import (
    RunSpec,
    new_execution,
    rendered_spec,
    run_spec_from_events,
)
from planwave.service.executions.session import is_driven_here
from planwave.service.library.graphs import BuiltGraph
from planwave.service.library.stores import (
    ListedRuns,
    RunStore,
    StoreSource,
    is_owned_elsewhere,
    open_store,
)
from planwave.service.queries.history import utc_time
from planwave.service.streaming.stored_execution import load_events, load_record
from planwave.shapes.common import ExecutionStatus
from planwave.storage.records import ExecutionRecord, StoredCall, is_interrupted

_IMAGES: Final = "images"
LAST: Final = "last"
"""Names the newest execution wherever an id is expected."""
_PAGE_SIZE: Final = 200


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
        """Read the events that another run may have stored meanwhile, and what is run after them."""
        execution_id, last_seq = self.record.execution_id, len(self.events)
        self.events.extend(await store.events(execution_id, after=last_seq))
        self.follow_changes(self.events[last_seq:])

    def follow_changes(self, events: Sequence[Event]) -> None:
        """Take the graph that is run since the newest of its events, where they have changed it."""
        if any(event.type == "plan.revised" for event in events):
            self.spec = run_spec_from_events(self.record.execution_id, self.events, None)
            self.program = None

    def approval_request(self, plan_hash: str | None) -> dict[str, Json] | None:
        """Return the request for approval of its graph; None where nobody approves it.

        Another graph is another run here: there is no execution that a changed plan could replace.
        """
        if plan_hash is None:
            return None
        title, goal = self.spec.title, self.spec.goal
        return approval_request(plan_hash, title=title, goal=goal, is_editable=False)

    async def read_calls(self, store: RunStore) -> None:
        """Read what is recorded of its calls."""
        own = self.record.execution_id
        self.calls = (await store.calls([own])).get(own, ())


def new_run(
    built: BuiltGraph,
    inputs: Mapping[str, Mapping[str, Json]],
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
        inputs=validate_inputs(program, inputs),
        options=options,
        goal=goal,
        title=built.title or goal,
        approval={"plan_hash": graph_hash(program.graph)} if require_approval else None,
        written_by=built.written_by,
    )
    return _create(spec, program)


def with_message(
    program: Program,
    message: Any,
    images: Sequence[str],
    inputs: Mapping[str, Mapping[str, Json]],
) -> Mapping[str, Mapping[str, Json]]:
    """Return the inputs with those that set the one entry node without any to a message and images.

    Raises:
        InputError: ``no-entry``, ``several-entries``.
    """
    if message is None and not images:
        return inputs
    entries = [program.steps[n] for n in sorted(program.entry_nodes) if n not in inputs]
    if len(entries) != 1:
        entries_text = f"{len(entries)} entry nodes" if entries else "no entry node"
        raise InputError(
            f"the graph has {entries_text}{' without inputs' if inputs else ''}, so the message "
            "cannot be assigned to one",
            code="no-entry" if not entries else "several-entries",
            hint="give the graph one 'start' node, or pass inputs={node_id: {handle: value}}",
        )
    entry = entries[0]
    outputs = entry.facts.outputs
    values: dict[str, Json] = {}
    if message is not None:
        values[outputs[0].name if outputs else DEFAULT_SOURCE_HANDLE] = written_plainly(message)
    if images:
        if not any(port.name == _IMAGES for port in outputs):
            raise InputError(
                f"the entry node {entry.node.id!r} of type {entry.node.type!r} takes no images",
                code="no-entry",
                hint="use an entry node of the type 'user_input'",
            )
        values[_IMAGES] = list(images)
    return {**inputs, entry.node.id: values}


def _create(spec: RunSpec, program: Program) -> LoadedRun:
    spec, waves = rendered_spec(spec, program)
    record, created = new_execution(spec, waves, new_id(), utc_now(), by=LIBRARY)
    return LoadedRun(record=record, spec=spec, events=[created], program=program, epoch=1)


async def load_stored(store: RunStore, execution_id: str) -> LoadedRun:
    """Return a stored execution.

    Raises:
        NotFound: No execution has this id.
        Conflict: ``unreadable``: the stored events were changed from outside.
    """
    record = await load_record(store, execution_id)
    events = await load_events(store, execution_id)
    spec = run_spec_from_events(execution_id, events, None)
    return LoadedRun(record=record, spec=spec, events=[*events], is_stored=True)


async def find_stored(source: StoreSource, name: str) -> LoadedRun:
    """Return the stored execution of an id, of the start or end of an id, or the newest one (``last``).

    Raises:
        NotFound: No execution has such an id.
        InputError: ``ambiguous-id``: several have.
        Conflict: ``unreadable``: the stored events were changed from outside.
    """
    async with open_store(source, read_only=True) as store:
        if await store.execution(name) is None:
            ids = [
                each.execution_id
                async for each in _records(store, limit=1 if name == LAST else None)
            ]
            if name == LAST and not ids:
                raise NotFound(
                    "nothing has run here yet", hint="planwave.run(…, store=…) runs a graph"
                )
            name = (
                ids[0]
                if name == LAST
                else find_id(ids, name, "execution", "planwave.executions(…)")
            )
        return await load_stored(store, name)


class StoredExecution(NamedTuple):
    """An execution as ``planwave.executions`` lists it.

    Attributes:
        execution_id: Its id.
        title: The title of its plan, or its goal.
        status: ``starting``, ``executing``, ``paused``, ``completed``, ``failed`` or ``cancelled``.
        interrupted: Whether its status says that it runs, and no live process runs it.
        created_at: UTC, ISO 8601, as the times below.
        started_at: When it began.
        completed_at: When it ended.
        plan_id: The plan that it runs; None for a graph of a program.
        parent_id: The execution that it is a fork of.
    """

    execution_id: str
    title: str
    status: ExecutionStatus
    interrupted: bool
    created_at: str
    started_at: str | None = None
    completed_at: str | None = None
    plan_id: str | None = None
    parent_id: str | None = None


async def list_stored(
    source: StoreSource,
    status: ExecutionStatus | Literal["interrupted"] | None,
    *,
    text: str | None,
    since: str | None,
    limit: int | None,
) -> list[StoredExecution]:
    """Return the stored executions, newest first; see ``planwave.executions``.

    Raises:
        InputError: ``invalid-time``.
        ValueError: There is no such status.
        TypeError: ``limit`` is no whole number.
    """
    if status is not None:
        statuses = (*get_args(ExecutionStatus), "interrupted")
        require_choice("planwave.executions", "status", status, statuses)
    if limit is not None and (type(limit) is not int or limit < 0):
        raise TypeError(f"limit is a whole number from 0 up, not {limit!r}")
    stored_status = None if status == "interrupted" else status
    filters: dict[str, Any] = {"status": stored_status, "text": text, "since": since}
    if since is not None:
        filters["since"] = utc_time(since)
    found: list[StoredExecution] = []
    async with open_store(source, read_only=True) as store:
        is_owned = is_owned_elsewhere(source)
        async for record in _records(store, **filters):
            if len(found) == limit:
                break
            is_driven = is_owned or is_driven_here(record.execution_id)
            interrupted = is_interrupted(
                record.status, is_owned=is_driven, was_accepted=record.queued
            )
            if interrupted or status != "interrupted":
                found.append(
                    StoredExecution(
                        record.execution_id, record.title, record.status, interrupted,
                        record.created_at, record.started_at, record.completed_at,
                        record.plan_id, record.parent_id,
                    )
                )  # fmt: skip
    return found


async def _records(
    store: RunStore, *, limit: int | None = None, **chosen: str | None
) -> AsyncGenerator[ExecutionRecord]:
    """Yield records of executions, newest first, page by page."""
    before, size = None, _PAGE_SIZE if limit is None else limit
    lists = cast("ListedRuns", store)
    while page := await lists.executions(before=before, limit=size, **chosen):
        for record in page:
            yield record
        if limit is not None:
            return
        before = page[-1].execution_id


def fork_request(
    fields: Mapping[str, Json],
    changes: NodeChanges,
    rerun: Sequence[str],
    new: BuiltGraph | None,
    state: ExecutionState,
) -> ForkRequest:
    """Return what a fork of an execution changes; arguments are those of ``Run.fork``."""
    if new is None:
        ids = [node["id"] for node in (state.graph or {}).get("nodes", ())]
        return ForkRequest(rerun, changes_of_fields(changes, fields, ids))
    node_changes = changes_of_fields(changes, fields, list(new.graph.by_id))
    graph = NewGraph(new.graph, new.goal, new.title, new.written_by)
    return ForkRequest(rerun, node_changes, new=graph)


async def create_fork(
    store: RunStore,
    catalogue: NodeTypes,
    parent: LoadedRun,
    request: Callable[[ExecutionState], ForkRequest],
) -> LoadedRun:
    """Return a new execution that reuses the results of another.

    Args:
        store: Where the other one is stored.
        catalogue: The node types.
        parent: The other one.
        request: Returns what to change, given the state of the other one.

    Raises:
        NotFound, Conflict, GraphInvalid, InputError: See ``ExecutionService.fork``; ``not-started``.
    """
    if not parent.is_stored:
        hint = "await it first, then retry or fork it"
        raise Conflict("the run has not started yet", code="not-started", hint=hint)
    parent_id = parent.record.execution_id
    before = await load_stored(store, parent_id)
    state = before.state()
    is_owned = is_driven_here(parent_id) or bool(getattr(store, "is_owned_elsewhere", False))
    require_owned(state, is_owned=is_owned)
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
            events = await load_events(store, parent["execution_id"])
            spec = run_spec_from_events(parent["execution_id"], events, None)
        except PlanwaveError:  # it was deleted
            return None
        graph, parent = spec.graph, spec.parent
    return graph


class RunJournal:
    """The journal of a run: appends to its store and to ``LoadedRun.events``.

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
        run.follow_changes(events)

    async def events(self, execution_id: str) -> Sequence[Event]:
        """Return all events of the run; see ``Journal``."""
        return [*self._run.events]
