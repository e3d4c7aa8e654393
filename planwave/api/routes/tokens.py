"""Routes: access tokens, which the operator gives to programs that use some flows."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from starlette.responses import Response

from planwave.api.dependencies import AUTHENTICATED, ServiceDep, require_not_draining
from planwave.api.json_body import json_body
from planwave.api.middleware.audit import add_audit_ids
from planwave.api.pagination import TokenId, validate_id
from planwave.api.problems import problems
from planwave.api.responses import NOT_REPLAYABLE, json_response
from planwave.api.schemas.examples import success
from planwave.api.schemas.triggers import CREATED_TOKEN, TOKENS, TokenCreateRequest
from planwave.service.access_tokens import TokenLimits
from planwave.shapes.triggers import TokenCreatedResponse, TokensResponse
from planwave.storage.access_tokens import token_json

router = APIRouter(tags=["tokens"], dependencies=AUTHENTICATED)


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
    shown = {**token_json(created.record), "token": created.secret}
    return json_response(shown, 201)


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
