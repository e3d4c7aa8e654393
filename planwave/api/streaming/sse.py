"""Server-sent events: the events of an execution, and a plan while it is written.

Stored events have their ``seq`` as ``id``, so that a browser's ``EventSource`` reconnects with the right
``Last-Event-ID`` by itself. Streamed text has no id: after a reconnect the client gets the text of each
unfinished node again, from offset 0, and places pieces by their ``offset``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from planwave.api.dependencies import AppState
from planwave.api.middleware.idempotency import NOT_REPLAYABLE
from planwave.api.problems import problem_details
from planwave.errors import PlanwaveError, ShuttingDown, SlowConsumer
from planwave.graph.plan import Plan
from planwave.jsonio import dumps_trusted
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch
from planwave.service.streaming.subscriptions import ExecutionSubscription

PING_INTERVAL_S: Final = 15.0
"""A comment is sent after so much silence: proxies cut connections that say nothing."""
_PING: Final = b": ping\n\n"


class ExecutionEventStream(Response):
    """The answer: one client that follows an execution, on one of its principal's seats.

    What goes wrong before anything was told is raised, and answered as any other failure.
    """

    media_type = "text/event-stream"

    def __init__(self, state: AppState, principal: str, execution_id: str, after: int) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._state = state
        self._principal = principal
        self._execution_id = execution_id
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits, service = self._state.settings.limits, self._state.service
        bounds = BacklogLimits(limits.watcher_events, limits.watcher_bytes)
        with self._state.connection_limiter.slot(self._principal, limits.socket_connections):
            async with service.subscribe(self._execution_id, self._after, bounds) as following:
                await self._respond(following, scope, receive, send)

    async def _respond(
        self, following: ExecutionSubscription, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if following.is_over:
            await Response(status_code=204)(scope, receive, send)
            return
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._send_events(following, send))
            leaving = tasks.create_task(_wait_for_disconnect(receive))
            await asyncio.wait((telling, leaving), return_when=asyncio.FIRST_COMPLETED)
            telling.cancel()
            leaving.cancel()

    async def _send_events(self, following: ExecutionSubscription, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            while (body := await _next_chunk(following)) is not None:
                await send({"type": "http.response.body", "body": body, "more_body": True})
            body = b""
        except PlanwaveError as error:
            body = _closing_event(error)
        await send({"type": "http.response.body", "body": body, "more_body": False})


async def _next_chunk(following: ExecutionSubscription) -> bytes | None:
    """Give what is to be sent next; None when there is nothing more."""
    try:
        async with asyncio.timeout(PING_INTERVAL_S):
            frame = await following.next()
    except TimeoutError:
        return _PING
    return None if frame is None else frame.render_once(_event_lines)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _event_lines(frame: EventBatch) -> bytes:
    return b"".join(
        b"%sevent: %s\ndata: %s\n\n"
        % (b"id: %d\n" % event.seq if event.seq else b"", event.type.encode(), piece)
        for event, piece in zip(frame.events, frame.json_events, strict=True)
    )


def _closing_event(error: PlanwaveError) -> bytes:
    """Give the message that ends a stream early."""
    event, said = b"problem", problem_details(error)
    if isinstance(error, ShuttingDown):
        event = b"server_draining"
    elif isinstance(error, SlowConsumer):
        event, said = b"too_slow", {**said, "cursor": error.cursor}
    return b"event: %s\ndata: %s\n\n" % (event, dumps_trusted(said))


_log = logging.getLogger(__name__)

FIRST_EVENT_TIMEOUT_S: Final = 1.0
"""How long a planning that says nothing may still be answered with a status of its own."""
PLAN_PING_INTERVAL_S: Final = 15.0
DRAIN_POLL_S: Final = 1.0
"""Between two looks at whether the service is going down."""

PLAN_STREAM_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
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


class PlanProgressEvent(Protocol):
    """What the planner tells: ``PlanProgress`` fits."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...


class _PlanStreamItem(NamedTuple):
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
        create: Callable[[Callable[[PlanProgressEvent], None]], Awaitable[Plan]],
        is_draining: Callable[[], bool],
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._create = create
        self._is_draining = is_draining
        self._items: asyncio.Queue[_PlanStreamItem] = asyncio.Queue()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with asyncio.TaskGroup() as tasks:
            planning = tasks.create_task(self._plan())
            leaving = tasks.create_task(self._watch_disconnect(receive))
            failure = await self._send_events(scope, send)
            planning.cancel()
            leaving.cancel()
        if failure is not None:
            raise failure

    async def _plan(self) -> None:
        try:
            plan = await self._create(
                lambda told: self._items.put_nowait(_PlanStreamItem(told.kind, told.data))
            )
        except Exception as error:  # noqa: BLE001 - a task boundary: it is told, or raised again
            self._fail(error)
        else:
            self._items.put_nowait(_PlanStreamItem("plan", plan.as_json(), plan))

    async def _watch_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._fail(ClientDisconnect())

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, PlanwaveError | ClientDisconnect):
            _log.error("planning broke", exc_info=error)
        told = error if isinstance(error, PlanwaveError) else PlanwaveError("planning broke")
        event = "server_draining" if isinstance(error, ShuttingDown) else "problem"
        self._items.put_nowait(_PlanStreamItem(event, problem_details(told), error))

    async def _send_events(self, scope: Scope, send: Send) -> Exception | None:
        """Tell everything; gives the failure that is left to be raised."""
        items = await self._next_items(FIRST_EVENT_TIMEOUT_S)
        if items and isinstance(items[0].end, Exception):
            return items[0].end
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        silent_s = 0.0
        while True:
            end = items[-1].end if items else None
            if isinstance(end, ClientDisconnect):
                return end
            if isinstance(end, Exception):
                scope[NOT_REPLAYABLE] = True
            silent_s = 0.0 if items else silent_s + DRAIN_POLL_S
            if items or silent_s >= PLAN_PING_INTERVAL_S:
                silent_s = 0.0
                body = b"".join(map(_plan_event_lines, _coalesce(items))) or b": ping\n\n"
                await send({"type": "http.response.body", "body": body, "more_body": end is None})
            if end is not None:
                return None
            items = await self._next_items(DRAIN_POLL_S)

    async def _next_items(self, patience_s: float) -> list[_PlanStreamItem]:
        """Give what there is to tell up to an end, waiting a while for the first of it."""
        if self._is_draining() and self._items.empty():
            self._fail(ShuttingDown())
        items: list[_PlanStreamItem] = []
        try:
            async with asyncio.timeout(patience_s):
                items.append(await self._items.get())
        except TimeoutError:
            return items
        while items[-1].end is None and not self._items.empty():
            items.append(self._items.get_nowait())
        return items


def _coalesce(items: Sequence[_PlanStreamItem]) -> list[_PlanStreamItem]:
    """Join pieces of text that follow each other."""
    told: list[_PlanStreamItem] = []
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


def _plan_event_lines(item: _PlanStreamItem) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (item.event.encode(), dumps_trusted(item.data))
