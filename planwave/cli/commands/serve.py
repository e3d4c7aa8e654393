"""``planwave serve``: plans and executions over HTTP, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from json import dumps
from typing import TYPE_CHECKING, Annotated

import typer

from planwave.cli.options import (
    ImportOption,
    JsonFlag,
    ModelOption,
    ProviderOption,
    StorageOption,
    command_context,
)

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole
    from planwave.settings import Settings

HostOption = Annotated[
    str | None,
    typer.Option(
        "--host", metavar="ADDRESS", help="The address to listen on. [default: 127.0.0.1]"
    ),
]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65_535,
        metavar="N",
        help="The port; 0 selects a free one. [default: 8000]",
    ),
]


def serve(
    typer_ctx: typer.Context,
    host: HostOption = None,
    port: PortOption = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
    node_modules: ImportOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
) -> None:
    """Serve plans and executions over HTTP, WebSocket and server-sent events.

    After Ctrl-C (or SIGTERM) no new work is accepted, and running steps have some time to end; a
    second one stops at once. Addresses other than loopback need PLANWAVE_TOKEN; requests send it as `Authorization: Bearer …`.

    For example:

    * `planwave serve`
    * `PLANWAVE_TOKEN=… planwave serve --host 0.0.0.0 --port 80`
    * `planwave serve --port 0 --json` (the first line has the URL)
    """
    ctx = command_context(typer_ctx, json, storage, node_modules, provider, model)
    settings = ctx.settings()
    chosen: dict[str, object] = {"host": host, "port": port}
    settings = settings.model_copy(
        update={name: value for name, value in chosen.items() if value is not None}
    )
    told = partial(_show_address, ctx.console(), settings)
    code = asyncio.run(ctx.factories.serve(settings, told))
    if code:
        raise typer.Exit(code)


def _show_address(console: CommandConsole, settings: Settings, url: str) -> None:
    """Write the URL of the service; with ``--json``, one object."""
    directory = settings.storage_dir.absolute()
    if console.json:
        told = {
            "url": url,
            "pid": os.getpid(),
            "storage": str(directory),
            "needs_token": settings.token is not None,
        }
        sys.stdout.write(dumps(told) + "\n")  # one line, which a parent process can wait for
        sys.stdout.flush()
        return
    console.verbatim(f"planwave listens on {url}")
    if settings.api_docs:
        console.verbatim(f"  API documentation: {url}/docs")
    console.verbatim(f"  storage: {directory}")
    if settings.token is not None:
        console.text("  requests carry the token: Authorization: Bearer …")
    console.text(
        "  Ctrl-C stops it after running steps have ended; a second Ctrl-C stops it at once"
    )
