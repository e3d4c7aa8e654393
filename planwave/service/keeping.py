"""Keeps the JSON documents beside the store up to date."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from planwave.errors import NotFound
from planwave.storage.records import Store

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 8
"""Documents made at the same time: threads at work take turns with what executions have to do, and
the disk wants to be asked for several at once."""


class Documents:
    """Writes ``{execution_id}.json`` at every pause and end, from what is stored.

    Args:
        store: Where the events are.
        directory: Where the documents go; None writes none.
    """

    def __init__(self, store: Store, directory: Path | None) -> None:
        self._store = store
        self._directory = directory
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._missed: dict[str, None] = {}

    async def catch_up(self) -> None:
        """Write what an earlier process did not get to."""
        for execution_id in await self._store.lagging_documents():
            await self.keep(execution_id)

    async def keep(self, execution_id: str) -> None:
        """Write the document of a paused or ended execution.

        What fails is repeated as soon as another one can be written, or by the next start.
        """
        if await self._is_kept(execution_id):
            for missed in list(self._missed):
                if not await self._is_kept(missed):
                    break

    async def kept(self, execution_id: str) -> None:
        """Wait until the document of an execution is written, if it is about to be."""
        async with self._lock(execution_id):
            pass

    def _lock(self, execution_id: str) -> asyncio.Lock:
        """Give what is held to write a document: that of a pause must not land after that of the end."""
        return self._locks.setdefault(execution_id, asyncio.Lock())

    async def _is_kept(self, execution_id: str) -> bool:
        try:
            async with self._lock(execution_id), self._turns:
                await self._write(execution_id)
        except Exception as error:  # noqa: BLE001 - a task boundary: the run goes on without it
            _log.warning("document of %s not written: %s", execution_id, error)
            self._missed[execution_id] = None
            return False
        self._missed.pop(execution_id, None)
        return True

    async def _write(self, execution_id: str) -> None:
        from planwave.storage.document import project, write_document

        if self._directory is None:
            return
        record = await self._store.execution(execution_id)
        if record is None or record.status in ("starting", "executing"):
            return
        if record.document_seq == record.last_seq:
            return  # who was asked to write it too was first
        events = await self._store.events(execution_id)
        if not events:
            return
        document = await asyncio.to_thread(project, events, record)
        path = await write_document(self._directory, execution_id, document)
        try:
            await self._store.set_document_seq(execution_id, events[-1].seq)
        except NotFound:  # deleted meanwhile
            path.unlink(missing_ok=True)
