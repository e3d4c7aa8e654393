"""The streams of chats as server-sent events: the events of a reply, and the changes of a chat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from planwave.api.dependencies import AppState
from planwave.api.streaming.sse import (
    PING,
    PING_INTERVAL_S,
    EventStream,
    closing_event,
    format_event,
    wait_for_disconnect,
)
from planwave.errors import PlanwaveError
from planwave.jsonio import dumps_trusted
from planwave.service.service import Service
from planwave.service.streaming.subscriber_queue import BacklogLimits


class _FramedStream(EventStream):
    """Sends what a function yields until its end, or until the client leaves.

    An error before the first event is raised, and answered as any other.
    """

    def __init__(self, state: AppState, principal: str) -> None:
        super().__init__()
        self._state = state
        self._principal = principal

    async def _send_until_left(
        self,
        next_chunk: Callable[[], Awaitable[bytes | None]],
        receive: Receive,
        send: Send,
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(self._send_chunks(next_chunk, send))
            leaving = tasks.create_task(wait_for_disconnect(receive))
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            sending.cancel()
            leaving.cancel()

    async def _send_chunks(
        self, next_chunk: Callable[[], Awaitable[bytes | None]], send: Send
    ) -> None:
        await self._start(send)
        try:
            while (chunk := await next_chunk()) is not None:
                if chunk:
                    await self._send_chunk(send, chunk)
            last = b""
        except PlanwaveError as error:
            last = closing_event(error)
        await self._send_chunk(send, last, is_last=True)


class ReplyEventStream(_FramedStream):
    """The events of a reply; the stream counts as an open connection of its principal."""

    def __init__(
        self, state: AppState, principal: str, chat_id: str, message_id: str, after: int
    ) -> None:
        super().__init__(state, principal)
        self._chat_id = chat_id
        self._message_id = message_id
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits, service = self._state.settings.limits, self._state.service
        backlog = BacklogLimits(limits.subscriber_events, limits.subscriber_bytes)
        with self._state.connection_limiter.slot(self._principal, limits.socket_connections):
            async with service.chats.follow_reply(
                self._chat_id, self._message_id, self._after, backlog
            ) as reply:
                if reply.is_over:
                    await Response(status_code=204)(scope, receive, send)
                    return

                async def next_chunk() -> bytes | None:
                    try:
                        async with asyncio.timeout(PING_INTERVAL_S):
                            events = await reply.next()
                    except TimeoutError:
                        return PING
                    return None if events is None else _format(events)

                await self._send_until_left(next_chunk, receive, send)


class ChatChangeStream(_FramedStream):
    """The changes of a chat; the stream counts as an open connection of its principal."""

    def __init__(self, state: AppState, principal: str, chat_id: str, after: int | None) -> None:
        super().__init__(state, principal)
        self._chat_id = chat_id
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits, service = self._state.settings.limits, self._state.service
        await service.chats.record(self._chat_id)
        with self._state.connection_limiter.slot(self._principal, limits.socket_connections):
            changes = service.chats.changes(self._chat_id, self._after)
            async with aclosing(changes) as chats:
                pending: asyncio.Task[Any] | None = None

                async def next_chunk() -> bytes | None:
                    nonlocal pending
                    if pending is None:
                        pending = asyncio.get_running_loop().create_task(anext(chats, None))  # pyright: ignore[reportArgumentType]
                    done, _ = await asyncio.wait([pending], timeout=PING_INTERVAL_S)
                    if not done:
                        return PING
                    chat, pending = pending.result(), None
                    return None if chat is None else _format([change_frame(chat)])

                try:
                    await self._send_until_left(next_chunk, receive, send)
                finally:
                    if pending is not None:
                        pending.cancel()
                        await asyncio.wait([pending])


async def chat_frames(service: Service, chat_id: str, after: int | None) -> AsyncGenerator[bytes]:
    """Yield the changes of a chat as JSON arrays of one event each."""
    async with aclosing(service.chats.changes(chat_id, after)) as changes:
        async for chat in changes:
            yield dumps_trusted([change_frame(chat)])


def change_frame(chat: Any) -> dict[str, Any]:
    """Return the event of a change of a chat."""
    document = chat.as_json()
    return {"event": "ChatChanged", "chat": document, "seq": document["revision"]}


def _format(events: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(
        format_event(event["event"], dumps_trusted(event), event.get("seq", 0)) for event in events
    )
