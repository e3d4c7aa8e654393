"""``planwave run``, ``plan`` and ``exec``: from a goal or a file to a followed, stored execution."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import typer

from planwave.cli.commands.models import download_model, missing_model
from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode
from planwave.cli.follow_run import follow_run
from planwave.cli.inputs import (
    InputArgument,
    flow_source,
    nodes_with_input,
    read_goal,
    read_inputs,
    titled_source,
)
from planwave.cli.options import (
    AnswerOption,
    ApproveOption,
    BudgetOption,
    BudgetTokensOption,
    FileArgument,
    GoalArgument,
    InputOption,
    MaxParallelOption,
    OnFailure,
    OnFailureOption,
    QuestionsOption,
    ReplanByStepsOption,
    ReplanOption,
    RunFromOption,
    RunToOption,
    Scheduling,
    SchedulingOption,
    SetResultOption,
    shared_options,
)
from planwave.cli.prompts import terminal_prompter
from planwave.cli.questions import ask_questions, read_answers
from planwave.cli.signals import Interrupt, Interrupted
from planwave.cli.views.plan import PlanDraft, live_draft, show_plan
from planwave.errors import PlanwaveError
from planwave.executor.options import RunOptions
from planwave.storage.ownership import require_trusted

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.cli.console import CommandConsole
    from planwave.cli.context import CommandContext
    from planwave.cli.inputs import Source
    from planwave.graph.model import Graph
    from planwave.graph.plan import Plan
    from planwave.service.flows.flow_queries import Flow
    from planwave.settings import Settings


@shared_options(with_model=True, untrusted="ask", over_http=True)
def run(
    ctx: CommandContext,
    goal: GoalArgument,
    scheduling: SchedulingOption = Scheduling.EAGER,
    on_failure: OnFailureOption = OnFailure.CONTINUE,
    max_parallel: MaxParallelOption = None,
    inputs: InputOption = None,
    approve: ApproveOption = False,
    budget: BudgetOption = None,
    budget_tokens: BudgetTokensOption = None,
    replan: ReplanOption = None,
    replan_by_steps: ReplanByStepsOption = False,
    answers: AnswerOption = None,
    questions: QuestionsOption = None,
) -> None:
    """Plan a goal and run the plan, with live progress.

    Every step's result is stored at once. Ctrl-C stops the run and keeps its results; a second
    Ctrl-C exits at once. If a step needs a decision, the terminal shows its question; without a
    terminal the run stops there, and `planwave answer` resumes it.

    For example:

    * `planwave run "Compare three ways to store time series data and recommend one"`
    * `planwave run "Write a haiku about tides" --provider anthropic --json > result.json`
    * `planwave run - < goal.txt`
    * `planwave run --approve "Tidy up my notes"`
    * `planwave run --replan 2 "Compare three heat pumps"` (a step that fails has the plan changed)
    """
    amounts = run_budget(budget, budget_tokens)
    options = run_options(
        scheduling,
        on_failure,
        max_parallel,
        budget=amounts,
        replan=replan,
        replan_by_steps=replan_by_steps,
    )
    run_and_exit(
        ctx,
        RunJob(
            goal=read_goal(goal),
            options=options,
            inputs=read_inputs(inputs or ()),
            require_approval=approve,
            answers=read_answers(answers or ()),
            asks=questions,
        ),
    )


@shared_options(with_model=True, untrusted="ask", over_http=True)
def plan(
    ctx: CommandContext,
    goal: GoalArgument,
    answers: AnswerOption = None,
    questions: QuestionsOption = None,
) -> None:
    """Plan a goal, show the plan and store it; nothing runs.

    Where the goal leaves something open, the plan assumes answers and says which. `--questions` asks you first.

    For example:

    * `planwave plan "Organise a two-day conference for 80 people"`
    * `planwave plan --json "Explain tides" > plan.json` (edit it, then: planwave exec plan.json)
    """
    answered = read_answers(answers or ())
    run_and_exit(ctx, RunJob(goal=read_goal(goal), answers=answered, asks=questions))


@shared_options(with_model=True, untrusted="ask", over_http=True)
def exec_(
    ctx: CommandContext,
    file: FileArgument,
    scheduling: SchedulingOption = Scheduling.EAGER,
    on_failure: OnFailureOption = OnFailure.CONTINUE,
    max_parallel: MaxParallelOption = None,
    run_to: RunToOption = None,
    run_from: RunFromOption = None,
    inputs: InputOption = None,
    set_result: SetResultOption = None,
    approve: ApproveOption = False,
    budget: BudgetOption = None,
    budget_tokens: BudgetTokensOption = None,
    replan: ReplanOption = None,
    replan_by_steps: ReplanByStepsOption = False,
) -> None:
    """Run a plan or graph from a file: made by hand, or printed by `planwave plan --json`.

    For example:

    * `planwave exec plan.json`
    * `planwave exec flow.json --input start="Hello" --scheduling waves`
    * `planwave exec flow.json --run-to summary`
    """
    amounts = run_budget(budget, budget_tokens)
    options = run_options(
        scheduling, on_failure, max_parallel, run_to, run_from, amounts, replan, replan_by_steps
    )
    run_and_exit(
        ctx,
        RunJob(
            source=titled_source(file),
            options=options,
            inputs=read_inputs(inputs or (), set_result or ()),
            require_approval=approve,
        ),
    )


def run_options(
    scheduling: Scheduling,
    on_failure: OnFailure,
    max_parallel: int | None,
    run_to: Sequence[str] | None = None,
    run_from: Sequence[str] | None = None,
    budget: Mapping[str, float] | None = None,
    replan: int | None = None,
    replan_by_steps: bool = False,
) -> RunOptions:
    """Return the run options given on the command line."""
    return RunOptions(
        scheduling.value,
        on_failure.value,
        max_parallel,
        run_to=tuple(run_to or ()),
        run_from=tuple(run_from or ()),
        budget=budget,
        replan=_replan(replan, replan_by_steps),
    )


def _replan(most: int | None, by_steps: bool) -> dict[str, int] | None:
    bounds = {} if most is None else {"on_failure": True, "max": most}
    return {**bounds, "by_nodes": True} if by_steps else bounds or None


def run_budget(usd: float | None, tokens: int | None) -> dict[str, float] | None:
    """Return the budget given on the command line; None without one."""
    amounts = {"usd": usd, "tokens": tokens}
    return {name: most for name, most in amounts.items() if most is not None} or None


def run_and_exit(ctx: CommandContext, job: RunJob) -> None:
    """Run a job in an event loop and exit with its exit code."""
    settings = ctx.settings()
    if ctx.service_url is None:
        require_trusted(settings)
    if not job.is_planned:
        # Lazy: test_help_loads_no_heavy_library
        from planwave.planner.planner import check_goal

        check_goal(job.goal, settings.limits, job.answers)
    if ctx.running_service(settings) is None:  # a service uses its own models
        source = job.source if job.flow is None else flow_source(job.flow)
        missing = missing_model(ctx.factories, settings, source)
        if missing is not None:
            download_model(ctx.console(), settings, missing)
    code = asyncio.run(run_job(ctx, settings, job))
    if code:
        raise typer.Exit(code)


_STOPPED = "stopped before anything ran"
_STOPPED_WHILE_PLANNING = "stopped while planning; nothing was run, and no plan was stored"


@dataclass(frozen=True)
class RunJob:
    """The job of one command.

    Attributes:
        goal: The goal to plan, without a source.
        source: A finished plan or graph.
        flow: A version of a flow, in place of goal and source.
        options: The run options; None to plan only.
        inputs: The inputs of the execution, as far as they were parsed without the graph.
        require_approval: Ask before the first node starts.
        answers: Answers to questions that the goal leaves open.
        asks: Whether to ask on the terminal what is open; None where the settings say it.
    """

    goal: str = ""
    source: Source | None = None
    flow: Flow | None = None
    options: RunOptions | None = None
    inputs: Sequence[InputArgument] = ()
    require_approval: bool = False
    answers: Mapping[str, str] = field(default_factory=dict[str, str])
    asks: bool | None = None

    @property
    def is_planned(self) -> bool:
        """Whether there is nothing left to plan."""
        return self.source is not None or self.flow is not None


async def run_job(ctx: CommandContext, settings: Settings, job: RunJob) -> int:
    """Plan, run if the job has options, and show the result; return the exit code.

    Raises:
        Interrupted: The user stopped the command before a run started.
        PlanwaveError: Planning or starting failed.
    """
    console = ctx.console()
    if job.asks is None:
        job = replace(job, asks=settings.ask_questions)
    with Interrupt(console) as interrupt:
        async with ctx.backend(settings, interrupt) as backend:
            try:
                plan = await interrupt.cancel_on_signal(_make_plan(backend, console, settings, job))
            except Interrupted as stopped:
                has_plan = job.is_planned or job.asks  # it may have been stopped at a question
                stopped.message = _STOPPED if has_plan else _STOPPED_WHILE_PLANNING
                raise
            if job.options is not None:
                _note_missing_inputs(console, plan.graph, job)
                execution_id = await _start_execution(ctx, backend, plan, job)
                return await follow_run(ctx, backend, interrupt, execution_id)
    if console.json:
        console.result(plan.as_json())
    else:
        console.line()
        console.verbatim(f"Stored; show it with: {ctx.command_hint(f'show {plan.plan_id}')}")
    return ExitCode.OK


async def _make_plan(
    backend: Backend, console: CommandConsole, settings: Settings, job: RunJob
) -> Plan:
    if job.flow is not None:
        plan = await backend.plan_flow(job.flow, job.inputs)
    elif job.source is not None:
        plan = await backend.plan_source(job.source, job.inputs)
    else:
        plan = await _plan_goal(backend, console, job.goal, job.answers)
        prompter = terminal_prompter(console) if job.asks else None
        answers = await ask_questions(console, prompter, plan.questions)
        if answers is not None:
            unseen, plan = plan, await _plan_goal(backend, console, job.goal, answers)
            await backend.plans.delete(unseen.plan_id)
    usual = {"usd": settings.limits.budget_usd, "tokens": settings.limits.budget_tokens}
    budget = {} if job.options is None else job.options.budget_limits
    show_plan(console, plan, budget={**usual, **budget}, has_answer_option=not job.is_planned)
    return plan


async def _plan_goal(
    backend: Backend, console: CommandConsole, goal: str, answers: Mapping[str, str]
) -> Plan:
    with live_draft(console, PlanDraft(backend.planner_name())) as tell:
        plan = await backend.plan_goal(goal, tell, answers)
    console.line()
    return plan


def _note_missing_inputs(console: CommandConsole, graph: Graph, job: RunJob) -> None:
    """Note the entry nodes that begin with an empty value, in a graph from a file or a flow."""
    if not job.is_planned or job.options is None or job.options.run_from:
        return
    # Lazy: test_help_loads_no_heavy_library
    from planwave.nodes.checking.entries import entries_without_input
    from planwave.nodes.registry import default_registry

    node_ids = nodes_with_input(job.inputs, graph)
    for node_id in entries_without_input(graph, default_registry(), node_ids):
        console.note(f"the entry node {node_id!r} has no input and begins with an empty value")
        console.hint(f"give it one: --input {node_id}=TEXT")


async def _start_execution(ctx: CommandContext, backend: Backend, plan: Plan, job: RunJob) -> str:
    """Start a plan; return the id of its execution, which is stored by then."""
    try:
        return await backend.start(
            plan, job.inputs, job.options, require_approval=job.require_approval
        )
    except PlanwaveError as error:
        if not job.is_planned:
            note = f"the plan is stored: {ctx.command_hint(f'show {plan.plan_id}')}"
            error.hint = f"{error.hint}; {note}" if error.hint else note
        raise
