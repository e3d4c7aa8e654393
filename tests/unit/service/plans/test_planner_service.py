import json
from dataclasses import replace

from planwave.service.service import Service
from planwave.settings import Limits
from tests.support.graph.builders import make_graph, text_node
from tests.support.service.dependencies import dependencies

CHAIN = make_graph(text_node("a"), text_node("b"), edges=[("a", "b")])


async def test_stored_plan_is_validated_against_current_limits() -> None:
    created = dependencies(CHAIN)
    async with Service(created) as service:
        plan = await service.create_plan("do it")
        report = await service.validate(plan.plan_id)
        assert (report.can_run, report.envelope["plan_id"]) == (True, plan.plan_id)
        assert report.graph == CHAIN
    tighter = replace(created, limits=Limits(nodes=1))
    async with Service(tighter) as service:
        report = await service.validate(plan.plan_id)
        assert not report.can_run
        assert [found.code for found in report.diagnostics] == ["limit-exceeded"]


async def test_stored_plan_is_forecast() -> None:
    async with Service(dependencies(CHAIN)) as service:
        plan = await service.read_plan(json.dumps(CHAIN.to_document()))
        await service.create_execution(plan)
        assert await service.forecast(plan.plan_id) == plan.forecast
        assert plan.forecast["waves"] == 2
