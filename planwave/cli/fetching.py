"""The embedded model on its way to this machine, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planwave.cli.interrupt import Interrupted
from planwave.cli.screen import CommandConsole
from planwave.errors import InputError

if TYPE_CHECKING:
    from planwave.cli.options import Factories
    from planwave.cli.reading import Source
    from planwave.settings import Settings

Download = Callable[..., Path]
_PERCENT_STEP = 10
"""Percent between two lines where nothing can be redrawn."""


def missing_model(
    composition: Factories, settings: Settings, source: Source | None
) -> str | None:
    """Give the embedded model that a goal, or a file, needs and this machine has not fetched yet.

    Raises:
        InputError: It is needed to plan, and cannot.
    """
    providers, local = composition.providers(settings)
    missing = local.required_download()
    if missing is None:
        return None
    nobody_else = not any(info.available for info in providers.list())
    if source is None:
        chosen = settings.provider == "local" or (
            settings.provider is None and (nobody_else or settings.model == missing)
        )
        if chosen:
            from planwave.planner.offers import check_can_plan

            check_can_plan(providers, "local", missing)
        return missing if chosen else None
    named = _missing_providers(composition, settings, source)
    wanted = "local" in named or (None in named and nobody_else)
    return missing if wanted else None


def _missing_providers(
    composition: Factories, settings: Settings, source: Source
) -> set[str | None]:
    """Give the providers that nodes of a file name and cannot have; None stands for the default."""
    from planwave.service.documents import check_source, is_provider_error

    report = check_source(source.content, composition.catalog(settings), settings.limits)
    errors = [found for found in report.diagnostics if found.severity == "error"]
    if report.graph is None or not all(map(is_provider_error, errors)):
        return set()  # it can run nowhere: nothing is worth fetching for it
    faulty = {found.node for found in errors}
    return {node.data.get("provider") for node in report.graph.nodes if node.id in faulty}


def download_model(
    screen: CommandConsole, settings: Settings, name: str, download: Download | None = None
) -> None:
    """Fetch the embedded model that the work at hand needs, saying why in one line.

    Raises:
        ProviderError: It cannot be fetched.
    """
    from planwave.providers.local_catalogue import model_file
    from planwave.providers.local_files import expand_home

    screen.text(
        f"The model {name} runs on this machine and needs no API key: fetching "
        f"{model_file(name).size / 1e9:.1f} GB into {expand_home(settings.model_dir)}, once."
    )
    download_with_progress(screen, settings, name, download)


def download_with_progress(
    screen: CommandConsole, settings: Settings, name: str, download: Download | None = None
) -> Path:
    """Fetch one embedded model, showing how far it is.

    Raises:
        UnknownModel: No model of that name.
        InputError: It is a file of the operator's own.
        ProviderError: It cannot be fetched.
        Interrupted: By Ctrl-C.
    """
    from planwave.providers.local_catalogue import MODEL_FILES, is_path, model_file
    from planwave.providers.local_files import download_model

    if is_path(name):
        raise InputError(
            f"{name} is a file of your own: there is nothing to fetch",
            hint=f"name a model: planwave model pull {next(iter(MODEL_FILES))}",
        )
    model_file(name)
    work = download or download_model
    try:
        if screen.live:
            return _download_with_bar(screen, settings, name, work)
        return work(name, settings.model_dir, progress=_line_progress(screen))
    except KeyboardInterrupt as error:
        raise Interrupted(
            message=f"interrupted; what was fetched of {name} is kept",
            hint=f"go on: planwave model pull {name}",
        ) from error


def _download_with_bar(screen: CommandConsole, settings: Settings, name: str, download: Download) -> Path:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    ]
    with Progress(*columns, console=screen.out, transient=True) as bar:
        task = bar.add_task(name, total=None)

        def tell(_: str, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return download(name, settings.model_dir, progress=tell)


def _line_progress(screen: CommandConsole) -> Callable[[str, int, int], None]:
    told = -_PERCENT_STEP

    def tell(name: str, done: int, total: int) -> None:
        nonlocal told
        percent = done * 100 // max(total, 1)
        if percent >= told + _PERCENT_STEP or (percent == 100 and told != 100):
            told = percent
            screen.line(f"{name}: {percent} % of {total / 1e6:,.0f} MB")

    return tell
