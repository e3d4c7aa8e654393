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
_SIGNING_HEADERS: Final = (SIGNED_ID, "webhook-timestamp", "webhook-signature")
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


def signature_fault(
    keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now: float
) -> str | None:
    """Return why none of the keys signed a message within the tolerance, for the operator; None if one did.

    Its id has no full stop. The sender is not told: a reason would help to guess.

    Args:
        keys: Any of them counts, for rotation.
        headers: Those of the request, with names in lower case.
        body: As it was received.
        now: Seconds since the epoch.
    """
    message_id, written = headers.get(SIGNED_ID, ""), headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "").split(" ")[:_MOST_SIGNATURES]
    missing = [name for name in _SIGNING_HEADERS if not headers.get(name)]
    if missing:
        return f"header-missing: {', '.join(missing)}"
    # A full stop in the id would let two messages have one signature: it ends the id in the signed text.
    if "." in message_id:
        return f"id-not-valid: {SIGNED_ID} has a full stop"
    if not written.isascii() or not written.isdecimal() or len(written) > 15:
        return "timestamp-not-a-number"
    timestamp = int(written)
    if abs(behind_s := now - timestamp) > TOLERANCE_S:
        word = "too-old" if behind_s > 0 else "in-the-future"
        return f"timestamp-{word}: by {abs(behind_s):.0f} s; is a clock wrong?"
    expected = [sign(key, message_id, timestamp, body).encode() for key in keys]
    # Every pair is compared: the time tells nothing about which key or signature was right.
    matches = [
        hmac.compare_digest(each, one.encode(errors="replace"))
        for each in expected
        for one in signatures
    ]
    return _mismatch(keys, matches)


def github_signature_fault(
    secrets: Sequence[str], headers: Mapping[str, str], body: bytes
) -> str | None:
    """Return why none of the secrets signed a body as GitHub does: ``sha256=`` and HMAC-SHA256 in hex.

    Neither the time nor the id of the delivery is signed.

    Args:
        secrets: Any of them counts, for rotation.
        headers: Those of the request, with names in lower case.
        body: As it was received.
    """
    signature = headers.get(GITHUB_HEADER, "").encode(errors="replace")
    expected = [f"sha256={hmac.digest(each.encode(), body, sha256).hex()}" for each in secrets]
    matches = [hmac.compare_digest(each.encode(), signature) for each in expected]
    if not signature:
        return f"header-missing: {GITHUB_HEADER}"
    return _mismatch(secrets, matches)


def credential_fault(secrets: Sequence[str], headers: Mapping[str, str], name: str) -> str | None:
    """Return why a header is none of the secrets, for the operator; None if it is one.

    Args:
        secrets: Any of them counts, for rotation.
        headers: Those of the request, with names in lower case.
        name: The name of the header.
    """
    credential = headers.get(name.lower(), "").encode(errors="replace")
    # All are compared: the time tells nothing about which of them was right.
    matches = [hmac.compare_digest(credential, secret.encode()) for secret in secrets]
    if not credential:
        return f"header-missing: {name.lower()}"
    return _mismatch(secrets, matches)


def _mismatch(secrets: Sequence[object], matches: Sequence[bool]) -> str | None:
    if not secrets:
        return "no-secret-set"
    return None if any(matches) else "signature-mismatch"
