"""The MCP servers that the operator has set up."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from planwave.errors import McpError, PlanwaveError
from planwave.mcp.tools import AS_IT_IS, AdaptSchema
from planwave.redaction import Redactor
from planwave.settings import Limits, McpServerSettings

if TYPE_CHECKING:
    from planwave.mcp.connection import Connection
    from planwave.mcp.session import Session

_SHORTEST_SECRET: Final = 4
"""Shorter values are not looked for in texts: they occur by chance."""
_BYTES_PER_RESULT_BYTE: Final = 4
"""A message may be longer than the result in it: it is escaped, and mostly there as text too."""
_LEAST_MESSAGE_BYTES: Final = 16 * 1024 * 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What starting a server showed.

    Attributes:
        name: Its name.
        kind: How it is reached.
        tools: The number of its tools; None if it does not start.
        reason: Why it does not start, or which tools cannot be used; None where there is nothing.
        hint: What to do about it.
    """

    name: str
    kind: Literal["stdio", "http"]
    tools: int | None
    reason: str | None = None
    hint: str | None = None


class McpServers:
    """The servers by name; nothing is started before a connection is entered.

    Args:
        tables: The tables ``[mcp.NAME]`` of the settings.
        limits: The limits named ``mcp_…``.
        adapt_schema: See ``AdaptSchema``.
        environment: The environment variables that ``header_env`` and ``pass_env`` name.
        backoff_s: See ``ConnectionLimits``.
    """

    def __init__(
        self,
        tables: Mapping[str, McpServerSettings],
        limits: Limits | None = None,
        *,
        adapt_schema: AdaptSchema = AS_IT_IS,
        environment: Mapping[str, str] = os.environ,
        backoff_s: float = 1.0,
    ) -> None:
        self._tables = tables
        self._limits = limits or Limits()
        self._adapt_schema = adapt_schema
        self._environment = environment
        self._backoff_s = backoff_s

    @property
    def kinds(self) -> dict[str, Literal["stdio", "http"]]:
        """How each server is reached, by name."""
        return {name: table.kind for name, table in sorted(self._tables.items())}

    def rules(self, name: str) -> McpServerSettings:
        """Return the table of a server, with what the operator says of its tools.

        Raises:
            McpError: ``unknown-mcp-server``.
        """
        if name not in self._tables:
            raise unknown_server(name, self._tables)
        return self._tables[name]

    @asynccontextmanager
    async def connection(self, name: str) -> AsyncGenerator[Connection]:
        """Connect to a server, for one run.

        Raises:
            McpError: ``unknown-mcp-server``, ``mcp-not-installed``, ``mcp-start-failed``, also where an
                environment variable is not set.
        """
        table = self.rules(name)
        try:
            await asyncio.to_thread(_load_sdk)
            own = self._new_connection(name, table)
        except ModuleNotFoundError as error:
            raise McpError(
                f"the Python module {error.name} is not installed, which MCP servers need",
                code="mcp-not-installed",
                hint="pip install 'planwave[mcp]'",
                retryable=False,
            ) from error
        async with own as connection:
            yield connection

    def _new_connection(self, name: str, table: McpServerSettings) -> Connection:
        # Lazy: test_importing_the_node_library_loads_no_sdk
        from planwave.mcp.connection import Connection, ConnectionLimits

        values = self._values_of(name, table)
        hide = Redactor(
            {key: text for key, text in values.items() if len(text) >= _SHORTEST_SECRET}
        ).text
        is_program = table.kind == "stdio"
        opener = self._program_opener if is_program else self._address_opener
        return Connection(
            name,
            opener(name, table, values, hide),
            ConnectionLimits.of(self._limits, self._backoff_s),
            hide=hide,
            adapt_schema=self._adapt_schema,
        )

    async def report(self, name: str) -> ServerReport:
        """Start a server, count its tools, and stop it."""
        kind = self._tables[name].kind
        try:
            async with self.connection(name) as connection:
                listed = connection.listed
        except PlanwaveError as error:
            return ServerReport(name, kind, None, error.message, error.hint)
        unknown = [each for each in self._tables[name].read_tools if each not in listed.tools]
        absent = [f"read_tools names {each!r}, which is none of its tools" for each in unknown]
        notes = "; ".join((*listed.problems, *listed.notes, *absent))
        return ServerReport(name, kind, len(listed.tools), notes or None)

    async def reports(self) -> list[ServerReport]:
        """Return a report of each server; they start at the same time."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.report(name)) for name in sorted(self._tables)]
        return [task.result() for task in tasks]

    def _values_of(self, name: str, table: McpServerSettings) -> dict[str, str]:
        """Return the secret texts of a server, by the variable or header that gets them."""
        if table.kind == "stdio":
            named = {variable: variable for variable in table.pass_env}
            values = {key: value.get_secret_value() for key, value in table.env.items()}
        else:
            named, values = table.header_env, {}
        for target, variable in named.items():
            if not self._environment.get(variable):
                raise McpError(
                    f"the MCP server {name!r} needs the environment variable {variable}, which is "
                    "not set",
                    code="mcp-start-failed",
                    hint=f"set it where planwave runs, or correct [mcp.{name}] in planwave.toml",
                )
            values[target] = self._environment[variable]
        return values

    def _program_opener(
        self,
        name: str,
        table: McpServerSettings,
        values: Mapping[str, str],
        hide: Callable[[str], str],
    ) -> Callable[[Session], Any]:
        # Lazy: test_importing_the_node_library_loads_no_sdk
        from planwave.mcp.program import Program, run_program

        directory = None if table.cwd is None else str(table.cwd)
        program = Program((table.command or "", *table.args), values, directory)

        def open_server(session: Session) -> Any:
            def log_line(line: str) -> None:
                session.last_error_line = hide(line) or session.last_error_line
                _log.info("MCP server %s: %s", name, hide(line))

            return run_program(
                program,
                message_bytes=self._message_bytes,
                on_error_line=log_line,
                on_end=session.end,
            )

        return open_server

    def _address_opener(
        self,
        name: str,
        table: McpServerSettings,
        values: Mapping[str, str],
        hide: Callable[[str], str],
    ) -> Callable[[Session], Any]:
        # Lazy: test_importing_the_node_library_loads_no_sdk
        from planwave.mcp.address import Address, connect_address

        address = Address(table.url or "", values)

        def open_server(session: Session) -> Any:
            session.sent_errors = 0

            def on_status(status: int) -> None:
                session.last_status = status

            def on_closed_code() -> None:
                session.sent_errors = (session.sent_errors or 0) + 1

            return connect_address(
                address,
                connect_s=self._limits.fetch_connect_s,
                message_bytes=self._message_bytes,
                on_status=on_status,
                on_expired=session.expire,
                on_closed_code=on_closed_code,
            )

        return open_server

    @property
    def _message_bytes(self) -> int:
        return max(_LEAST_MESSAGE_BYTES, _BYTES_PER_RESULT_BYTE * self._limits.mcp_result_bytes)


@cache
def _load_sdk() -> None:
    """Import the SDK, and build its models; in a thread, because it takes seconds."""
    # Lazy: test_importing_the_node_library_loads_no_sdk
    from planwave.mcp.first_session import build_models

    build_models()


def unknown_server(name: str, names: Collection[str]) -> McpError:
    """Return the error of a name that is no server's; its hint names the closest, or what to do."""
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else hint_to_set_up(name, names)
    return McpError(
        f"there is no MCP server {name!r}", code="unknown-mcp-server", hint=hint, retryable=False
    )


def hint_to_set_up(name: str, names: Collection[str]) -> str:
    """Return how the operator sets up a server."""
    others = f"there are: {', '.join(sorted(names))}; " if names else ""
    return f"{others}the operator sets one up with a table [mcp.{name}] in planwave.toml"
