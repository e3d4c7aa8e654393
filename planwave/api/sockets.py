"""Route: an execution over WebSocket, as glances every second or as events within 50 ms.

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
from contextlib import aclosing, suppress
from functools import cache, partial
from typing import Any, Final, Literal, NamedTuple

import orjson
from fastapi import APIRouter
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from planwave.api.access import admit
from planwave.api.paces import Pace
from planwave.api.problems import InvalidRequest, Refused, problem_of, refuse
from planwave.api.state import ADMITTED, state_of
from planwave.api.websockets import JOINED, PUSH
from planwave.errors import Busy, Draining, InputError, NotFound, PlanwaveError, TooSlow
from planwave.graph.json_values import shown
from planwave.service.following import Following
from planwave.service.frames import Bounds, Frame
from planwave.settings import Limits
from planwave.storage.ids import UUID_PATTERN
from planwave.storage.rows import encode_known

router = APIRouter(dependencies=ADMITTED)

OVER: Final = 1000
BINARY: Final = 1003
MISBEHAVED: Final = 1008
GOING_DOWN: Final = 1012
TOO_SLOW: Final = 4408
INTERVAL_S: Final = (0.1, 1.0, 60.0)
"""Between two glances: least, default, most."""
_MOST_BAD: Final = 3
_TEXT_FRAME: Final = 0x81
_PART_ROOM: Final = 64
"""Bytes a part takes besides its text."""


class Close(NamedTuple):
    """How a connection is to end; ``last_words`` is said before."""

    code: int
    reason: str = ""
    last_words: dict[str, Any] | None = None


class Message(NamedTuple):
    """What is sent at once; whoever has it knows all events up to ``last_seq``."""

    text: str
    last_seq: int


class Wanted(NamedTuple):
    """What a client asked for in its query.

    Attributes:
        after: The last ``seq`` it knows; None for a snapshot and what happens after it.
    """

    mode: Literal["poll", "events"]
    interval_s: float
    after: int | None


@router.websocket("/ws/{execution_id:path}")
async def watch(websocket: WebSocket) -> None:
    """Watch an execution until it is over."""
    execution_id = websocket.path_params["execution_id"]
    state, principal = state_of(websocket), admit(websocket)
    wanted = wanted_by(websocket)
    if UUID_PATTERN.fullmatch(execution_id) is None:
        raise NotFound("that is no execution's id")
    with state.seats.take(principal, state.settings.limits.socket_connections):
        connection = _Connection(websocket, state.settings.limits)
        if wanted.mode == "poll":
            found = state.service.glances(execution_id, wanted.interval_s)
            async with aclosing(found) as glances:
                first = await anext(glances)
                await connection.run(partial(connection.show, first, glances))
        else:
            async with state.service.follow(
                execution_id, wanted.after, connection.bounds, with_snapshot=True
            ) as following:
                opening = partial(connection.opening, following)
                await connection.run(partial(connection.follow, following), opening)


@router.get("/ws/{execution_id:path}", include_in_schema=False)
async def not_a_socket(execution_id: str) -> Response:
    """Say what is missing where a request for a WebSocket came without asking to become one."""
    raise Refused(
        426,
        "upgrade-required",
        f"{shown(f'/ws/{execution_id}')} is spoken to over WebSocket",
        hint="use a WebSocket client; a proxy between has to pass Upgrade and Connection on",
        headers={"Upgrade": "websocket", "Connection": "Upgrade"},
    )


def wanted_by(websocket: WebSocket) -> Wanted:
    """Read the query.

    Raises:
        InvalidRequest: It has something that does not fit.
    """
    query = websocket.query_params
    mode = query.get("mode", "poll")
    least, interval_s, most = INTERVAL_S
    after: int | None = None
    if mode not in ("poll", "events"):
        raise _invalid("mode", "is poll or events")
    if (asked := query.get("interval")) is not None:
        with suppress(ValueError):
            interval_s = float(asked)
            asked = None
        if asked is not None or not least <= interval_s <= most:
            raise _invalid("interval", f"is a number of seconds from {least:g} to {most:g}")
    if (known := query.get("after")) is not None:
        if not (known.isascii() and known.isdecimal() and len(known) <= 15):
            raise _invalid("after", "is the seq of an event, or 0")
        after = int(known)
    return Wanted(mode, interval_s, after)


class _Connection:
    """One client."""

    def __init__(self, websocket: WebSocket, limits: Limits) -> None:
        self._websocket = websocket
        self._limits, self._most = limits, limits.socket_frame_bytes
        self.bounds = Bounds(limits.watcher_events, limits.watcher_bytes)
        self._cut = partial(in_parts, most=self._most)
        self._render, self._pack = _renderers(self._most)
        self._push: Callable[[bytes], bool] | None = websocket.scope["extensions"].get(PUSH)
        self._sent_seq = 0
        self._listening: asyncio.Task[Close | None] | None = None

    async def run(
        self, tell: Callable[[], Awaitable[None]], opening: Callable[[], bytes] = bytes
    ) -> None:
        """Tell and listen until one of the two has an end.

        Args:
            tell: Tells everything.
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
            talks = [self._listening, tasks.create_task(_end_of(tell))]
            await asyncio.wait(talks, return_when=asyncio.FIRST_COMPLETED)
            for talk in talks:
                talk.cancel()
        self._listening = None  # which holds us
        ends = [talk.result() for talk in talks if not talk.cancelled()]
        with suppress(WebSocketDisconnect):
            match next((end for end in ends if end is not None), None):
                case Close(code, reason, last_words):
                    if last_words is not None:
                        await self._say(last_words)
                    await self._close(code, reason)
                case PlanwaveError() as error:
                    await refuse(self._websocket, error)
                case _:
                    pass

    # -- telling -----------------------------------------------------------------------------------

    async def show(self, first: bytes, glances: AsyncIterable[bytes]) -> None:
        """Send glances."""
        await self._send(self._cut(first))
        async for glance in glances:
            await self._send(self._cut(glance))

    async def follow(self, following: Following) -> None:
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
                    for text, last_seq in frame.rendered(self._render):
                        await self._websocket.send({"type": "websocket.send", "text": text})
                        self._sent_seq = last_seq
        except (TimeoutError, TooSlow):
            raise TooSlow(self._sent_seq) from None

    def opening(self, following: Following) -> bytes:
        """Give the snapshot, unless there is none or it is too long to be sent whole."""
        snapshot = following.snapshot
        if snapshot is None or self._push is None or len(snapshot) > self._most:
            return b""
        following.snapshot = None
        return packed(snapshot)

    async def _closed_with(self, last: Frame) -> bool:
        """Close with the last frame, if that needs no waiting; else False."""
        frames = last.rendered(self._pack)
        if frames is None or self._push is None or not self._push(b""):
            return False
        if self._listening is not None:
            self._listening.cancel()  # it must not answer once there was a close
        await self._close(OVER, joined=frames)
        return True

    async def _close(self, code: int, reason: str = "", joined: bytes = b"") -> None:
        if self._websocket.application_state is not WebSocketState.DISCONNECTED:
            await self._websocket.send(
                {"type": "websocket.close", "code": code, "reason": reason, JOINED: joined}
            )

    def _take(self, frame: Frame) -> bool:
        packed = frame.rendered(self._pack)
        if packed is None or self._push is None or not self._push(packed):
            return False
        self._sent_seq = frame.last_seq
        return True

    async def _send(self, messages: Sequence[str]) -> None:
        for message in messages:
            await self._websocket.send({"type": "websocket.send", "text": message})

    async def _say(self, said: dict[str, Any]) -> None:
        await self._send([encode_known(said).decode()])

    # -- listening ---------------------------------------------------------------------------------

    async def _listen(self) -> Close | None:
        limits, bad = self._limits, 0
        pace = Pace("messages", limits.socket_messages_per_s, limits.socket_messages_burst)
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            try:
                pace.take("")
            except Busy as error:
                return Close(MISBEHAVED, error.message)
            text = message.get("text")
            if text is None:
                return Close(BINARY, "messages are JSON texts")
            fault = _fault_of(text)
            with suppress(WebSocketDisconnect):
                await self._say({"type": "pong"} if fault is None else _error(fault))
            bad += fault is not None
            if bad >= _MOST_BAD:
                return Close(MISBEHAVED, f"{bad} messages were not understood")


async def _end_of(tell: Callable[[], Awaitable[None]]) -> Close | PlanwaveError | None:
    """Tell everything; give how the connection is to end then, None where the client has left."""
    try:
        await tell()
    except WebSocketDisconnect:
        return None
    except TooSlow as error:
        return Close(TOO_SLOW, f"too slow: go on with after={error.cursor}")
    except Draining as error:
        last_words = {**problem_of(error), "type": "server_draining"}
        return Close(GOING_DOWN, "the service is going down", last_words)
    except PlanwaveError as error:
        return error
    return Close(OVER)


@cache
def _renderers(
    most: int,
) -> tuple[Callable[[Frame], tuple[Message, ...]], Callable[[Frame], bytes | None]]:
    """Give the renderers for a size: frames remember what was made of them by who made it."""

    def render(frame: Frame) -> tuple[Message, ...]:
        return messages_of(frame, most)

    def pack(frame: Frame) -> bytes | None:
        messages = frame.rendered(render)
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


def messages_of(frame: Frame, most: int) -> tuple[Message, ...]:
    """Give the events of a frame as JSON arrays of at most so many bytes, in parts where need be."""
    if len(frame.whole) <= most:
        return (Message(frame.whole.decode(), frame.last_seq),) if frame.events else ()
    messages: list[Message] = []
    batch: list[bytes] = []
    size, known = 1, next((event.seq - 1 for event in frame.events if event.seq), frame.last_seq)

    def pack(last_seq: int) -> None:
        *first, last = in_parts(b"[%s]" % b",".join(batch), most)
        messages.extend(Message(text, known) for text in first)
        messages.append(Message(last, last_seq))

    last_seq = known
    for event, piece in zip(frame.events, frame.pieces, strict=True):
        if batch and size + len(piece) + 1 > most:
            pack(last_seq)
            batch, size, known = [], 1, last_seq
        batch.append(piece)
        size += len(piece) + 1
        last_seq = event.seq or last_seq
    pack(last_seq)
    return tuple(messages)


def in_parts(message: bytes, most: int) -> tuple[str, ...]:
    """Give a message as it is, or where it is longer than ``most`` bytes, in parts."""
    if len(message) <= most:
        return (message.decode(),)
    step = (most - _PART_ROOM) // 2  # in a JSON text, a quote or backslash takes two bytes
    texts: list[str] = []
    at = 0
    while at < len(message):
        end = min(at + step, len(message))
        while end < len(message) and message[end] & 0xC0 == 0x80:  # within a character
            end -= 1
        texts.append(message[at:end].decode())
        at = end
    return tuple(
        encode_known({"type": "part", "part": number, "of": len(texts), "text": text}).decode()
        for number, text in enumerate(texts, 1)
    )


def _fault_of(text: str) -> InputError | None:
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


def _error(fault: InputError) -> dict[str, Any]:
    told = fault.as_json()
    return {"type": "error", "code": fault.code, "detail": fault.message, "hint": told.get("hint")}


def _invalid(name: str, what: str) -> InvalidRequest:
    message = f"query parameter {name!r} {what}"
    issue = {"code": "invalid-parameter", "message": message, "pointer": "", "parameter": name}
    return InvalidRequest(message, [issue])
