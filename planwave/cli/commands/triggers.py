"""``planwave triggers``: which entry nodes of flows are listened for, and what they received."""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from planwave.cli.context import CommandContext
from planwave.cli.lookup import find_flow
from planwave.cli.options import shared_options
from planwave.cli.views.triggers import trigger_lines
from planwave.errors import InputError, NotFound

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.cli.backends.triggers import TriggerBackend

_Result = TypeVar("_Result")

trigger_app = typer.Typer(
    help="Have flows started by webhooks and other triggers.",
    invoke_without_command=True,
    add_completion=False,
)
TriggerArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="A trigger, by its id or a unique part of it.", show_default=False
    ),
]


@trigger_app.callback()
@shared_options()
def triggers(ctx: CommandContext) -> None:
    """List what is listened for, with the last 20 deliveries and their executions.

    `planwave serve` listens. For example:

    * `planwave triggers`
    * `planwave triggers add "Order intake"`
    """
    if ctx.subcommand is not None:
        return
    console = ctx.console()
    found = _run(ctx, lambda _, triggers: triggers.all())
    if console.json:
        console.result({"triggers": found})
    elif found:
        console.lines(trigger_lines(console, found))
    else:
        console.text(f"No triggers yet. Add one with: {ctx.command_hint('triggers add')} FLOW")


@trigger_app.command()
@shared_options()
def add(
    ctx: CommandContext,
    flow: Annotated[
        str,
        typer.Argument(metavar="FLOW", help="The flow, by its name or its id.", show_default=False),
    ],
    node: Annotated[
        str | None,
        typer.Option(
            "--node", metavar="NODE", help="Its entry node, where several can be listened for."
        ),
    ] = None,
    revision: Annotated[
        int | None,
        typer.Option(
            "--revision",
            metavar="N",
            min=1,
            help="The revision to start. [default: the live one, whatever it is then]",
        ),
    ] = None,
) -> None:
    """Listen for an entry node of a flow.

    For example:

    * `planwave triggers add "Order intake"`
    * `planwave triggers add "Order intake" --node hook`
    """

    async def create(backend: Backend, triggers: TriggerBackend) -> dict[str, Any]:
        found = await find_flow(backend.queries, flow, revision)
        return await triggers.create(found.plan_id, node, revision)

    _show(ctx, "Added", _run(ctx, create))


@trigger_app.command()
@shared_options()
def enable(ctx: CommandContext, trigger: TriggerArgument) -> None:
    """Have a trigger start executions again."""
    _show(ctx, "Enabled", _set_enabled(ctx, trigger, enabled=True))


@trigger_app.command()
@shared_options()
def disable(ctx: CommandContext, trigger: TriggerArgument) -> None:
    """Have a trigger start nothing until it is enabled."""
    _show(ctx, "Disabled", _set_enabled(ctx, trigger, enabled=False))


@trigger_app.command()
@shared_options()
def rm(ctx: CommandContext, trigger: TriggerArgument) -> None:
    """Remove a trigger with its deliveries; the flow and its executions stay."""

    async def delete(_: Backend, triggers: TriggerBackend) -> dict[str, Any]:
        found = await _find(triggers, trigger)
        await triggers.delete(found["trigger_id"])
        return found

    removed, console = _run(ctx, delete), ctx.console()
    if console.json:
        console.result({"removed": removed["trigger_id"]})
    else:
        console.verbatim(f"{console.glyph('completed')} Removed {_name(removed)}")


@trigger_app.command()
@shared_options()
def fire(
    ctx: CommandContext,
    trigger: TriggerArgument,
    value: Annotated[
        str | None,
        typer.Option(
            "--value",
            metavar="JSON",
            help="What it is to have received, such as the body of a request: JSON, or a text.",
        ),
    ] = None,
) -> None:
    """Start an execution as if a trigger had received something; it may be disabled.

    For example:

    * `planwave triggers fire 019a --value '{"order": "A-17"}'`
    """
    given = None if value is None else _json_or_text(value)

    async def start(_: Backend, triggers: TriggerBackend) -> str:
        found = await _find(triggers, trigger)
        return await triggers.fire(found["trigger_id"], given)

    execution_id, console = _run(ctx, start), ctx.console()
    if console.json:
        console.result({"execution_id": execution_id})
    else:
        console.verbatim(f"{console.glyph('completed')} Started {execution_id}")
        console.verbatim(f"Look at it with: {ctx.command_hint(f'show {execution_id}')}")


def _json_or_text(written: str) -> Any:
    try:
        return json_module.loads(written)
    except ValueError:
        return written


def _set_enabled(ctx: CommandContext, name: str, *, enabled: bool) -> dict[str, Any]:
    async def change(_: Backend, triggers: TriggerBackend) -> dict[str, Any]:
        found = await _find(triggers, name)
        return await triggers.set_enabled(found["trigger_id"], enabled=enabled)

    return _run(ctx, change)


async def _find(triggers: TriggerBackend, name: str) -> dict[str, Any]:
    """Return the trigger of an id, or of a unique part of one.

    Raises:
        NotFound: No id matches.
        InputError: ``ambiguous-id``.
    """
    found = [each for each in await triggers.all() if name and name in each["trigger_id"]]
    if not found:
        raise NotFound(
            f"no trigger has an id that contains {name!r}", hint="`planwave triggers` lists them"
        )
    if len(found) > 1:
        ids = ", ".join(each["trigger_id"] for each in found[:4])
        raise InputError(
            f"several triggers have {name!r} in their id", code="ambiguous-id", hint=ids
        )
    return found[0]


def _show(ctx: CommandContext, what: str, trigger: dict[str, Any]) -> None:
    console = ctx.console()
    if console.json:
        console.result(trigger)
        return
    console.verbatim(f"{console.glyph('completed')} {what} {_name(trigger)}")
    console.lines(trigger_lines(console, [{**trigger, "deliveries": []}]))


def _name(trigger: dict[str, Any]) -> str:
    return f"the {trigger['kind']} of {trigger['flow']} ({trigger['trigger_id']})"


def _run(
    ctx: CommandContext, use: Callable[[Backend, TriggerBackend], Awaitable[_Result]]
) -> _Result:
    async def in_loop() -> _Result:
        settings = ctx.settings()
        async with ctx.backend(settings) as backend:
            return await use(backend, backend.triggers(settings))

    return asyncio.run(in_loop())
