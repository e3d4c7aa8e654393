"""``planwave tokens``: what gives others access: tokens for programs that may use some flows only, and links."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Protocol, TypeVar

import typer
from rich.text import Text

from planwave.cli import completion
from planwave.cli.commands.executions.links import links_of
from planwave.cli.context import CommandContext
from planwave.cli.formatting import local_time, truncate
from planwave.cli.lookup import find_flow, find_id
from planwave.cli.options import shared_options
from planwave.errors import NotFound
from planwave.storage.access_tokens import token_json

if TYPE_CHECKING:
    from planwave.cli.backends.backend import Backend
    from planwave.client import AsyncClient
    from planwave.service.access_tokens import Scope, TokenLimits
    from planwave.service.service import Service
    from planwave.shapes.triggers import LinkKind, LinkResponse, TokenCreatedResponse, TokenResponse

_Result = TypeVar("_Result")
_DAY_S: Final = 86_400
_NAME_CHARS: Final = 60
_ID_CHARS: Final = 36
_SHOWS: Final[dict[LinkKind, str]] = {
    "result": "shows the result of",
    "run": "shows the steps of",
    "request": "answers once for",
}

token_app = typer.Typer(
    help="Give other programs access to some flows.",
    invoke_without_command=True,
    add_completion=False,
)


class ScopeName(StrEnum):
    """What a token is for."""

    CHAT = "chat"
    RUN = "run"
    READ = "read"


FlowsOption = Annotated[
    list[str],
    typer.Option(
        "--flow",
        metavar="FLOW",
        autocompletion=completion.flows,
        help="A flow it is for, by name or id; may be repeated.",
    ),
]
ScopesOption = Annotated[
    list[ScopeName],
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="chat: talk to the flows as models; run: start and cancel their executions; "
        "read: read these; may be repeated.",
    ),
]


@token_app.callback()
@shared_options(over_http=True)
def tokens(ctx: CommandContext) -> None:
    """List the access tokens, and the links that still open something. Their texts are not stored.

    For example:

    * `planwave tokens`
    * `planwave tokens create Shop --flow triage --scope chat`
    """
    if ctx.subcommand is not None:
        return
    console = ctx.console()
    records, links = _run(ctx, _read)
    if console.json:
        console.result({"tokens": records, "links": links})
        return
    token_ids = [each["token_id"] for each in records]
    ids = console.short_ids([*token_ids, *(each["link_id"] for each in links)])
    console.lines(_line(each, ids[each["token_id"]]) for each in records)
    console.lines(_link_line(each, ids[each["link_id"]]) for each in links)
    if not records:
        console.text(f"No access tokens yet. Create one with: {ctx.command_hint('tokens create')}")


@token_app.command()
@shared_options(over_http=True)
def create(
    ctx: CommandContext,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Who gets the token.", show_default=False)
    ],
    flows: FlowsOption,
    scopes: ScopesOption,
    requests: Annotated[
        int | None, typer.Option("--requests-per-minute", min=1, metavar="N", help="Its requests.")
    ] = None,
    executions: Annotated[
        int | None,
        typer.Option("--executions-per-minute", min=1, metavar="N", help="Its executions."),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(
            "--days", min=0.001, metavar="DAYS", help="How long it is valid. [default: for ever]"
        ),
    ] = None,
) -> None:
    """Create an access token, and show it once.

    For example:

    * `planwave tokens create Shop --flow triage --scope chat --executions-per-minute 10`
    """

    async def make(backend: Backend) -> TokenCreatedResponse:
        # Lazy: test_help_loads_no_heavy_library
        from planwave.service.access_tokens import TokenLimits

        plan_ids = [(await find_flow(backend, each)).plan_id for each in flows]
        limits = TokenLimits(requests, executions, None if days is None else days * _DAY_S)
        scope_names: Sequence[Scope] = [each.value for each in scopes]
        return await _tokens(backend).create(name, scope_names, plan_ids, limits)

    token = _run(ctx, make)
    console = ctx.console()
    if console.json:
        console.result(token)
        return
    console.verbatim(f"{console.glyph('completed')} Created a token for {token['name']}:")
    console.verbatim(token["token"])
    console.text("It is not stored: copy it now.")


@token_app.command()
@shared_options(over_http=True)
def revoke(
    ctx: CommandContext,
    token: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            autocompletion=completion.tokens,
            help="A token or a link, by its id, or its start or end.",
            show_default=False,
        ),
    ],
) -> None:
    """Revoke an access token, whose next request is refused, or a link, which opens nothing any more."""

    async def remove(backend: Backend) -> tuple[str, str | None]:
        """Return the id of what is revoked; of a token also its name."""
        if len(token) == _ID_CHARS:
            with suppress(NotFound):
                await links_of(backend).revoke(token)
                return token, None
        records, links = await _read(backend)
        names: dict[str, str | None] = {each["token_id"]: each["name"] for each in records}
        names |= dict.fromkeys(each["link_id"] for each in links)
        own_id = find_id(names, token, "token or link", "tokens", destroys=True)
        name = names[own_id]
        await (links_of(backend) if name is None else _tokens(backend)).revoke(own_id)
        return own_id, name

    (revoked, name), console = _run(ctx, remove), ctx.console()
    if console.json:
        console.result({"revoked": revoked, "name": name})
        return
    label = f"link {revoked}" if name is None else f"token of {name} ({revoked})"
    console.verbatim(f"{console.glyph('completed')} Revoked the {label}")


def _line(token: TokenResponse, shown_id: str) -> Text:
    expires = f"  until {local_time(token['expires_at'])}" if token["expires_at"] else ""
    flows = len(token["flows"])
    return Text.assemble(
        (shown_id, "cyan"),
        f"  {local_time(token['created_at'])}  ",
        (f"{' '.join(token['scopes']):<14} {flows} flow{'s' if flows > 1 else ''}  ", "dim"),
        truncate(token["name"], _NAME_CHARS),
        (expires, "dim"),
    )


def _link_line(link: LinkResponse, shown_id: str) -> Text:
    target = f"  sent to {link['target']}" if link["target"] else ""
    return Text.assemble(
        (shown_id, "cyan"),
        f"  {local_time(link['created_at'])}  ",
        (f"link {_SHOWS[link['kind']]} ", "dim"),
        link["execution_id"],
        (f"{target}  until {local_time(link['expires_at'])}", "dim"),
    )


async def _read(backend: Backend) -> tuple[list[TokenResponse], list[LinkResponse]]:
    return await _tokens(backend).all(), await links_of(backend).all()


def _run(ctx: CommandContext, use: Callable[[Backend], Awaitable[_Result]]) -> _Result:
    async def in_loop() -> _Result:
        async with ctx.backend(ctx.settings()) as backend:
            return await use(backend)

    return asyncio.run(in_loop())


def _tokens(backend: Backend) -> TokenBackend:
    return backend.choose(LocalTokens, RemoteTokens)


class TokenBackend(Protocol):
    """Creates, lists and revokes access tokens; each is the JSON of ``TokenResponse``."""

    async def all(self) -> list[TokenResponse]:
        """Return all tokens, newest first."""
        ...

    async def create(
        self, name: str, scopes: Sequence[Scope], flows: Sequence[str], limits: TokenLimits
    ) -> TokenCreatedResponse:
        """Create a token; return it with its text, ``token``."""
        ...

    async def revoke(self, token_id: str) -> None: ...


class LocalTokens:
    """The access tokens of a service in this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.revoke = service.access_tokens.revoke

    async def all(self) -> list[TokenResponse]:
        """See ``TokenBackend.all``."""
        return [token_json(each) for each in await self._service.access_tokens.list()]

    async def create(
        self, name: str, scopes: Sequence[Scope], flows: Sequence[str], limits: TokenLimits
    ) -> TokenCreatedResponse:
        """See ``AccessTokens.create``."""
        token = await self._service.access_tokens.create(name, scopes, flows, limits)
        return {**token_json(token.record), "token": token.secret}


class RemoteTokens:
    """The access tokens of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.revoke = client.revoke_token

    async def all(self) -> list[TokenResponse]:
        """See ``AsyncClient.tokens``."""
        return (await self._client.tokens())["tokens"]

    async def create(
        self, name: str, scopes: Sequence[Scope], flows: Sequence[str], limits: TokenLimits
    ) -> TokenCreatedResponse:
        """See ``AsyncClient.create_token``."""
        return await self._client.create_token(name, scopes, flows, **limits._asdict())
