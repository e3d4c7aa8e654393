"""Listeners get every event in order, and never slow a run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from planwave.events import Event
from planwave.executor.driver.execution import Execution
from planwave.executor.driver.publisher import BATCH_WINDOW_S, Publisher, Subscription
from tests.support.engine.generic_nodes import ExecutionHarness, node_event, result_with
from tests.support.graph.fake_node_types import parse_graph
from tests.support.virtual_loop import virtual_time

Inputs = Context = Any


def event(seq: int, kind: str = "node.log") -> Event:
    return Event("x", seq, "t", kind, None, None, {})


@virtual_time
async def test_a_subscriber_gets_every_event_from_its_subscription_on() -> None:
    harness = ExecutionHarness(parse_graph("a b", "a>b"))
    first, second = harness.execution.events(), harness.execution.events()
    late: list[Any] = []

    async def joins(inputs: Inputs, context: Context) -> Any:
        late.append(harness.execution.events())
        return result_with(1)

    harness.behaviors["b"] = joins
    assert await harness.run() == "completed"
    assert [e async for e in first] == [e async for e in second] == harness.published
    is_subscribed = [e async for e in late[0]]
    assert is_subscribed == harness.published[-len(is_subscribed) :]
    assert [e.type for e in is_subscribed] == [
        "node.completed",
        "wave.completed",
        "execution.completed",
    ]


@virtual_time
async def test_a_subscriber_that_never_reads_does_not_delay_the_run() -> None:
    async def chatters(inputs: Inputs, context: Context) -> Any:
        for n in range(1000):
            yield node_event(context, "delta", {"text": str(n)})
        yield result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": chatters})
    slow = harness.execution.events()
    assert await harness.run() == "completed"
    assert asyncio.get_running_loop().time() == 0
    assert len([e async for e in slow]) == len(harness.published)


@virtual_time
async def test_deltas_are_batched_for_a_millisecond_and_events_are_not() -> None:
    subscription = Subscription()
    loop = asyncio.get_running_loop()
    batches: list[tuple[float, list[int]]] = []

    async def reads() -> None:
        async for batch in subscription.batches():
            batches.append((loop.time(), [e.seq for e in batch]))

    async with asyncio.TaskGroup() as group:
        group.create_task(reads())
        await asyncio.sleep(1)
        subscription.put_batched(event(1))
        subscription.put_batched(event(2))
        await asyncio.sleep(1)
        subscription.put_batched(event(3))
        subscription.extend([event(4)])
        await asyncio.sleep(1)
        subscription.extend([event(5), event(6, "execution.completed")])
    assert batches == [(1 + BATCH_WINDOW_S, [1, 2]), (2, [3, 4]), (3, [5, 6])]


@virtual_time
async def test_a_closed_subscription_ends_after_its_queued_events() -> None:
    subscription = Subscription()
    subscription.extend([event(1)])
    subscription.close()
    assert [e.seq async for e in subscription] == [1]
    assert [e.seq async for e in subscription] == []


@virtual_time
async def test_closing_a_subscription_ends_a_waiting_reader() -> None:
    subscription = Subscription()
    asyncio.get_running_loop().call_later(1, subscription.close)
    assert [e async for e in subscription] == []


@virtual_time
async def test_a_cancelled_reader_does_not_affect_the_run() -> None:
    harness = ExecutionHarness(parse_graph("a"))
    subscription = harness.execution.events()

    async def reads() -> None:
        async for _ in subscription:
            pass

    reader = asyncio.get_running_loop().create_task(reads())
    await asyncio.sleep(0)
    reader.cancel()
    assert await harness.run() == "completed"


def publisher(on_events: Any = None) -> Publisher:
    times = iter(range(100))
    return Publisher("x", None, 1, on_events, lambda: str(next(times)))


def test_a_published_batch_is_passed_on() -> None:
    subscription: list[Event] = []
    batch = [event(1), event(2)]
    publisher(subscription.extend).publish(batch)
    assert subscription == batch


@pytest.mark.parametrize("batched", [False, True])
@virtual_time
async def test_a_closed_reader_gets_no_more_events(batched: bool) -> None:
    public = publisher()
    left, stays = public.subscribe(), public.subscribe()
    reader: Any = left.batches() if batched else aiter(left)
    public.publish([event(1)])
    assert await anext(reader)
    await reader.aclose()
    public.publish([event(2)])
    assert [e async for e in left] == []
    stays.close()
    assert [e.seq async for e in stays] == [1, 2]
    public.close()


@virtual_time
async def test_a_reader_cancelled_while_it_waits_leaves_no_timer() -> None:
    public = publisher()
    subscription = public.subscribe()

    async def reads() -> None:
        async for _ in subscription:
            pass

    reader = asyncio.get_running_loop().create_task(reads())
    await asyncio.sleep(0)
    subscription.put_batched(event(0, "node.delta"))
    reader.cancel()
    await asyncio.wait([reader])
    public.publish([event(1)])
    assert [e async for e in subscription] == []


# -- streamed text


@pytest.mark.parametrize("is_subscribed", [False, True])
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("just text", "a str instead of an object"),
        (None, "a NoneType instead of an object"),
        ([1], "a list instead of an object"),
        ({}, "no text"),
        ({"text": None}, "text that is a NoneType"),
        ({"text": b"x"}, "text that is a bytes"),
        ({"text": "x", "kind": ["k"]}, "a kind that is a list"),
    ],
)
@virtual_time
async def test_malformed_streamed_text_fails_the_attempt_with_or_without_subscribers(
    data: Any, reason: str, is_subscribed: bool
) -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, "delta", data)
        yield result_with(1)

    program = ExecutionHarness(parse_graph("a"), {"a": talks}).program
    execution = Execution(program, execution_id="x")
    subscription = execution.events() if is_subscribed else None
    assert await execution.run() == "failed"
    error = execution.error
    assert error is not None
    assert error["code"] == "invalid-delta"
    assert reason in error["message"]
    assert "'a'" in error["message"]
    assert subscription is None or "node.failed" in [e.type async for e in subscription]


@virtual_time
async def test_lone_surrogates_in_streamed_text_are_replaced() -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, "delta", {"text": "a\ud83d"})
        yield node_event(context, "delta", {"text": "ü\ude00b", "kind": "text"})
        yield result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": talks})
    assert await harness.run() == "completed"
    assert [(d["text"], d["offset"]) for d in harness.data_of("node.delta")] == [
        ("a\ufffd", 0), ("ü\ufffdb", 2),
    ]  # fmt: skip


@virtual_time
async def test_each_delta_carries_its_own_time() -> None:
    loop = asyncio.get_running_loop()

    async def talks(inputs: Inputs, context: Context) -> Any:
        for text in "ab":
            await asyncio.sleep(60)
            yield node_event(context, "delta", {"text": text})
        yield result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": talks}, now=lambda: f"{loop.time():g} s")
    assert await harness.run() == "completed"
    assert [e.at for e in harness.published if e.type == "node.delta"] == ["60 s", "120 s"]


@virtual_time
async def test_text_after_a_recorded_discard_begins_at_offset_0_and_comes_after_it() -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, "delta", {"text": "wrong"})
        await context.record("text_discarded", {"message": "again"})
        yield node_event(context, "delta", {"text": "right"})
        yield result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": talks})
    assert await harness.run() == "completed"
    told = [e.data for e in harness.published if e.type in ("node.delta", "node.event")]
    assert told == [
        {"kind": "text", "text": "wrong", "offset": 0},
        {"event_type": "text_discarded", "data": {"message": "again"}},
        {"kind": "text", "text": "right", "offset": 0},
    ]


@virtual_time
async def test_a_discard_that_is_not_awaited_is_refused() -> None:
    async def talks(inputs: Inputs, context: Context) -> Any:
        yield node_event(context, "text_discarded", {})
        yield result_with(1)

    harness = ExecutionHarness(parse_graph("a"), {"a": talks})
    assert await harness.run() == "completed"
    assert harness.data_of("node.event") == []
    (warning,) = harness.data_of("node.log")
    assert "recorded, not emitted" in warning["message"]
