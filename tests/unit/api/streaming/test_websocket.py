from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from pydantic import SecretStr
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from planwave.api.schemas.examples import EXECUTION_ID
from planwave.api.streaming.websocket import messages_of, split_message
from planwave.client import AsyncClient
from planwave.errors import StoreError
from planwave.events import Event
from planwave.service.streaming.subscriber_queue import EventBatch
from planwave.settings import Limits
from planwave.storage.sqlite.memory import MemoryStore
from tests.support.nodes.streaming_nodes import LoggingNode, streamed_text
from tests.support.polling import until
from tests.support.server.raw_websocket import CLOSE, TEXT, raw_websocket
from tests.support.server.running_server import NO_RATE_LIMITS, RunningServer, running_server
from tests.support.server.stream_checker import StreamChecker

PING = '{"op":"ping"}'


def limits(**more: Any) -> Limits:
    return Limits(**{**NO_RATE_LIMITS.model_dump(), **more})


@asynccontextmanager
async def watching(
    server: RunningServer, execution_id: str, query: str = "", **more: Any
) -> AsyncIterator[ClientConnection]:
    url = f"{server.ws_url}/ws/{execution_id}{query and '?' + query}"
    more.setdefault("additional_headers", server.headers)
    async with connect(url, proxy=None, **more) as socket:
        yield socket


async def all_told(socket: ClientConnection) -> list[Any]:
    """Every message up to the close."""
    received = []
    try:
        while True:
            received.append(json.loads(await socket.recv()))
    except ConnectionClosed:
        return received


async def closed(socket: ClientConnection) -> tuple[int | None, str | None]:
    """How the connection ended, whatever was said before."""
    await all_told(socket)
    return socket.close_code, socket.close_reason


async def until_held(server: RunningServer, execution_id: str) -> None:
    await until(lambda: execution_id in server.held.started)


# -- glances


async def test_status_updates_come_at_connect_at_intervals_and_at_the_end() -> None:
    with running_server(limits=limits(socket_ping_s=600)) as server:
        execution_id = await server.execute("held")
        await until_held(server, execution_id)
        async with watching(server, execution_id, "interval=60") as socket:
            first = json.loads(await socket.recv())
            began = server.loop.time()
            for _ in range(2):
                await server.run_advancing_time(socket.recv(), step_s=10)
            assert server.loop.time() - began >= 75
            server.release(execution_id)
            received = await all_told(socket)
            assert socket.close_code == 1000
    assert first == {
        "status": "executing",
        "node_states": {"h": "running", "after": "pending"},
        "logs": [
            "Starting execution...",
            "Executing 1 nodes in parallel: ['h']",
            "Starting node h: H",
        ],
        "wave": {"current": 1, "total": 2},
    }
    assert received[-1]["status"] == "completed"
    assert received[-1]["wave"] == {"current": 2, "total": 2}
    assert len(received[-1]["logs"]) <= 10
    assert all(message["status"] == "executing" for message in received[:-1])


ENTRY = {
    "nodes": [
        {"id": "s", "type": "start"},
        {"id": "a", "type": "text", "data": {"text": "{{ input }}"}},
        {"id": "b", "type": "text", "data": {"text": "{{ input }}"}},
    ],
    "edges": [
        {"source": source, "target": target, "data": {"channel": "flow"}}
        for source, target in ("sa", "ab")
    ],
}


@pytest.mark.parametrize("inputs", [None, {"s": {"output": "x"}}], ids=["run", "given"])
async def test_forecast_and_run_count_the_same_steps_and_waves(
    server: RunningServer, inputs: Any
) -> None:
    async with AsyncClient(server.base_url) as client:
        execution_id = (await client.execute(ENTRY, inputs=inputs))["execution_id"]
        await client.wait(execution_id)
        execution = await client.execution(execution_id)
        forecast = await client.forecast(execution["plan_id"])
        document = await client.document(execution_id)
        started = [each async for each in client.events(execution_id)][1]
    async with server.client() as http:
        query = {"plan_id": execution["plan_id"], "digest": "true"}
        listed = (await http.get("/api/executions", params=query)).json()
    async with watching(server, execution_id) as socket:
        (status,) = await all_told(socket)
    digest = listed["executions"][0]["digest"]
    waves = {
        "forecast": forecast["waves"],
        "execution": execution["wave"]["total"],
        "websocket": status["wave"]["total"],
        "list": len(digest["waves"]),
        "document": document["waves"]["total"],
        "event": started.data["waves"],
    }
    assert waves == dict.fromkeys(waves, 3)
    assert (forecast["nodes"], digest["steps"]) == (3, 3)
    assert [node["wave"] for node in document["nodes"]][1:] == [2, 3]


async def test_ended_execution_sends_one_status_and_closes(
    server: RunningServer,
) -> None:
    execution_id = await server.execute()
    await server.on_loop(server.service.executions.wait(execution_id))
    async with watching(server, execution_id) as socket:
        assert [message["status"] for message in await all_told(socket)] == ["completed"]
        assert socket.close_code == 1000


# -- events


async def test_snapshot_comes_first_then_event_arrays(
    server: RunningServer,
) -> None:
    execution_id = await server.execute("held")
    await until_held(server, execution_id)
    async with watching(server, execution_id, "mode=events") as socket:
        snapshot = json.loads(await socket.recv())
        server.release(execution_id)
        arrays = await all_told(socket)
        assert socket.close_code == 1000
    assert (snapshot["type"], snapshot["status"]) == ("snapshot", "executing")
    assert [node["status"] for node in snapshot["nodes"]] == ["running", "pending"]
    events = [event for array in arrays for event in array]
    last = (await server.on_loop(server.service.executions.get(execution_id))).last_seq
    assert [e["seq"] for e in events] == list(range(snapshot["last_seq"] + 1, last + 1))
    assert events[-1]["type"] == "execution.completed"


async def test_cursor_replays_all_later_events(server: RunningServer) -> None:
    execution_id = await server.execute("tells")
    checker = StreamChecker()
    async with watching(server, execution_id, "mode=events&after=0") as socket:
        snapshot, *arrays = await all_told(socket)
    assert snapshot["type"] == "snapshot"
    for array in arrays:
        for event in array:
            checker.accept(event)
    assert checker.is_done
    assert checker.texts == {"t": streamed_text("t")}


async def test_snapshot_has_streamed_text(server: RunningServer) -> None:
    execution_id = await server.execute("tells")
    await server.on_loop(server.service.executions.wait(execution_id))
    async with watching(server, execution_id, "mode=events") as socket:
        (snapshot,) = await all_told(socket)
        assert socket.close_code == 1000
    assert snapshot["nodes"][0]["text"] == streamed_text("t")


async def test_long_messages_are_split_into_parts() -> None:
    with running_server(limits=limits(socket_frame_bytes=1024)) as server:
        execution_id = await server.execute("tells")
        checker, parts = StreamChecker(), []
        async with watching(server, execution_id, "mode=events&after=0") as socket:
            texts = []
            try:
                while True:
                    texts.append(await socket.recv(decode=False))
            except ConnectionClosed:
                assert socket.close_code == 1000
    assert max(map(len, texts)) <= 1024
    for text in texts:
        message = json.loads(text)
        if isinstance(message, dict) and message["type"] == "part":
            parts.append(message["text"])
            assert message["part"] == len(parts)
            if message["part"] < message["of"]:
                continue
            message, parts = json.loads("".join(parts)), []
        for event in message if isinstance(message, list) else ():
            checker.accept(event)
    assert parts == []
    assert checker.is_done
    assert checker.texts == {"t": streamed_text("t")}


@pytest.mark.parametrize("most", [1024, 1100, 5000])
@pytest.mark.parametrize("text", ["x", '"', "\\", "é", "😀", "\ud800", '"é\\😀\n'])
def test_parts_never_exceed_the_frame_limit(most: int, text: str) -> None:
    event = Event("x", 7, "t", "node.log", "a", 1, {"message": text * 3000})
    frame = EventBatch([event, event._replace(seq=8, data={}), event._replace(seq=9)], 9)
    messages = messages_of(frame, most)
    assert max(len(message.text.encode()) for message in messages) <= most
    whole: list[Any] = []
    parts: list[str] = []
    for text, last_seq in messages:
        message = json.loads(text)
        if isinstance(message, dict):
            parts.append(message["text"])
            if message["part"] == message["of"]:
                whole += json.loads("".join(parts))
                parts = []
        else:
            whole += message
        assert last_seq == (whole[-1]["seq"] if whole else 6)
    assert whole == [event.as_json() for event in frame.events]


def test_events_that_fit_share_one_message() -> None:
    events = [Event("x", seq, "t", "node.log", "a", 1, {}) for seq in range(1, 21)]
    size = len(EventBatch(events[:1], 1).json_events[0])
    messages = messages_of(EventBatch(events[:9], 9), 9 * (size + 1) + 1)
    assert [(len(json.loads(text)), seq) for text, seq in messages] == [(9, 9)]
    messages = messages_of(EventBatch(events[:9], 9), 9 * (size + 1))
    assert [(len(json.loads(text)), seq) for text, seq in messages] == [(8, 8), (1, 9)]


def test_delta_messages_keep_the_cursor() -> None:
    output = Event(
        "x", 0, "t", "node.delta", "a", 1, {"kind": "text", "text": "x" * 3000, "offset": 0}
    )
    assert {seq for _, seq in messages_of(EventBatch([output], 41), 1024)} == {41}


def test_message_at_the_limit_is_not_split() -> None:
    message = json.dumps("x" * 2000).encode()
    assert split_message(message, len(message)) == (message.decode(),)
    assert len(split_message(message, len(message) - 1)) > 1


async def test_snapshot_and_last_batch_are_split_separately() -> None:
    with running_server(limits=limits(socket_frame_bytes=1024)) as server:
        execution_id = await server.execute("held")
        await until_held(server, execution_id)
        async with watching(server, execution_id, "mode=events") as socket:
            server.release(execution_id)
            received = await all_told(socket)
            assert socket.close_code == 1000
    texts = [message["text"] for message in received if isinstance(message, dict)]
    count = received[0]["of"]
    assert json.loads("".join(texts[:count]))["type"] == "snapshot"
    assert "execution.completed" in json.dumps(received[-1])


# -- who may watch what


@pytest.mark.parametrize("execution_id", [EXECUTION_ID, "nope", "..%2Fx", "%00"])
@pytest.mark.parametrize("mode", ["poll", "events"])
async def test_unknown_execution_closes_with_4404(
    server: RunningServer, execution_id: str, mode: str
) -> None:
    async with watching(server, execution_id, f"mode={mode}") as socket:
        code, reason = await closed(socket)
    assert code == 4404
    assert (reason or "").startswith("not-found: ")


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("mode=all", "mode"),
        ("interval=0.09", "interval"),
        ("interval=60.1", "interval"),
        ("interval=-1", "interval"),
        ("interval=nan", "interval"),
        ("interval=inf", "interval"),
        ("interval=soon", "interval"),
        ("mode=events&after=-1", "after"),
        ("mode=events&after=x", "after"),
        ("mode=events&after=²", "after"),
        ("mode=events&after=" + "9" * 16, "after"),
    ],
)
async def test_invalid_query_closes_with_parameter_name(
    server: RunningServer, query: str, named: str
) -> None:
    execution_id = await server.execute()
    async with watching(server, execution_id, query) as socket:
        code, reason = await closed(socket)
    assert code == 1008
    assert f"query parameter '{named}'" in (reason or "")


@pytest.mark.parametrize("interval", ["0.1", "60"])
async def test_interval_bounds_are_accepted(server: RunningServer, interval: str) -> None:
    execution_id = await server.execute()
    async with watching(server, execution_id, f"interval={interval}") as socket:
        assert (await all_told(socket))[-1]["status"] == "completed"


async def test_websocket_requires_token() -> None:
    with running_server(token=SecretStr("hush")) as server:
        execution_id = await server.execute()
        async with watching(server, execution_id) as socket:
            assert (await closed(socket))[0] == 1000
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            async with watching(server, execution_id, additional_headers=headers) as socket:
                code, reason = await closed(socket)
            assert code == 4401
            assert (reason or "").startswith("unauthorized")


async def test_websocket_from_foreign_origin_is_refused(server: RunningServer) -> None:
    execution_id = await server.execute()
    async with watching(server, execution_id, origin="http://evil.example") as socket:
        assert (await closed(socket))[0] == 4403


async def test_plain_request_gets_upgrade_required(
    server: RunningServer,
) -> None:
    async with server.client() as client:
        answer = await client.get(f"/ws/{EXECUTION_ID}")
    assert (answer.status_code, answer.json()["code"]) == (426, "upgrade-required")
    assert answer.headers["upgrade"] == "websocket"
    assert "proxy" in answer.json()["hint"]


# -- what clients send


async def test_ping_gets_pong(server: RunningServer) -> None:
    execution_id = await server.execute("held")
    await until_held(server, execution_id)
    async with watching(server, execution_id) as socket:
        await socket.recv()
        for _ in range(5):
            await socket.send(PING)
            assert json.loads(await socket.recv()) == {"type": "pong"}
        server.release(execution_id)
        assert (await closed(socket))[0] == 1000


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("not json", "invalid-json"),
        ("[" * 30_000 + "]" * 30_000, "invalid-json"),
        ("", "invalid-json"),
        ("NaN", "invalid-json"),
        ('{"op":"subscribe","run":"../x"}', "unknown-op"),
        ('{"op":"ping","op":"ping","x":1}', "unknown-op"),
        ("[]", "unknown-op"),
        ("null", "unknown-op"),
    ],
)
async def test_third_invalid_message_closes_connection(
    server: RunningServer, sent: str, code: str
) -> None:
    execution_id = await server.execute("held")
    await until_held(server, execution_id)
    async with watching(server, execution_id, "mode=events") as socket:
        await socket.recv()
        for _ in range(3):
            await socket.send(PING)  # what was right in between does not make up for it
            assert json.loads(await socket.recv()) == {"type": "pong"}
            await socket.send(sent)
            error = json.loads(await socket.recv())
            assert (error["type"], error["code"]) == ("error", code)
            assert error["detail"]
        assert (await closed(socket))[0] == 1008
    server.release(execution_id)
    record = await server.on_loop(server.service.executions.wait(execution_id))
    assert record.status == "completed"


async def test_binary_message_closes_connection(server: RunningServer) -> None:
    execution_id = await server.execute("held")
    async with watching(server, execution_id) as socket:
        await socket.send(b"\x00\xff")
        assert (await closed(socket))[0] == 1003
    server.release(execution_id)


async def test_text_that_is_not_utf_8_closes_connection(server: RunningServer) -> None:
    execution_id = await server.execute("held")
    async with watching(server, execution_id) as socket:
        await socket.send(b"\x00\xff", text=True)
        assert (await closed(socket))[0] == 1007
    server.release(execution_id)


# -- who does not listen, leaves, or is sent away


async def test_client_without_pong_is_disconnected() -> None:
    with running_server() as server:
        execution_id = await server.execute("held")
        await until_held(server, execution_id)
        async with raw_websocket(f"{server.ws_url}/ws/{execution_id}?mode=events") as socket:
            assert (await socket.read()).json["type"] == "snapshot"
            await until(lambda: server.service.load.subscribers == 1)
            received = await server.run_advancing_time(socket.read_to_close())
            assert received[-1].close == (1011, "keepalive ping timeout")
            await until(lambda: server.service.load.subscribers == 0)


@pytest.mark.parametrize("query", ["mode=poll", "mode=events"])
async def test_aborted_connection_is_released_and_execution_continues(
    server: RunningServer, query: str
) -> None:
    execution_id = await server.execute("held")
    await until_held(server, execution_id)
    async with raw_websocket(f"{server.ws_url}/ws/{execution_id}?{query}") as socket:
        await socket.read()
        await until(lambda: server.service.load.subscribers == 1)
        socket.abort()
        await until(lambda: server.service.load.subscribers == 0)
    server.release(execution_id)
    record = await server.on_loop(server.service.executions.wait(execution_id))
    assert record.status == "completed"


@pytest.mark.parametrize("execution", ["known", "unknown"])
async def test_disconnect_during_handshake_logs_no_error(
    server: RunningServer, execution: str, caplog: pytest.LogCaptureFixture
) -> None:
    execution_id = await server.execute("held") if execution == "known" else EXECUTION_ID
    host, _, port = server.base_url.removeprefix("http://").partition(":")
    for _ in range(50):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            f"GET /ws/{execution_id}?mode=events HTTP/1.1\r\nHost: {host}:{port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
    async with watching(server, execution_id) as socket:
        server.release(execution_id)
        await closed(socket)
    await until(lambda: server.service.load.subscribers == 0)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


class Refusing(MemoryStore):
    """Keeps nothing after the first batch of a run."""

    async def append(self, execution_id: str, epoch: int, events: Any) -> None:
        if events[0].type == "node.completed":
            raise StoreError("the disk is full")
        await super().append(execution_id, epoch, events)


@pytest.mark.parametrize("query", ["mode=poll", "mode=events"])
async def test_broken_execution_closes_with_reason(query: str) -> None:
    with running_server(store=Refusing()) as server:
        execution_id = await server.execute("held")
        await until_held(server, execution_id)
        async with watching(server, execution_id, query) as socket:
            await socket.recv()
            server.release(execution_id)
            code, reason = await closed(socket)
        assert code == 1012
        assert "the disk is full" in (reason or "")


async def test_slow_client_is_closed_with_cursor_and_execution_continues() -> None:
    graph = {"nodes": [{"id": "c", "type": "chatty", "data": {"logs": 1500}}], "edges": []}
    with running_server(types=[LoggingNode()], limits=limits(subscriber_events=50)) as server:
        plan = await server.on_loop(server.service.plans.read(json.dumps(graph)))
        record = await server.on_loop(server.service.executions.create(plan))
        execution_id = record.execution_id
        url = f"{server.ws_url}/ws/{execution_id}?mode=events"
        async with raw_websocket(url) as socket:
            assert (await socket.read()).json["type"] == "snapshot"
            await server.on_loop(server.service.executions.start(execution_id))
            ended = await server.on_loop(server.service.executions.wait(execution_id))
            await until(lambda: server.service.load.subscribers == 0)
            received = await socket.read_to_close()
        assert ended.status == "completed"
        code, reason = received[-1].close
        assert received[-1].opcode == CLOSE
        seqs = [
            event["seq"] for frame in received[:-1] if frame.opcode == TEXT for event in frame.json
        ]
        assert (code, reason) == (4408, f"too slow: continue with after={seqs[-1]}")
        assert seqs == list(range(2, seqs[-1] + 1))
        assert seqs[-1] < ended.last_seq
