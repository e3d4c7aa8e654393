"""The calls that clients wait for, and what becomes of their executions when they do not any more.

A client that cancels a call cancels the execution that the call started. A client that is gone does
not. On stdio, and in sessions over HTTP, the two differ: a cancellation is a notification. Without a
session (2026-07-28 over HTTP) a client cancels by closing the connection of the call, which looks the
same as a client that was lost; there the argument ``on_disconnect`` decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp.server.context import ServerRequestContext
from mcp_types import CancelledNotificationParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from planwave.errors import Conflict, PlanwaveError
from planwave.service.service import Service

if TYPE_CHECKING:
    from planwave.storage.records import ExecutionRecord

_log = logging.getLogger(__name__)

SESSION_HEADER: Final = "mcp-session-id"
_CAUSE: Final = "the MCP client cancelled the call"
_REMEMBERED: Final = 1_000
"""Calls whose connection broke: a notification that cancels one may still be on its way."""
_Key = tuple[str, str]
_Result = TypeVar("_Result")


class OpenCall:
    """A call under way.

    Attributes:
        cancels_on_disconnect: Whether a closed connection is a cancellation.
    """

    def __init__(self, calls: OpenCalls, is_sessionless: bool) -> None:
        self._calls = calls
        self._is_sessionless = is_sessionless
        self._starting: asyncio.Task[ExecutionRecord] | None = None
        self.cancels_on_disconnect = True

    async def start(self, work: Coroutine[Any, Any, ExecutionRecord]) -> ExecutionRecord:
        """Start the execution of this call; a start is never left half done."""
        self._starting = self._calls.spawn(work)
        return await asyncio.shield(self._starting)

    def disconnect(self) -> None:
        """Cancel the execution if the client cannot cancel the call in another way."""
        if self._is_sessionless and self.cancels_on_disconnect:
            self._calls.spawn(self.cancel())

    async def cancel(self) -> None:
        """Cancel the execution, unless it has ended, or the service is going down."""
        if self._starting is None:
            return
        try:
            record = await self._starting
            await self._calls.cancel_execution(record.execution_id)
        except Conflict:  # it has ended
            return
        except PlanwaveError as error:
            _log.warning("a cancelled call of an MCP client left its execution: %s", error)


WorkOfCall = Callable[[OpenCall], Awaitable[_Result]]
"""Processes a call and returns its result."""


class OpenCalls:
    """All calls under way.

    Args:
        service: Runs the executions.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._running: dict[_Key, OpenCall] = {}
        self._left: OrderedDict[_Key, OpenCall] = OrderedDict()
        self._tasks = set[asyncio.Task[Any]]()

    async def run(
        self, context: ServerRequestContext[Any, Any], work: WorkOfCall[_Result]
    ) -> _Result:
        """Process a call; return its result."""
        is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        call = OpenCall(self, context.request is not None and is_modern)
        key = _key_of(context, context.request_id)
        self._running[key] = call
        try:
            return await work(call)
        except asyncio.CancelledError:
            call.disconnect()
            # It stays known: the notification that cancels it may be processed after this.
            self._left[key] = call
            if len(self._left) > _REMEMBERED:
                self._left.popitem(last=False)
            raise
        finally:
            self._running.pop(key, None)

    async def cancelled(
        self, context: ServerRequestContext[Any, Any], params: CancelledNotificationParams
    ) -> None:
        """Process ``notifications/cancelled``: cancel the execution of the call."""
        key = _key_of(context, params.request_id)
        call = self._left.pop(key, None) or self._running.get(key)
        if call is not None:
            self.spawn(call.cancel())

    async def cancel_execution(self, execution_id: str) -> None:
        """Cancel an execution; a service that is going down lets it continue at its next start."""
        if not self._service.is_draining:
            await self._service.executions.cancel(execution_id, _CAUSE)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something to its end, whatever becomes of the call."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    async def close(self) -> None:
        """Wait for the calls that were started."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its call may be gone


def session_of(context: ServerRequestContext[Any, Any]) -> str:
    """Return the id of the session of a request over HTTP, "" without one and on stdio."""
    request = context.request
    return "" if request is None else request.headers.get(SESSION_HEADER, "")


def _key_of(context: ServerRequestContext[Any, Any], request_id: object) -> _Key:
    # Ids of requests are the client's: without a session, two clients may use the same.
    is_shared = context.request is not None and not session_of(context)
    return (f"{id(context)}" if is_shared else session_of(context), str(request_id))
