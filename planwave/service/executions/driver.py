"""What drives the executions of this process: it takes what a carrier hands over, until it rests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from planwave.errors import Conflict, NotFound, PlanwaveError, QueueFull, ShuttingDown, StoreError
from planwave.events import TERMINAL, Event
from planwave.planner.cost_estimate import forecast
from planwave.service.carriers.carrier import Rest
from planwave.service.carriers.local import LocalCarrier
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.carried import CarriedExecutions, rest_of
from planwave.service.executions.command_rules import Command
from planwave.service.executions.document_writer import DocumentWriter
from planwave.service.executions.plan_approval import approval_request
from planwave.service.executions.session import ExecutionSession
from planwave.service.executions.store_retry import RetryingJournal, StoreRetry
from planwave.service.plans.plan_service import require_stored_plan
from planwave.service.streaming.live_execution import LiveExecution
from planwave.service.streaming.subscriptions import LiveExecutions
from planwave.storage.records import STORE_UNREACHABLE

if TYPE_CHECKING:
    from planwave.executor.driver.execution import Execution
    from planwave.executor.messages import PlaceChange
    from planwave.graph.model import Json
    from planwave.service.carriers.carrier import Slot

_log = logging.getLogger(__name__)
_RETRY_AFTER_S: Final = 5.0
"""The Retry-After of a full queue; how long executions take is unknown."""
_DOCUMENTED: Final = frozenset({"execution.paused"}) | TERMINAL
"""Events after which the document of an execution is written."""
_LIGHT_BYTES: Final = 65_536
"""Executions with larger results are released from memory at once, not in a batch."""


class ExecutionDriver:
    """Drives executions; an async context manager that stops what still runs when it is left.

    Args:
        dependencies: What executions are run with here; the carrier that hands them over among it.
        live_executions: Those of this process.
        document_writer: Writes the documents of executions that come to rest.
        on_idle: Called with an execution that is paused, with no running node.
        take_up: Called with an execution that a carrier of several processes hands over: gives it a session where
            it has to be driven, or returns the capability that this process lacks for that.
        set_aside: Called with one whose stored events cannot be read.

    Attributes:
        carrier: Hands the executions over.
        carried: Those that several processes share; None where only this one drives. Set before it is entered.
        is_draining: Whether new executions are refused.
        listeners: Called with each batch of durable events of an execution; they must not raise.
    """

    def __init__(
        self,
        dependencies: ServiceDependencies,
        live_executions: LiveExecutions,
        document_writer: DocumentWriter,
        on_idle: Callable[[LiveExecution], None],
        take_up: Callable[[LiveExecution], Awaitable[str | None]],
        set_aside: Callable[[str, Conflict], Awaitable[None]],
    ) -> None:
        self._dependencies = dependencies
        self._live_executions = live_executions
        self._document_writer = document_writer
        self._on_idle, self._take_up, self._set_aside = on_idle, take_up, set_aside
        self.store_retry = StoreRetry()
        self._journal = RetryingJournal(dependencies.store, self.store_retry)
        self.carrier = dependencies.carrier or LocalCarrier(dependencies.limits.burst_executions)
        self.carried: CarriedExecutions | None = None
        self._tasks = asyncio.TaskGroup()
        self._serving: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._held: dict[str, LiveExecution] = {}
        self._starting: set[str] = set()
        self._driven: set[str] = set()
        self._reserved = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.is_draining = False
        self.listeners: list[Callable[[Sequence[Event]], object]] = []

    async def __aenter__(self) -> ExecutionDriver:
        await self._tasks.__aenter__()
        if self._dependencies.drives:
            slots = self._dependencies.limits.concurrent_executions
            self._serving = self._tasks.create_task(self.carrier.serve(self.drive, slots))
            await asyncio.sleep(0)  # it serves what is submitted from now on
        if self.carried is not None:
            self._following = self._tasks.create_task(self.carried.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close_queue()
        if self.carried is not None:  # another process goes on with it
            self.abort()
        self._journal.stop()
        for live in self._held.values():
            if live.session is not None and self.carried is None:
                live.session.cancel("planwave is closing")
        await self._idle.wait()
        if self._following is not None:
            self._following.cancel()
        await self._tasks.__aexit__(None, None, None)

    @property
    def running(self) -> int:
        """The number of running executions, those that wait in memory included."""
        return self.carrier.load.driven

    @property
    def places(self) -> int:
        """The number of running places that are held."""
        return self.carrier.load.places

    @property
    def queued(self) -> int:
        """The number of queued executions; of all processes, where a carrier hands them to several."""
        return (
            self.carrier.load.waiting if self.carried is None else self.carried.waiting.executions
        )

    def running_of(self, account: str) -> int:
        """Return the number of running places of an account; see ``Principal.account``."""
        return self.carrier.running_of(account)

    def position(self, execution_id: str) -> int | None:
        """Return the position in the queue, 1 for the next execution; None if it waits for no place."""
        return self.carrier.position(execution_id)

    def check_open(self) -> None:
        """Raise if the service is shutting down, or its database is away.

        Raises:
            ShuttingDown: The service is going down.
            StoreError: See ``require_store``.
        """
        if self.is_draining:
            raise ShuttingDown
        self.require_store()

    def require_store(self) -> None:
        """Raise if the database server gives no answer.

        Raises:
            StoreError: ``store-unreachable``: to try would take until the connection is given up.
        """
        trouble = self._dependencies.store.stats.transient_error
        if trouble is not None and trouble.code == STORE_UNREACHABLE:
            raise trouble.with_traceback(None)

    def check_capacity(self) -> None:
        """Refuse one more execution.

        Raises:
            ShuttingDown, StoreError: See ``check_open``.
            QueueFull: As many wait as may.
        """
        self.check_open()
        limits = self._dependencies.limits
        places = self.running + self.queued + self._reserved
        if places >= limits.concurrent_executions + limits.queued_executions:
            raise QueueFull(
                f"{places - self.places} executions wait, as many as may",
                retry_after_s=_RETRY_AFTER_S,
                hint=f"try again in {_RETRY_AFTER_S:.0f} s, or raise the limit queued_executions",
            )

    @contextmanager
    def reserve_slot(self) -> Generator[None]:
        """Reserve a slot for an execution that is about to be submitted.

        Raises:
            ShuttingDown, StoreError, QueueFull: See ``check_capacity``.
        """
        self.check_capacity()
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    async def submit(self, live: LiveExecution, session: ExecutionSession) -> None:
        """Queue an execution: a new one with a reserved slot (``reserve_slot``), or one that goes on.

        One that was accepted before is queued whatever the length of the queue.

        Raises:
            ShuttingDown: The service is going down (by now); it stays as it is stored.
        """
        if self.is_draining:
            live.mark_finished()
            raise ShuttingDown
        execution_id = live.execution_id
        if self.carried is not None:
            self.wake(live)
            self._live_executions.release(live)
            return
        live.mark_queued(session)
        session.accepted_at = asyncio.get_running_loop().time()
        if execution_id in self._starting:
            return  # it waits for the command that is settled just now, and takes this session
        self._held[execution_id] = live
        self._idle.clear()
        # What was accepted before is loaded when its turn comes, and goes first.
        has_started = not session.is_loaded
        await self.carrier.submit(execution_id, live.account, has_started=has_started)
        if self.carrier.position(execution_id) is not None:
            session.program = None  # to be checked again when its turn comes

    def wake(self, live: LiveExecution) -> None:
        """Have the carrier look at an execution again, where one hands it to any of several processes."""
        if self.carried is not None:
            has_started = live.state.started_at is not None
            self.carried.submit(live.execution_id, live.account, has_started=has_started)

    async def apply_while_idle(self, live: LiveExecution, command: Command) -> None:
        """Apply a command to an execution that is not running, and queue it if it can continue.

        The caller holds ``live.commands``. Nothing of it is started here, so it needs no slot.

        Raises:
            PlanwaveError: What the command was refused with; the store cannot write now.
        """
        queued = None if live.is_unscheduled else live.session
        was_left = queued is None and live.state.status == "executing"
        # One owner for all commands, as owners without progress are counted.
        epoch = None if queued is None else queued.epoch
        session = ExecutionSession(self._dependencies, live.execution_id, epoch=epoch)
        if self.carried is not None:
            await session.claim()  # nobody else adds events from now on
            await self.carried.tail.catch_up(live)
        try:
            done = await session.apply(command, live.state, partial(self.publish, live))
        finally:
            if queued is not None and self.carried is None:  # else it takes it from any owner
                queued.epoch = session.epoch
        if live.is_over or live.state.status == "paused":
            self.dequeue(live.execution_id)
            self._document_writer.schedule(live.execution_id)
            self._update_idle()
            self._mark_rest(live, is_paused=not live.is_over)
            if live.is_over:
                self._live_executions.retain(live)
            if self.carried is not None:
                self.wake(live)  # its deadlines may be others now
        elif queued is None:
            following = ExecutionSession(
                self._dependencies, live.execution_id, epoch=session.epoch, is_recovery=was_left
            )
            with suppress(ShuttingDown):  # the command holds
                await self.submit(live, following)
        if done is not None:
            await done

    def _mark_rest(self, live: LiveExecution, *, is_paused: bool) -> None:
        if self.carried is not None:  # it may go on in another process
            live.mark_idle()
        elif is_paused:  # a command can continue it
            live.mark_idle()
            self._on_idle(live)
        else:
            live.mark_finished()

    def cancel(self, live: LiveExecution, cause: str) -> bool:
        """Cancel an execution that runs or is about to; False where it does neither."""
        if live.execution_id not in self._driven or live.session is None:
            return False
        live.session.cancel(cause)
        return True

    def dequeue(self, execution_id: str) -> bool:
        """Take an execution out of the queue; False if it is not there (any more)."""
        if not self.carrier.withdraw(execution_id):
            return False
        live = self._held.pop(execution_id)
        live.session = None
        self._update_idle()
        return True

    def close_queue(self) -> None:
        """Accept nothing new; queued executions stay stored as they are."""
        self.is_draining = True
        if self._serving is not None:  # once: the second time it would cancel what it hands over
            self._serving.cancel()
            self._serving = None
        for live in list(self._held.values()):
            if self.dequeue(live.execution_id):
                live.mark_finished()

    async def wait_idle(self) -> None:
        """Wait until no execution runs or is queued."""
        await self._idle.wait()

    async def drain(self, timeout_s: float) -> None:
        """Let running nodes finish for so many seconds; then leave everything as it is stored.

        No terminal event is written, so that interrupted executions can be resumed.
        """
        self.close_queue()
        for live in self._held.values():
            if live.execution is not None:
                live.execution.interrupt()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        self.abort()
        await self._idle.wait()

    def abort(self) -> None:
        """Interrupt every running execution; no further event of it is stored."""
        self._dependencies.store.expect_close()
        self._journal.stop()
        for live in self._held.values():
            if live.execution is not None:
                live.execution.interrupt(at_once=True)

    def _update_idle(self) -> None:
        if not self._held:
            self._idle.set()
            self._document_writer.flush()

    async def drive(self, execution_id: str, slot: Slot) -> Rest:
        """Drive an execution until it rests; see ``Drive``."""
        async with AsyncExitStack() as held:
            try:
                live = await held.enter_async_context(self._live_executions.acquire(execution_id))
            except NotFound:  # it was deleted
                return Rest("cancelled")
            except Conflict as error:
                await self._set_aside(execution_id, error)
                return Rest("paused")
            # It is handed over again where no sign of life came in time.
            await held.enter_async_context(live.driving)
            if self.carried is not None and (lacks := await self._take_up(live)) is not None:
                return Rest("interrupted", needs=lacks)
            session = live.session
            if session is None:  # what nobody has started stays as it is
                return rest_of(live.state, was_accepted=False)
            try:
                await self._drive(live, slot)
            except Exception:
                await self._release(session)
                raise
            await self._release(session)
            rest = rest_of(live.state)
            return rest._replace(needs=session.lacks) if rest.status == "interrupted" else rest

    async def hand_over(self, execution_id: str, capability: str) -> None:
        """Have a process go on with an execution that has a capability; called by a node, which waits meanwhile.

        Other nodes that run come to their end, as where this process goes down. Returns only where the execution is not
        driven here.
        """
        live = self._held.get(execution_id)
        if live is None or live.session is None or live.execution is None:
            return
        execution, live.session.lacks = live.execution, capability
        execution.interrupt()
        await asyncio.sleep(self._dependencies.limits.drain_s)
        execution.interrupt(at_once=True)
        await asyncio.Event().wait()

    async def _release(self, session: ExecutionSession) -> None:
        """Say that this process does not drive an execution any more, where others may."""
        if self.carried is None:
            return
        if session.lacks is not None:
            need = partial(self.carried.add_need, session.execution_id, session.lacks)
            await self.store_retry.write(need)
        if session.epoch is not None:
            released = partial(self.carried.released, session.execution_id, session.epoch)
            await self.store_retry.write(released)

    async def _drive(self, live: LiveExecution, slot: Slot) -> None:
        execution_id = live.execution_id
        self._held[execution_id] = live
        self._idle.clear()
        self._starting.add(execution_id)
        self._driven.add(execution_id)
        rests = False
        try:
            rests = await self._run(live, slot)
            if rests or live.has_streamed:
                live.fold()  # it is looked at below: what makes no sense breaks this run alone
        except Exception as error:
            _log.warning("execution %s broke: %s", execution_id, error)
            live.error = error
            raise
        finally:
            self._starting.discard(execution_id)
            self._driven.discard(execution_id)
            self._left(live, rests=rests)

    def _left(self, live: LiveExecution, *, rests: bool) -> None:
        """Take note that an execution is not driven any more.

        Without an await, so that no command comes in between.
        """
        for observer in self._dependencies.observers:
            observer.execution_left(live.execution_id)
        if self._dependencies.tracer is not None:
            self._dependencies.tracer.execution_left(live.execution_id)
        is_light = live.held_bytes <= _LIGHT_BYTES and not (rests or live.has_streamed)
        self._document_writer.schedule(live.execution_id, release_after=live if is_light else None)
        del self._held[live.execution_id]
        self._mark_rest(live, is_paused=rests)
        self._update_idle()
        self._live_executions.retain(live)

    async def _run(self, live: LiveExecution, slot: Slot) -> bool:
        """Run an execution; return whether it is paused, so that a command can continue it."""
        async with live.commands:
            self._starting.discard(live.execution_id)
            session = live.session
            if session is None or live.is_over:
                return live.state.status == "paused"  # a command came first
            if self._must_leave(session):
                return False
            execution = await self._prepare(live, session, slot)
            if execution is None or self._must_leave(session):
                session.execution = None
                return live.state.status == "paused"
        try:
            return await session.drive() == "paused"
        except Conflict as error:  # the stored events are unreadable
            await self._refuse(live, session, error)
            return live.state.status == "paused"
        finally:
            live.held_bytes, host = execution.result_bytes, execution.host
            for observer in self._dependencies.observers:
                hits, misses = host.links.hits, host.links.misses
                observer.link_cache_used(hits, misses, host.open_links.fan_out)
            session.execution = None

    def _must_leave(self, session: ExecutionSession) -> bool:
        """Return whether an execution stays as it is stored, as the service is going down."""
        return self.is_draining and session.cancel_cause is None

    async def _prepare(
        self, live: LiveExecution, session: ExecutionSession, slot: Slot
    ) -> Execution | None:
        """Return the driver of an execution; None if it cannot run, and store the reason."""
        tracer = self._dependencies.tracer
        try:
            if not session.is_loaded:
                await self.store_retry.write(session.claim)
                await session.load()
                if (
                    self.carried is not None
                ):  # an owner before may have stored more until it was claimed
                    await self.carried.tail.catch_up(live)
            if tracer is not None:
                tracer.started(live.state, session.spec.trace_context)
            await self._check(session)
            driver = await session.prepare(
                self._journal,
                on_events=partial(self.publish, live),
                parks="replayable",
                approval=self._approval_request(session),
                on_place=partial(self._place_changed, live, slot),
            )
        except StoreError as error:
            if self.carried is not None:  # it is as it is stored, and is handed over again
                raise
            await self._refuse_unless_over(live, session, error)
            return None
        except PlanwaveError as error:
            await self._refuse_unless_over(live, session, error)
            return None
        waited_s = asyncio.get_running_loop().time() - session.accepted_at
        for observer in self._dependencies.observers:
            observer.started(live.state, waited_s)
        return driver

    def _place_changed(self, live: LiveExecution, slot: Slot, change: PlaceChange) -> None:
        def grant() -> None:
            if live.execution is not None:
                live.execution.grant_place()

        slot.change(change, grant)
        is_alone = live.session is not None and live.session.lacks is not None
        if change == "freed" and is_alone and live.execution is not None:
            live.execution.interrupt(at_once=True)  # only what waits for another process is left

    async def _refuse_unless_over(
        self, live: LiveExecution, session: ExecutionSession, error: PlanwaveError
    ) -> None:
        if not live.is_over:
            await self._refuse(live, session, error)

    async def _refuse(
        self, live: LiveExecution, session: ExecutionSession, error: PlanwaveError
    ) -> None:
        """Store why an execution cannot run, and publish that."""
        at = self._dependencies.timestamp()
        self.publish(live, [await session.refuse(error, live.state, at)])

    async def _check(self, session: ExecutionSession) -> None:
        """Check what was not checked just now, by the rules of today."""
        if session.program is not None:
            return
        session.bind()
        if not session.is_started:
            spec = session.spec
            author, plan_id = spec.written_by, spec.judged_plan_id
            await require_stored_plan(self._dependencies, spec.graph, author, plan_id)

    def _approval_request(self, session: ExecutionSession) -> Json | None:
        """Return the request before the first node of an execution starts; None if there is none."""
        plan_hash, dependencies, spec = session.hash_to_approve(), self._dependencies, session.spec
        if plan_hash is None:
            return None
        return approval_request(
            plan_hash,
            title=spec.title,
            goal=spec.goal,
            plan_id=spec.plan_id,
            forecast=forecast(
                spec.graph,
                dependencies.catalogue,
                dependencies.providers,
                goal=spec.goal,
                inputs=spec.inputs,
            ),
        )

    def publish(self, live: LiveExecution, events: Sequence[Event]) -> None:
        """Publish durable events to the subscribers and the observers."""
        live.publish(events)
        if self.carried is not None and events and not events[0].seq:
            self.carried.deltas.add(live.execution_id, events)
        for observer in self._dependencies.observers:
            observer.published(events)
        if self._dependencies.tracer is not None:
            self._dependencies.tracer.published(events)
        for listener in self.listeners:
            listener(events)
        if any(event.type in _DOCUMENTED for event in events):
            self._document_writer.schedule(live.execution_id)
