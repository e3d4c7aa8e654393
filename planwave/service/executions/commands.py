"""Commands for executions that run, are queued, or are stored only."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from planwave.errors import (
    Conflict,
    Gone,
    GraphInvalid,
    NotFound,
    PlanwaveError,
    ShuttingDown,
    StaleEpoch,
    StoreError,
)
from planwave.events import ENDED_STATUS, Event
from planwave.events.request_text import EDIT, field_of, is_timer
from planwave.events.types import SupersededDocument
from planwave.executor.driver.execution import ALREADY_ENDED
from planwave.graph.model import Json
from planwave.graph.reading.documents import read_graph
from planwave.principals import current_principal
from planwave.service.dependencies import ServiceDependencies
from planwave.service.executions.answer_deadlines import AnswerDeadlines
from planwave.service.executions.carried import CarriedExecutions, is_due, must_run, waited_s
from planwave.service.executions.command_rules import (
    Answer,
    Cancel,
    CancelNode,
    Command,
    Expire,
    Pause,
    Resume,
    require_not_ended,
    told_by_rule,
)
from planwave.service.executions.document_writer import DocumentWriter
from planwave.service.executions.driver import ExecutionDriver
from planwave.service.executions.recovery import Recovery
from planwave.service.executions.run_spec import require_known_types
from planwave.service.executions.session import ExecutionSession, set_aside_data
from planwave.service.queries.digest import EVENTS_AT_ONCE
from planwave.service.queries.history import ExecutionQueries
from planwave.service.streaming.live_execution import LiveExecution
from planwave.service.streaming.stored_execution import load_record
from planwave.storage.records import DRIVEN_ELSEWHERE, ExecutionRecord

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Sequence

    from planwave.events.node_state import OpenRequest

_log = logging.getLogger(__name__)


class ExecutionCommands(ExecutionQueries):
    """The commands for executions, and their recovery after a restart.

    An async context manager; leaving it stops every execution that still runs.

    Attributes:
        driver: Drives the executions of this process.
        tasks: Holds background work of the service that an execution does not own.
    """

    def __init__(self, dependencies: ServiceDependencies) -> None:
        self._document_writer = DocumentWriter(dependencies.store, dependencies.directory)
        super().__init__(
            dependencies.store,
            dependencies.directory,
            self._document_writer.wait_written,
            dependencies.observers,
        )
        self._dependencies = dependencies
        self.tasks = asyncio.TaskGroup()
        self._unreadable_lock = asyncio.Lock()
        self._recovery: asyncio.Task[None] | None = None
        self._answer_deadlines = AnswerDeadlines(dependencies.now, self._on_deadline)
        self.driver = ExecutionDriver(
            dependencies,
            self.live_executions,
            self._document_writer,
            lambda live: self._answer_deadlines.watch(live.state),
            self._take_up,
            self._set_aside_unreadable,
        )
        store, carrier = dependencies.store, dependencies.carrier
        if carrier is not None and store.owners is not None:
            self.driver.carried = CarriedExecutions(
                store,
                store.owners,
                carrier,
                self.live_executions,
                self._publish_read,
                self._carry_out,
            )

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(self._document_writer)
            await self._document_writer.catch_up()
            opened.pop_all()
        await self.tasks.__aenter__()
        await self.driver.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        async with AsyncExitStack() as opened:
            # The writer is closed after everything that may still end an execution.
            opened.push_async_exit(self._document_writer)
            self.stop_recovery()
            await self.driver.__aexit__(None, None, None)
            self.live_executions.close()
            await self.tasks.__aexit__(None, None, None)

    def _may_be_running(self, record: ExecutionRecord) -> bool:
        """Return whether an execution runs here, is queued, or is still to be recovered."""
        is_recovered = self._recovery is not None and self._recovery.done()
        if record.status == "starting" or not is_recovered or self.driver.is_draining:
            return True
        live = self.live_executions.get(record.execution_id)
        return live is not None and (live.session is not None or live.commands.locked())

    async def wait(self, execution_id: str) -> ExecutionRecord:
        """Wait until an execution of this process has come to rest and its document is written.

        It has ended then, or is paused with nothing at work.

        Raises:
            StoreError: The run broke because its events could not be kept.
        """
        if (carried := self.driver.carried) is not None:
            record = await load_record(self._store, execution_id)
            if record.status != "starting" or record.queued:
                async with self.live_executions.acquire(execution_id) as live:
                    await carried.wait(live)
            return await load_record(self._store, execution_id)
        live = self.live_executions.get(execution_id)
        if live is not None and live.session is not None:
            await live.finished.wait()
            if live.error is not None:
                raise live.error
        await self._document_writer.wait_written(execution_id)
        return await load_record(self._store, execution_id)

    # -- executions that several processes share ---------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """Whether a carrier hands executions to several processes."""
        return self.driver.carried is not None

    async def _take_up(self, live: LiveExecution) -> str | None:
        """Give an execution that is handed over a session, or return the capability that this process lacks for it."""
        carried = self.driver.carried
        if carried is None or live.session is not None:
            return None
        await carried.tail.catch_up(live)
        if live.is_over:
            return None
        await self._finish_edit(live)
        async with live.commands:
            now = self._dependencies.now()
            if is_due(live.state, now):
                await self._expire_handed_over(live, now)
            record = await load_record(self._store, live.execution_id)
            if not live.is_over and must_run(live.state, was_accepted=record.queued):
                if record.needs not in (None, *self._dependencies.capabilities):
                    return record.needs
                session = ExecutionSession(
                    self._dependencies, live.execution_id, owners=self._store.owners
                )
                session.accepted_at = asyncio.get_running_loop().time() - waited_s(live.state, now)
                live.mark_queued(session)
        carried.relay.look()
        return None

    async def _expire_handed_over(self, live: LiveExecution, now: datetime) -> None:
        """End the time of the requests of an execution that waits; the caller holds ``live.commands``."""
        try:
            await self.driver.apply_while_idle(live, Expire(now))
        except StoreError:
            raise
        except PlanwaveError as error:  # it stays paused, until a person sees to it
            _log.warning("a request of execution %s cannot run out: %s", live.execution_id, error)

    @asynccontextmanager
    async def sweeping(self) -> AsyncGenerator[None]:
        """Tell a carrier of several processes within the block what others did not get to tell it."""
        async with asyncio.TaskGroup() as tasks:
            if self.driver.carried is None:
                yield
                return
            sweep = tasks.create_task(self.driver.carried.sweep())
            yield
            sweep.cancel()

    def _publish_read(self, live: LiveExecution, events: Sequence[Event]) -> None:
        """Publish events that another process has stored."""
        live.publish(events)
        for listener in self.driver.listeners:
            listener(events)

    async def _carry_out(self, execution_id: str, command: Command) -> None:
        """Carry out a command that another process was given."""
        if isinstance(command, Cancel):
            await self.cancel(execution_id, command.cause)
        else:
            await self.send_command(execution_id, command)

    async def _relay(self, live: LiveExecution, command: Command) -> bool:
        """Have the process that drives an execution carry out a command; False where there is no other one."""
        carried = self.driver.carried
        if carried is None or live.session is not None:
            return False
        await carried.tail.catch_up(live)
        command.check(live.state)
        if not await carried.relay.send(live.execution_id, command, live.state.last_seq):
            return False
        await carried.tail.catch_up(live)
        return True

    # -- recovery ----------------------------------------------------------------------------------

    async def recover(self) -> int:
        """Recover, one after the other, the accepted executions that neither ended nor paused.

        Settled nodes do not run again; nodes that were cut off do, and are served the calls they
        had finished. One whose process ends again and again without progress is set aside.

        Returns:
            The number of executions to be recovered or watched.
        """
        if self.driver.carried is not None:
            return 0  # the carrier knows what has to go on
        records = await self._store.open_executions()
        recovery = Recovery(
            self._store,
            self._dependencies.limits,
            self._requeue,
            lambda own, after: self.watch(own, after=after),
            self._dependencies.observers,
        )
        self._recovery = self.tasks.create_task(recovery.run(records))
        return len(records)

    async def open_requests(self) -> list[OpenRequest]:
        """Return what executions wait for people to answer: of this process, or of all where several share them."""
        if self.is_shared:
            return [each.request for each in await self.pending_requests(EVENTS_AT_ONCE)]
        running = (each for each in self.live_executions if each.session is not None)
        return [
            *self._answer_deadlines.requests(),
            *(
                request
                for live in running
                for request in live.state.requests.values()
                if not is_timer(request.request)
            ),
        ]

    def stop_recovery(self) -> None:
        """Recover no further execution of an earlier process."""
        if self._recovery is not None:
            self._recovery.cancel()
        self._answer_deadlines.close()

    async def _requeue(self, execution_id: str) -> bool:
        """Queue an interrupted execution, or watch its requests; return whether it is queued.

        Raises:
            Conflict: ``unreadable``: it is set aside.
        """
        async with AsyncExitStack() as held:
            try:
                live = await held.enter_async_context(self.live_executions.acquire(execution_id))
            except Conflict as error:
                await self._set_aside_unreadable(execution_id, error)
                raise
            await self._finish_edit(live)
            await held.enter_async_context(live.commands)
            if live.session is not None or live.is_over:
                return False
            if not must_run(live.state, was_accepted=True):
                self._answer_deadlines.watch(live.state)
                return False
            await self._submit_left(live)
            return True

    async def _submit_left(self, live: LiveExecution) -> None:
        """Queue an execution that a process left as it ran."""
        session = ExecutionSession(self._dependencies, live.execution_id, is_recovery=True)
        await self.driver.submit(live, session)

    async def _finish_edit(self, live: LiveExecution) -> None:
        """Store the answer that made this execution, if the process ended before it was stored.

        If the request was answered otherwise, this execution is cancelled.
        """
        execution_id, approval = live.execution_id, live.state.approval
        if approval is None or "answer" in approval:
            return
        before = await self._superseded(execution_id)
        if before is None:
            return
        try:
            old = await self.live_executions.state(before["execution_id"])
        except (NotFound, Conflict):  # it was deleted or cannot be read, so it does not ask
            return
        answer = (old.approval or {}).get("answer")
        if field_of(field_of(answer, "value"), "execution_id") == execution_id:
            return
        with suppress(Conflict, Gone):
            await self.supersede(execution_id)
            return
        await self.cancel_unneeded(execution_id, old.execution_id)

    async def _superseded(self, execution_id: str) -> SupersededDocument | None:
        """Return the request that the plan of an execution answers, as an edit of the plan before."""
        (created,) = await self._store.events(execution_id, limit=1)
        return created.data.get("supersedes")

    async def _set_aside_unreadable(self, execution_id: str, error: Conflict) -> None:
        """Pause an execution that cannot be read and was interrupted while it ran."""
        async with self._unreadable_lock:
            if (await load_record(self._store, execution_id)).status == "executing":
                await self._append_unread(execution_id, "execution.paused", set_aside_data(error))

    # -- commands ----------------------------------------------------------------------------------

    async def cancel(
        self, execution_id: str, cause: str = "cancelled by request", *, node: str | None = None
    ) -> ExecutionRecord:
        """Stop an execution, or one node of it; that is durable when this returns.

        Args:
            execution_id: Which.
            cause: Why; kept with it.
            node: The path of the one node to be stopped; what depends on it is blocked.

        Raises:
            NotFound: No such execution, or no such node in it.
            Conflict: It has ended already, or did so first; ``not-running``: so has the node, or it
                has not started yet.
            StoreError: It cannot be kept now; nothing was cancelled.
            ShuttingDown: The service goes down; it is left as it is stored.
        """
        if node is not None:
            return await self.send_command(execution_id, CancelNode(node, cause))
        require_not_ended(execution_id, (await load_record(self._store, execution_id)).status)
        self._require_writable()
        async with AsyncExitStack() as held:
            try:
                live = await held.enter_async_context(self.live_executions.acquire(execution_id))
            except (Conflict, NotFound):  # the stored events are unreadable or lost
                record = await self._cancel_unreadable(execution_id, cause)
            else:
                record = await self._cancel(live, cause)
        if record.status not in ENDED_STATUS:
            raise ShuttingDown
        if record.status != "cancelled":
            require_not_ended(execution_id, record.status)
        return record

    async def _cancel(self, live: LiveExecution, cause: str) -> ExecutionRecord:
        while True:
            if await self._relay(live, Cancel(cause)):
                return await load_record(self._store, live.execution_id)
            try:
                async with live.commands:
                    session = live.session
                    if not self.driver.cancel(live, cause):
                        await self._to_its_end(self._cancel_idle(live, cause))
            except (Conflict, StaleEpoch) as error:
                if not self._is_overtaken(error):
                    raise
                continue  # a process was handed it just now
            if (carried := self.driver.carried) is None:
                record = await self.wait(live.execution_id)
            else:
                await carried.wait(live, session)
                record = await load_record(self._store, live.execution_id)
            if record.status in ENDED_STATUS or self.driver.is_draining:
                return record

    async def _to_its_end(self, work: Coroutine[Any, Any, None]) -> None:
        """Await work to its end, even where the caller is cancelled: it may have been stored already.

        The caller holds ``live.commands``, so it leaves only after that.
        """
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                outcome.set_result(await work)
            except Exception as error:  # noqa: BLE001 - a task boundary: the caller gets the error
                outcome.set_exception(error)
            finally:
                outcome.cancel()

        self.tasks.create_task(run())
        try:
            await asyncio.shield(outcome)
        except asyncio.CancelledError:
            await asyncio.wait([outcome])
            raise

    async def _cancel_unreadable(self, execution_id: str, cause: str) -> ExecutionRecord:
        """Cancel an execution that cannot be read, so that it is over, and can be deleted."""
        async with self._unreadable_lock:  # one at a time: a second one finds that it is over
            require_not_ended(execution_id, (await load_record(self._store, execution_id)).status)
            await self._append_unread(execution_id, "execution.cancelled", {"cause": cause})
            return await load_record(self._store, execution_id)

    async def _append_unread(
        self, execution_id: str, event_type: str, data: dict[str, Json]
    ) -> None:
        """Append an event to an execution whose events cannot be read."""
        epoch = await self._store.claim(execution_id)
        seq = (await load_record(self._store, execution_id)).last_seq + 1
        at = self._dependencies.timestamp()
        last = Event(execution_id, seq, at, event_type, None, None, data)
        await self._store.append(execution_id, epoch, [last])

    async def _cancel_idle(self, live: LiveExecution, cause: str) -> None:
        """Cancel an execution that is not running. Where that fails, it stays in the queue."""
        session = None if live.is_unscheduled else live.session
        session = session or ExecutionSession(self._dependencies, live.execution_id)
        if self.driver.carried is not None:
            await session.claim()  # nobody else adds events from now on
            await self.driver.carried.tail.catch_up(live)
        events = await session.cancel_at_rest(live.state, cause, self._dependencies.timestamp())
        self.driver.dequeue(live.execution_id)
        self.driver.publish(live, events)
        live.error = None
        self._answer_deadlines.forget(live.execution_id)
        live.mark_finished()
        self.driver.wake(live)  # what carries it is parked

    async def pause(self, execution_id: str) -> ExecutionRecord:
        """Pause an execution: start no further node; running nodes continue to their end.

        Raises:
            NotFound: There is none of that id.
            Conflict: It has ended, or was not started yet (``not-started``).
            StoreError, ShuttingDown: It stays as it is.
        """
        return await self.send_command(execution_id, Pause())

    async def resume(self, execution_id: str) -> ExecutionRecord:
        """Resume a paused or set-aside execution, or one that is not running.

        Raises:
            NotFound: There is none of that id.
            Conflict: It has ended; ``not-paused``: it runs, or waits for an answer.
            StoreError, ShuttingDown: It stays as it is.
        """
        self.driver.check_open()
        async with self.live_executions.acquire(execution_id) as live:
            if (carried := self.driver.carried) is not None:
                await carried.tail.catch_up(live)
            await self._finish_edit(live)
            async with live.commands:
                if not live.is_over:
                    self._require_types(live)
                if await self._is_left(live):
                    await self._submit_left(live)
                    return await load_record(self._store, execution_id)
        return await self.send_command(execution_id, Resume())

    async def _is_left(self, live: LiveExecution) -> bool:
        """Return whether an execution has something to do and no process does it."""
        if not live.is_unscheduled or not must_run(live.state, was_accepted=True):
            return False
        carried = self.driver.carried
        if carried is not None and await carried.is_elsewhere(live):
            return False
        was_accepted = (await load_record(self._store, live.execution_id)).queued
        return live.is_unscheduled and must_run(live.state, was_accepted=was_accepted)

    async def store_answer(
        self, execution_id: str, request_id: str, answer: Json
    ) -> ExecutionRecord:
        """Answer a request as it is, once; the answer is durable when this returns.

        Args:
            execution_id: Which execution.
            request_id: One of ``requests``.
            answer: ``{decision, note?, value?, form?}`` for requests with actions.

        Raises:
            NotFound: No such execution, or it never made such a request.
            Conflict: ``request-answered``.
            Gone: ``request-closed``: its time was over, or its node or execution was cancelled.
            InputError: It is no answer to this request.
            StoreError, ShuttingDown: The request stays open.
        """
        self.driver.check_open()
        most, who = self._dependencies.limits.largest_result_bytes, current_principal().as_json()
        return await self.send_command(execution_id, Answer(request_id, answer, who, most))

    async def supersede(self, execution_id: str) -> None:
        """Answer the request for approval that the plan of a new execution is the edit of, if any.

        Raises:
            PlanwaveError: As ``store_answer``; the new execution is not needed then.
        """
        before = await self._superseded(execution_id)
        if before is None:
            return
        approval = (await self.live_executions.state(execution_id)).approval or {}
        value = {"execution_id": execution_id, "plan_hash": approval["plan_hash"]}
        answer = {"decision": EDIT, "note": before.get("note", ""), "value": value}
        await self.store_answer(before["execution_id"], before["request_id"], answer)

    async def cancel_unneeded(self, execution_id: str, superseded: str) -> None:
        """Cancel the execution of an edited plan, as the one that asked took no such answer."""
        await self.cancel(execution_id, f"execution {superseded} took no answer")

    async def send_command(self, execution_id: str, command: Command) -> ExecutionRecord:
        """Send a command to an execution, running or stored.

        What a driver refuses is told by the rule of the command, where the events by then say why.
        """
        async with self.live_executions.acquire(execution_id) as live:
            while True:
                try:
                    with told_by_rule(command, lambda: live.state):
                        if not await self._relay(live, command):
                            await self._give(live, command)
                        return await load_record(self._store, execution_id)
                except (Conflict, StaleEpoch) as error:
                    if error.code != ALREADY_ENDED and not self._is_overtaken(error):
                        raise
                await asyncio.sleep(0)  # it has stopped running meanwhile, or runs elsewhere

    def _is_overtaken(self, error: PlanwaveError) -> bool:
        """Return whether a command came to nothing only because another process took the execution just then."""
        return self.is_shared and (isinstance(error, StaleEpoch) or error.code == DRIVEN_ELSEWHERE)

    async def _give(self, live: LiveExecution, command: Command) -> None:
        async with live.commands:
            await load_record(self._store, live.execution_id)  # it may have been deleted
            command.check(live.state)
            if isinstance(command, Answer | Resume):
                self._require_types(live)
            self._require_writable()
            if live.execution is None:
                await self._to_its_end(self.driver.apply_while_idle(live, command))
                if live.state.status != "paused":  # else its requests are watched already
                    self._answer_deadlines.forget(live.execution_id)
                return
            done = command.send(live.execution, live.state)
        if done is not None:
            await done

    def _require_types(self, live: LiveExecution) -> None:
        """Check that there are all node types of an execution that is not running: it would be set aside.

        Raises:
            InputError: ``unknown-node-type``.
        """
        if live.execution is not None or not live.state.graph:
            return
        with suppress(GraphInvalid):  # who loads it says why it cannot be read
            graph, _ = read_graph(live.state.graph)
            require_known_types(graph, self._dependencies.catalogue)

    def _require_writable(self) -> None:
        """Raise if the store cannot write now.

        Raises:
            StoreError: ``disk-full``, ``store-busy``.
        """
        trouble = self._store.stats.transient_error
        if trouble is not None:
            raise trouble.with_traceback(None)

    # -- deadlines ---------------------------------------------------------------------------------

    def _on_deadline(self, execution_id: str, until: datetime) -> None:
        self.tasks.create_task(self._expire(execution_id, until))

    async def _expire(self, execution_id: str, until: datetime) -> None:
        """Expire the requests whose deadline is not later than ``until``."""
        try:
            async with self.live_executions.acquire(execution_id) as live:

                async def tell() -> None:
                    if not live.is_over:
                        await self.send_command(execution_id, Expire(until))

                await self.driver.store_retry.write(tell)
        except Exception as error:  # noqa: BLE001 - a task boundary: it alone cannot go on
            _log.warning("a request of execution %s cannot run out: %s", execution_id, error)
