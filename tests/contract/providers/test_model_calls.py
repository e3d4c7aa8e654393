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
async def test_reply_is_streamed_with_usage_and_price(provider: str) -> None:
    async with model_client_harness(
        TextReply("hello there", chunks=3, usage=(1000, 50))
    ) as harness:
        reply = await harness.ask(provider, system="be brief", max_tokens=20)
    assert harness.text == reply.text == "hello there"
    assert len(harness.deltas) == 3
    assert (reply.finish_reason, reply.attempts, reply.recorded) == ("stop", 1, False)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (1000, 50)
    assert not reply.usage.estimated
    assert (reply.usage.cost_usd is None) == (provider == "box")
    body = harness.llm.requests[0].body
    assert prompt_of(body) == "be brief\nhi"
    assert body["stream"] is True
    limit = {"openai": "max_completion_tokens"}.get(provider, "max_tokens")
    assert body[limit] == 20


@EVERY
@pytest.mark.parametrize("kind", ["closed", "open"])
async def test_schema_reaches_provider_and_returns_json(provider: str, kind: str) -> None:
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
    async with model_client_harness(reply_to=lambda body: json.dumps({"a": 1})) as harness:
        reply = await harness.ask(provider, schema=schema, schema_name="plan")
        assert json.loads(reply.text) == {"a": 1} == json.loads(harness.text)
        assert reply.finish_reason == "stop"
        assert schema_of(harness.llm.requests[0].body) == schema


@EVERY
async def test_lone_surrogates_are_replaced(provider: str) -> None:
    async with model_client_harness() as harness:
        await harness.ask(provider, prompt="a\ud800b", system="\udfff")
        assert prompt_of(harness.llm.requests[0].body) == "\ufffd\na\ufffdb"


async def test_reasoning_is_not_part_of_the_text() -> None:
    async with model_client_harness(TextReply("42", reasoning="let me think")) as harness:
        reply = await harness.ask("box")
    assert harness.deltas[0] == Delta("let me think", "reasoning")
    assert reply.text == "42"


@EVERY
async def test_temperature_is_sent_only_to_models_that_take_it(provider: str) -> None:
    thinking = {"openai": "gpt-5.6-luna", "anthropic": "claude-opus-5-5", "box": "box-1"}
    async with model_client_harness() as harness:
        await harness.ask(provider, model=thinking[provider], temperature=0.2)
        assert ("temperature" in harness.llm.requests[0].body) == (provider == "box")


async def test_unknown_reasoning_effort_makes_no_call() -> None:
    async with model_client_harness() as harness:
        error = await expect_provider_error(harness, "openai", reasoning_effort="turbo")
        assert (error.code, harness.llm.requests) == ("bad-request", [])


@EVERY
async def test_redirect_is_an_error(
    provider: str,
) -> None:
    moved = ErrorReply(307, "moved", headers={"location": "http://127.0.0.1:9/v1"})
    async with model_client_harness(moved) as harness:
        error = await expect_provider_error(harness, provider)
        assert (error.code, error.retryable, len(harness.llm.requests)) == ("redirected", False, 1)
        assert error.hint is not None
        assert "address" in error.hint


@EVERY
async def test_cancelled_call_closes_its_stream(provider: str) -> None:
    never = asyncio.Event()
    one = ProviderSettings(max_concurrency=1)
    async with model_client_harness(
        TextReply("abcdef", chunks=2, gates={3: never}), box=one
    ) as harness:
        call = asyncio.ensure_future(harness.ask(provider))  # noqa: TID251 - cancelled on purpose
        await until(lambda: harness.deltas)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await harness.ask(provider)).text == "ok"


async def test_concurrent_calls_are_limited() -> None:
    door = asyncio.Event()

    async def held(body: dict[str, object]) -> str:
        await door.wait()
        return "ok"

    async with model_client_harness(
        reply_to=held, box=ProviderSettings(max_concurrency=2)
    ) as harness:
        async with asyncio.TaskGroup() as group:
            for _ in range(6):
                group.create_task(harness.ask("box"))
            await until(lambda: harness.llm.open_requests == 2)
            door.set()
        assert (harness.llm.max_open_requests, len(harness.llm.requests)) == (2, 6)


@EVERY
async def test_idempotency_key_has_execution_path_and_ordinal(provider: str) -> None:
    async with model_client_harness() as harness:
        scope = CallScope("exec-1", "loop[2]/größe", 1)
        await harness.ask(provider, scope=scope)
        await harness.ask(provider, scope=scope)
        keys = [request.headers["idempotency-key"] for request in harness.llm.requests]
        assert keys == ["exec-1/loop[2]/gr%C3%B6%C3%9Fe/0", "exec-1/loop[2]/gr%C3%B6%C3%9Fe/1"]


async def test_keys_and_organisation_reach_only_their_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with model_client_harness() as harness:
        await harness.ask("box")
        await harness.ask("openai")
        boxed, own = (request.headers for request in harness.llm.requests)
        assert "openai-organization" not in boxed
        assert "canary" not in json.dumps(boxed)
        assert own["openai-organization"] == "org-1"
        assert own["authorization"].endswith("canary-openai-0123456789")


async def test_connections_are_reused() -> None:
    async with model_client_harness() as harness:
        for _ in range(5):
            assert isinstance(await harness.ask("openai"), ModelReply)
        assert (harness.llm.connections, len(harness.llm.requests)) == (1, 5)
