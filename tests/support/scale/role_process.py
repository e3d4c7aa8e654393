"""Processes of planwave that share a database, each with a log of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.support.cli.command_process import PLANWAVE
from tests.support.paths import ROOT
from tests.support.processes.forked_process import ForkedProcess
from tests.support.scale.logging_nodes import RUN_LOG

_READY_S = 90


class RoleProcess:
    """A process that serves, drives, or both; it can be killed, frozen and started again.

    Attributes:
        name: Its directory, for messages.
        url: Its address.
        program: What it runs.
        pids: All processes that it has been.
    """

    def __init__(
        self,
        directory: Path,
        command: tuple[str, ...],
        env: Mapping[str, str],
        program: str = PLANWAVE,
    ) -> None:
        self.name = directory.name
        self.url = ""
        self.program, self.pids = program, list[int]()
        self._directory, self._command = directory, command
        self._env = {**_environment(directory), **env}
        self._process: ForkedProcess | None = None

    def start(self) -> None:
        """Start it, and return once it is ready."""
        self.launch()
        gives_up = time.monotonic() + _READY_S
        while not self.is_ready():
            logged = f"{self._output.read_text('utf-8')}\n{self.log()}"
            assert not self.has_ended(), f"{self.name} has ended:\n{logged}"
            assert time.monotonic() < gives_up, f"{self.name} is not ready:\n{logged}"
            time.sleep(0.05)

    def launch(self) -> None:
        """Start it, and return at once."""
        self.url = ""
        self._directory.mkdir(exist_ok=True)
        self._output.unlink(missing_ok=True)
        with self._output.open("wb") as out, self._log.open("ab") as errors:
            self._process = ForkedProcess(
                "-c", self.program, "--json", *self._command,
                cwd=self._directory, env=self._env, stdout=out.fileno(), stderr=errors.fileno(),
            )  # fmt: skip
        self.pids.append(self.pid)

    def has_ended(self) -> bool:
        """Return whether its process has ended."""
        try:
            self.wait(0)
        except subprocess.TimeoutExpired:
            return False
        return True

    def is_ready(self) -> bool:
        """Return whether it says that it takes work."""
        try:
            self.url = (
                self.url or json.loads(self._output.read_text("utf-8").partition("\n")[0])["url"]
            )
        except json.JSONDecodeError:  # nothing yet, or an error
            return False
        try:
            return httpx2.get(f"{self.url}/readyz", timeout=5).is_success
        except httpx2.TransportError:
            return False

    @property
    def pid(self) -> int:
        """The process; another one after ``start``."""
        assert self._process is not None
        return self._process.pid

    @property
    def _output(self) -> Path:
        return self._directory / "output.json"

    @property
    def _log(self) -> Path:
        return self._directory / "log"

    def log(self) -> str:
        """Return all that its processes have logged."""
        return self._log.read_text("utf-8")

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """Let it do nothing until ``thaw`` (SIGSTOP)."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def is_frozen(self) -> bool:
        """Return whether it is stopped, by ``freeze`` or by itself."""
        return _stat_of(self.pid)[0] == "T"

    def cpu_s(self) -> float:
        """Return how long its process has computed."""
        return cpu_s(self.pid)

    def thaw(self) -> None:
        """Let it go on, unless it has ended (SIGCONT)."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def terminate(self) -> int:
        """Ask it to end (SIGTERM), and wait for that; return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(_READY_S)

    def wait(self, within_s: float) -> int:
        """Wait until it ends by itself; return its exit code."""
        assert self._process is not None
        return self._process.wait(within_s)


def cpu_s(pid: int) -> float:
    """Return how long a process has computed."""
    fields = _stat_of(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _stat_of(pid: int) -> list[str]:
    """Return what the kernel says of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()


def _environment(directory: Path) -> dict[str, str]:
    own = ("PATH", "HOME", "LANG", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    return {
        **{name: os.environ[name] for name in own if name in os.environ},
        "PYTHONPATH": str(ROOT),
        "PLANWAVE_MODEL_DIR": str(directory / "models"),
        "PLANWAVE_NODE_MODULES": "tests.support.scale.logging_nodes",
        "PLANWAVE_LOG_LEVEL": "INFO",
        RUN_LOG: str(directory.parent / "runs.log"),
    }


@contextmanager
def processes(directory: Path) -> Iterator[ProcessGroup]:
    """Start processes in a directory, and leave none behind."""
    group = ProcessGroup(directory)
    try:
        yield group
    finally:
        for each in group.all:
            each.kill()


class ProcessGroup:
    """The processes of one test.

    Attributes:
        run_log: What their nodes write.
        all: The processes, in the order of their start.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.run_log = directory / "runs.log"
        self.all: list[RoleProcess] = []

    def start(self, *command: str, program: str = PLANWAVE, **env: Any) -> RoleProcess:
        """Start ``planwave COMMAND`` with settings by environment, and return it once it is ready."""
        name = f"{command[0]}-{len(self.all)}"
        process = RoleProcess(
            self._directory / name,
            command,
            {each: str(value) for each, value in env.items()},
            program,
        )
        self.all.append(process)
        process.start()
        return process
