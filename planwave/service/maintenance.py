"""Keeping house: removing what is no longer wanted, and requests that must not be done twice."""

from __future__ import annotations

from datetime import timedelta

from planwave.service.dependencies import ServiceDependencies
from planwave.service.queries.history import utc_time
from planwave.service.streaming.subscriptions import LiveExecutions
from planwave.storage.records import IdempotencyRecord

_PAGE = 20
"""Executions taken out of sight in one transaction."""


class Maintenance:
    """Deletion of old executions, idempotency keys, and the address in the storage lock."""

    def __init__(self, dependencies: ServiceDependencies, live_executions: LiveExecutions) -> None:
        self._dependencies = dependencies
        self._store = dependencies.store
        self._live_executions = live_executions

    def publish_address(self, url: str, token: str | None) -> None:
        """Tell other processes, through the directory's lock, how this service is reached."""
        self._store.publish_address(url, token)

    async def delete_execution(self, execution_id: str) -> None:
        """Delete an execution that has ended: events, recorded calls, results, JSON document.

        Raises:
            NotFound: There is none of that id.
            Conflict: ``execution-running``: it has not ended.
        """
        await self._store.delete_execution(execution_id)
        self._live_executions.discard(execution_id)

    async def prune(self, before: str) -> int:
        """Delete executions that ended before a time (ISO 8601), and idempotency keys past theirs.

        Returns:
            How many executions were deleted.

        Raises:
            InputError: ``invalid-time``.
        """
        moment, pruned = utc_time(before), 0
        while ids := await self._store.prune(moment, _PAGE):
            pruned += len(ids)
        await self._store.delete_expired_keys(self._expiry_time())
        return pruned

    async def claim_idempotency_key(self, key: str, digest: str) -> IdempotencyRecord:
        """Take an idempotency key for a request, or give what is kept under it.

        With ``is_new`` the caller does the work, then calls :meth:`store_idempotency_key` or, where it failed,
        :meth:`forget`. Otherwise another ``digest`` means another request; without a ``status``
        the work is still under way.

        Args:
            key: What the client sent, with all that tells its requests apart (who, which route).
            digest: Of the request's content.
        """
        return await self._store.claim_idempotency_key(
            key, digest, self._dependencies.timestamp(), expired=self._expiry_time()
        )

    async def store_idempotency_key(self, key: str, status: int, body: str) -> None:
        """Keep the answer to the request that took an idempotency key."""
        await self._store.store_response(key, status, body)

    async def release_idempotency_key(self, key: str) -> None:
        """Give back an idempotency key whose request came to nothing."""
        await self._store.release_idempotency_key(key)

    def _expiry_time(self) -> str:
        kept = timedelta(hours=self._dependencies.limits.idempotency_hours)
        return (self._dependencies.now() - kept).isoformat(timespec="microseconds")
