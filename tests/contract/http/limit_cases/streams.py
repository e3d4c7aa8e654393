"""Limits of subscribers and WebSockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from planwave.api.rate_limit import TokenBucket
from planwave.api.streaming.websocket import split_message
from planwave.events import Event
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch, Subscriber
from planwave.settings import Limits
from tests.contract.http.limit_cases.registry import (
    Refusal,
    case,
)
from tests.support.server.raw_websocket import CLOSE, PING, TEXT, RawWebSocket, raw_websocket
from tests.support.server.running_server import running_server


def _event(seq: int, text: str = "") -> Event:
    return Event("x", seq, "2026-01-01T00:00:00+00:00", "node.started", "a", 1, {"text": text})


def _drop(frames: Sequence[EventBatch], bounds: BacklogLimits) -> Refusal | None:
    subscriber = Subscriber(0, bounds)
    for frame in frames:
        subscriber.put(frame)
    return Refusal("too-slow") if subscriber.is_dropped else None


@case("subscriber_events", 10, code="too-slow", mentions=[])
async def _(limits: Limits, amount: int) -> Refusal | None:
    frames = [EventBatch([_event(number)], number) for number in range(1, amount + 1)]
    return _drop(frames, BacklogLimits(limits.subscriber_events, limits.subscriber_bytes))


@case("subscriber_bytes", 2048, code="too-slow", mentions=[])
async def _(limits: Limits, amount: int) -> Refusal | None:
    first, empty = EventBatch([_event(1)], 1), EventBatch([_event(2)], 2)
    second = EventBatch([_event(2, "x" * (amount - first.size_bytes - empty.size_bytes))], 2)
    assert first.size_bytes + second.size_bytes == amount
    return _drop([first, second], BacklogLimits(limits.subscriber_events, limits.subscriber_bytes))


def refusal_of_close(error: ConnectionClosed) -> Refusal:
    return (
        Refusal("cut") if error.rcvd is None else Refusal(str(error.rcvd.code), error.rcvd.reason)
    )


async def _send_on_websocket(limits: Limits, *messages: str) -> Refusal | None:
    """Send these to a socket of a held execution, and hear a pong for each or why not."""
    with running_server(limits=limits) as server:
        execution_id = await server.execute("held")
        try:
            async with connect(f"{server.ws_url}/ws/{execution_id}?mode=events", proxy=None) as ws:
                for message in messages:
                    await ws.send(message)
                    while json.loads(await ws.recv()) != {"type": "pong"}:
                        pass
        except ConnectionClosed as error:
            return refusal_of_close(error)
    return None


@case("socket_message_bytes", 64, code="1009", mentions=[])
async def _(limits: Limits, amount: int) -> Refusal | None:
    ping = '{"op":"ping"}'
    return await _send_on_websocket(limits, ping + " " * (amount - len(ping)))


@case("socket_messages_burst", 4, code="1008", mentions=["4 at once"], socket_messages_per_s=0.001)
async def _(limits: Limits, amount: int) -> Refusal | None:
    return await _send_on_websocket(limits, *['{"op":"ping"}'] * amount)


@case(
    "socket_messages_per_s", 4, past=4.1, code="too-many-requests", mentions=["4 a second"],
    socket_messages_burst=1,
)  # fmt: skip
async def _(limits: Limits, amount: float) -> Refusal | None:
    time = [0.0]
    per_s, burst = limits.socket_messages_per_s, limits.socket_messages_burst
    pace = TokenBucket("messages", per_s, burst, lambda: time[0])
    for _ in range(20):
        pace.acquire("")
        time[0] += 1 / amount
    return None


@case("socket_connections", 3, code="4429", mentions=["3 WebSockets and event streams are open"])
async def _(limits: Limits, amount: int) -> Refusal | None:
    with running_server(limits=limits) as server:
        execution_id = await server.execute("held")
        async with AsyncExitStack() as open_now:
            try:
                for _ in range(amount):
                    url = f"{server.ws_url}/ws/{execution_id}"
                    await (await open_now.enter_async_context(connect(url, proxy=None))).recv()
            except ConnectionClosed as error:
                return refusal_of_close(error)
    return None


@case("socket_frame_bytes", 1024, code="in-parts", mentions=[])
async def _(limits: Limits, amount: int) -> Refusal | None:
    sent = split_message(json.dumps("x" * (amount - 2)).encode(), limits.socket_frame_bytes)
    assert all(len(each.encode()) <= limits.socket_frame_bytes for each in sent)
    return None if len(sent) == 1 else Refusal("in-parts")


async def _read_ping(client: RawWebSocket) -> bytes | None:
    """Read up to a ping, and give what it holds; None where the connection ends first."""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while (frame := await client.read()).opcode != CLOSE:
            if frame.opcode == PING:
                return frame.payload
    return None


@case("socket_ping_s", 20, at="answers", past="is silent", code="dropped", mentions=[])
async def _(limits: Limits, amount: str) -> Refusal | None:
    pong = 10
    with running_server(limits=limits) as server:
        url = f"{server.ws_url}/ws/{await server.execute('held')}?mode=events"
        async with raw_websocket(url) as client:
            for _ in range(2):
                requested = await server.run_advancing_time(_read_ping(client))
                if requested is None:
                    return Refusal("dropped")
                if amount == "answers":
                    client.send(requested, opcode=pong)
                    client.send('{"op":"ping"}')
                    while (
                        heard := await client.read()
                    ).opcode != TEXT or b"pong" not in heard.payload:
                        pass  # once this is answered, what came before it was heard too
    return None
