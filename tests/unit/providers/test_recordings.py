from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from planwave.errors import StoreError
from planwave.providers.protocols import (
    CallKey,
    CallScope,
    ModelReply,
    ModelRequest,
    PromptMessage,
    Usage,
)
from planwave.providers.recordings import USAGE_UNREPORTED, idempotency_key, key_of, reply_from


def test_idempotency_key_is_header_safe() -> None:
    key = CallKey("exec\r\nx: y", "ü/[2]", 1, 3, "hash")
    text = idempotency_key(key)
    assert text.isascii()
    assert text.isprintable()
    assert text.endswith("/%C3%BC/[2]/3")


def test_call_key_has_scope_ordinal_and_request_hash() -> None:
    request = ModelRequest("box", "m", "hi")
    scope = CallScope("e", "n", 2, answers=1)
    assert key_of(request, scope) == CallKey("e", "n", 2, 1_000, request.hash())
    assert key_of(request, scope).ordinal == 1_001


def test_request_hash_is_stable_and_covers_messages() -> None:
    requested = ModelRequest("box", "m", "hi")
    assert requested.hash() == "eed5bccbb35693341dc332308215e102020b819a9c194defa026b799b88385d2"
    talk = (PromptMessage("user", "hi"), PromptMessage("assistant", "ho"))
    hashes = {requested.hash()}
    hashes |= {replace(requested, messages=turns).hash() for turns in (talk, talk[:1], talk[::-1])}
    seen = (PromptMessage("user", "hi", ("https://pictures.example/a.png",)),)
    hashes.add(replace(requested, messages=seen).hash())
    assert len(hashes) == 5


def test_recorded_reply_is_read() -> None:
    reply = ModelReply("t", "box", "m", "stop", Usage(1, 2, 0.5, estimated=True), 3, 1.5)
    read = reply_from(asdict(reply))
    assert read == ModelReply("t", "box", "m", "stop", reply.usage, 3, 1.5, recorded=True)
    assert not reply_from({**asdict(reply), USAGE_UNREPORTED: True}).recorded, (
        "what it took is yet to be told"
    )


@pytest.mark.parametrize("record", [{}, {"text": 5}, {"text": "x", "usage": None}])
def test_invalid_record_is_a_store_error(record: dict[str, object]) -> None:
    with pytest.raises(StoreError) as caught:
        reply_from(record)
    assert caught.value.code == "bad-record"
