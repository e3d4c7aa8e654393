"""What a caller asks for under an id of its own is made once."""

from __future__ import annotations

from planwave.graph.model import Node
from planwave.service.service import Service
from planwave.storage.ids import new_id
from tests.fakes.service import HeldNode, FixedPlanner, make_graph, make_plan, dependencies, text_node

PLAN = make_graph(text_node("a"))


async def test_a_plan_under_ones_own_id_is_written_once() -> None:
    planner, own = FixedPlanner(make_plan(PLAN)), new_id()
    async with Service(dependencies(planner=planner)) as service:
        first = await service.create_plan("do it", plan_id=own)
        again = await service.create_plan("do it", plan_id=own)
        assert (first.plan_id, again.hash) == (own, first.hash)
        assert planner.goals == ["do it"]


async def test_an_execution_under_ones_own_id_is_made_once() -> None:
    async with Service(dependencies(PLAN)) as service:
        plan, own = await service.create_plan("do it"), new_id()
        for _ in range(2):
            record = await service.create_execution(plan.plan_id, execution_id=own)
            assert (record.execution_id, record.status) == (own, "starting")
        assert len(await service.executions()) == 1


async def test_an_execution_that_was_made_and_not_started_is_started_by_asking_again() -> None:
    held = HeldNode()
    graph = make_graph(Node("h", "held", "h"))
    async with Service(dependencies(graph, types=[held])) as service:
        plan, own = await service.create_plan("do it"), new_id()
        await service.create_execution(plan.plan_id, execution_id=own)
        await service.execute(plan.plan_id, execution_id=own)
        await held.started.wait()
        running = await service.execute(plan.plan_id, execution_id=own)
        assert (running.execution_id, running.status) == (own, "executing")
        held.release.set()
        await service.wait(own)
        ended = await service.execute(plan.plan_id, execution_id=own)
        assert ended.status == "completed"
