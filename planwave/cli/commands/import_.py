"""``planwave import``: a file of another program as a graph, and what became of each of its parts."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, cast

import typer
from typing_extensions import TypedDict

from planwave.cli import completion
from planwave.cli.commands.check import check_here
from planwave.cli.commands.flows import save_flow
from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode, show_diagnostics
from planwave.cli.formatting import json_text
from planwave.cli.inputs import STDIN, Source, read_json_file
from planwave.cli.options import shared_options
from planwave.cli.views.imports import import_lines
from planwave.errors import InputError
from planwave.graph.diagnostics import Diagnostic
from planwave.jsonio import dumps_exact
from planwave.service.plans.documents import is_provider_error

if TYPE_CHECKING:
    from planwave.settings import Settings
    from planwave.shapes.imports import ImportedDocument, ImportReport


class Kind(StrEnum):
    """The formats; a test holds them against ``foreign_formats.NOUNS``."""

    AGIRAPH = "agiraph"
    AGENTFLOW = "agentflow"
    COVALT = "covalt"
    MAGIC_AGENTS = "magic-agents"
    DIFY = "dify"
    N8N = "n8n"
    LANGFLOW = "langflow"
    FLOWISE = "flowise"
    SANDCASTLE = "sandcastle"
    MERMAID = "mermaid"
    PLANWAVE = "planwave"


_IN_REPORT: Final = frozenset(
    {"placeholder", "unknown-provider", "unavailable-provider", "unknown-model"}
)
"""Errors that the report names in its own words."""


FileArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="A file of another program: JSON, YAML or a Mermaid flowchart; - for stdin.",
        show_default=False,
    ),
]
KindOption = Annotated[
    Kind | None,
    typer.Option(
        "--from",
        metavar="KIND",
        help="The format, such as dify. [default: told by the shape of the document]",
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Where to write the graph: YAML where the name ends in .yaml; - for stdout.",
    ),
]
SaveFlowOption = Annotated[
    str | None,
    typer.Option(
        "--save-flow",
        metavar="NAME",
        autocompletion=completion.flows,
        help="Save the graph as a flow of this name; with placeholders it is a draft, which nothing starts.",
    ),
]
ReportOption = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", help="Where to write the report, as JSON."),
]
WriteCodeOption = Annotated[
    str | None,
    typer.Option(
        "--write-code",
        metavar="FILE",
        help="Where to write programs of the file as a module of node types. Read it, then name it with --import.",
    ),
]
OtherProviderOption = Annotated[
    str | None,
    typer.Option(
        "--provider",
        metavar="NAME",
        autocompletion=completion.providers,
        help="Ask this provider in place of each that the file names.",
    ),
]
OtherModelOption = Annotated[
    str | None,
    typer.Option("--model", metavar="NAME", help="A model of --provider. [default: its default]"),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Exit with 3 also where something changed.")
]


class _Options(TypedDict):
    """How a file is converted; ``import_text`` and the client take the same."""

    kind: str | None
    write_code: bool
    provider: str | None
    model: str | None


class _Result(NamedTuple):
    document: ImportedDocument
    report: ImportReport
    diagnostics: Sequence[Diagnostic]
    code: str


@shared_options(over_http=True)
def import_(
    ctx: CommandContext,
    file: FileArgument,
    kind: KindOption = None,
    output: OutputOption = None,
    flow_name: SaveFlowOption = None,
    report: ReportOption = None,
    write_code: WriteCodeOption = None,
    provider: OtherProviderOption = None,
    model: OtherModelOption = None,
    strict: StrictOption = False,
) -> None:
    """Convert a file of another program to a graph, and report what became of each of its steps.

    Steps without a counterpart become placeholders, which cannot run until they are replaced. Secrets are
    never copied. Exit code 0: no placeholder is left. 3: some are; the graph is written all the same.
    2: the format is not known.

    For example:

    * `planwave import app.yml -o app.json`
    * `planwave import workflow.json --save-flow triage`
    * `planwave import app.yml --write-code steps.py -o app.yaml`
    """
    settings = ctx.settings()
    options = _options(kind, write_code, provider, model)
    convert = _import_there if ctx.service_url else _import_here
    result = convert(ctx, settings, read_json_file(file), options)
    written = _write_files(result, output, report, write_code)
    saved = None if flow_name is None else _saved(ctx, settings, flow_name, result)
    if ctx.console().json:
        findings = [each.as_json() for each in result.diagnostics]
        ctx.console().result({**result._asdict(), "diagnostics": findings, "saved": saved})
    elif output != STDIN:
        _show(ctx, result, written)
        _show_next(ctx, result, output, flow_name)
    raise typer.Exit(_exit_code(result.report, strict))


def _options(
    kind: Kind | None, write_code: str | None, provider: str | None, model: str | None
) -> _Options:
    if model is not None and provider is None:
        raise InputError(
            "--model is a model of --provider", code="usage", hint="name the provider, too"
        )
    return {
        "kind": None if kind is None else kind.value,
        "write_code": write_code is not None,
        "provider": provider,
        "model": model,
    }


def _import_here(
    ctx: CommandContext, settings: Settings, text: bytes, options: _Options
) -> _Result:
    # Lazy: test_help_loads_no_heavy_library
    from planwave.interop.importing.importer import import_text

    imported = import_text(text, **options)
    checked = check_here(ctx, settings, dumps_exact(imported.document).encode())
    return _Result(imported.document, imported.report, checked.diagnostics, imported.code)


def _import_there(
    ctx: CommandContext, settings: Settings, text: bytes, options: _Options
) -> _Result:
    """Convert and check by the service that the user names, with its node types and providers."""
    source = text.decode("utf-8-sig", "replace")
    answer = cast(
        "Any", ctx.call_service(settings, lambda client: client.import_file(source, **options))
    )
    diagnostics = [Diagnostic(**each) for each in answer["diagnostics"]]
    return _Result(answer["document"], answer["report"], diagnostics, answer["code"])


def _saved(ctx: CommandContext, settings: Settings, name: str, result: _Result) -> str:
    """Save the graph as a flow, which keeps the report; return its id."""
    document = {**result.document, "imported_from": {"report": result.report}}
    source = Source("the graph", dumps_exact(document).encode())

    async def save() -> str:
        async with ctx.backend(settings) as backend:
            return (await save_flow(backend, name, source, None, None, draft=True)).plan_id

    return asyncio.run(save())


def _write_files(
    result: _Result, output: str | None, report: str | None, write_code: str | None
) -> list[str]:
    """Write the files that the options name; return a line about each."""
    lines: list[str] = []
    if output is not None:
        text = _document_text(result.document, output)
        if output == STDIN:
            typer.echo(text, nl=False)
        else:
            _write(output, text)
            lines.append(f"Wrote the graph to {output}")
    if report is not None:
        _write(report, json_text(result.report) + "\n")
        lines.append(f"Wrote the report to {report}")
    if write_code is not None:
        if result.code:
            _write(write_code, result.code)
            lines.append(f"Wrote the programs to {write_code}: read them before you import them")
        else:
            lines.append(f"The file has no program to be written to {write_code}")
    return lines


def _document_text(document: ImportedDocument, output: str) -> str:
    if output.endswith((".yaml", ".yml")):
        # Lazy: test_help_loads_no_heavy_library
        from planwave.interop.exporting.yaml_text import write_yaml

        return write_yaml(cast("Any", document))
    return json_text(document) + "\n"


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{name!r} cannot be written: {error.strerror or error}") from error


def _show(ctx: CommandContext, result: _Result, written: Sequence[str]) -> None:
    console = ctx.console()
    console.lines(import_lines(console, result.report))
    errors = [each for each in result.diagnostics if each.severity == "error"]
    show_diagnostics(console, [each for each in errors if each.code not in _IN_REPORT])
    for line in written:
        console.verbatim(line)
    missing = sorted(
        {each.message.partition(": ")[2] for each in errors if is_provider_error(each)}
    )
    if missing:
        console.note("; ".join(missing))
        console.hint("set it up, or import the file with --provider NAME (planwave doctor)")


def _show_next(
    ctx: CommandContext, result: _Result, output: str | None, flow_name: str | None
) -> None:
    """Say what to do next: write the graph, replace placeholders, or run it."""
    console, summary = ctx.console(), result.report["summary"]
    if flow_name is not None:
        console.verbatim(f"{console.glyph('completed')} Saved as the flow {flow_name}")
    if output is None and flow_name is None:
        console.hint("write the graph with -o FILE, or save it with --save-flow NAME")
    elif summary["placeholder"]:
        where = output or flow_name or ""
        console.hint(f"replace the placeholders: {ctx.command_hint(f'check {shlex.quote(where)}')}")
    elif flow_name is not None:
        console.verbatim(f"Run it with: {ctx.command_hint(f'flow run {shlex.quote(flow_name)}')}")
    else:
        console.verbatim(f"Run it with: {ctx.command_hint(f'exec {shlex.quote(str(output))}')}")


def _exit_code(report: ImportReport, strict: bool) -> int:
    summary = report["summary"]
    if summary["placeholder"] or (strict and (summary["changed"] or report["lost"])):
        return ExitCode.INVALID_PLAN
    return ExitCode.OK
