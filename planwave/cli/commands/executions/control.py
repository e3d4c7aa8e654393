"""``planwave pause``, ``resume`` and ``cancel``: commands to running or paused executions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from planwave.cli import completion
from planwave.cli.context import CommandContext
from planwave.cli.errors import ExitCode
from planwave.cli.follow_run import follow_run, show_models
from planwave.cli.formatting import clock_time, one_line
from planwave.cli.lookup import find_execution
from planwave.cli.options import ExecutionArgument, shared_options
from planwave.cli.signals import Interrupt
from planwave.cli.views.result import answer_command
from planwave.errors import Conflict
from planwave.events.request_text import end_of_timer, is_timer

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend


@shared_options(over_http=True)
def pause(ctx: CommandContext, name: ExecutionArgument) -> None:
    """Pause an execution: no further step starts, running steps end.

    For example:

    * `planwave pause last`
    """

    async def tell(backend: Backend, execution_id: str, interrupt: Interrupt) -> CommandResult:
        await backend.executions.pause(execution_id)
        again = ctx.command_hint(f"resume {execution_id}")
        done = f"Paused {execution_id}; running steps end first"
        return CommandResult("paused", done, f"Resume it with: {again}", may_continue=False)

    exit_with(send_command(ctx, name, tell))


@shared_options(over_http=True)
def resume(ctx: CommandContext, name: ExecutionArgument) -> None:
    """Resume an execution that was paused, set aside, or interrupted with its process.

    A server or a command in another terminal that uses the storage directory continues it; without
    one, this command runs the execution itself, until it ends or waits.

    For example:

    * `planwave resume last`
    """

    async def tell(backend: Backend, execution_id: str, interrupt: Interrupt) -> CommandResult:
        try:
            await backend.resume(execution_id)
        except Conflict as error:
            if error.code != "not-paused":
                raise
            raise await _still_waiting(ctx, backend, execution_id) or error from error
        again = ctx.command_hint(f"watch {execution_id}")
        return CommandResult("executing", f"Resumed {execution_id}", f"Watch it with: {again}")

    exit_with(send_command(ctx, name, tell))


async def _still_waiting(
    ctx: CommandContext, backend: Backend, execution_id: str
) -> Conflict | None:
    """Return the error that says what an execution waits for and what to do; None if for nothing."""
    pending = next(iter(await backend.executions.requests(execution_id)), None)
    if pending is None:
        return None
    way = answer_command(ctx, execution_id, pending.request_id, pending.request)
    if not is_timer(pending.request):
        message = f"it waits for an answer to {pending.request_id}"
        return Conflict(message, code="not-paused", hint=way)
    if backend.runs_in_process:
        way = f"start {ctx.command_hint('serve')}, or: {way}"
    until = clock_time(end_of_timer(pending.request))
    return Conflict(f"it waits for a timer until {until}", code="not-paused", hint=way)


@shared_options(over_http=True)
def cancel(
    ctx: CommandContext,
    name: ExecutionArgument,
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="PATH",
            autocompletion=completion.steps,
            help="Cancel only this step; steps that depend on it are blocked.",
        ),
    ] = None,
) -> None:
    """Cancel an execution; completed results stay stored.

    For example:

    * `planwave cancel last`
    * `planwave cancel last --node research` (independent steps continue)
    """

    async def tell(backend: Backend, execution_id: str, interrupt: Interrupt) -> CommandResult:
        see = f"See it with: {ctx.command_hint(f'show {execution_id}')}"
        if node is None:
            await backend.executions.cancel(execution_id)
            done = f"Cancelled {execution_id}; completed results stay stored"
            return CommandResult("cancelled", done, see, may_continue=False, status="cancelled")
        await backend.executions.cancel(execution_id, node=node)
        return CommandResult("cancelled", f"Cancelled step {one_line(node)} of {execution_id}", see)

    exit_with(send_command(ctx, name, tell, destroys=True))


class CommandResult(NamedTuple):
    """The effect of a command on an execution.

    Attributes:
        sign: The status whose glyph is shown.
        done: A sentence that confirms the effect.
        next_hint: A sentence that names the next command.
        may_continue: Whether the execution may run on; in this process, it is then followed.
        json_fields: Fields of the ``--json`` object besides id and status.
        status: The status of the execution; None to read it from the document.
        execution_id: The execution to follow and to show; None for the one of the command.
    """

    sign: str
    done: str
    next_hint: str
    may_continue: bool = True
    json_fields: Mapping[str, Any] = {}
    status: str | None = None
    execution_id: str | None = None


SendCommand = Callable[["Backend", str, Interrupt], Awaitable[CommandResult | None]]
"""Sends a command to an execution; returns None if the user left without an answer."""


def exit_with(code: int) -> None:
    """Exit with a code, unless it is 0."""
    if code:
        raise typer.Exit(code)


def send_command(
    ctx: CommandContext, name: str, tell: SendCommand, *, destroys: bool = False
) -> int:
    """Send a command to an execution; return the exit code.

    The process that owns the storage directory gets the command. Without one, this process runs the
    execution until it is idle.

    Args:
        ctx: The context of the command.
        name: The execution, as a person names it.
        tell: Sends the command.
        destroys: Whether the command cannot be taken back, so that more of an id has to be written.

    Raises:
        NotFound, InputError: There is no such execution.
        PlanwaveError: Any error that ``tell`` raises.
    """
    return asyncio.run(_send_command(ctx, name, tell, destroys=destroys))


async def _send_command(
    ctx: CommandContext, name: str, tell: SendCommand, *, destroys: bool
) -> int:
    console, settings = ctx.console(), ctx.settings()
    async with ctx.queries(settings) as queries:
        execution_id = await find_execution(queries, name, destroys=destroys)
    with Interrupt(console) as interrupt:
        async with ctx.backend(settings, interrupt) as backend:
            # Only a run in this process is followed. The record of a service is not read, so an
            # execution with lost events can still be cancelled.
            before = (
                (await backend.executions.get(execution_id)).last_seq
                if backend.runs_in_process
                else 0
            )
            outcome = await tell(backend, execution_id, interrupt)
            if outcome is None:
                return ExitCode.OK
            if outcome.execution_id not in (None, execution_id):
                execution_id, before = outcome.execution_id, 0
            if outcome.may_continue and backend.runs_in_process:
                graph = (await backend.executions.document(execution_id)).get("graph")
                await show_models(backend, console, graph)
                return await follow_run(ctx, backend, interrupt, execution_id, after=before)
            status = outcome.status or str(
                (await backend.executions.document(execution_id))["status"]
            )
    if console.json:
        console.result({"execution_id": execution_id, "status": status, **outcome.json_fields})
        return ExitCode.OK
    console.verbatim(f"{console.glyph(outcome.sign)} {outcome.done}")
    console.verbatim(outcome.next_hint)
    return ExitCode.OK
