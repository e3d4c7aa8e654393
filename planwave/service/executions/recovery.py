"""Takes up what an earlier process left: at a pace, and one by one what may have ended it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final

from planwave.errors import PlanwaveError
from planwave.events import TERMINAL, Event
from planwave.log_records import service_logger, write_record
from planwave.service.executions.session import PROGRESS_EVENTS, attempts_without_progress
from planwave.settings import Limits
from planwave.storage.records import ExecutionRecord

if TYPE_CHECKING:
    from planwave.service.dependencies import Observer
    from planwave.storage.sql.store import Store


_log = service_logger("planwave.recovery")
_IDS_NAMED: Final = 20

PROGRESS_TIMEOUT_S: Final = 60.0
"""How long the next one waits for an execution that may have ended its process before."""
_PROGRESS_OR_END: Final = PROGRESS_EVENTS | TERMINAL


class Recovery:
    """Takes up executions, oldest first.

    One that ends its process takes with it what runs beside it, and all of them count a recovery
    without progress. So those that have half of the recoveries they may have behind them come
    last, each once the one before has come on: then it is the right one that is set aside.

    Args:
        store: Where they are.
        limits: ``recoveries``, ``recoveries_per_s``.
        requeue: Queues one; says whether there was anything to queue.
        watch: Gives the events of one after a number, as they happen.
        observers: What is told of each.
    """

    def __init__(
        self,
        store: Store,
        limits: Limits,
        requeue: Callable[[str], Awaitable[bool]],
        watch: Callable[[str, int], AsyncGenerator[Event]],
        observers: Sequence[Observer] = (),
    ) -> None:
        self._store, self._requeue, self._watch = store, requeue, watch
        self._observers = observers
        self._outcomes: dict[str, list[str]] = {"resumed": [], "failed": []}
        self._pace_s = 1 / limits.recoveries_per_s
        self._suspect_threshold = max(limits.recoveries / 2, 1.0)

    async def run(self, records: Sequence[ExecutionRecord]) -> None:
        """Take all of them up; what cannot be is logged, and left as it is stored."""
        began = asyncio.get_running_loop().time()
        try:
            await self._take_up(records)
        finally:
            if records:
                self._log_end(asyncio.get_running_loop().time() - began)

    def _log_end(self, took_s: float) -> None:
        failed = self._outcomes["failed"]
        about = {
            "resumed": len(self._outcomes["resumed"]),
            "failed": len(failed),
            "ids": " ".join(failed[:_IDS_NAMED]) or None,
            "took_s": round(took_s, 3),
        }
        level = logging.WARNING if failed else logging.INFO
        write_record(_log, level, "executions of an earlier process taken up", about)

    async def _take_up(self, records: Sequence[ExecutionRecord]) -> None:
        suspects: list[tuple[int, ExecutionRecord]] = []
        for record in records:
            try:
                met = await self._attempts_without_progress(record)
            except Exception as error:  # noqa: BLE001 - a task boundary: the others go on
                self._fail(record, error)
                continue
            if met >= self._suspect_threshold:
                suspects.append((met, record))
            else:
                await self._requeue_paced(record)
        for _, record in sorted(suspects, key=lambda suspect: suspect[0]):
            if await self._requeue_paced(record):
                await self._wait_for_progress(record)

    async def _attempts_without_progress(self, record: ExecutionRecord) -> int:
        """Return the number of recoveries in a row without any progress."""
        if record.epoch - 1 < self._suspect_threshold:  # it had no more owners than that in all
            return 0
        return attempts_without_progress(
            await self._store.events(record.execution_id), record.epoch
        )

    async def _requeue_paced(self, record: ExecutionRecord) -> bool:
        try:
            is_queued = await self._requeue(record.execution_id)
        except Exception as error:  # noqa: BLE001 - a task boundary: the others go on
            self._fail(record, error)
            return False
        if is_queued:
            self._report(record, "resumed")
            await asyncio.sleep(self._pace_s)
        return is_queued

    def _fail(self, record: ExecutionRecord, error: Exception) -> None:
        _log.warning("execution %s is not taken up: %s", record.execution_id, error)
        self._report(record, "failed")

    def _report(self, record: ExecutionRecord, outcome: str) -> None:
        self._outcomes[outcome].append(record.execution_id)
        for observer in self._observers:
            observer.recovered(record.execution_id, outcome)

    async def _wait_for_progress(self, record: ExecutionRecord) -> None:
        """Wait until it has come on, or has had the time for it."""
        with suppress(TimeoutError, PlanwaveError):
            async with (
                asyncio.timeout(PROGRESS_TIMEOUT_S),
                aclosing(self._watch(record.execution_id, record.last_seq)) as events,
            ):
                async for event in events:
                    if event.type in _PROGRESS_OR_END:
                        return
