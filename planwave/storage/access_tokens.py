"""The records of access tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planwave.principals import Principal, principal_json

if TYPE_CHECKING:
    from planwave.shapes.triggers import TokenResponse, TokenScope


@dataclass(frozen=True, slots=True)
class AccessTokenRecord:
    """What the bearer of a token may do, besides the operator.

    Attributes:
        name: A person's note on who has the token.
        digest: SHA-256 of the token in hexadecimal; the token itself is not stored.
        scopes: What the token is for.
        flows: The ids of the flows for which it is.
        requests_per_minute: Its own limit of requests; None for that of every principal.
        executions_per_minute: Its own limit of executions; None as above.
        expires_at: From when on it is worth nothing, UTC; None for never.
        created_by: Who created it; None where an older planwave did.
        last_used_at: About when it was used last, UTC; None for never.
    """

    token_id: str
    name: str
    digest: str
    scopes: tuple[TokenScope, ...]
    flows: tuple[str, ...]
    created_at: str
    requests_per_minute: int | None = None
    executions_per_minute: int | None = None
    expires_at: str | None = None
    created_by: Principal | None = None
    last_used_at: str | None = None


def token_json(token: AccessTokenRecord) -> TokenResponse:
    """Return a token in the JSON form of the API, without the digest of its text."""
    return {
        "token_id": token.token_id,
        "name": token.name,
        "scopes": list(token.scopes),
        "flows": list(token.flows),
        "created_at": token.created_at,
        "requests_per_minute": token.requests_per_minute,
        "executions_per_minute": token.executions_per_minute,
        "expires_at": token.expires_at,
        "created_by": principal_json(token.created_by),
        "last_used_at": token.last_used_at,
    }
