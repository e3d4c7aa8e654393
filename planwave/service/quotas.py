"""How many executions may wait for one access token, and how many forks one execution may have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from planwave.errors import LimitExceeded, QuotaExceeded
from planwave.principals import OPERATOR
from planwave.settings import Limits
from planwave.storage.records import ExecutionRecord

if TYPE_CHECKING:
    from planwave.storage.sql.store import Store


_RETRY_AFTER_S: Final = 60.0
"""The Retry-After of a token with too many waiting executions; how long people take is unknown."""


class Quotas:
    """The quotas of new executions.

    Args:
        store: Counts what there is.
        limits: ``waiting_executions`` and ``forks``.
        running_of: Returns the number of running executions of an account, where this process drives all.
    """

    def __init__(self, store: Store, limits: Limits, running_of: Callable[[str], int]) -> None:
        self._store, self._limits, self._running_of = store, limits, running_of
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def admit(self, record: ExecutionRecord) -> AsyncGenerator[None]:
        """Check that one more execution may be stored, which the block does; one at a time of each quota.

        Processes that share the store count together; each may admit one at the same time as the others.

        Raises:
            QuotaExceeded: As many executions of the token wait as may.
            LimitExceeded: ``forks``: there are as many of the parent as may be.
        """
        account = (record.created_by or OPERATOR).account
        async with AsyncExitStack() as held:
            if account != OPERATOR.account:
                await held.enter_async_context(self._lock(account))
                await self._check_waiting(account)
            if record.parent_id is not None:
                await held.enter_async_context(self._lock(record.parent_id))
                await self._check_forks(record.parent_id)
            yield

    def _lock(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    async def _check_waiting(self, account: str) -> None:
        most, owners = self._limits.waiting_executions, self._store.owners
        running = (
            self._running_of(account) if owners is None else await owners.count_driven(account)
        )
        waiting = await self._store.count_open(account) - running
        if waiting >= most:
            raise QuotaExceeded(
                "waiting_executions",
                f"{waiting} executions of this access token wait, as many as may ({most})",
                retry_after_s=_RETRY_AFTER_S,
                hint="have some answered, cancel some, or have the operator raise the limit "
                "waiting_executions",
            )

    async def _check_forks(self, execution_id: str) -> None:
        most, present = self._limits.forks, await self._store.count_forks(execution_id)
        if present >= most:
            hint = "delete some of its forks, fork one of them instead, or raise the limit forks"
            raise LimitExceeded("forks", most, present + 1, hint=hint)
