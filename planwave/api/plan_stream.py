"""A plan told while it is written, as server-sent events."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from planwave.api.idempotency import MADE_NOTHING
from planwave.api.problems import problem_of
from planwave.errors import Draining, PlanwaveError
from planwave.graph.plan import Plan
from planwave.storage.rows import encode_known

_log = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0
"""How long a planning that says nothing may still be answered with a status of its own."""
PING_S: Final = 15.0
GLANCE_S: Final = 1.0
"""Between two looks at whether the service is going down."""

EVENT_STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "With `stream=1`: the plan as it is written.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'event: title\ndata: {"title":"A poem about water"}\n\n'
                'event: plan\ndata: {"plan_id":"…","title":"A poem about water"}\n\n',
            }
        },
    }
}


class Told(Protocol):
    """What the planner tells: ``PlanProgress`` fits."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...


class _Item(NamedTuple):
    """One thing to tell; ``end`` is what ends the stream."""

    event: str
    data: dict[str, Any]
    end: Plan | Exception | None = None


class PlanStream(Response):
    """The answer to ``POST /api/plan?stream=1``; who leaves it stops the planning.

    A failure before anything was told is raised, and answered as any other.

    Args:
        create: Makes the plan, given who is to be told of its progress.
        is_draining: Whether the service is going down, which ends the stream.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        create: Callable[[Callable[[Told], None]], Awaitable[Plan]],
        is_draining: Callable[[], bool],
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._create = create
        self._is_draining = is_draining
        self._items: asyncio.Queue[_Item] = asyncio.Queue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with asyncio.TaskGroup() as tasks:
            planning = tasks.create_task(self._plan())
            leaving = tasks.create_task(self._leave(receive))
            failure = await self._tell(scope, send)
            planning.cancel()
            leaving.cancel()
        if failure is not None:
            raise failure

    async def _plan(self) -> None:
        try:
            plan = await self._create(
                lambda told: self._items.put_nowait(_Item(told.kind, told.data))
            )
        except Exception as error:  # noqa: BLE001 - a task boundary: it is told, or raised again
            self._fail(error)
        else:
            self._items.put_nowait(_Item("plan", plan.as_json(), plan))

    async def _leave(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._fail(ClientDisconnect())

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, PlanwaveError | ClientDisconnect):
            _log.error("planning broke", exc_info=error)
        told = error if isinstance(error, PlanwaveError) else PlanwaveError("planning broke")
        event = "server_draining" if isinstance(error, Draining) else "problem"
        self._items.put_nowait(_Item(event, problem_of(told), error))

    async def _tell(self, scope: Scope, send: Send) -> Exception | None:
        """Tell everything; gives the failure that is left to be raised."""
        items = await self._next(PATIENCE_S)
        if items and isinstance(items[0].end, Exception):
            return items[0].end
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        silent_s = 0.0
        while True:
            end = items[-1].end if items else None
            if isinstance(end, ClientDisconnect):
                return end
            if isinstance(end, Exception):
                scope[MADE_NOTHING] = True
            silent_s = 0.0 if items else silent_s + GLANCE_S
            if items or silent_s >= PING_S:
                silent_s = 0.0
                body = b"".join(map(_frame, _joined(items))) or b": ping\n\n"
                await send({"type": "http.response.body", "body": body, "more_body": end is None})
            if end is not None:
                return None
            items = await self._next(GLANCE_S)

    async def _next(self, patience_s: float) -> list[_Item]:
        """Give what there is to tell up to an end, waiting a while for the first of it."""
        if self._is_draining() and self._items.empty():
            self._fail(Draining())
        items: list[_Item] = []
        try:
            async with asyncio.timeout(patience_s):
                items.append(await self._items.get())
        except TimeoutError:
            return items
        while items[-1].end is None and not self._items.empty():
            items.append(self._items.get_nowait())
        return items


def _joined(items: Sequence[_Item]) -> list[_Item]:
    """Join pieces of text that follow each other."""
    told: list[_Item] = []
    for item in items:
        last = told[-1] if told else None
        if (
            last is not None
            and item.event == last.event == "delta"
            and item.data["reasoning"] == last.data["reasoning"]
        ):
            data = {**last.data, "text": last.data["text"] + item.data["text"]}
            told[-1] = last._replace(data=data)
        else:
            told.append(item)
    return told


def _frame(item: _Item) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (item.event.encode(), encode_known(item.data))
