"""Streamed text between two processes: only what is watched, whole from the beginning, each character once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from planwave.events import Event
from planwave.service.streaming import delta_relay
from planwave.service.streaming.delta_relay import DeltaRelay
from planwave.service.streaming.subscriber_queue import BacklogLimits
from planwave.service.streaming.subscriptions import LiveExecutions
from planwave.storage.notices import MOST_BYTES, NoNotices
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.polling import until

AT = "2026-01-01T00:00:00.000000Z"
LIMITS = BacklogLimits(1_000, 1_000_000)


class Wire(NoNotices):
    """Notes between two relays of one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.other: Wire | None = None
        self.receivers: dict[str, Callable[[str], object]] = {}
        self.sent: list[tuple[str, str]] = []

    def publish(self, channel: str, text: str) -> None:
        self.sent.append((channel, text))
        if self.other is not None:
            asyncio.get_running_loop().call_soon(self.other.receivers[channel], text)

    def subscribe(self, channel: str, receive: Callable[[str], object]) -> None:
        self.receivers[channel] = receive


class Replica:
    """What one process has of an execution."""

    def __init__(self) -> None:
        self.notices = Wire()
        self.lives = LiveExecutions(MemoryStore())
        self.relay = DeltaRelay(self.notices, self.lives)
        self.live = self.lives.create(Event("x", 1, AT, "execution.created", None, None, {}))
        self.live.publish([Event("x", 2, AT, "node.started", "a", 1, {})])

    def drives(self) -> None:
        session: Any = SimpleNamespace(execution=object())
        self.live.mark_queued(session)

    def stream(self, text: str, offset: int, *, kind: str = "text") -> None:
        data = {"kind": kind, "text": text, "offset": offset}
        event = Event("x", 0, AT, "node.delta", "a", 1, data)
        self.live.publish([event])
        self.relay.add("x", [event])

    def write(self, text: str, offset: int) -> None:
        data = {"kind": "plan", "text": text, "offset": offset}
        event = Event("x", 0, AT, "node.delta", None, 1, data)
        self.live.publish([event])
        self.relay.add("x", [event])

    def text(self) -> str:
        return self.live.state.nodes["a"].text


@pytest.fixture
def two() -> tuple[Replica, Replica]:
    worker, watcher = Replica(), Replica()
    worker.notices.other, watcher.notices.other = watcher.notices, worker.notices
    worker.drives()
    return worker, watcher


async def test_nothing_is_sent_of_what_nobody_watches(two: tuple[Replica, Replica]) -> None:
    worker, _ = two
    worker.stream("unseen", 0)
    await asyncio.sleep(delta_relay.BATCH_S * 2)
    assert worker.notices.sent == []


async def test_who_comes_later_gets_the_text_from_its_beginning(
    two: tuple[Replica, Replica],
) -> None:
    worker, watcher = two
    worker.stream("one ", 0)
    async with watcher.lives.subscribe("x", 2, LIMITS):
        await until(lambda: watcher.text() == "one ")
        worker.stream("two", 4)
        await until(lambda: watcher.text() == "one two")
    await until(lambda: watcher.notices.sent[-1][1].startswith("- "))
    await asyncio.sleep(0)  # it arrives in the next turn of the loop
    worker.stream(" three", 7)
    await asyncio.sleep(delta_relay.BATCH_S * 2)
    assert watcher.text() == "one two", "nobody watches any more"


async def test_a_change_of_the_plan_is_sent_as_it_is_written(two: tuple[Replica, Replica]) -> None:
    worker, watcher = two
    asked = Event(
        "x", 3, AT, "plan.requested", None, None, {"change": 1, "by": "failure", "path": "a"}
    )
    for each in two:
        each.live.publish([asked])
    worker.write("one ", 0)
    async with watcher.lives.subscribe("x", 3, LIMITS):
        await until(lambda: str(watcher.live.state.changes.written) == "one ")
        worker.write("two", 4)
        await until(lambda: str(watcher.live.state.changes.written) == "one two")
    watcher.live.publish(
        [Event("x", 4, AT, "plan.refused", None, None, {"change": 1, "error": {}})]
    )
    assert str(watcher.live.state.changes.written) == ""


async def test_text_of_a_window_is_one_note_and_long_text_is_cut(
    two: tuple[Replica, Replica],
) -> None:
    worker, watcher = two
    async with watcher.lives.subscribe("x", 2, LIMITS):
        await until(lambda: watcher.notices.sent != [])
        await asyncio.sleep(0)  # it arrives in the next turn of the loop
        for at in range(100):
            worker.stream("ä", at)
        await until(lambda: watcher.text() == "ä" * 100)
        assert len([channel for channel, _ in worker.notices.sent if channel == "deltas"]) == 1
        long = "\x01\U0001f600" * 5_000
        worker.stream(long, 100)
        await until(lambda: watcher.text() == "ä" * 100 + long)
        assert all(len(text.encode()) <= MOST_BYTES for _, text in worker.notices.sent)


async def test_a_watcher_that_is_gone_without_a_word_is_forgotten(
    two: tuple[Replica, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_relay, "WATCH_S", 0.05)
    worker, watcher = two
    async with asyncio.TaskGroup() as tasks:
        said = tasks.create_task(watcher.relay.run())
        forgets = tasks.create_task(worker.relay.run())
        async with watcher.lives.subscribe("x", 2, LIMITS):
            await asyncio.sleep(0.3)
            worker.stream("one", 0)
            await until(lambda: watcher.text() == "one")  # it says so again and again
            said.cancel()
            await asyncio.sleep(0.3)
            before = len(worker.notices.sent)
            worker.stream(" two", 3)
            await asyncio.sleep(delta_relay.BATCH_S * 2)
            assert len(worker.notices.sent) == before
            forgets.cancel()
