"""From any place in an execution's history to its present: no gap, no repeat, every token once."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from planwave.errors import Conflict, NotFound, ShuttingDown
from planwave.events import Event
from planwave.graph.model import Node
from planwave.service.service import Service
from planwave.service.streaming import subscriptions
from planwave.service.streaming.event_tail import EventTail
from planwave.service.streaming.live_execution import LiveExecution
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch
from planwave.service.streaming.subscriptions import LiveExecutions
from planwave.storage.records import ExecutionRecord
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.graph.builders import make_graph, text_node
from tests.support.nodes.held_nodes import HeldNode
from tests.support.nodes.streaming_nodes import StreamingNode, streamed_text, streaming_node
from tests.support.server.stream_checker import StreamChecker
from tests.support.service.dependencies import dependencies, execute_goal
from tests.support.virtual_loop import virtual_time

FREE = BacklogLimits()
TELLING = make_graph(
    streaming_node("a"),
    streaming_node("b", 30),
    streaming_node("c"),
    edges=[("a", "b"), ("a", "c"), ("b", "c")],
)


class CountingStore(MemoryStore):
    """Says how often events were read, and lets others run meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[int, int | None]] = []

    async def events(
        self, execution_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        self.reads.append((after, limit))
        await asyncio.sleep(0)
        return await super().events(execution_id, after=after, limit=limit)


def slowly(seconds: float) -> Callable[[], Any]:
    return lambda: asyncio.sleep(seconds)


async def stored(store: MemoryStore, logs: int, *, is_over: bool = True) -> str:
    """Store an execution with so many log events."""
    execution_id = "01900000-0000-7000-8000-00000000000a"
    graph = {"nodes": [{"id": "a", "type": "t"}], "edges": []}
    kinds: list[tuple[str, str | None, dict[str, Any]]] = [
        ("execution.created", None, {"graph": graph}),
        ("execution.started", None, {"waves": 1}),
        ("node.started", "a", {"wave": 1}),
        *[("node.log", "a", {"message": f"{n}"}) for n in range(logs)],
    ]
    if is_over:
        kinds += [("node.completed", "a", {"outputs": {}}), ("execution.completed", None, {})]
    events = [
        Event(execution_id, seq, "t", kind, path, None, data)
        for seq, (kind, path, data) in enumerate(kinds, 1)
    ]
    record = ExecutionRecord(execution_id, None, "t", "g", "starting", "t")
    await store.create_execution(record, events)
    return execution_id


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("node.completed", {"outputs": {}, "duration_s": "soon"}),
        ("node.failed", {"error": "odd"}),
        ("wave.started", {"wave": 1, "nodes": 3}),
    ],
)
async def test_unreadable_events_are_rejected_at_subscription(
    kind: str, data: dict[str, Any]
) -> None:
    store = MemoryStore()
    execution_id = await stored(store, 0, is_over=False)
    path = None if kind == "wave.started" else "a"
    odd = Event(execution_id, 4, "2026-01-01T00:00:00.000000Z", kind, path, 1, data)
    await store.append(execution_id, await store.claim(execution_id), [odd])
    with pytest.raises(Conflict, match="cannot be read") as refused:
        async with LiveExecutions(store).acquire(execution_id):
            pass
    assert refused.value.code == "unreadable"


async def test_the_state_of_what_another_process_drives_is_that_of_the_store() -> None:
    """Also where nobody watches it, and no note said that there are further events."""
    store = MemoryStore()
    execution_id = await stored(store, 0, is_over=False)
    lives = LiveExecutions(store)
    lives.catch_up = EventTail(store, lives, LiveExecution.publish).catch_up
    async with lives.acquire(execution_id):
        asked = {"request_id": "r4", "request": {"kind": "approval"}}
        waiting = Event(execution_id, 4, "t", "node.waiting", "a", 1, asked)
        await store.append(execution_id, await store.claim(execution_id), [waiting])
        assert list((await lives.state(execution_id)).requests) == ["r4"]


def seqs(frames: list[EventBatch]) -> list[int]:
    return [event.seq for frame in frames for event in frame.events]


# -- no gap, no repeat


@pytest.mark.parametrize("seed", range(5))
@virtual_time
async def test_hundred_reconnects_deliver_every_event_and_token_once(
    seed: int,
) -> None:
    choose = random.Random(seed)  # noqa: S311 - a fixed seed
    async with Service(dependencies(TELLING, types=[StreamingNode(slowly(0.02))])) as service:
        record = await execute_goal(service)
        checker = StreamChecker()
        connections = 0
        while not checker.is_done:
            connections += 1
            checker.reconnected()
            is_staying = connections > 100
            stay = 1000.0 if is_staying else choose.choice([0, 0.001, 0.01, 0.03, 0.1])
            async with service.executions.subscribe(
                record.execution_id, checker.cursor
            ) as watching:
                with suppress(TimeoutError):
                    async with asyncio.timeout(stay):
                        async for frame in watching:
                            events = frame.events
                            if not is_staying and choose.random() < 0.3:  # gone in its midst
                                events = events[: choose.randrange(len(events))]
                            for event in events:
                                checker.accept(event)
                            if len(events) < len(frame.events):
                                break
        last = (await service.executions.wait(record.execution_id)).last_seq
    assert connections > 20
    assert checker.cursor == last
    assert checker.texts == {
        "a": streamed_text("a"),
        "b": streamed_text("b", 30),
        "c": streamed_text("c"),
    }


@virtual_time
async def test_subscriber_receives_everything_live() -> None:
    async with Service(dependencies(TELLING, types=[StreamingNode(slowly(0.02))])) as service:
        record = await execute_goal(service)
        checker = StreamChecker()
        async for event in service.executions.watch(record.execution_id):
            checker.accept(event)
    assert checker.texts["b"] == streamed_text("b", 30)
    assert checker.deltas > 20


@pytest.mark.parametrize("after", [0, 1, 7, 99, 100, 101, 250, 305, 10**9])
async def test_history_is_read_from_any_cursor(after: int) -> None:
    store = MemoryStore()
    execution_id = await stored(store, 300)
    async with LiveExecutions(store).subscribe(
        execution_id, after, FREE, with_snapshot=False
    ) as watching:
        assert watching.cursor == min(after, 305)
        frames = [frame async for frame in watching]
        assert watching.cursor == 305
    assert seqs(frames) == list(range(after + 1, 306))


async def test_long_history_is_read_completely() -> None:
    store = MemoryStore()
    execution_id = await stored(store, 1_500)
    async with LiveExecutions(store).subscribe(
        execution_id, 1_490, FREE, with_snapshot=False
    ) as watching:
        assert watching.live.state.status == "completed"
        assert seqs([frame async for frame in watching]) == list(range(1_491, 1_506))


async def test_subscriber_without_cursor_gets_only_new_events() -> None:
    store = MemoryStore()
    execution_id = await stored(store, 5, is_over=False)
    lives = LiveExecutions(store)
    async with lives.subscribe(execution_id, None, FREE, with_snapshot=True) as watching:
        assert watching.cursor == 8
        assert b'"last_seq":8' in (watching.snapshot or b"")
        watching.live.publish([Event(execution_id, 9, "t", "execution.cancelled", None, None, {})])
        assert seqs([frame async for frame in watching]) == [9]


@virtual_time
async def test_streamed_text_precedes_the_end_of_its_node() -> None:
    graph = make_graph(streaming_node("a"), Node("h", "held", "H"), edges=[("a", "h")])
    held = HeldNode()
    async with Service(dependencies(graph, types=[StreamingNode(), held])) as service:
        record = await execute_goal(service)
        await held.started.wait()
        async with service.executions.subscribe(record.execution_id, 0) as watching:
            frame = await watching.next()
            assert frame is not None
            types = [(e.type, e.path) for e in frame.events]
        at = types.index(("node.delta", "a"))
        assert types[at + 1] == ("node.completed", "a")
        assert frame.events[at].data == {"kind": "text", "text": streamed_text("a"), "offset": 0}
        async with service.executions.subscribe(record.execution_id, frame.last_seq) as watching:
            held.release.set()
            events = [e async for f in watching for e in f.events]
        assert "node.delta" not in [e.type for e in events]


# -- what many share


async def test_concurrent_reconnects_share_one_read() -> None:
    store = CountingStore()
    execution_id = await stored(store, 300)
    lives = LiveExecutions(store)
    received: list[list[int]] = []

    async def catch_up() -> None:
        async with lives.subscribe(execution_id, 50, FREE, with_snapshot=False) as watching:
            frames = []
            async for frame in watching:
                frames.append(frame)
                await asyncio.sleep(0)
            received.append(seqs(frames))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(100):
            tasks.create_task(catch_up())
    assert received == [list(range(51, 306))] * 100
    assert store.reads == [(0, None), (50, 50), (100, 100), (200, 100), (300, 5)]


async def test_history_pages_are_not_cached_without_readers() -> None:
    store = CountingStore()
    execution_id = await stored(store, 300)
    lives = LiveExecutions(store)
    for _ in range(2):
        async with lives.subscribe(execution_id, 200, FREE, with_snapshot=False) as watching:
            assert (await watching.next()) is not None
    assert store.reads == [(0, None), (200, 100), (0, None), (200, 100)]


async def test_concurrent_readers_share_one_projection() -> None:
    store = CountingStore()
    execution_id = await stored(store, 5, is_over=False)
    lives = LiveExecutions(store)
    met = asyncio.Barrier(20)
    found: set[int] = set()

    async def look() -> None:
        async with lives.acquire(execution_id) as live:
            found.add(id(live))
            await met.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(20):
            tasks.create_task(look())
    assert len(found) == 1
    assert store.reads == [(0, None)]
    assert lives.get(execution_id) is None


async def test_cancelled_reader_lets_the_next_one_read() -> None:
    store = CountingStore()
    execution_id = await stored(store, 5)
    lives = LiveExecutions(store)

    async def look() -> None:
        async with lives.acquire(execution_id):
            pass

    async with asyncio.TaskGroup() as tasks:
        first, second = (tasks.create_task(look()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
    assert first.cancelled()
    assert second.done()


# -- what is gone


async def test_unknown_execution_is_not_found() -> None:
    with pytest.raises(NotFound, match="no execution"):
        async with LiveExecutions(MemoryStore()).acquire("nope"):
            pass


async def test_execution_deleted_during_subscription_is_reported() -> None:
    store = MemoryStore()
    execution_id = await stored(store, 300)
    async with LiveExecutions(store).subscribe(
        execution_id, 0, FREE, with_snapshot=False
    ) as watching:
        await watching.next()
        await store.delete_execution(execution_id)
        with pytest.raises(NotFound, match="no execution"):
            await watching.next()


# -- after the end


@virtual_time
async def test_streamed_text_is_retained_for_a_while_after_the_end() -> None:
    async with Service(
        dependencies(make_graph(streaming_node("a")), types=[StreamingNode()])
    ) as service:
        record = await execute_goal(service)
        await service.executions.wait(record.execution_id)

        async def told() -> list[str]:
            return [event.type async for event in service.executions.watch(record.execution_id)]

        assert "node.delta" in await told()
        await asyncio.sleep(subscriptions.RETENTION_S + 1)
        assert "node.delta" not in await told()
        assert (await told())[-1] == "execution.completed"


@virtual_time
async def test_retained_text_is_limited_by_size(monkeypatch) -> None:
    monkeypatch.setattr(subscriptions, "RETENTION_BYTES", 10_000)
    graph = make_graph(streaming_node("a", 200))
    async with Service(dependencies(graph, types=[StreamingNode()])) as service:
        plan = await service.plans.create("do it")
        saved: list[bool] = []
        ids: list[str] = []
        for _ in range(4):
            record = await service.executions.execute(plan.plan_id)
            await service.executions.wait(record.execution_id)
            ids.append(record.execution_id)
        for execution_id in ids:
            types = [event.type async for event in service.executions.watch(execution_id)]
            saved.append("node.delta" in types)
    assert saved[-1]
    assert not saved[0]


@virtual_time
async def test_execution_without_text_is_not_retained() -> None:
    held = HeldNode()
    async with Service(dependencies(make_graph(Node("h", "held", "H")), types=[held])) as service:
        record = await execute_goal(service)
        async with service.executions.subscribe(record.execution_id) as watching:
            held.release.set()
            assert [frame.is_last async for frame in watching][-1]
            await service.executions.wait(record.execution_id)
            assert service.load.subscribers == 1
        assert not any(service.load)
        assert list(service.executions.live_executions) == []


NOBODY = "01900000-0000-7000-8000-0000000000ff"
HELD = make_graph(Node("h", "held", "H"), text_node("after"), edges=[("h", "after")])


async def begun(service: Service, held: HeldNode) -> str:
    record = await execute_goal(service)
    await held.started.wait()
    return record.execution_id


@virtual_time
async def test_status_updates_come_at_intervals_and_at_the_end() -> None:
    held, loop = HeldNode(), asyncio.get_running_loop()
    seen: list[tuple[float, Any]] = []
    async with Service(dependencies(HELD, types=[held])) as service:
        execution_id = await begun(service, held)
        async for summary in service.executions.status_updates(execution_id, 2.0):
            seen.append((loop.time(), json.loads(summary)))
            assert service.load.subscribers == 1
            if len(seen) == 3:
                loop.call_later(0.5, held.release.set)
        assert service.load.subscribers == 0
    assert [at for at, _ in seen] == [0, 2, 4, 4.5]
    assert [shown["status"] for _, shown in seen] == ["executing"] * 3 + ["completed"]
    assert seen[-1][1]["node_states"] == {"h": "completed", "after": "completed"}
    assert seen[-1][1]["logs"][-1] == "Execution completed. Status: completed"
    assert seen[-1][1]["wave"] == {"current": 2, "total": 2}


@virtual_time
async def test_status_updates_wait_for_the_start() -> None:
    statuses: list[str] = []
    async with Service(dependencies(make_graph(text_node("a")))) as service:
        plan = await service.plans.create("do it")
        created = await service.executions.create(plan.plan_id)
        async for summary in service.executions.status_updates(created.execution_id, 1.0):
            statuses.append(json.loads(summary)["status"])
            if len(statuses) == 2:
                await service.executions.start(created.execution_id)
    assert statuses == ["starting", "starting", "completed"]


@virtual_time
async def test_draining_service_ends_subscriptions() -> None:
    held = HeldNode()
    async with Service(dependencies(HELD, types=[held])) as service:
        execution_id = await begun(service, held)

        async def look() -> None:
            with pytest.raises(ShuttingDown):
                _ = [
                    summary
                    async for summary in service.executions.status_updates(execution_id, 1000)
                ]

        async def follow() -> None:
            with pytest.raises(ShuttingDown):
                _ = [event async for event in service.executions.watch(execution_id)]

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(look())
            tasks.create_task(follow())
            await asyncio.sleep(1)
            service.close_streams()
        held.release.set()


async def test_unknown_execution_cannot_be_watched() -> None:
    async with Service(dependencies()) as service:
        with pytest.raises(NotFound):
            _ = [event async for event in service.executions.watch(NOBODY)]
        with pytest.raises(NotFound):
            _ = [summary async for summary in service.executions.status_updates(NOBODY, 1)]
        with pytest.raises(NotFound):
            async with service.executions.subscribe(NOBODY, 0):
                pass


@virtual_time
async def test_deleted_execution_with_retained_text_is_not_found() -> None:
    async with Service(
        dependencies(make_graph(streaming_node("a")), types=[StreamingNode()])
    ) as service:
        record = await execute_goal(service)
        await service.executions.wait(record.execution_id)
        assert (await service.executions.state(record.execution_id)).nodes[
            "a"
        ].text == streamed_text("a")
        await service.maintenance.delete_execution(record.execution_id)
        with pytest.raises(NotFound):
            await service.executions.state(record.execution_id)
        with pytest.raises(NotFound):
            _ = [event async for event in service.executions.watch(record.execution_id)]
