"""``planwave run``, ``plan`` and ``exec``: from a goal or a file to a watched, stored execution."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from planwave.cli.checking import FileArgument, read_source
from planwave.cli.errors import ExitCode
from planwave.cli.options import (
    Invocation,
    JsonFlag,
    ModelOption,
    ProviderOption,
    StorageOption,
    invocation,
)
from planwave.errors import Conflict, InputError

if TYPE_CHECKING:
    from planwave.cli.interrupt import Interrupt
    from planwave.cli.screen import Screen
    from planwave.executor.options import RunOptions
    from planwave.graph.plan import Plan
    from planwave.service.service import Service
    from planwave.settings import Settings


class Scheduling(StrEnum):
    """When nodes start."""

    EAGER = "eager"
    WAVES = "waves"


class OnFailure(StrEnum):
    """What happens to the rest when a node fails."""

    CONTINUE = "continue"
    STOP = "stop"


GoalArgument = Annotated[
    str,
    typer.Argument(metavar="GOAL", help="What you want, in your own words.", show_default=False),
]
SchedulingOption = Annotated[
    Scheduling,
    typer.Option(
        "--scheduling",
        help="eager: a step starts when what it needs is there. waves: one wave after the other.",
    ),
]
OnFailureOption = Annotated[
    OnFailure,
    typer.Option(
        "--on-failure",
        help="continue: finish everything that does not depend on the failure. stop: end early.",
    ),
]
MaxParallelOption = Annotated[
    int | None,
    typer.Option("--max-parallel", min=1, metavar="N", help="Steps at work at the same time."),
]
InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="INPUT",
        help="What an entry step gives: TEXT, NODE=TEXT, NODE:HANDLE=TEXT, or a JSON object "
        "{node: {handle: value}}. May be given several times.",
    ),
]


def run(
    ctx: typer.Context,
    goal: GoalArgument,
    scheduling: SchedulingOption = Scheduling.EAGER,
    on_failure: OnFailureOption = OnFailure.CONTINUE,
    max_parallel: MaxParallelOption = None,
    inputs: InputOption = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
) -> None:
    """Plan a goal and run the plan, with live progress.

    Every step's result is kept while it happens. Ctrl-C stops and keeps what is done; a second
    Ctrl-C leaves at once.

    For example:

    * `planwave run "Compare three ways to store time series data and recommend one"`
    * `planwave run "Write a haiku about tides" --provider anthropic --json > result.json`
    """
    asked = invocation(ctx, json=json, storage=storage, provider=provider, model=model)
    options = _options(scheduling, on_failure, max_parallel)
    _finish(asked, _Work(goal=goal, options=options, inputs=inputs or []))


def plan(
    ctx: typer.Context,
    goal: GoalArgument,
    json: JsonFlag = False,
    storage: StorageOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
) -> None:
    """Write a plan for a goal, show it and keep it; nothing runs.

    For example:

    * `planwave plan "Organise a two-day conference for 80 people"`
    * `planwave plan --json "Explain tides" > plan.json` (edit it, then: planwave exec plan.json)
    """
    asked = invocation(ctx, json=json, storage=storage, provider=provider, model=model)
    _finish(asked, _Work(goal=goal))


def exec_(
    ctx: typer.Context,
    file: FileArgument,
    scheduling: SchedulingOption = Scheduling.EAGER,
    on_failure: OnFailureOption = OnFailure.CONTINUE,
    max_parallel: MaxParallelOption = None,
    inputs: InputOption = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
) -> None:
    """Run a plan or graph from a file: made by hand, or printed by `planwave plan --json`.

    For example:

    * `planwave exec plan.json`
    * `planwave exec flow.json --input start="Hello" --scheduling waves`
    """
    asked = invocation(ctx, json=json, storage=storage, provider=provider, model=model)
    options = _options(scheduling, on_failure, max_parallel)
    _finish(asked, _Work(source=read_source(file), options=options, inputs=inputs or []))


class _Work:
    """What one command is to do: plan a goal or read a file, then perhaps run it."""

    def __init__(
        self,
        *,
        goal: str = "",
        source: bytes | None = None,
        options: RunOptions | None = None,
        inputs: list[str] | None = None,
    ) -> None:
        self.goal = goal
        self.source = source
        self.options = options
        self.inputs = inputs or []


def _options(scheduling: Scheduling, on_failure: OnFailure, max_parallel: int | None) -> RunOptions:
    from planwave.executor.options import RunOptions

    return RunOptions(scheduling.value, on_failure.value, max_parallel)


def _finish(asked: Invocation, work: _Work) -> None:
    """Do the work in an event loop and leave with its exit code."""
    from planwave.cli.fetching import fetch_missing

    screen, settings = asked.screen(), asked.settings()
    if work.source is None and not work.goal.strip():
        raise InputError(
            "the goal is empty", code="empty-goal", hint='say what you want: planwave run "GOAL"'
        )
    missing = _missing_model(asked, settings, work)
    if missing is not None:
        fetch_missing(screen, settings, missing)
    code = asyncio.run(_in_loop(lambda: asked.composition.service(settings), screen, work))
    if code:
        raise typer.Exit(code)


def _missing_model(asked: Invocation, settings: Settings, work: _Work) -> str | None:
    """Give the embedded model the work needs and this machine has not fetched yet."""
    providers, local = asked.composition.providers(settings)
    missing = local.missing_model()
    if missing is None:
        return None
    nobody_else = not any(info.available for info in providers.list())
    if work.source is None:
        chosen = settings.provider == "local" or (
            settings.provider is None and (nobody_else or settings.model == missing)
        )
        return missing if chosen else None
    from planwave.service.documents import check_source, is_provider_fault

    report = check_source(work.source, asked.composition.catalogue(settings), settings.limits)
    faulty = {found.node for found in report.diagnostics if is_provider_fault(found)}
    named = {
        node.data.get("provider")
        for node in (report.graph.nodes if report.graph else ())
        if node.id in faulty
    }
    wanted = "local" in named or (None in named and nobody_else)
    return missing if wanted else None


async def _in_loop(open_service: Callable[[], Service], screen: Screen, work: _Work) -> int:
    from planwave.cli.interrupt import Interrupt, Interrupted

    with Interrupt(screen) as interrupt:
        async with open_service() as service:
            try:
                made = await interrupt.cancelling(_plan(service, screen, work))
            except Interrupted:
                screen.error("stopped while planning; nothing was run, and no plan was kept")
                raise
            if work.options is not None:
                return await _run(service, screen, interrupt, made, work)
    if screen.json:
        screen.result(made.as_json())
    else:
        screen.line()
        screen.text(f"Kept; look again with: planwave show {made.plan_id}")
    return ExitCode.OK


async def _plan(service: Service, screen: Screen, work: _Work) -> Plan:
    from planwave.cli.plan_view import show_plan

    if work.source is not None:
        made = await service.plan_from_document(work.source)
    else:
        from planwave.cli.drafting import Draft, showing

        provider, model = service.providers.resolve(None, None)
        with showing(screen, Draft(f"{provider}/{model}")) as tell:
            made = await service.create_plan(work.goal, on_progress=tell)
    show_plan(screen, made)
    return made


async def _run(
    service: Service, screen: Screen, interrupt: Interrupt, made: Plan, work: _Work
) -> int:
    from planwave.cli.inputs import inputs_of
    from planwave.cli.progress import RunProgress
    from planwave.cli.result_view import show_result
    from planwave.cli.run_view import follow
    from planwave.graph.shape import shape

    inputs = inputs_of(work.inputs, made.graph, service.catalogue)
    record = await service.execute(made.plan_id, inputs=inputs, options=work.options)
    execution_id = record.execution_id

    async def stop() -> None:
        with suppress(Conflict):
            await service.cancel(execution_id, "interrupted by the person at the terminal")

    screen.line()
    progress = RunProgress(made.graph, shape(made.graph).waves)
    async with asyncio.TaskGroup() as tasks:
        with interrupt.stopping(lambda: tasks.create_task(stop())):
            await follow(screen, progress, service.watch(execution_id))
            record = await service.wait(execution_id)
    document = await service.document(execution_id)
    path = service.document_path(execution_id)
    show_result(screen, document, path)
    if interrupt.received is not None and record.status == "cancelled":
        screen.error(
            "interrupted; everything that was done is kept",
            f"see it with: planwave show {execution_id}",
        )
        return 128 + interrupt.received
    return ExitCode.OK if record.status == "completed" else ExitCode.FAILED
