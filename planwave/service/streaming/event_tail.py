"""Events of executions that other processes drive, read after they are stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from planwave.errors import PlanwaveError, StoreError
from planwave.storage.notices import read_events_note

if TYPE_CHECKING:
    from planwave.events import Event
    from planwave.service.streaming.live_execution import LiveExecution
    from planwave.service.streaming.subscriptions import LiveExecutions
    from planwave.storage.sql.store import Store

_log = logging.getLogger(__name__)

POLL_S: Final = 1.0
"""How often what is watched is read although no note came: a note may be lost."""
_AT_ONCE: Final = 50
"""Executions read by one query."""


class EventTail:
    """Keeps the projections of executions up to date that this process watches and does not drive.

    Args:
        store: Where the events are.
        live_executions: Those of this process.
        publish: Called with an execution and its further events, each once and in order.
    """

    def __init__(
        self,
        store: Store,
        live_executions: LiveExecutions,
        publish: Callable[[LiveExecution, Sequence[Event]], None],
    ) -> None:
        self._store, self._live_executions, self._publish = store, live_executions, publish
        self._behind: dict[str, None] = {}
        self._noted = asyncio.Event()
        store.notices.subscribe("events", self._receive)
        store.notices.on_reconnect.append(self._mark_all)

    async def catch_up(self, live: LiveExecution) -> None:
        """Read the events that are stored by now and not known here.

        Raises:
            StoreError: The store cannot be read now.
        """
        self._publish_fresh(live, await self._store.events(live.execution_id, after=live.last_seq))

    def _publish_fresh(self, live: LiveExecution, stored: Sequence[Event]) -> None:
        fresh = [event for event in stored if event.seq > live.last_seq]
        if fresh:
            self._publish(live, fresh)

    async def run(self) -> None:
        """Read what notes of other processes name, and all that is watched at intervals, until cancelled."""
        loop = asyncio.get_running_loop()
        poll_at = loop.time() + POLL_S
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(poll_at):
                    await self._noted.wait()
            if loop.time() >= poll_at:  # notes on other executions put that off no longer
                poll_at = loop.time() + POLL_S
                self._mark_all()
            self._noted.clear()
            await self._read_behind()

    def _receive(self, note: str) -> None:
        execution_id, last = read_events_note(note)
        live = self._live_executions.get(execution_id)
        if live is not None and live.last_seq < last:
            self._mark(live)

    def _mark_all(self) -> None:
        for live in self._live_executions:
            if not live.is_over:
                self._mark(live)

    def _mark(self, live: LiveExecution) -> None:
        if live.execution is None:  # else it is driven here, which publishes its events
            self._behind[live.execution_id] = None
            self._noted.set()

    async def _read_behind(self) -> None:
        while self._behind:
            ids = list(self._behind)[:_AT_ONCE]
            for each in ids:
                del self._behind[each]
            found = (self._live_executions.get(each) for each in ids)
            lives = {live.execution_id: live for live in found if live is not None}
            if not lives:
                continue
            try:
                stored = await self._store.events_after(
                    {of: live.last_seq for of, live in lives.items()}
                )
                for of, events in stored.items():
                    self._publish_fresh(lives[of], events)
            except StoreError as error:  # the next look at all finds them
                _log.debug("events cannot be read now: %s", error)
            except Exception as error:  # noqa: BLE001 - a task boundary, as in ``_read``
                _log.debug("events are read of one execution after the other: %s", error)
                for live in lives.values():
                    await self._read(live)

    async def _read(self, live: LiveExecution) -> None:
        try:
            await self.catch_up(live)
        except PlanwaveError as error:
            _log.debug("events of execution %s cannot be read now: %s", live.execution_id, error)
        except Exception as error:  # noqa: BLE001 - a task boundary: the others are read
            _log.warning("events of execution %s cannot be followed: %s", live.execution_id, error)
            live.disconnect_all(error)
