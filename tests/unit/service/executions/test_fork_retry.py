"""Retries of retries: what was paid for generations ago holds as well as what was paid for last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.graph.builders import make_graph, text_node
from tests.unit.service.executions.test_commands import executed, opened
from tests.unit.service.executions.test_fork_nested import (
    FIVE,
    SAID,
    Pays,
    came_to,
    failed,
    loop,
    retried,
)
from tests.unit.service.executions.test_fork_runs import CHAIN, Joins, joins, result


async def test_cancelled_retry_keeps_earlier_results_reusable(
    tmp_path: Path,
) -> None:
    work = Pays("loop[3]/b")
    async with opened(tmp_path, loop(parallel=1), work) as service:
        first = await failed(service)
        second = (await service.executions.retry(first, start=False)).execution_id
        await service.executions.cancel(second)
        assert (await service.executions.wait(second)).status == "cancelled"
        work.repair()
        third = await retried(service, second)
        assert await came_to(service, third) == SAID
        assert work.paid() == {"loop[3]/b", "loop[4]/a", "loop[4]/b"}
        events = await service.executions.events(third)
        origins = {e.data["reused"]["execution_id"] for e in events if "reused" in e.data}
        assert origins == {first}, "it says where that is from"


async def test_nested_results_of_a_reused_node_stay_reusable(
    tmp_path: Path,
) -> None:
    work = Pays()
    async with opened(tmp_path, loop(), work) as service:
        first = await executed(service)
        await came_to(service, first)
        work.repair()
        changes: Any = {"last": {"data": {"text": "So: {{ input }}"}}}
        second = (await service.executions.fork(first, changes=changes)).execution_id
        await came_to(service, second)
        items = [*FIVE[:4], "new"]
        third = await service.executions.fork(second, changes={"loop": {"data": {"items": items}}})
        assert await came_to(service, third.execution_id) == [f"{item}+b" for item in items]
        assert work.paid() == {"loop[4]/a", "loop[4]/b"}


async def test_rerun_of_a_cancelled_fork_is_not_reused_from_before(tmp_path: Path) -> None:
    work = Joins()
    async with opened(tmp_path, CHAIN, work) as service:
        first = await executed(service)
        await result(service, first)
        second = (await service.executions.fork(first, rerun=["a"], start=False)).execution_id
        await service.executions.cancel(second)
        assert (await service.executions.wait(second)).status == "cancelled"
        work.runs.clear()
        third = await retried(service, second)
        assert (await result(service, third))["c"] == "a+b+c"
        assert work.runs == {"a": 1}, "what follows it holds, as it came to the same"


async def test_preset_outputs_apply_to_retries(tmp_path: Path) -> None:
    work = Joins()
    async with opened(tmp_path, CHAIN, work) as service:
        first = await executed(service)
        await result(service, first)
        changes: Any = {"a": {"data": {"say": "A"}}, "b": {"outputs": {"output": "set"}}}
        work.broken = {"a"}
        own = (await service.executions.fork(first, changes=changes)).execution_id
        for _ in range(2):
            assert (await result(service, own)).get("b") is None, "it was never come to"
            own = await retried(service, own)
        await service.executions.wait(own)
        work.broken.clear()
        work.runs.clear()
        own = await retried(service, own)
        assert await result(service, own) == {"a": "A", "b": "set", "c": "set+c", "d": "A+d"}
        assert work.runs == {"a": 1, "c": 1, "d": 1}


async def test_rerun_of_nested_nodes_is_not_reused_from_before(tmp_path: Path) -> None:
    work = Pays()
    async with opened(tmp_path, loop(), work) as service:
        first = await executed(service)
        await came_to(service, first)
        second = (await service.executions.fork(first, rerun=["loop"], start=False)).execution_id
        await service.executions.cancel(second)
        work.repair()
        third = await retried(service, second)
        assert await came_to(service, third) == SAID
        assert len(work.paid()) == 2 * len(FIVE)


async def test_deleted_generation_ends_the_reuse_chain(tmp_path: Path) -> None:
    work = Joins()
    graph = make_graph(joins("a"), text_node("t", "{{ input }}"), edges=[("a", "t")])
    async with opened(tmp_path, graph, work) as service:
        own = await executed(service)
        await result(service, own)
        executions = [own]
        for _ in range(2):
            own = (await service.executions.fork(own, start=False)).execution_id
            await service.executions.cancel(own)
            executions.append(own)
        last = await retried(service, own)
        await result(service, last)
        assert work.runs == {"a": 1}
        await service.maintenance.delete_execution(executions[1])
        await result(service, await retried(service, own))
        assert work.runs == {"a": 2}
