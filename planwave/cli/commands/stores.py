"""``planwave store``: what keeps the data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode
from planwave.cli.formatting import counted
from planwave.cli.options import shared_options
from planwave.errors import InputError
from planwave.setting_tables import check_database_url, database_name
from planwave.storage.files import ARTIFACT_DIR
from planwave.storage.postgres import require_driver

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

    All rows are read back and compared. It is copied as a whole or not at all. No service may use either.

    For example:

    * `planwave store copy storage postgresql://planwave@db.internal/planwave`
    """
    require_driver()
    # Lazy: test_a_directory_needs_nothing_of_postgresql
    from planwave.storage.postgres.copying import copy_directory

    console, url = ctx.console(), _database(ctx, database_url)
    copied = copy_directory(directory, url)
    if console.json:
        console.result(asdict(copied))
    else:
        what = [
            counted(copied.rows["executions"], "execution"),
            counted(copied.rows["plans"], "plan"),
            counted(copied.rows["chats"], "chat"),
            counted(copied.artifacts, "large result"),
        ]
        done = console.glyph("completed")
        console.verbatim(f"{done} Copied {', '.join(what)} into {database_name(url)}")
    if copied.missing:
        lost = counted(len(copied.missing), "large result")
        console.error(
            f"{lost} could not be copied: missing or changed in {directory}",
            f"look for them in older backups: {ARTIFACT_DIR}/{copied.missing[0]}.json",
        )
        raise typer.Exit(ExitCode.FAILED)


def _database(ctx: CommandContext, written: str | None) -> str:
    """Return the URL of the database, as written or of the settings.

    Raises:
        InputError: ``usage``: there is none, or it is that of something else.
    """
    stored = ctx.settings().database_url
    url = written or (None if stored is None else stored.get_secret_value())
    if url is None:
        hint = "name it after the directory, or set PLANWAVE_DATABASE_URL"
        raise InputError("no database is named", code="usage", hint=hint)
    try:
        check_database_url(url)
    except ValueError as error:
        raise InputError(f"that is no URL of a database: {error}", code="usage") from error
    return url
