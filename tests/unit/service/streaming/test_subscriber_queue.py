import asyncio
import json
import random
from typing import Any

import pytest

from planwave.errors import ShuttingDown, SlowConsumer
from planwave.events import Event, ExecutionState
from planwave.service.streaming.delta_coalescing import coalesce_text
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch, Subscriber


def delta(path: str, offset: int, text: str, kind: str = "text", attempt: int = 1) -> Event:
    data = {"kind": kind, "text": text, "offset": offset}
    return Event("x", 0, "t", "node.delta", path, attempt, data)


def fact(seq: int, event_type: str = "node.log", path: str | None = "a", **data: Any) -> Event:
    return Event("x", seq, "t", event_type, path, 1 if path else None, data)


def frame(first: int, last: int | None = None, **data: Any) -> EventBatch:
    last = first if last is None else last
    return EventBatch([fact(seq, **data) for seq in range(first, last + 1)], last)


def brief(events: list[Event]) -> list[Any]:
    return [(e.path, e.data["offset"], e.data["text"]) if e.seq == 0 else e.seq for e in events]


# -- joining text


def test_text_of_a_node_is_joined_and_keeps_the_place_of_its_first_piece() -> None:
    told = coalesce_text(
        [delta("a", 0, "x"), delta("b", 4, "1"), fact(7, path="c"), delta("a", 1, "y")]
    )
    assert brief(told) == [("a", 0, "xy"), ("b", 4, "1"), 7]


def test_text_is_not_joined_past_what_else_happened_to_its_node() -> None:
    told = coalesce_text([delta("a", 0, "x"), fact(7), delta("a", 1, "y"), delta("a", 2, "z")])
    assert brief(told) == [("a", 0, "x"), 7, ("a", 1, "yz")]


def test_attempts_and_kinds_are_not_mixed() -> None:
    told = coalesce_text(
        [
            delta("a", 0, "x"),
            delta("a", 0, "think", "reasoning"),
            delta("a", 0, "again", attempt=2),
            delta("a", 1, "y"),
        ]
    )
    assert brief(told) == [("a", 0, "xy"), ("a", 0, "think"), ("a", 0, "again")]


def test_joining_leaves_the_events_it_was_given_as_they_were() -> None:
    given = [delta("a", 0, "x"), delta("a", 1, "y")]
    coalesce_text(given)
    assert brief(given) == [("a", 0, "x"), ("a", 1, "y")]


@pytest.mark.parametrize("seed", range(20))
def test_joined_events_fold_to_the_same_state(seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311 - a fixed seed
    offsets: dict[tuple[str, int], int] = {}
    attempts = {"a": 1, "b": 1}
    events = [fact(1, "node.started", "a"), fact(2, "node.started", "b")]
    for _ in range(60):
        path = choose.choice("ab")
        if choose.random() < 0.15:
            attempts[path] += 1
            seq = sum(1 for e in events if e.seq) + 1
            events.append(Event("x", seq, "t", "node.started", path, attempts[path], {}))
            continue
        piece = "x" * choose.randint(1, 3)
        key = (path, attempts[path])
        events.append(delta(path, offsets.get(key, 0), piece, attempt=attempts[path]))
        offsets[key] = offsets.get(key, 0) + len(piece)
    assert _state_of(coalesce_text(events)) == _state_of(events)


def _state_of(events: list[Event]) -> dict[str, Any]:
    state = ExecutionState("x")
    for event in events:
        state.apply(event)
    return state.as_json()


# -- frames


def test_what_is_made_of_a_frame_is_made_once_for_all_who_send_it() -> None:
    made = frame(1, 3)
    calls: list[EventBatch] = []

    def render(given: EventBatch) -> bytes:
        calls.append(given)
        return b"".join(given.json_events)

    assert made.render_once(render) is made.render_once(render)
    assert calls == [made]
    assert made.size_bytes == len(made.render_once(render))
    assert [json.loads(piece)["seq"] for piece in made.json_events] == [1, 2, 3]


def test_only_a_frame_with_the_terminal_event_is_the_last() -> None:
    assert EventBatch([fact(9, "execution.completed", None)], 9).is_last
    assert not frame(1).is_last
    assert not EventBatch([], 9).is_last


# -- followers


async def test_a_follower_reads_frames_in_order_and_waits_for_more() -> None:
    follower = Subscriber(0, BacklogLimits())
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(follower.next())
        await asyncio.sleep(0)
        assert not waiting.done()
        for seq in (1, 2, 3):
            follower.put(frame(seq))
        follower.wake()
    assert waiting.result().last_seq == 1
    assert [(await follower.next()).last_seq for _ in range(2)] == [2, 3]


async def test_a_frame_counts_as_given_when_the_next_one_is_asked_for() -> None:
    follower = Subscriber(0, BacklogLimits())
    follower.put(frame(1, 4))
    follower.put(frame(5))
    await follower.next()
    assert follower.cursor == 0
    await follower.next()
    assert follower.cursor == 4


@pytest.mark.parametrize("what", ["events", "bytes"])
async def test_a_follower_is_dropped_one_past_its_bounds_and_not_at_them(what: str) -> None:
    size = frame(1).size_bytes
    bounds = (
        BacklogLimits(events=10) if what == "events" else BacklogLimits(bytes=9 * size + (size + 1))
    )
    follower = Subscriber(0, bounds)
    for seq in range(1, 11):
        follower.put(frame(seq))
        assert not follower.is_dropped
    follower.put(frame(11))
    assert follower.is_dropped
    with pytest.raises(SlowConsumer) as caught:
        await follower.next()
    assert (caught.value.cursor, caught.value.hint) == (0, "resume with after=0")


async def test_what_was_read_does_not_count_as_behind() -> None:
    follower = Subscriber(0, BacklogLimits(events=2, bytes=frame(1).size_bytes * 3))
    for seq in range(1, 100):
        follower.put(frame(seq))
        await follower.next()
    assert not follower.is_dropped
    assert follower.cursor == 98


async def test_one_frame_by_itself_is_never_too_much() -> None:
    follower = Subscriber(0, BacklogLimits(events=10, bytes=10))
    follower.put(frame(1, 1000))
    assert not follower.is_dropped
    assert (await follower.next()).last_seq == 1000


async def test_a_dropped_follower_keeps_nothing_and_is_told_once() -> None:
    follower = Subscriber(7, BacklogLimits(events=1))
    for seq in range(8, 20):
        follower.put(frame(seq))
    with pytest.raises(SlowConsumer) as caught:
        await follower.next()
    assert caught.value.cursor == 7
    with pytest.raises(SlowConsumer):
        await follower.next()


async def test_the_place_to_go_on_from_is_behind_what_was_being_sent_when_it_was_dropped() -> None:
    follower, drops = Subscriber(0, BacklogLimits(events=1)), []
    follower.on_drop = lambda: drops.append(follower.cursor)
    follower.put(frame(1))
    await follower.next()
    for seq in (2, 3, 4):
        follower.put(frame(seq))
    assert drops == [0], "the first frame is still on its way"
    with pytest.raises(SlowConsumer) as caught:
        await follower.next()
    assert caught.value.cursor == 1


async def test_who_is_sent_away_reads_what_is_there_first_and_nothing_after() -> None:
    follower = Subscriber(0, BacklogLimits())
    follower.put(frame(1))
    follower.close_with(ShuttingDown())
    follower.put(frame(2))
    assert (await follower.next()).last_seq == 1
    assert not follower.is_dropped
    with pytest.raises(ShuttingDown):
        await follower.next()


async def test_many_who_are_told_the_same_error_do_not_pile_up_its_traceback() -> None:
    error = ShuttingDown()
    for _ in range(50):
        follower = Subscriber(0, BacklogLimits())
        follower.close_with(error)
        with pytest.raises(ShuttingDown):
            await follower.next()
    depth, trace = 0, error.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    assert depth < 5


async def test_a_wait_that_was_cut_short_loses_no_frame() -> None:
    follower = Subscriber(0, BacklogLimits())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await follower.next()
    follower.put(frame(1))
    follower.wake()
    assert (await follower.next()).last_seq == 1
