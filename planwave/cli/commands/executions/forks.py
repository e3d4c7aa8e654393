"""``planwave retry`` and ``fork``: a new execution that reuses the valid results of another."""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from planwave.cli import completion
from planwave.cli.commands.executions.control import exit_with
from planwave.cli.context import CommandContext
from planwave.cli.errors import show_diagnostics
from planwave.cli.follow_run import follow_run
from planwave.cli.formatting import json_object, truncate
from planwave.cli.inputs import read_json_file
from planwave.cli.lookup import find_execution
from planwave.cli.options import ExecutionArgument, shared_options
from planwave.cli.signals import Interrupt
from planwave.errors import Conflict, GraphInvalid, InputError
from planwave.graph.reading.document_text import parse_document_text
from planwave.service.executions.fork import changes_of_fields

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.graph.model import Json
    from planwave.service.executions.fork import NodeChanges

_SHOWN = 60

RerunOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rerun",
        metavar="NODE",
        autocompletion=completion.steps,
        help="Run this step again, with all steps inside it. Can be repeated.",
    ),
]


@shared_options(over_http=True)
def retry(ctx: CommandContext, name: ExecutionArgument) -> None:
    """Run the failed, blocked and cancelled steps of an execution again, as a new execution.

    Results of completed steps, nested ones too, are reused and cost nothing.

    For example:

    * `planwave retry last`
    """

    async def start(backend: Backend, execution_id: str) -> str:
        try:
            return await backend.retry(execution_id)
        except Conflict as error:
            if error.code == "nothing-to-retry":
                again = ctx.command_hint(f"fork {execution_id} --rerun STEP")
                error.hint = f"to run steps again: {again}"
            raise

    exit_with(asyncio.run(_follow_new(ctx, name, "a retry", start)))


@shared_options(over_http=True)
def fork(
    ctx: CommandContext,
    name: ExecutionArgument,
    rerun: RerunOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NODE.FIELD=VALUE",
            help="Change a field of a step's data to a value, JSON or text; NODE.description is "
            "the step's task. Can be repeated.",
        ),
    ] = None,
    changes: Annotated[
        str | None,
        typer.Option(
            "--changes",
            metavar="FILE",
            help="JSON or YAML {node: {description: text, data: {…}} | {outputs: {handle: value}}}; - is stdin.",
        ),
    ] = None,
) -> None:
    """Run an execution again with changes, as a new execution.

    Results of steps that the changes do not affect are reused; only the other steps run. The
    original execution does not change; `planwave diff` compares the two.

    For example:

    * `planwave fork last --rerun compare`
    * `planwave fork last --set compare.description="Compare them in one sentence."`
    * `planwave fork 09a2fd --set compare.model=gpt-4o --set research.temperature=0.2`
    * `planwave fork last --set compare.userPrompt="Compare in one sentence: {{ input }}"`
    * `planwave fork last --changes changes.json`
    """
    from_file = {} if changes is None else _read_changes(changes)

    async def start(backend: Backend, execution_id: str) -> str:
        ids = _node_ids(await backend.executions.document(execution_id)) if settings else ()
        node_changes = changes_of_fields(from_file, parse_settings(settings or ()), ids)
        new_id = await backend.fork(execution_id, rerun or (), node_changes)
        await _warn_of_changes(ctx, backend, new_id, node_changes)
        return new_id

    exit_with(asyncio.run(_follow_new(ctx, name, "a fork", start)))


async def _warn_of_changes(
    ctx: CommandContext, backend: Backend, execution_id: str, changes: NodeChanges
) -> None:
    """Show the warnings of the changed nodes, such as a new prompt that uses none of its inputs."""
    graph = (await backend.executions.document(execution_id)).get("graph") if changes else None
    if not isinstance(graph, dict):
        return
    findings = await backend.check(graph)
    show_diagnostics(ctx.console(), [each for each in findings if each.node in changes])


async def _follow_new(
    ctx: CommandContext, name: str, kind: str, start: Callable[[Backend, str], Awaitable[str]]
) -> int:
    """Start a new execution from an earlier one, and follow it; ``kind`` says what it is."""
    console, settings = ctx.console(), ctx.settings()
    async with ctx.queries(settings) as queries:
        execution_id = await find_execution(queries, name)
    with Interrupt(console) as interrupt:
        async with ctx.backend(settings, interrupt) as backend:
            new_id = await start(backend, execution_id)
            console.verbatim(f"execution {new_id}, {kind} of {execution_id}")
            return await follow_run(ctx, backend, interrupt, new_id)


def parse_settings(written: Sequence[str]) -> dict[str, Json]:
    """Return ``{"NODE.FIELD": value}`` of ``--set`` options.

    Raises:
        InputError: ``usage``: an option has no ``=``.
    """
    fields: dict[str, Json] = {}
    for each in written:
        place, equals, value = each.partition("=")
        if not equals:
            raise InputError(
                f"--set {truncate(repr(each), _SHOWN)} has no value",
                code="usage",
                hint="write NODE.FIELD=VALUE",
            )
        fields[place] = _parse_value(value)
    return fields


def _parse_value(written: str) -> Json:
    try:
        return json_module.loads(written)
    except ValueError:
        return written


def _read_changes(file: str) -> dict[str, dict[str, Json]]:
    try:
        changes = parse_document_text(read_json_file(file))
    except GraphInvalid as error:
        message = f"--changes {truncate(repr(file), _SHOWN)}: {error.message}"
        raise InputError(message, code="usage", hint=error.hint) from error
    if isinstance(changes, dict):
        fields = cast("dict[str, Any]", changes)
        if all(isinstance(change, dict) for change in fields.values()):
            return fields
    raise InputError(
        "--changes: it is not {node: {…}}",
        code="usage",
        hint='write {"NODE": {"description": TEXT, "data": {"FIELD": VALUE}}} '
        'or {"NODE": {"outputs": {…}}}',
    )


def _node_ids(document: Mapping[str, Any]) -> Sequence[str]:
    return [str(node["id"]) for node in json_object(document.get("graph")).get("nodes") or ()]
