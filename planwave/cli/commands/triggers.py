"""``planwave triggers``: which entry nodes of flows are listened for, and what they received."""

from __future__ import annotations

import asyncio
import json as json_module
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar, cast

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.console import CommandConsole, Line
from planwave.cli.context import CommandContext
from planwave.cli.formatting import local_time, local_times, truncate
from planwave.cli.lookup import find_flow, find_id
from planwave.cli.options import shared_options

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.client import AsyncClient
    from planwave.service.service import Service
    from planwave.settings import Settings
    from planwave.shapes.common import Publication
    from planwave.shapes.plans import PublicationResponse
    from planwave.shapes.triggers import DeliveryResponse, TriggerResponse

_Result = TypeVar("_Result")

trigger_app = typer.Typer(
    help="Have flows started by webhooks and other triggers.",
    invoke_without_command=True,
    add_completion=False,
)
TriggerArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        autocompletion=completion.triggers,
        help="A trigger, by its id, or its start or end.",
        show_default=False,
    ),
]


@trigger_app.callback()
@shared_options(over_http=True)
def triggers(ctx: CommandContext) -> None:
    """List what is listened for, with the last 20 deliveries and their executions.

    `planwave serve` listens. For example:

    * `planwave triggers`
    * `planwave triggers add "Order intake"`
    """
    if ctx.subcommand is not None:
        return
    console = ctx.console()
    documents = _run(ctx, lambda _, triggers: triggers.all())
    if console.json:
        console.result({"triggers": documents})
    elif documents:
        console.lines(trigger_lines(console, documents))
    else:
        console.text(f"No triggers yet. Add one with: {ctx.command_hint('triggers add')} FLOW")


@trigger_app.command()
@shared_options(over_http=True)
def add(
    ctx: CommandContext,
    flow: Annotated[
        str,
        typer.Argument(
            metavar="FLOW",
            autocompletion=completion.flows,
            help="The flow, by its name or its id.",
            show_default=False,
        ),
    ],
    node: Annotated[
        str | None,
        typer.Option(
            "--node",
            metavar="NODE",
            autocompletion=completion.flow_steps,
            help="Its entry node, where several can be listened for.",
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

    async def create(backend: Backend, triggers: TriggerBackend) -> TriggerResponse:
        plan = await find_flow(backend, flow, revision)
        return await triggers.create(plan.plan_id, node, revision)

    _show(ctx, "Added", _run(ctx, create))


@trigger_app.command()
@shared_options(over_http=True)
def enable(ctx: CommandContext, trigger: TriggerArgument) -> None:
    """Have a trigger start executions again."""
    _show(ctx, "Enabled", _set_enabled(ctx, trigger, enabled=True))


@trigger_app.command()
@shared_options(over_http=True)
def disable(ctx: CommandContext, trigger: TriggerArgument) -> None:
    """Have a trigger start nothing until it is enabled."""
    _show(ctx, "Disabled", _set_enabled(ctx, trigger, enabled=False))


@trigger_app.command()
@shared_options(over_http=True)
def rm(ctx: CommandContext, trigger: TriggerArgument) -> None:
    """Remove a trigger with its deliveries; the flow and its executions stay."""

    async def delete(_: Backend, triggers: TriggerBackend) -> TriggerResponse:
        record = await _find(triggers, trigger, destroys=True)
        await triggers.delete(record["trigger_id"])
        return record

    removed, console = _run(ctx, delete), ctx.console()
    if console.json:
        console.result({"removed": removed["trigger_id"]})
    else:
        console.verbatim(f"{console.glyph('completed')} Removed {_name(removed)}")


@trigger_app.command()
@shared_options(over_http=True)
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
    payload = None if value is None else _json_or_text(value)

    async def start(_: Backend, triggers: TriggerBackend) -> str:
        record = await _find(triggers, trigger)
        return await triggers.fire(record["trigger_id"], payload)

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


def _set_enabled(ctx: CommandContext, name: str, *, enabled: bool) -> TriggerResponse:
    async def change(_: Backend, triggers: TriggerBackend) -> TriggerResponse:
        trigger = await _find(triggers, name)
        return await triggers.set_enabled(trigger["trigger_id"], enabled=enabled)

    return _run(ctx, change)


async def _find(triggers: TriggerBackend, name: str, *, destroys: bool = False) -> TriggerResponse:
    """Return the trigger of an id, or of its start or end; errors as in ``find_id``."""
    records = {each["trigger_id"]: each for each in await triggers.all()}
    return records[find_id(records, name, "trigger", "triggers", destroys=destroys)]


def _show(ctx: CommandContext, what: str, trigger: TriggerResponse) -> None:
    console = ctx.console()
    if console.json:
        console.result(trigger)
        return
    console.verbatim(f"{console.glyph('completed')} {what} {_name(trigger)}")
    console.lines(trigger_lines(console, [{**trigger, "deliveries": []}]))


def _name(trigger: TriggerResponse) -> str:
    return f"the {trigger['kind']} of {trigger['flow']} ({trigger['trigger_id']})"


def _run(
    ctx: CommandContext, use: Callable[[Backend, TriggerBackend], Awaitable[_Result]]
) -> _Result:
    async def in_loop() -> _Result:
        settings = ctx.settings()
        async with ctx.backend(settings) as backend:
            return await use(backend, triggers_of(backend, settings))

    return asyncio.run(in_loop())


_PAGE: int = 200


def triggers_of(backend: Backend, settings: Settings) -> TriggerBackend:
    """Return the triggers of a backend."""
    return backend.choose(lambda service: LocalTriggers(service, settings), RemoteTriggers)


class TriggerBackend(Protocol):
    """Lists and changes triggers; each is the JSON of ``TriggerResponse``."""

    async def all(self) -> list[TriggerResponse]:
        """Return all triggers, newest first."""
        ...

    async def create(
        self, plan_id: str, node_id: str | None, revision: int | None
    ) -> TriggerResponse: ...
    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> TriggerResponse: ...
    async def delete(self, trigger_id: str) -> None: ...
    async def publish(
        self, plan_id: str, changes: Mapping[Publication, bool], hook: bool | None
    ) -> PublicationResponse:
        """Publish a flow, or unpublish it; return the JSON of ``PublicationResponse``."""
        ...

    async def fire(self, trigger_id: str, value: Any) -> str:
        """Start the execution of a test delivery; return its id."""
        ...


class LocalTriggers:
    """The triggers of a service in this process, which does not listen for them."""

    def __init__(self, service: Service, settings: Settings) -> None:
        # Lazy: test_help_loads_no_heavy_library
        from planwave.triggers.host import TriggerHost

        self._host = TriggerHost(service, settings)
        self._service = service
        self.delete = self._host.delete

    async def publish(
        self, plan_id: str, changes: Mapping[Publication, bool], hook: bool | None
    ) -> PublicationResponse:
        """See ``TriggerHost.publish``."""
        return await self._host.publish(plan_id, changes, hook=hook)

    async def all(self) -> list[TriggerResponse]:
        """See ``TriggerBackend.all``."""
        return await self._host.as_json(await self._host.page(limit=self._service.limits.triggers))

    async def create(
        self, plan_id: str, node_id: str | None, revision: int | None
    ) -> TriggerResponse:
        """See ``TriggerHost.create``."""
        trigger = await self._host.create(plan_id, node_id=node_id, revision=revision)
        return (await self._host.as_json([trigger]))[0]

    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> TriggerResponse:
        """See ``TriggerHost.set_enabled``."""
        changed = await self._host.set_enabled(trigger_id, enabled=enabled)
        return (await self._host.as_json([changed]))[0]

    async def fire(self, trigger_id: str, value: Any) -> str:
        """See ``TriggerHost.fire``; the execution has come to rest when this returns."""
        record = await self._host.fire(trigger_id, value)
        await self._service.executions.wait(record.execution_id)
        return record.execution_id


class RemoteTriggers:
    """The triggers of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.delete = client.delete_trigger

    async def publish(
        self, plan_id: str, changes: Mapping[Publication, bool], hook: bool | None
    ) -> PublicationResponse:
        """See ``AsyncClient.publish_flow``."""
        return await self._client.publish_flow(plan_id, **changes, hook=hook)

    async def all(self) -> list[TriggerResponse]:
        """See ``TriggerBackend.all``."""
        triggers: list[TriggerResponse] = []
        cursor = None
        while True:
            page = await self._client.triggers(cursor=cursor, limit=_PAGE)
            triggers += page["triggers"]
            cursor = page["next_cursor"]
            if cursor is None:
                return triggers

    async def create(
        self, plan_id: str, node_id: str | None, revision: int | None
    ) -> TriggerResponse:
        """See ``AsyncClient.create_trigger``."""
        return await self._client.create_trigger(plan_id, node_id=node_id, revision=revision)

    async def set_enabled(self, trigger_id: str, *, enabled: bool) -> TriggerResponse:
        """See ``AsyncClient.enable_trigger``."""
        change = self._client.enable_trigger if enabled else self._client.disable_trigger
        return await change(trigger_id)

    async def fire(self, trigger_id: str, value: Any) -> str:
        """See ``AsyncClient.fire_trigger``."""
        return (await self._client.fire_trigger(trigger_id, value))["execution_id"]


_NAME_CHARS = 60
_NOTE_CHARS = 200


def trigger_lines(console: CommandConsole, triggers: Sequence[TriggerResponse]) -> Iterable[Line]:
    """Return the lines of a list of triggers, each with its last deliveries."""
    ids = console.short_ids(each["trigger_id"] for each in triggers)
    for trigger in triggers:
        yield _trigger_line(trigger, ids[trigger["trigger_id"]])
        if trigger["problem"]:
            yield Text.assemble("    ", (f"starts nothing: {trigger['problem']}", "red"))
        for name, value in trigger["details"].items():
            text = ", ".join(map(str, _items(value)))
            yield Text.assemble("    ", (f"{name}: ", "dim"), truncate(text, _NOTE_CHARS))
        if (rejection := trigger["last_rejection"]) is not None:
            at, reason = local_time(rejection["at"]), truncate(rejection["reason"], _NOTE_CHARS)
            yield Text.assemble("    ", ("last rejected: ", "yellow"), f"{at}  {reason}")
        times = local_times(each["received_at"] for each in trigger["deliveries"])
        for delivery, at in zip(trigger["deliveries"], times, strict=True):
            yield _delivery_line(delivery, at)


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _trigger_line(trigger: TriggerResponse, shown_id: str) -> Line:
    state = "enabled" if trigger["enabled"] else "disabled"
    return Text.assemble(
        (shown_id, "cyan"),
        f"  {trigger['kind']:<10} ",
        (f"{state:<9} ", "dim"),
        truncate(trigger["flow"], _NAME_CHARS),
        (f" / {trigger['node_id']}", "dim"),
    )


def _delivery_line(delivery: DeliveryResponse, at: str) -> Line:
    note = f"  {truncate(delivery['note'], _NOTE_CHARS)}" if delivery["note"] else ""
    return Text.assemble(
        f"    {at}  ",
        (f"{delivery['outcome'] or 'under way':<10}", "dim"),
        (delivery["execution_id"] or "", "cyan"),
        (note, "dim"),
    )
