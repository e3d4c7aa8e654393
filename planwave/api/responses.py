"""JSON responses; large ones are rendered outside the event loop, and documents sent in pieces."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from planwave.jsonio import dumps_trusted

if TYPE_CHECKING:
    from planwave.api.rate_limit import HeldBytes

PIECE_BYTES: Final = 64 * 1024
"""The most that is passed to the transport at once."""
_RENDERED_AT_ONCE: Final = 1024 * 1024
"""Bytes that are rendered in one call of a thread."""

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


class PiecesResponse(StreamingResponse):
    """JSON of a known size that is sent in pieces.

    Args:
        pieces: The text.
        size: Its bytes.
        close: Frees what the pieces are taken from, however the response ends.
    """

    def __init__(
        self, pieces: AsyncGenerator[bytes], size: int, close: Callable[[], object]
    ) -> None:
        headers = {"Content-Length": str(size)}
        super().__init__(pieces, headers=headers, media_type="application/json")
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()


def file_response(file: BinaryIO) -> Response:
    """Return a response with the JSON of an open file, which it closes."""

    async def pieces() -> AsyncGenerator[bytes]:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece

    return PiecesResponse(pieces(), os.fstat(file.fileno()).st_size, file.close)


async def pieces_response(rendered: Iterator[bytes], held: HeldBytes) -> Response:
    """Return a response with JSON that is rendered piece by piece in a thread, before it is sent.

    Args:
        rendered: The text, in pieces of any size.
        held: Counts the pieces until they are sent.

    Raises:
        ProblemError: ``server-busy``: too many bytes are held.
    """
    pieces: deque[bytes] = deque()
    size = 0
    try:
        while some := await asyncio.to_thread(_render, rendered):
            size += sum(map(len, some))
            held.grow(sum(map(len, some)))
            pieces += some
    except BaseException:
        held.close()
        raise

    async def sent() -> AsyncGenerator[bytes]:
        while pieces:
            piece = pieces.popleft()
            yield piece
            held.shrink(len(piece))
        yield b""  # waits until the client has taken the last piece

    return PiecesResponse(sent(), size, held.close)


def _render(rendered: Iterator[bytes]) -> list[bytes]:
    """Return the next megabyte of a text in pieces of the size that is sent; empty at its end."""
    some = bytearray()
    for piece in rendered:
        some += piece
        if len(some) >= _RENDERED_AT_ONCE:
            break
    return [bytes(some[at : at + PIECE_BYTES]) for at in range(0, len(some), PIECE_BYTES)]
