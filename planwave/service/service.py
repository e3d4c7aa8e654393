"""The use cases. Knows no terminal and no HTTP; every caller uses the same methods.

::

    async with open_service(settings) as service:
        plan = await service.create_plan("Compare …")
        execution = await service.execute(plan.plan_id)
        async for event in service.watch(execution.execution_id): ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from planwave.errors import Conflict
from planwave.events.unreadable import guard_stored
from planwave.graph.model import Json
from planwave.graph.plan import Plan, graph_hash
from planwave.service.dependencies import Observer
from planwave.service.executions.execution_service import (
    CreatedExecution,
    Executable,
    ExecutionService,
)
from planwave.service.executions.loading import run_spec_from_event
from planwave.service.executions.queue_entry import RunSpec
from planwave.service.flows.flow_queries import FlowRef
from planwave.service.plans.documents import raise_for_run
from planwave.service.plans.policies import Policies, apply_policies
from planwave.service.streaming.live_execution import require_not_started
from planwave.storage.records import ExecutionRecord, StoreStats

if TYPE_CHECKING:
    from planwave.executor.options import RunOptions
    from planwave.service.executions.fork import ForkRequest, NodeChanges


class ServiceLoad(NamedTuple):
    """How much a service has to do."""

    running: int
    queued: int
    is_draining: bool
    watchers: int


class Service(ExecutionService):
    """Plans goals and runs plans. An async context manager; leaving it stops what still runs."""

    @property
    def load(self) -> ServiceLoad:
        """How much is going on."""
        carrier = self._runner
        return ServiceLoad(
            carrier.running, carrier.queued, carrier.is_draining, self._live_executions.watchers
        )

    @property
    def is_draining(self) -> bool:
        """Whether it is going down and takes nothing new."""
        return self._runner.is_draining

    @property
    def store_stats(self) -> StoreStats:
        """What the store has written, and whether it still can."""
        return self._store.stats

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self.close)
            await opened.enter_async_context(self._document_writer)
            await self._document_writer.catch_up()
            opened.pop_all()
        await self._tasks.__aenter__()
        await self._runner.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self.close)
            opened.push_async_exit(self._document_writer)  # behind all that may end executions
            self._stop_recovery()
            await self._runner.__aexit__(None, None, None)
            self._live_executions.close()
            await self._tasks.__aexit__(None, None, None)

    async def close(self) -> None:
        """Close every room, the store last."""
        try:
            if self._dependencies.close is not None:
                await self._dependencies.close()
        finally:
            await super().close()

    def set_observer(self, observer: Observer) -> None:
        """Have everything that happens from now on counted."""
        self._runner.observer = observer
        self._live_executions.set_observer(observer)
        if self._dependencies.calls is not None:
            self._dependencies.calls.on_call = observer.model_called

    async def drain(self, timeout_s: float | None = None) -> None:
        """Go down gently: take nothing new, end all streams, let running nodes finish.

        What is not finished after ``timeout_s`` (the limit ``drain_s`` by default) is cut off; it
        and what was queued is left as it is stored, to be taken up again.
        """
        self.close_streams()
        await self._runner.drain(self.limits.drain_s if timeout_s is None else timeout_s)

    def close_streams(self) -> None:
        """Take nothing new and end all streams, with ``ShuttingDown``."""
        self._stop_recovery()
        self._runner.close_queue()
        super().close_streams()

    def abort(self) -> None:
        """Cut short a :meth:`drain` under way."""
        self._runner.abort()

    def check_capacity(self) -> None:
        """Refuse one more execution, before anything is paid or made for it.

        Raises:
            QueueFull, ShuttingDown: :meth:`execute` would not take it now.
        """
        self._runner.check_capacity()

    async def create_execution(
        self,
        plan: Executable,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
        policies: Policies | None = None,
        trigger: Json = None,
        execution_id: str | None = None,
    ) -> ExecutionRecord:
        """Make an execution of a plan; it is durable when this returns, and not yet queued.

        Args:
            plan: The id of a stored plan, or one that :meth:`read_plan` or :meth:`parse_and_check`
                gave; that is stored too. Or a flow, or one of its versions.
            inputs: ``{node_id: {handle: value}}``, or ``{handle: value}`` where there is one entry
                node; these nodes are settled with these values.
            options: How to run; the limits of the service apply in any case.
            policies: Node policies of this execution, over those of the plan; see
                :func:`planwave.service.plans.policies.apply_policies`.
            trigger: What expressions see as ``trigger``.
            execution_id: Its id, chosen by who may ask twice: what there is by then is given.

        Raises:
            NotFound: No such plan, flow or version.
            UnavailableProvider, UnknownProvider, UnknownModel: Nothing was created.
            GraphInvalid: The graph cannot run here (any more); nothing was created.
            InputError: ``unknown-input-node``, ``invalid-inputs``; nothing was created.
            ShuttingDown: Nothing was created.
        """
        self._runner.check_open()
        if execution_id is not None and (kept := await self._store.execution(execution_id)):
            return kept
        made = await self._create(plan, inputs, options, policies, trigger, execution_id)
        return made.record

    async def start(self, execution_id: str) -> ExecutionRecord:
        """Queue an execution that was made before, perhaps by an earlier process.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``already-started``: it is queued, runs or has ended.
            QueueFull, ShuttingDown: It stays as it is.
            GraphInvalid: What is stored of it cannot be read.
        """
        record = await self.execution(execution_id)
        async with self._live_executions.acquire(execution_id) as live, live.commands:
            require_not_started(live)
            with self._runner.reserve_slot():
                with guard_stored(execution_id):
                    created = (await self._store.events(execution_id, limit=1))[0]
                    order = run_spec_from_event(created, self.limits)
                order.epoch = await self._store.claim(execution_id, queued=True)
                self._runner.submit(live, order)
        return record

    async def execute(
        self,
        plan: Executable,
        *,
        inputs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
        policies: Policies | None = None,
        trigger: Json = None,
        execution_id: str | None = None,
    ) -> ExecutionRecord:
        """Make an execution and queue it; it is accepted (durable) when this returns.

        Arguments and errors are those of :meth:`create_execution`, and

        Raises:
            QueueFull, ShuttingDown: Nothing was created.
        """
        if execution_id is not None and await self._store.execution(execution_id):
            with suppress(Conflict):  # who asked first had it started
                await self.start(execution_id)
            return await self.execution(execution_id)
        with self._runner.reserve_slot():
            made = await self._create(
                plan, inputs, options, policies, trigger, execution_id, queued=True
            )
            return await self._submit(made)

    async def retry(
        self, execution_id: str, *, start: bool = True, new_id: str | None = None
    ) -> ExecutionRecord:
        """Make a new execution that runs what failed, was blocked or was cancelled; see :meth:`fork`.

        Raises:
            Conflict: ``nothing-to-retry``, ``still-running``; nothing was created.
        """
        from planwave.service.executions.fork import ForkRequest
        from planwave.service.executions.retry import failed_nodes

        again = failed_nodes(await self.state(execution_id))
        return await self._fork(execution_id, ForkRequest(again, is_retry=True), start, new_id)

    async def fork(
        self,
        execution_id: str,
        *,
        rerun: Sequence[str] = (),
        changes: NodeChanges | None = None,
        options: RunOptions | None = None,
        start: bool = True,
        new_id: str | None = None,
    ) -> ExecutionRecord:
        """Make a new execution of the same graph that takes over every result it still holds.

        A node's result is taken over where it follows from the same: type, data, what arrived,
        what is linked, the goal where it is read (``executor/identity.py``). So are results inside
        nodes that run again.

        Args:
            execution_id: One that has ended or is paused.
            rerun: Ids of nodes that run in any case, with all that runs inside them.
            changes: ``{node_id: {"data": merge patch} | {"outputs": {handle: value}}}``.
            options: How to run; those of the execution before by default.
            start: Queue it; else it is made only.
            new_id: Its id, chosen by who may ask twice: what there is by then is given.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``still-running``; nothing was created.
            GraphInvalid: ``invalid-changes``, or the changed graph cannot run; nothing was created.
            InputError, UnavailableProvider, UnknownProvider, UnknownModel, QueueFull, ShuttingDown:
                Nothing was created.
        """
        from planwave.service.executions.fork import ForkRequest

        wanted = ForkRequest(rerun, changes, options)
        return await self._fork(execution_id, wanted, start, new_id)

    async def _fork(
        self, execution_id: str, request: ForkRequest, start: bool, new_id: str | None
    ) -> ExecutionRecord:
        if new_id is not None and (kept := await self._store.execution(new_id)):
            return kept
        if not start:
            self._runner.check_open()
            return (await self._create_fork(execution_id, request, new_id)).record
        with self._runner.reserve_slot():
            made = await self._create_fork(execution_id, request, new_id, queued=True)
            return await self._submit(made)

    async def _create_fork(
        self, execution_id: str, request: ForkRequest, new_id: str | None, *, queued: bool = False
    ) -> CreatedExecution:
        from planwave.executor.inputs import plan_inputs, validate_inputs
        from planwave.executor.program import Program
        from planwave.service.executions.fork import build_fork
        from planwave.service.executions.parent_results import parent_data

        state = await self.state(execution_id)
        with guard_stored(execution_id):
            before = run_spec_from_event(
                (await self._store.events(execution_id, limit=1))[0], self.limits
            )
        options = request.options
        fork = build_fork(state, before.graph, request, limits=self.limits)
        raise_for_run(self._check(fork.graph))
        program = Program(fork.graph, self.catalogue)
        inputs, given = validate_inputs(program, fork.inputs), validate_inputs(program, fork.preset)
        chosen = before.options if options is None else self._within_limits(options)
        plan_inputs(program, inputs, chosen)
        is_same = fork.graph is before.graph and state.plan_hash is not None
        plan = Plan(
            plan_id=state.plan_id or "",
            user_prompt=state.goal,
            title=state.title,
            graph=fork.graph,
            hash=(state.plan_hash or "") if is_same else graph_hash(fork.graph),
            created_at=self._dependencies.timestamp(),
        )
        return await self._persist(
            plan,
            replace(
                before,
                graph=fork.graph,
                inputs=inputs,
                options=chosen,
                parent=parent_data(execution_id, fork.rerun, given, is_retry=request.is_retry),
                program=program,
                is_checked=True,
            ),
            new_id,
            queued=queued,
            flow=FlowRef(state.flow_id, state.flow_version if is_same else None)
            if state.flow_id
            else None,
        )

    async def _create(
        self,
        plan: Executable,
        inputs: Mapping[str, Any] | None,
        options: RunOptions | None,
        policies: Policies | None,
        trigger: Json,
        execution_id: str | None,
        *,
        queued: bool = False,
    ) -> CreatedExecution:
        from planwave.executor.inputs import plan_inputs, validate_inputs
        from planwave.executor.program import Program

        made = await self._resolve(plan)
        graph = apply_policies(made.plan.graph, policies, self.limits)
        raise_for_run(self._diagnostics_of(graph, made.report))
        chosen = self._within_limits(options)
        program = Program(graph, self.catalogue)
        given = validate_inputs(program, inputs)
        plan_inputs(program, given, chosen)
        order = RunSpec(
            graph=graph,
            goal=made.plan.user_prompt,
            inputs=given,
            options=chosen,
            trigger=trigger,
            program=program,
        )
        return await self._persist(
            replace(made.plan, graph=graph),
            order,
            execution_id,
            queued=queued,
            flow=made.flow,
            plan_to_store=made.plan_to_store,
        )
