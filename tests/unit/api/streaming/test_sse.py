from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx2
import pytest
from websockets.asyncio.client import connect

from planwave.api.schemas.examples import EXECUTION_ID
from planwave.api.streaming import sse
from planwave.errors import StoreError
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.streaming_nodes import LoggingNode, streamed_text
from tests.support.polling import until
from tests.support.server.running_server import NO_RATE_LIMITS, RunningServer, running_server
from tests.support.server.stream_checker import StreamChecker


class Line(NamedTuple):
    """One message: its id (None without), its event, its data."""

    id: int | None
    event: str
    data: Any


async def messages(response: httpx2.Response) -> AsyncIterator[Line]:
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            seq = int(fields["id"]) if "id" in fields else None
            if "event" in fields:
                yield Line(seq, fields["event"], json.loads(fields["data"]))
            fields = {}


async def read_stream(server: RunningServer, execution_id: str, **more: Any) -> list[Line]:
    async with (
        server.client() as client,
        client.stream("GET", f"/api/executions/{execution_id}/events", **more) as response,
    ):
        assert response.status_code == 200
        return [line async for line in messages(response)]


async def until_held(server: RunningServer, execution_id: str) -> None:
    await until(lambda: execution_id in server.held.started)


# -- what is told


async def test_stream_has_every_event_with_its_id_and_ends_after_the_last(
    server: RunningServer,
) -> None:
    execution_id = await server.execute("tells")
    lines = await read_stream(server, execution_id)
    stored = [line for line in lines if line.event != "node.delta"]
    assert all(line.id is None for line in lines if line.event == "node.delta")
    assert [line.id for line in stored] == list(range(1, len(stored) + 1))
    assert all((line.id, line.event) == (line.data["seq"], line.data["type"]) for line in stored)
    assert lines[-1].event == "execution.completed"
    checker = StreamChecker()
    for line in lines:
        checker.accept(line.data)
    assert checker.texts == {"t": streamed_text("t")}


async def test_response_is_an_unbuffered_event_stream(
    server: RunningServer,
) -> None:
    execution_id = await server.execute()
    async with (
        server.client() as client,
        client.stream("GET", f"/api/executions/{execution_id}/events") as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-accel-buffering"] == "no"
        assert "content-length" not in response.headers


async def test_events_are_sent_while_execution_runs(server: RunningServer) -> None:
    execution_id = await server.execute("held")
    async with (
        server.client() as client,
        client.stream("GET", f"/api/executions/{execution_id}/events") as response,
    ):
        events = messages(response)
        seen = [(await anext(events)).event]
        while seen[-1] != "node.started":
            seen.append((await anext(events)).event)
        server.release(execution_id)
        seen += [line.event async for line in events]
    assert seen[-1] == "execution.completed"


# -- where it begins


async def test_stream_continues_after_last_event_id(server: RunningServer) -> None:
    execution_id = await server.execute()
    whole = await read_stream(server, execution_id)
    path = {"after": 3}
    assert await read_stream(server, execution_id, params=path) == whole[3:]
    header = {"Last-Event-ID": "5"}
    assert await read_stream(server, execution_id, headers=header, params=path) == whole[5:]
    assert (
        await read_stream(server, execution_id, headers={"Last-Event-ID": ""}, params=path)
        == whole[3:]
    )


async def test_stream_after_the_last_event_returns_204(server: RunningServer) -> None:
    execution_id = await server.execute()
    last = (await read_stream(server, execution_id))[-1].id
    async with server.client() as client:
        path = f"/api/executions/{execution_id}/events"
        for after in (last, 10**15 - 1):
            answer = await client.get(path, params={"after": after})
            assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize(
    ("more", "parameter"),
    [
        ({"headers": {"Last-Event-ID": "x"}}, "Last-Event-ID"),
        ({"headers": {"Last-Event-ID": "-1"}}, "Last-Event-ID"),
        ({"headers": {"Last-Event-ID": "9" * 30}}, "Last-Event-ID"),
        ({"params": {"after": "-1"}}, "after"),
        ({"params": {"after": "1e3"}}, "after"),
        ({"params": {"after": str(10**15)}}, "after"),
        ({"params": {"format": "xml"}}, "format"),
    ],
)
async def test_invalid_cursor_is_rejected(server: RunningServer, more: Any, parameter: str) -> None:
    execution_id = await server.execute()
    async with server.client() as client:
        answer = await client.get(f"/api/executions/{execution_id}/events", **more)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert answer.json()["issues"][0]["parameter"] == parameter


@pytest.mark.parametrize("execution_id", [EXECUTION_ID, "nope", "..%2Fx"])
async def test_unknown_execution_is_not_found(server: RunningServer, execution_id: str) -> None:
    async with server.client() as client:
        answer = await client.get(f"/api/executions/{execution_id}/events")
    assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


async def test_typed_log_is_returned_as_one_document(server: RunningServer) -> None:
    execution_id = await server.execute("held")
    await until_held(server, execution_id)
    async with server.client() as client:
        answer = await client.get(
            f"/api/executions/{execution_id}/events", params={"format": "log"}
        )
    server.release(execution_id)
    assert answer.headers["content-type"] == "application/json"
    assert {entry["type"] for entry in answer.json()["entries"]} == {"step_start"}


# -- staying and leaving


async def test_streams_and_websockets_share_one_connection_limit() -> None:
    with running_server(
        limits=NO_RATE_LIMITS.model_copy(update={"socket_connections": 2})
    ) as server:
        execution_id = await server.execute("held")
        path = f"/api/executions/{execution_id}/events"
        async with server.client() as client, client.stream("GET", path) as first:
            events = messages(first)
            await anext(events)
            async with connect(f"{server.ws_url}/ws/{execution_id}", proxy=None) as socket:
                await socket.recv()
                refused = await client.get(path)
            assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
            assert int(refused.headers["retry-after"]) > 0
            assert "PLANWAVE_LIMIT_SOCKET_CONNECTIONS" in refused.json()["hint"]
            await until(lambda: server.service.load.subscribers == 1)
            async with client.stream("GET", path) as again:
                assert again.status_code == 200
        server.release(execution_id)


async def test_silent_stream_sends_pings(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PING_INTERVAL_S", 0.01)
    execution_id = await server.execute("held")
    async with (
        server.client() as client,
        client.stream("GET", f"/api/executions/{execution_id}/events") as response,
    ):
        pings = 0
        async for line in response.aiter_lines():
            pings += line == ": ping"
            if pings == 3:
                server.release(execution_id)
                pings += 1
    assert pings > 3


async def test_execution_continues_after_client_disconnects(server: RunningServer) -> None:
    execution_id = await server.execute("held")
    async with (
        server.client() as client,
        client.stream("GET", f"/api/executions/{execution_id}/events") as response,
    ):
        await anext(messages(response))
        await until(lambda: server.service.load.subscribers == 1)
    await until(lambda: server.service.load.subscribers == 0)
    server.release(execution_id)
    record = await server.on_loop(server.service.executions.wait(execution_id))
    assert record.status == "completed"


class Refusing(MemoryStore):
    """Keeps nothing after the first batch of a run."""

    async def append(self, execution_id: str, epoch: int, events: Any) -> None:
        if events[0].type == "node.completed":
            raise StoreError("the disk is full")
        await super().append(execution_id, epoch, events)


async def test_broken_execution_ends_stream_with_problem() -> None:
    with running_server(store=Refusing()) as server:
        execution_id = await server.execute("held")
        async with (
            server.client() as client,
            client.stream("GET", f"/api/executions/{execution_id}/events") as response,
        ):
            events = messages(response)
            await anext(events)
            server.release(execution_id)
            last = [line async for line in events][-1]
    assert (last.event, last.data["detail"]) == ("problem", "the disk is full")


async def test_slow_client_is_disconnected_with_cursor() -> None:
    limits = Limits(**{**NO_RATE_LIMITS.model_dump(), "subscriber_events": 50})
    graph = {"nodes": [{"id": "c", "type": "chatty", "data": {"logs": 1500}}], "edges": []}
    with running_server(types=[LoggingNode()], limits=limits) as server:
        plan = await server.on_loop(server.service.plans.read(json.dumps(graph)))
        record = await server.on_loop(server.service.executions.create(plan))
        reader, writer = await asyncio.open_connection(
            *server.base_url.removeprefix("http://").split(":"), limit=4096
        )
        host = server.base_url.removeprefix("http://")
        path = f"/api/executions/{record.execution_id}/events"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        await reader.readuntil(b"execution.created")
        await server.on_loop(server.service.executions.start(record.execution_id))
        ended = await server.on_loop(server.service.executions.wait(record.execution_id))
        output = (await reader.read(-1)).decode(errors="replace")
        writer.close()
        await writer.wait_closed()
    assert ended.status == "completed"
    assert "event: too_slow" in output
    cursor = json.loads(output.rpartition("data: ")[2].partition("\n")[0])["cursor"]
    assert 1 < cursor < ended.last_seq
    assert f"id: {cursor}\n" in output
    assert f"id: {cursor + 1}\n" not in output
