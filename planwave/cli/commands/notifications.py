"""``planwave notifications``: which URLs are notified of executions, and what nobody accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.console import CommandConsole, Line
from planwave.cli.context import CommandContext
from planwave.cli.formatting import local_time, truncate
from planwave.cli.lookup import find_flow, find_id
from planwave.cli.options import shared_options
from planwave.errors import InputError

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.client import AsyncClient
    from planwave.service.service import Service
    from planwave.shapes.triggers import NotificationResponse, TargetResponse

_Result = TypeVar("_Result")
_SHOWN = 200
_ENDS = ("completed", "failed", "cancelled")

notification_app = typer.Typer(
    help="Have URLs notified of executions.",
    invoke_without_command=True,
    add_completion=False,
)

SecretsOption = Annotated[
    list[str],
    typer.Option(
        "--secret",
        metavar="NAME",
        autocompletion=completion.secrets,
        help="A secret of the operator that signs; may be repeated.",
    ),
]


@notification_app.callback()
@shared_options(over_http=True)
def notifications(ctx: CommandContext) -> None:
    """List the URLs that are notified of executions, and the messages that nobody accepted.

    `planwave serve` sends them. For example:

    * `planwave notifications`
    * `planwave notifications add "Order intake" https://example.com/planwave --secret orders`
    """
    if ctx.subcommand is not None:
        return

    async def read(
        _: Backend, own: NotificationBackend
    ) -> tuple[list[TargetResponse], list[NotificationResponse]]:
        return await own.targets(), await own.dead(_SHOWN)

    console, (targets, dead) = ctx.console(), _run(ctx, read)
    if console.json:
        console.result({"targets": targets, "dead": dead})
        return
    if targets:
        console.lines(target_lines(console, targets))
    else:
        console.text(
            f"No URL is notified. Add one with: {ctx.command_hint('notifications add')} FLOW URL"
        )
    if dead:
        console.text("Nobody accepted:")
        console.lines(dead_letter_lines(console, dead))


@notification_app.command()
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
    address: Annotated[
        str,
        typer.Argument(metavar="URL", help="The address to send messages to.", show_default=False),
    ],
    secret: SecretsOption,
    event: Annotated[
        list[str] | None,
        typer.Option(
            "--event",
            metavar="NAME",
            help="completed, failed, cancelled or waiting; may be repeated. [default: the first three]",
        ),
    ] = None,
) -> None:
    """Notify a URL of the executions of a flow.

    For example:

    * `planwave notifications add "Order intake" https://example.com/planwave --secret orders`
    * `planwave notifications add "Order intake" https://example.com/planwave --secret orders --event failed --event waiting`
    """
    events = _checked_events(event or _ENDS)

    async def create(backend: Backend, own: NotificationBackend) -> TargetResponse:
        plan = await find_flow(backend, flow, None)
        return await own.create_target(plan.plan_id, address, secret, events)

    new_target, console = _run(ctx, create), ctx.console()
    if console.json:
        console.result(new_target)
    else:
        console.verbatim(f"{console.glyph('completed')} Added {new_target['target_id']}")
        console.lines(target_lines(console, [new_target]))


@notification_app.command()
@shared_options(over_http=True)
def rm(
    ctx: CommandContext,
    target: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            autocompletion=completion.targets,
            help="A target, by its id, or its start or end.",
            show_default=False,
        ),
    ],
) -> None:
    """Notify a URL no more; its messages are removed too."""

    async def delete(_: Backend, own: NotificationBackend) -> str:
        ids = [each["target_id"] for each in await own.targets()]
        target_id = find_id(ids, target, "target", "notifications", destroys=True)
        await own.delete_target(target_id)
        return target_id

    removed, console = _run(ctx, delete), ctx.console()
    if console.json:
        console.result({"removed": removed})
    else:
        console.verbatim(f"{console.glyph('completed')} Removed {removed}")


@notification_app.command()
@shared_options(over_http=True)
def resend(
    ctx: CommandContext,
    notification: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            autocompletion=completion.dead_letters,
            help="A message that nobody accepted, by its id, or its start or end.",
            show_default=False,
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="All that nobody accepted, 200 at most.")
    ] = False,
) -> None:
    """Send messages again that nobody accepted, under the same ids.

    For example:

    * `planwave notifications resend 019a`
    * `planwave notifications resend --all`
    """
    if (notification is None) != every:
        raise InputError(
            "name one message, or write --all", hint="planwave notifications lists them"
        )

    async def send(_: Backend, own: NotificationBackend) -> list[str]:
        ids = [each["notification_id"] for each in await own.dead(_SHOWN)]
        chosen = (
            ids
            if notification is None
            else [find_id(ids, notification, "message", "notifications")]
        )
        for each in chosen:
            await own.resend(each)
        return chosen

    sent, console = _run(ctx, send), ctx.console()
    if console.json:
        console.result({"resent": sent})
    else:
        what = "message is" if len(sent) == 1 else "messages are"
        console.verbatim(
            f"{console.glyph('completed')} {len(sent)} {what} sent again by planwave serve"
        )


def _checked_events(names: Sequence[str]) -> list[str]:
    events = (*_ENDS, "waiting")
    for name in names:
        if name not in events:
            raise InputError(
                f"there is no event {name!r}", hint=f"write one of {', '.join(events)}"
            )
    return list(names)


def _run(
    ctx: CommandContext, use: Callable[[Backend, NotificationBackend], Awaitable[_Result]]
) -> _Result:
    async def in_loop() -> _Result:
        async with ctx.backend(ctx.settings()) as backend:
            return await use(backend, backend.choose(LocalNotifications, RemoteNotifications))

    return asyncio.run(in_loop())


class NotificationBackend(Protocol):
    """Lists and changes notifications; each is the JSON of the API."""

    async def targets(self) -> list[TargetResponse]:
        """Return what is notified: the targets of the operator, then those of flows."""
        ...

    async def dead(self, limit: int) -> list[NotificationResponse]:
        """Return notifications that nobody accepted, newest first."""
        ...

    async def create_target(
        self, plan_id: str, url: str, secrets: Sequence[str], events: Sequence[str]
    ) -> TargetResponse: ...
    async def delete_target(self, target_id: str) -> None: ...
    async def resend(self, notification_id: str) -> NotificationResponse: ...


class LocalNotifications:
    """The notifications of a service in this process, which does not send them."""

    def __init__(self, service: Service) -> None:
        # Lazy: test_help_loads_no_heavy_library
        from planwave.service.notifications.documents import notification_document, target_document

        self._document, self._target = notification_document, target_document
        self._service = service
        self.delete_target = service.notifications.delete_target

    async def targets(self) -> list[TargetResponse]:
        """See ``NotificationBackend.targets``."""
        return [self._target(each) for each in await self._service.notifications.targets()]

    async def dead(self, limit: int) -> list[NotificationResponse]:
        """See ``NotificationBackend.dead``."""
        records = await self._service.notifications.list(status="dead", limit=limit)
        return [self._document(each) for each in records]

    async def create_target(
        self, plan_id: str, url: str, secrets: Sequence[str], events: Sequence[str]
    ) -> TargetResponse:
        """See ``NotificationService.create_target``."""
        target = await self._service.notifications.create_target(plan_id, url, secrets, events)
        return self._target(target)

    async def resend(self, notification_id: str) -> NotificationResponse:
        """See ``NotificationService.resend``."""
        return self._document(await self._service.notifications.resend(notification_id))


class RemoteNotifications:
    """The notifications of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.delete_target = client.delete_notification_target

    async def targets(self) -> list[TargetResponse]:
        """See ``AsyncClient.notification_targets``."""
        return (await self._client.notification_targets())["targets"]

    async def dead(self, limit: int) -> list[NotificationResponse]:
        """See ``AsyncClient.notifications``."""
        page = await self._client.notifications(status="dead", limit=limit)
        return page["notifications"]

    async def create_target(
        self, plan_id: str, url: str, secrets: Sequence[str], events: Sequence[str]
    ) -> TargetResponse:
        """See ``AsyncClient.create_notification_target``."""
        return await self._client.create_notification_target(plan_id, url, secrets, events)

    async def resend(self, notification_id: str) -> NotificationResponse:
        """See ``AsyncClient.resend_notification``."""
        return await self._client.resend_notification(notification_id)


_URL_CHARS = 100
_ERROR_CHARS = 200


def target_lines(console: CommandConsole, targets: Sequence[TargetResponse]) -> Iterable[Line]:
    """Return the lines of a list of targets."""
    ids = console.short_ids(each["target_id"] for each in targets)
    for target in targets:
        of = target["flow"] or "all executions"
        yield Text.assemble(
            (ids[target["target_id"]], "cyan"),
            f"  {truncate(target['url'], _URL_CHARS)}  ",
            (f"{truncate(of, _URL_CHARS)}: {', '.join(target['events'])}", "dim"),
        )
        if target["problem"]:
            yield Text.assemble("    ", (f"gets nothing: {target['problem']}", "red"))


def dead_letter_lines(
    console: CommandConsole, notifications: Sequence[NotificationResponse]
) -> Iterable[Line]:
    """Return the lines of a list of notifications that nobody accepted."""
    ids = console.short_ids(each["notification_id"] for each in notifications)
    for each in notifications:
        yield Text.assemble(
            (ids[each["notification_id"]], "cyan"),
            f"  {local_time(each['created_at'])}  {each['event']:<10} ",
            (each["execution_id"], "cyan"),
        )
        yield Text.assemble("    ", (truncate(each["error"], _ERROR_CHARS), "red"))
