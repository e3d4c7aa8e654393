"""What one process at a time does of those that share a database: schedules, notifications, deletion."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from planwave.storage.sql.store import Store

_log = logging.getLogger(__name__)
_AFTER_FAILURE_S: Final = 5.0


class Leader:
    """Opens work in this process while it leads; a process with a directory of its own always leads.

    Attributes:
        on_displaced: Called when another process leads although this one drives executions, which no other
            process may do with its carrier.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._leadership = store.leadership
        self.on_displaced: list[Callable[[], object]] = []

    def open(self) -> None:
        """Begin to try to lead."""
        self._leadership.on_displaced.append(self._displaced)
        self._leadership.open()

    @property
    def leads(self) -> bool:
        """Whether this process leads now."""
        return self._leadership.leads

    @asynccontextmanager
    async def lead(
        self, open_work: Callable[[], AbstractAsyncContextManager[object]]
    ) -> AsyncGenerator[None]:
        """Keep work open within the block while this process leads.

        It is left when the lead is lost, before another process can begin, and opened again when this process leads
        again.

        Args:
            open_work: Returns the work, a new one each time.
        """
        if not self._store.is_shared:
            async with open_work():
                yield
            return
        settled = asyncio.Event()
        # Not a TaskGroup: an error of the block must reach the caller without an ExceptionGroup.
        working = asyncio.get_running_loop().create_task(self._work(open_work, settled))
        try:
            await settled.wait()
            yield
        finally:
            working.cancel()
            await asyncio.wait([working])

    async def _work(
        self, open_work: Callable[[], AbstractAsyncContextManager[object]], settled: asyncio.Event
    ) -> None:
        while True:
            if not self._leadership.leads:
                settled.set()
            await self._leadership.gained()
            try:
                async with open_work():
                    settled.set()
                    await self._leadership.lost()
            except Exception as error:  # noqa: BLE001 - a task boundary: it is opened again
                _log.warning("what the leader does was interrupted: %s", error)
                settled.set()
                await asyncio.sleep(_AFTER_FAILURE_S)

    def _displaced(self) -> None:
        _log.error(
            "another process drives the executions of this database: this one stops. Executions go on there; "
            'several processes drive with carrier = "temporal"'
        )
        for call in self.on_displaced:
            call()
