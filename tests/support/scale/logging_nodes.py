"""Node types that write a line each time that they run: the node module of processes that are killed."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Final, NamedTuple

import planwave

RUN_LOG: Final = "SCALE_RUN_LOG"
"""The environment variable with the path of the file of runs."""
_HANG_S: Final = 120


class Run(NamedTuple):
    """One time that a node ran.

    Attributes:
        at: When it began, in seconds since 1970.
    """

    execution_id: str
    path: str
    attempt: int
    pid: int
    at: float


@planwave.node("logged-step")
async def logged_step(context: planwave.FlowContext, input: str = "", ms: int = 0) -> str:
    """Write a line, then wait."""
    return await _run(context, ms)


@planwave.node("logged-act", effect="once")
async def logged_act(context: planwave.FlowContext, input: str = "", ms: int = 0) -> str:
    """Write a line, then wait; a person decides whether it runs again after a crash."""
    return await _run(context, ms)


@planwave.node("logged-failure")
async def logged_failure(context: planwave.FlowContext, input: str = "") -> str:
    """Write a line, then fail."""
    await _run(context, 0)
    raise planwave.PermanentError("it is gone", code="gone")


async def _run(context: planwave.FlowContext, ms: int) -> str:
    line = f"{context.run_id} {context.path} {context.attempt} {os.getpid()} {_now_s():.3f}\n"
    file = os.open(os.environ[RUN_LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode())  # there once it returns, whatever becomes of the process
    finally:
        os.close(file)
    if is_asked_for(hang_file(Path(os.environ[RUN_LOG]))):
        time.sleep(_HANG_S)  # noqa: ASYNC251 - blocks the event loop, as a faulty node does
    await asyncio.sleep(ms / 1_000)
    return context.path


def _now_s() -> float:
    """Return the time of the machine, whatever ``time.time`` of this process says."""
    return time.clock_gettime(time.CLOCK_REALTIME)


def is_asked_for(file: Path) -> bool:
    """Return whether a test has written the id of this process into a file, which is removed."""
    try:
        if file.read_text("utf-8") != str(os.getpid()):
            return False
        file.unlink()
    except FileNotFoundError:
        return False
    return True


def hang_file(run_log: Path) -> Path:
    """Return the file that names a process whose next node blocks its event loop for two minutes."""
    return run_log.with_suffix(".hang")


class RunLog:
    """What nodes have written; each time only what is new is read, as tests ask again and again."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0
        self._runs: list[Run] = []

    def runs(self) -> list[Run]:
        """Return all runs, in order."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                whole, end, _ = file.read().rpartition(b"\n")  # the last line may be half there
            self._read += len(whole) + len(end)
            lines = whole.decode().splitlines()
            self._runs += [
                Run(execution_id, node, int(attempt), int(pid), float(at))
                for execution_id, node, attempt, pid, at in map(str.split, lines)
            ]
        return self._runs
