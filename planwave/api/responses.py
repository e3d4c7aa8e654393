"""How answers are written: as compact JSON, the large ones beside the event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from planwave.jsonio import dumps_trusted


def json_response(
    content: Any, status: int = 200, *, location: str | None = None, etag: str | None = None
) -> Response:
    """Give an answer; ``location`` is where what was made is found, ``etag`` what it is now."""
    headers: dict[str, str] = {}
    if location is not None:
        headers["Location"] = location
    if etag is not None:
        headers["ETag"] = f'"{etag}"'
    return Response(dumps_trusted(content), status, headers, media_type="application/json")


async def json_response_in_thread(content: Any) -> Response:
    """Give a large answer without holding up what else is going on."""
    body = await asyncio.to_thread(dumps_trusted, content)
    return Response(body, media_type="application/json")
