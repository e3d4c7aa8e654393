"""An answer as a stream of server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from planwave.api.auth import authenticate
from planwave.api.dependencies import app_state
from planwave.api.responses import NOT_REPLAYABLE, UNFINISHED
from planwave.api.streaming.sse import PING_INTERVAL_S, EventStream, wait_for_disconnect
from planwave.errors import PlanwaveError
from planwave.events.stream.parts import End
from planwave.interop.openai.answer import AnswerPart
from planwave.interop.openai.chat_format import ChatChunks
from planwave.interop.openai.responses_format import ResponseEvents

_PING = b": ping\n\n"


class AnswerStream(EventStream):
    """The parts of an answer as they come; the stream counts as an open connection of its principal.

    An error of ``begin`` is answered as any other.

    Args:
        request: The request.
        begin: Starts what answers; called once the principal may open the stream.
        parts: The parts; the last one is an ``End``.
        encoder: Writes them in the protocol of the request.
        on_leave: Called where the client leaves before the end; returns whether the work goes on.
        headers: Further headers.
    """

    def __init__(
        self,
        request: Request,
        begin: Callable[[], Awaitable[object]],
        parts: AsyncGenerator[AnswerPart],
        encoder: ChatChunks | ResponseEvents,
        on_leave: Callable[[], Awaitable[bool]],
        headers: Mapping[str, str],
    ) -> None:
        super().__init__()
        self._request = request
        self._begin = begin
        self._parts = parts
        self._encoder = encoder
        self._on_leave = on_leave
        self._is_silent = False
        self.headers.update(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = app_state(self._request)
        limit = state.settings.limits.socket_connections
        with state.connection_limiter.slot(authenticate(self._request).account, limit):
            await self._begin()
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(self._send_parts(scope, send))
                leaving = tasks.create_task(wait_for_disconnect(receive))
                pinging = tasks.create_task(self._ping(send))
                await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
                has_left = not sending.done()
                sending.cancel()
                leaving.cancel()
                pinging.cancel()
        if has_left and await self._on_leave():
            scope[UNFINISHED] = True

    async def _send_parts(self, scope: Scope, send: Send) -> None:
        await self._start(send)
        await self._send_chunk(send, self._encoder.begin())
        last = b""
        try:
            async with aclosing(self._parts) as parts:
                async for part in parts:
                    self._is_silent = False
                    if isinstance(part, End):
                        last = self._end(part, scope)
                    elif chunk := self._encoder.encode(part):
                        await self._send_chunk(send, chunk)
        except PlanwaveError as error:
            scope[UNFINISHED] = True  # it is the stream that failed, not the execution
            last = self._encoder.fail({"message": error.message, "code": error.code})
        await self._send_chunk(send, last, is_last=True)

    def _end(self, end: End, scope: Scope) -> bytes:
        if end.error is not None:
            scope[NOT_REPLAYABLE] = True
        return self._encoder.encode(end)

    async def _ping(self, send: Send) -> None:
        """Send a comment after a while without anything: proxies close connections that are silent."""
        while True:
            await asyncio.sleep(PING_INTERVAL_S)
            if self._is_silent:
                await self._send_chunk(send, _PING)
            self._is_silent = True
