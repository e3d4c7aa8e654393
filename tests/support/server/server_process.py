"""A server as a process of its own, with node types that take their time: ``start_server``.

The process runs ``main DIRECTORY DRAIN_S [FILES] [slow-disk]``: it serves plans by goal
(``tests/support/server/running_server.py``) over SQLite, prints one JSON line, and goes down as
``planwave serve`` does.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from planwave.api.app import create_app
from planwave.api.server import serve
from planwave.graph.inputs import Inputs
from planwave.graph.model import DataValue
from planwave.graph.protocols import ExecutionResult, FlowContext
from planwave.service.service import Service
from planwave.settings import Settings
from planwave.storage.sqlite.store import SqliteStore
from tests.support.cli.command_process import read_until
from tests.support.paths import ROOT
from tests.support.processes.forked_process import ForkedProcess
from tests.support.server.running_server import NO_RATE_LIMITS, HeldNodePerExecution, PlannerByGoal
from tests.support.service.dependencies import dependencies

PROGRAM = """
import sys
from tests.support.server.server_process import main
sys.exit(main(*sys.argv[1:]))
"""
RELEASE_FILE = "woken"


class WaitForFileNode:
    """A node type that takes until its server has been woken up: see ``Server.wake``."""

    node_type = "naps"

    def __init__(self, release_file: Path) -> None:
        self._release_file = release_file

    async def execute(
        self, data: Mapping[str, Any], inputs: Inputs, context: FlowContext
    ) -> ExecutionResult:
        while not self._release_file.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        return ExecutionResult({"output": DataValue("text", "rested")})


class ServerProcess:
    """A server process that is listening."""

    def __init__(self, process: ForkedProcess, url: str, release_file: Path) -> None:
        self.process = process
        self.url = url
        self._release_file = release_file

    def release_nodes(self) -> None:
        """Let the ``naps`` nodes finish."""
        self._release_file.touch()

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def read_log_until(self, text: str) -> str:
        """Read its log up to a line that holds the text."""
        return read_until(self.process.stderr, text)

    def wait_for_exit(self, within_s: float = 120) -> int:
        """Wait for its end; give the exit code."""
        return self.process.wait(within_s)


@contextmanager
def start_server(directory: Path, *more: str, drain_s: float = 25) -> Iterator[ServerProcess]:
    """Start a server, and leave none behind."""
    arguments = str(directory), str(drain_s), *more
    with ForkedProcess("-c", PROGRAM, *arguments, cwd=ROOT) as process:
        try:
            url = json.loads(read_until(process.stdout, "\n"))["url"]
            yield ServerProcess(process, url, directory / RELEASE_FILE)
        finally:
            process.kill()


def main(directory: str, drain_s: str, *more: str) -> int:
    """Serve until a signal; give the exit code."""
    if "slow-disk" in more:
        fsync = os.fsync

        def slowly(file: int) -> None:
            time.sleep(0.1)
            fsync(file)

        os.fsync = slowly  # a document is being written most of the time
    for files in filter(str.isdecimal, more):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(files), int(files)))
    limits = NO_RATE_LIMITS.model_copy(update={"drain_s": float(drain_s), "body_read_s": 5.0})
    settings = Settings(port=0, storage_dir=Path(directory), limits=limits)
    parts = dependencies(
        types=[HeldNodePerExecution(), WaitForFileNode(Path(directory) / RELEASE_FILE)],
        store=SqliteStore.open(Path(directory)),
        directory=Path(directory),
        limits=limits,
        planner=PlannerByGoal(),
    )

    def report_url(url: str) -> None:
        sys.stdout.write(json.dumps({"url": url}) + "\n")
        sys.stdout.flush()

    return asyncio.run(serve(settings, create_app(settings, lambda _: Service(parts)), report_url))
