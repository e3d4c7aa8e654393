"""Requests that are passed on to a running service."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import mcp_types
import pytest
from mcp.shared.exceptions import MCPError

from planwave.interop.mcp_server.bridge import Bridge
from planwave.interop.mcp_server.protocol import ToolChanges
from tests.support.mcp.planwave_server import text_of
from tests.support.polling import until
from tests.support.server.running_server import RunningServer, running_server

TOKEN = "a-long-random-token"


class Changes(ToolChanges):
    """Notes that a change was announced."""

    def __init__(self) -> None:
        super().__init__()
        self.announced = asyncio.Event()

    async def announce(self) -> None:
        self.announced.set()


def context(request_id: int, progress: list[Any] | None = None) -> Any:
    """Return what a handler needs of a request."""

    async def report(number: float, total: float | None, message: str | None) -> None:
        if progress is not None:
            progress.append(message)

    return SimpleNamespace(request_id=request_id, session=SimpleNamespace(report_progress=report))


def run(goal: str) -> mcp_types.CallToolRequestParams:
    return mcp_types.CallToolRequestParams(name="run", arguments={"goal": goal})


async def begun(server: RunningServer) -> str:
    await until(lambda: server.held.started)
    return server.held.started.pop()


async def status(server: RunningServer, execution_id: str) -> str:
    """Wait for the end of an execution; give its status."""

    async def wait() -> str:
        async for _ in server.service.executions.watch(execution_id):
            pass
        return (await server.service.executions.state(execution_id)).status

    return await server.on_loop(wait())


async def test_requests_are_passed_on_and_only_a_cancellation_cancels() -> None:
    with running_server(token=TOKEN) as server:
        async with Bridge(server.base_url, TOKEN, ToolChanges()) as bridge:
            tools = await bridge.list_tools(context(1), None)
            assert [each.name for each in tools.tools][:2] == ["plan", "run"]
            progress: list[Any] = []
            done = await bridge.call_tool(context(2, progress), run("texts"))
            assert (text_of(done), progress[-1]) == ("two", "Wave 2 of 2 completed")
            own = done.structured_content["execution_id"]
            uri = mcp_types.ReadResourceRequestParams(uri=f"planwave://executions/{own}/result")
            assert (await bridge.read_resource(context(3), uri)).contents[0].uri == uri.uri
            assert len((await bridge.list_resources(context(4), None)).resources) == 1
            assert len((await bridge.list_templates(context(5), None)).resource_templates) == 2
            with pytest.raises(MCPError, match="there is no tool 'nope'"):
                await bridge.call_tool(context(6), mcp_types.CallToolRequestParams(name="nope"))

            calling = asyncio.get_running_loop().create_task(
                bridge.call_tool(context(7), run("held"))
            )
            own = await begun(server)
            await bridge.cancelled(context(8), mcp_types.CancelledNotificationParams(request_id=7))
            assert await status(server, own) == "cancelled"
            await asyncio.wait([calling])

            leaving = asyncio.get_running_loop().create_task(
                bridge.call_tool(context(9), run("held"))
            )
            own = await begun(server)
            leaving.cancel()  # as on the end of the input
        server.release(own)
        assert await status(server, own) == "completed"


async def test_a_change_of_the_tools_is_announced_and_an_end_of_the_service_noticed() -> None:
    changes = Changes()
    with running_server() as server:
        async with Bridge(server.base_url, None, changes) as bridge:
            service = server.service

            async def publish() -> None:
                graph = {"nodes": [{"id": "a", "type": "text", "data": {"text": "x"}}], "edges": []}
                flow = await service.flows.create("F", graph=graph)
                await service.flows.publish(flow.plan_id, {"tool": True})
                await service.flows.delete(flow.plan_id, force=True)

            announced = asyncio.get_running_loop().create_task(changes.announced.wait())
            while not announced.done():  # the bridge may not listen yet
                await server.on_loop(publish())
                await asyncio.wait([announced], timeout=0.05)
                assert not bridge.is_lost.is_set()
            server.loop.call_soon_threadsafe(service.close_streams)
            await bridge.is_lost.wait()
            gone = await bridge.call_tool(context(1), run("texts"))
            assert gone.is_error
            assert "has ended" in text_of(gone)
