"""One embedded model server process: started, asked for its address, looked after, ended."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

_START_S = 120.0
_STOP_S = 1.0
_SILENT_S = 20.0
"""What answers nothing for so long hangs: the question needs no model, and nobody is before it."""
_LIKELY = {
    signal.SIGKILL: "; most likely memory ran out",
    signal.SIGILL: "; most likely this processor lacks an instruction it needs",
}


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A server process that answers."""

    process: subprocess.Popen[str]
    address: str
    key: str = field(repr=False)

    @property
    def is_running(self) -> bool:
        """Whether the process is alive."""
        return self.process.poll() is None

    async def is_healthy(self) -> bool:
        """Whether the process is alive and well: one that hangs would keep every call waiting."""
        if not self.is_running:
            return False
        place = urlsplit(self.address)
        try:
            async with asyncio.timeout(_SILENT_S):
                reader, writer = await asyncio.open_connection(place.hostname, place.port)
                try:
                    writer.write(b"GET /health HTTP/1.0\r\n\r\n")
                    return bool(await reader.readline())
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False


def start_process(program: Path, said: IO[str]) -> subprocess.Popen[str]:
    """Start the server program; what it says besides its answer goes to ``said``.

    Raises:
        OSError: It cannot be started.
    """
    # -P: the program's own folder holds modules with everyday names. A session of its own: Ctrl-C
    # in the terminal is planwave's to answer, and its calls end in order.
    return subprocess.Popen(  # noqa: S603  # our own program, no shell
        [sys.executable, "-P", str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        text=True,
        start_new_session=True,
    )


def handshake(process: subprocess.Popen[str], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Hand the program its orders and give its one line of answer.

    Returns:
        ``{"address"}`` or ``{"error"}``; without either it ended, or said something else.
    """
    assert process.stdin is not None  # noqa: S101  # both are pipes
    assert process.stdout is not None  # noqa: S101
    overdue = threading.Event()

    def give_up() -> None:
        overdue.set()
        process.kill()

    late = threading.Timer(_START_S, give_up)
    late.daemon = True
    late.start()
    try:
        process.stdin.write(json.dumps(wanted) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
    except (OSError, ValueError):
        answer = None
    finally:
        late.cancel()
    if overdue.is_set():
        return {"error": f"it was not ready after {_START_S:g} s"}
    return answer if isinstance(answer, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def exit_reason(process: subprocess.Popen[str], said: IO[str]) -> str:
    """Give why a program ended that gave no answer: the signal that ended it, or its last line."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)
    code = process.returncode
    if code is not None and code < 0:
        name = signal.strsignal(-code) or "unknown"
        return f"it was ended by signal {-code} ({name}){_LIKELY.get(signal.Signals(-code), '')}"
    said.seek(0)
    return next(reversed(said.read().strip().splitlines()), "it said nothing")


def stop(processes: list[subprocess.Popen[str]]) -> None:
    """End server processes and take them off the list: by the end of their stdin, then by force."""
    ended = list(processes)
    for process in ended:
        if process.stdin is not None:
            with suppress(OSError, ValueError):
                process.stdin.close()
    for process in ended:
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            with suppress(OSError, ValueError):
                process.stdout.close()
        with suppress(ValueError):
            processes.remove(process)
