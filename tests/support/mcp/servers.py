"""MCP servers for tests: as programs, and as processes that listen on loopback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planwave.mcp.servers import McpServers
from planwave.settings import Limits, McpServerSettings
from tests.support.paths import ROOT
from tests.support.polling import until

HERE = Path(__file__).parent
SCRIPTED = str(HERE / "scripted_server.py")
HOSTILE = str(HERE / "hostile_server.py")
AGENT_WITH_SERVER: dict[str, Any] = {
    "nodes": [
        {"id": "tools", "type": "mcp_server", "data": {"server": "box", "approval": "never"}},
        {"id": "agent", "type": "agent", "data": {"userPrompt": "Go."}},
    ],
    "edges": [
        {
            "source": "tools", "sourceHandle": "tools", "target": "agent", "targetHandle": "tools",
            "data": {"channel": "link"},
        }
    ],
}  # fmt: skip
"""An agent that has the tools of the server ``box``."""


@dataclass
class Marks:
    """The file in which servers write what they do."""

    path: Path

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    @property
    def pids(self) -> list[int]:
        return [int(line[4:]) for line in self.lines if line.startswith("pid ")]

    async def seen(self, line: str) -> None:
        await until(lambda: line in self.lines)

    async def all_gone(self) -> None:
        """Wait until no process is left of all that have written their ids."""
        await until(lambda: not any(map(is_running, self.pids)))


def is_running(pid: int) -> bool:
    """Return whether there is a process of this id, a zombie too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def scripted_program(marks: Marks) -> dict[str, Any]:
    """Return the table of a scripted server as a program."""
    return {"command": sys.executable, "args": [SCRIPTED], "env": {"MARK": str(marks.path)}}


def hostile_program(marks: Marks, mode: str, **env: str) -> dict[str, Any]:
    """Return the table of a program that is odd in one way; most modes misbehave."""
    return {"command": sys.executable, "args": [HOSTILE, mode, str(marks.path)], "env": env}


def ticket_server(directory: Path) -> dict[str, Any]:
    """Return the table of the example of a ticket system, with its file in a directory."""
    return {
        "command": sys.executable,
        "args": [str(ROOT / "examples" / "mcp" / "ticket_server.py")],
        "env": {"TICKETS_FILE": str(directory / "tickets.json")},
    }


def servers_of(
    limits: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    adapt_schema: Any = None,
    **tables: dict[str, Any],
) -> McpServers:
    """Return servers of these tables; they connect again without a pause."""
    more = {} if adapt_schema is None else {"adapt_schema": adapt_schema}
    return McpServers(
        {name: McpServerSettings(**table) for name, table in tables.items()},
        Limits(**(limits or {})),
        environment=environment or {},
        backoff_s=0,
        **more,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class HttpServer:
    """A scripted server as a process that listens on loopback."""

    marks: Marks
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def table(self) -> dict[str, Any]:
        return {"url": f"http://127.0.0.1:{self.port}/mcp"}

    def start(self) -> None:
        """Start the process; it has a socket that listens already, so that nobody need wait for it."""
        with socket.create_server(("127.0.0.1", self.port)) as listening:
            given = listening.fileno()
            env = {**os.environ, "LISTENING": str(given), "MARK": str(self.marks.path)}
            self.process = subprocess.Popen([sys.executable, SCRIPTED], env=env, pass_fds=[given])

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


@contextmanager
def http_server(marks: Marks) -> Iterator[HttpServer]:
    """Run a scripted server on loopback."""
    server = HttpServer(marks)
    server.start()
    try:
        yield server
    finally:
        server.stop()


async def no_progress(progress: float, total: float | None, message: str | None) -> None:
    """Ignore how far a call is."""
