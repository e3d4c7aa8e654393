"""Images by URL, fetched for models that are to look at them."""

from __future__ import annotations

from base64 import b64encode
from email.message import Message
from typing import Final

from planwave.errors import OutboundError
from planwave.outbound.client import OutboundClient, status_error
from planwave.outbound.urls import errors_at

IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What all providers can look at. Source: OpenAI's and Anthropic's guides to images."""
_ALIASES: Final = {"image/jpg": "image/jpeg"}
"""Content types that servers send for these, although they are not registered."""


async def fetch_image(client: OutboundClient, url: str) -> str:
    """Fetch an image and return it as a ``data:`` URL.

    Args:
        client: The client, with its limits.
        url: An ``http`` or ``https`` URL.

    Raises:
        OutboundError: As ``OutboundClient.request``; ``http-status``; ``invalid-response``: it is
            none of ``IMAGE_TYPES``, by its content type or by its bytes.
        LimitExceeded: ``fetch_bytes`` or ``fetch_redirects``.
    """
    with errors_at(url):
        return await _fetch(client, url)


async def _fetch(client: OutboundClient, url: str) -> str:
    response = await client.request("GET", url, headers={"Accept": ", ".join(IMAGE_TYPES)})
    if response.status >= 400:
        raise status_error("GET", response)
    written = Message()
    written["Content-Type"] = response.headers.get("content-type", "application/octet-stream")
    media_type = written.get_content_type()
    if _ALIASES.get(media_type, media_type) not in IMAGE_TYPES:
        raise _no_image(response.url, f"its type is {media_type!r}")
    kind = _type_of(response.body)
    if kind is None:
        raise _no_image(
            response.url, f"its bytes are not those of an image, although it is {media_type}"
        )
    return f"data:{kind};base64,{b64encode(response.body).decode('ascii')}"


def _type_of(body: bytes) -> str | None:
    """Return the type of an image by its first bytes; servers often send another one."""
    if body.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if body.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if body.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if body.startswith(b"RIFF") and body[8:12] == b"WEBP":
        return "image/webp"
    return None


def _no_image(url: str, why: str) -> OutboundError:
    return OutboundError(
        f"{url!r} is no image that a model can look at: {why}",
        code="invalid-response",
        hint=f"give the URL of the image itself: {', '.join(IMAGE_TYPES)}",
        retryable=False,
    )
