"""The work of ``run``, ``plan`` and ``exec``: a plan of a goal or a file, perhaps its execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planwave.cli.attending import follow_run
from planwave.cli.errors import ExitCode
from planwave.cli.inputs import InputArgument
from planwave.cli.interrupt import Interrupt, Interrupted
from planwave.errors import PlanwaveError

if TYPE_CHECKING:
    from planwave.cli.options import CommandContext
    from planwave.cli.reading import Source
    from planwave.cli.screen import CommandConsole
    from planwave.cli.workplace import Backend
    from planwave.executor.options import RunOptions
    from planwave.graph.plan import Plan
    from planwave.service.flow_history import Flow
    from planwave.settings import Settings

_STOPPED_WHILE_PLANNING = "stopped while planning; nothing was run, and no plan was kept"


@dataclass(frozen=True)
class RunJob:
    """What one command is to do.

    Attributes:
        goal: What is to be planned, where there is no source.
        source: A plan or graph that was written already.
        flow: A version of a flow, in place of both.
        options: How to run; None only plans.
        inputs: What the execution is given, as far as it could be read without the graph.
    """

    goal: str = ""
    source: Source | None = None
    flow: Flow | None = None
    options: RunOptions | None = None
    inputs: Sequence[InputArgument] = ()

    @property
    def is_planned(self) -> bool:
        """Whether there is nothing left to plan."""
        return self.source is not None or self.flow is not None


async def run_job(ctx: CommandContext, settings: Settings, job: RunJob) -> int:
    """Plan, perhaps run, and show it; gives the exit code.

    Raises:
        Interrupted: The person stopped it before anything ran.
        PlanwaveError: It could not be planned, or not be started.
    """
    screen = ctx.console()
    with Interrupt(screen) as interrupt:
        async with ctx.backend(settings) as place:
            try:
                made = await interrupt.cancel_on_signal(_make_plan(place, screen, job))
            except Interrupted as stopped:
                stopped.message = "stopped before anything ran" if job.is_planned else _STOPPED_WHILE_PLANNING
                raise
            if job.options is not None:
                execution_id = await _start_execution(ctx, place, made, job)
                return await follow_run(ctx, place, interrupt, execution_id)
    if screen.json:
        screen.result(made.as_json())
    else:
        screen.line()
        screen.verbatim(f"Kept; look again with: {ctx.command_hint(f'show {made.plan_id}')}")
    return ExitCode.OK


async def _make_plan(backend: Backend, screen: CommandConsole, job: RunJob) -> Plan:
    from planwave.cli.plan_view import show_plan

    if job.flow is not None:
        made = await backend.plan_flow(job.flow, job.inputs)
    elif job.source is not None:
        made = await backend.plan_source(job.source, job.inputs)
    else:
        from planwave.cli.drafting import PlanDraft, live_draft

        with live_draft(screen, PlanDraft(backend.planner_name())) as tell:
            made = await backend.plan_goal(job.goal, tell)
        screen.line()
    show_plan(screen, made)
    return made


async def _start_execution(ctx: CommandContext, backend: Backend, made: Plan, job: RunJob) -> str:
    """Start a plan; gives the id of its execution, which is kept from here on."""
    try:
        return await backend.start(made, job.inputs, job.options)
    except PlanwaveError as error:
        if not job.is_planned:
            kept = f"the plan is kept: {ctx.command_hint(f'show {made.plan_id}')}"
            error.hint = f"{error.hint}; {kept}" if error.hint else kept
        raise
