"""``planwave revise`` and ``replan``: change the graph of an execution while it runs or waits, or fork it so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from planwave.cli.commands.executions.control import CommandResult, exit_with, send_command
from planwave.cli.commands.executions.forks import is_taken, read_graph_file, show_preview
from planwave.cli.context import CommandContext
from planwave.cli.formatting import counted, json_object
from planwave.cli.inputs import read_goal
from planwave.cli.options import ExecutionArgument, ProposalFlag, YesFlag, shared_options
from planwave.errors import InputError
from planwave.events import ENDED_STATUS
from planwave.service.executions.written_changes import failure_words

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.cli.signals import Interrupt
    from planwave.graph.model import Json
    from planwave.service.executions.fork import ForkChanges
    from planwave.shapes.nodes import PlanChangeResponse
    from planwave.shapes.plans import ReplanResponse

_NOTE_CHARS: Final = 1_000
"""The longest note that a change may have."""
_QUESTION: Final = ("Let the execution go on so? [y/N] ", "The execution goes on as it was.")
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
    """Change an execution in words: a model proposes, you take it or not.

    The proposal is shown, with all that it would reach and the plan does not yet. An execution that runs or waits goes on as
    it is meanwhile, and with the change once you take it. Of one that has ended, a fork with the changed plan is started: steps
    that the change does not affect are reused.

    On a terminal you are asked. `--yes` takes a proposal that reaches nothing new, and no other: the model reads what
    steps gave, and that may come from anywhere.

    For example:

    * `planwave replan last "also cover running costs"`
    * `planwave replan last "leave out the history" --dry-run`
    * `planwave replan last` (after a failure: another way in place of what failed)
    """
    asked = None if words is None else read_goal(words)

    async def tell(
        backend: Backend, execution_id: str, interrupt: Interrupt
    ) -> CommandResult | None:
        request, note = await _request(backend, execution_id, asked)
        proposal, has_ended = await _proposed(ctx, backend, execution_id, request)
        question = _FORK_QUESTION if has_ended else _QUESTION
        if not await is_taken(ctx, proposal, question, yes=yes, shows_only=dry_run):
            return None
        if dry_run:
            return await _show_only(ctx, backend, proposal, has_ended=has_ended)
        if has_ended:
            return await _forked(ctx, backend, proposal)
        graph = cast("Mapping[str, Json]", proposal["graph"])
        change = await backend.revise(execution_id, graph, note, proposal["base"])
        return _told(ctx, execution_id, change)

    exit_with(send_command(ctx, name, tell))


async def _request(backend: Backend, execution_id: str, asked: str | None) -> tuple[str, str]:
    """Return what a model is asked for, and the note of such a change: the words, or else what failed.

    Raises:
        InputError: ``usage``: there are no words, and no step has failed.
    """
    if asked is not None:
        return asked, f"in words: {asked}"[:_NOTE_CHARS]
    failed = {
        node["path"]: json_object(node["error_detail"])
        for node in (await backend.executions.document(execution_id))["nodes"]
        if node["status"] == "failed" and not node["handled"] and "[" not in node["path"]
    }
    if not failed:
        raise InputError(
            f"no step of execution {execution_id} has failed",
            code="usage",
            hint=f'say what is to be different: planwave replan {execution_id} "…"',
        )
    return failure_words(failed), f"as {', '.join(failed)} failed"[:_NOTE_CHARS]


async def _proposed(
    ctx: CommandContext, backend: Backend, execution_id: str, request: str
) -> tuple[ReplanResponse, bool]:
    """Return what a model proposes, and whether it is for a fork, as the execution has ended.

    That is said before a model is paid, and looked at again after it: the execution may have ended meanwhile.
    """
    if await _has_ended(backend, execution_id):
        ctx.console().text(f"{execution_id} has ended: what is proposed is a fork of it")
    proposal = await backend.replan(execution_id, request)
    return proposal, await _has_ended(backend, execution_id)


async def _has_ended(backend: Backend, execution_id: str) -> bool:
    return (await backend.executions.get(execution_id)).status in ENDED_STATUS


def _fork_changes(proposal: ReplanResponse) -> ForkChanges:
    return {"graph": cast("Mapping[str, Json]", proposal["graph"])}


async def _show_only(
    ctx: CommandContext, backend: Backend, proposal: ReplanResponse, *, has_ended: bool
) -> None:
    """Show what comes of a proposal besides itself: as JSON the proposal, of a fork what it would reuse."""
    if ctx.console().json:
        ctx.console().result(proposal)
    elif has_ended:
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
    what = change["graph_change"]
    parts = [
        f"{counted(len(what['nodes']), 'step')} new or changed",
        f"{counted(len(what['dropped_nodes']), 'step')} dropped",
    ]
    done = f"Changed {execution_id} (change {change['change']}): {', '.join(parts)}"
    fields = {"change": change["change"], "hash": change["hash"]}
    if (request_id := change.get("request_id")) is not None:
        asks = f"A person has to approve the change of {execution_id} first: {', '.join(parts)}"
        way = f"Answer with: {ctx.command_hint(f'answer {execution_id} {request_id}')}"
        return CommandResult("paused", asks, way, json_fields={**fields, "request_id": request_id})
    see = f"Watch it with: {ctx.command_hint(f'watch {execution_id}')}"
    return CommandResult("executing", done, see, json_fields=fields)
