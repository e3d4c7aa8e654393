"""Senders of webhooks that leave, on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from planwave.ids import new_id
from tests.support.polling import until
from tests.support.server.running_server import RunningServer, running_server
from tests.support.triggers.hook_sender import hook_flow

HELD = {"id": "held", "type": "held"}


@pytest.fixture(scope="module")
def served() -> Iterator[RunningServer]:
    with running_server(unsigned_webhooks=True) as running:
        yield running


async def listening(calls: httpx2.AsyncClient, **data: Any) -> str:
    graph = hook_flow(HELD, auth="none", secrets=[], allowSse=True, **data)
    flow = (await calls.post("/api/flows", json={"name": new_id(), "graph": graph})).json()
    made = await calls.post("/api/triggers", json={"plan_id": flow["plan_id"]})
    trigger_id: str = made.json()["trigger_id"]
    return trigger_id


async def execution_of(calls: httpx2.AsyncClient, hook: str) -> str:
    """Wait for the delivery of a webhook; return its execution."""
    async with asyncio.timeout(60):
        found: list[Any] = []
        while not found:
            found = (await calls.get(f"/api/triggers/{hook}")).json()["deliveries"]
    own: str = found[0]["execution_id"]
    return own


@pytest.mark.parametrize("query", ["wait=60", "stream=1"])
async def test_execution_is_cancelled_where_its_sender_leaves(
    served: RunningServer, query: str
) -> None:
    async with served.client(timeout=60) as calls, asyncio.TaskGroup() as tasks:
        hook = await listening(calls, onDisconnect="cancel")
        sending = tasks.create_task(read(served, hook, query))
        own = await execution_of(calls, hook)
        await until(lambda: own in served.held.started)
        sending.cancel()
        ended = (await calls.get(f"/api/executions/{own}/events")).text
        assert "event: execution.cancelled" in ended
        assert "the sender of the webhook left" in ended


@pytest.mark.parametrize("query", ["wait=60", "stream=1"])
async def test_execution_goes_on_where_its_sender_leaves(served: RunningServer, query: str) -> None:
    async with served.client(timeout=60) as calls:
        hook = await listening(calls)
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(read(served, hook, query))
            own = await execution_of(calls, hook)
            await until(lambda: own in served.held.started)
            sending.cancel()
        served.release(own)
        ended = (await calls.get(f"/api/executions/{own}/events")).text
        assert "event: execution.completed" in ended


async def read(served: RunningServer, hook: str, query: str) -> str:
    async with httpx2.AsyncClient(base_url=served.base_url, timeout=60) as sender:
        return (await sender.post(f"/hooks/{hook}?{query}", content="1")).text


async def test_sender_cannot_choose_its_address(served: RunningServer) -> None:
    async with served.client(timeout=60) as calls:
        graph = hook_flow(auth="none", secrets=[])
        graph["nodes"][1]["data"]["text"] = "{{ input.remote.host }}"
        flow = (await calls.post("/api/flows", json={"name": new_id(), "graph": graph})).json()
        made = await calls.post("/api/triggers", json={"plan_id": flow["plan_id"]})
        forged = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
        path = f"/hooks/{made.json()['trigger_id']}?wait=30"
        answer = await calls.post(path, json=1, headers=forged)
        assert answer.json()["outputs"] == {"echo": "127.0.0.1"}
