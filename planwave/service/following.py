"""Reading again what other processes change, where several share a database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Self

from planwave.storage.notices import Channel
from planwave.storage.sql.store import Store

_log = logging.getLogger(__name__)
RELOAD_S: Final = 20.0
"""A change whose note was lost counts after so long; 30 s are promised, a slow read included."""


class Following:
    """Calls ``reload`` at a note of another process, and at intervals; an async context manager.

    Where no other process writes, it does nothing.

    Args:
        store: The store whose changes are followed.
        channel: The channel on which other processes say that they have changed it.
        reload: Reads what is stored.
    """

    def __init__(
        self, store: Store, channel: Channel, reload: Callable[[], Awaitable[object]]
    ) -> None:
        self._is_shared, self._channel, self._reload = store.is_shared, channel, reload
        self._changed = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        store.notices.subscribe(channel, lambda _: self._changed.set())
        store.notices.on_reconnect.append(self._changed.set)

    async def __aenter__(self) -> Self:
        if self._is_shared:
            # Not a TaskGroup: an error of the block must reach the caller without an ExceptionGroup.
            self._following = asyncio.get_running_loop().create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def _follow(self) -> None:
        while True:
            try:
                async with asyncio.timeout(RELOAD_S):
                    await self._changed.wait()
            except TimeoutError:
                pass
            self._changed.clear()
            try:
                await self._reload()
            except Exception as error:  # noqa: BLE001 - a task boundary: what was read before holds
                _log.warning(
                    "changes of %s by other processes are not read: %s", self._channel, error
                )
                await asyncio.sleep(1)
