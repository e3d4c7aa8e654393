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


def test_adjacent_text_of_a_node_is_joined() -> None:
    received = coalesce_text(
        [delta("a", 0, "x"), delta("b", 4, "1"), fact(7, path="c"), delta("a", 1, "y")]
    )
    assert brief(received) == [("a", 0, "xy"), ("b", 4, "1"), 7]


def test_text_is_not_joined_across_other_events_of_its_node() -> None:
    received = coalesce_text([delta("a", 0, "x"), fact(7), delta("a", 1, "y"), delta("a", 2, "z")])
    assert brief(received) == [("a", 0, "x"), 7, ("a", 1, "yz")]


def test_attempts_and_kinds_are_not_joined() -> None:
    received = coalesce_text(
        [
            delta("a", 0, "x"),
            delta("a", 0, "think", "reasoning"),
            delta("a", 0, "again", attempt=2),
            delta("a", 1, "y"),
        ]
    )
    assert brief(received) == [("a", 0, "xy"), ("a", 0, "think"), ("a", 0, "again")]


def test_text_is_not_joined_where_it_comes_again_or_with_a_gap() -> None:
    received = coalesce_text(
        [
            delta("a", 0, "xy"),
            delta("a", 0, "x"),
            delta("a", 1, "yz"),
            delta("a", 5, "1"),
            delta("a", 6, "2"),
        ]
    )
    assert brief(received) == [("a", 0, "xy"), ("a", 0, "xyz"), ("a", 5, "12")]


def test_joining_does_not_change_its_input() -> None:
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
        piece = "".join(choose.choices("xyz", k=choose.randint(1, 3)))
        key = (path, attempts[path])
        if choose.random() < 0.2:  # it comes again, or some of it was lost
            offsets[key] = choose.choice([0, offsets.get(key, 0) + 2])
        events.append(delta(path, offsets.get(key, 0), piece, attempt=attempts[path]))
        offsets[key] = offsets.get(key, 0) + len(piece)
    assert _state_of(coalesce_text(events)) == _state_of(events)


def _state_of(events: list[Event]) -> dict[str, Any]:
    state = ExecutionState("x")
    for event in events:
        state.apply(event)
    return state.as_json()


# -- frames


def test_batch_is_rendered_once_for_all_subscribers() -> None:
    created = frame(1, 3)
    calls: list[EventBatch] = []

    def render(given: EventBatch) -> bytes:
        calls.append(given)
        return b"".join(given.json_events)

    assert created.render_once(render) is created.render_once(render)
    assert calls == [created]
    assert created.size_bytes == len(created.render_once(render))
    assert [json.loads(piece)["seq"] for piece in created.json_events] == [1, 2, 3]


def test_batch_with_terminal_event_is_the_last() -> None:
    assert EventBatch([fact(9, "execution.completed", None)], 9).is_last
    assert not frame(1).is_last
    assert not EventBatch([], 9).is_last


# -- subscribers


async def test_batches_are_read_in_order() -> None:
    subscriber = Subscriber(0, BacklogLimits())
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(subscriber.next())
        await asyncio.sleep(0)
        assert not waiting.done()
        for seq in (1, 2, 3):
            subscriber.put(frame(seq))
        subscriber.wake()
    assert waiting.result().last_seq == 1
    assert [(await subscriber.next()).last_seq for _ in range(2)] == [2, 3]


async def test_cursor_advances_when_the_next_batch_is_requested() -> None:
    subscriber = Subscriber(0, BacklogLimits())
    subscriber.put(frame(1, 4))
    subscriber.put(frame(5))
    await subscriber.next()
    assert subscriber.cursor == 0
    await subscriber.next()
    assert subscriber.cursor == 4


@pytest.mark.parametrize("what", ["events", "bytes"])
async def test_subscriber_is_dropped_past_its_limits(what: str) -> None:
    size = frame(1).size_bytes
    bounds = (
        BacklogLimits(events=10) if what == "events" else BacklogLimits(bytes=9 * size + (size + 1))
    )
    subscriber = Subscriber(0, bounds)
    for seq in range(1, 11):
        subscriber.put(frame(seq))
        assert not subscriber.is_dropped
    subscriber.put(frame(11))
    assert subscriber.is_dropped
    with pytest.raises(SlowConsumer) as caught:
        await subscriber.next()
    assert (caught.value.cursor, caught.value.hint) == (0, "resume with after=0")


async def test_read_batches_do_not_count_as_backlog() -> None:
    subscriber = Subscriber(0, BacklogLimits(events=2, bytes=frame(1).size_bytes * 3))
    for seq in range(1, 100):
        subscriber.put(frame(seq))
        await subscriber.next()
    assert not subscriber.is_dropped
    assert subscriber.cursor == 98


async def test_single_batch_is_never_too_large() -> None:
    subscriber = Subscriber(0, BacklogLimits(events=10, bytes=10))
    subscriber.put(frame(1, 1000))
    assert not subscriber.is_dropped
    assert (await subscriber.next()).last_seq == 1000


async def test_dropped_subscriber_raises_with_its_cursor() -> None:
    subscriber = Subscriber(7, BacklogLimits(events=1))
    for seq in range(8, 20):
        subscriber.put(frame(seq))
    with pytest.raises(SlowConsumer) as caught:
        await subscriber.next()
    assert caught.value.cursor == 7
    with pytest.raises(SlowConsumer):
        await subscriber.next()


async def test_cursor_of_dropped_subscriber_excludes_unsent_batches() -> None:
    subscriber, drops = Subscriber(0, BacklogLimits(events=1)), []
    subscriber.on_drop = lambda: drops.append(subscriber.cursor)
    subscriber.put(frame(1))
    await subscriber.next()
    for seq in (2, 3, 4):
        subscriber.put(frame(seq))
    assert drops == [0], "the first frame is still on its way"
    with pytest.raises(SlowConsumer) as caught:
        await subscriber.next()
    assert caught.value.cursor == 1


async def test_cancelled_read_loses_no_batch() -> None:
    subscriber = Subscriber(0, BacklogLimits())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await subscriber.next()
    subscriber.put(frame(1))
    assert (await subscriber.next()).last_seq == 1


async def test_closed_subscriber_reads_pending_batches_first() -> None:
    subscriber = Subscriber(0, BacklogLimits())
    subscriber.put(frame(1))
    subscriber.close_with(ShuttingDown())
    subscriber.put(frame(2))
    assert (await subscriber.next()).last_seq == 1
    assert not subscriber.is_dropped
    with pytest.raises(ShuttingDown):
        await subscriber.next()


async def test_shared_error_does_not_accumulate_tracebacks() -> None:
    error = ShuttingDown()
    for _ in range(50):
        subscriber = Subscriber(0, BacklogLimits())
        subscriber.close_with(error)
        with pytest.raises(ShuttingDown):
            await subscriber.next()
    depth, trace = 0, error.__traceback__
    while trace is not None:
        depth, trace = depth + 1, trace.tb_next
    assert depth < 5
