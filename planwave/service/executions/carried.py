"""Executions that a carrier hands to any of several processes: what each process does for them.

A process takes up what it is handed, after it has read what others have done; it watches what others drive, sends them
commands, and tells the carrier what has to go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final

from planwave.errors import PlanwaveError
from planwave.events import ExecutionState
from planwave.events.types import WAITING
from planwave.principals import OPERATOR
from planwave.service.carriers.carrier import CarrierUnavailable, Rest
from planwave.service.executions.command_relay import CommandRelay
from planwave.service.queries.digest import deadline_of
from planwave.service.streaming.delta_relay import DeltaRelay
from planwave.service.streaming.event_tail import POLL_S, EventTail
from planwave.storage.records import Waiting

if TYPE_CHECKING:
    from planwave.events import Event
    from planwave.service.carriers.carrier import Carrier
    from planwave.service.executions.command_rules import Command
    from planwave.service.executions.session import ExecutionSession
    from planwave.service.streaming.live_execution import LiveExecution
    from planwave.service.streaming.subscriptions import LiveExecutions
    from planwave.storage.postgres.owners import ExecutionOwners
    from planwave.storage.sql.store import Store

_log = logging.getLogger(__name__)

SWEEP_S: Final = 5.0
"""How often what the carrier was not told is looked for, and how old it is then."""
COUNT_S: Final = 2.0
"""How often it is counted how many executions wait: so much later a full queue refuses further ones."""
_SWEPT: Final = 500
"""Executions submitted again at a time."""
_SUBMITTED_AT_ONCE: Final = 20


class CarriedExecutions:
    """The part of one process in executions that several processes share.

    Args:
        store: Where the events are.
        owners: Who drives what.
        carrier: Hands executions over.
        live_executions: Those of this process.
        publish: Called with the events of an execution that another process drives.
        carry_out: Carries out a command in this process.

    Attributes:
        tail: Reads what other processes have stored.
        relay: Sends them commands.
        deltas: Sends them streamed text, and receives theirs.
        waiting: How many executions wait for a process, as of some seconds ago.
    """

    def __init__(
        self,
        store: Store,
        owners: ExecutionOwners,
        carrier: Carrier,
        live_executions: LiveExecutions,
        publish: Callable[[LiveExecution, Sequence[Event]], None],
        carry_out: Callable[[str, Command], Awaitable[object]],
    ) -> None:
        self._store, self._owners, self._carrier = store, owners, carrier
        self._live_executions = live_executions
        self.tail = EventTail(store, live_executions, publish)
        live_executions.catch_up = self.tail.catch_up

        def read_events(execution_id: str, after: int) -> Awaitable[Sequence[Event]]:
            return store.events(execution_id, after=after)

        self.relay = CommandRelay(owners, store.notices, carry_out, read_events)
        self.deltas = DeltaRelay(store.notices, live_executions)
        self.waiting = Waiting()
        self._submissions: dict[str, tuple[str, bool]] = {}
        self._has_submissions = asyncio.Event()
        self._is_away = False
        self._lacking: set[str] = set()

    async def run(self) -> None:
        """Follow what other processes do, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.tail.run())
            tasks.create_task(self.relay.run())
            tasks.create_task(self.deltas.run())
            tasks.create_task(self._count_waiting())
            tasks.create_task(self._submit_all())

    async def _count_waiting(self) -> None:
        while True:
            with suppress(PlanwaveError):  # the last count holds
                self.waiting = await self._owners.waiting()
            await asyncio.sleep(COUNT_S)

    # -- to the carrier ----------------------------------------------------------------------------

    def submit(self, execution_id: str, account: str, *, has_started: bool) -> None:
        """Tell the carrier soon that an execution has something to do; it is stored that it has to be told.

        Arguments are those of ``Carrier.submit``.
        """
        self._submissions[execution_id] = (account, has_started)
        self._has_submissions.set()

    async def _submit_all(self) -> None:
        while True:
            await self._has_submissions.wait()
            self._has_submissions.clear()
            waiting, self._submissions = self._submissions, {}
            ids = list(waiting)
            for start in range(0, len(ids), _SUBMITTED_AT_ONCE):
                some = {each: waiting[each] for each in ids[start : start + _SUBMITTED_AT_ONCE]}
                await self._submit_some(some)
                if self._is_away:  # the sweep goes on: to ask for each takes long
                    break

    async def _submit_some(self, some: dict[str, tuple[str, bool]]) -> None:
        known: list[str] = []
        try:
            before = await self._owners.clock()
            needs = await self._owners.needs_of([*some])
        except PlanwaveError as error:
            _log.warning("executions wait: %s", error)
            return

        async def submit(execution_id: str, account: str, has_started: bool) -> None:
            need = needs.get(execution_id)
            try:
                if need is not None and need.is_over:  # perhaps no process could end it
                    await self._carrier.drop(execution_id)
                else:
                    capability = None if need is None else need.capability
                    await self._carrier.submit(
                        execution_id, account, has_started=has_started, needs=capability
                    )
                known.append(execution_id)
            except CarrierUnavailable as error:
                self._note_away(error)
            except Exception as error:  # noqa: BLE001 - a task boundary: the sweep submits it again
                _log.warning("execution %s cannot be submitted: %s", execution_id, error)

        async with asyncio.TaskGroup() as tasks:
            for execution_id, (account, has_started) in some.items():
                tasks.create_task(submit(execution_id, account, has_started))
        if known:
            self._note_away(None)
            with suppress(PlanwaveError):  # they are submitted once more, which changes nothing
                await self._owners.submitted(known, before)

    def _note_away(self, error: CarrierUnavailable | None) -> None:
        """Log once that the carrier does not answer, and once that it does again."""
        if error is not None and not self._is_away:
            _log.warning("%s; executions wait until it does", error)
        elif error is None and self._is_away:
            _log.warning("executions are handed over again")
        self._is_away = error is not None

    def _note_lacking(self) -> None:
        """Log once that executions wait for what no process can do."""
        lacking = {
            each for each in self.waiting.by_capability if not self.waiting.capable.get(each)
        }
        for each in lacking - self._lacking:
            _log.warning(
                "%d executions wait for a process with the capability %s, and there is none",
                self.waiting.by_capability[each], each,
            )  # fmt: skip
        self._lacking = lacking

    async def sweep(self) -> None:
        """Tell the carrier what others did not get to, and carry out commands whose owner is gone; until cancelled.

        One process at a time does so.
        """
        async with asyncio.TaskGroup() as tasks:
            is_first = True
            while True:
                try:
                    if (
                        is_first
                    ):  # the carrier may be another one than before, or have lost its data
                        await self._owners.submit_open()
                    is_first = False
                    await self._sweep(tasks)
                except PlanwaveError as error:
                    _log.warning("executions that wait for a carrier cannot be read now: %s", error)
                await asyncio.sleep(SWEEP_S)

    async def _sweep(self, tasks: asyncio.TaskGroup) -> None:
        for execution_id in await self._owners.unsubmitted(SWEEP_S, _SWEPT):
            record = await self._store.execution(execution_id)
            if record is None:  # it was deleted
                await self._owners.submitted([execution_id], await self._owners.clock())
                continue
            account = (record.created_by or OPERATOR).account
            self.submit(execution_id, account, has_started=record.started_at is not None)
        await self.relay.carry_out_all(tasks, await self._owners.left_commands(SWEEP_S))
        await self._owners.forget_old()
        self._note_lacking()

    async def add_need(self, execution_id: str, capability: str) -> None:
        """Note that only processes with a capability can go on with an execution."""
        await self._owners.add_need(execution_id, capability)

    # -- drive -------------------------------------------------------------------------------------

    async def released(self, execution_id: str, epoch: int) -> None:
        """Note that this process does not drive an execution any more."""
        self.relay.carry_out_soon(await self._owners.release(execution_id, epoch))

    async def is_elsewhere(self, live: LiveExecution) -> bool:
        """Return whether another process drives an execution, by the events that are stored by now."""
        is_elsewhere = await self._owners.is_elsewhere(live.execution_id)
        await self.tail.catch_up(live)
        return is_elsewhere

    async def wait(self, live: LiveExecution, session: ExecutionSession | None = None) -> None:
        """Wait until an execution has ended, or is paused with nothing at work; or this process goes down.

        Args:
            live: The execution.
            session: Wait no longer than this session drives it; None for as long as any process does.
        """
        await self.tail.catch_up(live)
        while live.disconnect_reason is None and await self._is_at_work(live):
            if session is not None and live.session is not session:
                return
            with suppress(TimeoutError):  # nothing is stored of a process that is gone
                async with asyncio.timeout(POLL_S):
                    await live.wait_for_events()

    async def _is_at_work(self, live: LiveExecution) -> bool:
        if live.state.status in ("starting", "executing"):
            return True
        if live.is_over or all(each.status != "running" for each in live.state.nodes.values()):
            return False
        # Its nodes come to their end although it is paused, unless their process is gone.
        return live.session is not None or await self._owners.is_elsewhere(live.execution_id)


def rest_of(state: ExecutionState, *, was_accepted: bool = True) -> Rest:
    """Return how an execution rests; ``interrupted`` where it has something to do."""
    if must_run(state, was_accepted=was_accepted):
        return Rest("interrupted")
    deadlines = (deadline_of(each) for each in state.requests.values())
    return Rest(state.status, min((each for each in deadlines if each is not None), default=None))


def is_due(state: ExecutionState, now: datetime) -> bool:
    """Return whether the time for an answer is over."""
    wake_at = rest_of(state).wake_at
    return wake_at is not None and wake_at <= now


def must_run(state: ExecutionState, *, was_accepted: bool) -> bool:
    """Return whether an execution that rests in this process has something to do without a command.

    It was left while it ran or before its turn, or waits for an answer and has no open request left.
    """
    if state.status == "starting":
        return was_accepted
    is_answered = state.status == "paused" and state.pause == WAITING and not state.requests
    return state.status == "executing" or is_answered


def waited_s(state: ExecutionState, now: datetime) -> float:
    """Return for how many seconds an execution has waited for its start; 0 where it goes on."""
    if state.created_at is None or state.started_at is not None:
        return 0.0
    return max((now - datetime.fromisoformat(state.created_at)).total_seconds(), 0.0)
