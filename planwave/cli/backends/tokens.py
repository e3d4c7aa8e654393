"""Access tokens for commands: those of a service in this process, or of a running one over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from planwave.storage.access_tokens import token_json

if TYPE_CHECKING:
    from planwave.client import AsyncClient
    from planwave.service.access_tokens import Scope, TokenLimits
    from planwave.service.service import Service


class TokenBackend(Protocol):
    """Creates, lists and revokes access tokens; each is the JSON of ``TokenResponse``."""

    async def all(self) -> list[dict[str, Any]]:
        """Return all tokens, newest first."""
        ...

    async def create(
        self, name: str, scopes: Sequence[Scope], flows: Sequence[str], limits: TokenLimits
    ) -> dict[str, Any]:
        """Create a token; return it with its text, ``token``."""
        ...

    async def revoke(self, token_id: str) -> None: ...


class LocalTokens:
    """The access tokens of a service in this process."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.revoke = service.access_tokens.revoke

    async def all(self) -> list[dict[str, Any]]:
        """See :meth:`TokenBackend.all`."""
        return [token_json(each) for each in await self._service.access_tokens.list()]

    async def create(
        self, name: str, scopes: Sequence[Scope], flows: Sequence[str], limits: TokenLimits
    ) -> dict[str, Any]:
        """See :meth:`AccessTokens.create`."""
        made = await self._service.access_tokens.create(name, scopes, flows, limits)
        return {**token_json(made.record), "token": made.secret}


class RemoteTokens:
    """The access tokens of a running service."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self.revoke = client.revoke_token

    async def all(self) -> list[dict[str, Any]]:
        """See :meth:`AsyncClient.tokens`."""
        return cast("list[dict[str, Any]]", (await self._client.tokens())["tokens"])

    async def create(
        self, name: str, scopes: Sequence[Scope], flows: Sequence[str], limits: TokenLimits
    ) -> dict[str, Any]:
        """See :meth:`AsyncClient.create_token`."""
        made = await self._client.create_token(name, scopes, flows, **limits._asdict())
        return cast("dict[str, Any]", made)
