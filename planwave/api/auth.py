"""Who may use the service: one check for every route and WebSocket except the health checks.

The service has one token, sent as ``Authorization: Bearer …`` or, by browsers, exchanged for a session
cookie. Without a configured token (allowed on loopback only) every request that passes the host and
origin check is accepted.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from hashlib import sha256
from secrets import token_hex
from typing import Final, cast

from starlette.requests import HTTPConnection

from planwave.api.closed_sessions import ClosedSessions
from planwave.api.rate_limit import TokenBucket
from planwave.api.session_cookies import SESSION_COOKIE, SESSION_S, require_own_page
from planwave.errors import Unauthorized
from planwave.settings import Settings

_LOCAL: Final = "local"
_OWNER: Final = "owner"
_ANONYMOUS: Final = "nobody"
_PRINCIPAL: Final = "planwave.principal"
"""Where a connection's scope says who it is, once that is known."""


class Authenticator:
    """The one access check.

    Args:
        settings: ``token``; without one everybody who reaches the service may use it.
        now: Seconds since the epoch.
        clock: Seconds that never go back.

    Attributes:
        closed: The sessions that were closed before their time.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        token = None if settings.token is None else settings.token.get_secret_value()
        limits = settings.limits
        self._token = None if token is None else token.encode()
        self._now = now
        self._request_rate = TokenBucket(
            "requests", limits.requests_per_s, limits.requests_burst, clock,
            limits=("requests_per_s", "requests_burst"),
        )  # fmt: skip
        self._execution_rate = TokenBucket(
            "executions", limits.executions_per_minute / 60, limits.executions_per_minute, clock,
            limits=("executions_per_minute",),
        )  # fmt: skip
        self.closed = ClosedSessions()

    def check(self, connection: HTTPConnection) -> str:
        """Give the principal of a request or WebSocket, and count it.

        Raises:
            Unauthorized: It carries no token, or not the right one.
            Forbidden: It carries a cookie without saying which page it comes from.
            Busy: This principal asked too often.
        """
        try:
            principal = self._principal(connection)
        except Unauthorized:
            self._request_rate.acquire(_ANONYMOUS)  # guessing has its own, shared bucket
            raise
        self._request_rate.acquire(principal)
        return principal

    def check_execution_rate(self, principal: str) -> None:
        """Count an execution that is about to be made.

        Raises:
            Busy: This principal made too many within a minute.
        """
        self._execution_rate.acquire(principal)

    def issue_session_cookie(self, token: str) -> str | None:
        """Give the value of a session cookie; None where no token is needed.

        Raises:
            Unauthorized: It is not the token.
            Busy: Too many tried.
        """
        if self._token is None:
            return None
        if not self._is_token(token.encode(errors="replace")):
            self._request_rate.acquire(_ANONYMOUS)
            raise _unauthorized()
        claims = f"{int(self._now()) + SESSION_S}.{token_hex(16)}"
        return f"{claims}.{self._signature(claims)}"

    def revoke_session_cookie(self, connection: HTTPConnection) -> None:
        """Make a session's cookie worthless, wherever copies of it may be.

        It is durable after ``closed.store()``.
        """
        cookie = connection.cookies.get(SESSION_COOKIE, "")
        if self._is_session(cookie):
            claims, _, _ = cookie.rpartition(".")
            self.closed.add(claims, float(claims.partition(".")[0]), self._now())

    def _principal(self, connection: HTTPConnection) -> str:
        if self._token is None:
            return _LOCAL
        given = connection.headers.get("authorization")
        if given is not None:
            kind, _, token = given.partition(" ")
            # Header values are latin-1; a token outside ASCII is compared as the bytes it was.
            if kind.lower() == "bearer" and self._is_token(token.strip().encode("latin-1")):
                return _OWNER
            raise _unauthorized()
        if not self._is_session(connection.cookies.get(SESSION_COOKIE, "")):
            raise _unauthorized()
        require_own_page(connection)
        return _OWNER

    def _is_token(self, given: bytes) -> bool:
        return bool(self._token) and hmac.compare_digest(given, self._token)

    def _is_session(self, cookie: str) -> bool:
        claims, _, seal = cookie.rpartition(".")
        until, _, _ = claims.partition(".")
        return (
            hmac.compare_digest(seal.encode(errors="replace"), self._signature(claims).encode())
            and claims not in self.closed
            and self._now() < int(until)
        )

    def _signature(self, claims: str) -> str:
        key = sha256(b"planwave session\0" + (self._token or b"")).digest()
        return hmac.new(key, claims.encode(errors="replace"), "sha256").hexdigest()


async def require_principal(connection: HTTPConnection) -> str:
    """The dependency of every route but health: give who is asking.

    Raises:
        Unauthorized, Forbidden, Busy: See :meth:`Access.check`.
    """
    return authenticate(connection)


def authenticate(connection: HTTPConnection) -> str:
    """Check a request or WebSocket, the first time it is asked about; give who it is from.

    Raises:
        Unauthorized, Forbidden, Busy: See :meth:`Access.check`.
    """
    principal = connection.scope.get(_PRINCIPAL)
    if principal is None:
        principal = cast("Authenticator", connection.app.state.planwave.access).check(connection)
        connection.scope[_PRINCIPAL] = principal
    return principal


def _unauthorized() -> Unauthorized:
    return Unauthorized(
        "the bearer token is missing or wrong",
        hint="send Authorization: Bearer with the token the service was started with",
    )
