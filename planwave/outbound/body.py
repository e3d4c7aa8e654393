"""The body of a response, decoded within a limit of bytes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from planwave.errors import LimitExceeded, OutboundError

if TYPE_CHECKING:
    import httpx2

_GZIP: Final = 16 + zlib.MAX_WBITS
_HINT: Final = "ask for less, or raise the limit fetch_bytes"


async def read_body(response: httpx2.Response, max_bytes: int, url: str) -> bytes:
    """Read and decode the body of a response, and stop at the first piece over the limit.

    The client asks for ``gzip`` alone: other encodings cannot be decoded in small steps.

    Args:
        response: An open response.
        max_bytes: The limit ``fetch_bytes``.
        url: The URL for messages.

    Raises:
        LimitExceeded: The decoded body is larger.
        OutboundError: ``invalid-response``.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise _invalid(url, f"its encoding is {encoding!r}, which was not asked for")
    decoder = _GzipDecoder() if encoding.endswith("gzip") else None
    announced = response.headers.get("content-length", "")
    if decoder is None and announced.isdecimal():
        _check_size(int(announced), max_bytes, url)
    body = bytearray()
    async for chunk in response.aiter_raw():
        if decoder is None:
            body += chunk
        else:
            try:
                decoder.decode(chunk, body, max_bytes + 1)
            except zlib.error as error:
                raise _invalid(url, "its body is not gzip") from error
        _check_size(len(body), max_bytes, url)
    if decoder is not None and not decoder.is_complete:
        raise _invalid(url, "its body is cut off")
    return bytes(body)


class _GzipDecoder:
    """Decodes gzip, also of several members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self.is_complete = True

    def decode(self, chunk: bytes, body: bytearray, max_bytes: int) -> None:
        """Append what a chunk decodes to, until the body has ``max_bytes``."""
        while chunk and len(body) < max_bytes:
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP)
            body += self._member.decompress(chunk, max_bytes - len(body))
            self.is_complete = self._member.eof
            chunk = self._member.unconsumed_tail or self._member.unused_data


def _check_size(size: int, max_bytes: int, url: str) -> None:
    if size > max_bytes:
        raise LimitExceeded("fetch_bytes", max_bytes, size, what=repr(url), hint=_HINT)


def _invalid(url: str, why: str) -> OutboundError:
    return OutboundError(
        f"{url!r} sent a response that cannot be read: {why}", code="invalid-response"
    )
