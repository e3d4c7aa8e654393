"""Carries executions in this process: so many at once, the others in a queue, first come first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from planwave.errors import Conflict, Draining, PlanwaveError, QueueFull
from planwave.events import Event
from planwave.events.reading import reading
from planwave.events.vocabulary import SET_ASIDE
from planwave.graph.capabilities import Catalogue
from planwave.service.documents import raise_for_run
from planwave.service.keeping import Documents
from planwave.service.live import Live
from planwave.service.orders import Order, Turn
from planwave.service.patience import Patience, PatientJournal
from planwave.service.reusing import reuse_of
from planwave.service.rooms import Observer, Rooms
from planwave.service.stored import order_from, own

if TYPE_CHECKING:
    from planwave.executor.ports import Journal
    from planwave.executor.reuse import Reuse
    from planwave.executor.run import Execution

Ask = Callable[["Execution"], "asyncio.Future[None] | None"]
"""Gives an execution a command; what comes of it is done once that is durable."""

_log = logging.getLogger(__name__)
_RETRY_AFTER_S: Final = 5.0
"""What a caller is told to wait when the queue is full; nobody knows how long executions take."""
_LIGHT_BYTES: Final = 65_536
"""What is left of an execution waits to be let go of where its results are no larger than that."""


class Carrier:
    """Runs executions; an async context manager that stops what still runs when it is left."""

    def __init__(
        self,
        rooms: Rooms,
        documents: Documents,
        on_end: Callable[[Live], None],
        on_rest: Callable[[Live], None],
    ) -> None:
        self._rooms = rooms
        self._documents = documents
        self._on_end, self._on_rest = on_end, on_rest
        self.patience = Patience()
        self._journal = PatientJournal(rooms.store, self.patience)
        self._tasks = asyncio.TaskGroup()
        self._queue: dict[str, Live] = {}
        self._running: dict[str, Live] = {}
        self._about_to_run: dict[str, Live] = {}
        self._promised = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_draining = False
        self.observer: Observer | None = None

    async def __aenter__(self) -> Carrier:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close_queue()
        self._journal.give_up()
        for live in list(self._running.values()):
            self.cancel(live, "planwave is closing")
        await self._tasks.__aexit__(None, None, None)

    @property
    def running(self) -> int:
        """How many executions run."""
        return len(self._running)

    @property
    def queued(self) -> int:
        """How many wait for their start."""
        return len(self._queue)

    @property
    def is_draining(self) -> bool:
        """Whether nothing new is taken."""
        return self._is_draining

    def position(self, execution_id: str) -> int | None:
        """Give the place in the queue, 1 for the next one; None for what is not queued."""
        if execution_id not in self._queue:
            return None
        return 1 + list(self._queue).index(execution_id)

    def check_open(self) -> None:
        """Refuse what is new.

        Raises:
            Draining: The service is going down.
        """
        if self._is_draining:
            raise Draining

    def check_room(self) -> None:
        """Refuse one more execution.

        Raises:
            Draining: The service is going down.
            QueueFull: As many wait as may.
        """
        self.check_open()
        limits = self._rooms.limits
        taken = len(self._running) + len(self._queue) + self._promised
        if taken >= limits.concurrent_executions + limits.queued_executions:
            raise QueueFull(
                f"{len(self._queue)} executions wait to be started, as many as may",
                retry_after_s=_RETRY_AFTER_S,
                hint=f"try again in {_RETRY_AFTER_S:.0f} s, "
                "or raise PLANWAVE_LIMIT_QUEUED_EXECUTIONS",
            )

    @contextmanager
    def room(self) -> Generator[None]:
        """Keep a place for an execution that is about to be submitted.

        Raises:
            Draining, QueueFull: See :meth:`check_room`.
        """
        self.check_room()
        self._promised += 1
        try:
            yield
        finally:
            self._promised -= 1

    def submit(self, live: Live, order: Order) -> None:
        """Queue an execution for which :meth:`room` was kept; it starts when its turn comes.

        Raises:
            Draining: The service is going down (by now).
        """
        self.check_open()
        self._enqueue(live, order)
        if live.execution_id in self._queue:
            order.is_checked, order.program = False, None

    def take_up(self, live: Live, turn: Turn) -> None:
        """Queue an execution that was accepted before; there is always room for those."""
        if self._is_draining:
            live.finish()
        else:
            self._enqueue(live, turn)

    def _enqueue(self, live: Live, turn: Turn) -> None:
        live.queue(turn)
        turn.accepted_at = asyncio.get_running_loop().time()
        if self._about_to_run.get(live.execution_id) is live:
            return  # its task waits for the command that is settled just now, and takes this turn
        self._queue[live.execution_id] = live
        self._idle.clear()
        self._fill()

    async def settle(self, live: Live, ask: Ask) -> None:
        """Have an execution that does not run take a command; what it can do then is queued.

        The caller holds ``live.commands``. Nothing of it is started here, so it needs no slot.

        Raises:
            PlanwaveError: What ``ask`` was refused with; the store cannot write now.
        """
        queued = None if live.is_left else live.order
        was_left = queued is None and live.state.status == "executing"
        # One owner, however much it is told: those without progress are counted.
        turn = Turn(epoch=None if queued is None else queued.epoch)
        order = await order_from(self._rooms.store, live.execution_id, turn, self._rooms.limits)
        if queued is not None:
            queued.epoch = order.epoch
        with reading(live.execution_id):
            execution = self._made(live, order, self._rooms.store)
        done = ask(execution)
        execution.interrupt(at_once=True)
        await execution.run()
        if live.is_over or live.state.status == "paused":
            self.withdraw(live.execution_id)
            self._documents.keep(live.execution_id)
            self._note_idle()
            if live.is_over:
                live.finish()
                self._on_end(live)
            else:
                live.rest()
                self._on_rest(live)
        elif queued is None:
            self.take_up(live, Turn(epoch=order.epoch, is_recovery=was_left))
        if done is not None:
            await done

    def cancel(self, live: Live, cause: str) -> bool:
        """Cancel an execution that runs or is about to; False where it does neither."""
        if live.execution_id not in self._running or live.order is None:
            return False
        if live.execution is None:
            live.order.cancelled = cause
        else:
            live.execution.cancel(cause)
        return True

    def withdraw(self, execution_id: str) -> bool:
        """Take an execution out of the queue; False if it is not there (any more)."""
        live = self._queue.pop(execution_id, None)
        if live is not None:
            live.order = None
            self._note_idle()
        return live is not None

    def close_queue(self) -> None:
        """Take nothing new; what waits stays stored as it is."""
        self._is_draining = True
        for live in list(self._queue.values()):
            self.withdraw(live.execution_id)
            live.finish()

    async def drain(self, timeout_s: float) -> None:
        """Let running nodes finish for so many seconds; then leave everything as it is stored.

        No terminal event is written: what was cut off can be resumed.
        """
        self.close_queue()
        for live in self._running.values():
            if live.execution is not None:
                live.execution.interrupt()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), timeout_s)
        self.leave_now()
        await self._idle.wait()

    def leave_now(self) -> None:
        """Cut off what still runs; nothing more is stored of it."""
        self._journal.give_up()
        for live in self._running.values():
            if live.execution is not None:
                live.execution.interrupt(at_once=True)

    def _fill(self) -> None:
        while self._queue and len(self._running) < self._rooms.limits.concurrent_executions:
            execution_id = next(iter(self._queue))
            live = self._running[execution_id] = self._queue.pop(execution_id)
            self._about_to_run[execution_id] = live
            live.holders += 1  # till then nobody makes a second projection of it, and runs that too
            self._tasks.create_task(self._carry(live))

    def _note_idle(self) -> None:
        if not self._queue and not self._running:
            self._idle.set()
            self._documents.hurry()

    async def _carry(self, live: Live) -> None:
        rests = False
        try:
            rests = await self._run(live)
            if rests or live.has_streamed:
                live.fold()  # it is looked at below: what makes no sense breaks this run alone
        except Exception as error:  # noqa: BLE001 - a task boundary: one broken run must not stop the others
            _log.warning("execution %s broke: %s", live.execution_id, error)
            live.error = error
        if self.observer is not None:
            self.observer.left(live.execution_id)
        is_light = live.held_bytes <= _LIGHT_BYTES and not (rests or live.has_streamed)
        self._documents.keep(live.execution_id, remains=live if is_light else None)
        # All at once, before anybody can tell it to go on.
        del self._running[live.execution_id]
        if rests:
            live.rest()
            self._on_rest(live)
        else:
            live.finish()
        live.holders -= 1
        self._on_end(live)
        if not self._is_draining:
            self._fill()
        self._note_idle()

    def _note_use(self, live: Live, execution: Execution) -> None:
        live.held_bytes = execution.held_bytes
        if self.observer is not None:
            self.observer.linked(execution.host.links.hits, execution.host.links.misses)

    async def _run(self, live: Live) -> bool:
        """Run an execution; say whether it rests, so that a command can make it go on."""
        async with live.commands:
            self._about_to_run.pop(live.execution_id, None)
            if live.order is None or live.is_over:
                return live.state.status == "paused"  # it was told something first
            if self._is_draining and live.order.cancelled is None:
                return False
            execution = await self._made_ready(live, live.order)
            if execution is None or (self._is_draining and live.order.cancelled is None):
                return live.state.status == "paused"
            live.execution = execution
        if live.order.cancelled is not None:
            execution.cancel(live.order.cancelled)
        try:
            return await execution.run() == "paused"
        except Conflict as error:  # what is stored of it makes no sense
            await self._refuse(live, live.order, error)
            return live.state.status == "paused"
        finally:
            self._note_use(live, execution)
            live.execution = None

    async def _made_ready(self, live: Live, turn: Turn) -> Execution | None:
        """Give an execution, ready to run; None where it cannot, which is stored then."""
        order: Order | None = None
        try:
            if isinstance(turn, Order):
                order = turn
            else:
                store, limits = self._rooms.store, self._rooms.limits
                await self.patience.write(lambda: own(store, live.execution_id, turn))
                order = live.order = await order_from(store, live.execution_id, turn, limits)
            with reading(live.execution_id):
                self._check(order)
                reuse = await reuse_of(self._rooms, live.execution_id, order)
                made = self._made(live, order, self._journal, reuse)
        except PlanwaveError as error:
            if not live.is_over:
                await self._refuse(live, order or turn, error)
            return None
        if self.observer is not None:
            waited_s = asyncio.get_running_loop().time() - order.accepted_at
            self.observer.started(live.execution_id, order.graph, waited_s)
        return made

    async def _refuse(self, live: Live, turn: Turn, error: PlanwaveError) -> None:
        """Keep why an execution cannot be run: as its end, or, once it was started, set it aside.

        Nothing of it has run by that; what was done before stays, and can be gone on with.
        """
        store, seq, at = self._rooms.store, live.last_seq + 1, self._rooms.time()
        if live.state.started_at is None:
            data: dict[str, Any] = {"error": error.as_json(), "failures": []}
            kind = "execution.failed"
        else:
            data, kind = (
                {"reason": f"set aside: {error.message}", "kind": SET_ASIDE},
                "execution.paused",
            )
        epoch = await store.claim(live.execution_id) if turn.epoch is None else turn.epoch
        event = Event(live.execution_id, seq, at, kind, None, None, data)
        await store.append(live.execution_id, epoch, [event])
        self.tell(live, [event])

    def _check(self, order: Order) -> None:
        if not order.is_checked:
            from planwave.graph.check import check

            found = check(order.graph, self._rooms.catalogue, self._rooms.limits)
            raise_for_run(found)

    def _made(
        self, live: Live, order: Order, journal: Journal, reuse: Reuse | None = None
    ) -> Execution:
        from planwave.executor.program import Program
        from planwave.executor.run import Execution

        catalogue: Catalogue = self._rooms.catalogue
        return Execution(
            order.program or Program(order.graph, catalogue),
            execution_id=live.execution_id,
            inputs=order.inputs,
            options=order.options,
            journal=journal,
            epoch=1 if order.epoch is None else order.epoch,
            last_seq=order.last_seq,
            variables={"goal": order.goal, "trigger": order.trigger},
            services=self._rooms.node_services(order.goal),
            renderer=self._rooms.renderer,
            on_events=lambda events: self.tell(live, events),
            past=order.past,
            is_recovery=order.is_recovery,
            parks=True,
            reuse=reuse,
        )

    def tell(self, live: Live, events: Sequence[Event]) -> None:
        """Tell watchers, and who counts, what is durable by now."""
        live.tell(events)
        if self.observer is not None:
            self.observer.published(events)
        if any(event.type == "execution.paused" for event in events):
            self._documents.keep(live.execution_id)
