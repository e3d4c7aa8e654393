"""The runner of executions: a bounded number at once, the others in a queue that shares the places.

An execution holds a place while a node of it works. One that only waits (for a retry, a provider, an
answer) may stay in memory without a place, and waits for one again before its next node starts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import Conflict, PlanwaveError, QueueFull, ShuttingDown
from planwave.events import TERMINAL, Event
from planwave.events.unreadable import guard_stored
from planwave.executor.driver.execution import Execution
from planwave.executor.program import Program
from planwave.graph.checking.checker import check
from planwave.graph.protocols import WrittenBy
from planwave.nodes.services import with_flows
from planwave.planner.cost_estimate import forecast
from planwave.planner.plan_check import admission
from planwave.service.dependencies import Observer, ServiceDependencies
from planwave.service.executions.command_rules import Command
from planwave.service.executions.document_writer import DocumentWriter
from planwave.service.executions.loading import claim, load_run_spec, set_aside_data
from planwave.service.executions.parent_results import ReuseDependencies, load_reuse
from planwave.service.executions.plan_approval import approval_request, hash_to_approve
from planwave.service.executions.queue_entry import QueuedExecution, RunSpec
from planwave.service.executions.store_retry import RetryingJournal, StoreRetry
from planwave.service.fair_queue import FairQueue
from planwave.service.plans.documents import raise_for_run
from planwave.service.plans.planner_service import require_stored_plan
from planwave.service.streaming.live_execution import LiveExecution

if TYPE_CHECKING:
    from planwave.executor.messages import PlaceChange
    from planwave.executor.ports import Journal
    from planwave.executor.reuse.reuse import Reuse
    from planwave.graph.model import Json

_log = logging.getLogger(__name__)
_RETRY_AFTER_S: Final = 5.0
"""The Retry-After of a full queue; how long executions take is unknown."""
_DOCUMENTED: Final = frozenset({"execution.paused"}) | TERMINAL
"""Events after which the document of an execution is written."""
_LIGHT_BYTES: Final = 65_536
"""Executions with larger results are released from memory at once, not in a batch."""


class ExecutionRunner:
    """Runs executions; an async context manager that stops what still runs when it is left.

    Attributes:
        is_draining: Whether new executions are refused.
        listeners: Called with each batch of durable events of an execution; they must not raise.
    """

    def __init__(
        self,
        dependencies: ServiceDependencies,
        document_writer: DocumentWriter,
        on_end: Callable[[LiveExecution], None],
        on_idle: Callable[[LiveExecution], None],
    ) -> None:
        self._dependencies = dependencies
        self._document_writer = document_writer
        self._on_end, self._on_idle = on_end, on_idle
        self.store_retry = StoreRetry()
        self._journal = RetryingJournal(dependencies.store, self.store_retry)
        self._reuse = ReuseDependencies(
            dependencies.store,
            dependencies.catalogue,
            dependencies.renderer,
            dependencies.node_services,
            dependencies.parent_calls,
            dependencies.limits,
        )
        self._admit = admission(dependencies.catalogue, dependencies.planner)
        self._tasks = asyncio.TaskGroup()
        limits = dependencies.limits
        self._places = FairQueue(limits.concurrent_executions, limits.burst_executions)
        self._queue: dict[str, LiveExecution] = {}
        self._running: dict[str, LiveExecution] = {}
        self._starting: dict[str, LiveExecution] = {}
        self._reserved = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.is_draining = False
        self.observer: Observer | None = None
        self.listeners: list[Callable[[Sequence[Event]], object]] = []

    async def __aenter__(self) -> ExecutionRunner:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close_queue()
        self._journal.stop()
        for live in list(self._running.values()):
            self.cancel(live, "planwave is closing")
        await self._tasks.__aexit__(None, None, None)

    @property
    def running(self) -> int:
        """The number of running executions, those that wait in memory included."""
        return len(self._running)

    @property
    def places(self) -> int:
        """The number of running places that are held."""
        return self._places.running

    @property
    def queued(self) -> int:
        """The number of queued executions."""
        return len(self._queue)

    def running_of(self, account: str) -> int:
        """Return the number of running places of an account; see :attr:`Principal.account`."""
        return self._places.running_of(account)

    def position(self, execution_id: str) -> int | None:
        """Return the position in the queue, 1 for the next execution; None if it waits for no place."""
        return self._places.position(execution_id)

    def check_open(self) -> None:
        """Raise if the service is shutting down.

        Raises:
            ShuttingDown: The service is going down.
        """
        if self.is_draining:
            raise ShuttingDown

    def check_capacity(self) -> None:
        """Refuse one more execution.

        Raises:
            ShuttingDown: The service is going down.
            QueueFull: As many wait as may.
        """
        self.check_open()
        limits = self._dependencies.limits
        taken = len(self._running) + len(self._queue) + self._reserved
        if taken >= limits.concurrent_executions + limits.queued_executions:
            raise QueueFull(
                f"{taken - self._places.running} executions wait, as many as may",
                retry_after_s=_RETRY_AFTER_S,
                hint=f"try again in {_RETRY_AFTER_S:.0f} s, or raise the limit queued_executions",
            )

    @contextmanager
    def reserve_slot(self) -> Generator[None]:
        """Reserve a slot for an execution that is about to be submitted.

        Raises:
            ShuttingDown, QueueFull: See :meth:`check_capacity`.
        """
        self.check_capacity()
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    def submit(self, live: LiveExecution, spec: RunSpec) -> None:
        """Queue an execution with a reserved slot (:meth:`reserve_slot`).

        Raises:
            ShuttingDown: The service is going down (by now).
        """
        self.check_open()
        self._enqueue(live, spec)
        if live.execution_id in self._queue:
            spec.is_checked, spec.program = False, None

    def requeue(self, live: LiveExecution, entry: QueuedExecution) -> None:
        """Queue an execution that was accepted before, whatever the length of the queue."""
        if self.is_draining:
            live.mark_finished()
        else:
            self._enqueue(live, entry)

    def _enqueue(self, live: LiveExecution, entry: QueuedExecution) -> None:
        live.mark_queued(entry)
        entry.accepted_at = asyncio.get_running_loop().time()
        if self._starting.get(live.execution_id) is live:
            return  # its task waits for the command that is settled just now, and takes this turn
        self._queue[live.execution_id] = live
        self._places.add(
            live.execution_id,
            live.account,
            has_started=not isinstance(entry, RunSpec),  # else it was accepted before
        )
        self._idle.clear()
        self._start_queued()

    async def apply_while_idle(self, live: LiveExecution, command: Command) -> None:
        """Apply a command to an execution that is not running, and queue it if it can continue.

        The caller holds ``live.commands``. Nothing of it is started here, so it needs no slot.

        Raises:
            PlanwaveError: What the command was refused with; the store cannot write now.
        """
        queued = None if live.is_unscheduled else live.queue_entry
        was_left = queued is None and live.state.status == "executing"
        # One owner for all commands, as owners without progress are counted.
        turn = QueuedExecution(epoch=None if queued is None else queued.epoch)
        order = await load_run_spec(
            self._dependencies.store, live.execution_id, turn, self._dependencies.limits
        )
        if queued is not None:
            queued.epoch = order.epoch
        execution = self._build_execution(live, order, self._dependencies.store)
        done = command.send(execution, live.state)
        execution.interrupt(at_once=True)
        await execution.run()
        if live.is_over or live.state.status == "paused":
            self.dequeue(live.execution_id)
            self._document_writer.schedule(live.execution_id)
            self._update_idle()
            if live.is_over:
                live.mark_finished()
                self._on_end(live)
            else:
                live.mark_idle()
                self._on_idle(live)
        elif queued is None:
            self.requeue(live, QueuedExecution(epoch=order.epoch, is_recovery=was_left))
        if done is not None:
            await done

    def cancel(self, live: LiveExecution, cause: str) -> bool:
        """Cancel an execution that runs or is about to; False where it does neither."""
        if live.execution_id not in self._running or live.queue_entry is None:
            return False
        if live.execution is None:
            live.queue_entry.cancel_cause = cause
        else:
            live.execution.cancel(cause)
        return True

    def dequeue(self, execution_id: str) -> bool:
        """Take an execution out of the queue; False if it is not there (any more)."""
        live = self._queue.pop(execution_id, None)
        if live is not None:
            self._places.remove(execution_id)
            live.queue_entry = None
            self._update_idle()
        return live is not None

    def close_queue(self) -> None:
        """Accept nothing new; queued executions stay stored as they are."""
        self.is_draining = True
        for live in list(self._queue.values()):
            self.dequeue(live.execution_id)
            live.mark_finished()

    async def wait_idle(self) -> None:
        """Wait until no execution runs or is queued."""
        await self._idle.wait()

    async def drain(self, timeout_s: float) -> None:
        """Let running nodes finish for so many seconds; then leave everything as it is stored.

        No terminal event is written, so that interrupted executions can be resumed.
        """
        self.close_queue()
        for live in self._running.values():
            if live.execution is not None:
                live.execution.interrupt()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        self.abort()
        await self._idle.wait()

    def abort(self) -> None:
        """Interrupt every running execution; no further event of it is stored."""
        self._journal.stop()
        for live in self._running.values():
            if live.execution is not None:
                live.execution.interrupt(at_once=True)

    def _start_queued(self) -> None:
        while (execution_id := self._places.next()) is not None:
            live = self._queue.pop(execution_id, None)
            if live is None:
                self._grant_place(self._running[execution_id])
                continue
            self._running[execution_id] = self._starting[execution_id] = live
            live.holders += 1  # no second projection may be created and run until then
            self._tasks.create_task(self._run_task(live))

    def _grant_place(self, live: LiveExecution) -> None:
        if live.execution is not None:
            live.execution.grant_place()

    def _place_changed(self, live: LiveExecution, change: PlaceChange) -> None:
        """Follow what becomes of the place of an execution that stays in memory."""
        match change:
            case "wanted":
                self._places.add(live.execution_id, live.account, has_started=True)
            case "taken":
                self._places.take(live.execution_id, live.account)
            case "freed":
                self._places.remove(live.execution_id)
        if not self.is_draining:
            self._start_queued()

    def _update_idle(self) -> None:
        if not self._queue and not self._running:
            self._idle.set()
            self._document_writer.flush()

    async def _run_task(self, live: LiveExecution) -> None:
        rests = False
        try:
            rests = await self._run(live)
            if rests or live.has_streamed:
                live.fold()  # it is looked at below: what makes no sense breaks this run alone
        except Exception as error:  # noqa: BLE001 - a task boundary: one broken run must not stop the others
            _log.warning("execution %s broke: %s", live.execution_id, error)
            live.error = error
        if self.observer is not None:
            self.observer.execution_left(live.execution_id)
        if self._dependencies.tracer is not None:
            self._dependencies.tracer.execution_left(live.execution_id)
        is_light = live.held_bytes <= _LIGHT_BYTES and not (rests or live.has_streamed)
        self._document_writer.schedule(live.execution_id, release_after=live if is_light else None)
        # Without an await, so that no command comes in between.
        del self._running[live.execution_id]
        self._places.remove(live.execution_id)
        if rests:
            live.mark_idle()
            self._on_idle(live)
        else:
            live.mark_finished()
        live.holders -= 1
        self._on_end(live)
        if not self.is_draining:
            self._start_queued()
        self._update_idle()

    async def _run(self, live: LiveExecution) -> bool:
        """Run an execution; return whether it is paused, so that a command can continue it."""
        async with live.commands:
            self._starting.pop(live.execution_id, None)
            if live.queue_entry is None or live.is_over:
                return live.state.status == "paused"  # a command came first
            if self.is_draining and live.queue_entry.cancel_cause is None:
                return False
            execution = await self._prepare(live, live.queue_entry)
            if execution is None or (self.is_draining and live.queue_entry.cancel_cause is None):
                return live.state.status == "paused"
            live.execution = execution
        if live.queue_entry.cancel_cause is not None:
            execution.cancel(live.queue_entry.cancel_cause)
        try:
            return await execution.run() == "paused"
        except Conflict as error:  # the stored events are unreadable
            await self._store_refusal(live, live.queue_entry, error)
            return live.state.status == "paused"
        finally:
            live.held_bytes, host = execution.result_bytes, execution.host
            if self.observer is not None:
                hits, misses = host.links.hits, host.links.misses
                self.observer.link_cache_used(hits, misses, host.open_links.fan_out)
            live.execution = None

    async def _prepare(self, live: LiveExecution, entry: QueuedExecution) -> Execution | None:
        """Return an execution that is ready to run; None if it cannot run, and store the reason."""
        order: RunSpec | None = None
        try:
            if isinstance(entry, RunSpec):
                order = entry
            else:
                store, limits = self._dependencies.store, self._dependencies.limits
                await self.store_retry.write(lambda: claim(store, live.execution_id, entry))
                order = live.queue_entry = await load_run_spec(
                    store, live.execution_id, entry, limits
                )
            if self._dependencies.tracer is not None:
                self._dependencies.tracer.started(live.state, order.trace_context)
            await self._check(live, order)
            reuse = await load_reuse(self._reuse, live.execution_id, order.parent)
            made = self._build_execution(live, order, self._journal, reuse, shares_places=True)
            if self._dependencies.parent_calls is not None:
                self._dependencies.parent_calls.count_for(made, order.stored_bytes)
        except PlanwaveError as error:
            if not live.is_over:
                await self._store_refusal(live, order or entry, error)
            return None
        if self.observer is not None:
            waited_s = asyncio.get_running_loop().time() - order.accepted_at
            self.observer.started(live.execution_id, order.graph, waited_s)
        return made

    async def _store_refusal(
        self, live: LiveExecution, entry: QueuedExecution, error: PlanwaveError
    ) -> None:
        """Store why an execution cannot run: as its end, or, if it has started, as a pause.

        No node has run by then; earlier results stay, and the execution can be resumed.
        """
        store, seq, at = self._dependencies.store, live.last_seq + 1, self._dependencies.timestamp()
        if live.state.started_at is None:
            data: dict[str, Any] = {"error": error.as_json(), "failures": []}
            kind = "execution.failed"
        else:
            data, kind = set_aside_data(error), "execution.paused"
        epoch = await store.claim(live.execution_id) if entry.epoch is None else entry.epoch
        event = Event(live.execution_id, seq, at, kind, None, None, data)
        await store.append(live.execution_id, epoch, [event])
        self.publish(live, [event])

    async def _check(self, live: LiveExecution, spec: RunSpec) -> None:
        if spec.is_checked:
            return
        dependencies = self._dependencies
        raise_for_run(check(spec.graph, dependencies.catalogue, dependencies.limits))
        if live.state.started_at is None:
            plan_id = live.state.plan_id
            await require_stored_plan(dependencies, spec.graph, spec.written_by, plan_id)

    def _build_execution(
        self,
        live: LiveExecution,
        spec: RunSpec,
        journal: Journal,
        reuse: Reuse | None = None,
        *,
        shares_places: bool = False,
    ) -> Execution:
        with guard_stored(live.execution_id):
            return Execution(
                spec.program or Program(spec.graph, self._dependencies.catalogue),
                execution_id=live.execution_id,
                inputs=spec.inputs,
                options=spec.options,
                journal=journal,
                epoch=1 if spec.epoch is None else spec.epoch,
                last_seq=spec.last_seq,
                variables={"goal": spec.goal, "trigger": spec.trigger},
                services=with_flows(self._dependencies.node_services(spec.goal), spec.flows),
                renderer=self._dependencies.renderer,
                on_events=lambda events: self.publish(live, events),
                history=spec.history,
                is_recovery=spec.is_recovery,
                parks="replayable",
                reuse=reuse,
                approval=self._approval_request(live, spec),
                on_place=partial(self._place_changed, live) if shares_places else None,
                written_by=None if spec.written_by is None else WrittenBy(spec.written_by),
                admit=self._admit,
            )

    def _approval_request(self, live: LiveExecution, spec: RunSpec) -> Json | None:
        """Return the request before the first node of an execution starts; None if there is none."""
        if spec.history is not None and spec.history.is_started:
            return None
        dependencies = self._dependencies
        plan_hash = hash_to_approve(
            spec.approval, spec.graph, required=dependencies.require_approval
        )
        if plan_hash is None:
            return None
        return approval_request(
            plan_hash,
            title=live.state.title,
            goal=spec.goal,
            plan_id=live.state.plan_id,
            forecast=forecast(spec.graph, dependencies.catalogue, dependencies.providers),
        )

    def publish(self, live: LiveExecution, events: Sequence[Event]) -> None:
        """Publish durable events to the watchers and the observer."""
        live.publish(events)
        if self.observer is not None:
            self.observer.published(events)
        if self._dependencies.tracer is not None:
            self._dependencies.tracer.published(events)
        for listener in self.listeners:
            listener(events)
        if any(event.type in _DOCUMENTED for event in events):
            self._document_writer.schedule(live.execution_id)
