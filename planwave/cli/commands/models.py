"""``planwave doctor`` and ``model pull``: what this machine can run, and the download of its models."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from planwave.cli.console import CommandConsole
from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode, hint_of
from planwave.cli.formatting import counted
from planwave.cli.options import shared_options
from planwave.cli.signals import Interrupted
from planwave.errors import InputError, StoreError
from planwave.planner.capabilities import check_can_plan
from planwave.providers.local.download import download_model as download_model_file
from planwave.providers.local.download import expand_home, is_present, model_path
from planwave.providers.local.model_files import MODEL_FILES, is_path, model_file
from planwave.service.plans.documents import check_source, is_provider_error
from planwave.storage.ownership import is_trusted, untrusted_error

if TYPE_CHECKING:
    from planwave.cli.console import CommandConsole
    from planwave.cli.context import Factories
    from planwave.cli.inputs import Source
    from planwave.settings import Settings

_GIB = 1024**3
_COUNT_LIMIT = 1000
_STORAGE_HINT = "set PLANWAVE_STORAGE_DIR, or --storage, to a directory that can be written"

_NOT_STARTED = "not started"
_START_HINT = "planwave doctor --start tries it"

model_app = typer.Typer(
    help="Download the embedded model ahead of time.", no_args_is_help=True, add_completion=False
)


@model_app.callback()
def model() -> None:
    """Download the embedded model ahead of time."""


@model_app.command()
@shared_options()
def pull(
    ctx: CommandContext,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A model that `planwave doctor` lists. [default: qwen2.5-coder-1.5b]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Download the embedded model into the model cache, and check it.

    The model is used only if its checksum is right. An interrupted download continues where it
    stopped.

    For example:

    * `planwave model pull`
    * `planwave model pull qwen2.5-coder-0.5b` (half the memory, weaker plans)
    """
    console, settings = ctx.console(), ctx.settings()
    path = download_with_progress(console, settings, name or settings.local_model)
    if console.json:
        console.result({"model": name or settings.local_model, "path": str(path)})
    else:
        console.verbatim(
            f"{console.glyph('completed')} {name or settings.local_model} is in {path}"
        )


@shared_options()
def doctor(
    ctx: CommandContext,
    start: Annotated[
        bool,
        typer.Option("--start", metavar="", help="Start the MCP servers, and count their tools."),
    ] = False,
) -> None:
    """Show what works on this machine, what does not, and how to enable it; it starts nothing.

    For example:

    * `planwave doctor`
    * `planwave doctor --start`
    * `planwave doctor --json`
    """
    console, settings = ctx.console(), ctx.settings()
    providers, local = ctx.factories.providers(settings)
    infos = providers.list()
    storage = _storage_report(ctx, settings)
    can_plan = any(info.available for info in infos) or local.required_download() is not None
    report: dict[str, Any] = {
        "settings_files": [str(each.path) for each in reversed(ctx.loaded().files)],
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "machine": _machine_report(settings),
        "providers": [
            {
                "name": info.name,
                "available": info.available,
                "reason": info.reason,
                "how_to_enable": info.how_to_enable,
                "default_model": info.default_model,
            }
            for info in infos
        ],
        "models": _model_report(settings),
        "mcp_servers": _mcp_report(ctx, settings, start=start),
        "storage": storage,
        "ok": can_plan and storage["ok"],
    }
    _show_report(console, report, can_plan)
    if not can_plan:
        raise typer.Exit(ExitCode.NO_PROVIDER)
    if not storage["ok"]:
        raise typer.Exit(ExitCode.FAILED)


def _show_report(console: CommandConsole, report: dict[str, Any], can_plan: bool) -> None:
    if console.json:
        console.result(report)
        return
    machine, store = report["machine"], report["storage"]
    arrow = console.symbol("→", "->")
    console.text(f"planwave   {machine['planwave']}, Python {report['python']['version']}")
    memory, disk = machine["memory_bytes"], machine["disk_free_bytes"]
    size = f"{memory / _GIB:.1f} GiB memory" if memory else "memory unknown"
    free = f"{disk / _GIB:.1f} GiB disk free" if disk is not None else "disk unknown"
    console.text(
        f"Machine    {machine['system']}, {counted(machine['cpus'], 'CPU')}, {size}, {free}"
    )
    files = ", ".join(report["settings_files"]) or "no file: planwave config show"
    console.verbatim(f"Settings   {files}")
    console.line()
    console.line("Providers")
    width = max((len(info["name"]) for info in report["providers"]), default=0)
    for info in report["providers"]:
        sign = console.glyph("completed" if info["available"] else "blocked")
        model = f" ({info['default_model']})" if info["available"] and info["default_model"] else ""
        console.text(f"  {sign} {info['name']:<{width}}  {info['reason']}{model}")
        if not info["available"] and info["how_to_enable"]:
            console.verbatim(f"    {arrow} {info['how_to_enable']}")
    console.line()
    console.line("Embedded models")
    width = max((len(each["name"]) for each in report["models"]), default=0)
    for each in report["models"]:
        sign = console.glyph("completed" if each["cached"] else "pending")
        where = (
            each["path"]
            if each["cached"]
            else f"not downloaded: planwave model pull {each['name']}"
        )
        able = "" if each["plans"] else " (runs steps, cannot plan)"
        console.verbatim(f"  {sign} {each['name']:<{width}}  {where}{able}")
    _show_mcp_servers(console, report["mcp_servers"])
    console.line()
    sign = console.glyph("completed" if store["ok"] else "failed")
    console.verbatim(f"Storage    {sign} {store['directory']}: {store['state']}")
    if store["hint"]:
        console.verbatim(f"    {arrow} {store['hint']}")
    if not can_plan:
        console.error("no provider can be used: nothing can be planned", "see the lines above")
    elif not any(info["available"] for info in report["providers"]):
        console.line()
        console.text("The first run downloads the embedded model; everything else is ready.")


def _show_mcp_servers(console: CommandConsole, servers: list[dict[str, Any]]) -> None:
    if not servers:
        return
    console.line()
    console.line("MCP servers")
    width = max(len(each["name"]) for each in servers)
    for each in servers:
        works = each["tools"] is not None
        is_tried = each["reason"] != _NOT_STARTED
        sign = console.glyph("completed" if works else "blocked" if is_tried else "pending")
        state = [counted(each["tools"], "tool")] if works else []
        state += [each["reason"]] if each["reason"] else []
        console.verbatim(f"  {sign} {each['name']:<{width}}  {'; '.join(state)}")
        if each["hint"]:
            console.verbatim(f"    {console.symbol('→', '->')} {each['hint']}")


def _mcp_report(ctx: CommandContext, settings: Settings, *, start: bool) -> list[dict[str, Any]]:
    """Return the MCP servers; with ``start``, start each and count its tools."""
    if not settings.mcp:
        return []
    if not start:
        # Lazy: test_help_loads_no_heavy_library
        from planwave.mcp.servers import ServerReport

        return [
            asdict(ServerReport(name, server.kind, None, _NOT_STARTED, _START_HINT))
            for name, server in settings.mcp.items()
        ]
    return [asdict(each) for each in asyncio.run(ctx.factories.mcp_servers(settings).reports())]


def _machine_report(settings: Settings) -> dict[str, Any]:
    return {
        "planwave": version("planwave"),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_bytes": _memory_bytes(),
        "disk_free_bytes": _disk_free_bytes(settings.storage_dir),
    }


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _disk_free_bytes(directory: Path) -> int | None:
    try:
        return shutil.disk_usage(_nearest_existing(directory)).free
    except OSError:
        return None


def _storage_report(ctx: CommandContext, settings: Settings) -> dict[str, Any]:
    """Report whether the storage directory can be read and written; change nothing."""
    directory = settings.storage_dir

    async def count() -> str:
        async with ctx.factories.history(settings) as history:
            executions = len(await history.executions.list(limit=_COUNT_LIMIT))
        more = "at least " if executions == _COUNT_LIMIT else ""
        return f"readable, {more}{counted(executions, 'execution')}"

    def entry(state: str, hint: str | None = None) -> dict[str, Any]:
        ok = hint is None
        return {"directory": str(directory), "ok": ok, "state": state, "hint": hint}

    try:
        existing = _nearest_existing(directory)
        if not existing.is_dir():
            return entry(f"{str(existing)!r} is a file, not a directory", _STORAGE_HINT)
        state = asyncio.run(count()) if directory.exists() else "not made yet"
        if not is_trusted(settings):
            return entry(f"{state}, not trusted", untrusted_error(directory).hint)
    except StoreError as error:
        return entry(error.message, hint_of(error) or _STORAGE_HINT)
    except OSError as error:
        return entry(f"cannot be looked at: {error.strerror}", _STORAGE_HINT)
    return (
        entry(state)
        if os.access(existing, os.W_OK)
        else entry(f"{state}, not writable", _STORAGE_HINT)
    )


def _model_report(settings: Settings) -> list[dict[str, Any]]:
    return [
        {
            "name": file.name,
            "bytes": file.size,
            "plans": file.plans,
            "cached": is_present(file, settings.model_dir),
            "path": str(model_path(file, settings.model_dir)),
        }
        for file in MODEL_FILES.values()
    ]


def _nearest_existing(path: Path) -> Path:
    """Return the path itself if it exists, else its nearest existing parent."""
    here = path.absolute()
    while not here.exists() and here != here.parent:
        here = here.parent
    return here


Download = Callable[..., Path]
_PERCENT_STEP = 10
"""Percent between two progress lines where no line can be redrawn."""


def missing_model(factories: Factories, settings: Settings, source: Source | None) -> str | None:
    """Return the embedded model that a goal or a source needs and that is not downloaded yet.

    Raises:
        InputError: The goal needs the embedded model to plan, and this model cannot plan.
    """
    if settings.embedded_model == "never":
        return None
    providers, local = factories.providers(settings)
    missing = local.required_download()
    if missing is None:
        return None
    nobody_else = not any(info.available for info in providers.list())
    if source is None:
        chosen = settings.provider == "local" or (
            settings.provider is None and (nobody_else or settings.model == missing)
        )
        if chosen:
            check_can_plan(providers, "local", missing)
        return missing if chosen else None
    named = _missing_providers(factories, settings, source)
    is_needed = "local" in named or (None in named and nobody_else)
    return missing if is_needed else None


def _missing_providers(factories: Factories, settings: Settings, source: Source) -> set[str | None]:
    """Return the unavailable providers that nodes name; None stands for the default provider."""
    report = check_source(source.content, factories.catalogue(settings), settings.limits)
    errors = [finding for finding in report.diagnostics if finding.severity == "error"]
    if report.graph is None or not all(map(is_provider_error, errors)):
        return set()  # the source has other errors: no download helps
    faulty = {finding.node for finding in errors}
    return {node.data.get("provider") for node in report.graph.nodes if node.id in faulty}


def download_model(
    console: CommandConsole, settings: Settings, name: str, download: Download | None = None
) -> None:
    """Fetch the embedded model that the work at hand needs, saying why in one line.

    Raises:
        ProviderError: It cannot be downloaded.
    """
    console.text(
        f"The model {name} runs on this machine and needs no API key: downloading "
        f"{model_file(name).size / 1e9:.1f} GB into {expand_home(settings.model_dir)}, once."
    )
    download_with_progress(console, settings, name, download)


def download_with_progress(
    console: CommandConsole, settings: Settings, name: str, download: Download | None = None
) -> Path:
    """Fetch one embedded model, showing how far it is.

    Raises:
        UnknownModel: No model of that name.
        InputError: It is a file of the operator's own.
        ProviderError: It cannot be downloaded.
        Interrupted: By Ctrl-C.
    """
    if is_path(name):
        raise InputError(
            f"{name} is a file of your own: there is nothing to download",
            hint=f"name a model: planwave model pull {next(iter(MODEL_FILES))}",
        )
    model_file(name)
    work = download or download_model_file
    try:
        if console.live:
            return _download_with_bar(console, settings, name, work)
        return work(name, settings.model_dir, progress=_line_progress(console))
    except KeyboardInterrupt as error:
        raise Interrupted(
            message=f"interrupted; the downloaded part of {name} is stored",
            hint=f"continue with: planwave model pull {name}",
        ) from error


def _download_with_bar(
    console: CommandConsole, settings: Settings, name: str, download: Download
) -> Path:
    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    ]
    with Progress(*columns, console=console.out, transient=True) as bar:
        task = bar.add_task(name, total=None)

        def tell(_: str, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return download(name, settings.model_dir, progress=tell)


def _line_progress(console: CommandConsole) -> Callable[[str, int, int], None]:
    reported = -_PERCENT_STEP

    def report(name: str, done: int, total: int) -> None:
        nonlocal reported
        percent = done * 100 // max(total, 1)
        if percent >= reported + _PERCENT_STEP or (percent == 100 and reported != 100):
            reported = percent
            console.line(f"{name}: {percent} % of {total / 1e6:,.0f} MB")

    return report
