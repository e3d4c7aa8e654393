"""``planwave flow``: graphs saved under a name, to be run many times."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from planwave.cli import completion
from planwave.cli.commands.executions.browse import pagination_hint
from planwave.cli.commands.flow_inputs import inputs
from planwave.cli.commands.run import RunJob, run_and_exit, run_budget, run_options
from planwave.cli.commands.triggers import triggers_of
from planwave.cli.context import CommandContext
from planwave.cli.formatting import counted
from planwave.cli.inputs import read_inputs, read_source
from planwave.cli.lookup import find_flow, find_flow_id, find_input_set, find_plan
from planwave.cli.options import (
    ApproveOption,
    BudgetOption,
    BudgetTokensOption,
    FlowArgument,
    InputOption,
    InputsOption,
    LimitOption,
    MaxParallelOption,
    OnFailure,
    OnFailureOption,
    ReplanByStepsOption,
    ReplanOption,
    RunFromOption,
    RunToOption,
    Scheduling,
    SchedulingOption,
    SetResultOption,
    shared_options,
)
from planwave.cli.views.flow import flow_lines, publication_lines, show_flow
from planwave.errors import GraphInvalid, InputError, NotFound
from planwave.service.flows.flow_queries import PUBLICATIONS

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend, Queries
    from planwave.cli.inputs import InputArgument, Source
    from planwave.service.flows.flow_queries import Flow
    from planwave.shapes.common import Publication
    from planwave.shapes.plans import PublicationResponse
    from planwave.storage.records import PlanRevision

_REVISIONS_SHOWN: Final = 20
_Result = TypeVar("_Result")

flow_app = typer.Typer(
    help="Save graphs under a name, and run them.",
    no_args_is_help=True,
    add_completion=False,
)

NewNameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=completion.flows,
        help="The name of the flow. An existing flow of that name, or id, gets a new revision.",
        show_default=False,
    ),
]
FileArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        help="JSON or YAML: a graph {nodes, edges}, or a plan; - is stdin.",
        show_default=False,
    ),
]
PlanOption = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="PLAN_ID",
        autocompletion=completion.plans,
        help="A stored plan in place of a file: its id, its start or end, an execution of "
        "the plan, or: last.",
    ),
]
DescriptionOption = Annotated[
    str | None,
    typer.Option(
        "--description", metavar="TEXT", help="The purpose of the flow: the goal of its executions."
    ),
]
DraftOption = Annotated[
    bool,
    typer.Option("--draft", help="Save a graph with errors, too: a draft that nothing starts."),
]
RevisionOption = Annotated[
    int | None,
    typer.Option(
        "--revision",
        metavar="N",
        min=1,
        help="A revision of the flow. [default: the live one, which callers start]",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Also remove what leads to its name: publication, triggers, notifications, its place in "
        "access tokens.",
    ),
]


flow_app.command()(inputs)


@flow_app.callback()
def flow() -> None:
    """Save graphs under a name, with their revisions, and run them."""


@flow_app.command()
@shared_options(over_http=True)
def save(
    ctx: CommandContext,
    name: NewNameArgument,
    file: FileArgument = None,
    plan: PlanOption = None,
    description: DescriptionOption = None,
    draft: DraftOption = False,
) -> None:
    """Save a graph or a plan under a name.

    The graph is checked first. A stored plan gets the name. Saving an unchanged graph again keeps the revision.

    For example:

    * `planwave flow save triage triage.json`
    * `planwave flow save "Weekly report" --plan last`
    * `planwave flow save triage unfinished.json --draft`
    """
    if (file is None) == (plan is None):
        raise InputError(
            "a flow is saved from a file or from a plan",
            code="usage",
            hint=f"{ctx.command_hint('flow save')} NAME FILE, or NAME --plan PLAN_ID",
        )
    source = None if file is None else read_source(file)

    async def save_it(backend: Backend) -> Flow:
        plan_id = None if plan is None else await find_plan(backend, plan)
        return await save_flow(backend, name, source, plan_id, description, draft=draft)

    saved = asyncio.run(_with_backend(ctx, save_it))
    console = ctx.console()
    if console.json:
        console.result(saved.as_json())
        return
    console.verbatim(
        f"{console.glyph('completed')} Saved {saved.name} as revision {saved.revision}"
    )
    if draft and saved.draft is not None and saved.draft["error_count"]:
        console.verbatim(
            f"It has {counted(saved.draft['error_count'], 'error')}: nothing starts it"
        )
        return
    if saved.draft is not None:
        approve = f"revisions {shlex.quote(saved.name)} --approve {saved.revision}"
        console.verbatim(f"Callers start it once it is approved: {ctx.command_hint(approve)}")
        return
    console.verbatim(f"Run it with: {ctx.command_hint(f'flow run {shlex.quote(saved.name)}')}")


@flow_app.command()
@shared_options(over_http=True)
def ls(ctx: CommandContext, limit: LimitOption = 20) -> None:
    """List flows, newest first.

    For example:

    * `planwave flow ls`
    """
    console = ctx.console()

    async def read(queries: Queries) -> Sequence[Mapping[str, Any]]:
        return await queries.flows.summaries(await queries.flows.list(limit=limit + 1))

    summaries = ctx.read(read)
    flows = summaries[:limit]
    if console.json:
        console.result({"flows": flows})
    elif flows:
        console.lines(flow_lines(console, flows))
        if len(summaries) > limit:
            pagination_hint(console, ctx, "flow ls", limit)
    else:
        where = ctx.place(ctx.settings())
        console.text(
            f"No flows in {where} yet. Save one with: {ctx.command_hint('flow save')} NAME FILE"
        )


@flow_app.command()
@shared_options(over_http=True)
def show(ctx: CommandContext, name: FlowArgument, revision: RevisionOption = None) -> None:
    """Show a flow: its graph and its revisions.

    For example:

    * `planwave flow show triage`
    * `planwave flow show triage --json --revision 2 > triage.json`
    """
    console = ctx.console()

    async def read(queries: Queries) -> tuple[Flow, Sequence[PlanRevision]]:
        flow = await find_flow(queries, name, revision)
        return flow, await queries.revisions.list(flow.plan_id, limit=_REVISIONS_SHOWN + 1)

    flow, revisions = ctx.read(read)
    if flow.inputs is None:
        flow = replace(flow, inputs=ctx.declared_inputs(flow.graph))
    if console.json:
        console.result(flow.as_json())
    else:
        show_flow(console, flow, revisions[:_REVISIONS_SHOWN])
        if len(revisions) > _REVISIONS_SHOWN:
            console.text("There are older entries.")


@flow_app.command()
@shared_options(over_http=True)
def rename(
    ctx: CommandContext,
    name: FlowArgument,
    new_name: Annotated[
        str, typer.Argument(metavar="NEW_NAME", help="Its new name.", show_default=False)
    ],
    force: ForceOption = False,
) -> None:
    """Change the name of a flow; its id, revisions and executions stay.

    For example:

    * `planwave flow rename triage "Triage of mails"`
    """

    async def change_name(backend: Backend) -> tuple[Flow, Flow]:
        flow = await find_flow(backend, name)
        return flow, await backend.flows.update(flow.plan_id, name=new_name, force=force)

    before, renamed = asyncio.run(_with_backend(ctx, change_name))
    console = ctx.console()
    if console.json:
        console.result(renamed.as_json())
    else:
        console.verbatim(f"{console.glyph('completed')} Renamed {before.name} to {renamed.name}")


@flow_app.command()
@shared_options(over_http=True)
def rm(
    ctx: CommandContext,
    name: FlowArgument,
    force: ForceOption = False,
    keep_plan: Annotated[
        bool, typer.Option("--keep-plan", help="Only take the name away; the plan stays.")
    ] = False,
) -> None:
    """Remove a flow with its revisions; its executions stay.

    For example:

    * `planwave flow rm triage`
    * `planwave flow rm triage --keep-plan`
    """
    flow = ctx.read(lambda queries: find_flow(queries, name, destroys=True))

    async def delete(backend: Backend) -> None:
        remove = backend.flows.remove_name if keep_plan else backend.flows.delete
        await remove(flow.plan_id, force=force)

    asyncio.run(_with_backend(ctx, delete))
    console = ctx.console()
    what = f"the name {flow.name}; the plan stays" if keep_plan else flow.name
    if console.json:
        console.result({"removed": flow.plan_id, "name": flow.name})
    else:
        console.verbatim(f"{console.glyph('completed')} Removed {what} ({flow.plan_id})")


@flow_app.command()
@shared_options(over_http=True)
def publish(
    ctx: CommandContext,
    name: FlowArgument,
    model: Annotated[
        bool | None,
        typer.Option("--model/--no-model", help="As a model of the OpenAI API (`/v1/models`)."),
    ] = None,
    tool: Annotated[
        bool | None, typer.Option("--tool/--no-tool", help="As a tool of the MCP server.")
    ] = None,
    hook: Annotated[
        bool | None,
        typer.Option("--hook/--no-hook", help="At the address of its `webhook` node."),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="As nothing at all.")] = False,
) -> None:
    """Publish a flow, so that other programs may call it; without options, show how it is published.

    Saving a flow publishes nothing. Options that are not given change nothing. For example:

    * `planwave flow publish triage --model`
    * `planwave flow publish triage --hook --no-model`
    * `planwave flow publish triage --none`
    """
    if none and any(each is not None for each in (model, tool, hook)):
        raise InputError(
            "--none is given together with what the flow is to be published as",
            code="usage",
            hint="give --none alone",
        )
    changes = dict.fromkeys(PUBLICATIONS, False) if none else _publication_changes(model, tool)

    async def change(backend: Backend) -> PublicationResponse:
        flow = await find_flow(backend, name)
        triggers = triggers_of(backend, ctx.settings())
        return await triggers.publish(flow.plan_id, changes, False if none else hook)

    published = asyncio.run(_with_backend(ctx, change))
    console = ctx.console()
    if console.json:
        console.result(published)
        return
    console.verbatim(f"{console.glyph('completed')} {published['name']} ({published['plan_id']})")
    console.lines(publication_lines(published))


@flow_app.command()
@shared_options(with_model=True, over_http=True)
def run(
    ctx: CommandContext,
    name: FlowArgument,
    revision: RevisionOption = None,
    saved: InputsOption = None,
    inputs: InputOption = None,
    set_result: SetResultOption = None,
    scheduling: SchedulingOption = Scheduling.EAGER,
    on_failure: OnFailureOption = OnFailure.CONTINUE,
    max_parallel: MaxParallelOption = None,
    run_to: RunToOption = None,
    run_from: RunFromOption = None,
    approve: ApproveOption = False,
    budget: BudgetOption = None,
    budget_tokens: BudgetTokensOption = None,
    replan: ReplanOption = None,
    replan_by_steps: ReplanByStepsOption = False,
) -> None:
    """Run a flow, with live progress, as `planwave exec` runs a file.

    For example:

    * `planwave flow run triage --input "The printer is on fire"`
    * `planwave flow run triage --input message=Hello --revision 2 --json`
    * `planwave flow run trip --inputs weekend --input days=3`
    """
    arguments = read_inputs(inputs or (), set_result or ())
    amounts = run_budget(budget, budget_tokens)
    options = run_options(
        scheduling, on_failure, max_parallel, run_to, run_from, amounts, replan, replan_by_steps
    )

    async def read(queries: Queries) -> tuple[Flow, Sequence[InputArgument]]:
        flow = await find_flow(queries, name, revision)
        begin = [] if saved is None else [dict(await find_input_set(queries, flow, saved))]
        return flow, [*begin, *arguments]

    flow, given = ctx.read(read)
    job = RunJob(flow=flow, options=options, inputs=given, require_approval=approve)
    run_and_exit(ctx, job)


def _publication_changes(model: bool | None, tool: bool | None) -> dict[Publication, bool]:
    chosen: dict[Publication, bool | None] = {"model": model, "tool": tool}
    return {each: value for each, value in chosen.items() if value is not None}


async def save_flow(
    backend: Backend,
    name: str,
    source: Source | None,
    plan_id: str | None,
    description: str | None,
    *,
    draft: bool = False,
) -> Flow:
    """Save a graph or a plan under a name; a flow of that name gets a new revision.

    Args:
        backend: Where flows are.
        name: The name, or the id, of the flow.
        source: The graph.
        plan_id: A stored plan, in place of a graph.
        description: The purpose of the flow.
        draft: Whether a graph with errors is saved, too.

    Raises:
        GraphInvalid: It can run nowhere; the message begins with the file or the plan.
    """
    graph = None if source is None else source.content
    name = name.strip()
    try:
        try:
            flow_id = await find_flow_id(backend, name, by_part=False)
        except NotFound:
            return await backend.flows.create(
                name, graph=graph, plan_id=plan_id, description=description, draft=draft
            )
        return await backend.flows.update(
            flow_id, graph=graph, graph_of=plan_id, description=description, draft=draft
        )
    except GraphInvalid as error:
        where = f"plan {plan_id}" if source is None else source.name
        raise GraphInvalid(error.diagnostics, f"{where}: {error.message}") from error


async def _with_backend(
    ctx: CommandContext, use: Callable[[Backend], Awaitable[_Result]]
) -> _Result:
    async with ctx.backend(ctx.settings()) as backend:
        return await use(backend)
