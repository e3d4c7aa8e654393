"""The fake provider against the real SDKs, and a foreign fake as a second opinion on the client."""

from __future__ import annotations

import json
import urllib.request
from contextlib import closing
from http.client import HTTPConnection

import httpx2
import pytest

from planwave.errors import ProviderError
from planwave.providers.client import ModelClient
from planwave.providers.protocols import ModelReply, ModelRequest
from planwave.providers.registry import ProviderRegistry
from planwave.settings import Settings
from tests.support.llm.fake_llm_protocols import SIGNATURE
from tests.support.llm.fake_llm_server import (
    ErrorReply,
    FakeLLMServer,
    TextReply,
    ToolCallReply,
    fake_llm_in_thread,
    prompt_of,
    schema_of,
    tool_calls_of,
    tool_results_of,
    tools_of,
)
from tests.support.llm.prompt_cache import FakePromptCache


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


CALLS = ToolCallReply([("add", {"a": 1}), ("now", {}, "mine")], "Let me see.", "Two calls.")
ADD = {"name": "add", "description": "Add", "parameters": {"type": "object", "properties": {}}}


async def test_openai_sdk_reads_tool_calls_of_a_chat() -> None:
    from openai import AsyncOpenAI

    ask = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "tool_calls": [call("a", "add", '{"a": 0}')]},
            {"role": "tool", "tool_call_id": "a", "content": "7"},
        ],
        "tools": [{"type": "function", "function": ADD}],
    }
    async with (
        FakeLLMServer(CALLS, CALLS) as llm,
        AsyncOpenAI(base_url=llm.openai_url, api_key="k", max_retries=0) as sdk,
    ):
        whole = await sdk.chat.completions.create(**ask)  # type: ignore[call-overload]
        (choice,) = whole.choices
        assert choice.finish_reason == "tool_calls"
        assert [each.id for each in choice.message.tool_calls] == ["call_2", "mine"]
        async with sdk.chat.completions.stream(**ask) as stream:  # type: ignore[arg-type]
            streamed = (await stream.get_final_completion()).choices[0].message
    assert streamed.content == "Let me see."
    called = [each.function for each in streamed.tool_calls or []]
    assert [(each.name, each.arguments) for each in called] == [("add", '{"a": 1}'), ("now", "{}")]
    body = llm.requests[0].body
    assert tools_of(body) == {"add": {"type": "object", "properties": {}}}
    assert tool_calls_of(body) == [("a", "add", {"a": 0})]
    assert tool_results_of(body) == {"a": "7"}


def call(call_id: str, name: str, arguments: str) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


async def test_openai_sdk_reads_tool_calls_of_a_response() -> None:
    from openai import AsyncOpenAI

    asked = [
        {"type": "function_call", "call_id": "a", "name": "add", "arguments": '{"a": 0}'},
        {"type": "function_call_output", "call_id": "a", "output": "7"},
    ]
    found = TextReply("News.", sources=[("https://news.example/", "News")])
    async with (
        FakeLLMServer(CALLS, found) as llm,
        AsyncOpenAI(base_url=llm.openai_url, api_key="k", max_retries=0) as sdk,
    ):
        tools = [{"type": "function", **ADD}, {"type": "web_search"}]
        ask = {"model": "m", "input": asked, "tools": tools}
        async with sdk.responses.stream(**ask) as stream:  # type: ignore[call-overload]
            response = await stream.get_final_response()
        thought, said, *called = response.output
        assert (thought.type, thought.summary[0].text) == ("reasoning", "Two calls.")
        assert said.content[0].text == response.output_text == "Let me see."
        assert [(each.call_id, each.arguments) for each in called] == [
            ("call_2", '{"a": 1}'),
            ("mine", "{}"),
        ]
        whole = await sdk.responses.create(**ask)  # type: ignore[call-overload]
        search, cited = whole.output
        assert search.type == "web_search_call"
        assert cited.content[0].annotations[0].url == "https://news.example/"
    body = llm.requests[0].body
    assert tools_of(body) == {"add": {"type": "object", "properties": {}}, "web_search": {}}
    assert tool_calls_of(body) == [("a", "add", {"a": 0})]
    assert tool_results_of(body) == {"a": "7"}


async def test_anthropic_sdk_reads_tool_calls() -> None:
    from anthropic import AsyncAnthropic

    called = {"type": "tool_use", "id": "a", "name": "add", "input": {"a": 0}}
    ask = {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [called]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "a", "content": "7"}],
            },
        ],
        "tools": [{"name": "add", "input_schema": {"type": "object", "properties": {}}}],
    }
    async with (
        FakeLLMServer(CALLS, CALLS) as llm,
        AsyncAnthropic(base_url=llm.anthropic_url, api_key="k", max_retries=0) as sdk,
    ):
        whole = await sdk.messages.create(**ask)  # type: ignore[call-overload]
        async with sdk.messages.stream(**ask) as stream:
            streamed = await stream.get_final_message()
    for message in (whole, streamed):
        assert message.stop_reason == "tool_use"
        thought, said, add, now = message.content
        assert (thought.thinking, thought.signature) == ("Two calls.", SIGNATURE)
        assert said.text == "Let me see."
        assert (add.id, add.name, add.input) == ("call_2", "add", {"a": 1})
        assert (now.id, now.name, now.input) == ("mine", "now", {})
    body = llm.requests[0].body
    assert tools_of(body) == {"add": {"type": "object", "properties": {}}}
    assert tool_calls_of(body) == [("a", "add", {"a": 0})]
    assert tool_results_of(body) == {"a": "7"}


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
        client = ModelClient(settings, ProviderRegistry(settings), sleep=no_wait)
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


class CachedServer:
    """A cache of prompts whose time a test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self.cache = FakePromptCache(lambda: self.now)

    def ask(self, *texts: str, marked: tuple[int, ...] = (0,), begin: bool = True) -> list[int]:
        """Send blocks, some of them marked; return the tokens in all, read, and written."""
        mark = {"cache_control": {"type": "ephemeral"}}
        blocks = [
            {"type": "text", "text": text, **(mark if number in marked else {})}
            for number, text in enumerate(texts)
        ]
        turns = [{"role": "user", "content": blocks}]
        *counts, beginnings = self.cache.count({"model": "claude-sonnet-5", "messages": turns})
        if begin:
            self.cache.begin(beginnings)
        return counts


LONG, SHORT = "x" * 4 * 1_024, "x" * (4 * 1_024 - 4)


@pytest.mark.parametrize(("passed_s", "read"), [(0, 1_024), (299, 1_024), (300, 1_024), (301, 0)])
def test_a_beginning_is_kept_for_five_minutes_after_its_last_use(passed_s: int, read: int) -> None:
    server = CachedServer()
    assert server.ask(LONG, "a") == [1_024, 0, 1_024]
    server.now = 200
    assert server.ask(LONG, "b") == [1_024, 1_024, 0]
    server.now += passed_s
    assert server.ask(LONG, "c") == [1_024, read, 1_024 - read]


def test_a_beginning_below_the_least_or_without_a_mark_is_not_kept() -> None:
    server = CachedServer()
    for _ in range(2):
        assert server.ask(SHORT, "abc") == [1_023, 0, 0]
        assert server.ask(LONG, "abc", marked=()) == [1_024, 0, 0]


def test_only_a_reply_that_has_begun_makes_a_beginning_readable() -> None:
    server = CachedServer()
    assert server.ask(LONG, begin=False) == [1_024, 0, 1_024]
    assert server.ask(LONG) == [1_024, 0, 1_024]
    assert server.ask(LONG) == [1_024, 1_024, 0]


def test_the_longest_kept_beginning_is_read_and_the_rest_written() -> None:
    server = CachedServer()
    server.ask(LONG, LONG, marked=(0, 1))
    assert server.ask(LONG, LONG, LONG, marked=(0, 1, 2)) == [3_072, 2_048, 1_024]
    assert server.ask("y" + LONG, LONG, marked=(0, 1)) == [2_048, 0, 2_048]


@pytest.mark.parametrize("marks", [4, 5])
async def test_more_than_four_marks_are_refused(marks: int) -> None:
    block = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
    body = {
        "model": "m",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": [block] * marks}],
    }
    async with FakeLLMServer() as llm, httpx2.AsyncClient() as client:
        answer = await client.post(f"{llm.anthropic_url}/v1/messages", json=body)
    assert (answer.status_code, "Found 5" in answer.text) == (
        (400, True) if marks > 4 else (200, False)
    )
