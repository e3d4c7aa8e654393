"""Maintenance: deletion, retention and idempotency keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

from planwave.service.dependencies import ServiceDependencies
from planwave.service.links import KEPT
from planwave.service.queries.history import utc_time
from planwave.service.streaming.subscriptions import LiveExecutions
from planwave.storage.records import IdempotencyRecord

_log = logging.getLogger(__name__)
_DAY_S: Final = 86_400.0
_PAGE: Final = 20
"""Executions deleted in one transaction."""


class Maintenance:
    """Deletion of old executions, and idempotency keys."""

    def __init__(self, dependencies: ServiceDependencies, live_executions: LiveExecutions) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._live_executions = live_executions
        self.store_response = self._store.store_response
        self.release_idempotency_key = self._store.release_idempotency_key

    async def delete_execution(self, execution_id: str) -> None:
        """Delete an execution that has ended: events, recorded calls, results, JSON document.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``execution-running``: it has not ended.
        """
        await self._store.delete_execution(execution_id)
        self._live_executions.discard(execution_id)

    async def prune(self, before: str) -> int:
        """Delete executions that ended before a time (ISO 8601), and expired keys, links, deliveries and notifications.

        Returns:
            How many executions were deleted.

        Raises:
            InputError: ``invalid-time``.
        """
        moment, pruned = utc_time(before), 0
        while ids := await self._store.prune(moment, _PAGE):
            pruned += len(ids)
        if (audit := self._dependencies.audit) is not None:
            await asyncio.to_thread(audit.prune, datetime.fromisoformat(moment))
        await self._store.delete_expired_keys(self._expiry_time())
        await self._store.triggers.delete_expired(self._expiry_time())
        await self._store.notifications.delete_expired(
            delivered=self._expiry_time(),
            dead=self._before(timedelta(days=self._dependencies.limits.dead_letter_days)),
        )
        await self._store.links.delete_expired(self._before(KEPT))
        return pruned

    async def claim_idempotency_key(self, key: str, digest: str) -> IdempotencyRecord:
        """Claim an idempotency key for a request, or return its stored record.

        With ``is_new`` the caller does the work, then calls ``store_response`` or, where it failed,
        ``release_idempotency_key``. Otherwise another ``digest`` means another
        request; without a ``status`` the work is still under way, in another process if ``is_held_elsewhere``.

        Args:
            key: The client's key, combined with the principal and the route.
            digest: Of the request's content.
        """
        return await self._store.claim_idempotency_key(
            key, digest, self._dependencies.timestamp(), expired=self._expiry_time()
        )

    def _expiry_time(self) -> str:
        return self._before(timedelta(hours=self._dependencies.limits.idempotency_hours))

    def _before(self, age: timedelta) -> str:
        return (self._dependencies.now() - age).isoformat(timespec="microseconds")


@asynccontextmanager
async def retention_task(
    prune: Callable[[str], Awaitable[int]],
    retention_days: float | None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncGenerator[None]:
    """Run ``prune`` at once and then daily, in the background of the block.

    Args:
        prune: See ``Maintenance.prune``.
        retention_days: The age from which on ended executions are deleted; None deletes only
            expired idempotency keys.
        now: UTC time.
    """
    # Not a TaskGroup: an error of the block must reach the caller without an ExceptionGroup.
    daily = asyncio.get_running_loop().create_task(_prune_daily(prune, retention_days, now))
    try:
        yield
    finally:
        daily.cancel()
        await asyncio.wait([daily])


async def _prune_daily(
    prune: Callable[[str], Awaitable[int]],
    retention_days: float | None,
    now: Callable[[], datetime],
) -> None:
    while True:
        try:
            count = await prune(_retention_cutoff(retention_days, now()).isoformat())
        except Exception as error:  # noqa: BLE001 - a task boundary: the service continues
            _log.warning("retention: nothing was removed: %s", error)
        else:
            if count:
                what = "execution" if count == 1 else "executions"
                _log.info("retention: %d %s removed", count, what)
        await asyncio.sleep(_DAY_S)


def _retention_cutoff(retention_days: float | None, now: datetime) -> datetime:
    """Return the time before which ended executions are deleted."""
    if retention_days is None:
        return datetime.min.replace(tzinfo=UTC)
    return now - timedelta(days=retention_days)
