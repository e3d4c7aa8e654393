"""Task groups of nodes: tasks of which the driver knows whether they only wait for nested runs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import TypeVar

from planwave.executor.messages import NodeActivityChanged
from planwave.executor.node_api.mailbox import Mailbox
from planwave.executor.state import Attempt

T = TypeVar("T")


class NodeTaskGroup:
    """An ``asyncio.TaskGroup`` whose tasks are counted; see :attr:`Attempt.active_tasks`."""

    def __init__(self, attempt: Attempt, mailbox: Mailbox) -> None:
        self._attempt, self._mailbox = attempt, mailbox
        self._group = asyncio.TaskGroup()
        self._open = 0
        self._is_awaited = False

    async def __aenter__(self) -> NodeTaskGroup:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open and self._attempt.counts(asyncio.current_task()):
            self._is_awaited = True  # the last of its tasks makes the waiting one active again
            self._count(-1)
        await self._group.__aexit__(error_type, error, traceback)

    def create_task(
        self, coro: Coroutine[object, object, T], *, name: str | None = None
    ) -> asyncio.Task[T]:
        """Start a task; as ``asyncio.TaskGroup.create_task``."""
        task = self._group.create_task(coro, name=name)
        counted: set[object] = self._attempt.group_tasks or set()
        counted.add(task)
        self._attempt.group_tasks = counted
        self._open += 1
        self._count(1)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[T]) -> None:
        self._open -= 1
        if self._attempt.group_tasks is not None:
            self._attempt.group_tasks.discard(task)
        self._count(0 if self._is_awaited and not self._open else -1)

    def _count(self, change: int) -> None:
        self._attempt.active_tasks += change
        if change < 0 and self._attempt.has_waits:
            self._mailbox.post(NodeActivityChanged(self._attempt))
