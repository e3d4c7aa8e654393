"""Request and response models of access tokens."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from planwave.api.schemas.common import PrincipalResponse, RequestModel, ResponseModel
from planwave.api.schemas.examples import FLOW_ID, TIME
from planwave.service.access_tokens import NAME_CHARS

TOKEN_ID: Final = "019a0000-0000-7000-8000-00000000000d"  # noqa: S105
_ScopeName = Literal["chat", "run", "read"]


class TokenCreateRequest(RequestModel):
    """A token for some flows."""

    name: str = Field(
        min_length=1, max_length=NAME_CHARS, description="Who gets it.", examples=["Shop"]
    )
    scopes: list[_ScopeName] = Field(
        min_length=1,
        description="`chat`: talk to the flows as models. `run`: start and cancel their executions. "
        "`read`: read these.",
        examples=[["chat"]],
    )
    flows: list[str] = Field(
        min_length=1, max_length=1_000, description="The ids of the flows.", examples=[[FLOW_ID]]
    )
    requests_per_minute: int | None = Field(
        default=None, ge=1, description="Its requests; the limits of the service hold in any case."
    )
    executions_per_minute: int | None = Field(default=None, ge=1, description="Its executions.")
    expires_in_s: float | None = Field(
        default=None, gt=0, le=10 * 366 * 86_400, description="Seconds for which it is valid."
    )


class TokenResponse(ResponseModel):
    """An access token, without its text."""

    token_id: str
    name: str
    scopes: list[_ScopeName]
    flows: list[str]
    created_at: str
    requests_per_minute: int | None
    executions_per_minute: int | None
    expires_at: str | None
    """From when on it is worth nothing, UTC; null for never."""
    created_by: PrincipalResponse | None
    """Who created it; null where an older planwave did."""
    last_used_at: str | None
    """When it was used last, UTC, to about a minute; null for never."""


class TokenCreatedResponse(TokenResponse):
    """A new access token."""

    token: str
    """The text to send as `Authorization: Bearer …`; it is not stored, and never shown again."""


class TokensResponse(ResponseModel):
    """All access tokens, newest first."""

    tokens: list[TokenResponse]


TOKEN: Final[dict[str, Any]] = {
    "token_id": TOKEN_ID,
    "name": "Shop",
    "scopes": ["chat"],
    "flows": [FLOW_ID],
    "created_at": TIME,
    "requests_per_minute": None,
    "executions_per_minute": 10,
    "expires_at": None,
    "created_by": {"kind": "operator"},
    "last_used_at": None,
}
CREATED_TOKEN: Final[dict[str, Any]] = {**TOKEN, "token": "pw_…"}
TOKENS: Final[dict[str, Any]] = {"tokens": [TOKEN]}
