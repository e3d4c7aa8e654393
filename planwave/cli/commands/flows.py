"""``planwave flow``: graphs saved under a name, to be run many times."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from planwave.cli.commands.run import RunJob, run_and_exit, run_options
from planwave.cli.inputs import read_inputs, read_source
from planwave.cli.options import (
    CommandContext,
    InputOption,
    JsonFlag,
    LimitOption,
    MaxParallelOption,
    ModelOption,
    OnFailure,
    OnFailureOption,
    ProviderOption,
    RunFromOption,
    RunToOption,
    Scheduling,
    SchedulingOption,
    StorageOption,
    command_context,
)
from planwave.errors import GraphInvalid, InputError, NotFound

if TYPE_CHECKING:
    from planwave.cli.backends.remote import RemoteBackend
    from planwave.cli.inputs import Source
    from planwave.service.flows.flow_queries import Flow
    from planwave.service.queries.history import QueryService
    from planwave.service.service import Service
    from planwave.storage.records import FlowVersion

_VERSIONS_SHOWN: Final = 20
_Result = TypeVar("_Result")

flow_app = typer.Typer(
    help="Flows: graphs saved under a name, to be run many times.",
    no_args_is_help=True,
    add_completion=False,
)

NameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME_OR_ID",
        help="A flow, by its name, its id, or the unique start of its id.",
        show_default=False,
    ),
]
NewNameArgument = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="What it is called. A flow of that name, or id, gets a new version.",
        show_default=False,
    ),
]
FileArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE", help="A graph {nodes, edges}, or a plan; - is stdin.", show_default=False
    ),
]
PlanOption = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="PLAN_ID",
        help="A plan that is kept, in place of a file: its id, the unique start of it, or that of "
        "an execution of it; or: last.",
    ),
]
DescriptionOption = Annotated[
    str | None,
    typer.Option("--description", metavar="TEXT", help="What it is for: the goal of its runs."),
]
VersionOption = Annotated[
    str | None,
    typer.Option(
        "--version",
        metavar="VERSION",
        help="One of its versions, or the unique start of one. [default: the present one]",
    ),
]


@flow_app.callback()
def flow() -> None:
    """Keep graphs under a name, with every version they had, and run them."""


@flow_app.command()
def save(
    typer_ctx: typer.Context,
    name: NewNameArgument,
    file: FileArgument = None,
    plan: PlanOption = None,
    description: DescriptionOption = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Save a graph or a plan under a name.

    It is checked first. What is saved again unchanged stays the same version.

    For example:

    * `planwave flow save triage triage.json`
    * `planwave flow save "Weekly report" --plan last`
    """
    asked = command_context(typer_ctx, json, storage)
    if (file is None) == (plan is None):
        raise InputError(
            "a flow is saved from a file or from a plan",
            code="usage",
            hint=f"{asked.command_hint('flow save')} NAME FILE, or NAME --plan PLAN_ID",
        )
    source = None if file is None else read_source(file)

    async def change(keeper: Service | RemoteBackend) -> Flow:
        plan_id = None if plan is None else await _find_plan(keeper, plan)
        return await _save_flow(keeper, name, source, plan_id, description)

    kept = asyncio.run(_with_service(asked, change))
    screen = asked.console()
    if screen.json:
        screen.result(kept.as_json())
        return
    screen.verbatim(
        f"{screen.glyph('completed')} Saved {kept.name} as revision {kept.revision}, "
        f"version {kept.version}"
    )
    screen.verbatim(f"Run it with: {asked.command_hint(f'flow run {kept.flow_id}')}")


@flow_app.command()
def ls(
    typer_ctx: typer.Context,
    limit: LimitOption = 20,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """List flows, newest first.

    For example:

    * `planwave flow ls`
    """
    from planwave.cli.commands.browse import pagination_hint
    from planwave.cli.views.flow import flow_line

    asked = command_context(typer_ctx, json, storage)
    screen = asked.console()
    found = asked.read(lambda history: history.flows(limit=limit + 1))
    flows = found[:limit]
    if screen.json:
        screen.result({"flows": [asdict(each) for each in flows]})
    elif flows:
        screen.lines(flow_line(screen, each) for each in flows)
        if len(found) > limit:
            pagination_hint(screen, asked, "flow ls", limit)
    else:
        where = asked.settings().storage_dir
        screen.text(
            f"No flows in {where} yet. Save one with: {asked.command_hint('flow save')} NAME FILE"
        )


@flow_app.command()
def show(
    typer_ctx: typer.Context,
    name: NameArgument,
    version: VersionOption = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Show a flow: its graph and its versions.

    For example:

    * `planwave flow show triage`
    * `planwave flow show triage --json --version 3f0c > triage.json`
    """
    from planwave.cli.views.flow import show_flow

    asked = command_context(typer_ctx, json, storage)
    screen = asked.console()

    async def read(history: QueryService) -> tuple[Flow, list[FlowVersion]]:
        found = await _find_flow(history, name, version)
        return found, [*await history.flow_versions(found.flow_id, limit=_VERSIONS_SHOWN + 1)]

    found, versions = asked.read(read)
    if screen.json:
        screen.result(found.as_json())
    else:
        show_flow(screen, found, versions[:_VERSIONS_SHOWN])
        if len(versions) > _VERSIONS_SHOWN:
            screen.text("There are older ones.")


@flow_app.command()
def rm(
    typer_ctx: typer.Context,
    name: NameArgument,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Remove a flow with all its versions; its executions stay.

    For example:

    * `planwave flow rm triage`
    """
    asked = command_context(typer_ctx, json, storage)

    gone = asked.read(lambda history: _find_flow(history, name, None))

    async def remove(keeper: Service | RemoteBackend) -> None:
        await keeper.delete_flow(gone.flow_id)

    asyncio.run(_with_service(asked, remove))
    screen = asked.console()
    if screen.json:
        screen.result({"removed": gone.flow_id, "name": gone.name})
    else:
        screen.verbatim(f"{screen.glyph('completed')} Removed {gone.name} ({gone.flow_id})")


@flow_app.command()
def run(
    typer_ctx: typer.Context,
    name: NameArgument,
    version: VersionOption = None,
    inputs: InputOption = None,
    scheduling: SchedulingOption = Scheduling.EAGER,
    on_failure: OnFailureOption = OnFailure.CONTINUE,
    max_parallel: MaxParallelOption = None,
    run_to: RunToOption = None,
    run_from: RunFromOption = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
) -> None:
    """Run a flow, with live progress, as `planwave exec` runs a file.

    For example:

    * `planwave flow run triage --input "The printer is on fire"`
    * `planwave flow run triage --input message=Hello --version 3f0c --json`
    """
    asked = command_context(typer_ctx, json, storage, provider, model)
    given = read_inputs(inputs or ())
    options = run_options(scheduling, on_failure, max_parallel, run_to, run_from)
    found = asked.read(lambda history: _find_flow(history, name, version))
    run_and_exit(asked, RunJob(flow=found, options=options, inputs=given))


async def _find_flow(history: QueryService, name: str, version: str | None) -> Flow:
    flow_id = await history.find_flow(name)
    if version is not None:
        version = await history.find_version(flow_id, version)
    return await history.flow(flow_id, version)


async def _find_plan(service: Service | RemoteBackend, name: str) -> str:
    """Give the id of a plan that is named by itself, or by an execution of it."""
    found = await service.find(name)
    if found.kind == "plan":
        return found.id
    plan_id = (await service.execution(found.id)).plan_id
    if plan_id is None:
        raise InputError(f"execution {found.id} has no plan", hint="name a plan, or a file")
    return plan_id


async def _save_flow(
    service: Service | RemoteBackend,
    name: str,
    source: Source | None,
    plan_id: str | None,
    description: str | None,
) -> Flow:
    graph = None if source is None else source.content
    name = name.strip()
    try:
        try:
            flow_id = await service.find_flow(name, by_start=False)
        except NotFound:
            return await service.create_flow(
                name, graph=graph, plan_id=plan_id, description=description
            )
        return await service.update_flow(
            flow_id, graph=graph, plan_id=plan_id, description=description
        )
    except GraphInvalid as error:
        where = f"plan {plan_id}" if source is None else source.name
        raise GraphInvalid(error.diagnostics, f"{where}: {error.message}") from error


async def _with_service(
    ctx: CommandContext, change: Callable[[Service | RemoteBackend], Awaitable[_Result]]
) -> _Result:
    async with ctx.backend(ctx.settings()) as place:
        return await change(place.service)
