"""Bodies of requests that arrive in pieces, and are held by an application until they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from planwave.api.middleware.request_limits import RequestLimitsMiddleware, sender_is_known
from planwave.errors import PlanwaveError
from planwave.settings import Limits


class Uploads:
    """Senders of bodies, and an application behind the limits that keeps what it has received.

    Attributes:
        held: Bytes that the application has in memory, of all bodies together.
        most: The most that it had.
        refusals: Errors that ended bodies.
        end: Lets the application end its requests.
    """

    def __init__(
        self, limits: Limits, *, knows_sender: Callable[[Scope], bool] = lambda _: False
    ) -> None:
        self._middleware = RequestLimitsMiddleware(self._keep, limits)
        self._knows_sender = knows_sender
        self.held = self.most = 0
        self.refusals: list[PlanwaveError] = []
        self.end = asyncio.Event()

    async def send(self, path: str, pieces: Sequence[int]) -> None:
        """Send a body in pieces of so many bytes."""
        left = list(pieces)

        async def receive() -> Message:
            await asyncio.sleep(0)
            size = left.pop(0)
            return {"type": "http.request", "body": bytes(size), "more_body": bool(left)}

        async def send(message: Message) -> None:
            raise AssertionError(message)

        scope: dict[str, Any] = {
            "type": "http", "method": "POST", "path": path, "query_string": b"", "headers": [],
        }  # fmt: skip
        try:
            await self._middleware(scope, receive, send)
        except PlanwaveError as error:
            self.refusals.append(error)

    async def settle(self) -> None:
        """Let everything arrive."""
        for _ in range(200):
            await asyncio.sleep(0)

    async def _keep(self, scope: Scope, receive: Receive, send: Send) -> None:
        own, more = 0, True
        try:
            while more:
                message = await receive()
                own += len(message["body"])
                self.held += len(message["body"])
                self.most = max(self.most, self.held)
                more = message["more_body"]
            if self._knows_sender(scope):
                sender_is_known(scope)
            await self.end.wait()
        finally:
            self.held -= own
