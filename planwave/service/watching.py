"""Watching executions: their state, their events from any place on, and how they stand now."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from planwave.errors import Draining
from planwave.events import Event, ExecutionState
from planwave.service.following import Following, Lives
from planwave.service.frames import Bounds
from planwave.service.rooms import Rooms
from planwave.service.upkeep import Upkeep


class Watching(Upkeep):
    """What can be seen of executions while they run; :class:`Service` adds running them."""

    def __init__(self, rooms: Rooms) -> None:
        super().__init__(rooms)
        self._lives = Lives(rooms.store)
        self._is_closed_to_watchers = False

    def close_streams(self) -> None:
        """End all streams with ``Draining``, and open no further one."""
        self._is_closed_to_watchers = True
        for live in self._lives:
            live.dismiss(Draining())

    @asynccontextmanager
    async def follow(
        self,
        execution_id: str,
        after: int | None = None,
        bounds: Bounds = Bounds(),  # noqa: B008 - immutable
        *,
        with_snapshot: bool = False,
    ) -> AsyncGenerator[Following]:
        """Follow an execution in frames; iterate what this gives.

        Args:
            execution_id: A stored execution, whatever its status.
            after: The last ``seq`` already known; None for what happens from now on.
            bounds: How far this watcher may fall behind.
            with_snapshot: Also give the whole state at the moment from which on it is live.

        Raises:
            NotFound: There is none of that id.
            Draining: The service is going down; also while iterating.
            TooSlow: While iterating.
        """
        await self._check_watchable(execution_id)
        async with self._lives.follow(
            execution_id, after, bounds, with_snapshot=with_snapshot
        ) as following:
            yield following

    async def watch(self, execution_id: str, *, after: int = 0) -> AsyncGenerator[Event]:
        """Give every stored event above ``after`` and streamed text, as it happens, to the end."""
        async with self.follow(execution_id, after) as following:
            async for frame in following:
                for event in frame.events:
                    yield event

    async def glances(self, execution_id: str, interval_s: float) -> AsyncGenerator[bytes]:
        """Give ``{status, node_states, logs, wave}`` as JSON now, then every so often, to the end.

        ``logs`` are the last 10 sentences, ``wave`` is ``{current, total}``. The last one has the
        final status and comes at once.

        Raises:
            NotFound, Draining: As in :meth:`follow`.
        """
        await self._check_watchable(execution_id)
        async with self._lives.hold(execution_id) as live:
            live.polls += 1
            try:
                while True:
                    is_over = live.is_over
                    yield live.glance()
                    if is_over:
                        return
                    await live.pause(interval_s)
                    if live.dismissal is not None and not live.is_over:
                        raise live.dismissal.with_traceback(None)
            finally:
                live.polls -= 1

    async def delete_execution(self, execution_id: str) -> None:
        await super().delete_execution(execution_id)
        self._lives.forget(execution_id)

    async def state(self, execution_id: str) -> ExecutionState:
        """Give the state of an execution by now, with the text streamed so far where it runs here.

        Raises:
            NotFound: There is none of that id.
        """
        live = self._lives.get(execution_id)
        return live.state if live is not None else await super().state(execution_id)

    async def _check_watchable(self, execution_id: str) -> None:
        if self._is_closed_to_watchers:
            raise Draining
        if self._lives.get(execution_id) is None:
            await self.execution(execution_id)
