"""Retries of store writes: executions wait while the disk is full, then continue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from planwave.errors import StoreError
from planwave.events import Event
from planwave.executor.ports import Journal
from planwave.providers.protocols import CallKey, Recorder
from planwave.storage.records import TRANSIENT_CODES

_log = logging.getLogger(__name__)

FIRST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 2.0


class StoreRetry:
    """Tries a write again for as long as the store says that it may work later.

    All writers of a store share one instance, which logs once that they begin to wait, and once
    that they go on.

    Args:
        sleep: Waits so many seconds; to be replaced where time is not real.
    """

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._is_stopped = False
        self._waiting = 0
        self._is_logged = False

    def stop(self) -> None:
        """Stop waiting: present and later writers try once more and raise the error.

        For a service that goes down: it cannot wait for room that may never come.
        """
        self._is_stopped = True

    async def write(self, attempt: Callable[[], Awaitable[None]]) -> None:
        """Write, however long that takes; give up only when cancelled, or told to.

        Raises:
            StoreError: It cannot be written at all, or not now and ``stop`` was called.
        """
        try:
            return await attempt()
        except StoreError as error:
            refused = error
        await self.retry(attempt, refused)

    async def retry(self, attempt: Callable[[], Awaitable[None]], refused: StoreError) -> None:
        """Write what was refused just now; see ``write``."""
        if not self._is_retryable(refused):
            raise refused
        self._start_waiting(refused)
        try:
            await self._retry_until_written(attempt)
            if self._is_logged:
                _log.info("the store writes again; executions go on")
                self._is_logged = False
        finally:
            self._waiting -= 1
            self._is_logged = self._is_logged and self._waiting > 0

    async def _retry_until_written(self, attempt: Callable[[], Awaitable[None]]) -> None:
        wait_s = FIRST_WAIT_S
        while True:
            await self._sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
            try:
                return await attempt()
            except StoreError as error:
                if not self._is_retryable(error):
                    raise

    def _is_retryable(self, error: StoreError) -> bool:
        return error.code in TRANSIENT_CODES and not self._is_stopped

    def _start_waiting(self, error: StoreError) -> None:
        self._waiting += 1
        if not self._is_logged:
            self._is_logged = True
            _log.warning("executions stand still until the store can write: %s", error)


class RetryingJournal:
    """A journal on which a full disk is a delay, not an error; the ``Journal`` port over another.

    Everything else that goes wrong passes through.
    """

    def __init__(self, journal: Journal, store_retry: StoreRetry | None = None) -> None:
        self._journal = journal
        self._store_retry = store_retry or StoreRetry()

    def stop(self) -> None:
        """See ``StoreRetry.stop``."""
        self._store_retry.stop()

    async def append(self, execution_id: str, epoch: int, events: Sequence[Event]) -> None:
        """Keep a batch; see ``Journal``."""
        try:  # every batch comes through here: what mostly goes well at once goes the short way
            return await self._journal.append(execution_id, epoch, events)
        except StoreError as error:
            refused = error
        again = partial(self._journal.append, execution_id, epoch, events)
        await self._store_retry.retry(again, refused)

    async def events(self, execution_id: str) -> Sequence[Event]:
        """Return all events of an execution; see ``Journal``."""
        return await self._journal.events(execution_id)


class RetryingRecorder:
    """A recorder that loses no paid reply to a full disk; the ``Recorder`` port over another."""

    def __init__(self, recorder: Recorder, store_retry: StoreRetry | None = None) -> None:
        self._recorder = recorder
        self._store_retry = store_retry or StoreRetry()

    async def recorded(self, key: CallKey) -> dict[str, Any] | None:
        """Return the recorded reply, or None."""
        return await self._recorder.recorded(key)

    async def has_calls(self, key: CallKey) -> bool:
        """Return whether any call of the attempt of a call is recorded."""
        return await self._recorder.has_calls(key)

    async def has_other(self, key: CallKey) -> bool:
        """Return whether another request is recorded under the number of a call."""
        return await self._recorder.has_other(key)

    async def record(self, key: CallKey, reply: dict[str, Any]) -> None:
        """Keep a reply; see ``Recorder``."""
        await self._store_retry.write(lambda: self._recorder.record(key, reply))
