"""Watching over the network as it is: connections that break, clients that do not read, crowds."""

from __future__ import annotations

import asyncio
import gc
import json
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from planwave.graph.model import Graph, Node
from planwave.settings import Limits
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.in_process_command import invoke
from tests.support.graph.builders import make_graph
from tests.support.nodes.streaming_nodes import LoggingNode, streamed_text, streaming_node
from tests.support.server.raw_websocket import CLOSE, TEXT, RawWebSocket, raw_websocket
from tests.support.server.running_server import NO_RATE_LIMITS, RunningServer, running_server
from tests.support.server.stream_checker import StreamChecker

CROWD = Limits(
    **{
        **NO_RATE_LIMITS.model_dump(),
        "socket_connections": 1_000,
        "events": 500_000,
        "page_items": 1_000,
    }
)


async def started(server: RunningServer, graph: Graph) -> str:
    """Make a plan of a graph and start it."""
    source = json.dumps(graph.to_document())
    plan = await server.on_loop(server.service.plans.read(source))
    return (await server.on_loop(server.service.executions.execute(plan))).execution_id


# -- a client that comes back again and again


async def by_sse(server: RunningServer, execution_id: str, after: int) -> AsyncGenerator[Any]:
    """Give events as they arrive over one connection."""
    headers = {"Last-Event-ID": str(after)} if after else {}
    async with (
        server.client() as client,
        client.stream("GET", f"/api/executions/{execution_id}/events", headers=headers) as answer,
    ):
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


async def by_socket(server: RunningServer, execution_id: str, after: int) -> AsyncGenerator[Any]:
    """Give events as they arrive over one connection."""
    url = f"{server.ws_url}/ws/{execution_id}?mode=events&after={after}"
    async with raw_websocket(url) as socket:
        assert (await socket.read()).json["type"] == "snapshot"
        while (told := await socket.read()).opcode != CLOSE:
            if told.opcode == TEXT:
                for event in told.json:
                    yield event


@pytest.mark.parametrize("reconnects", [20, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("connect", [by_sse, by_socket])
async def test_many_reconnects_deliver_every_event_and_token_once(
    server: RunningServer,
    connect: Callable[[RunningServer, str, int], AsyncGenerator[Any]],
    reconnects: int,
) -> None:
    choose = random.Random(7)  # noqa: S311 - a fixed seed
    tokens = {"a": 5 * reconnects // 2, "b": reconnects}
    graph = make_graph(
        *(streaming_node(name, count, 0.01) for name, count in tokens.items()),
        Node("h", "held", "H"),
        edges=[("a", "b"), ("b", "h")],
    )
    execution_id = await started(server, graph)
    witness, connections = StreamChecker(), 0
    while not witness.is_done:
        connections += 1
        witness.reconnected()
        is_staying = connections > reconnects
        if is_staying:
            server.release(execution_id)  # not before, however long connecting takes
        events = choose.randrange(6)
        stream = connect(server, execution_id, witness.cursor)
        with suppress(TimeoutError):
            async with asyncio.timeout(240 if is_staying else choose.uniform(0.0, 0.04)):
                async for event in stream:
                    witness.accept(event)
                    events -= 1
                    if events < 0 and not is_staying:
                        break
        await stream.aclose()
    record = await server.on_loop(server.service.executions.wait(execution_id))
    assert connections > reconnects
    assert witness.cursor == record.last_seq
    assert witness.texts == {name: streamed_text(name, tokens[name]) for name in tokens}


# -- clients that do not read


def resident_mb() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_fifty_clients_that_never_read_cost_little_memory_and_are_dropped_with_their_place(
    tmp_path: Path,
) -> None:
    logs = make_graph(_chatty(200_000))
    source = json.dumps(logs.to_document())
    with running_server(
        types=[LoggingNode()], limits=CROWD, store=SqliteStore.open(tmp_path)
    ) as server:
        await ended(server, await started(server, logs))  # everything has been used once
        before = resident_mb()
        async with AsyncExitStack() as stack:
            plan = await server.on_loop(server.service.plans.read(source))
            made = await server.on_loop(server.service.executions.create(plan))
            execution_id = made.execution_id
            url = f"{server.ws_url}/ws/{execution_id}?mode=events&after=0"
            sockets = [await stack.enter_async_context(raw_websocket(url)) for _ in range(50)]
            for socket in sockets:
                assert (await socket.read()).json["type"] == "snapshot"
            assert server.service.load.subscribers == 50
            await server.on_loop(server.service.executions.start(execution_id))
            highest = 0.0
            while server.service.load.subscribers:
                await asyncio.sleep(0.1)
                highest = max(highest, resident_mb())
            assert any([await _was_dropped_with_its_place(socket) for socket in sockets[:5]])
            while (
                await server.on_loop(server.service.executions.get(execution_id))
            ).status != "completed":
                await asyncio.sleep(0.5)
                highest = max(highest, resident_mb())
            assert highest - before < 50


async def _was_dropped_with_its_place(socket: RawWebSocket) -> bool:
    """Return False where the kernel reset the connection first (nothing was read for 30 s)."""
    try:
        told = await socket.read_to_close()
    except ConnectionResetError:
        return False
    code, reason = told[-1].close
    arrays = [frame.json for frame in told[:-1]]
    seqs = [event["seq"] for array in arrays for event in array]
    assert (code, reason) == (4408, f"too slow: continue with after={seqs[-1]}")
    assert seqs == list(range(1, seqs[-1] + 1))
    assert seqs[-1] < 200_000
    return True


def _chatty(logs: int) -> Any:
    return Node("c", "chatty", "C", data={"logs": logs, "length": 100})


async def ended(server: RunningServer, execution_id: str) -> None:
    record = await server.on_loop(server.service.executions.wait(execution_id))
    assert record.status == "completed"


# -- a crowd that comes back at once


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clients", "logs", "tokens"),
    [
        (20, 200, 40),
        pytest.param(500, 3_000, 150, marks=[pytest.mark.slow, pytest.mark.timeout(300)]),
    ],
)
async def test_a_crowd_that_comes_back_at_once_catches_up_without_gap_or_repeat(
    tmp_path: Path, clients: int, logs: int, tokens: int
) -> None:
    choose = random.Random(3)  # noqa: S311 - a fixed seed
    graph = make_graph(_chatty(logs), streaming_node("t", tokens, 0.02), edges=[])
    with running_server(
        types=[LoggingNode()], limits=CROWD, store=SqliteStore.open(tmp_path)
    ) as server:
        execution_id = await started(server, graph)
        await until_stored(server, execution_id, logs)
        before = resident_mb()
        witnesses: list[StreamChecker] = []

        async def come_back() -> None:
            after = choose.choice([0, 0, logs // 2, choose.randrange(logs)])
            witness = StreamChecker(after)
            async for event in by_socket(server, execution_id, after):
                witness.accept(event)
            witnesses.append(witness)

        async with asyncio.TaskGroup() as tasks:
            for _ in range(clients):
                tasks.create_task(come_back())
        record = await server.on_loop(server.service.executions.wait(execution_id))
        assert resident_mb() - before < 150
    assert len(witnesses) == clients
    for witness in witnesses:
        assert witness.cursor == record.last_seq
        assert witness.texts == {"t": streamed_text("t", tokens)}


async def until_stored(server: RunningServer, execution_id: str, seq: int) -> None:
    async def state() -> int:
        return (await server.service.executions.state(execution_id)).last_seq

    while await server.on_loop(state()) < seq:  # noqa: ASYNC110 - it happens in another thread
        await asyncio.sleep(0.01)


# -- what was written before a cancel


@pytest.mark.parametrize("artifact_bytes", [None, 100])
async def test_what_a_cancelled_step_had_written_is_stored(
    tmp_path: Path, artifact_bytes: int | None
) -> None:
    """Another service over the same storage shows it, from the events alone; large texts lie apart."""
    step = f"/api/executions/{{}}/nodes/{'a'}"
    with running_server(store=SqliteStore.open(tmp_path, artifact_bytes=artifact_bytes)) as server:
        execution_id = await started(
            server, make_graph(streaming_node("a", 10_000, 0.005), streaming_node("b", 2))
        )
        seen = ""
        async for event in by_sse(server, execution_id, 0):
            if event["type"] == "node.delta" and event["path"] == "a":
                seen += event["data"]["text"]
            if len(seen) > 200:
                break
        async with server.client() as client:
            await client.post(f"/api/executions/{execution_id}/cancel")
            async for event in by_sse(server, execution_id, 0):
                if event["type"] == "node.cancelled":
                    assert event["data"]["streamed"]["text"]["value"].startswith(seen)
            live = (await client.get(step.format(execution_id))).json()
    with running_server(store=SqliteStore.open(tmp_path)) as server:
        async with server.client() as client:
            node = (await client.get(step.format(execution_id))).json()
            document = (await client.get(f"/api/executions/{execution_id}/document")).json()
            again = await client.post(f"/api/executions/{execution_id}/retry")
        at = ("--url", server.base_url)
        listed = await asyncio.to_thread(invoke, "show", execution_id, *at)
        whole = await asyncio.to_thread(invoke, "show", execution_id, "--node", "a", *at)
    of_a, of_b = document["nodes"]
    assert live["streamed"] == node["streamed"] == of_a["streamed"]
    assert node["streamed"]["text"].startswith(seen)
    assert (node["status"], node["result"], node["usage"]["cost_usd"]) == ("cancelled", None, None)
    assert (of_b["status"], "streamed" in of_b) == ("completed", False)
    assert again.status_code == 202, "it runs again from its beginning"
    assert "price of what was cut off unknown" in listed.stdout
    assert "had written" in listed.stdout
    assert " ".join(seen.split()) in " ".join(whole.stdout.split())
