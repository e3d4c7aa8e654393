"""What other processes have stored is published here: each event once and in order, also without any note."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from planwave.errors import StoreError
from planwave.events import Event
from planwave.service.streaming.event_tail import EventTail
from planwave.service.streaming.live_execution import LiveExecution
from planwave.service.streaming.subscriptions import LiveExecutions
from planwave.storage.notices import Channel, events_note
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.virtual_loop import virtual_time

AT = "2026-01-01T00:00:00.000000Z"


class Notes:
    """Gives notes of another process to who subscribed."""

    def __init__(self) -> None:
        self.on_reconnect: list[Callable[[], object]] = []
        self._receivers: list[Callable[[str], object]] = []

    def subscribe(self, channel: Channel, receive: Callable[[str], object]) -> None:
        assert channel == "events"
        self._receivers.append(receive)

    def give(self, of: str, last_seq: int) -> None:
        for each in self._receivers:
            each(events_note(of, last_seq))


class Follower:
    """Executions of other processes, and what was published of them here."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.notes = Notes()
        self.store.notices = self.notes  # pyright: ignore[reportAttributeAccessIssue] - half of it is used
        self.live_executions = LiveExecutions(self.store)
        self.published: dict[str, list[int]] = {}
        self.batches = 0
        self.tail = EventTail(self.store, self.live_executions, self._publish)

    def _publish(self, live: LiveExecution, events: Sequence[Event]) -> None:
        self.batches += 1
        self.published.setdefault(live.execution_id, []).extend(each.seq for each in events)
        live.publish(events)

    async def add(self, of: str) -> None:
        record = ExecutionRecord(of, None, "t", "g", "starting", AT, last_seq=1)
        await self.store.create_execution(
            record, [Event(of, 1, AT, "execution.created", None, None, {})]
        )

    async def store_events(self, of: str, first: int, last: int) -> None:
        events = [
            Event(of, seq, AT, "execution.resumed", None, None, {})
            for seq in range(first, last + 1)
        ]
        await self.store.append(of, 1, events)

    @asynccontextmanager
    async def following(self, *ids: str) -> AsyncGenerator[None]:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self.tail.run())
            async with AsyncExitStack() as held:
                for each in ids:
                    await self.add(each)
                    await held.enter_async_context(self.live_executions.acquire(each))
                yield
            running.cancel()


@virtual_time
async def test_a_note_has_events_read_at_once() -> None:
    follower = Follower()
    async with follower.following("x"):
        await asyncio.sleep(0.1)
        await follower.store_events("x", 2, 3)
        follower.notes.give("x", 3)
        follower.notes.give("unknown", 3)
        await asyncio.sleep(0.01)
        assert follower.published == {"x": [2, 3]}
        follower.notes.give("x", 3)
        follower.notes.give("x", 2)
        await asyncio.sleep(0.01)
    assert follower.batches == 1, "what is known is not read again"


@virtual_time
async def test_a_lost_note_costs_a_second_whatever_is_noted_of_others() -> None:
    follower = Follower()
    async with follower.following("busy", "quiet"):
        await follower.store_events("quiet", 2, 2)
        for seq in range(2, 16):
            await follower.store_events("busy", seq, seq)
            follower.notes.give("busy", seq)
            await asyncio.sleep(0.1)
        assert follower.published["quiet"] == [2]
    assert follower.published["busy"] == list(range(2, 16))


@virtual_time
async def test_what_is_read_by_several_at_once_is_published_once() -> None:
    follower = Follower()
    async with follower.following("x"):
        live = follower.live_executions.get("x")
        assert live is not None
        await follower.store_events("x", 2, 5)
        follower.notes.give("x", 5)
        async with asyncio.TaskGroup() as tasks:
            for _ in range(3):
                tasks.create_task(follower.tail.catch_up(live))
        await asyncio.sleep(0.01)
        assert live.last_seq == 5
        assert [each.seq for each in live._unfolded] == [2, 3, 4, 5]


@virtual_time
async def test_after_a_lost_connection_all_is_read() -> None:
    follower = Follower()
    async with follower.following("x"):
        await follower.store_events("x", 2, 2)
        (reconnected,) = follower.notes.on_reconnect
        reconnected()
        await asyncio.sleep(0.01)
        assert follower.published == {"x": [2]}


@virtual_time
async def test_events_that_cannot_be_read_now_are_read_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follower = Follower()
    read, failures = follower.store.events_after, [StoreError("no answer"), StoreError("no answer")]

    async def events_after(afters: Mapping[str, int]) -> Any:
        if failures:
            raise failures.pop()
        return await read(afters)

    monkeypatch.setattr(follower.store, "events_after", events_after)
    async with follower.following("x"):
        await follower.store_events("x", 2, 2)
        follower.notes.give("x", 2)
        await asyncio.sleep(1.5)
        assert not failures
        await asyncio.sleep(1)
        assert follower.published == {"x": [2]}


@virtual_time
async def test_events_that_make_no_sense_end_the_streams_of_that_execution_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follower = Follower()
    publish = LiveExecution.publish

    def break_x(live: LiveExecution, events: Sequence[Event]) -> None:
        if live.execution_id == "x" and events[0].seq > 1:
            raise ValueError("no sense")
        publish(live, events)

    monkeypatch.setattr(LiveExecution, "publish", break_x)
    async with follower.following("x", "y"):
        for each in ("x", "y"):
            await follower.store_events(each, 2, 2)
            follower.notes.give(each, 2)
        await asyncio.sleep(0.01)
        broken = follower.live_executions.get("x")
        assert broken is not None
        assert isinstance(broken.disconnect_reason, ValueError)
        assert follower.published["y"] == [2]
