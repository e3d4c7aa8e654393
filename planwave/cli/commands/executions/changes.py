"""``planwave revise`` and ``replan``: change the graph of an execution while it runs or waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from planwave.cli.commands.executions.control import CommandResult, exit_with, send_command
from planwave.cli.commands.executions.forks import is_taken, read_graph_file
from planwave.cli.context import CommandContext
from planwave.cli.formatting import counted
from planwave.cli.inputs import read_goal
from planwave.cli.options import ExecutionArgument, ProposalFlag, YesFlag, shared_options

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.cli.signals import Interrupt
    from planwave.graph.model import Json
    from planwave.shapes.nodes import PlanChangeResponse

_NOTE_CHARS: Final = 1_000
"""The longest note that a change may have."""
_QUESTION: Final = ("Let the execution go on so? [y/N] ", "The execution goes on as it was.")


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
        str,
        typer.Argument(
            metavar="WORDS",
            help="What is to be different; - reads it from stdin.",
            show_default=False,
        ),
    ],
    yes: YesFlag = False,
    dry_run: ProposalFlag = False,
) -> None:
    """Change an execution that runs or waits in words: a model proposes, you take it or not.

    The proposal is shown, with all that it would reach and the plan does not yet; meanwhile the execution goes on as it is.
    On a terminal you are asked. `--yes` takes a proposal that reaches nothing new, and no other: the model reads what
    steps gave, and that may come from anywhere.

    For example:

    * `planwave replan last "also cover running costs"`
    * `planwave replan last "leave out the history" --dry-run`
    """
    request = read_goal(words)

    async def tell(
        backend: Backend, execution_id: str, interrupt: Interrupt
    ) -> CommandResult | None:
        proposal = await backend.replan(execution_id, request)
        if not await is_taken(ctx, proposal, _QUESTION, yes=yes, shows_only=dry_run):
            return None
        if dry_run:
            if ctx.console().json:
                ctx.console().result(proposal)
            return None
        base, graph = proposal["base"], cast("Mapping[str, Json]", proposal["graph"])
        change = await backend.revise(
            execution_id, graph, f"in words: {request}"[:_NOTE_CHARS], base
        )
        return _told(ctx, execution_id, change)

    exit_with(send_command(ctx, name, tell))


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
