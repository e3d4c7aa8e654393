"""``planwave revise``: change the graph of an execution while it runs or waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from planwave.cli.commands.executions.control import CommandResult, exit_with, send_command
from planwave.cli.commands.executions.forks import read_graph_file
from planwave.cli.context import CommandContext
from planwave.cli.formatting import counted, one_line
from planwave.cli.options import ExecutionArgument, shared_options

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.cli.signals import Interrupt


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
        change = await backend.revise(execution_id, graph, note)
        what = change["graph_change"]
        parts = [
            f"{counted(len(what['nodes']), 'step')} new or changed",
            f"{counted(len(what['dropped_nodes']), 'step')} dropped",
        ]
        done = f"Changed {execution_id} (change {change['change']}): {', '.join(parts)}"
        see = f"Watch it with: {ctx.command_hint(f'watch {execution_id}')}"
        fields = {"change": change["change"], "hash": change["hash"], "note": one_line(note)}
        return CommandResult("executing", done, see, json_fields=fields)

    exit_with(send_command(ctx, name, tell))
