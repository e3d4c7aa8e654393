"""Routes: access tokens, which the operator gives to programs that use some flows."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep, require_not_draining
from planwave.api.json_body import json_body
from planwave.api.middleware.audit import add_audit_ids
from planwave.api.pagination import TokenId, validate_id
from planwave.api.problems import problems
from planwave.api.responses import NOT_REPLAYABLE, json_response
from planwave.api.schemas.examples import FLOW_ID, TIME, TOKEN_ID, success
from planwave.api.schemas.requests import RequestModel
from planwave.service.access_tokens import NAME_CHARS, TokenLimits
from planwave.shapes.triggers import TokenCreatedResponse, TokensResponse
from planwave.storage.access_tokens import token_json

router = APIRouter(tags=["tokens"], dependencies=AUTHENTICATED)
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


class TokenCreateRequest(RequestModel):
    """A token for some flows."""

    name: str = Field(
        min_length=1, max_length=NAME_CHARS, description="Who gets it.", examples=["Shop"]
    )
    scopes: list[Literal["chat", "run", "read"]] = Field(
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


@router.post(
    "/api/tokens",
    operation_id="createToken",
    summary="Create an access token",
    status_code=201,
    responses={**success(TokenCreatedResponse, "The token.", CREATED_TOKEN, 201), **problems(404)},
)
async def create_token(
    request: Request,
    service: ServiceDep,
    body: Annotated[TokenCreateRequest, json_body(TokenCreateRequest)],
) -> Response:
    """Create a token that is good for some flows only. Its text is in this response, and nowhere else.

    The response is not stored under an `Idempotency-Key`: a repeated request creates another token.
    """
    await require_not_draining(request)
    request.scope[NOT_REPLAYABLE] = True
    limits = TokenLimits(body.requests_per_minute, body.executions_per_minute, body.expires_in_s)
    flows = [validate_id(each, "flow") for each in body.flows]
    created = await service.access_tokens.create(body.name, body.scopes, flows, limits)
    add_audit_ids(request, token_id=created.record.token_id)
    document = {**token_json(created.record), "token": created.secret}
    return json_response(document, 201)


@router.get(
    "/api/tokens",
    operation_id="listTokens",
    summary="List access tokens",
    responses=success(TokensResponse, "All of them.", TOKENS),
)
async def list_tokens(service: ServiceDep) -> Response:
    """Return all access tokens without their texts, newest first."""
    return json_response(
        {"tokens": [token_json(each) for each in await service.access_tokens.list()]}
    )


@router.delete(
    "/api/tokens/{token_id}",
    operation_id="revokeToken",
    summary="Revoke an access token",
    status_code=204,
    response_description="It is worth nothing any more.",
    responses=problems(404),
)
async def revoke_token(service: ServiceDep, token_id: TokenId) -> Response:
    """Revoke an access token: the next request with it is refused."""
    await service.access_tokens.revoke(token_id)
    return Response(status_code=204)
