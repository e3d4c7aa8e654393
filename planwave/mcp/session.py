"""One session with a server: from the start of its process or the first request to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, cast

import anyio
import mcp_types
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from planwave.errors import McpError, OutboundError, reason_of
from planwave.graph.model import Json
from planwave.mcp.tool_lists import leave_out_invalid_tools
from planwave.mcp.tools import tool_problem
from planwave.validation import describe_error

_CLOSE_S: Final = 5.0
"""How long a session may take to close in the usual way."""
_END_SEEN_S: Final = 0.2
"""How long after a call has failed the end of its session, with the reason, is usually seen."""
_MAX_PAGES: Final = 50
_MAX_TEXT_CHARS: Final = 1_000
_Result = mcp_types.CallToolResult | mcp_types.InputRequiredResult
_RESULT: Final[TypeAdapter[_Result]] = TypeAdapter(_Result)

OpenServer = Callable[["Session"], Any]
"""Returns what the SDK connects to: a transport that reports to the session."""


class Progress(Protocol):
    """Gets how far a call is: a number, the number at its end if that is known, and a message."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


class ConnectionLost(McpError):
    """The connection ended during a call; whether the tool acted is not known.

    Attributes:
        is_unsent: Whether the server certainly has not begun the call.
    """

    code = "mcp-connection-lost"

    def __init__(self, message: str, *, is_unsent: bool = False) -> None:
        super().__init__(message, hint="check what the tool did before you call it again")
        self.is_unsent = is_unsent


class Session:
    """A session, which one task enters and leaves: the one that runs ``run``.

    Calls may come from any task. Whatever ends the session, ``end_reason`` says what it was.

    Attributes:
        tool_problems: Why tools that the server lists are not in ``list_tools``.
        list_problem: Why that list may not be whole; empty where it is.
        sent_errors: How many errors with the SDK's code of a closed connection the server itself has sent
            that no call has raised yet; None where the SDK sends none while the session is open.

    Args:
        name: The name of the server, for messages.
        open_server: See ``OpenServer``.
        connect_s: Seconds for its start.
    """

    def __init__(self, name: str, open_server: OpenServer, connect_s: float) -> None:
        self._name = name
        self._open_server = open_server
        self._connect_s = connect_s
        self._stopped = asyncio.Event()
        self._ended = asyncio.Event()
        self._connected: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self.tool_problems: list[str] = []
        self.list_problem = ""
        self.sent_errors: int | None = None
        self.end_reason = ""
        self.is_expired = False
        self.last_status: int | None = None
        self.last_error_line = ""

    @property
    def is_open(self) -> bool:
        """Whether calls can be made."""
        return self._connected.done() and not self._stopped.is_set() and not self._ended.is_set()

    async def run(self) -> None:
        """Connect, stay until the session ends or ``stop``, and close; raises no errors."""
        try:
            async with asyncio.timeout(self._connect_s) as time_limit:
                transport = leave_out_invalid_tools(
                    self._open_server(self), self._protocol_version, self._note_invalid_tool
                )
                async with Client(transport, cache=None) as client:
                    time_limit.reschedule(None)
                    self._connected.set_result(client)
                    try:
                        await self._stopped.wait()
                    finally:
                        self._stopped.set()  # also where the SDK cancels it: its transport failed
                    time_limit.reschedule(asyncio.get_running_loop().time() + _CLOSE_S)
        except asyncio.CancelledError:
            self.end(self.end_reason or "it was closed")
            raise
        except TimeoutError:
            if not self._connected.done():
                self.end_reason = f"it did not answer within {self._connect_s:g} s"
        # The SDK raises what its transports raise, alone or in groups.
        except Exception as error:  # noqa: BLE001
            self.end(self._reason_of(error))
        finally:
            self._ended.set()
            if not self._connected.done():
                self._connected.set_exception(self._start_error())
                self._connected.exception()  # whoever waited may be gone

    def end(self, reason: str) -> None:
        """End the session; the first reason that is given counts."""
        self.end_reason = self.end_reason or reason
        self._stopped.set()

    def stop(self) -> None:
        """Close the session in the usual way."""
        self.end("it was closed")

    def expire(self) -> None:
        """End the session because the server does not know it any more."""
        self.is_expired = True
        self.end("the server does not know the session any more")

    async def wait_connected(self) -> None:
        """Wait until calls can be made.

        Raises:
            McpError: ``mcp-start-failed``.
        """
        await asyncio.shield(self._connected)

    async def list_tools(self, most: int) -> list[mcp_types.Tool]:
        """Return the tools that follow the protocol, at most one more than the given number.

        Raises:
            McpError: The call failed.
        """
        tools: list[mcp_types.Tool] = []
        self.tool_problems.clear()
        self.list_problem = ""
        cursor: str | None = None
        seen = set[str]()
        for _ in range(_MAX_PAGES):
            client = self._connected.result()
            page = await self._ask(client.session.list_tools(
                params=mcp_types.PaginatedRequestParams(cursor=cursor)
            ))  # fmt: skip
            cursor = page.next_cursor
            if cursor in seen:
                self.list_problem = f"its list of tools leads back to the page {_cut(cursor)!r}; the rest was not read"
                page.tools = [tool for tool in page.tools if tool not in tools]
            tools += page.tools
            if cursor is None or cursor in seen:
                return tools[: most + 1]
            if len(tools) + len(self.tool_problems) > most:
                break
            seen.add(cursor)
        else:
            self.list_problem = f"its list of tools has more than {_MAX_PAGES} pages"
        return tools[: most + 1]

    async def call(
        self, tool: str, arguments: Mapping[str, Json], meta: Mapping[str, Any], progress: Progress
    ) -> mcp_types.CallToolResult:
        """Call a tool; a cancelled call is cancelled on the server too.

        Raises:
            ConnectionLost: The connection ended.
            McpError: The server refused the call, or its answer cannot be used.
        """
        request = mcp_types.CallToolRequest(
            params=mcp_types.CallToolRequestParams.model_validate(
                {"name": tool, "arguments": {**arguments}, "_meta": {**meta}}
            )
        )
        # Not client.call_tool(): that validates results against schemas of the server in Python,
        # whose patterns may take any time.
        result = await self._ask(
            self._connected.result().session.send_request(
                request, _RESULT, progress_callback=progress
            )
        )
        if isinstance(result, mcp_types.InputRequiredResult):
            raise McpError(
                f"the tool {tool!r} of the MCP server {self._name!r} asks for input from a person, "
                "which planwave does not give to tools",
                retryable=False,
            )
        return result

    async def _ask(self, call: Awaitable[Any]) -> Any:
        """Await a request, and raise what fails as errors of planwave."""
        try:
            return await call
        except MCPError as error:
            if self.is_expired or await self._is_lost(error):
                raise await self._lost_error(error.message) from error
            reason = self._with_status(_cut(error.message))
            raise McpError(f"the MCP server {self._name!r} refused the call: {reason}") from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, RuntimeError) as error:
            raise await self._lost_error(str(error)) from error
        except ValidationError as error:
            raise McpError(
                f"the answer of the MCP server {self._name!r} does not follow the protocol: "
                f"{_fault_in(error)}",
                code="mcp-invalid-answer",
            ) from error

    async def _is_lost(self, error: MCPError) -> bool:
        """Return whether the SDK says that the connection ended; many servers use its code too."""
        if error.code != mcp_types.CONNECTION_CLOSED:
            return False
        if self.sent_errors == 0:
            return True
        if self.sent_errors:
            self.sent_errors -= 1
        if self.is_open:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SEEN_S):
                    await self._stopped.wait()
        return not self.is_open

    def _protocol_version(self) -> str | None:
        return self._connected.result().protocol_version if self._connected.done() else None

    def _note_invalid_tool(self, name: str, error: ValidationError) -> None:
        fault = _fault_in(error, levels=2)  # in a list of one tool
        self.tool_problems.append(tool_problem(name, f"does not follow the protocol: {fault}"))

    async def _lost_error(self, message: str) -> ConnectionLost:
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SEEN_S):
                await self._ended.wait()
        reason = self.end_reason or self._with_status(_cut(message))
        return ConnectionLost(
            f"the connection to the MCP server {self._name!r} ended during the call: {reason}",
            is_unsent=self.is_expired,
        )

    def _start_error(self) -> McpError:
        last_line = f" (it wrote: {self.last_error_line})" if self.last_error_line else ""
        return McpError(
            f"the MCP server {self._name!r} did not start: {self.end_reason}{last_line}",
            code="mcp-start-failed",
            hint=f"correct [mcp.{self._name}] in planwave.toml; `planwave doctor --start` tries it",
        )

    def _reason_of(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        if isinstance(error, OutboundError):
            return error.message
        if isinstance(error, ValidationError):
            return f"its answer does not follow the protocol: {_fault_in(error)}"
        return self._with_status(_cut(reason_of(error)) or type(error).__name__)

    def _with_status(self, text: str) -> str:
        return text if self.last_status is None else f"{text} (HTTP status {self.last_status})"


def _fault_in(error: ValidationError, *, levels: int = 0) -> str:
    """Return the first fault; its location is shown without so many outer levels."""
    first = error.errors(include_url=False)[0]
    return _cut(describe_error(".".join(map(str, first["loc"][levels:])) or "it", first))


def _cut(text: str) -> str:
    printable = "".join(char if char.isprintable() else " " for char in text)
    return printable if len(printable) <= _MAX_TEXT_CHARS else f"{printable[:_MAX_TEXT_CHARS]}…"
