"""One WebSocket connection that follows an execution: status messages, or events within 50 ms.

Messages are JSON texts. A message longer than the limit ``socket_frame_bytes`` is sent as several
``{"type": "part", "part": 1, "of": 3, "text": "…"}``; their texts, joined, are the message. A client
may send ``{"op": "ping"}`` and receives ``{"type": "pong"}``. Any other message is answered with an
error, and the third one closes the connection.

Close codes: 1000 the execution is over · 1003 binary message · 1008 too many or too many invalid
messages, or an invalid parameter · 1009 message too long · 1012 the service is shutting down · 4401,
4403 not allowed · 4404 no such execution · 4408 too slow, the reason names the last ``seq`` · 4429
too many connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final, NamedTuple

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from planwave.api.problems import problem_details, send_problem
from planwave.api.rate_limit import TokenBucket
from planwave.errors import (
    InputError,
    PlanwaveError,
    ShuttingDown,
    SlowConsumer,
    TooManyRequests,
)
from planwave.jsonio import dumps_trusted
from planwave.service.chats.replies import ReplySubscription
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch
from planwave.service.streaming.subscriptions import ExecutionSubscription
from planwave.settings import Limits

CLOSE_NORMAL: Final = 1000
CLOSE_UNSUPPORTED_DATA: Final = 1003
CLOSE_POLICY_VIOLATION: Final = 1008
CLOSE_SERVICE_RESTART: Final = 1012
CLOSE_TOO_SLOW: Final = 4408
_MAX_INVALID_MESSAGES: Final = 3
_PART_OVERHEAD: Final = 64
"""Bytes of a part besides its text."""


class CloseFrame(NamedTuple):
    """How a connection is closed; ``final_message`` is sent before the close."""

    code: int
    reason: str = ""
    final_message: dict[str, Any] | None = None


class SocketMessage(NamedTuple):
    """One message; a client that has it knows all events up to ``last_seq``."""

    text: str
    last_seq: int


class ExecutionSocket:
    """The connection of one client."""

    def __init__(self, websocket: WebSocket, limits: Limits) -> None:
        self._websocket = websocket
        self._limits = limits
        self.backlog_limits = BacklogLimits(limits.subscriber_events, limits.subscriber_bytes)
        self._render = _renderer(limits.socket_frame_bytes)
        self._sent_seq = 0

    async def run(self, send: Callable[[], Awaitable[None]]) -> None:
        """Accept the connection, send and receive until one of the two ends, then close it.

        Args:
            send: Sends everything the client is to receive.
        """
        try:
            await self._websocket.accept()
        except (OSError, WebSocketDisconnect):
            return  # the client left during the handshake
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._receive()), tasks.create_task(_close_after(send))]
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in running:
                task.cancel()
        results = [task.result() for task in running if not task.cancelled()]
        with suppress(WebSocketDisconnect):
            match next((result for result in results if result is not None), None):
                case CloseFrame(code, reason, final_message):
                    if final_message is not None:
                        await self._send_json(final_message)
                    await self._close(code, reason)
                case PlanwaveError() as error:
                    await send_problem(self._websocket, error)
                case _:
                    pass

    # -- sending -----------------------------------------------------------------------------------

    async def send_snapshots(self, first: bytes, snapshots: AsyncIterable[bytes]) -> None:
        """Send periodic status messages."""
        await self._send(first)
        async for snapshot in snapshots:
            await self._send(snapshot)

    async def send_all(self, messages: AsyncIterable[bytes]) -> None:
        """Send messages until there are no more."""
        async for message in messages:
            await self._send(message)

    async def send_reply(self, reply: ReplySubscription) -> None:
        """Send the events of a reply of a chat, as JSON arrays."""
        cursor = reply.cursor
        try:
            async with asyncio.timeout(None) as timeout:
                reply.on_drop(lambda: timeout.reschedule(0))
                while (events := await reply.next()) is not None:
                    if events:
                        await self._send(dumps_trusted(events))
                    cursor = reply.cursor
        except (TimeoutError, SlowConsumer):
            raise SlowConsumer(cursor) from None

    async def send_events(self, subscription: ExecutionSubscription) -> None:
        """Send the snapshot, if the subscription has one, and then every batch of events."""
        self._sent_seq = subscription.cursor
        try:
            async with asyncio.timeout(None) as timeout:
                # Sending to a client that does not read would wait without end.
                subscription.on_drop(lambda: timeout.reschedule(0))
                if (snapshot := subscription.snapshot) is not None:
                    subscription.snapshot = None
                    await self._send(snapshot)
                    del snapshot
                async for batch in subscription:
                    for text, last_seq in batch.render_once(self._render):
                        await self._websocket.send_text(text)
                        self._sent_seq = last_seq
        except (TimeoutError, SlowConsumer):
            raise SlowConsumer(self._sent_seq) from None

    async def _close(self, code: int, reason: str) -> None:
        if self._websocket.application_state is not WebSocketState.DISCONNECTED:
            await self._websocket.close(code, reason)

    async def _send(self, message: bytes) -> None:
        for text in split_message(message, self._limits.socket_frame_bytes):
            await self._websocket.send_text(text)

    async def _send_json(self, message: dict[str, Any]) -> None:
        await self._send(dumps_trusted(message))

    # -- receiving ---------------------------------------------------------------------------------

    async def _receive(self) -> CloseFrame | None:
        limits, invalid = self._limits, 0
        rate = TokenBucket("messages", limits.socket_messages_per_s, limits.socket_messages_burst)
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            try:
                rate.acquire("")
            except TooManyRequests as error:
                return CloseFrame(CLOSE_POLICY_VIOLATION, error.message)
            text = message.get("text")
            if text is None:
                return CloseFrame(CLOSE_UNSUPPORTED_DATA, "messages are JSON texts")
            error = _message_error(text)
            with suppress(WebSocketDisconnect):
                await self._send_json({"type": "pong"} if error is None else _error_message(error))
            invalid += error is not None
            if invalid >= _MAX_INVALID_MESSAGES:
                return CloseFrame(CLOSE_POLICY_VIOLATION, f"{invalid} messages were invalid")


async def _close_after(send: Callable[[], Awaitable[None]]) -> CloseFrame | PlanwaveError | None:
    """Send everything; return how to close the connection, None if the client has left."""
    try:
        await send()
    except WebSocketDisconnect:
        return None
    except SlowConsumer as error:
        return CloseFrame(CLOSE_TOO_SLOW, f"too slow: continue with after={error.cursor}")
    except ShuttingDown as error:
        final_message = {**problem_details(error), "type": "server_draining"}
        return CloseFrame(CLOSE_SERVICE_RESTART, "the service is shutting down", final_message)
    except PlanwaveError as error:
        return error
    return CloseFrame(CLOSE_NORMAL)


@cache
def _renderer(limit: int) -> Callable[[EventBatch], tuple[SocketMessage, ...]]:
    """Return the renderer for a message size; a batch caches its rendering by this function."""
    return partial(messages_of, limit=limit)


def messages_of(batch: EventBatch, limit: int) -> tuple[SocketMessage, ...]:
    """Render a batch as JSON arrays of at most ``limit`` bytes, and in parts where an event is longer."""
    if len(batch.json_array) <= limit:
        return (SocketMessage(batch.json_array.decode(), batch.last_seq),) if batch.events else ()
    messages: list[SocketMessage] = []
    pieces: list[bytes] = []
    size, seq_before = (
        1,
        next((event.seq - 1 for event in batch.events if event.seq), batch.last_seq),
    )

    def flush(last_seq: int) -> None:
        *first, last = split_message(b"[%s]" % b",".join(pieces), limit)
        messages.extend(SocketMessage(text, seq_before) for text in first)
        messages.append(SocketMessage(last, last_seq))

    last_seq = seq_before
    for event, piece in zip(batch.events, batch.json_events, strict=True):
        if pieces and size + len(piece) + 1 > limit:
            flush(last_seq)
            pieces, size, seq_before = [], 1, last_seq
        pieces.append(piece)
        size += len(piece) + 1
        last_seq = event.seq or last_seq
    flush(last_seq)
    return tuple(messages)


def split_message(message: bytes, limit: int) -> tuple[str, ...]:
    """Return a message as it is, or in parts if it is longer than ``limit`` bytes."""
    if len(message) <= limit:
        return (message.decode(),)
    step = (limit - _PART_OVERHEAD) // 2  # in a JSON text, a quote or backslash takes two bytes
    texts: list[str] = []
    at = 0
    while at < len(message):
        end = min(at + step, len(message))
        while end < len(message) and message[end] & 0xC0 == 0x80:  # within a character
            end -= 1
        texts.append(message[at:end].decode())
        at = end
    return tuple(
        dumps_trusted({"type": "part", "part": number, "of": len(texts), "text": text}).decode()
        for number, text in enumerate(texts, 1)
    )


def _message_error(text: str) -> InputError | None:
    """Return what is wrong with a client's message; None for a ping."""
    try:
        message = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return InputError(f"the message is not JSON: {error}", code="invalid-json")
    if not isinstance(message, dict) or message != {"op": "ping"}:
        return InputError(
            "unknown message",
            code="unknown-op",
            hint='send {"op":"ping"} or nothing; the address names the execution',
        )
    return None


def _error_message(error: InputError) -> dict[str, Any]:
    hint = error.as_json().get("hint")
    return {"type": "error", "code": error.code, "detail": error.message, "hint": hint}
