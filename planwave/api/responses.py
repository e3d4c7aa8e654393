"""JSON responses; large ones are rendered outside the event loop."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response

from planwave.jsonio import dumps_trusted

NOT_REPLAYABLE: Final = "planwave.made-nothing"
"""Scope key of a request whose response is a stream that reports a failure; it is not stored for
repetitions of the request."""

UNFINISHED: Final = "planwave.unfinished"
"""Scope key of a request whose response broke off while its execution goes on: its idempotency key
stays claimed, so the same request again follows this execution."""


def json_response(
    content: Any, status: int = 200, *, location: str | None = None, etag: str | None = None
) -> Response:
    """Return a JSON response with ``Location`` and ``ETag`` headers where given."""
    headers: dict[str, str] = {}
    if location is not None:
        headers["Location"] = location
    if etag is not None:
        headers["ETag"] = f'"{etag}"'
    return Response(dumps_trusted(content), status, headers, media_type="application/json")


async def json_response_in_thread(content: Any) -> Response:
    """Return a large JSON response, rendered in a thread so that the event loop goes on."""
    body = await asyncio.to_thread(dumps_trusted, content)
    return Response(body, media_type="application/json")
