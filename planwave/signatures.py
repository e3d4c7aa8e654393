"""Signatures of requests, as Standard Webhooks defines them, and as GitHub makes them.

HMAC-SHA256 over ``id.timestamp.body``, or over the body alone. Source: https://github.com/standard-webhooks/standard-webhooks, specification 1.0.0.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final

TOLERANCE_S: Final = 300
"""How far the timestamp of a request may be from the present, either way."""
SIGNED_ID: Final = "webhook-id"
"""The header with the id of a message, which is signed with it."""
GITHUB_HEADER: Final = "x-hub-signature-256"
"""The header with the signature of GitHub's webhooks."""
_PREFIX: Final = "whsec_"
_KEY_BYTES: Final = range(24, 65)
_MOST_SIGNATURES: Final = 20


def signing_key(secret: str) -> bytes | None:
    """Return the key of a secret, ``whsec_`` and base64 of 24 to 64 bytes; None for another text."""
    try:
        key = b64decode(secret.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) in _KEY_BYTES else None


def sign(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message: ``v1,`` and base64."""
    signed = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    return "v1," + b64encode(hmac.digest(key, signed, sha256)).decode()


def signed_headers(
    keys: Iterable[bytes], message_id: str, timestamp: int, body: bytes
) -> dict[str, str]:
    """Return the headers of a message, signed with each of the keys."""
    return {
        SIGNED_ID: message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(key, message_id, timestamp, body) for key in keys),
    }


def is_signed(keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Return whether one of the keys signed a message within the tolerance; its id has no full stop.

    Args:
        keys: Any of them counts, for rotation.
        headers: Those of the request, with names in lower case.
        body: As it was received.
        now: Seconds since the epoch.
    """
    message_id, written = headers.get(SIGNED_ID, ""), headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "").split(" ")[:_MOST_SIGNATURES]
    # A full stop in the id would let two messages have one signature: it ends the id in the signed text.
    if (
        not message_id
        or "." in message_id
        or not written.isascii()
        or not written.isdecimal()
        or len(written) > 15
    ):
        return False
    timestamp = int(written)
    if abs(now - timestamp) > TOLERANCE_S:
        return False
    expected = [sign(key, message_id, timestamp, body).encode() for key in keys]
    # Every pair is compared: the time tells nothing about which key or signature was right.
    matches = [
        hmac.compare_digest(each, one.encode(errors="replace"))
        for each in expected
        for one in signatures
    ]
    return any(matches)


def is_signed_by_github(secrets: Sequence[str], headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether one of the secrets signed a body as GitHub does: ``sha256=`` and HMAC-SHA256 in hex.

    Neither the time nor the id of the delivery is signed.

    Args:
        secrets: Any of them counts, for rotation.
        headers: Those of the request, with names in lower case.
        body: As it was received.
    """
    signature = headers.get(GITHUB_HEADER, "").encode(errors="replace")
    expected = [f"sha256={hmac.digest(each.encode(), body, sha256).hex()}" for each in secrets]
    matches = [hmac.compare_digest(each.encode(), signature) for each in expected]
    return any(matches)
