"""How answers are written: as compact JSON, the large ones beside the event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from planwave.storage.rows import encode_known


def rendered(
    content: Any, status: int = 200, *, location: str | None = None, etag: str | None = None
) -> Response:
    """Give an answer; ``location`` is where what was made is found, ``etag`` what it is now."""
    headers: dict[str, str] = {}
    if location is not None:
        headers["Location"] = location
    if etag is not None:
        headers["ETag"] = f'"{etag}"'
    return Response(encode_known(content), status, headers, media_type="application/json")


async def rendered_aside(content: Any) -> Response:
    """Give a large answer without holding up what else is going on."""
    body = await asyncio.to_thread(encode_known, content)
    return Response(body, media_type="application/json")
