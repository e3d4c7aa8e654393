"""``planwave retry`` and ``fork``: a new execution that reuses the valid results of another."""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, cast

import typer

from planwave.cli import completion
from planwave.cli.commands.executions.control import exit_with
from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode, show_diagnostics
from planwave.cli.follow_run import follow_run
from planwave.cli.formatting import counted, json_object, truncate
from planwave.cli.inputs import read_goal, read_json_file, read_source
from planwave.cli.lookup import find_execution
from planwave.cli.options import ExecutionArgument, YesFlag, shared_options
from planwave.cli.prompts import is_confirmed, terminal_prompter
from planwave.cli.signals import Interrupt
from planwave.cli.views.revisions import proposal_lines
from planwave.errors import Conflict, GraphInvalid, InputError
from planwave.events import ENDED_STATUS
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.reading.document_text import parse_document_text
from planwave.service.executions.fork import changes_of_fields
from planwave.service.plans.documents import foreign_finding
from planwave.validation import json_type

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.errors import ErrorDocument
    from planwave.graph.model import Json
    from planwave.service.executions.fork import ForkChanges, NodeChanges
    from planwave.shapes.graphs import ForkPreviewResponse
    from planwave.shapes.plans import ReplanResponse

_SHOWN = 60
_QUESTION: Final = ("Run it so, as a new execution? [y/N] ", "Nothing was started.")

RerunOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rerun",
        metavar="NODE",
        autocompletion=completion.steps,
        help="Run this step again, with all steps inside it. Can be repeated.",
    ),
]


SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NODE.FIELD=VALUE",
        help="Change a field of a step's data to a value, JSON or text; NODE.description is "
        "the step's task. Can be repeated.",
    ),
]
ChangesOption = Annotated[
    str | None,
    typer.Option(
        "--changes",
        metavar="FILE",
        help="JSON or YAML {node: {description: text, data: {…}} | {outputs: {handle: value}}}; - is stdin.",
    ),
]
PlanOption = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Run the graph of this file in place of that of the execution: steps are the same by "
        "their ids; - is stdin.",
    ),
]
ReplanOption = Annotated[
    str | None,
    typer.Option(
        "--replan",
        metavar="WORDS",
        help="Have a model change the plan of an execution that has ended as these words say: it is shown, "
        "and you are asked; - reads them from stdin.",
    ),
]
DryRunFlag = Annotated[
    bool,
    typer.Option("--dry-run", help="Only say which steps would be reused, and which would run."),
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


@shared_options(with_model=True, untrusted="ask", over_http=True)
def fork(
    ctx: CommandContext,
    name: ExecutionArgument,
    rerun: RerunOption = None,
    settings: SetOption = None,
    changes: ChangesOption = None,
    plan: PlanOption = None,
    replan: ReplanOption = None,
    yes: YesFlag = False,
    dry_run: DryRunFlag = False,
) -> None:
    """Run an execution again with changes, as a new execution.

    Results of steps that the changes do not affect are reused. `planwave diff` compares the two.

    For example:

    * `planwave fork last --rerun compare`
    * `planwave fork 09a2fd --set compare.model=gpt-4o`
    * `planwave fork last --set compare.userPrompt="Compare in one sentence: {{ input }}"`
    * `planwave fork last --changes changes.json`
    * `planwave fork last --plan plan.json --dry-run`
    * `planwave fork last --replan "also cover running costs"`

    `--yes` takes a plan of `--replan` that reaches nothing new, and no other: the model reads what steps gave,
    and that may come from anywhere. Where no terminal is there to ask on, any other is an error (exit code 2).
    """
    if replan is not None and plan is not None:
        raise InputError("--plan and --replan both say what to run; give one", code="usage")
    wanted = _Wanted(
        rerun or (),
        parse_settings(settings or ()),
        {} if changes is None else _read_changes(changes),
        None if plan is None else read_graph_file(plan),
        None if replan is None else read_goal(replan),
        yes,
        dry_run,
    )

    async def start(backend: Backend, execution_id: str) -> str | None:
        if (fork_changes := await _changes_of(ctx, backend, execution_id, wanted)) is None:
            return None
        new_id = await backend.fork(execution_id, fork_changes)
        await _warn_of_changes(ctx, backend, new_id, fork_changes.get("changes") or {})
        return new_id

    if dry_run:
        asyncio.run(_preview(ctx, name, wanted))
    else:
        exit_with(asyncio.run(_follow_new(ctx, name, "a fork", start)))


class _Wanted(NamedTuple):
    """The options of a fork, read."""

    rerun: Sequence[str]
    settings: Mapping[str, Json]
    changes: Mapping[str, dict[str, Json]]
    graph: dict[str, Json] | None
    words: str | None
    yes: bool
    dry_run: bool


async def _changes_of(
    ctx: CommandContext, backend: Backend, execution_id: str, wanted: _Wanted
) -> ForkChanges | None:
    """Return what is different in a fork; None where nobody takes what a model proposes."""
    graph = wanted.graph
    if wanted.words is not None:
        proposal = await _replanned(backend, execution_id, wanted.words)
        if wanted.dry_run:
            show_proposal(ctx, proposal)
        elif not await is_taken(ctx, proposal, _QUESTION, yes=wanted.yes):
            return None
        graph = cast("dict[str, Json]", proposal["graph"])
    document = graph
    if document is None and wanted.settings:
        execution = await backend.executions.document(execution_id)
        document = json_object(execution.get("graph"))
    ids = _node_ids(document or {})
    changes = changes_of_fields(wanted.changes, wanted.settings, ids)
    return {"rerun": wanted.rerun, "changes": changes or None, "graph": graph}


async def _replanned(backend: Backend, execution_id: str, words: str) -> ReplanResponse:
    """Return what a model proposes for a fork of an execution.

    Raises:
        Conflict: ``still-running``: before a model is asked.
    """
    status = (await backend.executions.get(execution_id)).status
    if status not in ENDED_STATUS:
        raise Conflict(
            f"execution {execution_id} is {status}: a fork in words is one of an execution that has ended",
            code="still-running",
            hint=f'to let it go on with a changed plan: planwave replan {execution_id} "…"',
        )
    return await backend.propose(execution_id, words)


async def is_taken(
    ctx: CommandContext,
    proposal: ReplanResponse,
    question: tuple[str, str],
    *,
    yes: bool,
) -> bool:
    """Show the change that a model proposes, and return whether a person takes it.

    Args:
        ctx: The context of the command.
        proposal: What the model proposes.
        question: What a person is asked on a terminal, and what is said where the person does not take it.
        yes: Whether it is taken without a question, if it reaches nothing new.

    Raises:
        UndecidedProposal: A person has to decide, and there is no terminal to ask on.
    """
    console = ctx.console()
    show_proposal(ctx, proposal)
    if yes and not proposal["additions"]:
        return True
    if terminal_prompter(console) is None:
        fork = ctx.command_hint(f"fork {proposal['execution_id']} --plan FILE")
        raise UndecidedProposal(proposal, fork, yes=yes)
    prompt, left = question
    if await is_confirmed(console, prompt):
        return True
    console.text(left)
    return False


def show_proposal(ctx: CommandContext, proposal: ReplanResponse) -> None:
    """Show the change that a model proposes; not as JSON, of which there is one object only."""
    if not ctx.console().json:
        ctx.console().texts(proposal_lines(proposal))  # nothing is cut off what is taken


class UndecidedProposal(InputError):
    """A person has to take a proposal, and there is no terminal to ask on; nothing was started.

    Its JSON has the ``proposal``, whose graph ``planwave fork ID --plan`` takes.
    """

    def __init__(self, proposal: ReplanResponse, fork_hint: str, *, yes: bool) -> None:
        why = "it reaches something new, which --yes does not take" if yes else "--yes is missing"
        super().__init__(
            f"nothing was started: a person has to take the proposal, as {why}",
            code="decision-required",
            hint="no terminal to ask on; run the command on one, or with --json, "
            f"and then, with the graph of the proposal: {fork_hint}",
        )
        self.proposal = proposal

    def as_json(self) -> ErrorDocument:
        """Return the error with the proposal, which has been paid for."""
        return cast("ErrorDocument", {**super().as_json(), "proposal": self.proposal})


async def _preview(ctx: CommandContext, name: str, wanted: _Wanted) -> None:
    """Show what a fork of an execution would reuse."""
    async with ctx.backend(ctx.settings()) as backend:
        execution_id = await find_execution(backend, name)
        changes = await _changes_of(ctx, backend, execution_id, wanted)
        if changes is not None:
            show_preview(ctx, await backend.preview_fork(execution_id, changes))


def show_preview(ctx: CommandContext, preview: ForkPreviewResponse) -> None:
    """Show which steps a fork would reuse, and which would run."""
    console = ctx.console()
    if console.json:
        console.result(preview)
        return
    said = {
        "reused": "would be reused, at no cost",
        "runs": "would run",
        "undecided": "would be reused if what comes before gives the same, else run or be left out",
    }
    for kind, ids in preview.items():
        steps = cast("Sequence[str]", ids)
        names = f": {', '.join(steps)}" if steps else ""
        if steps or kind != "undecided":
            console.text(f"{counted(len(steps), 'step')} {said[kind]}{names}")


def read_graph_file(file: str) -> dict[str, Json]:
    """Read a graph or a plan, unchecked: whoever runs it says what is wrong.

    Raises:
        GraphInvalid: It is no document, or one of another program.
    """
    source = read_source(file)
    if (foreign := foreign_finding(source.content)) is not None:
        raise GraphInvalid([foreign])
    document = parse_document_text(source.content)
    if not isinstance(document, dict):
        message = f"a graph must be an object, got {json_type(document)}"
        raise GraphInvalid([Diagnostic("invalid-field", "error", message)])
    return cast("dict[str, Json]", document)


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
    ctx: CommandContext,
    name: str,
    kind: str,
    start: Callable[[Backend, str], Awaitable[str | None]],
) -> int:
    """Start a new execution from an earlier one, and follow it; ``kind`` says what it is."""
    console, settings = ctx.console(), ctx.settings()
    async with ctx.queries(settings) as queries:
        execution_id = await find_execution(queries, name)
    with Interrupt(console) as interrupt:
        async with ctx.backend(settings, interrupt) as backend:
            new_id = await start(backend, execution_id)
            if new_id is None:
                return ExitCode.OK
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


def _node_ids(graph: Mapping[str, Any]) -> Sequence[str]:
    """Return the ids of the nodes of a graph, as far as it can be read."""
    listed = graph.get("nodes")
    nodes = cast("list[Any]", listed) if isinstance(listed, list) else []
    each = (json_object(node).get("id") for node in nodes)
    return [node_id for node_id in each if isinstance(node_id, str)]
