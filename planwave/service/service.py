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
from planwave.events.reading import reading
from planwave.graph.model import Json
from planwave.graph.plan import Plan, graph_hash
from planwave.service.documents import order_of, raise_for_run
from planwave.service.flow_history import FlowChoice
from planwave.service.live import refuse_started
from planwave.service.making import Executable, Made, Making
from planwave.service.orders import Order
from planwave.service.policies import Policies, with_policies
from planwave.service.rooms import Observer
from planwave.storage.records import ExecutionRecord, StoreUse

if TYPE_CHECKING:
    from planwave.executor.options import RunOptions
    from planwave.service.forking import Changes, Wanted


class Load(NamedTuple):
    """How much a service has to do."""

    running: int
    queued: int
    is_draining: bool
    watchers: int


class Service(Making):
    """Plans goals and runs plans. An async context manager; leaving it stops what still runs."""

    @property
    def load(self) -> Load:
        """How much is going on."""
        carrier = self._carrier
        return Load(carrier.running, carrier.queued, carrier.is_draining, self._lives.watchers)

    @property
    def is_draining(self) -> bool:
        """Whether it is going down and takes nothing new."""
        return self._carrier.is_draining

    @property
    def store_use(self) -> StoreUse:
        """What the store has written, and whether it still can."""
        return self._store.use

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self.close)
            await opened.enter_async_context(self._documents)
            await self._documents.catch_up()
            opened.pop_all()
        await self._tasks.__aenter__()
        await self._carrier.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self.close)
            opened.push_async_exit(self._documents)  # behind all that may end executions
            self._leave_the_rest()
            await self._carrier.__aexit__(None, None, None)
            self._lives.close()
            await self._tasks.__aexit__(None, None, None)

    async def close(self) -> None:
        """Close every room, the store last."""
        try:
            if self._rooms.close is not None:
                await self._rooms.close()
        finally:
            await super().close()

    def observe(self, observer: Observer) -> None:
        """Have everything that happens from now on counted."""
        self._carrier.observer = observer
        self._lives.observe(observer)
        if self._rooms.calls is not None:
            self._rooms.calls.on_call = observer.called

    async def drain(self, timeout_s: float | None = None) -> None:
        """Go down gently: take nothing new, end all streams, let running nodes finish.

        What is not finished after ``timeout_s`` (the limit ``drain_s`` by default) is cut off; it
        and what was queued is left as it is stored, to be taken up again.
        """
        self.close_streams()
        await self._carrier.drain(self.limits.drain_s if timeout_s is None else timeout_s)

    def close_streams(self) -> None:
        """Take nothing new and end all streams, with ``Draining``."""
        self._leave_the_rest()
        self._carrier.close_queue()
        super().close_streams()

    def leave_now(self) -> None:
        """Cut short a :meth:`drain` under way."""
        self._carrier.leave_now()

    def check_room(self) -> None:
        """Refuse one more execution, before anything is paid or made for it.

        Raises:
            QueueFull, Draining: :meth:`execute` would not take it now.
        """
        self._carrier.check_room()

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
            plan: The id of a stored plan, or one that :meth:`read_plan` or :meth:`read_checked`
                gave; that is stored too. Or a flow, or one of its versions.
            inputs: ``{node_id: {handle: value}}``, or ``{handle: value}`` where there is one entry
                node; these nodes are settled with these values.
            options: How to run; the limits of the service apply in any case.
            policies: Node policies of this execution, over those of the plan; see
                :func:`planwave.service.policies.with_policies`.
            trigger: What expressions see as ``trigger``.
            execution_id: Its id, chosen by who may ask twice: what there is by then is given.

        Raises:
            NotFound: No such plan, flow or version.
            UnavailableProvider, UnknownProvider, UnknownModel: Nothing was created.
            GraphInvalid: The graph cannot run here (any more); nothing was created.
            InputError: ``unknown-input-node``, ``invalid-inputs``; nothing was created.
            Draining: Nothing was created.
        """
        self._carrier.check_open()
        if execution_id is not None and (kept := await self._store.execution(execution_id)):
            return kept
        made = await self._make(plan, inputs, options, policies, trigger, execution_id)
        return made.record

    async def start(self, execution_id: str) -> ExecutionRecord:
        """Queue an execution that was made before, perhaps by an earlier process.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``already-started``: it is queued, runs or has ended.
            QueueFull, Draining: It stays as it is.
            GraphInvalid: What is stored of it cannot be read.
        """
        record = await self.execution(execution_id)
        async with self._lives.hold(execution_id) as live, live.commands:
            refuse_started(live)
            with self._carrier.room():
                with reading(execution_id):
                    created = (await self._store.events(execution_id, limit=1))[0]
                    order = order_of(created, self.limits)
                order.epoch = await self._store.claim(execution_id, queued=True)
                self._carrier.submit(live, order)
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
            QueueFull, Draining: Nothing was created.
        """
        if execution_id is not None and await self._store.execution(execution_id):
            with suppress(Conflict):  # who asked first had it started
                await self.start(execution_id)
            return await self.execution(execution_id)
        with self._carrier.room():
            made = await self._make(
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
        from planwave.service.forking import Wanted, retry_of

        again = retry_of(await self.state(execution_id))
        return await self._fork(execution_id, Wanted(again, is_retry=True), start, new_id)

    async def fork(
        self,
        execution_id: str,
        *,
        rerun: Sequence[str] = (),
        changes: Changes | None = None,
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
            InputError, UnavailableProvider, UnknownProvider, UnknownModel, QueueFull, Draining:
                Nothing was created.
        """
        from planwave.service.forking import Wanted

        wanted = Wanted(rerun, changes, options)
        return await self._fork(execution_id, wanted, start, new_id)

    async def _fork(
        self, execution_id: str, wanted: Wanted, start: bool, new_id: str | None
    ) -> ExecutionRecord:
        if new_id is not None and (kept := await self._store.execution(new_id)):
            return kept
        if not start:
            self._carrier.check_open()
            return (await self._forked(execution_id, wanted, new_id)).record
        with self._carrier.room():
            made = await self._forked(execution_id, wanted, new_id, queued=True)
            return await self._submit(made)

    async def _forked(
        self, execution_id: str, wanted: Wanted, new_id: str | None, *, queued: bool = False
    ) -> Made:
        from planwave.executor.entry import entry_of, own_inputs
        from planwave.executor.program import Program
        from planwave.service.forking import forked
        from planwave.service.reusing import parent_facts

        state = await self.state(execution_id)
        with reading(execution_id):
            before = order_of((await self._store.events(execution_id, limit=1))[0], self.limits)
        options = wanted.options
        fork = forked(state, before.graph, wanted, limits=self.limits)
        raise_for_run(self._check(fork.graph))
        program = Program(fork.graph, self.catalogue)
        inputs, given = own_inputs(program, fork.inputs), own_inputs(program, fork.given)
        chosen = before.options if options is None else self._within_limits(options)
        entry_of(program, inputs, chosen)
        is_same = fork.graph is before.graph and state.plan_hash is not None
        plan = Plan(
            plan_id=state.plan_id or "",
            user_prompt=state.goal,
            title=state.title,
            graph=fork.graph,
            hash=(state.plan_hash or "") if is_same else graph_hash(fork.graph),
            created_at=self._rooms.time(),
        )
        return await self._born(
            plan,
            replace(
                before,
                graph=fork.graph,
                inputs=inputs,
                options=chosen,
                parent=parent_facts(execution_id, fork.rerun, given, is_retry=wanted.is_retry),
                program=program,
                is_checked=True,
            ),
            new_id,
            queued=queued,
            flow=FlowChoice(state.flow_id, state.flow_version if is_same else None)
            if state.flow_id
            else None,
        )

    async def _make(
        self,
        plan: Executable,
        inputs: Mapping[str, Any] | None,
        options: RunOptions | None,
        policies: Policies | None,
        trigger: Json,
        execution_id: str | None,
        *,
        queued: bool = False,
    ) -> Made:
        from planwave.executor.entry import entry_of, own_inputs
        from planwave.executor.program import Program

        made = await self._chosen(plan)
        graph = with_policies(made.plan.graph, policies, self.limits)
        raise_for_run(self._faults_of(graph, made.report))
        chosen = self._within_limits(options)
        program = Program(graph, self.catalogue)
        given = own_inputs(program, inputs)
        entry_of(program, given, chosen)
        order = Order(
            graph=graph,
            goal=made.plan.user_prompt,
            inputs=given,
            options=chosen,
            trigger=trigger,
            program=program,
        )
        return await self._born(
            replace(made.plan, graph=graph),
            order,
            execution_id,
            queued=queued,
            flow=made.flow,
            keeps=made.keeps,
        )
