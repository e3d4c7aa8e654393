"""A server that is a program: its process, and the messages on its standard input and output.

The transport of the SDK is not used: it has no limit for the size of a message, writes what the server
says on standard error to a file, and leaves processes alone that a server has started and that outlive it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from planwave.setting_tables import child_environment

_EXIT_S: Final = 2.0
"""How long a server may take to exit after its standard input was closed; as in the SDK."""
_TERMINATE_S: Final = 1.0
"""How long it may take after SIGTERM, before SIGKILL."""
_POLL_S: Final = 0.01
_CHUNK_BYTES: Final = 8 * 1024
_MAX_LINE_CHARS: Final = 500
_MAX_LINES: Final = 200
"""Lines of standard error that are passed on, for one process."""

_Incoming = SessionMessage | Exception


@dataclass(frozen=True, slots=True)
class Program:
    """A program to start.

    Attributes:
        command: Its name or path, and its arguments.
        environment: Environment variables that it gets besides the usual ones.
        directory: Its working directory; None for that of this process.
    """

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    directory: str | None = None


@asynccontextmanager
async def run_program(
    program: Program,
    *,
    message_bytes: int,
    on_error_line: Callable[[str], None],
    on_end: Callable[[str], None],
) -> AsyncGenerator[Any]:
    """Start a server, and give the two streams of its messages; a ``mcp.client.Transport``.

    At the end the process is stopped, with all processes of its group.

    Args:
        program: What to start.
        message_bytes: The longest message that it may send.
        on_error_line: Gets what it writes on standard error, at most 200 lines.
        on_end: Called when no more messages will come, and once more when the process has ended;
            with the reason where that is known by then, else with an empty text.

    Raises:
        OSError: It cannot be started.
    """
    process = await _start(program, message_bytes)
    stdin = cast("asyncio.StreamWriter", process.stdin)
    to_client, incoming = anyio.create_memory_object_stream[_Incoming](0)
    outgoing, from_client = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_read_messages(process, to_client, message_bytes, on_end)),
                group.create_task(_write_messages(stdin, from_client, on_end)),
                group.create_task(_read_error_lines(process, on_error_line)),
            ]
            is_killed = False
            try:
                yield incoming, outgoing
            except BaseException:
                if is_killed := not tasks[0].done():  # at an exit of its own the output is closed
                    _kill_group(process)
                raise
            finally:
                incoming.close()
                outgoing.close()
                stdin.close()
                await _stop(process)
                on_end("" if is_killed else _end_of(process))  # else the error is the reason
                for task in tasks:
                    task.cancel()
    finally:
        _kill_group(process)
        _close_pipes(process)


async def _start(program: Program, message_bytes: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *program.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment() | {**program.environment},
        cwd=program.directory,
        start_new_session=True,
        limit=message_bytes,
    )


async def _read_messages(
    process: asyncio.subprocess.Process,
    to_client: MemoryObjectSendStream[_Incoming],
    message_bytes: int,
    on_end: Callable[[str], None],
) -> None:
    stdout = cast("asyncio.StreamReader", process.stdout)
    reason = ""
    async with to_client:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            try:
                while line := await stdout.readline():
                    if line.strip():
                        await to_client.send(_parse_message(line))
            except ValueError:
                reason = f"it sent a message of more than {message_bytes} bytes"
            except OSError as error:
                reason = f"its output cannot be read: {error}"
        on_end(reason)
        await _discard(stdout)


def _end_of(process: asyncio.subprocess.Process) -> str:
    """Return how a process has ended."""
    status = process.returncode
    if status is None:
        return "its program closed its output"
    if status >= 0:
        return f"its program exited with status {status}"
    return f"its program was ended by the signal {signal.Signals(-status).name}"


async def _discard(stdout: asyncio.StreamReader) -> None:
    """Read on, so that a server that is about to exit is not blocked by a full pipe."""
    with suppress(OSError):
        while await stdout.read(_CHUNK_BYTES):
            pass


def _parse_message(line: bytes) -> _Incoming:
    for text in (lambda: line, lambda: _without_surrogates(line)):
        with suppress(ValueError, RecursionError):
            parsed = mcp_types.jsonrpc_message_adapter.validate_json(text(), by_name=False)
            return SessionMessage(parsed)
    return ValueError("a line of the server's output is no message of MCP")


def _without_surrogates(line: bytes) -> bytes:
    """Return JSON in which halves of a character, which some servers escape, are question marks."""
    document = json.loads(line)
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")


async def _write_messages(
    stdin: asyncio.StreamWriter,
    from_client: MemoryObjectReceiveStream[SessionMessage],
    on_end: Callable[[str], None],
) -> None:
    async with from_client:
        try:
            async for item in from_client:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                stdin.write(text.encode("utf-8", "replace") + b"\n")
                await stdin.drain()
        except OSError:
            on_end("")


async def _read_error_lines(
    process: asyncio.subprocess.Process, on_error_line: Callable[[str], None]
) -> None:
    """Pass on the first lines of standard error, cut to a length; read the rest and drop it."""
    stderr = cast("asyncio.StreamReader", process.stderr)
    remaining, begun = _MAX_LINES, b""
    with suppress(OSError):
        while chunk := await stderr.read(_CHUNK_BYTES):
            *lines, begun = (begun + chunk).split(b"\n")
            begun = begun[:_CHUNK_BYTES]
            for line in lines[:remaining]:
                on_error_line(_shown_line(line))
            remaining -= min(remaining, len(lines))
    if begun and remaining:
        on_error_line(_shown_line(begun))


def _shown_line(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip()
    return "".join(char if char.isprintable() else " " for char in text)[:_MAX_LINE_CHARS]


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Wait for the exit that the end of its input asks for; then signal the whole group."""
    try:
        if not await _has_exited(process, _EXIT_S):
            _signal_group(process, signal.SIGTERM)
            await _has_exited(process, _TERMINATE_S)
    finally:
        _kill_group(process)
        await _has_exited(
            process, _TERMINATE_S
        )  # also when cancelled: the event loop may be closed next


async def _has_exited(process: asyncio.subprocess.Process, within_s: float) -> bool:
    """Return whether a process exits in time.

    ``process.wait()`` also waits for its pipes, which its own children may hold open.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while process.returncode is None and loop.time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_S)
    return process.returncode is not None


def _kill_group(process: asyncio.subprocess.Process) -> None:
    _signal_group(process, signal.SIGKILL)


def _signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Signal the process and all that it has started: it leads a process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _close_pipes(process: asyncio.subprocess.Process) -> None:
    """Close the pipes even if a process that left the group holds the other ends."""
    transport = getattr(process, "_transport", None)  # no public name
    if transport is not None:
        transport.close()
