"""The service of a command, shared with commands in other terminals while the command runs.

The command that owns a storage directory serves the HTTP API on loopback and writes its address into
the lock, where ``lock_owner`` of the other command finds it. The server is imported in a thread, and
only for a command that takes longer than a moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, Protocol

from planwave.cli.formatting import counted
from planwave.cli.signals import Interrupt, Interrupted

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole
    from planwave.service.service import Service

_log = logging.getLogger(__name__)

SHARE_AFTER_S: Final = 1.0
"""A command that ends earlier does not pay for the import of the server, half a second of CPU time."""


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


async def wait_for_other_executions(
    service: Service, console: CommandConsole, interrupt: Interrupt
) -> None:
    """Wait for the executions that other terminals started here; a signal interrupts these.

    They can be resumed then: no event says that they ended.
    """
    load = service.load
    left = load.running + load.queued
    if not left:
        return
    console.note(
        f"{counted(left, 'execution')} of other terminals still run here; this command ends after "
        "that, Ctrl-C interrupts it"
    )
    try:
        await interrupt.cancel_on_signal(service.wait_idle())
    except Interrupted:
        await service.drain(0)
