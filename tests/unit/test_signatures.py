"""Signatures of webhooks, against the package of Standard Webhooks."""

from __future__ import annotations

import base64
import hmac
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from planwave.signatures import (
    TOLERANCE_S,
    credential_fault,
    github_signature_fault,
    sign,
    signature_fault,
    signed_headers,
    signing_key,
)
from tests.support.triggers.hook_sender import OTHER_SECRET, SECRET

NOW = 1_800_000_000
KEY, OTHER_KEY = signing_key(SECRET) or b"", signing_key(OTHER_SECRET) or b""
BODY = '{"order": "Ä-17"}'


@given(
    body=st.text(), message_id=st.text(st.characters(codec="ascii", categories=["L"]), min_size=1)
)
def test_signature_equals_that_of_the_package(body: str, message_id: str) -> None:
    at = datetime.fromtimestamp(NOW, UTC)
    expected = Webhook(SECRET).sign(message_id, at, body)
    assert sign(KEY, message_id, NOW, body.encode()) == expected


def test_the_package_verifies_what_is_signed() -> None:
    now = int(datetime.now(UTC).timestamp())
    headers = signed_headers([OTHER_KEY, KEY], "msg", now, BODY.encode())
    for secret in (SECRET, OTHER_SECRET):
        assert Webhook(secret).verify(BODY, headers, json_parse=True) == {"order": "Ä-17"}


@pytest.mark.parametrize("offset_s", [0, TOLERANCE_S, -TOLERANCE_S])
def test_message_is_accepted_within_the_tolerance(offset_s: int) -> None:
    headers = signed_headers([KEY], "msg", NOW + offset_s, BODY.encode())
    assert signature_fault([KEY], headers, BODY.encode(), NOW) is None


def test_any_key_is_accepted_for_rotation() -> None:
    headers = signed_headers([OTHER_KEY], "msg", NOW, BODY.encode())
    assert signature_fault([KEY, OTHER_KEY], headers, BODY.encode(), NOW) is None
    both = signed_headers([OTHER_KEY, KEY], "msg", NOW, BODY.encode())
    assert signature_fault([KEY], both, BODY.encode(), NOW) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"webhook-id": "other"},
        {"webhook-id": ""},
        {"webhook-timestamp": str(NOW + 1)},
        {"webhook-timestamp": ""},
        {"webhook-timestamp": "-1"},
        {"webhook-timestamp": "1e9"},
        {"webhook-timestamp": "9" * 5_000},
        {"webhook-timestamp": "١٨٠"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1"},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,a,b"},
        {"webhook-signature": "v1a,ü"},
        {"webhook-signature": "v1," + base64.b64encode(b"x" * 32).decode()},
    ],
    ids=str,
)
def test_changed_message_is_rejected(changes: dict[str, str]) -> None:
    headers = signed_headers([KEY], "msg", NOW, BODY.encode())
    assert signature_fault([KEY], headers, BODY.encode(), NOW) is None
    assert signature_fault([KEY], {**headers, **changes}, BODY.encode(), NOW) is not None


def test_other_body_key_or_time_is_rejected() -> None:
    headers = signed_headers([KEY], "msg", NOW, BODY.encode())
    assert signature_fault([KEY], headers, b"\xff", NOW) is not None
    assert signature_fault([OTHER_KEY], headers, BODY.encode(), NOW) is not None
    assert signature_fault([], headers, BODY.encode(), NOW) is not None
    assert signature_fault([KEY], headers, BODY.encode(), NOW + TOLERANCE_S + 1) is not None
    assert signature_fault([KEY], headers, BODY.encode(), NOW - TOLERANCE_S - 1) is not None


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_***", "no base64 !!", "c2hvcnQ=", "A" * 92, "ü"]
)
def test_secret_that_is_no_key_is_found(secret: str) -> None:
    assert signing_key(secret) is None


def test_prefix_of_a_secret_may_be_left_out() -> None:
    assert signing_key(SECRET.removeprefix("whsec_")) == KEY


GITHUB_BODY = b'{"action": "opened"}'
GITHUB = {"x-hub-signature-256": "sha256=" + hmac.new(b"next", GITHUB_BODY, "sha256").hexdigest()}


def test_signature_of_github_is_accepted_with_any_of_the_secrets() -> None:
    assert github_signature_fault(["main", "next"], GITHUB, GITHUB_BODY) is None


def test_documented_example_of_github_is_accepted() -> None:
    # https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    headers = {"x-hub-signature-256": signature}
    assert github_signature_fault(["It's a Secret to Everybody"], headers, b"Hello, World!") is None


@pytest.mark.parametrize(
    ("secrets", "headers", "body"),
    [
        (["main"], GITHUB, GITHUB_BODY),
        (["next"], GITHUB, GITHUB_BODY + b" "),
        (["next"], {}, GITHUB_BODY),
        ([], GITHUB, GITHUB_BODY),
        (["next"], {"x-hub-signature-256": "sha256="}, GITHUB_BODY),
        (["next"], {"x-hub-signature-256": "\u00fc"}, GITHUB_BODY),
        (["next"], {"x-hub-signature": GITHUB["x-hub-signature-256"]}, GITHUB_BODY),
    ],
)
def test_other_requests_are_not_signed_by_github(
    secrets: list[str], headers: dict[str, str], body: bytes
) -> None:
    assert github_signature_fault(secrets, headers, body) is not None


SIGNED = {
    "webhook-id": "m1", "webhook-timestamp": str(NOW), "webhook-signature": sign(KEY, "m1", NOW, b"x"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "changes", "reason"),
    [
        ([KEY], {"webhook-signature": ""}, "header-missing: webhook-signature"),
        ([KEY], dict.fromkeys(SIGNED, ""), f"header-missing: {', '.join(SIGNED)}"),
        ([KEY], {"webhook-id": "a.b"}, "id-not-valid: webhook-id has a full stop"),
        ([KEY], {"webhook-timestamp": "noon"}, "timestamp-not-a-number"),
        ([KEY], {"webhook-timestamp": str(NOW - 400)}, "timestamp-too-old: by 400 s; is a clock wrong?"),
        ([KEY], {"webhook-timestamp": str(NOW + 400)}, "timestamp-in-the-future: by 400 s; is a clock wrong?"),
        ([], {}, "no-secret-set"),
        ([OTHER_KEY], {}, "signature-mismatch"),
    ],
)  # fmt: skip
def test_the_operator_is_told_why_a_message_is_not_signed(
    keys: list[bytes], changes: dict[str, str], reason: str
) -> None:
    assert signature_fault(keys, {**SIGNED, **changes}, b"x", NOW) == reason
    assert signature_fault([KEY], SIGNED, b"x", NOW) is None


@pytest.mark.parametrize(
    ("secrets", "headers", "reason"),
    [
        (["a", "b"], {"x-key": "b"}, None),
        (["a"], {}, "header-missing: x-key"),
        ([], {"x-key": "a"}, "no-secret-set"),
        (["a"], {"x-key": "c"}, "signature-mismatch"),
    ],
)
def test_the_operator_is_told_why_a_credential_is_wrong(
    secrets: list[str], headers: dict[str, str], reason: str | None
) -> None:
    assert credential_fault(secrets, headers, "X-Key") == reason
