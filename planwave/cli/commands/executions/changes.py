"""``planwave revise`` and ``replan``: change the graph of an execution while it runs or waits, or fork it so."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from planwave.cli.commands.executions.answer import answer_request
from planwave.cli.commands.executions.control import CommandResult, exit_with, send_command
from planwave.cli.commands.executions.forks import is_taken, read_graph_file, show_preview
from planwave.cli.context import CommandContext
from planwave.cli.formatting import counted, json_object
from planwave.cli.inputs import read_goal
from planwave.cli.options import ExecutionArgument, ProposalFlag, YesFlag, shared_options
from planwave.cli.prompts import terminal_prompter
from planwave.cli.signals import Interrupt, Interrupted
from planwave.cli.views.revisions import proposal_lines
from planwave.errors import Conflict, GraphInvalid, InputError
from planwave.events import ENDED_STATUS
from planwave.events.plan_changes import NO_GRAPH
from planwave.events.request_text import is_change_request
from planwave.events.types import PLAN_REFUSED, PLAN_REVISED
from planwave.graph.diagnostics import Diagnostic
from planwave.graph.editing.difference import graph_difference
from planwave.graph.editing.revision import changed_graph

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.events import Event
    from planwave.graph.model import Json
    from planwave.service.executions.fork import ForkChanges
    from planwave.shapes.common import GraphChangeDocument, GraphDocument
    from planwave.shapes.nodes import PlanChangeResponse
    from planwave.shapes.plans import ReplanResponse

_FORK_QUESTION: Final = ("The execution has ended. Fork it so? [y/N] ", "Nothing was started.")


@shared_options(over_http=True)
def revise(
    ctx: CommandContext,
    name: ExecutionArgument,
    plan: Annotated[
        str,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="The changed graph, JSON or YAML: steps are the same by their ids; - is stdin.",
        ),
    ],
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="Why; kept with the change.")
    ] = "",
) -> None:
    """Let an execution that runs or waits go on with a changed plan.

    Steps that have begun stay as they are; all others may be changed, added and dropped, and failed ones dropped.
    Nothing that has run is run again. Of an execution that has ended, `planwave fork --plan` makes a new one.

    For example:

    * `planwave show last --json | jq .graph > plan.json`, then change the file
    * `planwave revise last --plan plan.json --note "also cover running costs"`
    """
    graph = read_graph_file(plan)

    async def tell(backend: Backend, execution_id: str, interrupt: Interrupt) -> CommandResult:
        return _told(ctx, execution_id, await backend.revise(execution_id, graph, note))

    exit_with(send_command(ctx, name, tell))


@shared_options(with_model=True, untrusted="ask", over_http=True)
def replan(
    ctx: CommandContext,
    name: ExecutionArgument,
    words: Annotated[
        str | None,
        typer.Argument(
            metavar="WORDS",
            help="What is to be different; - reads it from stdin. Without it: what replaces the steps that failed.",
            show_default=False,
        ),
    ] = None,
    yes: YesFlag = False,
    dry_run: ProposalFlag = False,
) -> None:
    """Change an execution in words, by a model.

    Of an execution that runs or waits nothing starts while the model writes the change; what runs goes on. The change is made
    and shown at once, unless it would do or reach what the plan does not yet, or the plan needs an approval: then a person
    decides, on this terminal or by `planwave answer`. Of an execution that has ended, a fork with the changed plan is proposed,
    and started once you take it: steps that the change does not affect are reused.

    `--yes` takes the proposal of a fork that reaches nothing new, and no other: the model reads what steps gave, and that may
    come from anywhere. Where no terminal is there to ask on, any other is an error (exit code 2). With `--dry-run` a change
    is proposed only, and the execution goes on as it is.

    For example:

    * `planwave replan last "also cover running costs"`
    * `planwave replan last "leave out the history" --dry-run`
    * `planwave replan last` (after a failure: another way in place of what failed)
    """
    asked = None if words is None else read_goal(words)

    async def tell(
        backend: Backend, execution_id: str, interrupt: Interrupt
    ) -> CommandResult | None:
        has_ended = await _has_ended(backend, execution_id)
        if not has_ended and not dry_run:
            return await _replanned(ctx, backend, interrupt, execution_id, asked)
        if has_ended:
            ctx.console().text(f"{execution_id} has ended: what is proposed is a fork of it")
        proposal = await backend.propose(execution_id, asked)
        if dry_run:
            return await _show_only(ctx, backend, proposal)
        if not await is_taken(ctx, proposal, _FORK_QUESTION, yes=yes):
            return None
        return await _forked(ctx, backend, proposal)

    exit_with(send_command(ctx, name, tell))


async def _has_ended(backend: Backend, execution_id: str) -> bool:
    return (await backend.executions.get(execution_id)).status in ENDED_STATUS


async def _replanned(
    ctx: CommandContext,
    backend: Backend,
    interrupt: Interrupt,
    execution_id: str,
    request: str | None,
) -> CommandResult | None:
    """Have a model change an execution, and wait until that is made, refused, or asked about.

    Raises:
        InputError: It is not changed; the code says why.
        Conflict: ``already-ended``: it ended before it was changed.
    """
    before = await backend.executions.document(execution_id)
    accepted = await backend.replan(execution_id, request, before["plan_hash"])
    ctx.console().text("A model writes the change; nothing starts meanwhile.")
    waiting = _outcome(backend, execution_id, accepted["change"], before["last_seq"])
    try:
        event = await interrupt.cancel_on_signal(waiting)
    except Interrupted as left:
        left.message = f"left; the change of {execution_id} is still being written"
        if backend.runs_in_process:
            left.message = f"left; the change of {execution_id} is written once it goes on"
            left.hint = f"let it go on with: {ctx.command_hint(f'resume {execution_id}')}"
        raise
    if event is None:
        message = f"execution {execution_id} ended before it was changed"
        raise Conflict(message, code="already-ended")
    if event.type == PLAN_REFUSED.name:
        raise _refusal(execution_id, event)
    if event.type == PLAN_REVISED.name:
        _show_change(ctx, cast("GraphDocument", before["graph"] or NO_GRAPH), event)
        changes = (await backend.executions.document(execution_id)).get("changes") or []
        return _told(ctx, execution_id, changes[accepted["change"] - 1])
    request_id, asked = str(event.data["request_id"]), json_object(event.data["request"])
    ctx.console().texts(proposal_lines(asked))
    if not backend.runs_in_process and terminal_prompter(ctx.console()) is not None:
        return await answer_request(ctx, backend, interrupt, execution_id, request_id)
    return _asked(ctx, execution_id, accepted["change"], request_id, str(asked["hash"]))


async def _outcome(backend: Backend, execution_id: str, change: int, after: int) -> Event | None:
    """Return the event that says what came of a change; None where the execution ended before."""
    async with aclosing(backend.executions.watch(execution_id, after=after)) as events:
        async for event in events:
            is_over = event.type in (PLAN_REVISED.name, PLAN_REFUSED.name)
            if is_over and event.data["change"] == change:
                return event
            if event.type == "execution.paused" and is_change_request(event.data.get("request")):
                return event
    return None


def _refusal(execution_id: str, event: Event) -> InputError:
    """Return why a change is not made, with what is wrong with the graph that it would have made."""
    error = json_object(event.data["error"])
    message = f"execution {execution_id} is not changed: {error['message']}"
    code, hint = error["code"], error.get("hint")
    if not (documents := event.data.get("diagnostics")):
        return InputError(message, code=code, hint=hint)
    refused = GraphInvalid([Diagnostic(**each) for each in documents], message)
    refused.code, refused.hint = code, hint or refused.hint
    return refused


def _show_change(ctx: CommandContext, before: GraphDocument, event: Event) -> None:
    """Show what a change that was made does."""
    after = changed_graph(before, cast("GraphChangeDocument", event.data["graph_change"]))
    difference = graph_difference(cast("dict[str, Any]", before), cast("dict[str, Any]", after))
    shown: dict[str, Any] = {
        "answer": event.data.get("note"),
        "difference": {"title": None, **difference},
        "additions": [],
    }
    ctx.console().texts(proposal_lines(shown))


def _fork_changes(proposal: ReplanResponse) -> ForkChanges:
    return {"graph": cast("Mapping[str, Json]", proposal["graph"])}


async def _show_only(ctx: CommandContext, backend: Backend, proposal: ReplanResponse) -> None:
    """Show a proposal, and of a fork what it would reuse; as JSON the proposal alone."""
    if ctx.console().json:
        ctx.console().result(proposal)
        return
    ctx.console().texts(proposal_lines(proposal))
    if await _has_ended(backend, proposal["execution_id"]):  # perhaps only meanwhile
        changes = _fork_changes(proposal)
        show_preview(ctx, await backend.preview_fork(proposal["execution_id"], changes))


async def _forked(ctx: CommandContext, backend: Backend, proposal: ReplanResponse) -> CommandResult:
    """Start the fork that is proposed; it is followed where this process runs it."""
    execution_id = proposal["execution_id"]
    new_id = await backend.fork(execution_id, _fork_changes(proposal))
    done = f"Started execution {new_id}, a fork of {execution_id}"
    if backend.runs_in_process:
        ctx.console().verbatim(done)
    see = f"Watch it with: {ctx.command_hint(f'watch {new_id}')}"
    return CommandResult("executing", done, see, execution_id=new_id)


def _told(ctx: CommandContext, execution_id: str, change: PlanChangeResponse) -> CommandResult:
    if (request_id := change.get("request_id")) is not None:
        return _asked(ctx, execution_id, change["change"], request_id, change["hash"])
    what = change["graph_change"]
    parts = [
        f"{counted(len(what['nodes']), 'step')} new or changed",
        f"{counted(len(what['dropped_nodes']), 'step')} dropped",
    ]
    done = f"Changed {execution_id} (change {change['change']}): {', '.join(parts)}"
    see = f"Watch it with: {ctx.command_hint(f'watch {execution_id}')}"
    fields = {"change": change["change"], "hash": change["hash"]}
    return CommandResult("executing", done, see, json_fields=fields)


def _asked(
    ctx: CommandContext, execution_id: str, change: int, request_id: str, plan_hash: str
) -> CommandResult:
    """Return what is said of a change that a person has to approve first."""
    asks = f"A person has to approve change {change} of {execution_id} first"
    way = f"Answer with: {ctx.command_hint(f'answer {execution_id} {request_id}')}"
    fields = {"change": change, "hash": plan_hash, "request_id": request_id}
    return CommandResult("paused", asks, way, json_fields=fields)
