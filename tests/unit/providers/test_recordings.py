from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planwave.errors import ProviderError, StoreError
from planwave.providers.protocols import (
    CallKey,
    CallScope,
    ModelReply,
    ModelRequest,
    PromptMessage,
    Source,
    ToolCall,
    Usage,
)
from planwave.providers.recordings import (
    USAGE_UNREPORTED,
    failure_from,
    failure_record,
    idempotency_key,
    key_of,
    record_of,
    reply_from,
)


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
    record = json.loads(json.dumps(record_of(reply)))
    assert not record.keys() & {"tool_calls", "sources", "native"}
    read = reply_from(record)
    assert read == ModelReply("t", "box", "m", "stop", reply.usage, 3, 1.5, recorded=True)
    assert not reply_from({**record, USAGE_UNREPORTED: True}).recorded, (
        "what it took is yet to be told"
    )


def test_recorded_reply_with_calls_is_read() -> None:
    reply = ModelReply(
        "",
        "box",
        "m",
        "stop",
        tool_calls=(ToolCall("1", "add", '{"a": 1'), ToolCall("2", "look", "{}")),
        sources=(Source("https://a.example/", "A"),),
        native={"kind": "response", "parts": [{"part_kind": "thinking", "content": "hm"}]},
    )
    record = json.loads(json.dumps(record_of(reply)))
    assert record["tool_calls"][0] == {"id": "1", "name": "add", "arguments": '{"a": 1'}
    assert reply_from(record) == replace(reply, recorded=True)


READABLE = record_of(ModelReply("t", "box", "m", "stop"))


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"text": 5},
        {"text": "x", "usage": None},
        {**READABLE, "tool_calls": None},
        {**READABLE, "tool_calls": {"id": "1"}},
        {**READABLE, "tool_calls": ["add"]},
        {**READABLE, "tool_calls": [{"id": "1", "name": "add"}]},
        {**READABLE, "tool_calls": [{"id": "1", "name": "add", "arguments": {}}]},
        {**READABLE, "sources": [{"url": "https://a.example/", "title": None}]},
        {**READABLE, "native": []},
    ],
)
def test_invalid_record_is_a_store_error(record: dict[str, object]) -> None:
    with pytest.raises(StoreError) as caught:
        reply_from(record)
    assert caught.value.code == "bad-record"


@pytest.mark.parametrize("model", ["m", None])
def test_recorded_failure_is_read(model: str | None) -> None:
    error = ProviderError(
        "busy",
        provider="box",
        model=model,
        code="rate-limited",
        hint="wait",
        retryable=True,
        status=429,
    )
    read = failure_from(json.loads(json.dumps(failure_record(error))))
    assert read is not None
    assert (read.as_json(), read.provider, read.model) == (error.as_json(), "box", model)
    assert (read.retryable, read.status) == (True, 429)
    assert failure_from(record_of(ModelReply("t", "box", "m", "stop"))) is None


@pytest.mark.parametrize("failure", [None, 5, {}, {"code": "x", "message": 1}])
def test_invalid_failure_record_is_a_store_error(failure: object) -> None:
    with pytest.raises(StoreError) as caught:
        failure_from({"failure": failure})
    assert caught.value.code == "bad-record"
