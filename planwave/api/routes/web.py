"""The web UI: its built files, and its page for every address that no route has.

``tools/web.py`` builds the files from ``web/``. They need no token: the page exchanges it for a
session cookie, which the API requires. The page is the same for every address, because its own
router reads the address.
"""

from __future__ import annotations

import asyncio
import re
from html import escape
from pathlib import Path
from secrets import token_urlsafe
from typing import Final, NamedTuple

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from planwave.api.middleware.security_headers import NO_FRAMES, POLICY_HEADER
from planwave.api.problems import ProblemError
from planwave.graph.diagnostics import short_repr

BUILT_FILES: Final = Path(__file__).resolve().parent.parent / "web"
PAGE_NAME: Final = "index.html"
_FRAME_NAME: Final = "diagram.html"
"""The frame in which the page draws diagrams."""
NONCE_NAME: Final = "style-nonce"
"""The ``<meta>`` that tells the page which nonce its style elements need."""
_ASSETS: Final = "assets"
"""The folder of files whose names hold a hash of their content."""
_SERVICE_PATHS: Final = frozenset(
    {"api", _ASSETS, "hooks", "links", "ws", "docs", "healthz", "mcp", "readyz", "metrics"}
)
"""First segments of addresses that are never the page."""
_SCREENS: Final = frozenset(
    {"", PAGE_NAME, "approvals", "chat", "flows", "plans", "runs", "settings", "spend", "triggers"}
)
"""First segments of the page's own addresses, those of ``web/src/app/routes.tsx``.

At other addresses only browsers get the page, which shows "not found"; programs get the API's 404.
"""
_FILE_PATH: Final = re.compile(
    rf"/({_ASSETS}/)?(?!\.)[A-Za-z0-9._-]+\.(?!html?\Z)[a-z0-9]+", re.ASCII
)
"""A built file: plain names only, so that no spelling of ``..`` leads from one to another. The page is
none of them, because it needs its headers."""
_UNUSED_METHODS: Final = frozenset({"CONNECT", "OPTIONS", "TRACE"})
_BASE: Final = re.compile(r'<base href="[^"]*"\s*/?>')
_POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'nonce-{nonce}'; "
    f"object-src 'none'; base-uri 'self'; form-action 'self'; {NO_FRAMES}"
)
_FRAME_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'"
)
"""Mermaid sets styles as it likes; it loads nothing but its own parts."""
_NOT_BUILT: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>planwave</title></head>
<body>
<h1>The web UI is not built</h1>
<p>planwave runs; its HTTP API and its command line work. The web UI is built from a clone of the
repository with <code>make web</code>, which needs Node 20.19 or newer. Then reload this page.</p>
</body>
</html>
"""


class _RouteName(NamedTuple):
    """The route of a request in the access log and the metrics."""

    path: str
    path_format: str


_FILE_ROUTE: Final = _RouteName("/{file}", "/{file}")
_PAGE_ROUTE: Final = _RouteName("/{page}", "/{page}")


class WebUI:
    """An ASGI application for the addresses that no route has: files, the page, or not found.

    Args:
        not_found: Answers requests that are for neither.
        root_path: The path prefix of the service, without a slash at its end.
        directory: The built files. They may be missing, and may be built while this runs.
    """

    def __init__(
        self, not_found: ASGIApp, root_path: str = "", directory: Path = BUILT_FILES
    ) -> None:
        self._not_found = not_found
        self._root_path = root_path
        self._directory = directory
        self._files = GZipMiddleware(_BuiltFiles(directory=directory, check_dir=False))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._not_found
        if scope["type"] == "http":
            first, *_ = scope["path"].strip("/").split("/")
            is_file = _FILE_PATH.fullmatch(scope["path"]) is not None
            if scope["method"] != "GET":
                _refuse_method(scope, is_here=is_file or first in _SCREENS)
            elif is_file or scope["path"] == f"/{_FRAME_NAME}":
                scope["route"], app = _FILE_ROUTE, self._files
            elif first in _SCREENS or (first not in _SERVICE_PATHS and _accepts_html(scope)):
                scope["route"] = _PAGE_ROUTE
                app = await asyncio.to_thread(self._page)
        await app(scope, receive, send)

    def _page(self) -> Response:
        """Return the page with the path prefix and a new nonce; 503 if it is not built."""
        nonce = token_urlsafe(16)
        headers = {
            POLICY_HEADER: _POLICY.format(nonce=nonce),
            "Cache-Control": "no-cache",
        }
        try:
            built = (self._directory / PAGE_NAME).read_text("utf-8")
        except FileNotFoundError:
            return HTMLResponse(_NOT_BUILT, 503, headers)
        base = f'<base href="{escape(self._root_path)}/" />'
        head = f'{base}<meta name="{NONCE_NAME}" content="{nonce}" />'
        return HTMLResponse(_BASE.sub(lambda _: head, built, count=1), headers=headers)


class _BuiltFiles(StaticFiles):
    """The built files; browsers keep those of ``assets/`` and revalidate the others."""

    async def check_config(self) -> None:
        """Accept a folder that does not exist: its files are not found."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        is_hashed = path.startswith(f"{_ASSETS}/")
        if path == _FRAME_NAME:
            response.headers[POLICY_HEADER] = _FRAME_POLICY
        response.headers["Cache-Control"] = (
            "public, max-age=31536000, immutable" if is_hashed else "no-cache"
        )
        return response


def _refuse_method(scope: Scope, *, is_here: bool) -> None:
    """Refuse a method that files and pages do not have, and methods that nothing here has, at any address.

    Raises:
        ProblemError: 405.
    """
    if is_here or scope["method"] in _UNUSED_METHODS:
        where, method = short_repr(scope["path"]), short_repr(scope["method"])
        message, allowed = f"{where} has no method {method}", {"Allow": "GET, HEAD"}
        raise ProblemError(405, "method-not-allowed", message, headers=allowed)


def _accepts_html(scope: Scope) -> bool:
    """Return whether ``Accept`` names HTML, as it does when a browser opens an address."""
    return "text/html" in Request(scope).headers.get("accept", "")
