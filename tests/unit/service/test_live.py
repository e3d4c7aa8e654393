import asyncio

from planwave.events import Event
from planwave.service.live import Feed, Live, watch
from planwave.storage.memory import MemoryStore
from planwave.storage.records import ExecutionRecord

ID = "01900000-0000-7000-8000-000000000001"


def event(seq: int, kind: str = "node.log") -> Event:
    return Event(ID, seq, "2026-01-01T00:00:00+00:00", kind, "a", 1, {"message": str(seq)})


async def store_with(*events: Event) -> MemoryStore:
    store = MemoryStore()
    record = ExecutionRecord(ID, None, "t", "p", "starting", "2026-01-01T00:00:00+00:00")
    await store.create_execution(record, [event(1, "execution.created"), *events])
    return store


async def test_a_feed_gives_what_was_put_and_then_waits() -> None:
    feed = Feed()
    feed.put([event(1), event(2)])
    assert [e.seq for e in await feed.take()] == [1, 2]
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(feed.take())
        await asyncio.sleep(0)
        assert not waiting.done()
        feed.put([event(3)])
    assert [e.seq for e in waiting.result()] == [3]


async def test_an_overfull_feed_forgets_and_says_so() -> None:
    feed = Feed(size=2)
    feed.put([event(1), event(2), event(3)])
    feed.put([event(4)])
    assert (await feed.take(), feed.lagging) == ([], True)


async def test_a_closed_feed_gives_the_rest_and_ends() -> None:
    feed = Feed()
    feed.put([event(1)])
    feed.close()
    assert [e.seq for e in await feed.take()] == [1]
    assert await feed.take() == []


async def test_an_execution_of_another_process_is_told_from_the_store_and_ends() -> None:
    store = await store_with(event(2), event(3))
    assert [e.seq async for e in watch(store, ID, None, after=1)] == [2, 3]


async def test_what_comes_from_store_and_feed_is_told_once() -> None:
    store, live = await store_with(event(2)), Live(ID)
    tail = watch(store, ID, live)
    assert (await anext(tail)).seq == 1
    live.publish([event(2), event(0, "node.delta"), event(3)])
    live.publish([event(4, "execution.completed")])
    assert [e.seq async for e in tail] == [2, 0, 3, 4]


async def test_a_slow_watcher_loses_streamed_text_but_no_stored_event() -> None:
    store, live = await store_with(), Live(ID)
    tail = watch(store, ID, live)
    assert (await anext(tail)).seq == 1
    for number in range(2, 30):
        await store.append(ID, 1, [event(number)])
        live.publish([event(0, "node.delta")] * 1000 + [event(number)])
    await store.append(ID, 1, [event(30, "execution.completed")])
    live.publish([event(30, "execution.completed")])
    assert [e.seq async for e in tail if e.seq] == list(range(2, 31))


async def test_a_watcher_ends_where_the_run_broke_without_a_terminal_event() -> None:
    store, live = await store_with(), Live(ID)
    tail = watch(store, ID, live)
    assert (await anext(tail)).seq == 1
    live.finish()
    assert [e async for e in tail] == []
    assert [e.seq async for e in watch(store, ID, live)] == [1]
