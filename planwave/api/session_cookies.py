"""The browser's session cookie: issued for the token, accepted from own pages only, revocable.

A cookie is signed, not stored: ``expiry.nonce.signature``. Only the sessions that were closed before
their expiry are stored, in one small file of the storage directory, so that a restart does not
open them again. An entry is removed once its session has expired anyway.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, cast

from starlette.requests import HTTPConnection

from planwave.errors import Forbidden, StoreError, reason_of
from planwave.storage.files import write_atomically

SESSION_COOKIE: Final = "planwave_session"
SESSION_S: Final = 7 * 86_400
FILE_NAME: Final = "closed-sessions.json"
_ID_CHARS: Final = 16
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})

_log = logging.getLogger(__name__)


class SessionCookies:
    """The session cookies of one service.

    Args:
        token: The service's token; a new one ends all sessions.
        now: Seconds since the epoch.
    """

    def __init__(self, token: bytes | None, now: Callable[[], float]) -> None:
        self._key = sha256(b"planwave session\0" + (token or b"")).digest()
        self._now = now
        self._closed: dict[str, float] = {}
        self._path: Path | None = None
        self._writing = asyncio.Lock()

    def issue(self) -> str:
        """Return the value of a new cookie."""
        claims = f"{int(self._now()) + SESSION_S}.{token_hex(16)}"
        return f"{claims}.{self._signature(claims)}"

    def session_of(self, connection: HTTPConnection) -> str | None:
        """Return the id of the open session whose cookie a request carries, or None.

        The id is not the cookie: nobody who reads it can use the session.
        """
        if not self.is_valid(connection):
            return None
        claims, _, _ = connection.cookies[SESSION_COOKIE].rpartition(".")
        return sha256(claims.encode()).hexdigest()[:_ID_CHARS]

    def is_valid(self, connection: HTTPConnection) -> bool:
        """Return whether a request carries the cookie of an open session."""
        claims, _, signature = connection.cookies.get(SESSION_COOKIE, "").rpartition(".")
        expiry, _, _ = claims.partition(".")
        is_signed = hmac.compare_digest(
            signature.encode(errors="replace"), self._signature(claims).encode()
        )
        return is_signed and claims not in self._closed and self._now() < int(expiry)

    def revoke(self, connection: HTTPConnection) -> None:
        """Close the session of a request, for every copy of its cookie; durable after :meth:`store`."""
        if self.is_valid(connection):
            claims, _, _ = connection.cookies[SESSION_COOKIE].rpartition(".")
            now = self._now()
            self._closed = {each: expiry for each, expiry in self._closed.items() if expiry > now}
            self._closed[claims] = float(claims.partition(".")[0])

    def open(self, directory: Path | None) -> None:
        """Read the closed sessions of a storage directory, and store them there from now on.

        Args:
            directory: None stores nothing.

        Raises:
            StoreError: ``store-unreadable``: the file exists and cannot be read.
        """
        self._path = None if directory is None else directory / FILE_NAME
        if self._path is None:
            return
        try:
            stored = _parse_closed(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return
        except (OSError, TypeError, ValueError) as error:
            raise StoreError(
                f"{self._path} cannot be read: {reason_of(error)}",
                code="store-unreadable",
                hint="remove the file and change the token, or closed sessions are open again",
            ) from error
        self._closed = {**stored, **self._closed}

    async def store(self) -> None:
        """Store the closed sessions; log a failure: they stay closed until a restart."""
        if self._path is None:
            return
        async with self._writing:
            try:
                content = json.dumps(self._closed).encode()
                await asyncio.to_thread(write_atomically, self._path, content)
            except OSError as error:
                _log.warning("closed sessions are only remembered until a restart: %s", error)

    def _signature(self, claims: str) -> str:
        return hmac.new(self._key, claims.encode(errors="replace"), "sha256").hexdigest()


def require_own_page(connection: HTTPConnection) -> None:
    """Check that a request with a cookie comes from the service's own pages.

    The Host and Origin middleware has checked ``Origin``. Browsers send ``Origin`` or
    ``Sec-Fetch-Site`` with every request but a plain ``GET`` from the same site.

    Raises:
        Forbidden: The request does not say which page it comes from.
    """
    if "origin" in connection.headers:
        return
    site = connection.headers.get("sec-fetch-site", "same-origin")
    if connection.scope.get("method") in _SAFE_METHODS and site in ("same-origin", "none"):
        return
    raise Forbidden(
        "a session cookie is only accepted from the service's own pages",
        hint="send the Origin header, or the token as Authorization: Bearer",
    )


def _parse_closed(stored: Any) -> dict[str, float]:
    """Return the expiry of each closed session.

    Raises:
        TypeError, ValueError: The file does not hold times by claims.
    """
    if not isinstance(stored, dict):
        raise ValueError("it holds no object")
    return {name: float(expiry) for name, expiry in cast("dict[str, Any]", stored).items()}
