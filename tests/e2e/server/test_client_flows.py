"""Flows through both clients, against the service on a real socket."""

from __future__ import annotations

from typing import Any

import pytest

from planwave.client import AsyncClient, Client
from planwave.errors import Conflict, GraphInvalid, NotFound, PreconditionFailed
from planwave.ids import new_id
from tests.support.server.running_server import RunningServer

STARTS: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "echo", "type": "text", "data": {"text": "heard {{ input }}"}},
    ],
    "edges": [{"source": "s", "target": "echo", "data": {"channel": "flow"}}],
}
HELD = {"nodes": [{"id": "h", "type": "held"}], "edges": []}
FAULTY = {"nodes": [{"id": "a", "type": "nobody"}], "edges": []}


def test_a_flow_is_made_changed_executed_and_removed(server: RunningServer) -> None:
    with Client(server.base_url) as client:
        first = client.create_flow("Echo", STARTS, description="why")
        assert client.flow(first["plan_id"]) == first
        assert first["plan_id"] in [each["plan_id"] for each in client.flows(q="echo")["flows"]]
        listed = {
            named: [each["plan_id"] for each in client.plans(q="echo", named=named)["plans"]]
            for named in (True, False)
        }
        assert (first["plan_id"] in listed[True], listed[False]) == (True, [])
        second = client.update_flow(first["plan_id"], graph=HELD, if_match=first["hash"])
        assert (second["revision"], second["description"]) == (2, "why")
        with pytest.raises(PreconditionFailed) as refused:
            client.update_flow(first["plan_id"], name="late", if_match=first["hash"])
        assert refused.value.code == "plan-changed"
        revisions = client.plan_revisions(first["plan_id"])["revisions"]
        assert [each["hash"] for each in revisions] == [second["hash"], first["hash"]]
        made = client.execute_flow("ECHO", revision=1, inputs={"s": {"output": "you"}})
        result = client.wait(made["execution_id"])
        assert result["node_results"]["echo"] == "heard you"
        found = client.executions(plan_id=first["plan_id"])["executions"]
        assert [(each["execution_id"], each["revision"], each["flow"]) for each in found] == [
            (made["execution_id"], 1, "Echo")
        ]
        client.delete_flow(first["plan_id"])
        with pytest.raises(NotFound):
            client.flow(first["plan_id"])


async def test_the_same_on_an_event_loop(server: RunningServer) -> None:
    key = new_id()
    async with AsyncClient(server.base_url) as client:
        plan = await client.create_plan("texts")
        made = await client.create_flow("Texts", plan_id=plan["plan_id"], idempotency_key=key)
        again = await client.create_flow("Texts", plan_id=plan["plan_id"], idempotency_key=key)
        assert again == made
        assert (made["plan_id"], made["hash"]) == (plan["plan_id"], plan["hash"])
        assert (made["description"], made["revision"]) == (plan["title"], 1)
        page = await client.plan_revisions(made["plan_id"], limit=1)
        assert (len(page["revisions"]), page["next_cursor"]) == (1, None)
        renamed = await client.update_flow(made["plan_id"], name="New", description="")
        assert (renamed["name"], renamed["description"], renamed["graph"]) == (
            "New",
            "",
            made["graph"],
        )
        assert (await client.flow(made["plan_id"], 1))["graph"] == made["graph"]
        run = await client.execute_flow(made["plan_id"])
        assert (await client.wait(run["execution_id"]))["status"] == "completed"
        await client.delete_flow(made["plan_id"])
        listed = await client.flows(limit=100)
        assert made["plan_id"] not in [each["plan_id"] for each in listed["flows"]]


async def test_failures_come_back_as_what_they_are(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client:
        with pytest.raises(GraphInvalid) as refused:
            await client.create_flow("F", FAULTY)
        assert [found.code for found in refused.value.diagnostics] == ["unknown-node-type"]
        made = await client.create_flow("Held", HELD)
        run = await client.execute_flow(made["plan_id"])
        with pytest.raises(Conflict, match=run["execution_id"]):
            await client.delete_flow(made["plan_id"])
        await client.cancel(run["execution_id"])
        await client.delete_flow(made["plan_id"])


async def test_name_is_refused_released_and_given_again(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client:
        plan = await client.create_plan("released")
        flow = await client.create_flow("Released", plan_id=plan["plan_id"])
        with pytest.raises(Conflict) as taken:
            await client.create_flow("RELEASED", STARTS)
        assert taken.value.code == "name-taken"
        await client.publish_flow(flow["plan_id"], tool=True)
        for refuse in (
            client.remove_name(flow["plan_id"]),
            client.update_flow(flow["plan_id"], name="Other"),
            client.delete_flow(flow["plan_id"]),
            client.delete_plan(flow["plan_id"]),
        ):
            with pytest.raises(Conflict, match="published as a tool") as used:
                await refuse
            assert used.value.code == "flow-in-use"
        await client.remove_name(flow["plan_id"], force=True)
        assert (await client.plan(plan["plan_id"]))["name"] is None
        again = await client.create_flow("Released", plan_id=plan["plan_id"])
        assert (again["plan_id"], again["published"]) == (plan["plan_id"], [])
        copied = await client.create_flow("Copied", plan_id=plan["plan_id"])
        origin = {"plan_id": plan["plan_id"], "revision": 1}
        assert (await client.plan(copied["plan_id"])).get("origin") == origin
        for each in (again, copied):
            await client.delete_flow(each["plan_id"])


def test_flow_takes_the_graph_of_a_plan_with_a_note(server: RunningServer) -> None:
    with Client(server.base_url) as client:
        flow = client.create_flow("Taker", STARTS)
        plan = client.create_plan("texts")
        taken = client.update_flow(
            flow["plan_id"], from_plan_id=plan["plan_id"], author="person", note="theirs"
        )
        assert (taken["plan_id"], taken["revision"]) == (flow["plan_id"], 2)
        assert taken["hash"] == plan["hash"]
        newest = client.plan_revisions(flow["plan_id"], limit=1)["revisions"][0]
        assert (newest["author"], newest["note"]) == ("person", "theirs")
        client.delete_flow(flow["plan_id"])
