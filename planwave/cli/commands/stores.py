"""``planwave store`` and ``planwave migrate``: the database that keeps the data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode
from planwave.cli.formatting import counted
from planwave.cli.options import shared_options
from planwave.errors import InputError
from planwave.setting_tables import check_database_url, database_name
from planwave.storage.postgres import require_driver

if TYPE_CHECKING:
    from planwave.storage.postgres.upgrade import SchemaUpgrade

store_app = typer.Typer(help="Move data to a database.", no_args_is_help=True, add_completion=False)


@store_app.callback()
def stores() -> None:
    """Move data to a database."""


@store_app.command("copy")
@shared_options()
def copy(
    ctx: CommandContext,
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A storage directory; it stays as it is.", show_default=False
        ),
    ],
    database_url: Annotated[
        str | None,
        typer.Argument(
            metavar="DATABASE_URL",
            help="postgresql://user:password@host/database; by default that of the settings.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Copy all that a directory keeps into an empty database of PostgreSQL.

    All is read back and compared. It is copied as a whole or not at all. No service may use either.

    For example:

    * `planwave store copy storage postgresql://planwave@db.internal/planwave`
    """
    require_driver()
    # Lazy: test_a_directory_needs_nothing_of_postgresql
    from planwave.storage.postgres.copying import copy_directory

    console, url = ctx.console(), _database(ctx, database_url, ", or name it after the directory")
    copied = copy_directory(directory, url)
    if console.json:
        console.result(asdict(copied))
    else:
        what = [
            counted(copied.rows["executions"], "execution"),
            counted(copied.rows["plans"], "plan"),
            counted(copied.rows["chats"], "chat"),
            counted(copied.artifacts, "large result"),
            counted(copied.audit_lines, "audit line"),
        ]
        done = console.glyph("completed")
        console.verbatim(f"{done} Copied {', '.join(what)} into {database_name(url)}")


@shared_options()
def migrate(
    ctx: CommandContext,
    check: Annotated[
        bool,
        typer.Option("--check", help="Change nothing; exit with 1 if there is something to do."),
    ] = False,
) -> None:
    """Bring the tables of the database of PostgreSQL up to date, and say what was done.

    Every start of a service does the same: this command does it before. New tables and columns are added while
    processes of the version before run. What only these use is removed once none of them is alive.

    For example:

    * `planwave migrate --check`
    """
    require_driver()
    # Lazy: test_a_directory_needs_nothing_of_postgresql
    from planwave.storage.postgres.upgrade import upgrade

    console, url = ctx.console(), _database(ctx, None, "; a directory needs no such command")
    done = upgrade(url, check_only=check)
    if console.json:
        console.result({**asdict(done), "changed": done.has_changed and not check})
    else:
        glyph = console.glyph("completed")
        console.verbatim(f"{glyph} {_sentence(done, check)} in {database_name(url)}")
        if done.older_processes:
            console.note(
                f"processes of an older planwave that are alive: {done.older_processes}; "
                "what only they use stays until they end"
            )
    if check and done.has_changed:
        raise typer.Exit(ExitCode.FAILED)


def _sentence(done: SchemaUpgrade, check: bool) -> str:
    if not done.has_changed:
        return f"Schema {done.version} is up to date"
    if not done.version_before:
        return "Tables are to be made" if check else f"Made the tables of schema {done.version}"
    if done.version_before < done.version:
        step = f"from schema {done.version_before} to {done.version}"
        return f"Tables are to be brought {step}" if check else f"Brought the tables {step}"
    before = f"what only schemas before {done.version} used"
    return f"To be removed: {before}" if check else f"Removed {before}"


def _database(ctx: CommandContext, written: str | None, way_out: str) -> str:
    """Return the URL of the database, as written or of the settings.

    Raises:
        InputError: ``usage``: there is none, or it is that of something else.
    """
    stored = ctx.settings().database_url
    url = written or (None if stored is None else stored.get_secret_value())
    if url is None:
        hint = f"set PLANWAVE_DATABASE_URL{way_out}"
        raise InputError("no database is named", code="usage", hint=hint)
    try:
        check_database_url(url)
    except ValueError as error:
        raise InputError(f"that is no URL of a database: {error}", code="usage") from error
    return url
