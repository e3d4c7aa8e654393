from __future__ import annotations

from typing import Any

from planwave.api.comparing import DifferenceResponse
from planwave.storage.ids import new_id
from tests.fakes.in_process import InProcessClient, in_process_client
from tests.fakes.service import make_graph, dependencies, text_node

CHAIN = make_graph(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])


async def ended(calls: InProcessClient, **body: Any) -> str:
    made = await calls.post_json("/api/execute", {**body, "start": True}, 202)
    await calls.service.wait(made["execution_id"])
    return made["execution_id"]


async def test_two_executions_are_compared() -> None:
    async with in_process_client(dependencies(CHAIN)) as calls:
        plan_id = (await calls.post_json("/api/plan", {"prompt": "do it"}, 201))["plan_id"]
        first = await ended(calls, plan_id=plan_id)
        second = await ended(calls, plan_id=plan_id, inputs={"a": {"output": "other"}})
        told = await calls.get_json(f"/api/executions/{first}/diff/{second}", DifferenceResponse)
        assert (told["a"], told["b"]) == (first, second)
        assert [node["path"] for node in told["nodes"]] == ["a"]
        await calls.expect_problem("GET", f"/api/executions/{first}/diff/{new_id()}", 404)
