"""Processes that need not import anything: they are forked from one that has.

A fresh ``python`` that imports planwave costs most of a second, which is most of what a test with
processes takes. What matters only at the start of an interpreter (streams that are closed, what
is imported when, an interrupt during the import) needs one of its own: ``subprocess``.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import IO, Any, Self

from tests.support.processes.interpreter import PRELOADED, Program, run_program


class ForkedProcess:
    """What tests use of ``subprocess.Popen``: pipes of text. Only one thread may wait for its end."""

    def __init__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        terminal: int | None = None,
    ) -> None:
        """Start ``python arguments``.

        Args:
            arguments: See ``Program``.
            cwd: Its working directory, else this one's.
            env: Its environment, else this one's.
            stdout: A file descriptor to write to, else a pipe.
            stderr: The same for errors.
            terminal: A terminal in place of all its streams.
        """
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        self.returncode: int | None = None
        if terminal is None:
            self.stdout, output = _pipe_or(stdout)
            self.stderr, errors = _pipe_or(stderr)
            streams = Connection(os.open(os.devnull, os.O_RDONLY)), output, errors
        else:
            streams = tuple(Connection(os.dup(terminal)) for _ in range(3))
        program = Program(
            arguments,
            str(cwd or Path.cwd()),
            dict(os.environ) if env is None else env,
            streams,
            terminal is not None,
        )
        self._process = _context().Process(target=run_program, args=(program,), daemon=True)
        self._process.start()
        for stream in streams:
            stream.close()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()
        self.wait()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; give the exit code."""
        self._process.join(timeout)
        self.returncode = self._process.exitcode
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0)
        return self.returncode

    def communicate(self, timeout: float = 120) -> tuple[str, str]:
        """Read its streams to their end and wait for its own; kill it when the time is over."""
        timer = Timer(timeout, self.kill)
        timer.start()
        try:
            with ThreadPoolExecutor(2) as pool:
                output, errors = pool.map(_read, (self.stdout, self.stderr))
            self._close()
            self.wait(timeout)
        finally:
            timer.cancel()
            timer.join()
        return output, errors

    def _close(self) -> None:
        for stream in (self.stdout, self.stderr):
            if stream is not None:
                stream.close()


def run_forked(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``python arguments`` to its end; see ``ForkedProcess``."""
    with ForkedProcess(*arguments, **options) as process:
        output, errors = process.communicate()
        return subprocess.CompletedProcess(arguments, process.wait(), output, errors)


@cache
def _context() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    return context


def _pipe_or(descriptor: int | None) -> tuple[IO[str] | None, Connection]:
    """Give the end that is read, if there is one, and the end that a process writes to."""
    if descriptor is not None:
        return None, Connection(os.dup(descriptor), readable=False)
    reader, writer = os.pipe()
    return open(reader, encoding="utf-8"), Connection(writer, readable=False)


def _read(stream: IO[str] | None) -> str:
    return "" if stream is None or stream.closed else stream.read()
