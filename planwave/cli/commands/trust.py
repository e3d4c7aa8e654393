"""``planwave trust``: the settings file and the storage directory of a folder that the user relies on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planwave.cli.context import CommandContext
from planwave.cli.formatting import counted, local_time, one_line
from planwave.cli.options import shared_options
from planwave.cli.views.trust import setting_values, show_settings_file
from planwave.config import trust as records
from planwave.config.files import FILE_NAME, read_file
from planwave.errors import InputError
from planwave.storage import ownership

if TYPE_CHECKING:
    from planwave.config.files import SettingsFile

_DATABASE = "planwave.db"

PathArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[PATH]",
        help="A planwave.toml, the folder that has it, or a storage directory. [default: here]",
        show_default=False,
    ),
]
YesFlag = Annotated[
    bool, typer.Option("--yes", "-y", metavar="", help="Trust it without a question.")
]
ListFlag = Annotated[bool, typer.Option("--list", metavar="", help="List what is trusted.")]
RevokeFlag = Annotated[bool, typer.Option("--revoke", metavar="", help="Trust it no longer.")]


@shared_options()
def trust(
    ctx: CommandContext,
    path: PathArgument = None,
    yes: YesFlag = False,
    listed: ListFlag = False,
    revoked: RevokeFlag = False,
) -> None:
    """Trust the planwave.toml of a folder, or a storage directory that planwave did not make for you.

    It shows what is trusted first. A settings file is trusted with its content: a changed one has to
    be trusted again. Its node modules and programs are trusted with it, whatever they contain.

    For example:

    * `planwave trust`
    * `planwave trust ./storage`
    * `planwave trust --list`
    """
    if listed:
        _show_all(ctx)
    elif revoked:
        _revoke(ctx, _chosen(path, must_exist=False))
    else:
        chosen = _chosen(path, must_exist=True)
        if chosen.name == FILE_NAME:
            _trust_settings(ctx, chosen, yes=yes)
        else:
            _trust_storage(ctx, chosen, yes=yes)


def _chosen(path: Path | None, *, must_exist: bool) -> Path:
    """Return the settings file or the storage directory that a path stands for.

    Raises:
        InputError: It is neither.
    """
    chosen = Path() if path is None else path.expanduser()
    is_storage = chosen.name == ownership.DEFAULT_NAME or (chosen / _DATABASE).exists()
    if chosen.is_dir() and not is_storage:
        chosen /= FILE_NAME
    if chosen.name == FILE_NAME or chosen.is_dir() or not must_exist:
        return chosen
    raise InputError(
        f"{chosen} is neither a {FILE_NAME} nor a storage directory",
        code="usage",
        hint="other settings files are named: --config FILE",
    )


def _trust_settings(ctx: CommandContext, path: Path, *, yes: bool) -> None:
    console, file = ctx.console(), read_file(path)
    if file is None:
        raise InputError(
            f"there is no file {path}",
            hint=f"for a storage directory: planwave trust ./{ownership.DEFAULT_NAME}",
        )
    values = dict(setting_values(file))
    if not console.json:
        show_settings_file(console, file)
    elif file.problem is not None:
        console.note(f"{file.path} {file.problem}")
    _confirm(ctx, path, yes=yes)
    _note_unless(ctx, file.trust())
    _show_done(ctx, path, {"sets": values})


def _trust_storage(ctx: CommandContext, path: Path, *, yes: bool) -> None:
    if path.is_symlink():
        raise InputError(
            f"{path} is a link", hint=f"name what it points to: --storage {path.readlink()}"
        )
    console, contents = ctx.console(), asyncio.run(_contents(path))
    if not console.json:
        console.verbatim(f"{path} has:")
        console.lines(f"  {counted(count, what)}" for what, count in contents.items())
        if not contents:
            console.line("  a database of an older planwave, which is changed for this one")
    _confirm(ctx, path, yes=yes)
    _note_unless(ctx, ownership.mark(path))
    _show_done(ctx, path, {"has": contents})


async def _contents(path: Path) -> dict[str, int]:
    """Count what would go on or be valid in a storage directory; empty for an older database."""
    # Lazy: test_help_loads_no_heavy_library
    from planwave.storage.sqlite.store import SqliteStore

    try:
        store = SqliteStore.open(path, read_only=True, migrates=False)
    except InputError:
        return {}
    try:
        by_status = await store.count_executions()
        return {
            "execution": sum(by_status.values()),
            "open execution": len(await store.open_executions()),
            "trigger": await store.triggers.count(),
            "access token": len(await store.access_tokens.all()),
        }
    finally:
        await store.close()


def _confirm(ctx: CommandContext, path: Path, *, yes: bool) -> None:
    console = ctx.console()
    if yes:
        return
    if not console.is_interactive:
        raise InputError(
            "there is no terminal to ask at", code="usage", hint=f"planwave trust --yes {path}"
        )
    if not console.confirm(f"Trust {path}?"):
        console.text("Nothing is changed.")
        raise typer.Exit(1)


def _note_unless(ctx: CommandContext, is_recorded: bool) -> None:
    if not is_recorded:
        folder = records.state_directory() or "the home directory"
        raise InputError(
            f"nothing can be recorded: {folder} cannot be written",
            hint="set XDG_STATE_HOME; or name what you trust: --config FILE, --storage DIR",
        )


def _show_done(ctx: CommandContext, path: Path, more: dict[str, Any]) -> None:
    console = ctx.console()
    if console.json:
        console.result({"trusted": records.location(path), **more})
    else:
        console.verbatim(f"{console.glyph('completed')} Trusted {path}")


def _revoke(ctx: CommandContext, path: Path) -> None:
    if not records.revoke(path):
        raise InputError(f"{path} is not trusted", hint="planwave trust --list")
    console = ctx.console()
    if console.json:
        console.result({"revoked": records.location(path)})
    else:
        console.verbatim(f"{console.glyph('completed')} {path} is not trusted any more")


def _show_all(ctx: CommandContext) -> None:
    console, entries = ctx.console(), records.recorded()
    if console.json:
        console.result({"trusted": [{**each._asdict(), "state": _state(each)} for each in entries]})
    elif not entries:
        console.text("Nothing is trusted yet.")
    for each in () if console.json else entries:
        console.verbatim(f"{local_time(each.at)}  {_state(each):<8} {one_line(each.path)}")


def _state(trusted: records.Trusted) -> str:
    """Return whether what stands at a path is still what was trusted."""
    path = Path(trusted.path)
    if path.name == FILE_NAME:
        file: SettingsFile | None = read_file(path)
        return "gone" if file is None else "trusted" if file.is_trusted else "changed"
    return "gone" if not path.is_dir() else "trusted" if ownership.is_own(path) else "changed"
