"""``planwave config``: the settings that hold, and where each is from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import typer
from rich.text import Text

from planwave.cli.context import CommandContext
from planwave.cli.formatting import json_text, one_line
from planwave.cli.options import shared_options
from planwave.cli.views.trust import plain_value
from planwave.config import trust
from planwave.config.files import FILE_NAME
from planwave.settings import URL_VARIABLE, Limits

if TYPE_CHECKING:
    from planwave.settings import Settings

_BY_OPTION: Final = {
    "storage_dir": ("storage", "--storage"),
    "node_modules": ("node_modules", "--import"),
    "token": ("token_file", "--token-file"),
}
"""The settings that options of every command replace: the name in the context, and the option."""

config_app = typer.Typer(
    help="Show the settings and where they are from.", no_args_is_help=True, add_completion=False
)


@config_app.callback()
def config() -> None:
    """Show the settings that hold here, and where they are from."""


@config_app.command()
@shared_options(over_http=True)
def show(ctx: CommandContext) -> None:
    """Show every setting with its value, and whether it is a default, or which file or variable sets it.

    Of a secret it shows only that it is set. For example:

    * `planwave config show`
    * `planwave config show --config prod.toml --json`
    """
    console, settings = ctx.console(), ctx.settings()
    rows = list(_rows(ctx, settings))
    if console.json:
        console.result({"settings": {name: about for name, about in rows}})
        return
    width = max(len(name) for name, _ in rows)
    for name, about in rows:
        value = ctx.redactor.text(one_line(json_text(about["value"])))
        is_default = about["from"] == "default"
        origin = "" if is_default else f"  ({about['where']})"
        line = f"{name:<{width}}  {value}{origin}"
        console.text(Text(line, style="dim" if is_default else ""))


@config_app.command()
@shared_options(over_http=True)
def path(ctx: CommandContext) -> None:
    """Show the settings files that count here, the one that goes before the others first.

    For example:

    * `planwave config path`
    """
    console, loaded = ctx.console(), ctx.loaded()
    files = [str(each.path) for each in reversed(loaded.files)]
    if console.json:
        console.result({"files": files})
    for each in () if console.json else files:
        console.verbatim(each)
    if not files:
        folder = trust.config_directory()
        own = f", or {folder / FILE_NAME}" if folder is not None else ""
        console.note(f"no settings file counts here; it would be ./{FILE_NAME}{own}")


def _rows(ctx: CommandContext, settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each setting, with its value and where it is from; tables entry by entry."""
    origins = ctx.loaded().origins()
    for name, (attribute, option) in _BY_OPTION.items():
        if getattr(ctx, attribute):
            origins[name] = option
    yield (
        "url",
        _about(ctx.service_url, {"url": _url_origin(ctx)} if ctx.service_url else {}, "url"),
    )
    for name in type(settings).model_fields:
        value: Any = getattr(settings, name)
        is_table = isinstance(value, dict | Limits)
        entries = dict(cast("Mapping[str, Any]", value)) if is_table else {}
        for entry, inner in entries.items():
            yield f"{name}.{entry}", _about(inner, origins, f"{name}.{entry}", name)
        if not entries:
            yield name, _about(value, origins, name)


def _url_origin(ctx: CommandContext) -> str:
    return "--url" if ctx.url is not None else URL_VARIABLE


def _about(value: Any, origins: Mapping[str, Path | str], *names: str) -> dict[str, Any]:
    where = next((origins[name] for name in names if name in origins), None)
    kind = "file" if isinstance(where, Path) else "environment"
    kind = "option" if str(where).startswith("--") else kind
    kind = "default" if where is None else kind
    return {
        "value": plain_value(value),
        "from": kind,
        "where": None if where is None else str(where),
    }
