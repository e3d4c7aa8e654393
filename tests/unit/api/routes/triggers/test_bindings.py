"""Triggers over HTTP: created, listed, switched, tried out and deleted."""

from __future__ import annotations

from typing import Any

from planwave.ids import new_id
from planwave.storage.triggers import DELIVERIES_SHOWN
from tests.support.server.in_process_client import InProcessClient
from tests.support.triggers.hook_sender import hook_flow, hook_service, listening, send, text

TWO_HOOKS: dict[str, Any] = {
    "nodes": [
        {"id": "one", "type": "webhook", "data": {"secrets": ["main"]}},
        {"id": "two", "type": "webhook", "data": {"secrets": ["main"]}},
        text("a", "first {{ input.body }}"),
        text("b", "second {{ input.body }}"),
    ],
    "edges": [
        {"source": "one", "target": "a", "data": {"channel": "flow"}},
        {"source": "two", "target": "b", "data": {"channel": "flow"}},
    ],
}


async def saved(calls: InProcessClient, graph: Any, name: str = "Flow") -> str:
    return (await calls.post_json("/api/flows", {"name": name, "graph": graph}, 201))["plan_id"]


async def test_created_trigger_is_found_at_its_location() -> None:
    async with hook_service() as calls:
        plan_id = await saved(calls, hook_flow())
        answer = await calls.post("/api/triggers", json={"plan_id": plan_id})
        created = answer.json()
        assert answer.status_code == 201
        assert (created["plan_id"], created["node_id"], created["kind"]) == (
            plan_id, "hook", "webhook",
        )  # fmt: skip
        assert created["enabled"]
        assert (created["revision"], created["problem"], created["deliveries"]) == (None, None, [])
        assert (created["flow"], created["live_revision"]) == ("Flow", 1)
        assert created["details"] == {"path": f"/hooks/{created['trigger_id']}"}
        assert await calls.get_json(answer.headers["location"]) == created
        listed = await calls.get_json("/api/triggers")
        assert listed == {"triggers": [created], "next_cursor": None}


async def test_chosen_entry_node_runs_where_a_flow_holds_several() -> None:
    async with hook_service() as calls:
        plan_id = await saved(calls, TWO_HOOKS)
        problem = await calls.expect_problem("POST", "/api/triggers", 422, {"plan_id": plan_id})
        assert problem["code"] == "invalid-trigger"
        assert problem["hint"] == "name one of 'one', 'two'"
        hooks = {
            node: await calls.post_json("/api/triggers", {"plan_id": plan_id, "node_id": node}, 201)
            for node in ("one", "two")
        }
        for node, outputs in (("one", {"a": "first 1"}), ("two", {"b": "second 1"})):
            answer = await send(calls, hooks[node]["trigger_id"], 1, "?wait=30")
            assert answer.json()["outputs"] == outputs


async def test_entry_node_has_one_trigger() -> None:
    async with hook_service() as calls:
        plan_id = await saved(calls, hook_flow())
        await calls.post_json("/api/triggers", {"plan_id": plan_id}, 201)
        problem = await calls.expect_problem("POST", "/api/triggers", 409, {"plan_id": plan_id})
        assert problem["code"] == "trigger-exists"


async def test_repeated_request_with_its_key_creates_one_trigger() -> None:
    async with hook_service() as calls:
        body = {"plan_id": await saved(calls, hook_flow())}
        made = [
            await calls.post("/api/triggers", json=body, headers={"Idempotency-Key": "k"})
            for _ in range(2)
        ]
        assert made[0].json() == made[1].json()


async def test_node_that_cannot_be_listened_for_is_rejected() -> None:
    async with hook_service() as calls:
        plan_id = await saved(calls, hook_flow())
        for node_id in ("echo", "other"):
            body = {"plan_id": plan_id, "node_id": node_id}
            problem = await calls.expect_problem("POST", "/api/triggers", 422, body)
            assert problem["hint"] == "name one of 'hook'"
        plain = await saved(calls, {"nodes": [text("a", "x")], "edges": []}, "Plain")
        problem = await calls.expect_problem("POST", "/api/triggers", 422, {"plan_id": plain})
        assert "no node that can be listened for" in problem["detail"]
        for unknown in (new_id(), "nobody"):
            await calls.expect_problem("POST", "/api/triggers", 404, {"plan_id": unknown})
        unknown = {"plan_id": plan_id, "revision": 2}
        await calls.expect_problem("POST", "/api/triggers", 404, unknown)


async def test_list_has_the_last_deliveries_with_their_executions() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        started = [
            (await send(calls, hook, number, message_id=f"m{number}")).json()["execution_id"]
            for number in range(DELIVERIES_SHOWN + 2)
        ]
        shown = await calls.get_json(f"/api/triggers/{hook}")
        newest = [f"m{number}" for number in range(DELIVERIES_SHOWN + 1, 1, -1)]
        assert [each["key"] for each in shown["deliveries"]] == newest
        assert [each["execution_id"] for each in shown["deliveries"]] == started[:1:-1]
        assert {each["outcome"] for each in shown["deliveries"]} == {"started"}


async def test_triggers_are_listed_in_pages_and_by_flow() -> None:
    async with hook_service() as calls:
        flows = [await saved(calls, hook_flow(), f"F{number}") for number in range(3)]
        for plan_id in flows:
            await calls.post_json("/api/triggers", {"plan_id": plan_id}, 201)
        first = await calls.get_json("/api/triggers", limit=2)
        rest = await calls.get_json("/api/triggers", cursor=first["next_cursor"], limit=2)
        names = [each["flow"] for page in (first, rest) for each in page["triggers"]]
        assert names == ["F2", "F1", "F0"]
        (own,) = (await calls.get_json("/api/triggers", plan_id=flows[1]))["triggers"]
        assert own["plan_id"] == flows[1]


async def test_trigger_is_disabled_and_enabled() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        assert not (await calls.post_json(f"/api/triggers/{hook}/disable"))["enabled"]
        assert (await calls.post_json(f"/api/triggers/{hook}/enable"))["enabled"]


async def test_test_delivery_starts_an_execution_also_of_a_disabled_trigger() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(sample={"order": 1}))
        await calls.post_json(f"/api/triggers/{hook}/disable")
        for body, result in ((None, 'got {"order":1}'), ({"value": [2]}, "got [2]")):
            made = await calls.post_json(f"/api/triggers/{hook}/fire", body, 202)
            await calls.service.executions.wait(made["execution_id"])
            document = await calls.get_json(f"/api/executions/{made['execution_id']}/document")
            assert document["node_results"]["echo"] == result
            assert document["trigger"]["id"] == hook
        shown = await calls.get_json(f"/api/triggers/{hook}")
        assert [each["note"] for each in shown["deliveries"]] == ["a test delivery"] * 2


async def test_test_delivery_is_checked_as_any_other() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow(bodySchema={"type": "object"}, sample={}))
        path = f"/api/triggers/{hook}/fire"
        problem = await calls.expect_problem("POST", path, 422, {"value": 1})
        assert problem["code"] == "invalid-payload"
        plan_id = (await calls.get_json(f"/api/triggers/{hook}"))["plan_id"]
        other = {"graph": {"nodes": [text("a", "x")], "edges": []}}
        await calls.put(f"/api/flows/{plan_id}", json=other)
        assert (await calls.expect_problem("POST", path, 422))["code"] == "invalid-trigger"


async def test_trigger_is_deleted_alone_and_with_its_flow() -> None:
    async with hook_service() as calls:
        hook = await listening(calls, hook_flow())
        plan_id = (await calls.get_json(f"/api/triggers/{hook}"))["plan_id"]
        assert (await calls.delete(f"/api/triggers/{hook}")).status_code == 204
        await calls.expect_problem("GET", f"/api/triggers/{hook}", 404)
        again = (await calls.post_json("/api/triggers", {"plan_id": plan_id}, 201))["trigger_id"]
        assert (await calls.delete(f"/api/flows/{plan_id}?force=true")).status_code == 204
        await calls.expect_problem("GET", f"/api/triggers/{again}", 404)
        assert (await calls.get_json("/api/triggers"))["triggers"] == []
