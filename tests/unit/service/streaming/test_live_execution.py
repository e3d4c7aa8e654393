"""The projection all subscribers of an execution share, in virtual time."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from planwave.errors import InvalidTransition, ShuttingDown, SlowConsumer
from planwave.events import Event
from planwave.service.streaming.live_execution import BATCH_INTERVAL_S, LiveExecution
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch, Subscriber
from tests.support.virtual_loop import VirtualLoop, virtual_time

FREE = BacklogLimits()
GRAPH = {"nodes": [{"id": "a", "type": "t"}, {"id": "b", "type": "t"}], "edges": []}


def event(seq: int, event_type: str, path: str | None = None, **data: Any) -> Event:
    return Event("x", seq, "t", event_type, path, 1 if path else None, data)


def delta(offset: int, text: str, path: str = "a") -> Event:
    return event(0, "node.delta", path, kind="text", text=text, offset=offset)


BEGUN = [
    event(1, "execution.created", goal="g", title="T", graph=GRAPH),
    event(2, "execution.started", waves=2),
    event(3, "wave.started", wave=1, nodes=["a"]),
    event(4, "node.started", "a", wave=1),
]
ENDED = [
    event(5, "node.completed", "a", outputs={}, duration_s=0.5),
    event(6, "execution.completed"),
]


def live() -> LiveExecution:
    created = LiveExecution("x")
    created.publish(BEGUN)
    return created


def test_invalid_event_is_reported_once_and_affects_no_other() -> None:
    created = LiveExecution("x")
    created.publish(
        [*BEGUN, event(5, "node.completed", None, outputs={}), event(6, "node.log", "a")]
    )
    with pytest.raises(InvalidTransition, match="no path"):
        _ = created.state
    created.publish([event(7, "execution.completed")])
    assert (created.state.status, created.state.last_seq) == ("completed", 7)


async def read(subscriber: Subscriber, frames: int) -> list[EventBatch]:
    return [await subscriber.next() for _ in range(frames)]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


# -- frames


@virtual_time
async def test_text_is_sent_at_most_twenty_times_a_second() -> None:
    created, loop = live(), asyncio.get_running_loop()
    subscriber, _ = await created.subscribe(FREE)
    started, received = loop.time(), 0

    async def tell() -> None:
        nonlocal received
        for n in range(1000):
            created.publish([delta(n, "x")])
            received += 1
            await asyncio.sleep(0.001)

    times: list[float] = []
    texts: list[str] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(tell())
        while sum(map(len, texts)) < 1000:
            frame = await subscriber.next()
            times.append(loop.time() - started)
            texts += [e.data["text"] for e in frame.events]
            assert len(frame.events) == 1
    assert times[0] == 0
    assert len(times) <= 21
    assert all(b - a >= BATCH_INTERVAL_S - 1e-6 for a, b in pairwise(times))


@virtual_time
async def test_last_event_is_sent_at_once() -> None:
    created, loop = live(), asyncio.get_running_loop()
    subscriber, _ = await created.subscribe(FREE)
    created.publish([delta(0, "x")])
    await subscriber.next()
    created.publish([delta(1, "y")])
    created.publish(ENDED)
    began = loop.time()
    frame = await subscriber.next()
    assert (frame.is_last, loop.time() - began) == (True, 0)
    assert [e.type for e in frame.events] == [
        "node.delta", "node.completed", "execution.completed",
    ]  # fmt: skip


@virtual_time
async def test_first_text_of_an_execution_is_sent_at_once() -> None:
    created, loop = LiveExecution("e"), asyncio.get_running_loop()
    created.publish(BEGUN[:1])
    subscriber, _ = await created.subscribe(FREE)
    created.publish(BEGUN[1:])
    await subscriber.next()
    began = loop.time()
    created.publish([delta(0, "x")])
    await subscriber.next()
    assert loop.time() == began
    created.publish([delta(1, "y")])
    await subscriber.next()
    assert loop.time() - began >= BATCH_INTERVAL_S - 1e-6


@virtual_time
async def test_events_before_subscription_are_not_batched() -> None:
    created = live()
    created.publish([delta(0, "x")])
    subscriber, moment = await created.subscribe(FREE)
    created.publish([delta(1, "y")])
    assert moment.texts is not None
    assert [e.data["text"] for e in moment.texts.events] == ["x"]
    frame = await subscriber.next()
    assert [e.data["text"] for e in frame.events] == ["y"]


@virtual_time
async def test_slow_subscriber_is_dropped_without_delaying_others() -> None:
    created = live()
    slow, _ = await created.subscribe(BacklogLimits(events=10))
    quick, _ = await created.subscribe(BacklogLimits(events=10))
    seqs: list[int] = []

    async def listen() -> None:
        while True:
            frame = await quick.next()
            seqs.extend(e.seq for e in frame.events)
            if frame.is_last:
                return

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(listen())
        for seq in range(5, 30):
            created.publish([event(seq, "node.log", "a", message="m")])
            await asyncio.sleep(BATCH_INTERVAL_S)
        assert (slow.is_dropped, quick.is_dropped, created.subscriber_count) == (True, False, 1)
        created.publish([event(30, "execution.cancelled")])
    assert seqs == list(range(5, 31))
    with pytest.raises(SlowConsumer):
        await slow.next()


@virtual_time
async def test_waking_subscribers_yields_to_the_event_loop() -> None:
    created = live()
    awake = 0

    async def listen() -> None:
        nonlocal awake
        subscriber, _ = await created.subscribe(FREE)
        await subscriber.next()
        awake += 1

    seen: list[int] = []
    async with asyncio.TaskGroup() as tasks:
        for _ in range(1000):
            tasks.create_task(listen())
        await settle()
        created.publish(ENDED)
        while awake < 1000:
            await asyncio.sleep(0)
            seen.append(awake)
    assert max(b - a for a, b in pairwise(seen)) <= 16


@virtual_time
async def test_batch_interval_grows_when_delivery_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    created, loop = live(), asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    received: list[float] = []

    put = Subscriber.put

    def put_slowly(subscriber: Subscriber, batch: EventBatch) -> None:
        loop.advance(0.02)  # delivery to ten subscribers takes 0.2 s
        put(subscriber, batch)

    async def listen() -> None:
        subscriber, _ = await created.subscribe(FREE)
        while not (await subscriber.next()).is_last:
            pass

    async with asyncio.TaskGroup() as tasks:
        for _ in range(9):
            tasks.create_task(listen())
        await settle()
        monkeypatch.setattr(Subscriber, "put", put_slowly)
        first, _ = await created.subscribe(FREE)
        for n in range(100):
            created.publish([delta(n, "x")])
            await asyncio.sleep(0.01)
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await first.next()
                    received.append(loop.time())
        created.publish(ENDED)
    gaps = [b - a for a, b in pairwise(received)]
    assert gaps
    assert min(gaps) > 0.3


@virtual_time
async def test_disconnect_delivers_pending_batches_first() -> None:
    created = live()
    subscribers = [(await created.subscribe(FREE))[0] for _ in range(100)]
    created.publish([event(5, "node.log", "a", message="m")])
    await asyncio.sleep(0)  # some have it now
    created.publish([event(6, "node.log", "a", message="n")])
    created.disconnect_all(ShuttingDown())
    for subscriber in subscribers:
        assert [e.seq for e in (await subscriber.next()).events] == [5]
        assert [e.seq for e in (await subscriber.next()).events] == [6]
        with pytest.raises(ShuttingDown):
            await subscriber.next()


@virtual_time
async def test_subscriber_joining_during_delivery_gets_no_known_events() -> None:
    created = live()
    early = [(await created.subscribe(FREE))[0] for _ in range(100)]
    created.publish([event(5, "node.log", "a", message="m")])
    await asyncio.sleep(0)
    late, moment = await created.subscribe(FREE)
    assert moment.seq == 5
    await settle()
    created.publish([event(6, "execution.cancelled")])
    assert [e.seq for e in (await late.next()).events] == [6]
    for subscriber in early:
        assert [e.seq for e in (await subscriber.next()).events] == [5]
        assert [e.seq for e in (await subscriber.next()).events] == [6]


# -- joining


@virtual_time
async def test_subscribers_joining_between_batches_share_one_snapshot() -> None:
    created = live()
    first, _ = await created.subscribe(FREE)
    created.publish([delta(0, "x")])
    await first.next()
    created.publish([delta(1, "y")])  # held back, as a frame was sent just now

    async with asyncio.TaskGroup() as tasks:
        joins = [tasks.create_task(created.subscribe(FREE, with_snapshot=True)) for _ in range(100)]
        await settle()
        assert not any(join.done() for join in joins)
        created.publish([delta(2, "z")])
    (frame,) = await read(first, 1)
    assert [e.data["text"] for e in frame.events] == ["yz"]
    moments = [join.result()[1] for join in joins]
    assert all(moment.snapshot is moments[0].snapshot for moment in moments)
    assert all(moment.texts is moments[0].texts for moment in moments)
    assert json.loads(moments[0].snapshot or b"")["nodes"][0]["text"] == "xyz"
    created.publish(ENDED)
    for subscriber in (first, *(join.result()[0] for join in joins)):
        assert [e.seq for e in (await subscriber.next()).events] == [5, 6]


@virtual_time
async def test_cancelled_subscription_is_removed() -> None:
    created = live()
    first, _ = await created.subscribe(FREE)
    created.publish([delta(0, "x")])
    await first.next()
    created.publish([delta(1, "y")])
    async with asyncio.TaskGroup() as tasks:
        joining = tasks.create_task(created.subscribe(FREE))
        await settle()
        joining.cancel()
    created.unsubscribe(first)
    assert created.subscriber_count == 0
    second, moment = await created.subscribe(FREE)  # the first has left: its frame is for nobody
    assert moment.seq == second.cursor == 4


@virtual_time
async def test_subscriber_joining_while_the_last_leaves_misses_nothing() -> None:
    created = live()
    first, _ = await created.subscribe(FREE)
    created.publish([delta(0, "x")])
    await first.next()
    created.publish([event(5, "node.log", "a", message="one")])
    async with asyncio.TaskGroup() as tasks:
        joining = tasks.create_task(created.subscribe(FREE))
        await settle()
        created.unsubscribe(first)
        created.publish([event(6, "node.log", "a", message="two")])
    subscriber, moment = joining.result()
    assert moment.seq == 6
    created.publish([event(7, "execution.cancelled")])
    frame = await subscriber.next()
    assert [e.seq for e in frame.events] == [7]


@virtual_time
async def test_only_running_nodes_have_text_for_new_subscribers() -> None:
    created = live()
    created.publish([delta(0, "done"), event(5, "node.completed", "a", outputs={})])
    created.publish([event(6, "node.started", "b", wave=2), delta(0, "so far", "b")])
    _, moment = await created.subscribe(FREE)
    assert moment.texts is not None
    assert [(e.path, e.data["text"], e.attempt) for e in moment.texts.events] == [
        ("b", "so far", 1)
    ]
    _, again = await created.subscribe(FREE)
    assert again.texts is moment.texts


# -- glances and snapshots


@virtual_time
async def test_status_summary_is_cached_until_the_next_event() -> None:
    created = live()
    assert created.status_summary() is created.status_summary()
    assert json.loads(created.status_summary()) == {
        "status": "executing",
        "node_states": {"a": "running", "b": "pending"},
        "logs": [
            "Starting execution...",
            "Executing 1 nodes in parallel: ['a']",
            "Starting node a: a",
        ],
        "wave": {"current": 1, "total": 2},
    }
    created.publish(ENDED)
    assert json.loads(created.status_summary())["status"] == "completed"


@virtual_time
async def test_status_summary_has_the_last_ten_log_lines() -> None:
    created = live()
    for n in range(600):  # more than are left unworded
        created.publish([event(5 + n, "node.started", f"n{n}", wave=1), delta(0, "", f"n{n}")])
    last = [f"Starting node n{n}: n{n}" for n in range(590, 600)]
    assert json.loads(created.status_summary())["logs"] == last
    created.publish([event(605, "node.log", "n1")])
    assert json.loads(created.status_summary())["logs"] == last


@virtual_time
async def test_snapshot_has_streamed_text() -> None:
    created = live()
    created.publish([delta(0, "half a sen")])
    first = created.snapshot()
    created.publish([delta(10, "tence")])
    shown = json.loads(created.snapshot())
    assert json.loads(first)["nodes"][0]["text"] == "half a sen"
    assert (shown["type"], shown["last_seq"]) == ("snapshot", 4)
    assert shown["nodes"][0]["text"] == "half a sentence"


# -- the end


@virtual_time
async def test_wait_for_end_ends_by_timeout_or_last_event() -> None:
    created, loop = live(), asyncio.get_running_loop()
    await created.wait_for_end(3)
    assert loop.time() == 3
    async with asyncio.TaskGroup() as tasks:
        pausing = tasks.create_task(created.wait_for_end(1000))
        await settle()
        created.publish(ENDED)
    assert pausing.done()
    assert loop.time() == 3


@virtual_time
async def test_disconnect_delivers_all_earlier_events() -> None:
    created = live()
    subscriber, _ = await created.subscribe(FREE)
    created.publish([delta(0, "x")])
    await subscriber.next()
    created.publish([event(5, "node.log", "a", message="last")])
    created.disconnect_all(ShuttingDown())
    assert [e.seq for e in (await subscriber.next()).events] == [5]
    with pytest.raises(ShuttingDown):
        await subscriber.next()
    late, _ = await created.subscribe(FREE)
    with pytest.raises(ShuttingDown):
        await late.next()
    assert created.subscriber_count == 0
