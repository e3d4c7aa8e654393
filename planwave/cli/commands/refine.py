"""``planwave refine``: changing a plan in words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planwave.cli.commands.revisions import PlanArgument, report_saved
from planwave.cli.context import CommandContext
from planwave.cli.inputs import read_goal
from planwave.cli.lookup import find_plan
from planwave.cli.options import ProposalFlag, YesFlag, shared_options
from planwave.cli.prompts import is_confirmed
from planwave.cli.views.revisions import proposal_lines
from planwave.errors import InputError
from planwave.service.plans.documents import plan_json

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.storage.records import PlanRecord

_PROMPT: Final = "Make this the newest revision? [y/N] "

WordsArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[WORDS]",
        help="What is to be different; - reads it from stdin.",
        show_default=False,
    ),
]
AcceptOption = Annotated[
    str | None,
    typer.Option("--accept", metavar="HASH", help="Take the proposal of this hash, made before."),
]


@shared_options(with_model=True, untrusted="ask", over_http=True)
def refine(
    ctx: CommandContext,
    name: PlanArgument,
    words: WordsArgument = None,
    yes: YesFlag = False,
    dry_run: ProposalFlag = False,
    accept: AcceptOption = None,
) -> None:
    """Change a plan or flow in words: a model proposes, you take it or not.

    The proposal is shown, with all that the plan would reach and does not yet. On a terminal you are asked;
    elsewhere it is kept with the plan until `--accept` takes it. `--yes` takes a proposal that reaches nothing new, and
    no other: the model reads the texts of the plan, and these may come from anywhere.

    For example:

    * `planwave refine last "use two sources, drop the summary"`
    * `planwave refine report "name the costs, too" --yes`
    """
    if (words is None) == (accept is None):
        hint = 'write: planwave refine PLAN "what is to be different"'
        raise InputError("give words, or --accept with a hash", code="usage", hint=hint)
    if accept is not None and (dry_run or ctx.provider or ctx.model):
        raise InputError(
            "--accept takes a proposal that was made before",
            code="usage",
            hint="leave out --dry-run, --provider and --model",
        )
    request = "" if words is None else read_goal(words)

    async def run() -> None:
        async with ctx.backend(ctx.settings()) as backend:
            plan = await backend.plans.get(await find_plan(backend, name))
            if accept is not None:
                await _accept(ctx, backend, plan, accept)
                return
            proposed = await backend.revisions.refine(plan.plan_id, request, dry_run=dry_run)
            proposal: Mapping[str, Any] = proposed.document["proposal"]
            if not ctx.console().json:
                ctx.console().texts(proposal_lines(proposal))  # nothing is cut off what is taken
            is_taken = yes and not proposal["additions"]
            if yes and not is_taken and not dry_run and not ctx.console().json:
                ctx.console().text("--yes takes nothing that reaches something new.")
            if not dry_run and (is_taken or await is_confirmed(ctx.console(), _PROMPT)):
                await _accept(ctx, backend, proposed, proposal["hash"])
            else:
                _report_kept(ctx, proposed, is_stored=not dry_run)

    asyncio.run(run())


async def _accept(ctx: CommandContext, backend: Backend, plan: PlanRecord, accepted: str) -> None:
    saved = await backend.revisions.accept(
        plan.plan_id, accepted, expected={plan.hash}, author="person"
    )
    report_saved(ctx.console(), saved)


def _report_kept(ctx: CommandContext, plan: PlanRecord, *, is_stored: bool) -> None:
    console = ctx.console()
    if console.json:
        console.result(plan_json(plan, plan.document.get("status", "draft")))
    elif is_stored:
        accept = f"refine {plan.plan_id} --accept {plan.document['proposal']['hash']}"
        console.text(f"The plan is as it was. To take the proposal: {ctx.command_hint(accept)}")
