"""Images by URL: what is taken for one, and what is refused."""

from __future__ import annotations

from base64 import b64encode

import pytest

from planwave.errors import LimitExceeded, OutboundError
from planwave.outbound.images import fetch_image
from tests.support.outbound.fake_network import PUBLIC, FakeNetwork, redirect, response

PNG = b"\x89PNG\r\n\x1a\n rest"
JPEG = b"\xff\xd8\xff rest"
URL = "https://pictures.test/cat?key=canary"
NAMES = {"pictures.test": [PUBLIC], "inner.test": ["10.0.0.1"]}


async def fetched(*answers: bytes, url: str = URL, **limits: int) -> str:
    return await fetch_image(FakeNetwork(NAMES, *answers).client(**limits), url)


@pytest.mark.parametrize(
    ("body", "said", "kind"),
    [
        (PNG, "image/png", "image/png"),
        (JPEG, "image/jpeg; q=1", "image/jpeg"),
        (JPEG, "image/jpg", "image/jpeg"),
        (b"GIF89a rest", "image/gif", "image/gif"),
        (b"RIFF....WEBP rest", "image/webp", "image/webp"),
        (JPEG, "image/png", "image/jpeg"),  # providers look at the bytes, and so do we
    ],
)
async def test_an_image_becomes_data_of_the_type_of_its_bytes(
    body: bytes, said: str, kind: str
) -> None:
    found = await fetched(redirect("/moved"), response(body, kind=said))
    assert found == f"data:{kind};base64,{b64encode(body).decode()}"


@pytest.mark.parametrize(
    ("body", "said", "words"),
    [
        (PNG, "text/html", "its type is 'text/html'"),
        (b"<svg/>", "image/svg+xml", "its type is 'image/svg\\+xml'"),
        (b"<html>", "image/png", "its bytes are not those of an image"),
        (b"RIFF....WAVE", "image/webp", "its bytes are not those of an image"),
        (b"", "image/png", "its bytes are not those of an image"),
    ],
)
async def test_what_is_no_image_is_an_error_that_says_so(
    body: bytes, said: str, words: str
) -> None:
    with pytest.raises(OutboundError, match=words) as caught:
        await fetched(response(body, kind=said))
    error = caught.value
    assert (error.code, error.retryable) == ("invalid-response", False)
    assert "image/webp" in (error.hint or "")
    assert "canary" not in error.message


@pytest.mark.parametrize(("status", "retryable"), [("404 Not Found", False), ("503 Busy", True)])
async def test_an_error_status_is_an_error(status: str, retryable: bool) -> None:
    with pytest.raises(OutboundError, match=status) as caught:
        await fetched(response(PNG, status=status, kind="image/png"))
    assert (caught.value.code, caught.value.retryable) == ("http-status", retryable)


async def test_an_image_at_a_private_address_is_refused() -> None:
    with pytest.raises(OutboundError) as caught:
        await fetched(url="https://inner.test/cat.png")
    assert caught.value.code == "address-refused"


async def test_an_image_over_the_limit_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="fetch_bytes"):
        await fetched(response(PNG, kind="image/png"), body_bytes=len(PNG) - 1)
