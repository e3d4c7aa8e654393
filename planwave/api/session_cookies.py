"""The browser's session cookie: issued for the token, accepted from own pages only, revocable.

A cookie is signed, not stored: ``expiry.nonce.signature``. The key is made of the token, so that a new
one ends all sessions, and of random bytes in the storage directory, so that nobody who has a cookie can try
tokens on it. Only the sessions that were closed before their expiry are stored, in one small file beside
that, so that a restart does not open them again. An entry is removed once its session has expired anyway.
Where several processes share a database, key and closed sessions are in its tables.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.requests import HTTPConnection

from planwave.errors import Forbidden, StoreError, reason_of
from planwave.storage.files import write_atomically

if TYPE_CHECKING:
    from planwave.storage.postgres.sessions import SharedSessions

SESSION_COOKIE: Final = "planwave_session"
SESSION_S: Final = 7 * 86_400
FILE_NAME: Final = "closed-sessions.json"
_ID_CHARS: Final = 16
KEY_FILE_NAME: Final = "session.key"
_KEY_BYTES: Final = 32
_OWN_MODE: Final = 0o600
_OTHER_SITES: Final = ("cross-site", "same-site")
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})

_log = logging.getLogger(__name__)


class SessionCookies:
    """The session cookies of one service.

    Args:
        token: The service's token; a new one ends all sessions.
        now: Seconds since the epoch.
    """

    def __init__(self, token: bytes | None, now: Callable[[], float]) -> None:
        self._token = token or b""
        self._key = self._key_of(token_bytes(_KEY_BYTES))
        self._now = now
        self._closed: dict[str, float] = {}
        self._path: Path | None = None
        self._shared: SharedSessions | None = None
        self._require_confirmed: Callable[[], None] = lambda: None
        self._unstored: dict[str, float] = {}
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
        """Return whether a request carries the cookie of an open session.

        Raises:
            StoreError: ``store-unreachable``: whether another process has closed it is not known.
        """
        claims, _, signature = connection.cookies.get(SESSION_COOKIE, "").rpartition(".")
        expiry, _, _ = claims.partition(".")
        is_signed = hmac.compare_digest(
            signature.encode(errors="replace"), self._signature(claims).encode()
        )
        if not is_signed or claims in self._closed or self._now() >= int(expiry):
            return False
        self._require_confirmed()
        return True

    def revoke(self, connection: HTTPConnection) -> None:
        """Close the session of a request, for every copy of its cookie; durable after ``store``."""
        if self.is_valid(connection):
            claims, _, _ = connection.cookies[SESSION_COOKIE].rpartition(".")
            now = self._now()
            self._closed = {each: expiry for each, expiry in self._closed.items() if expiry > now}
            self._closed[claims] = self._unstored[claims] = float(claims.partition(".")[0])

    async def share(self, sessions: SharedSessions, require_confirmed: Callable[[], None]) -> None:
        """Use the key and the closed sessions of a database, and store them there from now on.

        Args:
            sessions: Those of the database; ``reload`` reads them.
            require_confirmed: Raises where they have not been read for too long.

        Raises:
            StoreError: The key cannot be read.
        """
        self._path, self._shared = None, sessions
        self._require_confirmed = require_confirmed
        self._key = self._key_of(await sessions.key(_KEY_BYTES))

    async def reload(self) -> None:
        """Read which sessions other processes have closed.

        Raises:
            StoreError: They cannot be read.
        """
        if self._shared is not None:
            if self._unstored:
                await self.store()
            stored = await self._shared.closed(self._now())
            self._closed = {**stored, **self._closed}  # one may have been closed here meanwhile

    def open(self, directory: Path | None) -> None:
        """Read the key and the closed sessions of a storage directory, and store them there from now on.

        Args:
            directory: None stores nothing.

        Raises:
            StoreError: ``store-unreadable``: a file exists and cannot be read; ``store-failed``: the key
                cannot be stored.
        """
        self._path = None if directory is None else directory / FILE_NAME
        if self._path is None:
            return
        self._key = self._key_of(_stored_key(self._path.with_name(KEY_FILE_NAME)))
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
        if self._shared is not None:
            await self._store_shared(self._shared)
            return
        if self._path is None:
            return
        async with self._writing:
            try:
                content = json.dumps(self._closed).encode()
                await asyncio.to_thread(write_atomically, self._path, content)
            except OSError as error:
                _log.warning("closed sessions are only remembered until a restart: %s", error)

    async def _store_shared(self, sessions: SharedSessions) -> None:
        unstored = dict(self._unstored)
        try:
            await sessions.close(unstored, self._now())
        except StoreError as error:
            _log.warning("closed sessions are not stored yet: %s", error)
            return
        for claims in unstored:
            self._unstored.pop(claims, None)

    def _key_of(self, random: bytes) -> bytes:
        return hmac.digest(random, b"planwave session\0" + self._token, "sha256")

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


def refuse_other_sites(connection: HTTPConnection) -> None:
    """Refuse a request that a page of another site makes a browser send.

    Such a page can read nothing, but would use up the rate limit of the user. With an ``Origin`` the Host and
    Origin middleware has decided. Programs send neither header. The page of the web UI needs no
    authentication, so that links from elsewhere lead to it.

    Raises:
        Forbidden: ``Sec-Fetch-Site`` names another site, and there is no ``Origin``.
    """
    site = connection.headers.get("sec-fetch-site", "").strip().lower()
    if site in _OTHER_SITES and "origin" not in connection.headers:
        raise Forbidden(
            "pages of other sites may not use this service",
            hint="open the address directly, or follow a link to the web UI",
        )


def _stored_key(path: Path) -> bytes:
    """Return the random bytes in a file that only its user can read; make it where there is none.

    Raises:
        StoreError: It cannot be read or written.
    """
    try:
        stored = path.read_bytes()
    except FileNotFoundError:
        stored = token_bytes(_KEY_BYTES)
        _store_key(path, stored)
    except OSError as error:
        raise _unreadable_key(path, reason_of(error)) from error
    if len(stored) != _KEY_BYTES:
        raise _unreadable_key(path, f"it has {len(stored)} bytes, not {_KEY_BYTES}")
    return stored


def _store_key(path: Path, key: bytes) -> None:
    try:
        write_atomically(path, key)
        path.chmod(_OWN_MODE)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {reason_of(error)}", code="store-failed"
        ) from error


def _unreadable_key(path: Path, why: str) -> StoreError:
    return StoreError(
        f"{path} cannot be read: {why}",
        code="store-unreadable",
        hint="remove the file: all browsers have to log in again",
    )


def _parse_closed(stored: Any) -> dict[str, float]:
    """Return the expiry of each closed session.

    Raises:
        TypeError, ValueError: The file does not hold times by claims.
    """
    if not isinstance(stored, dict):
        raise ValueError("it holds no object")
    return {name: float(expiry) for name, expiry in cast("dict[str, Any]", stored).items()}
