"""The work of ``run``, ``plan`` and ``exec``: a plan of a goal or a file, perhaps its execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planwave.cli.attending import attend
from planwave.cli.errors import ExitCode
from planwave.cli.inputs import Written
from planwave.cli.interrupt import Interrupt, Interrupted
from planwave.errors import PlanwaveError

if TYPE_CHECKING:
    from planwave.cli.options import Invocation
    from planwave.cli.reading import Source
    from planwave.cli.screen import Screen
    from planwave.cli.workplace import Workplace
    from planwave.executor.options import RunOptions
    from planwave.graph.plan import Plan
    from planwave.service.flow_history import Flow
    from planwave.settings import Settings

_UNPLANNED = "stopped while planning; nothing was run, and no plan was kept"


@dataclass(frozen=True)
class Work:
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
    inputs: Sequence[Written] = ()

    @property
    def is_planned(self) -> bool:
        """Whether there is nothing left to plan."""
        return self.source is not None or self.flow is not None


async def do(asked: Invocation, settings: Settings, work: Work) -> int:
    """Plan, perhaps run, and show it; gives the exit code.

    Raises:
        Interrupted: The person stopped it before anything ran.
        PlanwaveError: It could not be planned, or not be started.
    """
    screen = asked.screen()
    with Interrupt(screen) as interrupt:
        async with asked.workplace(settings) as place:
            try:
                made = await interrupt.cancelling(_plan(place, screen, work))
            except Interrupted as stopped:
                stopped.message = "stopped before anything ran" if work.is_planned else _UNPLANNED
                raise
            if work.options is not None:
                execution_id = await _start(asked, place, made, work)
                return await attend(asked, place, interrupt, execution_id)
    if screen.json:
        screen.result(made.as_json())
    else:
        screen.line()
        screen.whole(f"Kept; look again with: {asked.again(f'show {made.plan_id}')}")
    return ExitCode.OK


async def _plan(place: Workplace, screen: Screen, work: Work) -> Plan:
    from planwave.cli.plan_view import show_plan

    if work.flow is not None:
        made = await place.plan_flow(work.flow, work.inputs)
    elif work.source is not None:
        made = await place.plan_source(work.source, work.inputs)
    else:
        from planwave.cli.drafting import Draft, showing

        with showing(screen, Draft(place.author())) as tell:
            made = await place.plan_goal(work.goal, tell)
        screen.line()
    show_plan(screen, made)
    return made


async def _start(asked: Invocation, place: Workplace, made: Plan, work: Work) -> str:
    """Start a plan; gives the id of its execution, which is kept from here on."""
    try:
        return await place.start(made, work.inputs, work.options)
    except PlanwaveError as error:
        if not work.is_planned:
            kept = f"the plan is kept: {asked.again(f'show {made.plan_id}')}"
            error.hint = f"{error.hint}; {kept}" if error.hint else kept
        raise
