"""The carrier within one process: a bounded number at once, the others in a queue that shares the places."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from planwave.service.carriers.carrier import CarrierLoad
from planwave.service.fair_queue import FairQueue

if TYPE_CHECKING:
    from planwave.executor.messages import PlaceChange
    from planwave.service.carriers.carrier import Drive

_log = logging.getLogger(__name__)


class _Submission(NamedTuple):
    account: str
    has_started: bool


class LocalCarrier:
    """Hands executions over to the process that submits them.

    An execution holds a place while a node of it works. One that only waits (for a retry, a provider, an
    answer) may stay in memory without a place, and waits for one again before its next node starts.

    Args:
        burst: Places beyond those of ``serve``, each for an account that has no other; see ``FairQueue``.
    """

    def __init__(self, burst: int) -> None:
        self._places = FairQueue(0, 0)
        self._burst = burst
        self._waiting: dict[str, _Submission] = {}
        self._slots: dict[str, _LocalSlot] = {}
        self._again: dict[str, _Submission] = {}
        self._start: Callable[[str, _LocalSlot], object] | None = None

    @property
    def load(self) -> CarrierLoad:
        """What waits, and what is driven."""
        return CarrierLoad(len(self._waiting), len(self._slots), self._places.running)

    @property
    def is_ready(self) -> bool:
        """Whether ``serve`` was called."""
        return self._start is not None

    def running_of(self, account: str) -> int:
        """Return the number of running places of an account."""
        return self._places.running_of(account)

    def position(self, execution_id: str) -> int | None:
        """Return the position in the queue; see ``Carrier``."""
        return self._places.position(execution_id)

    async def submit(
        self, execution_id: str, account: str, *, has_started: bool, needs: str | None = None
    ) -> None:
        """Queue an execution; see ``Carrier``. Nothing is waited for, and no other process has what it needs."""
        submission = _Submission(account, has_started)
        if execution_id in self._slots:
            self._again[execution_id] = submission
            return
        self._waiting[execution_id] = submission
        self._places.add(execution_id, account, has_started=has_started)
        self._start_waiting()

    async def drop(self, execution_id: str) -> None:
        """Take an execution out of the queue; see ``Carrier``."""
        self.withdraw(execution_id)

    def withdraw(self, execution_id: str) -> bool:
        """Take an execution out of the queue; return whether it was there."""
        self._again.pop(execution_id, None)
        if self._waiting.pop(execution_id, None) is None:
            return False
        self._places.remove(execution_id)
        return True

    async def serve(self, drive: Drive, slots: int) -> None:
        """Drive what is queued; see ``Carrier``. What breaks is not tried again: it would break again here."""
        async with asyncio.TaskGroup() as tasks:

            async def run(execution_id: str, slot: _LocalSlot) -> None:
                try:
                    await drive(execution_id, slot)
                except Exception as error:  # noqa: BLE001 - a task boundary: one broken run must not stop the others
                    _log.debug("execution %s is not driven again: %s", execution_id, error)
                finally:
                    self._leave(execution_id)

            self._start = lambda execution_id, slot: tasks.create_task(run(execution_id, slot))
            self._places.open(slots, self._burst)
            self._start_waiting()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            self._start = None

    def change_place(self, execution_id: str, account: str, change: PlaceChange) -> None:
        """Follow what becomes of the place of an execution that is driven."""
        match change:
            case "wanted":
                self._places.add(execution_id, account, has_started=True)
            case "taken":
                self._places.take(execution_id, account)
            case "freed":
                self._places.remove(execution_id)
        self._start_waiting()

    def _start_waiting(self) -> None:
        if self._start is None:
            return
        while (execution_id := self._places.next()) is not None:
            slot = self._slots.get(execution_id)
            if slot is not None:  # it stays in memory, and wanted a place again
                slot.grant()
                continue
            submission = self._waiting.pop(execution_id)
            slot = self._slots[execution_id] = _LocalSlot(self, execution_id, submission.account)
            self._start(execution_id, slot)

    def _leave(self, execution_id: str) -> None:
        del self._slots[execution_id]
        self._places.remove(execution_id)
        again = self._again.pop(execution_id, None)
        if again is not None:
            self._waiting[execution_id] = again
            self._places.add(execution_id, again.account, has_started=again.has_started)
        self._start_waiting()


class _LocalSlot:
    """The place of one execution that is driven."""

    def __init__(self, carrier: LocalCarrier, execution_id: str, account: str) -> None:
        self._carrier, self._execution_id, self._account = carrier, execution_id, account
        self._grant: Callable[[], None] | None = None

    def change(self, change: PlaceChange, grant: Callable[[], None]) -> None:
        """See ``Slot``."""
        self._grant = grant
        self._carrier.change_place(self._execution_id, self._account, change)

    def grant(self) -> None:
        """Say that the place is there."""
        if self._grant is not None:
            self._grant()
