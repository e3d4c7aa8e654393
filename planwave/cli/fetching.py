"""The embedded model on its way to this machine, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planwave.cli.screen import Screen

if TYPE_CHECKING:
    from planwave.settings import Settings

Fetch = Callable[..., Path]
_PLAIN_STEP = 10
"""Percent between two lines where nothing can be redrawn."""


def fetch_missing(
    screen: Screen, settings: Settings, name: str, fetch: Fetch | None = None
) -> None:
    """Fetch the embedded model that the work at hand needs, saying why in one line.

    Raises:
        ProviderError: It cannot be fetched.
    """
    from planwave.providers.local_catalogue import model_file

    screen.text(
        f"The model {name} runs on this machine and needs no API key: fetching "
        f"{model_file(name).size / 1e9:.1f} GB into {settings.model_dir.expanduser()}, once."
    )
    fetch_showing(screen, settings, name, fetch)


def fetch_showing(
    screen: Screen, settings: Settings, name: str, fetch: Fetch | None = None
) -> Path:
    """Fetch one embedded model, showing how far it is.

    Raises:
        UnknownModel: No model of that name.
        ProviderError: It cannot be fetched.
    """
    from planwave.providers.local_catalogue import model_file
    from planwave.providers.local_files import fetch_model

    model_file(name)
    work = fetch or fetch_model
    try:
        if screen.live:
            return _with_bar(screen, settings, name, work)
        return work(name, settings.model_dir, progress=_plain(screen))
    except KeyboardInterrupt:
        screen.error(
            f"interrupted; what was fetched of {name} is kept", f"go on: planwave model pull {name}"
        )
        raise


def _with_bar(screen: Screen, settings: Settings, name: str, fetch: Fetch) -> Path:
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

        return fetch(name, settings.model_dir, progress=tell)


def _plain(screen: Screen) -> Callable[[str, int, int], None]:
    told = -_PLAIN_STEP

    def tell(name: str, done: int, total: int) -> None:
        nonlocal told
        percent = done * 100 // max(total, 1)
        if percent >= told + _PLAIN_STEP or (percent == 100 and told != 100):
            told = percent
            screen.line(f"{name}: {percent} % of {total / 1e6:,.0f} MB")

    return tell
