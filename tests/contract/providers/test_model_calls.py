"""What is asked of every kind of provider and what comes back: real SDKs, a real server on loopback.

What can fail is in ``test_provider_faults.py``.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from planwave.providers.protocols import CallScope, Delta, ModelReply
from planwave.settings import ProviderSettings
from tests.support.llm.client_harness import expect_provider_error, model_client_harness
from tests.support.llm.fake_llm_server import ErrorReply, TextReply, prompt_of, schema_of
from tests.support.polling import until

EVERY = pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])


@EVERY
async def test_a_reply_streams_in_pieces_and_ends_with_usage_and_price(provider: str) -> None:
    async with model_client_harness(TextReply("hello there", chunks=3, usage=(1000, 50))) as rig:
        reply = await rig.ask(provider, system="be brief", max_tokens=20)
    assert rig.text == reply.text == "hello there"
    assert len(rig.deltas) == 3
    assert (reply.finish_reason, reply.attempts, reply.recorded) == ("stop", 1, False)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 50)
    assert not reply.usage.estimated
    assert (reply.usage.cost_usd is None) == (provider == "box")
    body = rig.llm.requests[0].body
    assert prompt_of(body) == "be brief\nhi"
    assert body["stream"] is True
    limit = {"openai": "max_completion_tokens"}.get(provider, "max_tokens")
    assert body[limit] == 20


@EVERY
@pytest.mark.parametrize("kind", ["closed", "open"])
async def test_a_schema_gives_the_json_text_and_reaches_the_provider_as_written(
    provider: str, kind: str
) -> None:
    closed = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    opened = {
        "type": "object",
        "properties": {"data": {"type": "object"}, "s": {"type": "string", "maxLength": 9}},
    }
    schema = closed if kind == "closed" else opened
    async with model_client_harness(reply_to=lambda body: json.dumps({"a": 1})) as rig:
        reply = await rig.ask(provider, schema=schema, schema_name="plan")
        assert json.loads(reply.text) == {"a": 1} == json.loads(rig.text)
        assert reply.finish_reason == "stop"
        assert schema_of(rig.llm.requests[0].body) == schema


@EVERY
async def test_lone_surrogates_are_replaced_in_what_is_sent(provider: str) -> None:
    async with model_client_harness() as rig:
        await rig.ask(provider, prompt="a\ud800b", system="\udfff")
        assert prompt_of(rig.llm.requests[0].body) == "\ufffd\na\ufffdb"


async def test_reasoning_arrives_as_its_own_kind_and_is_not_part_of_the_text() -> None:
    async with model_client_harness(TextReply("42", reasoning="let me think")) as rig:
        reply = await rig.ask("box")
    assert rig.deltas[0] == Delta("let me think", "reasoning")
    assert reply.text == "42"


@EVERY
async def test_a_temperature_is_sent_only_to_models_that_take_one(provider: str) -> None:
    thinking = {"openai": "gpt-5.6-luna", "anthropic": "claude-opus-5-5", "box": "box-1"}
    async with model_client_harness() as rig:
        await rig.ask(provider, model=thinking[provider], temperature=0.2)
        assert ("temperature" in rig.llm.requests[0].body) == (provider == "box")


async def test_an_unknown_reasoning_effort_is_refused_before_any_call() -> None:
    async with model_client_harness() as rig:
        error = await expect_provider_error(rig, "openai", reasoning_effort="turbo")
        assert (error.code, rig.llm.requests) == ("bad-request", [])


@EVERY
async def test_a_redirect_is_neither_followed_nor_retried_and_the_error_says_so(
    provider: str,
) -> None:
    moved = ErrorReply(307, "moved", headers={"location": "http://127.0.0.1:9/v1"})
    async with model_client_harness(moved) as rig:
        error = await expect_provider_error(rig, provider)
        assert (error.code, error.retryable, len(rig.llm.requests)) == ("redirected", False, 1)
        assert error.hint is not None
        assert "address" in error.hint


@EVERY
async def test_cancelling_a_call_closes_its_stream_and_frees_its_place(provider: str) -> None:
    never = asyncio.Event()
    one = ProviderSettings(max_concurrency=1)
    async with model_client_harness(
        TextReply("abcdef", chunks=2, gates={3: never}), box=one
    ) as rig:
        call = asyncio.ensure_future(rig.ask(provider))  # noqa: TID251 - cancelled on purpose
        await until(lambda: rig.deltas)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await rig.ask(provider)).text == "ok"


async def test_a_provider_gets_no_more_calls_at_once_than_its_limit() -> None:
    door = asyncio.Event()

    async def held(body: dict[str, object]) -> str:
        await door.wait()
        return "ok"

    async with model_client_harness(reply_to=held, box=ProviderSettings(max_concurrency=2)) as rig:
        async with asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(rig.ask("box"))
            await until(lambda: rig.llm.open_requests == 2)
            door.set()
        assert (rig.llm.max_open_requests, len(rig.llm.requests)) == (2, 6)


@EVERY
async def test_the_idempotency_key_names_execution_path_and_ordinal(provider: str) -> None:
    async with model_client_harness() as rig:
        scope = CallScope("exec-1", "loop[2]/größe", 1)
        await rig.ask(provider, scope=scope)
        await rig.ask(provider, scope=scope)
        keys = [request.headers["idempotency-key"] for request in rig.llm.requests]
        assert keys == ["exec-1/loop[2]/gr%C3%B6%C3%9Fe/0", "exec-1/loop[2]/gr%C3%B6%C3%9Fe/1"]


async def test_keys_and_organisation_go_only_where_they_belong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with model_client_harness() as rig:
        await rig.ask("box")
        await rig.ask("openai")
        boxed, own = (request.headers for request in rig.llm.requests)
        assert "openai-organization" not in boxed
        assert "canary" not in json.dumps(boxed)
        assert own["openai-organization"] == "org-1"
        assert own["authorization"].endswith("canary-openai-0123456789")


async def test_connections_are_kept_and_used_again() -> None:
    async with model_client_harness() as rig:
        for _ in range(5):
            assert isinstance(await rig.ask("openai"), ModelReply)
        assert (rig.llm.connections, len(rig.llm.requests)) == (1, 5)
