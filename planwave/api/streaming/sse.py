"""Server-sent events: the events of an execution, and a plan while it is written.

Stored events have their ``seq`` as ``id``, so that a browser's ``EventSource`` reconnects with the right
``Last-Event-ID`` by itself. Streamed text has no id: after a reconnect the client gets the text of each
unfinished node again, from offset 0, and places pieces by their ``offset``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from planwave.api.dependencies import AppState
from planwave.api.problems import problem_details
from planwave.api.responses import NOT_REPLAYABLE
from planwave.errors import PlanwaveError, ShuttingDown, SlowConsumer
from planwave.jsonio import dumps_trusted
from planwave.service.queries.history import ExecutionQueries
from planwave.service.streaming.subscriber_queue import BacklogLimits, EventBatch
from planwave.service.streaming.subscriptions import ExecutionSubscription

_log = logging.getLogger(__name__)

PING_INTERVAL_S: Final = 15.0
"""A comment is sent after so long without an event: proxies close connections that are silent."""
FIRST_EVENT_TIMEOUT_S: Final = 1.0
"""How long a plan stream waits for its first event: until then a failure has its own HTTP status."""
DRAIN_POLL_S: Final = 1.0
"""Between two checks of whether the service is draining."""
PING: Final = b": ping\n\n"
"""A comment, for proxies."""


class EventStream(Response):
    """A response of server-sent events; subclasses send its chunks."""

    media_type = "text/event-stream"

    def __init__(self) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]

    async def _start(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})

    async def _send_chunk(self, send: Send, chunk: bytes, *, is_last: bool = False) -> None:
        await send({"type": "http.response.body", "body": chunk, "more_body": not is_last})


def format_event(name: str, data: bytes, event_id: int = 0) -> bytes:
    """Return one server-sent event; 0 is no id."""
    event = b"event: %s\ndata: %s\n\n" % (name.encode(), data)
    return b"id: %d\n%s" % (event_id, event) if event_id else event


async def wait_for_disconnect(receive: Receive) -> None:
    """Return once the client has left; the body of its request was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass


class ExecutionEventStream(EventStream):
    """The events of an execution; the stream counts as an open connection of its principal.

    An error before the first event is raised, and answered as any other.

    Args:
        state: Of the application.
        principal: Who watches.
        execution_id: The execution.
        after: The last event already known.
        executions: What the principal sees of executions; None for what everybody sees.
        render: Returns a batch as server-sent events; called once for all that use the same.
        on_leave: Called where the client leaves before the end.
    """

    def __init__(
        self,
        state: AppState,
        principal: str,
        execution_id: str,
        after: int,
        *,
        executions: ExecutionQueries | None = None,
        render: Callable[[EventBatch], bytes] | None = None,
        on_leave: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__()
        self._render = render or _format_batch
        self._on_leave = on_leave
        self._state = state
        self._executions = executions or state.service.executions
        self._principal = principal
        self._execution_id = execution_id
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limits = self._state.settings.limits
        backlog = BacklogLimits(limits.subscriber_events, limits.subscriber_bytes)
        followers, counts = self._state.service.followers, self._on_leave is not None
        with self._state.connection_limiter.slot(self._principal, limits.socket_connections):
            async with (
                followers.following(self._execution_id, counts=counts),
                self._executions.subscribe(
                    self._execution_id, self._after, backlog
                ) as subscription,
            ):
                await self._respond(subscription, scope, receive, send)

    async def _respond(
        self, subscription: ExecutionSubscription, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if subscription.is_over:
            await Response(status_code=204)(scope, receive, send)
            return
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(self._send_events(subscription, send))
            leaving = tasks.create_task(wait_for_disconnect(receive))
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
            has_left = not sending.done()
            sending.cancel()
            leaving.cancel()
        if has_left and self._on_leave is not None:
            await self._on_leave()

    async def _send_events(self, subscription: ExecutionSubscription, send: Send) -> None:
        await self._start(send)
        try:
            while (chunk := await _next_chunk(subscription, self._render)) is not None:
                await self._send_chunk(send, chunk)
            last = b""
        except PlanwaveError as error:
            last = closing_event(error)
        await self._send_chunk(send, last, is_last=True)


async def _next_chunk(
    subscription: ExecutionSubscription, render: Callable[[EventBatch], bytes]
) -> bytes | None:
    """Return the next events, or a ping; None after the last event."""
    try:
        async with asyncio.timeout(PING_INTERVAL_S):
            batch = await subscription.next()
    except TimeoutError:
        return PING
    return None if batch is None else batch.render_once(render)


def _format_batch(batch: EventBatch) -> bytes:
    return b"".join(
        format_event(event.type, data, event.seq)
        for event, data in zip(batch.events, batch.json_events, strict=True)
    )


def closing_event(error: PlanwaveError) -> bytes:
    """Return the event that ends a stream early."""
    name, data = "problem", problem_details(error)
    if isinstance(error, ShuttingDown):
        name = "server_draining"
    elif isinstance(error, SlowConsumer):
        name, data = "too_slow", {**data, "cursor": error.cursor}
    return format_event(name, dumps_trusted(data))


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
    """One step of progress of the planner; ``PlanProgress`` satisfies it."""

    @property
    def kind(self) -> str: ...
    @property
    def data(self) -> dict[str, Any]: ...


class _PlanStreamItem(NamedTuple):
    """One event of a plan stream; ``end`` is set in the last one."""

    event: str
    data: Mapping[str, Any]
    end: Mapping[str, Any] | Exception | None = None


class PlanStream(EventStream):
    """The response to a request with ``stream=1`` for a plan, or a change of one; a client that disconnects cancels it.

    An error before the first event is raised, and answered as any other.

    Args:
        create: Creates the plan, calling its argument with each step of progress; returns its JSON.
        is_draining: Returns whether the service is shutting down, which ends the stream.
        last: The name of the event with what was created.
    """

    def __init__(
        self,
        create: Callable[[Callable[[PlanProgressEvent], None]], Awaitable[Mapping[str, Any]]],
        is_draining: Callable[[], bool],
        last: Literal["plan", "proposal"] = "plan",
    ) -> None:
        super().__init__()
        self._create, self._last = create, last
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
                lambda event: self._items.put_nowait(_PlanStreamItem(event.kind, event.data))
            )
        except Exception as error:  # noqa: BLE001 - a task boundary: sent to the client, or raised
            self._fail(error)
        else:
            self._items.put_nowait(_PlanStreamItem(self._last, plan, plan))

    async def _watch_disconnect(self, receive: Receive) -> None:
        await wait_for_disconnect(receive)
        self._fail(ClientDisconnect())

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, PlanwaveError | ClientDisconnect):
            _log.error("planning failed", exc_info=error)
        problem = error if isinstance(error, PlanwaveError) else PlanwaveError("planning failed")
        event = "server_draining" if isinstance(error, ShuttingDown) else "problem"
        self._items.put_nowait(_PlanStreamItem(event, problem_details(problem), error))

    async def _send_events(self, scope: Scope, send: Send) -> Exception | None:
        """Send all events; return the error to raise if none was sent."""
        items = await self._next_items(FIRST_EVENT_TIMEOUT_S)
        if items and isinstance(items[0].end, Exception):
            return items[0].end
        await self._start(send)
        silent_s = 0.0
        while True:
            end = items[-1].end if items else None
            if isinstance(end, ClientDisconnect):
                return end
            if isinstance(end, Exception):
                scope[NOT_REPLAYABLE] = True
            silent_s = 0.0 if items else silent_s + DRAIN_POLL_S
            if items or silent_s >= PING_INTERVAL_S:
                silent_s = 0.0
                events = [
                    format_event(item.event, dumps_trusted(item.data)) for item in _coalesce(items)
                ]
                chunk = b"".join(events) or PING
                await self._send_chunk(send, chunk, is_last=end is not None)
            if end is not None:
                return None
            items = await self._next_items(DRAIN_POLL_S)

    async def _next_items(self, timeout_s: float) -> list[_PlanStreamItem]:
        """Return the queued events up to the last of the stream; wait for the first of them."""
        if self._is_draining() and self._items.empty():
            self._fail(ShuttingDown())
        items: list[_PlanStreamItem] = []
        try:
            async with asyncio.timeout(timeout_s):
                items.append(await self._items.get())
        except TimeoutError:
            return items
        while items[-1].end is None and not self._items.empty():
            items.append(self._items.get_nowait())
        return items


def _coalesce(items: Sequence[_PlanStreamItem]) -> list[_PlanStreamItem]:
    """Join consecutive pieces of text."""
    joined: list[_PlanStreamItem] = []
    for item in items:
        last = joined[-1] if joined else None
        if (
            last is not None
            and item.event == last.event == "delta"
            and item.data["reasoning"] == last.data["reasoning"]
        ):
            data = {**last.data, "text": last.data["text"] + item.data["text"]}
            joined[-1] = last._replace(data=data)
        else:
            joined.append(item)
    return joined
