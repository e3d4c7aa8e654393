"""``planwave export``: a graph as Mermaid, DOT, YAML, JSON Schema or Python."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from planwave.cli import completion
from planwave.cli.context import CommandContext
from planwave.cli.inputs import STDIN, read_source
from planwave.cli.lookup import LAST, find, find_flow_id
from planwave.cli.options import shared_options
from planwave.errors import GraphInvalid, InputError, NotFound
from planwave.graph.model import Graph
from planwave.graph.reading.documents import read_graph
from planwave.interop.exporting.drawing import statuses_by_path
from planwave.interop.exporting.exporter import FORMATS, Export, export
from planwave.service.plans.documents import check_source

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from planwave.cli.backends.backend import Queries
    from planwave.client import AsyncClient
    from planwave.settings import Settings
    from planwave.shapes.common import ExportFormat


class Format(StrEnum):
    """The formats; a test holds them against ``exporter.FORMATS``."""

    MERMAID = "mermaid"
    DOT = "dot"
    YAML = "yaml"
    JSON_SCHEMA = "json-schema"
    PYTHON = "python"


class _Stored(NamedTuple):
    """What a name stands for: ``execution``, ``plan`` or ``flow``, and its id."""

    kind: str
    id: str


class _Content(NamedTuple):
    """A graph, its title, and the statuses of its nodes where it was run."""

    graph: Graph
    title: str = ""
    statuses: Mapping[str, str] = {}


_FILE_ENDS: Final = (".json", ".yaml", ".yml")
_NOTHING: Final = _Content(Graph((), ()))

WhatArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="WHAT",
        autocompletion=completion.executions_and_plans,
        help="A file with a graph (- for stdin), or the id of an execution or a plan, its start or end, the name "
        "of a flow, or: last. Not needed for json-schema.",
        show_default=False,
    ),
]
FormatOption = Annotated[
    Format, typer.Option("--to", metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")
]
OutputOption = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Where to write it. [default: stdout]"),
]


@shared_options(over_http=True)
def export_(
    ctx: CommandContext, to: FormatOption, what: WhatArgument = None, output: OutputOption = None
) -> None:
    """Write a graph in another format: a picture, YAML, a program in Python, or a JSON Schema.

    In the picture of an execution the colour of each step is its status. YAML and Python come back as the
    same graph. Nothing is drawn, sent or stored.

    For example:

    * `planwave export plan.json --to mermaid`
    * `planwave export last --to mermaid -o run.mmd`
    * `planwave export triage --to yaml -o triage.yaml`
    * `planwave export --to json-schema -o planwave.schema.json`
    """
    console, settings = ctx.console(), ctx.settings()
    if what is None and to is not Format.JSON_SCHEMA:
        raise InputError(
            "name what is exported",
            code="usage",
            hint="a file, an execution, a plan or a flow",
        )
    write = _export_there if ctx.service_url else _export_here
    text = write(ctx, settings, what, to.value)
    if output is not None:
        _write(output, text)
    if console.json:
        console.result({"to": to.value, "text": text, "file": output})
    elif output is None:
        typer.echo(text, nl=False)
    else:
        console.verbatim(f"{console.glyph('completed')} Wrote {output}")


def _export_here(
    ctx: CommandContext, settings: Settings, what: str | None, to: ExportFormat
) -> str:
    registry = ctx.factories.catalogue(settings)
    if what is None:
        content = _NOTHING
    elif _is_file(ctx, what):
        content = _content_of_file(ctx, settings, what)
    else:
        content = ctx.read(lambda queries: _read(queries, what))
    node_types = [registry.describe(name) for name in registry.names()]
    graph, title, statuses = content
    return export(
        to, Export(graph, registry, lambda: node_types, registry.node_ports, title, statuses)
    )


def _export_there(
    ctx: CommandContext, settings: Settings, what: str | None, to: ExportFormat
) -> str:
    """Export by the service that the user names, with its node types."""
    if what is None:
        return ctx.call_service(settings, lambda client: client.export_graph(to))
    if _is_file(ctx, what):
        # Lazy: test_help_loads_no_heavy_library
        from planwave.cli.backends.remote_plans import parse_document

        document = parse_document(read_source(what).content)
        title = document.get("title")
        shown = title if isinstance(title, str) else ""
        return ctx.call_service(
            settings, lambda client: client.export_graph(to, document, title=shown)
        )
    stored = ctx.read(lambda queries: _find(queries, what))
    return ctx.call_service(settings, lambda client: _export_stored(client, stored, to))


def _export_stored(client: AsyncClient, stored: _Stored, to: ExportFormat) -> Awaitable[str]:
    if stored.kind == "execution":
        return client.export_execution(stored.id, to)
    return (client.export_flow if stored.kind == "flow" else client.export_plan)(stored.id, to)


def _is_file(ctx: CommandContext, what: str) -> bool:
    """Return whether a name is that of a file.

    Raises:
        InputError: ``ambiguous-id``: a flow has the same name.
    """
    looks_like_one = what.endswith(_FILE_ENDS) or what.startswith(("./", "../", "/", "~"))
    if what == STDIN or looks_like_one:
        return True
    if not Path(what).exists():
        return False
    if Path(what).name != what:
        return True
    try:
        plan_id = ctx.read(lambda queries: find_flow_id(queries, what, by_part=False))
    except NotFound:
        return True
    raise InputError(
        f"{what!r} is a file and a flow",
        code="ambiguous-id",
        hint=f"write ./{what} for the file, or {plan_id} for the flow",
    )


async def _find(queries: Queries, name: str) -> _Stored:
    """Return what is stored under a name; the name of a flow goes before a part of an id."""
    if name != LAST:
        try:
            return _Stored("flow", await find_flow_id(queries, name, by_part=False))
        except NotFound:
            pass
    match = await find(queries, name)
    return _Stored(match.kind, match.id)


async def _read(queries: Queries, name: str) -> _Content:
    kind, own_id = await _find(queries, name)
    if kind == "execution":
        document: Any = await queries.executions.document(own_id)
        statuses = statuses_by_path(document["nodes"])
        return _Content(read_graph(document["graph"])[0], document["title"], statuses)
    if kind == "flow":
        flow = await queries.flows.get(own_id)
        return _Content(read_graph(flow.graph)[0], flow.name)
    plan = await queries.plans.get(own_id)
    graph = {name: plan.document[name] for name in ("nodes", "edges")}
    return _Content(read_graph(graph)[0], plan.title)


def _content_of_file(ctx: CommandContext, settings: Settings, file: str) -> _Content:
    source = read_source(file)
    report = check_source(source.content, ctx.factories.catalogue(settings), settings.limits)
    if report.graph is None:
        error = GraphInvalid(report.diagnostics)
        raise GraphInvalid(report.diagnostics, f"{source.name}: {error.message}")
    title = report.envelope.get("title")
    return _Content(report.graph, title if isinstance(title, str) else "")


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, "utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"{name!r} cannot be written: {error.strerror or error}") from error
