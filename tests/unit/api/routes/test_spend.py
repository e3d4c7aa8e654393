from __future__ import annotations

from planwave.events.usage import UsageTotal
from planwave.storage.execution_facts import planning_spend
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.in_process_client import in_process_client
from tests.support.service.dependencies import dependencies

GRAPH = make_graph(text_node("a", "one"))


async def test_planning_is_in_the_sums_and_with_the_executions_of_its_plan() -> None:
    async with in_process_client(dependencies(GRAPH)) as calls:
        plan = await calls.post_json("/api/plan", {"prompt": "do it"}, 201)
        used = {"input_tokens": 100, "output_tokens": 20, "cost_usd": 0.5}
        at = calls.service.now().isoformat()
        spent = planning_spend(plan["plan_id"], at, "openai", "big", [used])
        assert spent is not None
        await calls.service.spending._store.spend.add([spent])
        body = {"plan_id": plan["plan_id"], "start": True}
        made = await calls.post_json("/api/execute", body, 202)
        await calls.service.executions.wait(made["execution_id"])
        planning = UsageTotal(1, 100, 20, 0.5).as_json()
        shown = await calls.get_json(f"/api/executions/{made['execution_id']}")
        assert (shown["planning"], shown["usage"]["calls"]) == (planning, 0)
        [listed] = (await calls.get_json("/api/executions"))["executions"]
        assert listed["planning"] == planning
        report = await calls.get_json("/api/spend", by="model")
        [group] = report["groups"]
        assert (group["key"], group["cost_usd"], group["planning_cost_usd"]) == (
            "openai/big",
            0.5,
            0.5,
        )
        assert report["total"]["planning_tokens"] == 120
        refused = await calls.expect_problem("GET", "/api/spend", 422, since="tomorrow")
        assert refused["code"] == "invalid-time"
