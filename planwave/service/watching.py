"""Watching executions: their state, their events from any place on, and how they stand now."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from planwave.errors import ShuttingDown
from planwave.events import Event, ExecutionState
from planwave.service.following import ExecutionSubscription, LiveExecutions
from planwave.service.frames import BacklogLimits
from planwave.service.rooms import ServiceDependencies
from planwave.service.upkeep import Maintenance


class StreamingService(Maintenance):
    """What can be seen of executions while they run; :class:`Service` adds running them."""

    def __init__(self, dependencies: ServiceDependencies) -> None:
        super().__init__(dependencies)
        self._live_executions = LiveExecutions(dependencies.store)
        self._streams_closed = False

    def close_streams(self) -> None:
        """End all streams with ``ShuttingDown``, and open no further one."""
        self._streams_closed = True
        for live in self._live_executions:
            live.disconnect_all(ShuttingDown())

    @asynccontextmanager
    async def subscribe(
        self,
        execution_id: str,
        after: int | None = None,
        limits: BacklogLimits = BacklogLimits(),  # noqa: B008 - immutable
        *,
        with_snapshot: bool = False,
    ) -> AsyncGenerator[ExecutionSubscription]:
        """Follow an execution in frames; iterate what this gives.

        Args:
            execution_id: A stored execution, whatever its status.
            after: The last ``seq`` already known; None for what happens from now on.
            bounds: How far this watcher may fall behind.
            with_snapshot: Also give the whole state at the moment from which on it is live.

        Raises:
            NotFound: There is none of that id.
            ShuttingDown: The service is going down; also while iterating.
            SlowConsumer: While iterating.
        """
        await self._check_watchable(execution_id)
        async with self._live_executions.subscribe(
            execution_id, after, limits, with_snapshot=with_snapshot
        ) as following:
            yield following

    async def watch(self, execution_id: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """Give every stored event above ``after`` and streamed text, as it happens, to the end."""
        async with self.subscribe(execution_id, after) as following:
            async for frame in following:
                for event in frame.events:
                    yield event

    async def status_updates(self, execution_id: str, interval_s: float) -> AsyncGenerator[bytes]:
        """Give ``{status, node_states, logs, wave}`` as JSON now, then every so often, to the end.

        ``logs`` are the last 10 sentences, ``wave`` is ``{current, total}``. The last one has the
        final status and comes at once.

        Raises:
            NotFound, ShuttingDown: As in :meth:`follow`.
        """
        await self._check_watchable(execution_id)
        async with self._live_executions.acquire(execution_id) as live:
            live.polls += 1
            try:
                while True:
                    is_over = live.is_over
                    yield live.status_summary()
                    if is_over:
                        return
                    await live.wait_for_end(interval_s)
                    if live.disconnect_reason is not None and not live.is_over:
                        raise live.disconnect_reason.with_traceback(None)
            finally:
                live.polls -= 1

    async def delete_execution(self, execution_id: str) -> None:
        await super().delete_execution(execution_id)
        self._live_executions.discard(execution_id)

    async def state(self, execution_id: str) -> ExecutionState:
        """Give the state of an execution by now, with the text streamed so far where it runs here.

        Raises:
            NotFound: There is none of that id.
        """
        live = self._live_executions.get(execution_id)
        return live.state if live is not None else await super().state(execution_id)

    async def _check_watchable(self, execution_id: str) -> None:
        if self._streams_closed:
            raise ShuttingDown
        if self._live_executions.get(execution_id) is None:
            await self.execution(execution_id)
