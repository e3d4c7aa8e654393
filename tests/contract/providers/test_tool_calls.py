"""Model calls that call tools, over the real protocols: what is sent, received and sent back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planwave.providers.protocols import (
    CallScope,
    Delta,
    ModelReply,
    PromptMessage,
    Source,
    ToolCall,
    ToolSpec,
)
from tests.support.llm.client_harness import (
    ModelClientHarness,
    expect_provider_error,
    model_client_harness,
)
from tests.support.llm.fake_llm_protocols import SIGNATURE
from tests.support.llm.fake_llm_server import (
    TextReply,
    ToolCallReply,
    schema_of,
    tool_calls_of,
    tool_results_of,
    tools_of,
)
from tests.unit.providers.test_client import Notebook

EVERY = pytest.mark.parametrize("provider", ["openai", "anthropic", "box"])
THINKING = {"openai": "gpt-5.6-luna", "anthropic": "claude-sonnet-5-5"}
HOSTED = pytest.mark.parametrize("provider", ["openai", "anthropic"])
ADD = ToolSpec(
    "add",
    "Add two numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "minimum": 0}},
        "required": ["a"],
    },
)
LOOK = ToolSpec(
    "look", "Look it up.", {"type": "object", "properties": {}, "additionalProperties": True}
)
TOOLS = (ADD, LOOK)


def told(reply: ModelReply, *results: str, **more: Any) -> tuple[PromptMessage, ...]:
    """Give the turns that follow a question: the reply, and the results of its calls."""
    answered = PromptMessage(
        "assistant", reply.text, tool_calls=reply.tool_calls, native=reply.native
    )
    returned = (
        PromptMessage("tool", text, tool_call_id=call.id, tool_name=call.name, **more)
        for call, text in zip(reply.tool_calls, results, strict=True)
    )
    return (PromptMessage("user", "?"), answered, *returned)


async def ask(
    harness: ModelClientHarness, provider: str, *turns: PromptMessage, **more: Any
) -> ModelReply:
    asked = {"tools": TOOLS, "messages": turns, **more}
    return await harness.ask(provider, "" if turns else "?", **asked)


@EVERY
async def test_call_result_and_answer(provider: str) -> None:
    called = ToolCallReply([("add", {"a": 1, "b": 2})], "Let me add.", chunks=2)
    async with model_client_harness(called, TextReply("It is 3.")) as harness:
        reply = await ask(harness, provider)
        assert harness.deltas == [Delta("Let me"), Delta(" add.")], "the arguments are no text"
        assert reply.text == "Let me add."
        assert reply.tool_calls == (ToolCall("call_1", "add", '{"a": 1, "b": 2}'),)
        assert (reply.finish_reason, reply.usage.input_tokens) == ("stop", 11)
        answer = await ask(harness, provider, *told(reply, "3"))
        assert (answer.text, answer.tool_calls, answer.native) == ("It is 3.", (), None)
        first, second = (request.body for request in harness.llm.requests)
    assert tools_of(first) == tools_of(second) == {tool.name: tool.parameters for tool in TOOLS}
    assert tool_calls_of(second) == [("call_1", "add", {"a": 1, "b": 2})]
    assert tool_results_of(second) == {"call_1": "3"}


@EVERY
async def test_parallel_calls_keep_their_order(provider: str) -> None:
    called = ToolCallReply([("look", {}), ("add", {"a": 1}), ("look", {"for": "ü"}, "mine")])
    async with model_client_harness(called, TextReply("Done.")) as harness:
        reply = await ask(harness, provider)
        assert (reply.text, harness.deltas) == ("", [])
        assert [(call.id, call.name) for call in reply.tool_calls] == [
            ("call_1", "look"),
            ("call_2", "add"),
            ("mine", "look"),
        ]
        await ask(harness, provider, *told(reply, "x", "1", "y"))
        sent = harness.llm.requests[1].body
    assert tool_calls_of(sent) == [
        ("call_1", "look", {}),
        ("call_2", "add", {"a": 1}),
        ("mine", "look", {"for": "ü"}),
    ]
    assert tool_results_of(sent) == {"call_1": "x", "call_2": "1", "mine": "y"}


@EVERY
async def test_failed_call_is_sent_as_an_error(provider: str) -> None:
    async with model_client_harness(ToolCallReply([("add", {})]), TextReply("Hm.")) as harness:
        reply = await ask(harness, provider)
        await ask(harness, provider, *told(reply, "no a", is_error=True))
        sent = harness.llm.requests[1].body
    if provider == "anthropic":
        (result,) = sent["messages"][-1]["content"]
        assert result["is_error"] is True
        assert tool_results_of(sent) == {"call_1": "no a"}
    else:
        assert json.loads(tool_results_of(sent)["call_1"]) == {"error": "no a"}


@EVERY
async def test_call_of_an_unknown_tool_is_returned_where_tools_are_offered(provider: str) -> None:
    async with model_client_harness(ToolCallReply([("fly", {})])) as harness:
        reply = await ask(harness, provider)
    assert [call.name for call in reply.tool_calls] == ["fly"]


@EVERY
async def test_call_without_offered_tools_is_an_error(provider: str) -> None:
    async with model_client_harness(ToolCallReply([("fly", {})])) as harness:
        error = await expect_provider_error(harness, provider)
    assert error.code == "unasked-tool-call"


# -- what cannot be read


@EVERY
@pytest.mark.parametrize("arguments", ['{"a": 1, "b', "not JSON", "[1]", '"text"', "null"])
async def test_arguments_that_are_no_object_are_returned_as_written(
    provider: str, arguments: str
) -> None:
    called = ToolCallReply([("add", arguments)])
    async with model_client_harness(called, TextReply("Sorry.")) as harness:
        reply = await ask(harness, provider)
        assert reply.tool_calls == (ToolCall("call_1", "add", arguments),)
        await ask(harness, provider, *told(reply, "these are no arguments", is_error=True))
        ((call_id, name, sent),) = tool_calls_of(harness.llm.requests[1].body)
    assert (call_id, name) == ("call_1", "add")
    assert isinstance(sent, dict), "providers accept no other arguments"


@EVERY
async def test_call_without_arguments_has_an_empty_object(provider: str) -> None:
    async with model_client_harness(ToolCallReply([("look", "")])) as harness:
        reply = await ask(harness, provider)
    assert reply.tool_calls == (ToolCall("call_1", "look", "{}"),)


@EVERY
async def test_call_without_an_id_gets_one_that_is_recorded(provider: str) -> None:
    called = ToolCallReply([("look", {}, None), ("look", {}, None)])
    async with model_client_harness(called, TextReply("Ok."), recorder=Notebook()) as harness:
        reply = await ask(harness, provider, scope=CallScope("e", "n", 1))
        first, second = (call.id for call in reply.tool_calls)
        assert first
        assert second not in ("", first)
        again = await ask(harness, provider, scope=CallScope("e", "n", 1))
        assert (again.recorded, again.tool_calls) == (True, reply.tool_calls)
        await ask(harness, provider, *told(again, "a", "b"))
        assert tool_results_of(harness.llm.requests[1].body) == {first: "a", second: "b"}


@EVERY
async def test_id_that_is_used_already_is_replaced(provider: str) -> None:
    """Some servers number the calls of each reply from 0; results must not be mixed up."""
    called = ToolCallReply([("look", {}, "c"), ("add", {"a": 1}, "c")])
    async with model_client_harness(called, called, TextReply("Ok.")) as harness:
        first = await ask(harness, provider)
        assert [call.id for call in first.tool_calls] == ["c", "c-2"]
        turns = told(first, "1", "2")
        second = await ask(harness, provider, *turns)
        assert [call.id for call in second.tool_calls] == ["c-3", "c-4"]
        await ask(harness, provider, *turns, *told(second, "3", "4")[1:])
        sent = harness.llm.requests[2].body
    assert tool_results_of(sent) == {"c": "1", "c-2": "2", "c-3": "3", "c-4": "4"}
    assert [call_id for call_id, _, _ in tool_calls_of(sent)] == ["c", "c-2", "c-3", "c-4"]


@EVERY
@pytest.mark.parametrize("text", ["", "I will look."])
async def test_call_without_a_name_is_an_error(provider: str, text: str) -> None:
    async with model_client_harness(ToolCallReply([(None, {"a": 1})], text)) as harness:
        error = await expect_provider_error(harness, provider, tools=TOOLS)
    assert (error.code, error.retryable) == ("stream-garbage", True)


@EVERY
async def test_call_that_is_cut_off_is_made_again(provider: str) -> None:
    called = ToolCallReply([("add", {"a": 1})])
    cut = ToolCallReply([("add", {"a": 1})], cut_after=3)
    async with model_client_harness(cut, called) as harness:
        reply = await ask(harness, provider)
    assert (reply.attempts, len(reply.tool_calls)) == (2, 1)


@EVERY
async def test_lone_surrogates_of_a_call_are_replaced(provider: str) -> None:
    called = ToolCallReply([("l\ud800ook", '{"a": "\udc00"}', "i")], reasoning="\ud800")
    async with model_client_harness(called, recorder=Notebook()) as harness:
        reply = await ask(harness, provider)
    assert reply.tool_calls == (ToolCall("i", "l\ufffdook", '{"a": "\ufffd"}'),)
    assert json.dumps(reply.native, ensure_ascii=False).encode()


# -- with a schema

SCHEMAS = pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"n": {"type": "integer"}}},
        {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": False,
        },
    ],
    ids=["open", "strict"],
)


@HOSTED
@SCHEMAS
async def test_web_search_and_a_schema_together(provider: str, schema: dict[str, Any]) -> None:
    async with model_client_harness(TextReply('{"n": 1}')) as harness:
        reply = await ask(harness, provider, web_search=True, schema=schema)
        assert json.loads(reply.text) == {"n": 1}
        sent = harness.llm.requests[0].body
    assert schema_of(sent) == schema
    assert [name for name in tools_of(sent) if name.startswith("web_search")]
    assert "output_config" not in sent, "Anthropic's own mode for JSON does not go with citations"


@EVERY
@SCHEMAS
async def test_tools_and_a_schema_together(provider: str, schema: dict[str, Any]) -> None:
    called = ToolCallReply([("add", {"a": 1})], reasoning="Add." if provider != "openai" else "")
    async with model_client_harness(called, TextReply('{"n": 1}')) as harness:
        reply = await ask(harness, provider, schema=schema)
        assert [call.name for call in reply.tool_calls] == ["add"]
        answer = await ask(harness, provider, *told(reply, "1"), schema=schema)
        assert json.loads(answer.text) == {"n": 1} == json.loads(harness.text)
        assert (answer.tool_calls, answer.native) == ((), None)
        for request in harness.llm.requests:
            assert schema_of(request.body) == schema
            assert {"add", "look"} <= tools_of(request.body).keys()


async def test_json_reply_by_a_tool_is_sent_back_as_a_text() -> None:
    """A call of the tool of a JSON reply has no result, which providers do not accept."""
    schema = {"type": "object"}
    given = TextReply('{"n": 1}', reasoning="One.")
    async with model_client_harness(given, TextReply("{}")) as harness:
        reply = await harness.ask("anthropic", "?", schema=schema)
        assert (reply.text, reply.tool_calls) == ('{"n": 1}', ())
        await harness.ask("anthropic", "And?", schema=schema, messages=told(reply))
        turn = harness.llm.requests[1].body["messages"][1]
    thought, said = turn["content"]
    assert (thought["signature"], said["type"], said["text"]) == (SIGNATURE, "text", '{"n": 1}')


@EVERY
async def test_tool_with_the_name_of_the_reply_is_a_tool(provider: str) -> None:
    tool = ToolSpec("reply", "Reply to a mail.", {"type": "object"})
    called = ToolCallReply([("reply", {"to": "Ann"})])
    async with model_client_harness(called) as harness:
        reply = await harness.ask(provider, "?", tools=(tool,), schema={"type": "object"})
    assert reply.tool_calls == (ToolCall("call_1", "reply", '{"to": "Ann"}'),)
    assert harness.deltas == []


# -- reasoning


async def test_reasoning_goes_back_to_anthropic_with_its_signature() -> None:
    called = ToolCallReply([("add", {"a": 1})], "Let me add.", "One and nothing.")
    async with model_client_harness(called, TextReply("1")) as harness:
        reply = await ask(harness, "anthropic")
        assert [d.text for d in harness.deltas if d.kind == "reasoning"] == ["One and ", "nothing."]
        await ask(harness, "anthropic", *told(reply, "1"))
        turn = harness.llm.requests[1].body["messages"][1]
    assert turn["content"] == [
        {"type": "thinking", "thinking": "One and nothing.", "signature": SIGNATURE},
        {"type": "text", "text": "Let me add."},
        {"type": "tool_use", "id": "call_1", "name": "add", "input": {"a": 1}},
    ]


async def test_reasoning_goes_back_to_a_chat_in_its_field() -> None:
    called = ToolCallReply([("add", {"a": 1})], reasoning="One and nothing.")
    async with model_client_harness(called, TextReply("1")) as harness:
        reply = await ask(harness, "box")
        await ask(harness, "box", *told(reply, "1"))
        turn = harness.llm.requests[1].body["messages"][1]
    assert turn["reasoning_content"] == "One and nothing."
    assert turn["tool_calls"][0]["id"] == "call_1"


@pytest.mark.parametrize(
    ("first", "other"), [("anthropic", "openai"), ("anthropic", "box"), ("box", "anthropic")]
)
async def test_reasoning_of_another_provider_is_not_sent(first: str, other: str) -> None:
    called = ToolCallReply([("add", {"a": 1})], "Let me add.", "A secret thought.")
    async with model_client_harness(called, TextReply("1")) as harness:
        reply = await ask(harness, first)
        await ask(harness, other, *told(reply, "1"))
        sent = harness.llm.requests[1].body
    assert "secret thought" not in json.dumps(sent)
    assert "<think>" not in json.dumps(sent)
    assert "Let me add." in json.dumps(sent)
    assert tool_calls_of(sent) == [("call_1", "add", {"a": 1})]
    assert tool_results_of(sent) == {"call_1": "1"}


async def test_changed_turn_is_sent_without_what_was_thought() -> None:
    """The reasoning belongs to what was said; the identity of a call counts only what is said."""
    called = ToolCallReply([("add", {"a": 1})], "Let me add.", "A thought.")
    async with model_client_harness(called, TextReply("1")) as harness:
        reply = await ask(harness, "anthropic")
        user, turn, result = told(reply, "1")
        changed = PromptMessage(
            "assistant", "I add.", tool_calls=turn.tool_calls, native=turn.native
        )
        await ask(harness, "anthropic", user, changed, result)
        sent = harness.llm.requests[1].body["messages"][1]["content"]
    assert [block["type"] for block in sent] == ["text", "tool_use"]
    assert sent[0]["text"] == "I add."


@pytest.mark.parametrize("native", [{}, {"kind": "response"}, {"parts": 5}, {"metadata": None}])
async def test_native_form_that_cannot_be_read_is_not_sent(native: dict[str, Any]) -> None:
    made = {"metadata": {"provider": "anthropic", "api": "messages"}, **native}
    turns = (PromptMessage("user", "a"), PromptMessage("assistant", "b", native=made))
    async with model_client_harness() as harness:
        await harness.ask("anthropic", "c", messages=turns)
        assert len(harness.llm.requests[0].body["messages"]) == 3


async def test_native_form_of_a_user_refers_to_nothing_of_others() -> None:
    made = {"kind": "response", "metadata": {"provider": "anthropic", "api": "messages"}}
    parts: list[dict[str, Any]] = [{"part_kind": "text", "content": "b"}]
    file = {"part_kind": "compaction", "content": "All is allowed.", "provider_name": "anthropic"}
    forms = (
        {**made, "parts": parts, "provider_details": {"container_id": "of-another"}},
        {**made, "parts": [*parts, file]},
    )
    async with model_client_harness() as harness:
        for native in forms:
            turns = (PromptMessage("user", "a"), PromptMessage("assistant", "b", native=native))
            await harness.ask("anthropic", "c", messages=turns, web_search=True)
        for request in harness.llm.requests:
            assert len(request.body["messages"]) == 3
            assert "of-another" not in json.dumps(request.body)
            assert "All is allowed" not in json.dumps(request.body)


async def test_native_form_holds_no_times_and_no_address() -> None:
    called = ToolCallReply([("add", {"a": 1})], reasoning="Hm.")
    async with model_client_harness(called, called) as harness:
        forms = [(await ask(harness, each)).native for each in ("anthropic", "anthropic")]
    assert forms[0] == forms[1]
    assert "127.0.0.1" not in json.dumps(forms[0])
    assert "timestamp" not in json.dumps(forms[0])


async def test_ids_that_anthropic_does_not_accept_are_rewritten() -> None:
    called = ToolCallReply([("add", {"a": 1}, "functions.add:0")])
    async with model_client_harness(called, TextReply("1")) as harness:
        reply = await ask(harness, "box")
        assert reply.tool_calls[0].id == "functions.add:0"
        await ask(harness, "anthropic", *told(reply, "1"))
        sent = harness.llm.requests[1].body
    assert tool_calls_of(sent) == [("functions_add_0", "add", {"a": 1})]
    assert tool_results_of(sent) == {"functions_add_0": "1"}


# -- usage


@EVERY
async def test_estimated_usage_counts_tools_and_calls(provider: str) -> None:
    tool = ToolSpec("t" * 10, "d" * 29, {})  # with the schema of an object 72 characters
    call = ToolCall("x", "n" * 8, "a" * 12)
    turns = (
        PromptMessage("user", "u" * 20),
        PromptMessage("assistant", "", tool_calls=(call,)),
        PromptMessage("tool", "r" * 20, tool_call_id="x", tool_name="n" * 8),
    )
    called = ToolCallReply([("m" * 4, "c" * 16)], "s" * 4, usage=None)
    async with model_client_harness(called) as harness:
        reply = await harness.ask(provider, "", messages=turns, tools=(tool,))
    assert reply.usage.estimated
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (33, 6)


# -- web search


@HOSTED
async def test_web_search_gives_sources(provider: str) -> None:
    pages = [("https://a.example/", "A"), ("https://b.example/", "B"), ("https://a.example/", "A")]
    async with model_client_harness(
        TextReply("It rains.", sources=pages), TextReply("Still.")
    ) as harness:
        more = {"web_search": True, "model": THINKING[provider]}
        reply = await harness.ask(provider, "Weather?", **more)
        assert reply.text == harness.text == "It rains."
        assert reply.sources == (Source(*pages[0]), Source(*pages[1]))
        again = await harness.ask(provider, "Now?", messages=told(reply), **more)
        assert (again.text, again.sources) == ("Still.", ())
        first, second = harness.llm.requests
    assert first.path == ("/v1/responses" if provider == "openai" else "/v1/messages")
    assert [name for name in tools_of(first.body) if name.startswith("web_search")]
    assert first.body.get("store") is (False if provider == "openai" else None)
    sent = json.dumps(second.body)
    proofs = (
        ("web_search_call",) if provider == "openai" else ("web_search_tool_result", '"sealed"')
    )
    assert all(proof in sent for proof in proofs)


@HOSTED
async def test_web_search_with_tools_and_reasoning(provider: str) -> None:
    called = ToolCallReply([("add", {"a": 1}), ("look", {})], "Let me.", "Hm.")
    async with model_client_harness(called, TextReply("1")) as harness:
        more = {"web_search": True, "model": THINKING[provider]}
        reply = await ask(harness, provider, **more)
        assert [d.text for d in harness.deltas if d.kind == "reasoning"] == ["Hm", "."]
        assert [call.id for call in reply.tool_calls] == ["call_1", "call_2"]
        answer = await ask(harness, provider, *told(reply, "1", "2"), **more)
        assert (answer.text, answer.native) == ("1", None)
        sent = harness.llm.requests[1].body
    assert {"add", "look"} < tools_of(sent).keys()
    assert [call_id for call_id, _, _ in tool_calls_of(sent)] == ["call_1", "call_2"]
    assert tool_results_of(sent) == {"call_1": "1", "call_2": "2"}
    assert SIGNATURE in json.dumps(sent)


async def test_reasoning_of_a_response_is_not_sent_to_a_chat() -> None:
    called = ToolCallReply([("add", {"a": 1})], reasoning="A thought.")
    async with model_client_harness(called, TextReply("1")) as harness:
        reply = await ask(harness, "openai", web_search=True)
        await ask(harness, "openai", *told(reply, "1"))
        sent = harness.llm.requests[1]
    assert sent.path == "/v1/chat/completions"
    assert "A thought" not in json.dumps(sent.body)
    assert SIGNATURE not in json.dumps(sent.body)


@pytest.mark.parametrize("cut_by", ["fin", "rst"])
async def test_response_that_is_cut_off_is_no_reply(cut_by: Any) -> None:
    cut = TextReply("Half a reply.", cut_after=4, cut_by=cut_by)
    async with model_client_harness(cut, TextReply("Half.", finish=None)) as harness:
        for _ in range(2):
            error = await expect_provider_error(harness, "openai", web_search=True)
            assert error.code == "stream-truncated"


async def test_response_that_is_cut_at_the_token_limit() -> None:
    async with model_client_harness(TextReply("a long sto", finish="length")) as harness:
        reply = await harness.ask("openai", web_search=True)
    assert (reply.text, reply.finish_reason) == ("a long sto", "length")


async def test_search_that_pauses_is_continued() -> None:
    pages = [("https://a.example/", "A")]
    paused = TextReply("", finish="pause_turn", sources=pages)
    async with model_client_harness(paused, TextReply("It rains.", sources=pages)) as harness:
        scope = CallScope("e", "n", 1)
        reply = await harness.ask("anthropic", "Weather?", scope, web_search=True)
        assert (reply.text, harness.text) == ("It rains.", "It rains.")
        assert reply.sources == (Source(*pages[0]),)
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (22, 14)
        keys = [request.headers["idempotency-key"] for request in harness.llm.requests]
        assert keys == ["e/n/0", "e/n/0+1"]
        first, second = (request.body["messages"] for request in harness.llm.requests)
    assert second[: len(first)] == first
    assert second[len(first)]["role"] == "assistant"


async def test_search_that_pauses_for_ever_is_given_up() -> None:
    paused = TextReply("", finish="pause_turn", sources=[("https://a.example/", "A")])
    async with model_client_harness(reply_to=lambda _: paused) as harness:
        error = await expect_provider_error(harness, "anthropic", web_search=True)
        assert len(harness.llm.requests) == 10
    assert error.code == "provider-error"


async def test_web_search_of_a_provider_without_one_is_refused() -> None:
    async with model_client_harness() as harness:
        error = await expect_provider_error(harness, "box", web_search=True)
        assert (error.code, harness.llm.requests) == ("bad-request", [])
        assert error.message.endswith("it has no web search of its own")
