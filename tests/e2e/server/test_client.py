"""Both clients against the service on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import pytest

from planwave.client import AsyncClient, Client
from planwave.errors import Conflict, GraphInvalid, NotFound, Unreachable
from tests.support.server.running_server import RunningServer

GRAPH: Mapping[str, Any] = {
    "nodes": [
        {"id": "a", "type": "text", "data": {"text": "one"}},
        {"id": "b", "type": "text", "data": {"text": "two"}},
    ],
    "edges": [{"source": "a", "target": "b", "data": {"channel": "flow"}}],
}
NOBODY = "01900000-0000-7000-8000-000000000001"


async def test_a_goal_goes_in_and_a_result_comes_out(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client:
        made = await client.run("texts")
        result = await client.wait(made["execution_id"])
        assert result["status"] == "completed"
        assert result["node_results"]["b"] == "two"
        document = await client.document(made["execution_id"])
        assert document["execution_id"] == made["execution_id"]


def test_the_same_without_an_event_loop(server: RunningServer) -> None:
    with Client(server.base_url) as client:
        plan = client.create_plan("texts")
        assert client.plan(plan["plan_id"])["hash"] == plan["hash"]
        assert client.validate(plan["plan_id"])["valid"]
        assert client.forecast(plan["plan_id"])["waves"] == 2
        made = client.execute(plan["plan_id"], start=False)
        assert client.start(made["execution_id"])["execution_id"] == made["execution_id"]
        types = [event.type for event in client.events(made["execution_id"])]
        assert (types[0], types[-1]) == ("execution.created", "execution.completed")
        assert client.explain(made["execution_id"], "b")["status"] == "completed"
        listed = client.executions(plan_id=plan["plan_id"])
        assert [e["execution_id"] for e in listed["executions"]] == [made["execution_id"]]
        client.delete_execution(made["execution_id"])
        client.delete_plan(plan["plan_id"])
        with pytest.raises(NotFound):
            client.plan(plan["plan_id"])


async def test_failures_come_back_as_what_they_are(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client:
        with pytest.raises(NotFound):
            await client.execution(NOBODY)
        with pytest.raises(NotFound):
            _ = [event async for event in client.events(NOBODY)]
        faulty = {**GRAPH, "edges": [{"source": "a", "target": "x", "data": {"channel": "flow"}}]}
        with pytest.raises(GraphInvalid) as refused:
            await client.execute(faulty)
        assert [found.code for found in refused.value.diagnostics] == ["dangling-edge"]
        assert not (await client.check(faulty))["valid"]
        made = await client.execute(GRAPH)
        await client.wait(made["execution_id"])
        with pytest.raises(Conflict):
            await client.cancel(made["execution_id"])


async def test_the_same_key_makes_one_execution(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client, asyncio.TaskGroup() as tasks:
        asked = [
            tasks.create_task(client.execute(GRAPH, idempotency_key="once-only")) for _ in range(5)
        ]
    assert len({task.result()["execution_id"] for task in asked}) == 1


async def test_a_running_execution_can_be_cancelled(server: RunningServer) -> None:
    async with AsyncClient(server.base_url) as client:
        made = await client.run("held")
        await client.cancel(made["execution_id"])
        assert (await client.execution(made["execution_id"]))["status"] == "cancelled"


class Cut(httpx2.AsyncBaseTransport):
    """Carries requests over the network, and cuts event streams after some bytes."""

    def __init__(self, after: Callable[[], int]) -> None:
        self.inner = httpx2.AsyncHTTPTransport()
        self.after = after
        self.cuts = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self.inner.handle_async_request(request)
        if not request.url.path.endswith("/events"):
            return response
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=self.cut(response)
        )

    def cut(self, response: httpx2.Response) -> httpx2.AsyncByteStream:
        transport, left = self, self.after()

        class Stream(httpx2.AsyncByteStream):
            async def __aiter__(self) -> Any:
                nonlocal left
                async for chunk in response.stream:  # type: ignore[union-attr]
                    yield chunk[:left]
                    left -= len(chunk)
                    if left <= 0:
                        transport.cuts += 1
                        raise httpx2.ReadError("cut")

            async def aclose(self) -> None:
                await response.aclose()

        return Stream()

    async def aclose(self) -> None:
        await self.inner.aclose()


async def test_events_survive_connections_that_break(server: RunningServer) -> None:
    sizes = iter(range(900, 100_000, 450))
    transport = Cut(lambda: next(sizes))
    async with AsyncClient(server.base_url, transport=transport) as client:
        made = await client.execute(GRAPH)
        seqs = [e.seq async for e in client.events(made["execution_id"]) if e.seq]
    assert seqs == list(range(1, len(seqs) + 1))
    assert transport.cuts > 1


async def test_nothing_listening_is_said_so(unused_tcp_port: int) -> None:
    async with AsyncClient(f"http://127.0.0.1:{unused_tcp_port}") as client:
        with pytest.raises(Unreachable, match="no planwave service responds"):
            await client.plans()
