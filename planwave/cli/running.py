"""``planwave run``, ``plan`` and ``exec``: from a goal or a file to a watched, stored execution."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from planwave.cli.inputs import read_inputs
from planwave.cli.options import (
    FileArgument,
    GoalArgument,
    InputOption,
    CommandContext,
    JsonFlag,
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
from planwave.cli.reading import read_goal, read_source, flow_source
from planwave.cli.work import RunJob, run_job

if TYPE_CHECKING:
    from planwave.executor.options import RunOptions


def run(
    typer_ctx: typer.Context,
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
    Ctrl-C leaves at once. Where a step asks for a decision, you are asked; without a terminal the run
    stops there, and `planwave answer` lets it go on.

    For example:

    * `planwave run "Compare three ways to store time series data and recommend one"`
    * `planwave run "Write a haiku about tides" --provider anthropic --json > result.json`
    * `planwave run - < goal.txt`
    """
    asked = command_context(typer_ctx, json, storage, provider, model)
    options = run_options(scheduling, on_failure, max_parallel)
    run_and_exit(asked, RunJob(goal=read_goal(goal), options=options, inputs=read_inputs(inputs or ())))


def plan(
    typer_ctx: typer.Context,
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
    asked = command_context(typer_ctx, json, storage, provider, model)
    run_and_exit(asked, RunJob(goal=read_goal(goal)))


def exec_(
    typer_ctx: typer.Context,
    file: FileArgument,
    scheduling: SchedulingOption = Scheduling.EAGER,
    on_failure: OnFailureOption = OnFailure.CONTINUE,
    max_parallel: MaxParallelOption = None,
    run_to: RunToOption = None,
    run_from: RunFromOption = None,
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
    * `planwave exec flow.json --run-to summary`
    """
    asked = command_context(typer_ctx, json, storage, provider, model)
    options = run_options(scheduling, on_failure, max_parallel, run_to, run_from)
    run_and_exit(asked, RunJob(source=read_source(file), options=options, inputs=read_inputs(inputs or ())))


def run_options(
    scheduling: Scheduling,
    on_failure: OnFailure,
    max_parallel: int | None,
    run_to: Sequence[str] | None = None,
    run_from: Sequence[str] | None = None,
) -> RunOptions:
    """Give how to run."""
    from planwave.executor.options import RunOptions

    return RunOptions(
        scheduling.value,
        on_failure.value,
        max_parallel,
        run_to=tuple(run_to or ()),
        run_from=tuple(run_from or ()),
    )


def run_and_exit(ctx: CommandContext, job: RunJob) -> None:
    """Do the work in an event loop and leave with its exit code."""
    from planwave.cli.fetching import download_model, missing_model
    from planwave.planner.planner import check_goal

    settings = ctx.settings()
    if not job.is_planned:
        check_goal(job.goal, settings.limits)
    if ctx.running_service(settings) is None:  # a service has its own models
        source = job.source if job.flow is None else flow_source(job.flow)
        missing = missing_model(ctx.factories, settings, source)
        if missing is not None:
            download_model(ctx.console(), settings, missing)
    code = asyncio.run(run_job(ctx, settings, job))
    if code:
        raise typer.Exit(code)
