"""A draft over a published flow changes nothing for those who call it: each way runs the live revision."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest

from planwave.service.flows.flow_service import FlowResolver
from planwave.storage.sqlite.sql_store import MemoryStore
from tests.support.llm.fake_providers import DEFAULT_LIMITS, library_registry
from tests.support.mcp.planwave_server import mcp_session
from tests.support.nodes.nested_graphs import graph_document, node_document
from tests.support.nodes.node_context import services_with
from tests.support.server.in_process_client import InProcessClient
from tests.support.triggers.hook_sender import hook_service, send

LIVE, NEWER, DRAFT = "of the live revision", "of a newer revision", "of the draft"
DRAFTS: Final[dict[str, list[dict[str, Any]]]] = {
    "a node of no type": [
        node_document("ask", "start"),
        node_document("hook", "webhook", secrets=["main"]),
        node_document("say", "no_such_type", text=DRAFT),
    ],
    "no entry node": [node_document("say", "text", text=f"{DRAFT} {{{{ outputs.gone }}}}")],
    "a graph that cannot be read": [node_document("say", "text", text=DRAFT)] * 2,
    "no node at all": [],
}
"""The nodes of graphs with errors."""


def chain(entry: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a graph whose result is a text."""
    say = node_document("say", "text", text=text)
    return graph_document(entry, say, edges=[(entry["id"], "say")])


ENTRIES: Final = {
    "talk": node_document("ask", "start"),
    "chat": node_document("begin", "chat_start"),
    "listen": node_document("hook", "webhook", secrets=["main"]),
    "tick": node_document("daily", "schedule", cron="0 0 1 1 *"),
}
"""The entry node of each flow, by its name."""


class Callers(NamedTuple):
    """Flows, and all that calls them, made before there is a draft."""

    calls: InProcessClient
    ids: dict[str, str]
    hook_id: str
    timer_id: str
    chat_id: str
    token: dict[str, str]
    session: dict[str, str]

    async def result_of(self, execution_id: str) -> str:
        """Return the result of an execution, once it has ended."""
        await self.calls.service.wait(execution_id)
        return (await self.calls.get(f"/api/executions/{execution_id}/result")).text

    async def executed(self, body: dict[str, Any], **headers: str) -> str:
        """Execute and return the result."""
        body = {**body, "start": True}
        answer = await self.calls.post("/api/execute", json=body, headers=headers)
        assert answer.status_code == 202, answer.text
        return await self.result_of(answer.json()["execution_id"])

    async def tool(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool of the MCP server."""
        body = {
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }  # fmt: skip
        return (await self.calls.post("/mcp", json=body, headers=self.session)).text


@asynccontextmanager
async def callers() -> AsyncGenerator[Callers]:
    """Publish a flow for each way in."""
    store = MemoryStore()
    services, _ = services_with(lambda _: [])
    services = replace(services, flows=FlowResolver(store, library_registry(), DEFAULT_LIMITS))
    async with hook_service(store=store, node_services=lambda _: services) as calls:
        ids: dict[str, str] = {}
        for name, entry in ENTRIES.items():
            body = {"name": name, "graph": chain(entry, LIVE)}
            ids[name] = (await calls.post_json("/api/flows", body, 201))["plan_id"]
        published = {"model": True, "tool": True}
        answer = await calls.put(f"/api/flows/{ids['talk']}/publication", json=published)
        assert answer.status_code == 200, answer.text
        triggers = [
            (await calls.post_json("/api/triggers", {"plan_id": ids[name]}, 201))["trigger_id"]
            for name in ("listen", "tick")
        ]
        chat = await calls.post_json("/api/chats", {"plan_id": ids["chat"]}, 201)
        wanted = {"name": "n", "scopes": ["run", "read"], "flows": [ids["talk"]]}
        token = (await calls.post_json("/api/tokens", wanted, 201))["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        yield Callers(
            calls, ids, *triggers, chat["chat_id"], bearer, await mcp_session(calls, bearer)
        )


async def hook(on: Callers) -> str:
    return (await send(on.calls, on.hook_id, {}, "?wait=30")).text


async def fired_trigger(on: Callers) -> str:
    fired = await on.calls.post_json(f"/api/triggers/{on.timer_id}/fire", {}, 202)
    return await on.result_of(fired["execution_id"])


async def execution_by_token(on: Callers) -> str:
    return await on.executed({"flow": on.ids["talk"]}, **on.token)


async def execution_by_name(on: Callers) -> str:
    return await on.executed({"flow": "TALK"})


async def nested_flow(on: Callers) -> str:
    nested = node_document("in", "inner", flow={"name": "talk"})
    return await on.executed({"graph": graph_document(nested)})


async def chat(on: Callers) -> str:
    path = f"/api/chats/{on.chat_id}/messages"
    turn = await on.calls.post_json(path, {"message": "Hello"}, 202)
    return await on.result_of(turn["message"]["execution_id"])


async def completion(on: Callers) -> str:
    body = {"model": "talk", "messages": [{"role": "user", "content": "Hello"}]}
    return (await on.calls.post("/v1/chat/completions", json=body)).text


async def response(on: Callers) -> str:
    return (await on.calls.post("/v1/responses", json={"model": "talk", "input": "Hello"})).text


async def tool_of_flow(on: Callers) -> str:
    return await on.tool("talk", {"input": "Hello"})


async def tool_run(on: Callers) -> str:
    return await on.tool("run", {"flow": "talk"})


WAYS: Final[tuple[Callable[[Callers], Awaitable[str]], ...]] = (
    hook, fired_trigger, execution_by_token, execution_by_name, nested_flow, chat, completion,
    response, tool_of_flow, tool_run,
)  # fmt: skip
"""Each way of calling a flow; returns what the caller gets."""


async def patch(calls: InProcessClient, plan_id: str, graph: dict[str, Any]) -> dict[str, Any]:
    """Store a graph as the next revision of a plan; return the plan."""
    body = {"operations": [{"op": "replace_graph", "graph": graph}]}
    answer = await calls.patch(f"/api/plans/{plan_id}", json=body, headers={"If-Match": "*"})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def told(on: Callers) -> list[Any]:
    """Return what callers are told of the flows."""
    triggers = (await on.calls.get_json("/api/triggers"))["triggers"]
    bound = [(each["flow"], each["revision"], each["live_revision"]) for each in triggers]
    paths = "/v1/models", *(f"/api/flows/{each}" for each in on.ids.values())
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    tools = (await on.calls.post("/mcp", json=body, headers=on.session)).text
    return [bound, tools.partition("data: ")[2], *[await on.calls.get_json(path) for path in paths]]


async def require_all(on: Callers, text: str) -> None:
    """Check that each way gives a text."""
    for way in WAYS:
        got = await way(on)
        assert text in got, (way.__name__, got)


@pytest.mark.parametrize("nodes", DRAFTS.values(), ids=DRAFTS)
async def test_a_draft_changes_no_way_of_calling_a_flow(nodes: list[dict[str, Any]]) -> None:
    async with callers() as on:
        await require_all(on, LIVE)
        before = await told(on)
        for plan_id in on.ids.values():
            plan = await patch(on.calls, plan_id, {"nodes": nodes, "edges": []})
            assert (plan["revision"], plan["live_revision"]) == (2, 1)
            assert plan["diagnostics"]
        await require_all(on, LIVE)
        assert await told(on) == before


async def test_a_revision_without_errors_is_live_at_once_even_over_a_draft() -> None:
    async with callers() as on:
        for name, plan_id in on.ids.items():
            await patch(on.calls, plan_id, {"nodes": DRAFTS["no entry node"], "edges": []})
            plan = await patch(on.calls, plan_id, chain(ENTRIES[name], NEWER))
            assert (plan["revision"], plan["live_revision"]) == (3, 3)
        await require_all(on, NEWER)


@pytest.mark.parametrize("nodes", DRAFTS.values(), ids=DRAFTS)
async def test_a_draft_is_started_by_nobody_who_names_its_revision(
    nodes: list[dict[str, Any]],
) -> None:
    async with callers() as on:
        for plan_id in on.ids.values():
            await patch(on.calls, plan_id, {"nodes": nodes, "edges": []})
        talk = on.ids["talk"]
        assert (await on.calls.delete(f"/api/triggers/{on.hook_id}")).status_code == 204
        before = await on.calls.get_json("/api/executions")
        for path, body in (
            ("/api/execute", {"flow": talk, "revision": 2, "start": True}),
            ("/api/execute", {"plan_id": talk, "revision": 2, "start": True}),
            ("/api/execute", {"plan_id": talk, "start": True}),
            ("/api/chats", {"plan_id": on.ids["chat"], "plan_revision": 2}),
        ):
            problem = await on.calls.expect_problem("POST", path, 422, body)
            assert problem["code"] in ("graph-invalid", "invalid-chat", "draft-revision"), problem
        body = {"plan_id": on.ids["listen"], "revision": 2}
        bound = await on.calls.post("/api/triggers", json=body)
        assert (bound.status_code, bound.json()["code"]) == (422, "draft-revision")
        assert await on.calls.get_json("/api/executions") == before
        nested = node_document("in", "inner", flow={"name": "talk", "revision": 2})
        run = {"graph": graph_document(nested), "start": True}
        found = await on.calls.post_json("/api/execute", run, 202)
        await on.calls.service.wait(found["execution_id"])
        shown = await on.calls.get_json(f"/api/executions/{found['execution_id']}")
        assert (shown["status"], DRAFT in str(shown["error"])) == ("failed", False)
