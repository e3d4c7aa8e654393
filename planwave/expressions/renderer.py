"""The parent's side of the render worker: start it, send requests, kill and restart it.

One worker, one request at a time, first in first out. A request that does not finish (a limit, a
cancelled caller, a dead worker) ends the worker, so that a late reply can never be taken for the
reply to another request; the next request starts a new worker.

The worker's standard input is one end of a socket pair. Each call uses the parent's end through
the running event loop, and no state belongs to a loop: a renderer may be used in one loop and later
in another.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from planwave.errors import TemplateError
from planwave.expressions import errors
from planwave.expressions.json_text import Json

START_S = 20.0
"""Seconds the interpreter and the engine may take to load on a busy machine."""
FUEL = 2_000_000
"""Limit on engine instructions of one render: about 100,000 iterations of a small loop."""
MAX_REQUEST_BYTES = 64 * 1024 * 1024
EXIT_MEMORY = 77
_POLL_S = 0.005


class _Worker:
    """One worker process and the parent's end of its socket."""

    def __init__(self, arguments: list[str]) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.setblocking(False)
        with theirs:
            # -P: never import from the working directory. -S -s: no site hooks, a faster start.
            command = [sys.executable, "-P", "-S", "-s", "-m", "planwave.expressions.render_worker"]
            try:
                self.process = subprocess.Popen(  # noqa: S603 - our own module, numbers only
                    [*command, *arguments],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=_environment(),
                    start_new_session=True,
                )
            except BaseException:
                self.socket.close()
                raise

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """Kill the process and close the socket; ``poll`` reaps the process later."""
        self.process.kill()
        self.socket.close()

    async def exchange(self, payload: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.socket, len(payload).to_bytes(4, "big"))
        await loop.sock_sendall(self.socket, payload)
        return await self.receive()

    async def receive(self) -> bytes:
        size = int.from_bytes(await self._read_exactly(4), "big")
        return await self._read_exactly(size)

    async def _read_exactly(self, size: int) -> bytes:
        loop = asyncio.get_running_loop()
        received = bytearray()
        while len(received) < size:
            chunk = await loop.sock_recv(self.socket, min(size - len(received), 1 << 18))
            if not chunk:
                raise EOFError
            received += chunk
        return bytes(received)


def _environment() -> dict[str, str]:
    """Return the worker's environment: the import path, but no key or token of the parent."""
    homes = [Path(__file__).resolve().parents[2]]
    engine = importlib.util.find_spec("minijinja")
    if engine is not None and engine.origin is not None:
        homes.append(Path(engine.origin).resolve().parents[1])
    return {"PYTHONPATH": os.pathsep.join(map(str, homes)), "PYTHONUTF8": "1"}


class Renderer:
    """Renders templates in one long-lived worker process, started at the first use.

    Args:
        wall_s: Limit on one render in seconds, half of it in CPU time, without the start of the
            worker and the wait for other renders.
        memory_bytes: Address space of the worker.
        max_template_bytes: UTF-8 length of a template.
        max_output_bytes: UTF-8 length of a rendered text, or of a value as JSON.
    """

    def __init__(
        self,
        *,
        wall_s: float = 2.0,
        memory_bytes: int = 256 << 20,
        max_template_bytes: int = 64 << 10,
        max_output_bytes: int = 1 << 20,
    ) -> None:
        self.wall_s = wall_s
        self.memory_bytes = memory_bytes
        self.max_template_bytes = max_template_bytes
        self.max_output_bytes = max_output_bytes
        self._worker: _Worker | None = None
        self._ending: list[_Worker] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._render_lock = asyncio.Lock()

    async def render(self, source: str, variables: dict[str, Json]) -> str:
        """Return the rendered text of a template.

        Raises:
            TemplateError: The template is invalid or exceeds a limit; other renders are unaffected.
        """
        return await self._send("render", source, variables)

    async def evaluate(self, expression: str, variables: dict[str, Json]) -> Json:
        """Return the value of one expression (without braces), with its JSON type.

        Raises:
            TemplateError: The expression is invalid or exceeds a limit; other renders are
                unaffected.
        """
        return await self._send("evaluate", expression, variables)

    async def close(self) -> None:
        """End the worker and wait until it has exited. A later render starts a new one."""
        self._discard()
        for worker in self._ending:
            await _wait_exited(worker)
        self._ending.clear()

    async def _send(self, op: str, source: str, variables: dict[str, Json]) -> Any:
        limit = self.max_template_bytes
        if (size := errors.byte_length(source, limit)) > limit:
            raise errors.too_large("the template", limit, size, "template_bytes")
        payload = _encode_request(op, source, variables)
        async with self._lock_of_loop():
            self._reap()
            try:
                reply = json.loads(await self._exchange(payload))
            except BaseException:
                self._discard()
                raise
        if "error" in reply:
            error = reply["error"]
            raise TemplateError(error["message"], code=error["code"], hint=error["hint"])
        return reply["value"]

    def _lock_of_loop(self) -> asyncio.Lock:
        """Return a lock of the running loop; a lock used in another loop cannot be used here.

        Raises:
            RuntimeError: A render is in progress in another running event loop.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and self._render_lock.locked() and self._loop.is_running():
                raise RuntimeError("this Renderer is rendering in another event loop; use two")
            if self._render_lock.locked():
                self._discard()
            self._loop, self._render_lock = loop, asyncio.Lock()
        return self._render_lock

    async def _exchange(self, payload: bytes) -> bytes:
        worker = await self._live_worker()
        try:
            async with asyncio.timeout(self.wall_s):
                return await worker.exchange(payload)
        except TimeoutError as error:
            raise self._timeout_error() from error
        except (EOFError, ConnectionError) as error:
            raise self._exit_error(await _wait_exited(worker)) from error

    async def _live_worker(self) -> _Worker:
        """Return the live worker; start one and wait until it is ready if there is none."""
        if self._worker is not None and self._worker.is_alive():
            return self._worker
        self._discard()
        limits = (self.memory_bytes, self.wall_s / 2, self.max_output_bytes, FUEL)
        try:
            self._worker = _Worker([str(limit) for limit in limits])
            async with asyncio.timeout(START_S):
                await self._worker.receive()
        except (EOFError, OSError) as error:  # TimeoutError is an OSError
            raise TemplateError(
                "the render worker does not start",
                code=errors.UNAVAILABLE,
                hint="check that minijinja is installed and the limit template_memory_bytes is "
                "large enough",
                retryable=True,
            ) from error
        return self._worker

    def _discard(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._ending.append(self._worker)
            self._worker = None

    def _reap(self) -> None:
        self._ending = [worker for worker in self._ending if worker.is_alive()]

    def _timeout_error(self) -> TemplateError:
        return TemplateError(
            f"the template takes longer than {self.wall_s:g} s",
            code=errors.TIMEOUT,
            hint="loop over less, or raise the limit template_wall_s",
        )

    def _exit_error(self, status: int | None) -> TemplateError:
        """Return the error of the current render for the worker's exit status."""
        if status == -signal.SIGPROF:
            return self._timeout_error()
        # The engine aborts when it cannot allocate; the kernel's out-of-memory killer kills.
        if status in (EXIT_MEMORY, -signal.SIGABRT, -signal.SIGKILL):
            return TemplateError(
                f"the template needs more memory than {self.memory_bytes} bytes",
                code=errors.MEMORY,
                hint="build less text, or raise the limit template_memory_bytes",
            )
        return TemplateError(f"the render worker died (status {status})", code=errors.CRASHED)


def _encode_request(op: str, source: str, variables: dict[str, Json]) -> bytes:
    try:
        payload = json.dumps(
            {"op": op, "source": source, "variables": variables}, separators=(",", ":")
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TemplateError(
            f"a value in the expression is not JSON: {error}", code=errors.FAILED
        ) from error
    if len(payload) > MAX_REQUEST_BYTES:
        raise TemplateError(
            f"the values a template refers to are too large: limit {MAX_REQUEST_BYTES} bytes, "
            f"met {len(payload)}",
            code=errors.TOO_LARGE,
        )
    return payload


async def _wait_exited(worker: _Worker) -> int | None:
    """Wait until an ending worker has been reaped; return its exit status."""
    while (status := worker.process.poll()) is None:  # noqa: ASYNC110 - a child has no event
        await asyncio.sleep(_POLL_S)
    return status
