"""Routes: exchange the token for a session cookie that no script can read, and revoke it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from planwave.api.auth import require_no_other_site, require_principal
from planwave.api.dependencies import AppState, StateDep
from planwave.api.json_body import json_body
from planwave.api.problems import problems
from planwave.api.session_cookies import SESSION_COOKIE, SESSION_S

router = APIRouter(tags=["session"], dependencies=[Depends(require_no_other_site)])


class SessionRequest(BaseModel):
    """The token that opens a session."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"token": "the service's token"}]}
    )

    token: SecretStr = Field(description="What the service was started with.")


@router.post(
    "/api/session",
    operation_id="openSession",
    status_code=204,
    summary="Open a browser session",
    responses=problems(401, 429),
)
async def open_session(
    request: Request, state: StateDep, body: Annotated[SessionRequest, json_body(SessionRequest)]
) -> Response:
    """Take the token and set a session cookie.

    The cookie is `HttpOnly` and `SameSite=Strict` (and `Secure` over https), lives for a week, and
    is only taken from the service's own pages. Without a token there is nothing to open, and no
    cookie is set.
    """
    answer = Response(status_code=204)
    value = state.authenticator.issue_session_cookie(body.token.get_secret_value())
    if value is not None:
        answer.set_cookie(
            SESSION_COOKIE,
            value,
            max_age=SESSION_S,
            path=_cookie_path(state),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
    return answer


@router.delete(
    "/api/session",
    operation_id="closeSession",
    status_code=204,
    summary="Close the browser session",
    dependencies=[Depends(require_principal)],
)
async def close_session(request: Request, state: StateDep) -> Response:
    """Make the session's cookie worthless and take it back."""
    state.authenticator.sessions.revoke(request)
    await state.authenticator.sessions.store()
    answer = Response(status_code=204)
    answer.delete_cookie(SESSION_COOKIE, path=_cookie_path(state), httponly=True, samesite="strict")
    return answer


def _cookie_path(state: AppState) -> str:
    """Return the path of the cookie: other services of the same host do not get it."""
    return state.settings.root_path or "/"
