"""Plans that are changed through both clients, against the service on a real socket."""

from __future__ import annotations

import asyncio

import pytest

from planwave.client import AsyncClient, Client
from planwave.errors import (
    GraphInvalid,
    InvalidOperation,
    PreconditionFailed,
    PreconditionRequired,
)
from planwave.ids import new_id
from tests.support.server.running_server import RunningServer

BAD = {"op": "add_node", "node": {"id": "bad", "type": "nothing"}}


def text_node(node_id: str) -> dict[str, object]:
    return {"op": "add_node", "node": {"id": node_id, "type": "text", "data": {"text": node_id}}}


def test_a_plan_is_changed_compared_and_restored(server: RunningServer) -> None:
    with Client(server.base_url) as client:
        plan = client.create_plan("texts")
        plan_id = plan["plan_id"]
        second = client.edit_plan(
            plan_id, [text_node("new")], if_match=plan["hash"], author="person", note="why"
        )
        assert (second["revision"], client.plan(plan_id)) == (2, second)
        with pytest.raises(PreconditionFailed) as refused:
            client.edit_plan(plan_id, [text_node("late")], if_match=plan["hash"])
        assert (refused.value.code, refused.value.current) == ("plan-changed", second["hash"])
        with pytest.raises(InvalidOperation) as invalid:
            client.edit_plan(plan_id, [text_node("new")], if_match=second["hash"])
        assert invalid.value.code == "invalid-operation"
        assert invalid.value.diagnostics[0].pointer == "/operations/0/node/id"
        draft = client.edit_plan(plan_id, [BAD], if_match=second["hash"])
        with pytest.raises(GraphInvalid):
            client.execute(plan_id)
        page = client.plan_revisions(plan_id, limit=2)
        assert [each["error_count"] for each in page["revisions"]] == [1, 0]
        (first,) = client.plan_revisions(plan_id, cursor=page["next_cursor"])["revisions"]
        assert (first["revision"], first["hash"]) == (1, plan["hash"])
        assert client.plan_revision(plan_id, 2)["nodes"] == second["nodes"]
        assert [each["id"] for each in client.diff_revisions(plan_id, 1)["nodes"]] == ["new", "bad"]
        assert client.diff_revisions(plan_id, 2, 2)["nodes"] == []
        back = client.restore_revision(plan_id, 1, if_match=draft["hash"], idempotency_key=new_id())
        assert (back["revision"], back["hash"]) == (4, plan["hash"])
        made = client.execute(plan_id)
        client.wait(made["execution_id"])
        assert client.execution(made["execution_id"])["plan_hash"] == plan["hash"]


async def test_editors_at_once_lose_nothing(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client:
        plan = await client.create_plan("texts")
        plan_id, node_id = plan["plan_id"], plan["nodes"][0]["id"]

        async def add(name: str) -> None:
            mine = plan
            while True:
                try:
                    await client.edit_plan(plan_id, [text_node(name)], if_match=mine["hash"])
                except PreconditionFailed:
                    mine = await client.plan(plan_id)
                else:
                    return

        async def move(name: str) -> None:
            where = {"op": "update_node", "id": node_id, "set": {"ui": {name: 1}}}
            await client.edit_plan(plan_id, [where], if_match="*")

        async with asyncio.TaskGroup() as group:
            for name in "abcd":
                group.create_task(add(f"new_{name}"))
                group.create_task(move(name))
        final = await client.plan(plan_id)
        nodes = {node["id"]: node for node in final["nodes"]}
        assert {f"new_{name}" for name in "abcd"} <= nodes.keys()
        assert nodes[node_id].get("ui") == dict.fromkeys("abcd", 1)
        assert final["revision"] == 5


def test_change_without_a_hash_is_refused_as_in_process(server: RunningServer) -> None:
    with Client(server.base_url) as client:
        plan_id = client.create_plan("texts")["plan_id"]
        answer = client._http.patch(f"/api/plans/{plan_id}", json={"operations": [BAD]})  # pyright: ignore[reportPrivateUsage]
        assert answer.status_code == PreconditionRequired.status_hint
