"""The process of one embedded model server: start, handshake, health check, stop.

The functions block and run in threads. ``asyncio.create_subprocess_exec`` is not used: it binds a
process to one event loop, and a server outlives the loop of the call that started it.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from planwave.setting_tables import child_environment

_VARIABLES = ("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "PYTHONPATH")
_PREFIXES = ("CUDA_", "GGML_", "OMP_")
"""How the program finds its libraries, and uses the processors."""
_START_S = 120.0
_STOP_S = 1.0
_SILENT_S = 20.0
"""A server that does not respond within this time hangs: its health check waits for no model."""
_LIKELY = {
    signal.SIGKILL: "; most likely memory ran out",
    signal.SIGILL: "; most likely this processor lacks an instruction it needs",
}


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A server process that has started."""

    process: subprocess.Popen[str]
    address: str
    key: str = field(repr=False)
    saves_states: bool = False

    @property
    def is_running(self) -> bool:
        """Whether the process is alive."""
        return self.process.poll() is None

    async def is_healthy(self) -> bool:
        """Return whether the process is alive and responds; calls to a hanging server never end."""
        if not self.is_running:
            return False
        address = urlsplit(self.address)
        try:
            async with asyncio.timeout(_SILENT_S):
                reader, writer = await asyncio.open_connection(address.hostname, address.port)
                try:
                    writer.write(b"GET /health HTTP/1.0\r\n\r\n")
                    return bool(await reader.readline())
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False


def start_process(program: Path, stderr: IO[str]) -> subprocess.Popen[str]:
    """Start the server program.

    Args:
        program: The Python file to run.
        stderr: Receives the messages of the program.

    Raises:
        OSError: The process cannot be started.
    """
    # -P: the folder of the program holds modules with common names. A separate session: planwave
    # handles Ctrl-C of the terminal and ends the calls in order.
    return subprocess.Popen(  # noqa: S603  # our own program, no shell
        [sys.executable, "-P", str(program)],
        env=child_environment(*_VARIABLES, prefixes=_PREFIXES),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=True,
    )


def handshake(process: subprocess.Popen[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Send the options to the program and return its reply, one line of JSON.

    Returns:
        ``{"address"}`` or ``{"error"}``; empty if the program ended or wrote something else.
    """
    assert process.stdin is not None  # noqa: S101  # both are pipes
    assert process.stdout is not None  # noqa: S101
    try:
        process.stdin.write(json.dumps(options) + "\n")
        process.stdin.flush()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(_START_S):
                process.kill()
                return {"error": f"it was not ready after {_START_S:g} s"}
        reply = json.loads(process.stdout.readline())
    except (OSError, ValueError):
        return {}
    finally:
        # Here and not in ``stop``, which may run meanwhile: a closed pipe leaves the selector without
        # a word, and this would wait until the end of its time.
        process.stdout.close()
    return reply if isinstance(reply, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def exit_reason(process: subprocess.Popen[str], stderr: IO[str]) -> str:
    """Return why a program ended without a reply: the signal, or its last line on stderr."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)
    code = process.returncode
    if code is not None and code < 0:
        name = signal.strsignal(-code) or "unknown"
        return f"it was ended by signal {-code} ({name}){_LIKELY.get(signal.Signals(-code), '')}"
    stderr.seek(0)
    return next(reversed(stderr.read().strip().splitlines()), "it said nothing")


def stop(processes: list[subprocess.Popen[str]]) -> None:
    """Stop processes and remove them from the list: close stdin, then kill what still runs."""
    stopping = list(processes)
    for process in stopping:
        if process.stdin is not None:
            with suppress(OSError, ValueError):
                process.stdin.close()
    for process in stopping:
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        with suppress(ValueError):
            processes.remove(process)
