"""The projection all watchers of an execution share, in virtual time."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from planwave.errors import InvalidTransition, ShuttingDown, SlowConsumer, StoreError
from planwave.events import Event, ExecutionState
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
    made = LiveExecution("x")
    made.publish(BEGUN)
    return made


def test_events_are_folded_when_the_state_is_looked_at_or_there_are_many() -> None:
    folded: list[int] = []

    class Watched(ExecutionState):
        __slots__ = ()

        def apply(self, event: Event) -> None:
            folded.append(event.seq)
            ExecutionState.apply(self, event)

    made = LiveExecution("x")
    made._state = Watched("x")
    made.publish(BEGUN)
    assert (made.last_seq, made.is_over, made.has_streamed, folded) == (4, False, False, [])
    made.publish([delta(0, "said")])
    assert (made.last_seq, made.has_streamed, folded) == (4, True, [])
    assert (made.state.nodes["a"].text, folded) == ("said", [1, 2, 3, 4, 0])
    made.publish([event(seq, "node.log", "a", message="") for seq in range(5, 300)])
    assert (made.last_seq, folded[-1]) == (299, 299)
    made.publish([event(300, "node.completed", "a", outputs={}), event(301, "execution.completed")])
    assert (made.is_over, folded[-1], made.state.status, folded[-1]) == (
        True,
        299,
        "completed",
        301,
    )


def test_an_event_that_makes_no_sense_is_told_of_once_and_costs_no_other() -> None:
    made = LiveExecution("x")
    made.publish([*BEGUN, event(5, "node.completed", None, outputs={}), event(6, "node.log", "a")])
    with pytest.raises(InvalidTransition, match="no path"):
        _ = made.state
    made.publish([event(7, "execution.completed")])
    assert (made.state.status, made.state.last_seq) == ("completed", 7)


async def read(follower: Subscriber, frames: int) -> list[EventBatch]:
    return [await follower.next() for _ in range(frames)]


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


# -- frames


@virtual_time
async def test_text_reaches_followers_twenty_times_a_second_however_often_it_is_told() -> None:
    made, loop = live(), asyncio.get_running_loop()
    follower, _ = await made.subscribe(FREE)
    started, told = loop.time(), 0

    async def tell() -> None:
        nonlocal told
        for n in range(1000):
            made.publish([delta(n, "x")])
            told += 1
            await asyncio.sleep(0.001)

    times: list[float] = []
    texts: list[str] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(tell())
        while sum(map(len, texts)) < 1000:
            frame = await follower.next()
            times.append(loop.time() - started)
            texts += [e.data["text"] for e in frame.events]
            assert len(frame.events) == 1
    assert times[0] == 0
    assert len(times) <= 21
    assert all(b - a >= BATCH_INTERVAL_S - 1e-6 for a, b in pairwise(times))


@virtual_time
async def test_the_end_is_told_at_once() -> None:
    made, loop = live(), asyncio.get_running_loop()
    follower, _ = await made.subscribe(FREE)
    made.publish([delta(0, "x")])
    await follower.next()
    made.publish([delta(1, "y")])
    made.publish(ENDED)
    began = loop.time()
    frame = await follower.next()
    assert (frame.is_last, loop.time() - began) == (True, 0)
    assert [e.type for e in frame.events] == [
        "node.delta", "node.completed", "execution.completed",
    ]  # fmt: skip


@virtual_time
async def test_all_followers_are_given_the_same_frame() -> None:
    made = live()
    followers = [(await made.subscribe(FREE))[0] for _ in range(3)]
    made.publish(ENDED)
    frames = [await follower.next() for follower in followers]
    assert frames[0] is frames[1] is frames[2]
    assert frames[0].last_seq == 6


@virtual_time
async def test_nothing_is_gathered_for_nobody() -> None:
    made = live()
    made.publish([delta(0, "x")])
    follower, moment = await made.subscribe(FREE)
    made.publish([delta(1, "y")])
    assert moment.texts is not None
    assert [e.data["text"] for e in moment.texts.events] == ["x"]
    frame = await follower.next()
    assert [e.data["text"] for e in frame.events] == ["y"]


@virtual_time
async def test_a_slow_follower_is_dropped_and_the_others_are_not_held_up() -> None:
    made = live()
    slow, _ = await made.subscribe(BacklogLimits(events=10))
    quick, _ = await made.subscribe(BacklogLimits(events=10))
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
            made.publish([event(seq, "node.log", "a", message="m")])
            await asyncio.sleep(BATCH_INTERVAL_S)
        assert (slow.is_dropped, quick.is_dropped, made.watchers) == (True, False, 1)
        made.publish([event(30, "execution.cancelled")])
    assert seqs == list(range(5, 31))
    with pytest.raises(SlowConsumer):
        await slow.next()


@virtual_time
async def test_between_waking_some_followers_and_the_next_the_loop_turns_to_others() -> None:
    made = live()
    awake = 0

    async def listen() -> None:
        nonlocal awake
        follower, _ = await made.subscribe(FREE)
        await follower.next()
        awake += 1

    seen: list[int] = []
    async with asyncio.TaskGroup() as tasks:
        for _ in range(1000):
            tasks.create_task(listen())
        await settle()
        made.publish(ENDED)
        while awake < 1000:
            await asyncio.sleep(0)
            seen.append(awake)
    assert max(b - a for a, b in pairwise(seen)) <= 16


@virtual_time
async def test_frames_grow_rarer_where_handing_one_out_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, loop = live(), asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    told: list[float] = []

    put = Subscriber.put

    def put_slowly(follower: Subscriber, frame: EventBatch) -> None:
        loop.advance(0.02)  # handing out to ten of them takes 0.2 s
        put(follower, frame)

    async def listen() -> None:
        follower, _ = await made.subscribe(FREE)
        while not (await follower.next()).is_last:
            pass

    async with asyncio.TaskGroup() as tasks:
        for _ in range(9):
            tasks.create_task(listen())
        await settle()
        monkeypatch.setattr(Subscriber, "put", put_slowly)
        first, _ = await made.subscribe(FREE)
        for n in range(100):
            made.publish([delta(n, "x")])
            await asyncio.sleep(0.01)
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await first.next()
                    told.append(loop.time())
        made.publish(ENDED)
    gaps = [b - a for a, b in pairwise(told)]
    assert gaps
    assert min(gaps) > 0.3


@virtual_time
async def test_who_is_dismissed_in_the_midst_of_a_frame_is_given_it_first() -> None:
    made = live()
    followers = [(await made.subscribe(FREE))[0] for _ in range(100)]
    made.publish([event(5, "node.log", "a", message="m")])
    await asyncio.sleep(0)  # some have it now
    made.publish([event(6, "node.log", "a", message="n")])
    made.disconnect_all(ShuttingDown())
    for follower in followers:
        assert [e.seq for e in (await follower.next()).events] == [5]
        assert [e.seq for e in (await follower.next()).events] == [6]
        with pytest.raises(ShuttingDown):
            await follower.next()


@virtual_time
async def test_who_joins_in_the_midst_of_handing_out_is_not_told_what_it_knows() -> None:
    made = live()
    early = [(await made.subscribe(FREE))[0] for _ in range(100)]
    made.publish([event(5, "node.log", "a", message="m")])
    await asyncio.sleep(0)
    late, moment = await made.subscribe(FREE)
    assert moment.seq == 5
    await settle()
    made.publish([event(6, "execution.cancelled")])
    assert [e.seq for e in (await late.next()).events] == [6]
    for follower in early:
        assert [e.seq for e in (await follower.next()).events] == [5]
        assert [e.seq for e in (await follower.next()).events] == [6]


# -- joining


@virtual_time
async def test_who_joins_in_the_midst_of_a_frame_joins_after_it_and_adds_none() -> None:
    made = live()
    first, _ = await made.subscribe(FREE)
    made.publish([delta(0, "x")])
    await first.next()
    made.publish([delta(1, "y")])  # held back, as a frame was sent just now

    async with asyncio.TaskGroup() as tasks:
        joins = [tasks.create_task(made.subscribe(FREE, with_snapshot=True)) for _ in range(100)]
        await settle()
        assert not any(join.done() for join in joins)
        made.publish([delta(2, "z")])
    (frame,) = await read(first, 1)
    assert [e.data["text"] for e in frame.events] == ["yz"]
    moments = [join.result()[1] for join in joins]
    assert all(moment.snapshot is moments[0].snapshot for moment in moments)
    assert all(moment.texts is moments[0].texts for moment in moments)
    assert json.loads(moments[0].snapshot or b"")["nodes"][0]["text"] == "xyz"
    made.publish(ENDED)
    for follower in (first, *(join.result()[0] for join in joins)):
        assert [e.seq for e in (await follower.next()).events] == [5, 6]


@virtual_time
async def test_who_leaves_while_joining_leaves_nothing_behind() -> None:
    made = live()
    first, _ = await made.subscribe(FREE)
    made.publish([delta(0, "x")])
    await first.next()
    made.publish([delta(1, "y")])
    async with asyncio.TaskGroup() as tasks:
        joining = tasks.create_task(made.subscribe(FREE))
        await settle()
        joining.cancel()
    made.unsubscribe(first)
    assert made.watchers == 0
    second, moment = await made.subscribe(FREE)  # the first has left: its frame is for nobody
    assert moment.seq == second.cursor == 4


@virtual_time
async def test_who_joins_while_the_last_other_leaves_misses_nothing() -> None:
    made = live()
    first, _ = await made.subscribe(FREE)
    made.publish([delta(0, "x")])
    await first.next()
    made.publish([event(5, "node.log", "a", message="one")])
    async with asyncio.TaskGroup() as tasks:
        joining = tasks.create_task(made.subscribe(FREE))
        await settle()
        made.unsubscribe(first)
        made.publish([event(6, "node.log", "a", message="two")])
    follower, moment = joining.result()
    assert moment.seq == 6
    made.publish([event(7, "execution.cancelled")])
    frame = await follower.next()
    assert [e.seq for e in frame.events] == [7]


@virtual_time
async def test_only_open_nodes_have_texts_to_give_to_who_joins() -> None:
    made = live()
    made.publish([delta(0, "done"), event(5, "node.completed", "a", outputs={})])
    made.publish([event(6, "node.started", "b", wave=2), delta(0, "so far", "b")])
    _, moment = await made.subscribe(FREE)
    assert moment.texts is not None
    assert [(e.path, e.data["text"], e.attempt) for e in moment.texts.events] == [
        ("b", "so far", 1)
    ]
    _, again = await made.subscribe(FREE)
    assert again.texts is moment.texts


# -- glances and snapshots


@virtual_time
async def test_a_glance_is_made_once_for_all_and_anew_when_something_happened() -> None:
    made = live()
    assert made.status_summary() is made.status_summary()
    assert json.loads(made.status_summary()) == {
        "status": "executing",
        "node_states": {"a": "running", "b": "pending"},
        "logs": [
            "Starting execution...",
            "Executing 1 nodes in parallel: ['a']",
            "Starting node a: a",
        ],
        "wave": {"current": 1, "total": 2},
    }
    made.publish(ENDED)
    assert json.loads(made.status_summary())["status"] == "completed"


@virtual_time
async def test_a_glance_shows_the_last_ten_sentences() -> None:
    made = live()
    for n in range(600):  # more than are left unworded
        made.publish([event(5 + n, "node.started", f"n{n}", wave=1), delta(0, "", f"n{n}")])
    last = [f"Starting node n{n}: n{n}" for n in range(590, 600)]
    assert json.loads(made.status_summary())["logs"] == last
    made.publish([event(605, "node.log", "n1")])
    assert json.loads(made.status_summary())["logs"] == last


@virtual_time
async def test_a_snapshot_shows_text_that_is_not_stored() -> None:
    made = live()
    made.publish([delta(0, "half a sen")])
    first = made.snapshot()
    made.publish([delta(10, "tence")])
    shown = json.loads(made.snapshot())
    assert json.loads(first)["nodes"][0]["text"] == "half a sen"
    assert (shown["type"], shown["last_seq"]) == ("snapshot", 4)
    assert shown["nodes"][0]["text"] == "half a sentence"


# -- the end


@virtual_time
async def test_a_pause_lasts_its_time_or_until_there_is_nothing_more_to_tell() -> None:
    made, loop = live(), asyncio.get_running_loop()
    await made.wait_for_end(3)
    assert loop.time() == 3
    async with asyncio.TaskGroup() as tasks:
        pausing = tasks.create_task(made.wait_for_end(1000))
        await settle()
        made.publish(ENDED)
    assert pausing.done()
    assert loop.time() == 3


@virtual_time
async def test_who_is_dismissed_was_told_everything_before() -> None:
    made = live()
    follower, _ = await made.subscribe(FREE)
    made.publish([delta(0, "x")])
    await follower.next()
    made.publish([event(5, "node.log", "a", message="last")])
    made.disconnect_all(ShuttingDown())
    assert [e.seq for e in (await follower.next()).events] == [5]
    with pytest.raises(ShuttingDown):
        await follower.next()
    late, _ = await made.subscribe(FREE)
    with pytest.raises(ShuttingDown):
        await late.next()
    assert made.watchers == 0


@virtual_time
async def test_who_watches_a_run_that_broke_is_told_why() -> None:
    made = live()
    follower, _ = await made.subscribe(FREE)
    made.error = StoreError("the disk is full")
    made.mark_finished()
    with pytest.raises(StoreError, match="disk is full"):
        await follower.next()
    assert made.finished.is_set()


@virtual_time
async def test_it_is_idle_when_it_neither_runs_nor_anybody_holds_it() -> None:
    made = live()
    assert made.is_unused
    made.holders += 1
    assert not made.is_unused
