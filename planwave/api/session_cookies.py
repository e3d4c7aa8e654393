"""The browser's session cookie: its name, its lifetime, and the requests it is accepted from."""

from __future__ import annotations

from typing import Final

from starlette.requests import HTTPConnection

from planwave.errors import Forbidden

SESSION_COOKIE: Final = "planwave_session"
SESSION_S: Final = 7 * 86_400
_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})


def require_own_page(connection: HTTPConnection) -> None:
    """Take a cookie only from our own pages; the gate has looked at what ``Origin`` says.

    A browser says where a request comes from, except for plain ``GET`` from the same place.
    """
    if "origin" in connection.headers:
        return
    site = connection.headers.get("sec-fetch-site", "same-origin")
    if connection.scope.get("method") in _SAFE_METHODS and site in ("same-origin", "none"):
        return
    raise Forbidden(
        "a session cookie is only taken from the service's own pages",
        hint="send the Origin header, or the token as Authorization: Bearer",
    )
