"""``planwave store``: what keeps the data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planwave.bootstrap import copy_store
from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode
from planwave.cli.formatting import counted
from planwave.cli.options import shared_options
from planwave.errors import InputError
from planwave.setting_tables import check_database_url, database_name

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
    console, stored = ctx.console(), ctx.settings().database_url
    url = database_url or (None if stored is None else stored.get_secret_value())
    if url is None:
        raise InputError(
            "no database is named",
            code="usage",
            hint="name it after the directory, or set PLANWAVE_DATABASE_URL",
        )
    try:
        check_database_url(url)
    except ValueError as error:
        raise InputError(f"that is no URL of a database: {error}", code="usage") from error
    copied = copy_store(directory, url)
    if console.json:
        console.result(
            {"rows": copied.rows, "artifacts": copied.artifacts, "missing": list(copied.missing)}
        )
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
            f"look for them in older backups: artifacts/{copied.missing[0]}.json",
        )
        raise typer.Exit(ExitCode.FAILED)
