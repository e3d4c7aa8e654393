"""What a service says of executions that its process does not run, though their status says so."""

from __future__ import annotations

import asyncio
from typing import Any

from planwave.events import Event
from planwave.executor.options import RunOptions
from planwave.graph.plan import graph_hash
from planwave.ids import new_id
from planwave.service.executions.run_spec import RunSpec, new_execution
from planwave.service.service import Service
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

AT = "2026-01-01T00:00:00.000000+00:00"
GRAPH = make_graph(text_node("a"))


async def leave_executing(store: Any) -> str:
    """Store an execution as a process does that is killed while it runs."""
    execution_id = new_id()
    spec = RunSpec(graph=GRAPH, inputs={}, options=RunOptions(), plan_hash=graph_hash(GRAPH))
    record, created = new_execution(spec, 1, execution_id, AT, queued=True)
    await store.create_execution(record, [created])
    started = Event(execution_id, 2, AT, "execution.started", None, None, {"waves": 1})
    await store.append(execution_id, await store.claim(execution_id), [started])
    return execution_id


async def interrupted(service: Service) -> set[str]:
    executions = service.executions
    return set(await executions.interrupted(await executions.list()))


async def test_what_a_service_does_not_run_is_interrupted_until_it_is_resumed() -> None:
    async with Service(dependencies(GRAPH)) as service:
        await service.executions.recover()
        await asyncio.sleep(0)
        left = await leave_executing(service.executions._store)
        assert await interrupted(service) == {left}
        await service.executions.resume(left)
        assert await interrupted(service) == set()
        await service.executions.wait(left)
        assert (await service.executions.get(left)).status == "completed"


async def test_nothing_is_interrupted_before_a_service_has_recovered_what_is_left() -> None:
    async with Service(dependencies(GRAPH)) as service:
        await leave_executing(service.executions._store)
        assert await interrupted(service) == set()
