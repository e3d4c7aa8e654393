"""``planwave explain``: why steps ran, did not run, or wait. Read only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.commands.executions.browse import find_node
from planwave.cli.context import CommandContext
from planwave.cli.formatting import (
    DID_NOT_RUN,
    ID_WIDTH,
    STATUS_WIDTH,
    clock_time,
    interrupted_text,
    json_object,
    one_line,
    status_style,
    status_text,
    truncate,
)
from planwave.cli.lookup import find_execution
from planwave.cli.options import ExecutionArgument, shared_options
from planwave.cli.views.result import nodes_of, traceback_lines
from planwave.events.logs.call_lines import call_text, outcome_text

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Queries
    from planwave.cli.console import CommandConsole, Line
    from planwave.shapes.executions import DocumentResponse, ExplainResponse

_INPUT_CHARS: Final = 400

NodeArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="NODE",
        autocompletion=completion.steps,
        help="A step, by its id, path or name. [default: every step outside nested graphs]",
        show_default=False,
    ),
]


@shared_options(over_http=True)
def explain(ctx: CommandContext, name: ExecutionArgument, node: NodeArgument = None) -> None:
    """Explain why a step ran, did not run, or waits, with its inputs and its history.

    For example:

    * `planwave explain last`
    * `planwave explain 09a2fd compare`
    """
    console = ctx.console()

    async def read(queries: Queries) -> tuple[DocumentResponse, list[ExplainResponse]]:
        execution_id = await find_execution(queries, name)
        document = await queries.executions.document(execution_id)
        if node is not None:
            paths = [str(find_node(document, node)["path"])]
        else:
            paths = [each["path"] for each in nodes_of(document) if "/" not in each["path"]]
        return document, [await queries.executions.explain(execution_id, path) for path in paths]

    document, explained = ctx.read(read)
    cut_off = {"interrupted": True} if document.get("interrupted") else {}
    if node is not None:
        if console.json:
            console.result({**explained[0], **cut_off})
        else:
            console.texts(_details(console, explained[0]))
            _show_interrupted(ctx, console, document)
        return
    if console.json:
        fields = ("path", "status", "code", "reason")
        nodes = [{field: each[field] for field in fields} for each in explained]
        console.result({"execution_id": document["execution_id"], **cut_off, "nodes": nodes})
        return
    width = min(ID_WIDTH, max((len(each["path"]) for each in explained), default=0))
    console.texts(_overview_line(console, each, width) for each in explained)
    _show_interrupted(ctx, console, document)


def _show_interrupted(
    ctx: CommandContext, console: CommandConsole, document: DocumentResponse
) -> None:
    if document.get("interrupted"):
        again = ctx.command_hint(f"resume {document['execution_id']}")
        console.verbatim(interrupted_text(again))


def _overview_line(console: CommandConsole, explained: Mapping[str, Any], width: int) -> Line:
    return Text.assemble(
        *_status(console, explained, STATUS_WIDTH),
        (f"{truncate(str(explained['path']), width):<{width}}", "cyan"),
        f"  {one_line(str(explained['reason']))}",
    )


def _status(
    console: CommandConsole, explained: Mapping[str, Any], width: int = 0
) -> tuple[tuple[str, str]]:
    """Return the styled status; the code names results that the node did not compute."""
    status = explained["code"] if explained["code"] in DID_NOT_RUN else explained["status"]
    style = status_style(str(status)).style
    return ((f"{console.glyph(str(status))} {status_text(str(status)):<{width}} ", style),)


def _details(console: CommandConsole, explained: Mapping[str, Any]) -> Iterator[Line]:
    """Yield the lines on one node: its status and reason, its inputs, its history."""
    yield Text.assemble(*_status(console, explained), (one_line(str(explained["path"])), "cyan"))
    yield one_line(str(explained["reason"]))
    if hint := json_object(explained.get("error")).get("hint"):
        yield Text(f"  {console.symbol('→', '->')} {one_line(str(hint))}", style="dim")
    inputs = json_object(explained.get("inputs"))
    if inputs:
        yield ""
        yield Text("Inputs", style="bold")
    for handle, values in inputs.items():
        for arrival in map(json_object, json_object(values).get("arrivals") or ()):
            source = one_line(f"{handle} from {arrival.get('source')}")
            yield f"  {source}: {truncate(str(arrival.get('text')), _INPUT_CHARS)}"
    history = [json_object(step) for step in explained.get("course") or ()]
    if history:
        yield ""
        yield Text("History", style="bold")
    for step in history:
        attempt = f" (attempt {step['attempt']})" if (step.get("attempt") or 1) > 1 else ""
        words = str(step.get("what")).replace("-", " ")
        if step.get("what") == "called":
            words += f" {call_text(step.get('name'), step.get('arguments'))}{outcome_text(step)}"
        elif step.get("what") == "warned":
            words += f": {one_line(str(step.get('message')))}"
        yield f"  {clock_time(str(step.get('at')))}  {words}{attempt}"
        yield from traceback_lines(step)
