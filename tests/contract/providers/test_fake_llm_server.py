"""The fake provider against the real SDKs, and a foreign fake as a second opinion on the client."""

from __future__ import annotations

import json
import urllib.request
from contextlib import closing
from http.client import HTTPConnection

import pytest

from planwave.errors import ProviderError
from planwave.providers.catalog import ProviderCatalog
from planwave.providers.client import ModelClient
from planwave.providers.protocols import ModelReply, ModelRequest
from planwave.settings import Settings
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    TextReply,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
)


async def test_openai_sdk_reads_chat_and_responses() -> None:
    from openai import AsyncOpenAI

    async with (
        FakeLLMServer(reply_to=lambda body: f"<{prompt_of(body)}>") as llm,
        AsyncOpenAI(base_url=llm.openai_url, api_key="k", max_retries=0) as sdk,
    ):
        ask = [{"role": "user", "content": "hi"}]
        whole = await sdk.chat.completions.create(model="m", messages=ask)  # type: ignore[arg-type]
        assert whole.choices[0].message.content == "<hi>"
        stream = await sdk.responses.create(model="m", input="hey", stream=True)
        deltas = [e.delta async for e in stream if e.type == "response.output_text.delta"]
        assert "".join(deltas) == "<hey>"
    assert [request.path for request in llm.requests] == ["/v1/chat/completions", "/v1/responses"]


async def test_anthropic_sdk_reads_messages() -> None:
    from anthropic import AsyncAnthropic

    async with (
        FakeLLMServer(TextReply("one"), TextReply("two", chunks=3)) as llm,
        AsyncAnthropic(base_url=llm.anthropic_url, api_key="k", max_retries=0) as sdk,
    ):
        ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        whole = await sdk.messages.create(**ask)  # type: ignore[call-overload]
        assert whole.content[0].text == "one"
        async with sdk.messages.stream(**ask) as stream:
            assert await stream.get_final_text() == "two"


async def test_scripted_steps_precede_computed_replies() -> None:
    from openai import AsyncOpenAI, RateLimitError

    async with (
        FakeLLMServer(
            ErrorReply(429, "rate_limit_error"), reply_to=lambda _: TextReply("later")
        ) as llm,
        AsyncOpenAI(base_url=llm.openai_url, api_key="k", max_retries=0) as sdk,
    ):
        ask = [{"role": "user", "content": "hi"}]
        with pytest.raises(RateLimitError):
            await sdk.chat.completions.create(model="m", messages=ask)  # type: ignore[arg-type]
        whole = await sdk.chat.completions.create(model="m", messages=ask)  # type: ignore[arg-type]
        assert whole.choices[0].message.content == "later"


def test_threaded_server_serves_other_loops() -> None:
    with fake_llm_in_thread(TextReply("hello")) as llm:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{llm.openai_url}/chat/completions", body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
            assert json.load(answer)["choices"][0]["message"]["content"] == "hello"
    assert schema_of(llm.requests[0].body) is None


def test_repeated_header_is_joined() -> None:
    with (
        fake_llm_in_thread() as llm,
        closing(HTTPConnection("127.0.0.1", llm.port, timeout=10)) as client,
    ):
        client.putrequest("POST", "/v1/messages")
        for name, value in ("X-Key", "a"), ("x-key", "b"), ("content-length", "2"):
            client.putheader(name, value)
        client.endheaders(b"{}")
        assert client.getresponse().status == 200
    assert llm.requests[0].headers["x-key"] == "a, b"


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_another_fake_server_gives_the_same_results(provider: str) -> None:
    from llmock.scenarios import Fail
    from llmock.testing import LLMockServer

    async def no_wait(_: float) -> None: ...

    with LLMockServer() as server:
        settings = Settings(
            openai_api_key="sk-test-1234567",
            openai_base_url=server.base_url("openai"),
            anthropic_api_key="sk-test-1234567",
            anthropic_base_url=server.base_url("anthropic"),
        )
        client = ModelClient(settings, ProviderCatalog(settings), sleep=no_wait)
        model = {"openai": "gpt-4o-mini", "anthropic": "claude-haiku-5-5"}[provider]
        request = ModelRequest(provider, model, "say something")
        server.state.scenarios.add(Fail(500))
        items = [item async for item in client.stream(request)]
        reply = items[-1]
        assert isinstance(reply, ModelReply)
        assert reply.attempts == 2
        assert reply.text == "".join(item.text for item in items[:-1] if hasattr(item, "kind"))
        server.state.scenarios.add(Fail(401))
        with pytest.raises(ProviderError) as caught:
            assert [item async for item in client.stream(request)]
        assert caught.value.code == "provider-auth"
        await client.close()
