"""``planwave mcp``: planwave as an MCP server on standard input and output."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import typer

from planwave.cli.backends.local import LocalBackend
from planwave.cli.backends.lock_owner import is_planwave_service
from planwave.cli.backends.shared_service import shared
from planwave.cli.context import CommandContext
from planwave.cli.options import shared_options
from planwave.cli.signals import Interrupt
from planwave.errors import InputError
from planwave.interop.mcp_server.endpoint import is_installed

if TYPE_CHECKING:
    from planwave.interop.mcp_server.stdio import StdioServer
    from planwave.service.service import Service
    from planwave.settings import Settings


@shared_options(with_model=True, has_json=False, untrusted="refuse")
def mcp(ctx: CommandContext) -> None:
    """Serve MCP on standard input and output, for a program that starts this command.

    Its tools plan and run goals, and run the flows that are published as tools. It uses `planwave
    serve` where that runs on the same storage directory; otherwise it runs everything itself.

    For example, in the configuration of an MCP client:

    * `{"command": "planwave", "args": ["mcp", "--storage", "/home/me/planwave"]}`
    """
    if not is_installed():
        raise InputError(
            "the SDK of MCP is not installed",
            code="mcp-not-installed",
            hint="pip install 'planwave[mcp]'",
        )
    # Before the loop runs: it would stand still while the SDK is imported.
    # Lazy: test_help_loads_no_heavy_library
    from planwave.interop.mcp_server.stdio import StdioServer

    number = asyncio.run(_serve(ctx, ctx.settings(), StdioServer))
    if number is not None:
        raise typer.Exit(128 + number)


async def _serve(ctx: CommandContext, settings: Settings, server: type[StdioServer]) -> int | None:
    """Serve until the client closes the input; return the number of the signal that came before."""
    client = server()
    with Interrupt(ctx.console()) as interrupt:
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(client.run())
            with interrupt.on_stop(serving.cancel):
                await _answer(ctx, settings, client)
    return interrupt.received


async def _answer(ctx: CommandContext, settings: Settings, client: StdioServer) -> None:
    """Have requests answered until the client has gone: by a running service, or by an own one."""
    while not client.is_over.is_set():
        opened = await ctx.open_backend(settings)
        if isinstance(opened, LocalBackend):
            await _answer_here(ctx, settings, client, opened.service)
        else:
            async with opened:
                await _answer_there(ctx, settings, client)


async def _answer_here(
    ctx: CommandContext, settings: Settings, client: StdioServer, service: Service
) -> None:
    # Lazy: test_help_loads_no_heavy_library
    from planwave.interop.mcp_server.server import PlanwaveMcpServer

    async with (
        service,
        shared(service, partial(ctx.factories.command_server, settings)),
        PlanwaveMcpServer(service, client.changes) as server,
    ):
        await service.recover()
        client.answer_with(server)
        await client.is_over.wait()
        await service.drain()


async def _answer_there(ctx: CommandContext, settings: Settings, client: StdioServer) -> None:
    owner = ctx.running_service(settings)
    if owner is None or owner.url is None:
        return
    # Lazy: test_help_loads_no_heavy_library
    from planwave.interop.mcp_server.bridge import Bridge

    async with Bridge(owner.url, owner.token, client.changes) as bridge:
        client.answer_with(bridge)
        over = asyncio.get_running_loop().create_task(client.is_over.wait())
        lost = asyncio.get_running_loop().create_task(bridge.is_lost.wait())
        await asyncio.wait((over, lost), return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        lost.cancel()
        client.answer_with(None)
    # Only its own installation says whether a service has the MCP server.
    if not bridge.was_connected and bridge.is_lost.is_set() and is_planwave_service(owner.url):
        raise InputError(
            f"{owner.title} has no MCP server",
            code="mcp-not-installed",
            hint="pip install 'planwave[mcp]' where it runs, and start it again",
        )
