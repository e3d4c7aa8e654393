"""Reading again what other processes change, where several share a database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final, Self

from planwave.errors import StoreError
from planwave.storage.notices import Channel
from planwave.storage.records import STORE_UNREACHABLE
from planwave.storage.sql.store import Store

_log = logging.getLogger(__name__)
RELOAD_S: Final = 10.0
"""A change whose note was lost is read after so long."""
CONFIRMED_FOR: Final = timedelta(seconds=30)
"""How long what was read counts: the next read ends before, also one that takes as long as it may."""
_RETRY_S: Final = 1.0


class Following:
    """Calls ``reload`` first, at a note of another process, and at intervals; an async context manager.

    Where no other process writes, it calls it once.

    Args:
        store: The store whose changes are followed.
        channel: The channel on which other processes say that they have changed it.
        reload: Reads what is stored.
        now: UTC time.
    """

    def __init__(
        self,
        store: Store,
        channel: Channel,
        reload: Callable[[], Awaitable[object]],
        now: Callable[[], datetime],
    ) -> None:
        self._is_shared, self._channel, self._reload = store.is_shared, channel, reload
        self._now = now
        self._read_at: datetime | None = None
        """When the last read began that gave what was stored."""
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        store.notices.subscribe(channel, lambda _: self._changed.set())
        store.notices.on_reconnect.append(self._changed.set)

    def require_confirmed(self) -> None:
        """Raise if what was read may be older than other processes may expect it to be.

        Raises:
            StoreError: ``store-unreachable``: the last read began more than ``CONFIRMED_FOR`` ago.
        """
        age = None if self._read_at is None else self._now() - self._read_at
        if not self._is_shared or (age is not None and timedelta() <= age <= CONFIRMED_FOR):
            return
        self._changed.set()  # a clock that was set looks the same: the next read shows which it is
        raise StoreError(
            f"{self._channel} are not accepted: which of them other processes have ended has not been read for "
            f"{CONFIRMED_FOR.total_seconds():.0f} s",
            code=STORE_UNREACHABLE,
            hint="try again: they are accepted once the database server answers",
        )

    async def __aenter__(self) -> Self:
        await self._read()
        if self._is_shared:
            # Not a TaskGroup: an error of the block must reach the caller without an ExceptionGroup.
            self._following = asyncio.get_running_loop().create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def _read(self) -> None:
        began = self._now()
        await self._reload()
        self._read_at = began

    async def _follow(self) -> None:
        is_behind = False
        while True:
            try:
                async with asyncio.timeout(RELOAD_S):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            try:
                await self._read()
                is_behind = False
            except Exception as error:  # noqa: BLE001 - a task boundary: what was read holds for a while
                if not is_behind:
                    _log.warning(
                        "changes of %s by other processes are not read: %s", self._channel, error
                    )
                is_behind = True
                self._changed.set()
                await asyncio.sleep(_RETRY_S)
