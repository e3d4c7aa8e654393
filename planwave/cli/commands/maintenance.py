"""``planwave delete``, ``backup`` and ``prune``: maintenance of the storage directory."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode
from planwave.cli.formatting import counted, json_object, local_time, one_line
from planwave.cli.lookup import Match, find
from planwave.cli.options import IdArgument, shared_options
from planwave.errors import InputError, NotFound, StoreError
from planwave.principals import Principal
from planwave.storage.audit import AUDIT_FOLDER, AuditFiles, DirectoryFiles, read_entries, verify
from planwave.storage.files import ARTIFACT_DIR
from planwave.storage.ownership import require_trusted
from planwave.storage.postgres import open_audit_files

if TYPE_CHECKING:
    from planwave.settings import Settings
    from planwave.storage.backup import Backup

_MOST_DAYS: Final = 36_500
_MB: Final = 1_000_000


@shared_options(over_http=True)
def delete(ctx: CommandContext, name: IdArgument) -> None:
    """Delete an execution that has ended, with its results, or a plan.

    Executions of a deleted plan stay: they contain their graph.

    For example:

    * `planwave delete 09a2fd`
    """
    console = ctx.console()

    async def find_and_delete() -> Match:
        settings = ctx.settings()
        async with ctx.queries(settings) as queries:
            match = await find(queries, name, destroys=True)
        async with ctx.backend(settings) as backend:
            if match.kind == "execution":
                await backend.delete_execution(match.id)
            else:
                await backend.plans.delete(match.id)
        return match

    deleted = asyncio.run(find_and_delete())
    if console.json:
        console.result({"deleted": deleted.id, "kind": deleted.kind})
    else:
        done = console.glyph("completed")
        console.verbatim(f"{done} Deleted {deleted.kind} {deleted.id}")


@shared_options()
def backup(
    ctx: CommandContext,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A tar file to write; compressed where its name ends in .gz or .tgz.",
            show_default=False,
        ),
    ],
) -> None:
    """Write a backup of the storage directory into one file, also while a server runs.

    The file is written completely or not at all. To restore it, unpack it into a new directory:
    `mkdir DIR && tar -xf FILE -C DIR`, then use that directory with `--storage DIR`.

    For example:

    * `planwave backup planwave-2026-01-31.tgz`
    """
    # Lazy: test_help_loads_no_heavy_library
    from planwave.storage.backup import back_up

    console, settings = ctx.console(), ctx.settings()
    if settings.database_url is not None:
        raise NotFound(
            "data is stored in a database, which has a backup of its own",
            hint="pg_dump --format=custom, and pg_restore into an empty database",
        )
    require_trusted(settings)
    report = back_up(settings.storage_dir, file)
    if console.json:
        console.result(_backup_json(report))
    else:
        held = f"{counted(report.executions, 'execution')}, {counted(report.plans, 'plan')}"
        held += f" and {counted(report.flows, 'flow')}"
        done, size = console.glyph("completed"), _size_text(report.size)
        console.verbatim(f"{done} {held} of {settings.storage_dir} are in {file} ({size})")
    if report.damaged:
        lost = counted(len(report.damaged), "large result")
        console.error(
            f"{lost} could not be backed up: missing or damaged in {settings.storage_dir}",
            f"look for them in older backups: {ARTIFACT_DIR}/{report.damaged[0]}.json",
        )
        raise typer.Exit(ExitCode.FAILED)


@shared_options()
def prune(
    ctx: CommandContext,
    older_than: Annotated[
        int | None,
        typer.Option(
            "--older-than",
            min=1,
            max=_MOST_DAYS,
            metavar="DAYS",
            help="Delete executions that ended more than so many days ago. "
            "[default: PLANWAVE_RETENTION_DAYS]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Delete old executions: events, results, recorded calls, JSON documents.

    Plans and executions that have not ended stay. A server with PLANWAVE_RETENTION_DAYS does this
    by itself when it starts, and daily.

    For example:

    * `planwave prune --older-than 90`
    """
    console, settings = ctx.console(), ctx.settings()
    days = older_than or settings.retention_days
    if days is None:
        raise InputError(
            "the age of the executions to delete is missing",
            code="usage",
            hint=f"{ctx.command_hint('prune')} --older-than 90, or set PLANWAVE_RETENTION_DAYS",
        )
    require_trusted(settings)
    removed, before = _prune(ctx, settings, timedelta(days=days))
    if console.json:
        console.result({"removed": removed, "before": before.isoformat(timespec="seconds")})
        return
    what = f"{counted(removed, 'execution')} that ended more than {counted(days, 'day')} ago"
    console.text(f"{console.glyph('completed')} Removed {what} from {settings.storage_dir}")


def _prune(ctx: CommandContext, settings: Settings, age: timedelta) -> tuple[int, datetime]:
    """Delete executions of an age; return how many, and the time before which they ended."""
    if settings.database_url is None and not settings.storage_dir.is_dir():
        return 0, datetime.now(UTC) - age

    async def in_loop() -> tuple[int, datetime]:
        service = ctx.factories.service(settings)  # not entered: nothing is to run
        try:
            before = service.now() - age
            return await service.maintenance.prune(before.isoformat()), before
        finally:
            await service.close()

    try:
        return asyncio.run(in_loop())
    except StoreError as error:
        if error.code != "storage-locked":
            raise
        raise StoreError(
            error.message,
            code=error.code,
            hint="a server removes what is older than PLANWAVE_RETENTION_DAYS by itself, when it "
            "starts and daily; or stop that process first",
        ) from error


def _size_text(count: int) -> str:
    return f"{count / _MB:,.1f} MB" if count >= _MB else f"{count / 1_000:.0f} kB"


def _backup_json(report: Backup) -> dict[str, Any]:
    return {
        "file": str(report.file),
        "size": report.size,
        "executions": report.executions,
        "plans": report.plans,
        "flows": report.flows,
        "documents": report.documents,
        "artifacts": report.artifacts,
        "damaged": list(report.damaged),
    }


audit_app = typer.Typer(
    help="Read and check the audit log.", invoke_without_command=True, add_completion=False
)


@audit_app.callback()
@shared_options()
def list_audit(
    ctx: CommandContext,
    action: Annotated[
        str,
        typer.Option(
            "--action", metavar="ACTION", help="Only actions that begin so, such as token."
        ),
    ] = "",
    of: Annotated[
        str, typer.Option("--id", metavar="ID", help="Only lines with this id, of whatever kind.")
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", min=1, metavar="N", help="The newest so many.")
    ] = 50,
) -> None:
    """List what was done: when, by whom, and what; the oldest first.

    For example:

    * `planwave audit --action token.`
    """
    if ctx.subcommand is not None:
        return
    with closing(_audit_files(ctx)) as log:
        lines = [
            each
            for each in read_entries(log)
            if str(each["action"]).startswith(action) and (not of or of in _ids(each))
        ]
    lines = sorted(lines, key=lambda each: str(each.get("at")))[-limit:]
    console = ctx.console()
    if console.json:
        console.result({"entries": lines})
    else:
        console.lines([_audit_line(each) for each in lines])


@audit_app.command("verify")
@shared_options()
def verify_audit(ctx: CommandContext) -> None:
    """Check that no line of the audit log was changed, removed or inserted.

    A log that was cut at its very end, after the last line that the next file names, looks whole.
    """
    with closing(_audit_files(ctx)) as log:
        findings, files = verify(log), len(log.names())
    console = ctx.console()
    if console.json:
        documents = [each._asdict() for each in findings]
        console.result({"files": files, "findings": documents})
    elif findings:
        console.lines([Text(f"{AUDIT_FOLDER}/{each}", "red") for each in findings])
    else:
        counted_files = counted(files, "file")
        console.verbatim(f"{console.glyph('completed')} The audit log is whole: {counted_files}")
    if findings:
        raise typer.Exit(ExitCode.FAILED)


def _audit_files(ctx: CommandContext) -> AuditFiles:
    """Return where the audit log is: in the database, if there is one, else in the storage directory.

    Raises:
        InputError: ``postgres-unavailable``.
    """
    settings = ctx.settings()
    if settings.database_url is None:
        return DirectoryFiles(settings.storage_dir)
    return open_audit_files(settings.database_url.get_secret_value())


def _ids(entry: dict[str, Any]) -> list[Any]:
    principal = json_object(entry.get("principal"))
    ids = json_object(entry.get("ids")).values()
    return [*ids, principal.get("id"), entry.get("request_id")]


def _audit_line(entry: dict[str, Any]) -> Text:
    who = Principal.from_json(entry.get("principal"))
    ids = " ".join(f"{name}={value}" for name, value in json_object(entry.get("ids")).items())
    facts = [str(who or "nobody"), str(entry.get("status") or ""), ids]
    return Text.assemble(
        f"{local_time(str(entry.get('at')))}  ",
        (f"{one_line(str(entry['action'])):<22}", "cyan"),
        one_line("  ".join(filter(None, facts))),
    )
