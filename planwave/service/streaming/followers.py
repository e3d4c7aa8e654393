"""The clients of executions that are cancelled when the last one leaves, in all processes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol

from planwave.errors import Conflict, NotFound, PlanwaveError

if TYPE_CHECKING:
    from planwave.service.executions.execution_service import ExecutionService
    from planwave.storage.sql.store import Store

_log = logging.getLogger(__name__)
SWEEP_S: Final = 3.0
"""How often processes that are gone are looked for."""


class SharedFollowers(Protocol):
    """Port: which processes have clients that follow an execution; the database keeps it."""

    async def add(self, execution_id: str) -> None:
        """Say that this process has a client."""
        ...

    async def remove(self, execution_id: str) -> bool:
        """Say that this process has none any more; return whether no process has."""
        ...

    async def left(self) -> list[str]:
        """Return the executions that only processes follow that are gone."""
        ...


class Followers:
    """Counts the clients of executions, with those of other processes where a carrier hands executions to several.

    Args:
        store: Says whether there are other processes.
        executions: Cancels executions.
    """

    def __init__(self, store: Store, executions: ExecutionService) -> None:
        self._executions = executions
        self._shared: SharedFollowers | None = (
            None if store.owners is None else store.owners.followers
        )
        self._clients: Counter[str] = Counter()

    async def join(self, execution_id: str) -> None:
        """Count a client, which is to ``leave``."""
        self._clients[execution_id] += 1
        if self._shared is not None:
            try:
                await self._shared.add(execution_id)
            except BaseException:
                self._clients[execution_id] -= 1
                raise

    async def leave(self, execution_id: str) -> bool:
        """Count a client no more; return whether it was the last one of all processes."""
        self._clients[execution_id] -= 1
        if self.has_clients(execution_id):
            return False
        del self._clients[execution_id]
        if self._shared is None:
            return True
        is_last = await self._shared.remove(execution_id)
        if self.has_clients(
            execution_id
        ):  # one came meanwhile, whose row may just have been deleted
            await self._shared.add(execution_id)
            return False
        return is_last

    def has_clients(self, execution_id: str) -> bool:
        """Return whether this process has a client of an execution."""
        return self._clients[execution_id] > 0

    @asynccontextmanager
    async def following(self, execution_id: str, *, counts: bool = True) -> AsyncGenerator[None]:
        """Count a client within the block, so that the execution is cancelled where this process ends in it.

        Args:
            execution_id: The execution.
            counts: Whether the execution is cancelled at all when its clients leave.
        """
        if self._shared is None or not counts:
            yield
            return
        await self.join(execution_id)
        try:
            yield
        finally:
            self._executions.tasks.create_task(self._leave_safely(execution_id))

    async def _leave_safely(self, execution_id: str) -> None:
        try:
            await self.leave(execution_id)
        except PlanwaveError as error:
            _log.warning("execution %s counts as followed: %s", execution_id, error)

    # -- processes that are gone -------------------------------------------------------------------

    @asynccontextmanager
    async def sweeping(self) -> AsyncGenerator[None]:
        """Cancel within the block executions whose clients were all at processes that are gone."""
        async with asyncio.TaskGroup() as tasks:
            if self._shared is None:
                yield
                return
            sweep = tasks.create_task(self._sweep(self._shared))
            yield
            sweep.cancel()

    async def _sweep(self, shared: SharedFollowers) -> None:
        # After the database was away all processes seem to be gone: each has some seconds to say that it is not.
        seen: set[str] = set()
        while True:
            try:
                left = set(await shared.left())
                for execution_id in left & seen:
                    await self._cancel(shared, execution_id)
                seen = left
            except PlanwaveError as error:
                _log.warning("clients of executions cannot be counted now: %s", error)
                seen = set()
            await asyncio.sleep(SWEEP_S)

    async def _cancel(self, shared: SharedFollowers, execution_id: str) -> None:
        try:
            with suppress(Conflict, NotFound):  # it has ended
                await self._executions.cancel(execution_id, "its last client left")
            await shared.remove(execution_id)
        except PlanwaveError as error:
            _log.warning("execution %s goes on without a client: %s", execution_id, error)
