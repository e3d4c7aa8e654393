"""Access tokens at the MCP server: each sees and does what its scopes and its flows allow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from planwave.ids import new_id
from planwave.service.access_tokens import SCOPES, Scope, TokenLimits
from planwave.service.flows.flow_queries import FlowRef
from tests.support.mcp.planwave_server import MODES, call, fail, mcp_client
from tests.support.server.running_server import RunningServer

GRAPH: dict[str, Any] = {
    "nodes": [{"id": "a", "type": "text", "data": {"text": "one"}}], "edges": []
}  # fmt: skip


@dataclass
class Program:
    """A program with a published flow of its own, and an execution of it."""

    server: RunningServer
    name: str
    plan_id: str = ""
    execution_id: str = ""

    async def prepare(self) -> Program:
        async def prepared() -> None:
            service = self.server.service
            self.plan_id = (await service.flows.create(self.name, graph=GRAPH)).plan_id
            await service.flows.publish(self.plan_id, {"tool": True})
            record = await service.executions.execute(FlowRef(self.plan_id))
            self.execution_id = record.execution_id
            await service.executions.wait(record.execution_id)

        await self.server.on_loop(prepared())
        return self

    async def token(
        self, scopes: Collection[Scope] = SCOPES, limits: TokenLimits | None = None
    ) -> str:
        made = self.server.service.access_tokens.create("t", scopes, [self.plan_id], limits)
        return (await self.server.on_loop(made)).secret

    async def delete(self) -> None:
        await self.server.on_loop(self.server.service.flows.delete(self.plan_id, force=True))


async def two(server: RunningServer) -> tuple[Program, Program]:
    ours, theirs = (Program(server, f"p{new_id()}".replace("-", "")) for _ in range(2))
    return await ours.prepare(), await theirs.prepare()


@pytest.mark.parametrize("mode", MODES)
async def test_a_program_uses_its_own_flow_only(server: RunningServer, mode: str) -> None:
    ours, theirs = await two(server)
    async with mcp_client(server, mode, await ours.token()) as client:
        names = [each.name for each in (await client.list_tools()).tools]
        assert names == ["run", "status", "result", ours.name]
        for arguments in ({"flow": ours.name}, {"flow": ours.plan_id}):
            assert (await call(client, "run", **arguments))["result"] == "one"
        assert (await call(client, ours.name))["result"] == "one"
        inputs = {"a": {"output": "two"}}
        assert "not to 'a'" in await fail(client, "run", flow=ours.name, inputs=inputs)
        for flow in (theirs.name, theirs.plan_id):
            assert await fail(client, "run", flow=flow) == f"there is no flow '{flow}'"
        with pytest.raises(MCPError, match=f"there is no tool '{theirs.name}'"):
            await client.call_tool(theirs.name, {})
        for goal in ({"goal": "texts"}, {"plan_id": new_id()}):
            assert "an access token is not enough" in await fail(client, "run", **goal)
        for tool in ("plan", "answer"):
            assert "an access token is not enough" in await fail(client, tool)
        for tool in ("status", "result"):
            assert await call(client, tool, execution_id=ours.execution_id)
            text = await fail(client, tool, execution_id=theirs.execution_id)
            assert text.startswith(f"there is no execution '{theirs.execution_id}'")
        uris = [each.uri for each in (await client.list_resources()).resources]
        assert len(uris) == 4
        assert not any(theirs.execution_id in uri for uri in uris)
        for kind in ("result", "document"):
            uri = "planwave://executions/{}/" + kind
            assert await client.read_resource(uri.format(ours.execution_id))
            with pytest.raises(MCPError, match="there is no execution"):
                await client.read_resource(uri.format(theirs.execution_id))
    await ours.delete()
    await theirs.delete()


async def test_a_cursor_of_another_one_is_answered_as_one_that_nobody_has(
    server: RunningServer,
) -> None:
    ours, theirs = await two(server)
    for scopes in (SCOPES, ["run"]):
        async with mcp_client(server, token=await ours.token(scopes)) as client:  # type: ignore[arg-type]
            found: set[tuple[int, str, Any]] = set()
            for cursor in (theirs.execution_id, new_id(), "x"):
                with pytest.raises(MCPError) as caught:
                    await client.session.list_resources(
                        params=PaginatedRequestParams(cursor=cursor)
                    )
                found.add((caught.value.code, caught.value.message, caught.value.data))
            assert found == {(-32602, "the cursor is unknown", None)}
            own = PaginatedRequestParams(cursor=ours.execution_id)
            assert (await client.session.list_resources(params=own)).resources == []
    await ours.delete()
    await theirs.delete()


async def test_each_tool_needs_its_scope(server: RunningServer) -> None:
    ours = await Program(server, f"p{new_id()}".replace("-", "")).prepare()
    async with mcp_client(server, token=await ours.token(["read"])) as client:
        names = [each.name for each in (await client.list_tools()).tools]
        assert names == ["status", "result"]
        assert "has not the scope 'run'" in await fail(client, "run", flow=ours.name)
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool(ours.name, {})
    for scopes, names in ((["run"], ["run", ours.name]), (["chat"], [])):
        async with mcp_client(server, token=await ours.token(scopes)) as client:  # type: ignore[arg-type]
            assert [each.name for each in (await client.list_tools()).tools] == names
            found = await fail(client, "status", execution_id=ours.execution_id)
            assert "has not the scope 'read'" in found
            assert (await client.list_resources()).resources == []
            with pytest.raises(MCPError, match="has not the scope 'read'"):
                await client.read_resource(f"planwave://executions/{ours.execution_id}/result")
    await ours.delete()


async def test_rates_and_keys_are_those_of_the_token(server: RunningServer) -> None:
    ours = await Program(server, f"p{new_id()}".replace("-", "")).prepare()
    slow = await ours.token(limits=TokenLimits(executions_per_minute=1))
    executions: set[str] = set()
    for token in (slow, await ours.token()):
        async with mcp_client(server, token=token) as client:
            done = await call(client, ours.name, idempotency_key="k")
            executions.add(done["execution_id"])
    assert len(executions) == 2
    async with mcp_client(server, token=slow) as client:
        assert "too many executions with this access token" in await fail(client, ours.name)
    await ours.delete()


async def test_a_session_is_for_the_client_that_opened_it(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = await two(server)
    monkeypatch.setattr("planwave.interop.mcp_server.http.MAX_OWN_SESSIONS", 1)
    accept = {"accept": "application/json, text/event-stream"}
    ours_token, theirs_token = [
        {**accept, "Authorization": f"Bearer {await each.token()}"} for each in (ours, theirs)
    ]
    opening = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    }  # fmt: skip
    async with server.client() as raw:
        opened = await raw.post("/mcp", headers=ours_token, json=opening)
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        another = await raw.post("/mcp", headers=ours_token, json=opening)
        assert another.status_code == 503
        theirs_opened = await raw.post("/mcp", headers=theirs_token, json=opening)
        assert theirs_opened.status_code == 200
        for method in ("DELETE", "GET"):
            refused = await raw.request(method, "/mcp", headers={**theirs_token, **session})
            assert refused.status_code == 404
        assert (await raw.delete("/mcp", headers={**ours_token, **session})).status_code == 200
    await ours.delete()
    await theirs.delete()
