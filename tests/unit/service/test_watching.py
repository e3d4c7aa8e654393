from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from planwave.errors import ShuttingDown, NotFound, StoreError
from planwave.graph.model import Node
from planwave.service.service import Service
from planwave.storage.memory import MemoryStore
from tests.fakes.service import HeldNode, make_graph, dependencies, text_node
from tests.fakes.streaming import StreamingNode, streaming_node, streamed_text
from tests.fakes.virtual_loop import virtual_time

NOBODY = "01900000-0000-7000-8000-0000000000ff"
HELD = make_graph(Node("h", "held", "H"), text_node("after"), edges=[("h", "after")])


async def begun(service: Service, held: HeldNode) -> str:
    plan = await service.create_plan("do it")
    record = await service.execute(plan.plan_id)
    await held.started.wait()
    return record.execution_id


@virtual_time
async def test_glances_come_now_then_every_interval_and_at_once_with_the_end() -> None:
    held, loop = HeldNode(), asyncio.get_running_loop()
    seen: list[tuple[float, Any]] = []
    async with Service(dependencies(HELD, types=[held])) as service:
        execution_id = await begun(service, held)
        async for glance in service.status_updates(execution_id, 2.0):
            seen.append((loop.time(), json.loads(glance)))
            assert service.load.watchers == 1
            if len(seen) == 3:
                loop.call_later(0.5, held.release.set)
        assert service.load.watchers == 0
    assert [at for at, _ in seen] == [0, 2, 4, 4.5]
    assert [shown["status"] for _, shown in seen] == ["executing"] * 3 + ["completed"]
    assert seen[-1][1]["node_states"] == {"h": "completed", "after": "completed"}
    assert seen[-1][1]["logs"][-1] == "Execution completed. Status: completed"
    assert seen[-1][1]["wave"] == {"current": 2, "total": 2}


@virtual_time
async def test_one_glance_is_enough_for_what_is_over() -> None:
    async with Service(dependencies(make_graph(text_node("a")))) as service:
        plan = await service.create_plan("do it")
        record = await service.execute(plan.plan_id)
        await service.wait(record.execution_id)
        glances = [json.loads(glance) async for glance in service.status_updates(record.execution_id, 1)]
    assert [glance["status"] for glance in glances] == ["completed"]


@virtual_time
async def test_what_was_made_and_not_started_is_looked_at_until_it_is() -> None:
    statuses: list[str] = []
    async with Service(dependencies(make_graph(text_node("a")))) as service:
        plan = await service.create_plan("do it")
        made = await service.create_execution(plan.plan_id)
        async for glance in service.status_updates(made.execution_id, 1.0):
            statuses.append(json.loads(glance)["status"])
            if len(statuses) == 2:
                await service.start(made.execution_id)
    assert statuses == ["starting", "starting", "completed"]


@virtual_time
async def test_every_watcher_is_told_when_the_service_goes_down() -> None:
    held = HeldNode()
    async with Service(dependencies(HELD, types=[held])) as service:
        execution_id = await begun(service, held)

        async def look() -> None:
            with pytest.raises(ShuttingDown):
                _ = [glance async for glance in service.status_updates(execution_id, 1000)]

        async def follow() -> None:
            with pytest.raises(ShuttingDown):
                _ = [event async for event in service.watch(execution_id)]

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(look())
            tasks.create_task(follow())
            await asyncio.sleep(1)
            service.close_streams()
        held.release.set()


async def test_nobody_can_watch_what_does_not_exist() -> None:
    async with Service(dependencies()) as service:
        with pytest.raises(NotFound):
            _ = [event async for event in service.watch(NOBODY)]
        with pytest.raises(NotFound):
            _ = [glance async for glance in service.status_updates(NOBODY, 1)]
        with pytest.raises(NotFound):
            async with service.subscribe(NOBODY, 0):
                pass


class Refusing(MemoryStore):
    async def append(self, execution_id: str, epoch: int, events: Any) -> None:
        raise StoreError("the disk is full")


async def test_who_looks_at_a_run_that_broke_is_told_why() -> None:
    async with Service(dependencies(HELD, types=[HeldNode()], store=Refusing())) as service:
        plan = await service.create_plan("do it")
        record = await service.execute(plan.plan_id)
        with pytest.raises(StoreError, match="disk is full"):
            _ = [glance async for glance in service.status_updates(record.execution_id, 1000)]


@virtual_time
async def test_what_was_deleted_is_not_shown_though_its_text_would_still_be_there() -> None:
    async with Service(dependencies(make_graph(streaming_node("a")), types=[StreamingNode()])) as service:
        plan = await service.create_plan("do it")
        record = await service.execute(plan.plan_id)
        await service.wait(record.execution_id)
        assert (await service.state(record.execution_id)).nodes["a"].text == streamed_text("a")
        await service.delete_execution(record.execution_id)
        with pytest.raises(NotFound):
            await service.state(record.execution_id)
        with pytest.raises(NotFound):
            _ = [event async for event in service.watch(record.execution_id)]
