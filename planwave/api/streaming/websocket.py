"""One WebSocket connection that follows an execution: status messages, or events within 50 ms.

Messages are JSON texts. Whatever is longer than the limit ``socket_frame_bytes`` comes as several
``{"type": "part", "part": 1, "of": 3, "text": "…"}``; their texts, put together, are the message.
A client may send ``{"op": "ping"}`` and is answered ``{"type": "pong"}``; everything else it sends
is an error, and three of these end the connection.

Close codes: 1000 it is over · 1003 binary · 1008 too many or too many wrong messages, or a wrong
parameter · 1009 too long a message · 1012 the service is going down · 4401, 4403 not allowed · 4404
no such execution · 4408 too slow, the reason names the last ``seq`` · 4429 too many connections.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final, NamedTuple

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from planwave.api.problems import problem_details, send_problem
from planwave.api.rate_limit import TokenBucket
from planwave.api.websockets import JOINED, PUSH
from planwave.errors import (
    InputError,
    PlanwaveError,
    ShuttingDown,
    SlowConsumer,
    TooManyRequests,
)
from planwave.jsonio import dumps_trusted
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch
from planwave.service.streaming.subscriptions import ExecutionSubscription
from planwave.settings import Limits

CLOSE_NORMAL: Final = 1000
CLOSE_UNSUPPORTED_DATA: Final = 1003
CLOSE_POLICY_VIOLATION: Final = 1008
CLOSE_SERVICE_RESTART: Final = 1012
CLOSE_TOO_SLOW: Final = 4408
_MAX_INVALID_MESSAGES: Final = 3
_TEXT_FRAME: Final = 0x81
_PART_OVERHEAD: Final = 64
"""Bytes a part takes besides its text."""


class CloseFrame(NamedTuple):
    """How a connection is to end; ``last_words`` is said before."""

    code: int
    reason: str = ""
    final_message: dict[str, Any] | None = None


class SocketMessage(NamedTuple):
    """What is sent at once; whoever has it knows all events up to ``last_seq``."""

    text: str
    last_seq: int


class ExecutionSocket:
    """One client."""

    def __init__(self, websocket: WebSocket, limits: Limits) -> None:
        self._websocket = websocket
        self._limits, self._most = limits, limits.socket_frame_bytes
        self.backlog_limits = BacklogLimits(limits.watcher_events, limits.watcher_bytes)
        self._cut = partial(split_message, limit=self._most)
        self._render, self._pack = _renderers(self._most)
        self._push: Callable[[bytes], bool] | None = websocket.scope["extensions"].get(PUSH)
        self._sent_seq = 0
        self._listening: asyncio.Task[CloseFrame | None] | None = None

    async def run(
        self, send: Callable[[], Awaitable[None]], opening: Callable[[], bytes] = bytes
    ) -> None:
        """Tell and listen until one of the two has an end.

        Args:
            send: Tells everything.
            opening: Gives frames that go out with what accepts; by default none.
        """
        try:
            await self._websocket.receive()  # it connects
            accepting: dict[str, Any] = {
                "type": "websocket.accept",
                "headers": [],
                JOINED: opening(),
            }
            await self._websocket.send(accepting)
            del accepting
        except OSError:
            return  # the client left before it was answered
        async with asyncio.TaskGroup() as tasks:
            self._listening = tasks.create_task(self._listen())
            talks = [self._listening, tasks.create_task(_close_for(send))]
            await asyncio.wait(talks, return_when=asyncio.FIRST_COMPLETED)
            for talk in talks:
                talk.cancel()
        self._listening = None  # which holds us
        ends = [talk.result() for talk in talks if not talk.cancelled()]
        with suppress(WebSocketDisconnect):
            match next((end for end in ends if end is not None), None):
                case CloseFrame(code, reason, last_words):
                    if last_words is not None:
                        await self._send_json(last_words)
                    await self._close(code, reason)
                case PlanwaveError() as error:
                    await send_problem(self._websocket, error)
                case _:
                    pass

    # -- telling -----------------------------------------------------------------------------------

    async def send_snapshots(self, first: bytes, glances: AsyncIterable[bytes]) -> None:
        """Send glances."""
        await self._send(self._cut(first))
        async for glance in glances:
            await self._send(self._cut(glance))

    async def send_events(self, following: ExecutionSubscription) -> None:
        """Send what follows, after the snapshot where that did not go out with what accepted."""
        self._sent_seq = following.cursor
        try:
            async with asyncio.timeout(None) as patience:
                # A client that does not read would never come to hear of it.
                following.on_drop(lambda: patience.reschedule(0))
                if self._push is not None:
                    following.sink(self._take)
                if (snapshot := following.snapshot) is not None:
                    following.snapshot = None
                    await self._send(self._cut(snapshot))
                    del snapshot
                async for frame in following:
                    if frame.is_last and await self._closed_with(frame):
                        return
                    for text, last_seq in frame.render_once(self._render):
                        await self._websocket.send({"type": "websocket.send", "text": text})
                        self._sent_seq = last_seq
        except (TimeoutError, SlowConsumer):
            raise SlowConsumer(self._sent_seq) from None

    def opening(self, following: ExecutionSubscription) -> bytes:
        """Give the snapshot, unless there is none or it is too long to be sent whole."""
        snapshot = following.snapshot
        if snapshot is None or self._push is None or len(snapshot) > self._most:
            return b""
        following.snapshot = None
        return packed(snapshot)

    async def _closed_with(self, last: EventBatch) -> bool:
        """Close with the last frame, if that needs no waiting; else False."""
        frames = last.render_once(self._pack)
        if frames is None or self._push is None or not self._push(b""):
            return False
        if self._listening is not None:
            self._listening.cancel()  # it must not answer once there was a close
        await self._close(CLOSE_NORMAL, joined=frames)
        return True

    async def _close(self, code: int, reason: str = "", joined: bytes = b"") -> None:
        if self._websocket.application_state is not WebSocketState.DISCONNECTED:
            await self._websocket.send(
                {"type": "websocket.close", "code": code, "reason": reason, JOINED: joined}
            )

    def _take(self, frame: EventBatch) -> bool:
        packed = frame.render_once(self._pack)
        if packed is None or self._push is None or not self._push(packed):
            return False
        self._sent_seq = frame.last_seq
        return True

    async def _send(self, messages: Sequence[str]) -> None:
        for message in messages:
            await self._websocket.send({"type": "websocket.send", "text": message})

    async def _send_json(self, said: dict[str, Any]) -> None:
        await self._send([dumps_trusted(said).decode()])

    # -- listening ---------------------------------------------------------------------------------

    async def _listen(self) -> CloseFrame | None:
        limits, bad = self._limits, 0
        pace = TokenBucket("messages", limits.socket_messages_per_s, limits.socket_messages_burst)
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            try:
                pace.acquire("")
            except TooManyRequests as error:
                return CloseFrame(CLOSE_POLICY_VIOLATION, error.message)
            text = message.get("text")
            if text is None:
                return CloseFrame(CLOSE_UNSUPPORTED_DATA, "messages are JSON texts")
            fault = _message_error(text)
            with suppress(WebSocketDisconnect):
                await self._send_json({"type": "pong"} if fault is None else _error_message(fault))
            bad += fault is not None
            if bad >= _MAX_INVALID_MESSAGES:
                return CloseFrame(CLOSE_POLICY_VIOLATION, f"{bad} messages were not understood")


async def _close_for(send: Callable[[], Awaitable[None]]) -> CloseFrame | PlanwaveError | None:
    """Tell everything; give how the connection is to end then, None where the client has left."""
    try:
        await send()
    except WebSocketDisconnect:
        return None
    except SlowConsumer as error:
        return CloseFrame(CLOSE_TOO_SLOW, f"too slow: go on with after={error.cursor}")
    except ShuttingDown as error:
        last_words = {**problem_details(error), "type": "server_draining"}
        return CloseFrame(CLOSE_SERVICE_RESTART, "the service is going down", last_words)
    except PlanwaveError as error:
        return error
    return CloseFrame(CLOSE_NORMAL)


@cache
def _renderers(
    most: int,
) -> tuple[Callable[[EventBatch], tuple[SocketMessage, ...]], Callable[[EventBatch], bytes | None]]:
    """Give the renderers for a size: frames remember what was made of them by who made it."""

    def render(frame: EventBatch) -> tuple[SocketMessage, ...]:
        return messages_of(frame, most)

    def pack(frame: EventBatch) -> bytes | None:
        messages = frame.render_once(render)
        return packed(messages[0].text.encode()) if len(messages) == 1 else None

    return render, pack


def packed(message: bytes) -> bytes:
    """Give a text, as UTF-8, as a server sends it (RFC 6455 §5.2): one frame, not masked."""
    size = len(message)
    if size < 126:
        head = struct.pack("!BB", _TEXT_FRAME, size)
    elif size < 65_536:
        head = struct.pack("!BBH", _TEXT_FRAME, 126, size)
    else:
        head = struct.pack("!BBQ", _TEXT_FRAME, 127, size)
    return head + message


def messages_of(frame: EventBatch, limit: int) -> tuple[SocketMessage, ...]:
    """Give the events of a frame as JSON arrays of at most so many bytes, in parts where need be."""
    if len(frame.json_array) <= limit:
        return (SocketMessage(frame.json_array.decode(), frame.last_seq),) if frame.events else ()
    messages: list[SocketMessage] = []
    batch: list[bytes] = []
    size, known = 1, next((event.seq - 1 for event in frame.events if event.seq), frame.last_seq)

    def pack(last_seq: int) -> None:
        *first, last = split_message(b"[%s]" % b",".join(batch), limit)
        messages.extend(SocketMessage(text, known) for text in first)
        messages.append(SocketMessage(last, last_seq))

    last_seq = known
    for event, piece in zip(frame.events, frame.json_events, strict=True):
        if batch and size + len(piece) + 1 > limit:
            pack(last_seq)
            batch, size, known = [], 1, last_seq
        batch.append(piece)
        size += len(piece) + 1
        last_seq = event.seq or last_seq
    pack(last_seq)
    return tuple(messages)


def split_message(message: bytes, limit: int) -> tuple[str, ...]:
    """Give a message as it is, or where it is longer than ``most`` bytes, in parts."""
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
    """Say what is wrong with a client's message."""
    try:
        said = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return InputError(f"the message is not JSON: {error}", code="invalid-json")
    if not isinstance(said, dict) or said != {"op": "ping"}:
        return InputError(
            "the message is none that is known here",
            code="unknown-op",
            hint='send {"op":"ping"} or nothing; the execution is named by the address',
        )
    return None


def _error_message(fault: InputError) -> dict[str, Any]:
    told = fault.as_json()
    return {"type": "error", "code": fault.code, "detail": fault.message, "hint": told.get("hint")}
