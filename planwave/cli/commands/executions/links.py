"""``planwave link``: addresses that show one result, or let somebody answer one request, without a token."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import typer

from planwave.cli import completion
from planwave.cli.context import CommandContext
from planwave.cli.formatting import local_time
from planwave.cli.lookup import find_execution
from planwave.cli.options import ExecutionArgument, shared_options
from planwave.errors import InputError
from planwave.storage.links import LinkRecord, link_json
from planwave.storage.records import PageCursor

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.client import AsyncClient
    from planwave.service.service import Service
    from planwave.shapes.triggers import LinkCreatedResponse, LinkKind, LinkResponse

_DAY_S: Final = 86_400
_AT_ONCE: Final = 200

RequestOption = Annotated[
    str | None,
    typer.Option(
        "--request",
        metavar="REQUEST",
        autocompletion=completion.requests,
        help="Answer this request by the link, once, instead of showing a result.",
    ),
]
StepsOption = Annotated[
    bool, typer.Option("--steps", help="Show also what each step of the run delivered.")
]
DaysOption = Annotated[
    float | None,
    typer.Option(
        "--days",
        min=0.001,
        metavar="DAYS",
        help="How long it is valid. [default: 7; to answer a request: 1]",
    ),
]


@shared_options(over_http=True)
def link(
    ctx: CommandContext,
    name: ExecutionArgument,
    request: RequestOption = None,
    steps: StepsOption = False,
    days: DaysOption = None,
) -> None:
    """Create a link that shows the result of an execution, or answers one of its requests.

    Whoever has the link needs no token, and sees nothing else: no goal, no prompts, no other executions.
    `planwave tokens` lists the links, `planwave tokens revoke` ends one.

    For example:

    * `planwave link last`
    * `planwave link 09a2fd --steps --days 30`
    * `planwave link last --request r17`
    """
    if request is not None and steps:
        raise InputError("a link answers a request or shows the steps, not both", code="usage")
    kind: LinkKind = "request" if request is not None else "run" if steps else "result"

    async def create() -> LinkCreatedResponse:
        async with ctx.backend(ctx.settings()) as backend:
            execution_id = await find_execution(backend, name)
            lifetime_s = None if days is None else days * _DAY_S
            return await links_of(backend).create(execution_id, kind, request, lifetime_s)

    created, console = asyncio.run(create()), ctx.console()
    if console.json:
        console.result(created)
        return
    console.verbatim(created["url"])
    what = "answers once" if kind == "request" else "can be opened"
    console.note(f"It {what}, until {local_time(created['expires_at'])}. It is not shown again.")
    if created["url"].startswith("/"):
        console.note(
            "It is below the address of planwave serve; set public_url to have it shown whole."
        )


def links_of(backend: Backend) -> LinkBackend:
    """Return the links of a backend."""
    return backend.choose(LocalLinks, RemoteLinks)


class LinkBackend(Protocol):
    """Creates, lists and revokes links; each is the JSON of ``LinkResponse``."""

    async def create(
        self, execution_id: str, kind: LinkKind, request_id: str | None, lifetime_s: float | None
    ) -> LinkCreatedResponse:
        """Create a link; return it with its key and address."""
        ...

    async def all(self) -> list[LinkResponse]:
        """Return the links that still open something, newest first."""
        ...

    async def revoke(self, link_id: str) -> None: ...


class LocalLinks:
    """The links of a service in this process."""

    def __init__(self, service: Service) -> None:
        self._links = service.links
        self.revoke = service.links.revoke

    async def create(
        self, execution_id: str, kind: LinkKind, request_id: str | None, lifetime_s: float | None
    ) -> LinkCreatedResponse:
        """See ``Links.create``; without a known address of the service the URL is a path."""
        record, key = await self._links.create(
            execution_id, kind, request_id=request_id, lifetime_s=lifetime_s
        )
        return {**link_json(record), "key": key, "url": self._links.url(key) or f"/links/{key}"}

    async def all(self) -> list[LinkResponse]:
        """See ``Links.page``."""
        links: list[LinkRecord] = []
        before = None
        while page := await self._links.page(before=before, limit=_AT_ONCE):
            links += page
            before = PageCursor(page[-1].created_at, page[-1].link_id)
        return [link_json(each) for each in links]


class RemoteLinks:
    """The links of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.revoke = client.revoke_link

    async def create(
        self, execution_id: str, kind: LinkKind, request_id: str | None, lifetime_s: float | None
    ) -> LinkCreatedResponse:
        """See ``AsyncClient.create_link``."""
        return await self._client.create_link(
            execution_id, kind, request_id=request_id, expires_in_s=lifetime_s
        )

    async def all(self) -> list[LinkResponse]:
        """See ``AsyncClient.links``."""
        page = await self._client.links()
        links = page["links"]
        while page["next_cursor"] is not None:
            page = await self._client.links(cursor=page["next_cursor"])
            links += page["links"]
        return links
