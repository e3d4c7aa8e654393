"""Executions that run in this process, and the feeds that tell watchers about them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from planwave.events import TERMINAL, TRANSIENT, Event
from planwave.storage.records import Store

if TYPE_CHECKING:
    from planwave.executor.run import Execution

FEED_EVENTS = 10_000


class Feed:
    """One watcher's queue.

    When it overflows it is emptied, and ``lagging`` tells the watcher to read the store from its
    cursor: stored events are never lost, streamed text is.
    """

    def __init__(self, size: int = FEED_EVENTS) -> None:
        self._events: deque[Event] = deque()
        self._size = size
        self._stirred = asyncio.Event()
        self.lagging = False
        self.closed = False

    def put(self, events: Iterable[Event]) -> None:
        """Queue events; never waits."""
        self._events.extend(events)
        if len(self._events) > self._size:
            self._events.clear()
            self.lagging = True
        self._stirred.set()

    def close(self) -> None:
        """Say that nothing more will come."""
        self.closed = True
        self._stirred.set()

    async def take(self) -> list[Event]:
        """Give what is queued, waiting for something; empty when lagging, or closed and empty."""
        while not (self._events or self.closed or self.lagging):
            self._stirred.clear()
            await self._stirred.wait()
        taken = [] if self.lagging else list(self._events)
        self._events.clear()
        return taken


class Live:
    """An execution that runs in this process.

    Attributes:
        execution: Set before it runs.
        finished: Set after its terminal event is durable and its document written.
        error: Why the run itself broke (store gone), or None.
    """

    def __init__(self, execution_id: str) -> None:
        self.execution_id = execution_id
        self.execution: Execution | None = None
        self.finished = asyncio.Event()
        self.error: Exception | None = None
        self.document_lock = asyncio.Lock()
        self._feeds: set[Feed] = set()

    def publish(self, events: list[Event]) -> None:
        """Tell every watcher."""
        for feed in self._feeds:
            feed.put(events)

    def subscribe(self) -> Feed:
        """Open a feed; what is published from now on reaches it."""
        feed = Feed()
        if self.finished.is_set():
            feed.close()
        self._feeds.add(feed)
        return feed

    def unsubscribe(self, feed: Feed) -> None:
        """Close a feed."""
        self._feeds.discard(feed)

    def finish(self) -> None:
        """Say that nothing more will happen."""
        self.finished.set()
        for feed in self._feeds:
            feed.close()


async def watch(
    store: Store, execution_id: str, live: Live | None, *, after: int = 0
) -> AsyncIterator[Event]:
    """Give stored events above ``after``, then everything as it happens, until the end.

    The feed is opened before the store is read, and what comes twice is told once.
    """
    if live is None:
        for event in await store.events(execution_id, after=after):
            yield event
        return
    feed, cursor = live.subscribe(), after
    try:
        batch = await store.events(execution_id, after=cursor)
        while True:
            for event in batch:
                if event.type not in TRANSIENT:
                    if event.seq <= cursor:
                        continue
                    cursor = event.seq
                yield event
                if event.type in TERMINAL:
                    return
            if feed.lagging:
                feed.lagging = False
                batch = await store.events(execution_id, after=cursor)
            else:
                batch = await feed.take()
                if not batch and feed.closed and not feed.lagging:
                    return
    finally:
        live.unsubscribe(feed)
