"""What callers of a flow start, on each way: its live revision, whatever lies over it.

A draft has errors, or is not approved where the operator requires that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from planwave.service.flows.flow_service import FlowResolver
from planwave.storage.sql.store import Store
from planwave.storage.sqlite.memory import MemoryStore
from planwave.storage.sqlite.store import SqliteStore
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
    "a placeholder": [
        node_document("ask", "start"),
        node_document("say", "text", text=DRAFT),
        {"id": "p", "type": "placeholder", "data": {"kind": "n8n-nodes-base.slack"}},
    ],
    "a placeholder in a loop": [
        node_document("ask", "start"),
        node_document(
            "say",
            "loop",
            items=[1],
            body=graph_document(
                {"id": "p", "type": "placeholder", "data": {"kind": "n8n-nodes-base.slack"}}
            ),
        ),
    ],
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
        await self.calls.service.executions.wait(execution_id)
        return (await self.calls.get(f"/api/executions/{execution_id}/result")).text

    async def approved(self, execution_id: str) -> str:
        """Return the result of an execution of a graph that is no flow, whose plan is approved if it asks."""
        path = f"/api/executions/{execution_id}"
        await self.calls.service.executions.wait(execution_id)
        for each in (await self.calls.get_json(f"{path}/requests"))["requests"]:
            answer = {"decision": "approve"}
            await self.calls.post_json(f"{path}/requests/{each['request_id']}", answer, 200)
        return await self.result_of(execution_id)

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
async def opened(
    store: Store, *, require_approval: bool = False
) -> AsyncGenerator[InProcessClient]:
    """Open a service over a store."""
    services, _ = services_with(lambda _: [])
    services = replace(services, flows=FlowResolver(store, library_registry(), DEFAULT_LIMITS))
    async with hook_service(
        store=store, node_services=lambda _: services, require_approval=require_approval
    ) as calls:
        yield calls


async def publish(calls: InProcessClient, *, approved: bool = False) -> Callers:
    """Publish a flow for each way in."""
    ids: dict[str, str] = {}
    for name, entry in ENTRIES.items():
        body = {"name": name, "graph": chain(entry, LIVE)}
        ids[name] = (await calls.post_json("/api/flows", body, 201))["plan_id"]
        if approved:
            await approve(calls, ids[name], 1)
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
    session = await mcp_session(calls, bearer)
    return Callers(calls, ids, *triggers, chat["chat_id"], bearer, session)


@asynccontextmanager
async def callers(*, require_approval: bool = False) -> AsyncGenerator[Callers]:
    """Publish a flow for each way in, of a service of its own."""
    async with opened(MemoryStore(), require_approval=require_approval) as calls:
        yield await publish(calls, approved=require_approval)


async def approve(calls: InProcessClient, plan_id: str, revision: int) -> dict[str, Any]:
    """Approve a revision by its hash; return the plan."""
    path = f"/api/plans/{plan_id}/revisions/{revision}"
    found = await calls.get(path)
    answer = await calls.post(f"{path}/approve", headers={"If-Match": found.headers["etag"]})
    assert answer.status_code == 200, answer.text
    return answer.json()


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
    body = {"graph": graph_document(nested), "start": True}
    made = await on.calls.post_json("/api/execute", body, 202)
    return await on.approved(made["execution_id"])


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
    shown = [await on.calls.get_json(path) for path in paths]
    return [bound, tools.partition("data: ")[2], *[{**each, "draft": None} for each in shown]]


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
        pinned = node_document("in", "inner", flow={"name": "talk", "revision": 2})
        for path, body in (
            ("/api/execute", {"flow": talk, "revision": 2, "start": True}),
            ("/api/execute", {"plan_id": talk, "revision": 2, "start": True}),
            ("/api/execute", {"plan_id": talk, "start": True}),
            ("/api/chats", {"plan_id": on.ids["chat"], "plan_revision": 2}),
            ("/api/execute", {"graph": graph_document(pinned), "start": True}),
        ):
            problem = await on.calls.expect_problem("POST", path, 422, body)
            assert problem["code"] in ("graph-invalid", "invalid-chat", "draft-revision"), problem
        body = {"plan_id": on.ids["listen"], "revision": 2}
        bound = await on.calls.post("/api/triggers", json=body)
        assert (bound.status_code, bound.json()["code"]) == (422, "draft-revision")
        assert await on.calls.get_json("/api/executions") == before


async def test_a_revision_that_nobody_approved_is_started_on_no_way() -> None:
    async with callers(require_approval=True) as on:
        await require_all(on, LIVE)
        before = await told(on)
        for name, plan_id in on.ids.items():
            plan = await patch(on.calls, plan_id, chain(ENTRIES[name], NEWER))
            assert (plan["revision"], plan["live_revision"], plan["approval"]) == (2, 1, None)
            assert plan["diagnostics"] == []
            draft = (await on.calls.get_json(f"/api/flows/{plan_id}"))["draft"]
            assert (draft["revision"], draft["error_count"]) == (2, 0)
        await require_all(on, LIVE)
        assert await told(on) == before
        for plan_id in on.ids.values():
            plan = await approve(on.calls, plan_id, 2)
            assert (plan["live_revision"], plan["approval"]["by"]) == (2, {"kind": "local"})
        await require_all(on, NEWER)


async def test_a_revision_that_nobody_approved_is_started_by_nobody_who_names_it() -> None:
    async with callers(require_approval=True) as on:
        for name, plan_id in on.ids.items():
            await patch(on.calls, plan_id, chain(ENTRIES[name], NEWER))
        assert (await on.calls.delete(f"/api/triggers/{on.hook_id}")).status_code == 204
        before = await on.calls.get_json("/api/executions")
        pinned = node_document("in", "inner", flow={"name": "talk", "revision": 2})
        for path, body, status in (
            ("/api/execute", {"flow": "talk", "revision": 2, "start": True}, 409),
            ("/api/chats", {"plan_id": on.ids["chat"], "plan_revision": 2}, 409),
            ("/api/triggers", {"plan_id": on.ids["listen"], "revision": 2}, 409),
            ("/api/execute", {"graph": graph_document(pinned), "start": True}, 422),
        ):
            problem = await on.calls.expect_problem("POST", path, status, body)
            assert "not-approved" in str(problem), problem
        assert await on.calls.get_json("/api/executions") == before


async def test_flows_from_before_approval_was_required_wait_for_it_on_each_way(
    tmp_path: Path,
) -> None:
    async with opened(SqliteStore.open(tmp_path)) as calls:
        made = await publish(calls)
    async with opened(SqliteStore.open(tmp_path), require_approval=True) as calls:
        on = made._replace(calls=calls, session=await mcp_session(calls, made.token))
        before = await calls.get_json("/api/executions")
        for way in WAYS:
            with suppress(AssertionError, KeyError):
                assert LIVE not in await way(on), way.__name__
        assert await calls.get_json("/api/executions") == before
        triggers = (await calls.get_json("/api/triggers"))["triggers"]
        assert {each["live_revision"] for each in triggers} == {None}
        assert all("is approved" in each["problem"] for each in triggers)
        flow = await calls.get_json(f"/api/flows/{on.ids['talk']}")
        assert (flow["revision"], flow["live_revision"]) == (1, None)
        for plan_id in on.ids.values():
            await approve(calls, plan_id, 1)
        await require_all(on, LIVE)


async def test_an_approval_is_of_the_hash_and_holds_for_each_revision_that_has_it() -> None:
    async with callers(require_approval=True) as on:
        talk = on.ids["talk"]
        path = f"/api/plans/{talk}"
        newer = await patch(on.calls, talk, chain(ENTRIES["talk"], NEWER))
        first = (await on.calls.get(f"{path}/revisions/1")).headers["etag"]
        at = f"{path}/revisions/2/approve"
        assert (await on.calls.post(at)).status_code == 428
        stale = await on.calls.post(at, headers={"If-Match": first})
        assert (stale.status_code, stale.json()["current"]) == (412, newer["hash"])
        assert (await approve(on.calls, talk, 2))["live_revision"] == 2
        again = await approve(on.calls, talk, 2)
        assert again == await on.calls.get_json(path)
        back = await on.calls.post(f"{path}/revisions/1/restore", headers={"If-Match": "*"})
        assert (back.json()["revision"], back.json()["live_revision"]) == (3, 3)
        assert LIVE in await execution_by_name(on)
        broken = {"nodes": DRAFTS["no entry node"], "edges": []}
        await patch(on.calls, talk, broken)
        refused = await on.calls.post(f"{path}/revisions/4/approve", headers={"If-Match": "*"})
        assert (refused.status_code, refused.json()["code"]) == (422, "draft-revision")
        listed = (await on.calls.get_json(f"{path}/revisions"))["revisions"]
        assert [each["approval"] is None for each in listed] == [True, False, False, False]


async def test_the_runs_of_an_approved_revision_ask_nobody_but_other_runs_do() -> None:
    async with callers(require_approval=True) as on:
        talk = on.ids["talk"]
        for body, asks in (
            ({"flow": talk}, False),
            ({"flow": talk, "options": {"policies": {"say": {"timeoutS": 5}}}}, True),
            ({"flow": talk, "require_approval": True}, True),
            ({"plan_id": talk}, True),
        ):
            made = await on.calls.post_json("/api/execute", {**body, "start": True}, 202)
            own = made["execution_id"]
            await on.calls.service.executions.wait(own)
            shown = await on.calls.get_json(f"/api/executions/{own}")
            assert (shown["status"] == "paused") == asks, body
            assert shown["approval"].get("approved_revision") == (None if asks else 1)
            if not asks:
                fork = await on.calls.post_json(f"/api/executions/{own}/fork", {}, 202)
                await on.calls.service.executions.wait(fork["execution_id"])
                again = await on.calls.get_json(f"/api/executions/{fork['execution_id']}")
                assert (again["status"], again["approval"]["approved_in"]) == ("completed", own)


READS: Final = (
    "/api/plans/{id}", "/api/flows/{id}", "/api/flows/{id}?revision={newest}",
    "/api/plans/{id}/revisions/{newest}",
)  # fmt: skip
"""Where the content of a flow is read."""
_RETITLED: Final = {"operations": [{"op": "set_title", "title": "Another"}]}
WRITES: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "put": ("PUT", "/api/flows/{id}", {"graph": chain(ENTRIES["talk"], "of an edit")}),
    "patch the flow": (
        "PATCH",
        "/api/flows/{id}",
        {"operations": [{"op": "replace_graph", "graph": chain(ENTRIES["talk"], "of a patch")}]},
    ),
    "patch the plan": ("PATCH", "/api/plans/{id}", _RETITLED),
    "restore": ("POST", "/api/plans/{id}/revisions/1/restore", {}),
}
STATES: Final[dict[str, dict[str, Any] | None]] = {
    "no draft": None,
    "errors": {"nodes": DRAFTS["a node of no type"], "edges": []},
    "not approved": chain(ENTRIES["talk"], NEWER),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("state", STATES)
async def test_a_write_takes_the_etag_of_whatever_showed_the_newest_revision(
    state: str, write: str
) -> None:
    async with opened(MemoryStore(), require_approval=state == "not approved") as calls:
        for number, read in enumerate(READS):
            body = {"name": f"flow {number}", "graph": chain(ENTRIES["talk"], LIVE)}
            own = (await calls.post_json("/api/flows", body, 201))["plan_id"]
            await approve(calls, own, 1)
            if (draft := STATES[state]) is not None:
                await patch(calls, own, draft)
            newest = await calls.get_json(f"/api/plans/{own}")
            found = await calls.get(read.format(id=own, newest=newest["revision"]))
            assert found.headers["etag"] == f'"{found.json()["hash"]}"'
            shows_newest = found.json()["hash"] == newest["hash"]
            assert shows_newest == (draft is None or read != "/api/flows/{id}")

            async def send(etag: str, name: str, own: str = own) -> Any:
                method, path, content = WRITES[name]
                return await calls.request(
                    method, path.format(id=own), json=content, headers={"If-Match": etag}
                )

            answer = await send(found.headers["etag"], write)
            if not shows_newest:
                assert (answer.status_code, answer.json()["current"]) == (412, newest["hash"])
                assert await calls.get_json(f"/api/plans/{own}") == newest
                answer = await send(f'"{newest["hash"]}"', write)
            assert answer.status_code == 200, (read, answer.text)
            if read == READS[0]:
                for other in WRITES:  # each takes the ETag that any other one answered with
                    answer = await send(answer.headers["etag"], other)
                    assert answer.status_code == 200, (other, answer.text)
            now = (await calls.get(f"/api/plans/{own}")).headers["etag"]
            assert answer.headers["etag"] == now, read
