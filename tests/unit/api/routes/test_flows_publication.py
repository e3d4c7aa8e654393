"""What flows are published as, over HTTP."""

from __future__ import annotations

from typing import Any

from planwave.graph.model import Node
from planwave.ids import new_id
from tests.support.graph.builders import make_graph, text_node
from tests.support.server.in_process_client import InProcessClient
from tests.support.triggers.hook_sender import hook_flow, hook_service, send

OTHER = make_graph(Node("s", "start", "Start")).to_document()
PLAIN = make_graph(Node("s", "start", "Start"), text_node("a"), edges=[("s", "a")]).to_document()


async def saved(calls: InProcessClient, graph: Any = PLAIN) -> str:
    return (await calls.post_json("/api/flows", {"name": "Flow", "graph": graph}, 201))["plan_id"]


async def publish(calls: InProcessClient, plan_id: str, **changes: bool) -> dict[str, Any]:
    answer = await calls.put(f"/api/flows/{plan_id}/publication", json=changes)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_saved_flow_is_published_as_nothing() -> None:
    async with hook_service() as calls:
        plan_id = await saved(calls, hook_flow())
        shown = await calls.get_json(f"/api/flows/{plan_id}/publication")
        assert shown == {
            "plan_id": plan_id, "name": "Flow", "model": False, "tool": False, "hooks": [],
        }  # fmt: skip
        assert (await calls.get_json(f"/api/flows/{plan_id}"))["published"] == []


async def test_publishing_changes_only_what_is_given_and_no_revision() -> None:
    async with hook_service() as calls:
        plan_id = await saved(calls)
        assert (await publish(calls, plan_id, model=True))["model"]
        both = await publish(calls, plan_id, tool=True)
        assert (both["model"], both["tool"]) == (True, True)
        flow = await calls.get_json(f"/api/flows/{plan_id}")
        assert (flow["published"], flow["revision"]) == (["model", "tool"], 1)
        await calls.put(f"/api/flows/{plan_id}", json={"description": "Other", "graph": OTHER})
        (listed,) = (await calls.get_json("/api/flows"))["flows"]
        assert (listed["description"], listed["revision"]) == ("Other", 2)
        assert listed["published"] == ["model", "tool"]
        left = await publish(calls, plan_id, model=False)
        assert (left["model"], left["tool"]) == (False, True)


async def test_hook_is_created_disabled_and_enabled_again() -> None:
    async with hook_service() as calls:
        plan_id = await saved(calls, hook_flow())
        (hook,) = (await publish(calls, plan_id, hook=True))["hooks"]
        assert hook == {
            "trigger_id": hook["trigger_id"],
            "path": f"/hooks/{hook['trigger_id']}",
            "enabled": True,
        }
        assert (await send(calls, hook["trigger_id"], 1, "?wait=30")).status_code == 200
        assert (await publish(calls, plan_id, hook=False))["hooks"] == [{**hook, "enabled": False}]
        assert (await send(calls, hook["trigger_id"], 1)).status_code == 404
        assert (await publish(calls, plan_id, hook=True))["hooks"] == [hook]
        (trigger,) = (await calls.get_json("/api/triggers"))["triggers"]
        assert trigger["trigger_id"] == hook["trigger_id"]


async def test_flow_without_webhook_node_is_not_published_at_all() -> None:
    async with hook_service() as calls:
        plan_id = await saved(calls)
        path = f"/api/flows/{plan_id}/publication"
        problem = await calls.expect_problem("PUT", path, 422, {"model": True, "hook": True})
        assert problem["code"] == "invalid-trigger"
        assert not (await calls.get_json(path))["model"]


async def test_unknown_flows_and_invalid_bodies_are_rejected() -> None:
    async with hook_service() as calls:
        unknown = f"/api/flows/{new_id()}/publication"
        await calls.expect_problem("GET", unknown, 404)
        for body in ({"model": True}, {"hook": True}, {"hook": False}):
            await calls.expect_problem("PUT", unknown, 404, body)
        path = f"/api/flows/{await saved(calls)}/publication"
        for invalid in ({"model": "yes"}, {"chat": True}, []):
            problem = await calls.expect_problem("PUT", path, 422, invalid)
            assert problem["code"] == "invalid-body"


async def test_deleted_flow_is_published_no_more() -> None:
    async with hook_service() as calls:
        plan_id = await saved(calls, hook_flow())
        (hook,) = (await publish(calls, plan_id, tool=True, hook=True))["hooks"]
        in_use = await calls.expect_problem("DELETE", f"/api/flows/{plan_id}", 409)
        assert "webhook node" in in_use["detail"]
        assert (await calls.delete(f"/api/flows/{plan_id}?force=true")).status_code == 204
        await calls.expect_problem("GET", f"/api/flows/{plan_id}/publication", 404)
        assert (await send(calls, hook["trigger_id"], 1)).status_code == 404
