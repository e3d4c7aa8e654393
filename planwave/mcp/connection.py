"""A server during one run of a graph: connected once, and again after its session was lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, cast

from planwave.errors import LimitExceeded, McpError
from planwave.graph.model import Json
from planwave.mcp.results import result_of
from planwave.mcp.session import ConnectionLost, OpenServer, Progress, Session
from planwave.mcp.tools import (
    AS_IT_IS,
    KEY_ARGUMENT,
    AdaptSchema,
    ServerTool,
    ToolList,
    read_tools,
)

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from planwave.settings import Limits

_KEY_META: Final = "planwave/idempotencyKey"
_MAX_FAILURES: Final = 5
_LONGEST_BACKOFF_S: Final = 30.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one connection; the names of the settings are ``mcp_…``.

    Attributes:
        connect_s: Seconds for the start of the server, up to the list of its tools.
        call_s: Seconds for one call.
        result_bytes: Bytes of one result, as JSON; more is cut.
        tools: Tools that it may list.
        backoff_s: Seconds before the second attempt in a row to connect again; doubled for each other.
    """

    connect_s: float = 10.0
    call_s: float = 60.0
    result_bytes: int = 1024 * 1024
    tools: int = 200
    backoff_s: float = 1.0

    @classmethod
    def of(cls, limits: Limits, backoff_s: float = 1.0) -> ConnectionLimits:
        """Return those of the settings."""
        return cls(
            limits.mcp_connect_s,
            limits.mcp_call_s,
            min(limits.mcp_result_bytes, limits.tool_result_bytes),
            limits.mcp_tools,
            backoff_s,
        )


class Connection:
    """A connection to a server; enter it with ``async with``, in one task.

    Calls may come from any task. If the session is lost, the calls in flight fail, and the next call
    connects again; no call is ever made twice.

    Attributes:
        name: The name of the server.
        listed: Its tools, as listed when the connection was entered.

    Args:
        name: The name of the server.
        open_server: See ``OpenServer``.
        limits: Its limits.
        hide: Removes secrets from a text.
        adapt_schema: See ``AdaptSchema``.
    """

    def __init__(
        self,
        name: str,
        open_server: OpenServer,
        limits: ConnectionLimits | None = None,
        *,
        hide: Callable[[str], str] = str,
        adapt_schema: AdaptSchema = AS_IT_IS,
    ) -> None:
        self.name = name
        self.listed = ToolList({})
        self._open_server = open_server
        self._limits = limits or ConnectionLimits()
        self._hide = hide
        self._adapt_schema = adapt_schema
        self._group = asyncio.TaskGroup()
        self._connecting = asyncio.Lock()
        self._session: Session | None = None
        self._task: asyncio.Task[None] | None = None
        self._present: Mapping[str, ServerTool] = {}
        self._failures = 0
        self._is_closed = False

    async def __aenter__(self) -> Connection:
        await self._group.__aenter__()
        try:
            self.listed = await self._connect()
        except BaseException:
            await self._close()
            raise
        for problem in self.listed.problems:
            _log.warning("MCP server %s: %s; it is left out", self.name, problem)
        for note in self.listed.notes:
            _log.warning("MCP server %s: %s", self.name, note)
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close()

    @property
    def is_connected(self) -> bool:
        """Whether the next call finds the server connected."""
        return self._session is not None and self._session.is_open

    async def call(
        self,
        tool: ServerTool,
        arguments: Mapping[str, Json],
        *,
        key: str,
        progress: Progress,
        timeout_s: float | None = None,
    ) -> Json:
        """Call a tool and return its result as JSON.

        Args:
            tool: A tool that was listed.
            arguments: Its arguments, without ``idempotency_key``.
            key: The idempotency key of the call.
            progress: Gets how far it is.
            timeout_s: Seconds for the call, if less than the limit.

        Raises:
            McpError: ``mcp-connection-lost``, ``mcp-unavailable``, ``mcp-start-failed``,
                ``mcp-timeout``, ``mcp-tool-changed``, ``mcp-tool-error``, ``mcp-invalid-answer``,
                ``mcp-call-failed``.
        """
        most_s = min(timeout_s or self._limits.call_s, self._limits.call_s)
        sent_arguments = {**arguments, KEY_ARGUMENT: key} if tool.takes_key else arguments
        try:
            async with asyncio.timeout(most_s):
                try:
                    result = await self._call_once(tool, sent_arguments, key, progress)
                except ConnectionLost as error:
                    if not error.is_unsent:
                        raise
                    result = await self._call_once(tool, sent_arguments, key, progress)
        except TimeoutError as error:
            raise McpError(
                f"the tool {tool.name!r} of the MCP server {self.name!r} did not answer within "
                f"{most_s:g} s",
                code="mcp-timeout",
                hint="check what it did before you call it again; the limit is mcp_call_s",
            ) from error
        except McpError as error:
            raise self._without_secrets(error) from None
        self._failures = 0
        try:
            return result_of(result, tool.name, self._limits.result_bytes)
        except McpError as error:
            raise self._without_secrets(error) from None

    async def _call_once(
        self, tool: ServerTool, arguments: Mapping[str, Json], key: str, progress: Progress
    ) -> CallToolResult:
        session = await self._open_session()
        if self._present.get(tool.name) != tool:
            raise McpError(
                f"the MCP server {self.name!r} was started again and has no tool {tool.name!r} as "
                "it was before",
                code="mcp-tool-changed",
                hint="start a new execution, which lists the tools again",
                retryable=False,
            )
        return await session.call(tool.name, arguments, {_KEY_META: key}, progress)

    async def _open_session(self) -> Session:
        """Return the session, or connect again after it was lost."""
        async with self._connecting:
            if not self.is_connected:
                self._failures += self._session is not None
                self._session = None
                if self._failures > _MAX_FAILURES or self._is_closed:
                    raise self._unavailable_error()
                await asyncio.sleep(self._backoff_s())
                await self._connect()
                _log.warning("MCP server %s: connected again", self.name)
            return cast("Session", self._session)

    def _backoff_s(self) -> float:
        """Return how long to wait: nothing at first, then more after each failure in a row."""
        if self._failures <= 1:
            return 0.0
        return min(_LONGEST_BACKOFF_S, self._limits.backoff_s * 2 ** (self._failures - 2))

    def _unavailable_error(self) -> McpError:
        why = (
            "the run has ended" if self._is_closed else f"it failed {_MAX_FAILURES} times in a row"
        )
        return McpError(
            f"the MCP server {self.name!r} cannot be used any more: {why}",
            code="mcp-unavailable",
            hint="see the log, or `planwave doctor`",
            retryable=False,
        )

    async def _connect(self) -> ToolList:
        """Start a session and list its tools."""
        deadline = asyncio.get_running_loop().time() + self._limits.connect_s
        session = Session(self.name, self._open_server, self._limits.connect_s)
        task = self._group.create_task(session.run(), name=f"mcp {self.name}")
        try:
            await session.wait_connected()
            async with asyncio.timeout_at(deadline):
                server_tools = await session.list_tools(self._limits.tools)
        except BaseException as error:
            self._failures += 1
            task.cancel()
            if isinstance(error, McpError):
                raise self._without_secrets(error) from None
            if isinstance(error, TimeoutError):
                raise McpError(
                    f"the MCP server {self.name!r} did not list its tools within "
                    f"{self._limits.connect_s:g} s",
                    code="mcp-start-failed",
                    hint="the limit is mcp_connect_s",
                ) from error
            raise
        count = len(server_tools) + len(session.tool_problems)
        if count > self._limits.tools:
            task.cancel()
            raise LimitExceeded(
                "mcp_tools", self._limits.tools, count, what=f"the MCP server {self.name!r}",
                hint="use a server with fewer tools, or raise the limit mcp_tools",
            )  # fmt: skip
        # In a thread: a server may list many schemas, and large ones.
        listed = await asyncio.to_thread(
            read_tools, server_tools, self._adapt_schema, session.tool_problems
        )
        if session.list_problem:
            listed = replace(listed, notes=(session.list_problem, *listed.notes))
        self._session, self._task, self._present = session, task, listed.tools
        return listed

    def _without_secrets(self, error: McpError) -> McpError:
        """Return the same error with a message that shows no secret of the server's settings."""
        safe_error = McpError(self._hide(error.message), code=error.code, hint=error.hint)
        safe_error.retryable = error.retryable
        return safe_error

    async def _close(self) -> None:
        """End the session and wait until it is closed; a cancelled close ends its process at once."""
        self._is_closed = True
        if self._session is not None:
            self._session.stop()
        try:
            await self._group.__aexit__(None, None, None)
        except asyncio.CancelledError:
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait([self._task])
            raise
