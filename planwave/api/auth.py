"""Authentication: one check for every route and WebSocket except the health checks.

The service has one token, sent as ``Authorization: Bearer …`` or, by browsers, exchanged for a session
cookie. Without a configured token (allowed on loopback only) every request that passes the Host and
Origin check is accepted. Besides it there are access tokens, each for some flows; ``access_rules.py``
says what they may do, also where the service itself has no token.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from starlette.requests import HTTPConnection

from planwave.api.access_rules import ACCESS_TOKEN, access_token, check_access
from planwave.api.rate_limit import AccessTokenRates, TokenBucket
from planwave.api.session_cookies import (
    SESSION_COOKIE,
    SessionCookies,
    refuse_other_sites,
    require_own_page,
)
from planwave.errors import PlanwaveError, StoreError, Unauthorized
from planwave.principals import LOCAL, OPERATOR, Principal, set_principal
from planwave.service.access_tokens import TOKEN_PREFIX
from planwave.settings import Settings
from planwave.storage.access_tokens import AccessTokenRecord

_ANONYMOUS: Final = "nobody"
PRINCIPAL: Final = "planwave.principal"
"""Key of the principal in a connection's scope, once it is authenticated."""


class Authenticator:
    """The authentication of requests, and the rate limits of each principal.

    Args:
        settings: ``token``; without one every client that reaches the service is accepted.
        now: Seconds since the epoch.
        clock: Seconds that never go back.
        find_token: Returns the access token of a text, or None; raises ``StoreError`` where it cannot know.
        note_use: Called with the id of an access token that is used.
        why_denied: Says why a text is no valid access token.

    Attributes:
        sessions: The session cookies.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
        find_token: Callable[[str], AccessTokenRecord | None] = lambda _: None,
        note_use: Callable[[str], object] = lambda _: None,
        why_denied: Callable[[str], str] = lambda _: "token-unknown",
    ) -> None:
        token = None if settings.token is None else settings.token.get_secret_value()
        limits = settings.limits
        self._token = None if token is None else token.encode()
        self._find_token = find_token
        self._note_use = note_use
        self._why_denied = why_denied
        self._token_rates = AccessTokenRates(clock)
        self.sessions = SessionCookies(self._token, now)
        self._request_rate = TokenBucket(
            "requests", limits.requests_per_s, limits.requests_burst, clock,
            limits=("requests_per_s", "requests_burst"),
        )  # fmt: skip
        self._execution_rate = TokenBucket(
            "executions", limits.executions_per_minute / 60, limits.executions_per_minute, clock,
            limits=("executions_per_minute",),
        )  # fmt: skip

    def check(self, connection: HTTPConnection) -> Principal:
        """Return the principal of a request or WebSocket, and count the request.

        Raises:
            Unauthorized: The token is missing or wrong.
            Forbidden: The request comes from another site, or has a cookie and does not say which page it
                comes from.
            TooManyRequests: The principal sent too many requests.
            StoreError: ``store-unreachable``: whether the token or the session has ended is not known.
        """
        refuse_other_sites(connection)
        token = self._access_token(connection)
        if token is not None:
            connection.scope[ACCESS_TOKEN] = token
            principal = Principal("token", token.token_id, token.name)
            self._note_use(token.token_id)
            self._token_rates.count(token, "requests")
        else:
            try:
                principal = self._principal(connection)
            except Unauthorized:
                self._request_rate.acquire(_ANONYMOUS)  # failed attempts share one bucket
                raise
        self._request_rate.acquire(principal.account)
        return principal

    def why_ended(self, connection: HTTPConnection) -> PlanwaveError | None:
        """Return why a connection may not go on: its access token or session is over, or may be."""
        try:
            if access_token(connection) is not None:
                holds = self._access_token(connection) is not None
            else:
                holds = self.sessions.is_valid(connection)
        except StoreError as error:
            return error
        return None if holds else _access_ended()

    def count_request(self, account: str) -> None:
        """Count a request of a principal that was authenticated elsewhere.

        Raises:
            TooManyRequests: The principal sent too many requests.
        """
        self._request_rate.acquire(account)

    def count_failure(self) -> None:
        """Count an attempt to authenticate that failed elsewhere; all of them share one limit.

        Raises:
            TooManyRequests: There were too many.
        """
        self._request_rate.acquire(_ANONYMOUS)

    def check_execution_rate(self, account: str) -> None:
        """Count an execution that is about to be created.

        Raises:
            TooManyRequests: The principal created too many within a minute.
        """
        self._execution_rate.acquire(account)

    def check_token_rate(self, token: AccessTokenRecord | None) -> None:
        """Count an execution that is about to be created with an access token.

        Raises:
            TooManyRequests: The token created too many within a minute.
        """
        if token is not None:
            self._token_rates.count(token, "executions")

    def issue_session_cookie(self, token: str) -> str | None:
        """Return the value of a session cookie; None if the service has no token.

        Raises:
            Unauthorized: The token is wrong.
            TooManyRequests: Too many wrong tokens were sent.
        """
        if self._token is None:
            return None
        if not self._is_token(token.encode(errors="replace")):
            self._request_rate.acquire(_ANONYMOUS)
            raise _unauthorized("token-unknown")
        return self.sessions.issue()

    def _access_token(self, connection: HTTPConnection) -> AccessTokenRecord | None:
        return self._find_token(_bearer(connection.headers.get("authorization", "")))

    def _principal(self, connection: HTTPConnection) -> Principal:
        authorization = connection.headers.get("authorization")
        if self._token is None:
            if _bearer(authorization or "").startswith(TOKEN_PREFIX):
                raise _unauthorized(self._denied_token(authorization or ""))
            return LOCAL
        if authorization is not None:
            scheme, _, token = authorization.partition(" ")
            # Header values are latin-1; a token outside ASCII is compared as the bytes it was.
            if scheme.lower() == "bearer" and self._is_token(token.strip().encode("latin-1")):
                return OPERATOR
            raise _unauthorized(self._denied_token(authorization))
        session_id = self.sessions.session_of(connection)
        if session_id is None:
            has_cookie = SESSION_COOKIE in connection.cookies
            raise _unauthorized("session-ended-or-unknown" if has_cookie else "header-missing")
        require_own_page(connection)
        return Principal("session", session_id)

    def _denied_token(self, authorization: str) -> str:
        """Return why a header is no credential, for the operator."""
        bearer = _bearer(authorization)
        return self._why_denied(bearer) if bearer.startswith(TOKEN_PREFIX) else "token-unknown"

    def _is_token(self, token: bytes) -> bool:
        return bool(self._token) and hmac.compare_digest(token, self._token)


async def require_principal(connection: HTTPConnection) -> Principal:
    """Return the principal of a request; the dependency of every route but the health checks.

    Raises:
        Unauthorized, Forbidden, TooManyRequests: See ``Authenticator.check``.
        Forbidden, NotFound: See ``planwave.api.access_rules.check_access``.
    """
    principal = authenticate(connection)
    await check_access(connection, connection.app.state.planwave.service)
    return principal


async def require_no_other_site(connection: HTTPConnection) -> None:
    """Check an unauthenticated request; the dependency of routes that prove their senders themselves.

    Raises:
        Forbidden: See ``planwave.api.session_cookies.refuse_other_sites``.
    """
    refuse_other_sites(connection)


def authenticate(connection: HTTPConnection) -> Principal:
    """Return the principal of a request or WebSocket; check and count it the first time only.

    What the task does from then on is recorded as done by the principal.

    Raises:
        Unauthorized, Forbidden, TooManyRequests: See ``Authenticator.check``.
    """
    principal = connection.scope.get(PRINCIPAL)
    if principal is None:
        authenticator = cast("Authenticator", connection.app.state.planwave.authenticator)
        principal = authenticator.check(connection)
        connection.scope[PRINCIPAL] = principal
        set_principal(principal)
    return principal


def account_of(scope: Mapping[str, Any]) -> str:
    """Return the account of an authenticated request; of any other one that all of them share."""
    principal: Principal | None = scope.get(PRINCIPAL)
    return _ANONYMOUS if principal is None else principal.account


def may_end(connection: HTTPConnection) -> bool:
    """Return whether an authenticated connection has a credential that can end before it does."""
    principal = connection.scope.get(PRINCIPAL)
    return isinstance(principal, Principal) and principal.kind in ("token", "session")


def why_ended(connection: HTTPConnection) -> PlanwaveError | None:
    """Return why a connection may not go on, or None; see ``Authenticator.why_ended``."""
    authenticator = cast("Authenticator", connection.app.state.planwave.authenticator)
    return authenticator.why_ended(connection)


def _bearer(authorization: str) -> str:
    """Return the text of a bearer token, "" for another scheme."""
    scheme, _, text = authorization.partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def _access_ended() -> Unauthorized:
    return Unauthorized(
        "the access token was revoked or has expired, or the session was closed",
        code="access-ended",
        hint="connect again with a valid token",
    )


def _unauthorized(reason: str) -> Unauthorized:
    return Unauthorized(
        "the bearer token is missing or wrong",
        hint="send Authorization: Bearer with the token the service was started with",
        reason=reason,
    )
