"""The service of a command, shared with commands in other terminals while the command runs.

The command that owns a storage directory serves the HTTP API on loopback and writes its address into
the lock, where ``lock_owner`` of the other command finds it. The server is imported in a thread, and
only for a command that takes longer than a moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final, Protocol

from planwave.cli.formatting import counted
from planwave.cli.signals import Interrupt, Interrupted

if TYPE_CHECKING:
    from planwave.cli.backends.local import LocalBackend
    from planwave.cli.console import CommandConsole
    from planwave.service.service import Service

_log = logging.getLogger(__name__)

SHARE_AFTER_S: Final = 1.0
"""A command that ends earlier does not pay for the import of the server, half a second of CPU time."""

_CAUSE: Final = "planwave is closing"


class CommandServer(Protocol):
    """The HTTP server of a command; ``api.server.CommandServer`` fits."""

    def running(self, service: Service) -> AbstractAsyncContextManager[None]:
        """Serve an open service in the block."""
        ...


BuildServer = Callable[[Callable[[], bool]], CommandServer | None]
"""Imports and builds the server, in a thread; None once the given function returns False."""


@asynccontextmanager
async def shared(service: Service, build: BuildServer) -> AsyncGenerator[None]:
    """Share an open service in the block, from a moment after its beginning on."""
    leaving = asyncio.Event()
    # Not a TaskGroup: an error of the block must reach the caller without an ExceptionGroup.
    sharing = asyncio.get_running_loop().create_task(_share(service, build, leaving))
    try:
        yield
    finally:
        leaving.set()
        await asyncio.wait([sharing])


async def _share(service: Service, build: BuildServer, leaving: asyncio.Event) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(leaving.wait(), SHARE_AFTER_S)
    try:
        server = await asyncio.to_thread(build, lambda: not leaving.is_set())
        if server is not None:
            async with server.running(service):
                await leaving.wait()
    except Exception as error:  # noqa: BLE001 - a task boundary: the command itself continues
        _log.warning("commands in other terminals cannot reach this one: %s", error)


@asynccontextmanager
async def leaving_others_running(
    backend: LocalBackend, console: CommandConsole, interrupt: Interrupt | None
) -> AsyncGenerator[None]:
    """Wait after the block for the executions that other terminals started here.

    A signal before or meanwhile interrupts them; they can be resumed then. If the block fails, the
    executions that this command has started are cancelled.

    Args:
        backend: The backend of this command.
        console: The console that says what the command waits for.
        interrupt: The signals of this command; None if it watches for none.
    """
    try:
        yield
    except Exception:
        await backend.cancel_running(_CAUSE)
        await _wait_for_others(backend.service, console, interrupt)
        raise
    except BaseException:  # cancelled, or interrupted while nothing watches for signals
        await backend.cancel_running(_CAUSE)
        await backend.service.drain(0)
        raise
    await _wait_for_others(backend.service, console, interrupt)


async def _wait_for_others(
    service: Service, console: CommandConsole, interrupt: Interrupt | None
) -> None:
    load = service.load
    count = load.running + load.queued
    if not count:
        return
    with nullcontext(interrupt) if interrupt is not None else Interrupt(console) as signals:
        if signals.received is None:
            console.note(
                f"{counted(count, 'execution')} of other terminals still run here; this command "
                "waits for that, Ctrl-C interrupts it"
            )
        try:
            await signals.cancel_on_signal(service.executions.driver.wait_idle())
        except Interrupted:
            await service.drain(0)
