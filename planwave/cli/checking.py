"""``planwave check``: every fault of a plan or graph file, nothing stored."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from planwave.cli.errors import ExitCode, show_diagnostics
from planwave.cli.options import JsonFlag, StorageOption, invocation
from planwave.cli.wording import counted
from planwave.errors import InputError, NotFound

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Far above any graph the limits accept; keeps a wrong file name from filling the memory."""

FileArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A graph {nodes, edges}, or a plan as `planwave plan --json` prints it; - is stdin.",
        show_default=False,
    ),
]


def read_source(file: Path) -> bytes:
    """Read a plan or graph file.

    Raises:
        NotFound: There is no such file.
        InputError: It cannot be read, or is far too large to be a plan.
    """
    if str(file) == "-":
        source = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    else:
        try:
            with file.open("rb") as stream:
                source = stream.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError as error:
            raise NotFound(
                f"there is no file {str(file)!r}", hint="make one with: planwave plan --json GOAL"
            ) from error
        except OSError as error:
            raise InputError(f"{str(file)!r} cannot be read: {error.strerror}") from error
    if len(source) > MAX_FILE_BYTES:
        raise InputError(f"{str(file)!r} is larger than {MAX_FILE_BYTES >> 20} MiB: not a plan")
    return source


def check(
    ctx: typer.Context,
    file: FileArgument,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Find every fault of a plan or graph made by hand, without running or storing it.

    Exit code 0: it can run. 3: it cannot; every fault is listed with its place and the way out.
    4: it could, but a provider it names cannot be used here.

    For example:

    * `planwave check plan.json`
    * `planwave plan --json "Explain tides" | planwave check -`
    """
    from planwave.service.documents import check_source, is_provider_fault

    asked = invocation(ctx, json=json, storage=storage)
    screen, settings = asked.screen(), asked.settings()
    catalogue = asked.composition.catalogue(settings)
    report = check_source(read_source(file), catalogue, settings.limits)
    errors = [each for each in report.diagnostics if each.severity == "error"]
    if screen.json:
        screen.result(
            {"ok": not errors, "diagnostics": [each.as_json() for each in report.diagnostics]}
        )
    show_diagnostics(screen, report.diagnostics)
    if errors:
        screen.error(f"{counted(len(errors), 'error')} in {file}: it cannot run")
        only_providers = all(map(is_provider_fault, errors))
        raise typer.Exit(ExitCode.NO_PROVIDER if only_providers else ExitCode.INVALID_PLAN)
    graph = report.graph
    size = counted(len(graph.nodes), "node") if graph is not None else "nothing"
    screen.line(f"{screen.glyph('completed')} {file} can run: {size}, no errors")
