"""Ends the tasks of attempts that were settled without them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from planwave.executor.state import Attempt

GRACE_S: Final = 1.5
"""How long a finished execution waits for cancelled node tasks to clean up. A cancel holds within two
seconds, and what follows from it has to be kept in that time too."""
_abandoned: Final[set[asyncio.Task[None]]] = set()
"""Tasks that ignored cancellation; kept only so that they are not collected while they run."""


class CancelledTasks:
    """The cancelled tasks of one execution, until they have ended."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def cancel(self, attempt: Attempt) -> None:
        """Cancel the task of a flight that was settled without it."""
        if attempt.task is not None and not attempt.task.done():
            attempt.task.cancel()
            self._tasks.add(attempt.task)
            attempt.task.add_done_callback(self._tasks.discard)

    async def wait_cancelled(self, active: Iterable[Attempt]) -> None:
        """Cancel what still runs and wait for it, but no longer than the grace time."""
        for task in [attempt.task for attempt in active if attempt.task is not None]:
            task.cancel()
            self._tasks.add(task)
        if self._tasks:
            _, stubborn = await asyncio.wait(self._tasks, timeout=GRACE_S)
            for task in stubborn:
                _abandoned.add(task)
                task.add_done_callback(_abandoned.discard)
