"""What a fork with the plan of a model is judged by: what the model wrote, not what its parent ran."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from planwave.errors import GraphInvalid
from planwave.graph.model import Graph, Node
from planwave.graph.operations import ReplaceGraph
from planwave.graph.plan import Plan
from planwave.ids import new_id
from planwave.planner.capabilities import NO_RULES, PlanRules
from planwave.service.executions.execution_service import UnstoredPlan
from planwave.service.service import Service
from tests.support.graph.builders import make_graph, make_plan, text_node
from tests.support.service.dependencies import FixedPlanner
from tests.unit.service.executions.test_commands import opened
from tests.unit.service.executions.test_fork_runs import Joins

TEXT = make_graph(text_node("a", "one"))
JOINS = make_graph(text_node("a", "one"), Node("j", "joins", "J"))
ONLY_TEXT = PlanRules(["text"])


@dataclass
class RuledPlanner(FixedPlanner):
    """A model whose plans may contain what its rules say now."""

    rules: PlanRules = NO_RULES


def written(graph: Graph) -> Plan:
    return replace(make_plan(graph, new_id()), provider="openai")


async def ended(service: Service, plan: Any) -> str:
    record = await service.executions.execute(plan)
    assert (await service.executions.wait(record.execution_id)).status == "completed"
    return record.execution_id


async def named_document(service: Service, plan_id: str) -> dict[str, Any]:
    """The graph of a plan as the page sends it: with the id of the plan."""
    document = (await service.plans.get(plan_id)).document
    return {"plan_id": plan_id, "nodes": document["nodes"], "edges": document["edges"]}


async def test_another_plan_of_a_model_is_judged_by_what_the_model_wrote_in_it(
    tmp_path: Path,
) -> None:
    model = RuledPlanner(written(TEXT))
    async with opened(tmp_path, TEXT, Joins(), planner=model) as service:
        first = await ended(service, (await service.plans.create("text")).plan_id)
        model.plan = written(JOINS)
        other = (await service.plans.create("joins")).plan_id
        model.rules = ONLY_TEXT
        with pytest.raises(GraphInvalid, match="has changed since"):
            await service.executions.execute(other)
        graph = await named_document(service, other)
        for start in (service.executions.fork, service.executions.preview_fork):
            with pytest.raises(GraphInvalid, match="has changed since"):
                await start(first, graph=graph)


@pytest.mark.parametrize("by_model", [False, True])
async def test_what_people_added_to_the_plan_of_a_model_stays_theirs_in_a_fork_after_a_restart(
    by_model: bool, tmp_path: Path
) -> None:
    """The parent ran a graph that is not stored, or a plan of the model with other steps."""
    model = RuledPlanner(written(make_graph(text_node("p", "before"))))
    async with opened(tmp_path, TEXT, Joins(), planner=model) as service:
        source: Any = UnstoredPlan(make_plan(TEXT))
        if by_model:
            source = (await service.plans.create("before")).plan_id
        first = await ended(service, source)
        model.plan = written(TEXT)
        plan_id = (await service.plans.create("text")).plan_id
        change = ReplaceGraph(JOINS.to_document())
        await service.plans.edit(plan_id, [change], expected=None)
        model.rules = ONLY_TEXT
        await ended(service, plan_id)
        graph = await named_document(service, plan_id)
        fork = (await service.executions.fork(first, graph=graph, start=False)).execution_id
    async with opened(tmp_path, TEXT, Joins(), planner=model) as service:
        await service.executions.start(fork)
        assert (await service.executions.wait(fork)).status == "completed"
        again = await service.executions.fork(fork, rerun=["j"])
        assert (await service.executions.wait(again.execution_id)).status == "completed"


async def test_what_people_edited_for_an_approval_stays_theirs_after_a_restart(
    tmp_path: Path,
) -> None:
    model = RuledPlanner(written(TEXT))
    model.rules = ONLY_TEXT
    async with opened(tmp_path, TEXT, Joins(), planner=model) as service:
        plan_id = (await service.plans.create("text")).plan_id
        asking = await service.executions.execute(plan_id, require_approval=True)
        await service.executions.wait(asking.execution_id)
        await service.plans.edit(
            plan_id, [ReplaceGraph(make_graph(text_node("b", "b")).to_document())], expected=None
        )
        (request,) = await service.executions.requests(asking.execution_id)
        answer: Any = {"decision": "edit", "value": JOINS.to_document()}
        edited = await service.executions.answer(asking.execution_id, request.request_id, answer)
        assert edited.plan_id != plan_id
        await service.executions.wait(edited.execution_id)
    async with opened(tmp_path, TEXT, Joins(), planner=model) as service:
        (request,) = await service.executions.requests(edited.execution_id)
        await service.executions.answer(
            edited.execution_id, request.request_id, {"decision": "approve"}
        )
        assert (await service.executions.wait(edited.execution_id)).status == "completed"
