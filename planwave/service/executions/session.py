"""One life of an execution: loaded, claimed, told commands, driven, brought to rest.

The driver of a service queues sessions; a run of the Python library awaits one. A session is what a process
needs of an execution; its state, and who watches it, are beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from typing_extensions import TypedDict, Unpack

from planwave.errors import LimitExceeded, PlanwaveError
from planwave.events import ENDED_NODE, TERMINAL, Event, ExecutionState
from planwave.events.types import SET_ASIDE
from planwave.events.unreadable import guard_stored
from planwave.executor.driver.execution import Execution, Parking
from planwave.executor.program import Program
from planwave.executor.recovery.history import History
from planwave.graph.checking.checker import check
from planwave.graph.json_values import size_of
from planwave.graph.protocols import WrittenBy
from planwave.nodes.services import with_flows
from planwave.planner.plan_check import admission
from planwave.service.executions.command_rules import Command, require_not_ended
from planwave.service.executions.parent_results import ReuseDependencies, load_reuse
from planwave.service.executions.plan_approval import hash_to_approve
from planwave.service.executions.run_spec import RunSpec, require_known_types, run_spec_from_events
from planwave.service.executions.written_changes import write_change
from planwave.service.plans.documents import raise_for_run
from planwave.service.streaming.stored_execution import ExecutionReader, load_record

if TYPE_CHECKING:
    import asyncio

    from planwave.executor.messages import PlaceChange
    from planwave.executor.options import RunOptions
    from planwave.executor.ports import Journal
    from planwave.executor.reuse.reuse import Reuse
    from planwave.graph.model import Json
    from planwave.graph.protocols import Suspension
    from planwave.providers.protocols import Providers
    from planwave.storage.postgres.owners import ExecutionOwners
    from planwave.storage.records import StoredCall

PROGRESS_EVENTS: Final = frozenset(
    {
        "node.completed", "node.failed", "node.retrying", "node.waiting", "node.answered",
        "node.parked", "node.cancelled", "execution.paused",
    }
)  # fmt: skip


class CallReader(Protocol):
    """The part of the store that reads recorded calls."""

    async def calls(self, execution_ids: Sequence[str]) -> dict[str, list[StoredCall]]: ...


class SessionStore(ExecutionReader, CallReader, Protocol):
    """The part of the store that a session uses."""

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None: ...
    async def claim(self, execution_id: str) -> int: ...


class SessionDependencies(ReuseDependencies, Protocol):
    """What the executions of a process are run with; ``ServiceDependencies`` has all of it."""

    @property
    def store(self) -> SessionStore: ...
    @property
    def planner(self) -> object: ...
    @property
    def providers(self) -> Providers: ...
    @property
    def require_approval(self) -> bool: ...
    def timestamp(self) -> str: ...


class Driving(TypedDict, total=False):
    """What is different for who drives a session; see ``Execution``."""

    on_events: Callable[[list[Event]], None] | None
    parks: Parking
    waits_for: Callable[[Suspension], bool]
    approval: Json
    on_place: Callable[[PlaceChange], None]
    causes: dict[str, BaseException]


_driven: Final = set[str]()


def is_driven_here(execution_id: str) -> bool:
    """Return whether an execution is driven in this process just now."""
    return execution_id in _driven


class ExecutionSession:
    """One execution in this process, from its turn until it rests.

    Args:
        dependencies: What executions are run with here.
        execution_id: Its id.
        spec: What it is to run; None to read it when its turn comes, with all that has happened.
        program: The graph made ready to run, where it was checked just now.
        epoch: Its owner's; None where it has yet to be claimed.
        is_recovery: The stored events show it running in a process that has ended.
        owners: Where a carrier handed it to this process: it becomes its owner, whoever drove it before.

    Attributes:
        accepted_at: When it was queued, event loop time.
        cancel_cause: Why it is to be cancelled as soon as it runs, or None.
        lacks: The capability that it needs and this process does not have, where its run has shown one; or None.
        history: All that is stored, where it was started before.
        execution: Its driver; set from ``prepare`` on, until who drives it takes note of its rest.
    """

    def __init__(
        self,
        dependencies: SessionDependencies,
        execution_id: str,
        *,
        spec: RunSpec | None = None,
        program: Program | None = None,
        epoch: int | None = None,
        is_recovery: bool = False,
        owners: ExecutionOwners | None = None,
    ) -> None:
        self._dependencies, self.execution_id = dependencies, execution_id
        self._owners = owners
        self._takeovers: int | None = None
        self._spec, self.program = spec, program
        self.epoch, self.is_recovery = epoch, is_recovery
        self.accepted_at = 0.0
        self.cancel_cause: str | None = None
        self.lacks: str | None = None
        self.history: History | None = None
        self.execution: Execution | None = None
        self._last_seq, self._stored_bytes = 1, 0

    @property
    def is_loaded(self) -> bool:
        """Whether it is known what it is to run."""
        return self._spec is not None

    @property
    def spec(self) -> RunSpec:
        """What it is to run; once it is loaded."""
        if self._spec is None:
            raise RuntimeError(f"execution {self.execution_id} is not loaded yet")
        return self._spec

    @property
    def is_started(self) -> bool:
        """Whether it was started before, here or in another process."""
        return self.history is not None and self.history.is_started

    # -- load and claim ----------------------------------------------------------------------------

    async def claim(self) -> None:
        """Become its owner, unless this session is already."""
        if self.epoch is not None:
            return
        if self._owners is None:
            self.epoch = await self._dependencies.store.claim(self.execution_id)
        else:
            self.epoch, self._takeovers = await self._owners.take(self.execution_id)
            self.is_recovery = self._takeovers > 0

    async def load(self) -> None:
        """Claim it, then read what it is to run and what has happened so far.

        Raises:
            GraphInvalid: It was tampered with, or passes limits that were lowered since.
            Conflict: ``already-ended``; ``unreadable``.
            LimitExceeded: ``recoveries``: its process ended too often without any progress.
        """
        await self.claim()
        limits = self._dependencies.limits
        events = await self._dependencies.store.events(self.execution_id)
        if events and events[-1].type in TERMINAL:  # the caller has missed its end
            require_not_ended(self.execution_id, events[-1].type.removeprefix("execution."))
        self._spec = run_spec_from_events(self.execution_id, events, limits)
        await self.take_up(events)
        met = attempts_without_progress(events, self.epoch or 1) if self.is_recovery else 0
        if self._takeovers is not None:  # commands raise the epoch too
            met = min(met, self._takeovers)
        if limits is not None and met > limits.recoveries:
            raise LimitExceeded(
                "recoveries", limits.recoveries, met, what="recoveries without any progress"
            )

    async def take_up(self, events: Sequence[Event]) -> None:
        """Go on after the stored events of the execution, which are these.

        Raises:
            Conflict: ``unreadable``.
        """
        with guard_stored(self.execution_id):
            self.history = History(events)
        self._last_seq = self.history.last_seq
        self._stored_bytes = await recorded_bytes(
            self._dependencies.store, self.execution_id, self.spec.options
        )

    # -- drive -------------------------------------------------------------------------------------

    def bind(self) -> Program:
        """Return the graph bound to its node types; it is checked now, if it was not just now.

        Raises:
            InputError: ``unknown-node-type``.
            GraphInvalid: It does not fit the node types that there are here.
        """
        if self.program is None:
            graph, dependencies = self.spec.graph, self._dependencies
            require_known_types(graph, dependencies.catalogue)
            raise_for_run(check(graph, dependencies.catalogue, dependencies.limits))
            self.program = Program(graph, dependencies.catalogue)
        return self.program

    def hash_to_approve(self) -> str | None:
        """Return the hash that a person approves before its first node starts; None if nobody is asked."""
        if self.is_started:
            return None
        required = self._dependencies.require_approval
        return hash_to_approve(self.spec.approval, self.spec.graph, required=required)

    async def prepare(self, journal: Journal, **driving: Unpack[Driving]) -> Execution:
        """Return its driver, with the results that it reuses if it is a fork.

        Args:
            journal: Where its events become durable.
            driving: What is different for who drives it.

        Raises:
            StoreError: The parent of a fork cannot be read now.
            Conflict: ``unreadable``.
        """
        reuse = await load_reuse(self._dependencies, self.execution_id, self.spec.parent)
        execution = self._build(journal, reuse, is_recovery=self.is_recovery, **driving)
        if self._dependencies.parent_calls is not None:
            self._dependencies.parent_calls.count_for(execution, self._stored_bytes)
        self.execution = execution
        return execution

    def _build(
        self,
        journal: Journal,
        reuse: Reuse | None = None,
        *,
        is_recovery: bool = False,
        **driving: Unpack[Driving],
    ) -> Execution:
        spec, dependencies = self.spec, self._dependencies
        with guard_stored(self.execution_id):
            return Execution(
                self.program or Program(spec.graph, dependencies.catalogue),
                execution_id=self.execution_id,
                inputs=spec.inputs,
                options=spec.options,
                journal=journal,
                epoch=self.epoch or 1,
                last_seq=self._last_seq,
                variables={"goal": spec.goal, "trigger": spec.trigger},
                services=with_flows(dependencies.node_services(spec.goal), spec.flows),
                renderer=dependencies.renderer,
                now=dependencies.timestamp,
                history=self.history,
                is_recovery=is_recovery and self.is_started,
                reuse=reuse,
                wave_floors=spec.wave_floors,
                written_by=None if spec.written_by is None else WrittenBy(spec.written_by),
                admit=admission(dependencies.catalogue, dependencies.planner),
                write_change=partial(write_change, dependencies),
                **driving,
            )

    async def drive(self) -> str:
        """Drive it until it rests, and return its status; see ``Execution.run``."""
        if self.execution is None:
            raise RuntimeError(f"execution {self.execution_id} is not prepared yet")
        if self.cancel_cause is not None:
            self.execution.cancel(self.cancel_cause)
        _driven.add(self.execution_id)
        try:
            return await self.execution.run()
        finally:
            _driven.discard(self.execution_id)

    def cancel(self, cause: str) -> None:
        """Cancel it, as soon as it is driven."""
        if self.execution is None:
            self.cancel_cause = cause
        else:
            self.execution.cancel(cause)

    # -- while nothing drives it -------------------------------------------------------------------

    async def apply(
        self, command: Command, state: ExecutionState, on_events: Callable[[list[Event]], None]
    ) -> asyncio.Future[None] | None:
        """Apply a command while nothing of the execution runs; no node starts, so it needs no place.

        Args:
            command: What to apply.
            state: The state of the execution.
            on_events: Called with what comes of it, once that is durable.

        Returns:
            What the command was answered.

        Raises:
            PlanwaveError: It is refused; the store cannot write now.
        """
        await self.load()
        execution = self._build(self._dependencies.store, on_events=on_events, parks="replayable")
        done = command.send(execution, state)
        execution.interrupt(at_once=True)
        await execution.run()
        return done

    async def cancel_at_rest(self, state: ExecutionState, cause: str, at: str) -> list[Event]:
        """Cancel it and its open nodes without reading its graph, which may not fit any more.

        Args:
            state: The state of the execution.
            cause: Why; kept with it.
            at: When, UTC, ISO 8601.

        Returns:
            The events, which are durable.

        Raises:
            Conflict: ``already-ended``: someone else has ended it.
        """
        execution_id, store = self.execution_id, self._dependencies.store
        await self.claim()
        require_not_ended(execution_id, (await load_record(store, execution_id)).status)
        seq, data = count(state.last_seq + 1), {"cause": cause}
        paths = [node.path for node in state.nodes.values() if node.status not in ENDED_NODE]
        events: list[Event] = [
            *(
                Event(execution_id, next(seq), at, "node.cancelled", path, None, data)
                for path in paths
            ),
            Event(execution_id, next(seq), at, "execution.cancelled", None, None, data),
        ]
        await store.append(execution_id, self.epoch or 1, events)
        return events

    async def refuse(self, error: PlanwaveError, state: ExecutionState, at: str) -> Event:
        """Store why it cannot run: as its end, or, if it has started, as a pause.

        No node has run by then; earlier results stay, and the execution can be resumed.

        Args:
            error: Why.
            state: The state of the execution.
            at: When, UTC, ISO 8601.

        Returns:
            The event, which is durable.
        """
        kind, data = "execution.paused", set_aside_data(error)
        if state.started_at is None:
            kind = "execution.failed"
            data: dict[str, Any] = {"error": error.as_json(), "failures": []}
        await self.claim()
        event = Event(self.execution_id, state.last_seq + 1, at, kind, None, None, data)
        await self._dependencies.store.append(self.execution_id, self.epoch or 1, [event])
        return event


async def recorded_bytes(store: CallReader, execution_id: str, options: RunOptions) -> int:
    """Return the size of the recorded calls of an execution; 0 where no option bounds it."""
    if options.max_state_bytes is None:
        return 0
    calls = await store.calls([execution_id])
    return sum(size_of(call.reply) for call in calls.get(execution_id, ()))


def attempts_without_progress(events: Sequence[Event], epoch: int) -> int:
    """Return the number of owners since the last owner under which a node made progress.

    An owner says its epoch when it takes an execution up; one that did not get to that counts too.
    """
    of_progress = owner = 1
    for event in events:
        if event.type == "execution.resumed":
            owner = event.data.get("epoch", owner)
            if event.data.get("reason") != "recovery":  # a command continued it
                of_progress = owner
        elif event.type in PROGRESS_EVENTS:
            of_progress = owner
    return epoch - of_progress


def set_aside_data(error: PlanwaveError) -> dict[str, Any]:
    """Return the data of the ``execution.paused`` of an execution that cannot run now.

    The hint is part of the reason: nothing else says how the execution can run again.
    """
    hint = f"; {error.hint}" if error.hint else ""
    return {"reason": f"set aside: {error.message}{hint}", "kind": SET_ASIDE}
