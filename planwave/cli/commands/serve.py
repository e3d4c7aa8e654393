"""``planwave serve``: plans and executions over HTTP; ``planwave worker``: executions only. Until they are stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import webbrowser
from contextlib import suppress
from json import dumps
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from planwave.cli.context import CommandContext
from planwave.cli.options import shared_options
from planwave.errors import InputError
from planwave.setting_tables import parse_root_path

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole
    from planwave.settings import Settings

_log = logging.getLogger(__name__)

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
RootPathOption = Annotated[
    str | None,
    typer.Option(
        "--root-path",
        metavar="PATH",
        help="The path prefix that a reverse proxy serves planwave under. [default: none]",
    ),
]
WithWorkerFlag = Annotated[
    bool,
    typer.Option(
        "--with-worker",
        metavar="",
        help='Also drive executions, where carrier = "temporal" hands them to several processes.',
    ),
]
OpenFlag = Annotated[
    bool, typer.Option("--open", metavar="", help="Open the web UI in your browser.")
]


@shared_options(with_model=True, untrusted="refuse")
def serve(
    ctx: CommandContext,
    host: HostOption = None,
    port: PortOption = None,
    root_path: RootPathOption = None,
    open_page: OpenFlag = False,
    with_worker: WithWorkerFlag = False,
) -> None:
    """Serve the web UI, and plans and executions over HTTP, WebSocket and server-sent events.

    After Ctrl-C (or SIGTERM) no new work is accepted, and running steps have some time to end; a
    second one stops at once. Addresses other than loopback need PLANWAVE_TOKEN; requests send it as
    `Authorization: Bearer …`.

    For example:

    * `planwave serve --open`
    * `PLANWAVE_TOKEN=… planwave serve --host 0.0.0.0 --port 80`
    * `planwave serve --port 0 --json` (the first line has the URL)
    """
    settings = ctx.settings()
    chosen: dict[str, object] = {"host": host, "port": port, "root_path": _parsed(root_path)}
    settings = settings.model_copy(
        update={name: value for name, value in chosen.items() if value is not None}
    )
    console = ctx.console()

    def on_listening(url: str) -> None:
        _warn_of_embedded_model(ctx, settings)
        _show_address(console, settings, url, has_web_ui=ctx.factories.has_web_ui())
        if open_page:  # a browser in a terminal holds up its caller until it is closed
            Thread(target=_open, args=(console, _page(settings, url)), daemon=True).start()

    role = "service-with-worker" if with_worker else "service"
    code = asyncio.run(ctx.factories.serve(settings, on_listening, role))
    if code:
        raise typer.Exit(code)


@shared_options(with_model=True, untrusted="refuse")
def worker(ctx: CommandContext, host: HostOption = None, port: PortOption = None) -> None:
    """Drive executions that a carrier hands over, beside other workers, until it is stopped.

    It needs `carrier = "temporal"` and `database_url`, and serves nothing but `/healthz`, `/readyz` and `/metrics`.
    After Ctrl-C (or SIGTERM) running steps have some time to end, and other workers go on with the executions; a
    second one stops at once.

    For example:

    * `planwave worker --port 8001`
    * `planwave worker --port 0 --json` (the first line has the URL)
    """
    settings = ctx.settings()
    chosen: dict[str, object] = {"host": host, "port": port}
    settings = settings.model_copy(
        update={name: value for name, value in chosen.items() if value is not None}
    )
    console = ctx.console()

    def on_listening(url: str) -> None:
        _warn_of_embedded_model(ctx, settings)
        if console.json:
            about = {"url": url, "pid": os.getpid(), "storage": settings.storage_name}
            sys.stdout.write(dumps(about) + "\n")
            sys.stdout.flush()
            return
        console.verbatim(f"planwave worker drives executions of {settings.storage_name}")
        console.verbatim(
            f"  Temporal: {settings.temporal.address}, task queue {settings.temporal.task_queue}"
        )
        console.verbatim(f"  health: {url}/healthz")
        console.text(
            "  Ctrl-C stops it after running steps have ended; a second Ctrl-C stops it at once"
        )

    code = asyncio.run(ctx.factories.serve(settings, on_listening, "worker"))
    if code:
        raise typer.Exit(code)


def _warn_of_embedded_model(ctx: CommandContext, settings: Settings) -> None:
    """Log once that steps without a model fall back to the embedded one, unless that was chosen."""
    if settings.provider is not None:
        return
    # Lazy: test_help_loads_no_heavy_library
    from planwave.providers.protocols import EMBEDDED, fallback_reason

    providers, _ = ctx.factories.providers(settings)
    with suppress(InputError):  # no provider at all is no fall-back
        provider, model = providers.resolve(None, settings.model)
        if provider == EMBEDDED and (reason := fallback_reason(providers)) is not None:
            _log.warning(
                "%s: steps that name no model use the embedded one, %s, whose facts are often wrong; "
                'set a key, or embedded_model = "never"',
                reason,
                model,
            )


def _parsed(root_path: str | None) -> str | None:
    if root_path is None:
        return None
    try:
        return parse_root_path(root_path)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--root-path") from error


def _page(settings: Settings, url: str) -> str:
    return f"{url}{settings.root_path}/"


def _open(console: CommandConsole, page: str) -> None:
    """Open the page in the browser that ``BROWSER`` or the desktop names."""
    if not webbrowser.open(page):
        console.note(f"no browser can be started here: open {page} yourself")


def _show_address(
    console: CommandConsole, settings: Settings, url: str, *, has_web_ui: bool
) -> None:
    """Write the URL of the service; with ``--json``, one object."""
    if console.json:
        document = {
            "url": url,
            "page": _page(settings, url),
            "pid": os.getpid(),
            "storage": settings.storage_name,
            "needs_token": settings.token is not None,
        }
        sys.stdout.write(dumps(document) + "\n")  # one line, which a parent process can wait for
        sys.stdout.flush()
        return
    console.verbatim(f"planwave listens on {url}")
    page = _page(settings, url) if has_web_ui else "not built; make web builds it, and needs Node"
    console.verbatim(f"  web UI: {page}")
    if settings.api_docs:
        console.verbatim(f"  API documentation: {_page(settings, url)}docs")
    console.verbatim(f"  storage: {settings.storage_name}")
    if settings.token is not None:
        console.text("  requests carry the token: Authorization: Bearer …")
    console.text(
        "  Ctrl-C stops it after running steps have ended; a second Ctrl-C stops it at once"
    )
