"""``planwave doctor`` and ``model pull``: what this machine offers."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planwave.cli.errors import ExitCode
from planwave.cli.options import Invocation, JsonFlag, StorageOption, invocation
from planwave.cli.wording import counted
from planwave.errors import StoreError

if TYPE_CHECKING:
    from planwave.cli.screen import Screen
    from planwave.settings import Settings

_GIB = 1024**3
_COUNTED = 1000

model_app = typer.Typer(
    help="The embedded model: fetch it ahead of time.", no_args_is_help=True, add_completion=False
)


@model_app.callback()
def model() -> None:
    """Fetch the embedded model ahead of time."""


@model_app.command()
def pull(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="qwen2.5-coder-1.5b (default) or qwen2.5-coder-0.5b."
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Fetch the embedded model, check it, keep it in the model cache.

    It is fetched as data and only used when its checksum is right. What was fetched before an
    interruption is not fetched again.

    For example:

    * `planwave model pull`
    * `planwave model pull qwen2.5-coder-0.5b` (half the memory, weaker plans)
    """
    from planwave.cli.fetching import fetch_showing

    asked = invocation(ctx, json=json)
    screen, settings = asked.screen(), asked.settings()
    path = fetch_showing(screen, settings, name or settings.local_model)
    if screen.json:
        screen.result({"model": name or settings.local_model, "path": str(path)})
    else:
        screen.text(f"{screen.glyph('completed')} {name or settings.local_model} is in {path}")


def doctor(ctx: typer.Context, json: JsonFlag = False, storage: StorageOption = None) -> None:
    """Show what works on this machine, what does not, and how to enable it.

    For example:

    * `planwave doctor`
    * `planwave doctor --json`
    """
    asked = invocation(ctx, json=json, storage=storage)
    screen, settings = asked.screen(), asked.settings()
    providers, local = asked.composition.providers(settings)
    infos = providers.list()
    found: dict[str, Any] = {
        "python": {"version": platform.python_version(), "executable": sys.executable},
        "machine": _machine(settings),
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
        "models": _models(settings),
        "storage": _storage(asked, settings),
        "ok": any(info.available for info in infos) or local.missing_model() is not None,
    }
    if screen.json:
        screen.result(found)
    else:
        _show(screen, found)
    if not found["ok"]:
        raise typer.Exit(ExitCode.NO_PROVIDER)
    if not found["storage"]["ok"]:
        raise typer.Exit(ExitCode.FAILED)


def _show(screen: Screen, found: dict[str, Any]) -> None:
    machine, store = found["machine"], found["storage"]
    screen.line(f"planwave   {machine['planwave']}, Python {found['python']['version']}")
    memory = machine["memory_bytes"]
    size = f"{memory / _GIB:.1f} GiB memory" if memory else "memory unknown"
    screen.line(
        f"Machine    {machine['system']}, {counted(machine['cpus'], 'CPU')}, {size}, "
        f"{machine['disk_free_bytes'] / _GIB:.1f} GiB disk free"
    )
    screen.line()
    screen.line("Providers")
    for info in found["providers"]:
        sign = screen.glyph("completed" if info["available"] else "blocked")
        model = f" ({info['default_model']})" if info["available"] and info["default_model"] else ""
        screen.line(f"  {sign} {info['name']:<12} {info['reason']}{model}")
        if not info["available"] and info["how_to_enable"]:
            screen.line(f"    {screen.sign('→', '->')} {info['how_to_enable']}")
    screen.line()
    screen.line("Embedded models")
    for each in found["models"]:
        sign = screen.glyph("completed" if each["cached"] else "pending")
        where = (
            each["path"] if each["cached"] else f"not fetched: planwave model pull {each['name']}"
        )
        screen.line(f"  {sign} {each['name']:<20} {where}")
    screen.line()
    sign = screen.glyph("completed" if store["ok"] else "failed")
    screen.line(f"Storage    {sign} {store['directory']}: {store['state']}")
    if not found["ok"]:
        screen.error("no provider can be used: nothing can be planned", "see the lines above")
    elif not any(info["available"] for info in found["providers"]):
        screen.line()
        screen.line("The first run fetches the embedded model; everything else is ready.")


def _machine(settings: Settings) -> dict[str, Any]:
    from importlib.metadata import version

    place = _existing(settings.storage_dir)
    return {
        "planwave": version("planwave"),
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_bytes": _memory_bytes(),
        "disk_free_bytes": shutil.disk_usage(place).free,
    }


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _storage(asked: Invocation, settings: Settings) -> dict[str, Any]:
    """Say whether plans and executions can be kept and read; changes nothing."""
    directory = settings.storage_dir

    async def count() -> str:
        async with asked.composition.history(settings) as history:
            kept = len(await history.executions(limit=_COUNTED))
        more = "at least " if kept == _COUNTED else ""
        return f"readable, {more}{counted(kept, 'execution')}"

    try:
        state, ok = (asyncio.run(count()), True) if directory.exists() else ("not made yet", True)
    except StoreError as error:
        state, ok = error.message, False
    if ok and not os.access(_existing(directory), os.W_OK):
        state, ok = f"{state}, but not writable", False
    return {"directory": str(directory), "ok": ok, "state": state}


def _models(settings: Settings) -> list[dict[str, Any]]:
    from planwave.providers.local_catalogue import MODEL_FILES
    from planwave.providers.local_files import is_present, model_path

    return [
        {
            "name": file.name,
            "bytes": file.size,
            "cached": is_present(file, settings.model_dir),
            "path": str(model_path(file, settings.model_dir)),
        }
        for file in MODEL_FILES.values()
    ]


def _existing(path: Path) -> Path:
    """Give the nearest directory above that exists."""
    here = path.expanduser().absolute()
    while not here.exists() and here != here.parent:
        here = here.parent
    return here
