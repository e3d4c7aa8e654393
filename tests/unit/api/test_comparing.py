from __future__ import annotations

from typing import Any

from planwave.api.comparing import DifferenceAnswer
from planwave.storage.ids import new_id
from tests.fakes.in_process import Calls, calling
from tests.fakes.service import graph_of, rooms, text_node

CHAIN = graph_of(text_node("a", "one"), text_node("b", "two"), edges=[("a", "b")])


async def ended(calls: Calls, **body: Any) -> str:
    made = await calls.made("/api/execute", {**body, "start": True}, 202)
    await calls.service.wait(made["execution_id"])
    return made["execution_id"]


async def test_two_executions_are_compared() -> None:
    async with calling(rooms(CHAIN)) as calls:
        plan_id = (await calls.made("/api/plan", {"prompt": "do it"}, 201))["plan_id"]
        first = await ended(calls, plan_id=plan_id)
        second = await ended(calls, plan_id=plan_id, inputs={"a": {"output": "other"}})
        told = await calls.got(f"/api/executions/{first}/diff/{second}", DifferenceAnswer)
        assert (told["a"], told["b"]) == (first, second)
        assert [node["path"] for node in told["nodes"]] == ["a"]
        await calls.refused("GET", f"/api/executions/{first}/diff/{new_id()}", 404)
