"""``planwave pause``, ``resume`` and ``cancel``: what executions that run, or rest, are told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from planwave.cli.errors import ExitCode
from planwave.cli.interrupt import Interrupt
from planwave.cli.options import Invocation, JsonFlag, StorageOption, invocation
from planwave.cli.watching import ExecutionArgument, find_execution
from planwave.cli.wording import one_line

if TYPE_CHECKING:
    from planwave.cli.workplace import Workplace


def pause(
    ctx: typer.Context,
    name: ExecutionArgument,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Have nothing more of an execution started; steps at work go on to their end.

    For example:

    * `planwave pause last`
    """
    asked = invocation(ctx, json, storage)

    async def tell(place: Workplace, execution_id: str, interrupt: Interrupt) -> Told:
        await place.pause(execution_id)
        again = asked.again(f"resume {execution_id}")
        done = f"Paused {execution_id}; steps at work go on to their end"
        return Told("paused", done, f"Have it go on with: {again}", goes_on=False)

    finish(tell_execution(asked, name, tell))


def resume(
    ctx: typer.Context,
    name: ExecutionArgument,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Have an execution go on that was paused, set aside, or cut off with its process.

    While no server holds the storage, this command itself runs it on, until it ends or waits.

    For example:

    * `planwave resume last`
    """
    asked = invocation(ctx, json, storage)

    async def tell(place: Workplace, execution_id: str, interrupt: Interrupt) -> Told:
        await place.resume(execution_id)
        again = asked.again(f"watch {execution_id}")
        return Told("executing", f"{execution_id} goes on", f"Watch it with: {again}")

    finish(tell_execution(asked, name, tell))


def cancel(
    ctx: typer.Context,
    name: ExecutionArgument,
    node: Annotated[
        str | None,
        typer.Option(
            "--node", metavar="PATH", help="Stop only this step; what depends on it is blocked."
        ),
    ] = None,
    json: JsonFlag = False,
    storage: StorageOption = None,
) -> None:
    """Stop an execution for good, running or not; what was done is kept.

    For example:

    * `planwave cancel last`
    * `planwave cancel last --node research` (what does not need it goes on)
    """
    asked = invocation(ctx, json, storage)

    async def tell(place: Workplace, execution_id: str, interrupt: Interrupt) -> Told:
        see = f"See it with: {asked.again(f'show {execution_id}')}"
        if node is None:
            await place.cancel(execution_id)
            done = f"Cancelled {execution_id}; what was done is kept"
            return Told("cancelled", done, see, goes_on=False, status="cancelled")
        await place.cancel(execution_id, node=node)
        return Told("cancelled", f"Cancelled step {one_line(node)} of {execution_id}", see)

    finish(tell_execution(asked, name, tell))


class Told(NamedTuple):
    """What a command did to an execution.

    Attributes:
        look: The status whose sign is shown with it.
        done: What was done, a sentence.
        next: What to do next.
        goes_on: Whether the execution may go on by it; if it is run here, it is attended to.
        facts: Told with ``--json``, beside id and status.
        status: What it has by then; None where its document tells.
    """

    look: str
    done: str
    next: str
    goes_on: bool = True
    facts: Mapping[str, Any] = {}
    status: str | None = None


Tell = Callable[["Workplace", str, Interrupt], Awaitable[Told | None]]
"""Tells an execution something; None where the person left it."""


def finish(code: int) -> None:
    """Leave with an exit code."""
    if code:
        raise typer.Exit(code)


def tell_execution(asked: Invocation, name: str, tell: Tell) -> int:
    """Tell an execution something where it is run, or here, where it then goes on to its rest.

    Raises:
        NotFound, InputError: There is no such execution.
        PlanwaveError: Whatever ``tell`` raises.
    """
    return asyncio.run(_tell(asked, name, tell))


async def _tell(asked: Invocation, name: str, tell: Tell) -> int:
    from planwave.cli.attending import attend

    screen, settings = asked.screen(), asked.settings()
    async with asked.history(settings) as history:
        execution_id = await find_execution(history, name)
    with Interrupt(screen) as interrupt:
        async with asked.workplace(settings) as place:
            # A server's own record needs its events, and what has lost them can be cancelled yet.
            before = (await place.keeper.execution(execution_id)).last_seq if place.runs_here else 0
            told = await tell(place, execution_id, interrupt)
            if told is None:
                return ExitCode.OK
            if told.goes_on and place.runs_here:
                return await attend(asked, place, interrupt, execution_id, after=before)
            status = told.status or str((await place.document(execution_id))["status"])
    if screen.json:
        screen.result({"execution_id": execution_id, "status": status, **told.facts})
        return ExitCode.OK
    screen.whole(f"{screen.glyph(told.look)} {told.done}")
    screen.whole(told.next)
    return ExitCode.OK
