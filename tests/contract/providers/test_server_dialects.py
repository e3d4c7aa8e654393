"""What model servers send and refuse otherwise than their APIs say, on every protocol."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Sequence
from typing import Any

import pytest
import zstandard

from planwave.providers.protocols import PromptMessage, ToolCall, ToolSpec
from planwave.providers.refusals import REFUSALS
from planwave.providers.streams.finish_reasons import _WORDS, finish_reason_of
from planwave.settings import Limits, ProviderSettings
from tests.support.llm.client_harness import expect_provider_error, model_client_harness
from tests.support.llm.fake_llm_server import (
    RawReply,
    TextReply,
    prompt_of,
    schema_of,
    tool_calls_of,
    tool_results_of,
    tools_of,
)
from tests.support.llm.refusals import FEATURES

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = (ToolSpec("look", "Look.", CITY), ToolSpec("find", "Find.", CITY))
OSLO, ROME = '{"city":"Oslo"}', '{"city":"Rome"}'
USAGE = {"prompt_tokens": 10, "completion_tokens": 5}
EVERY = pytest.mark.parametrize("provider", ["box", "openai", "anthropic"])
READERS = pytest.mark.parametrize("provider", ["box", "anthropic"])
"""One for each reader: box and openai are read alike."""
CHAT = pytest.mark.parametrize("provider", ["box", "openai"])


def events(items: Sequence[dict[str, Any] | str], *, named: bool = False) -> bytes:
    """Give an event stream."""
    lines = [
        (f"event: {item['type']}\n" if named and isinstance(item, dict) else "")
        + f"data: {item if isinstance(item, str) else json.dumps(item)}\n\n"
        for item in items
    ]
    return "".join(lines).encode()


def chunk(delta: Any = None, reason: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [choice], **more}  # fmt: skip


def chat(*chunks: dict[str, Any] | str, **more: Any) -> RawReply:
    return RawReply(events([*chunks, "[DONE]"]), **more)


def messages(*blocks: dict[str, Any], stop: str | None = "end_turn", **more: Any) -> RawReply:
    """Give a reply of Anthropic's API; each block is an event of its stream, or a text."""
    start = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [],
             "stop_reason": None, "stop_sequence": None,
             "usage": {"input_tokens": 10, "output_tokens": 1}}  # fmt: skip
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}
    items = [{"type": "message_start", "message": start}, *blocks, end, {"type": "message_stop"}]
    return RawReply(events(items, named=True), **more)


def block(text: str, index: int = 0) -> list[dict[str, Any]]:
    begun = {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": "text", "text": ""},
    }
    delta = {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": "text_delta", "text": text},
    }
    return [begun, delta, {"type": "content_block_stop", "index": index}]


def text_reply(provider: str, text: str, reason: str | None, **more: Any) -> RawReply:
    """Give a reply in the protocol of a provider, with its last reason in these words."""
    if provider == "anthropic":
        return messages(*block(text), stop=reason, **more)
    return chat(chunk({"content": text}), chunk({}, reason, usage=USAGE), **more)


# -- fragments of tool calls ------------------------------------------------------------------


def part(
    arguments: Any, id: str | None = None, name: str | None = None, index: Any = 0
) -> dict[str, Any]:
    """Give a fragment of a call; what is None is left out."""
    function = {"name": name, "arguments": arguments}
    fields = {"index": index, "id": id, "type": "function" if id else None}
    kept = {key: value for key, value in fields.items() if value is not None}
    return {**kept, "function": {k: v for k, v in function.items() if v is not None}}


TWO = [("look", OSLO), ("look", ROME)]
SHAPES: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str]]]] = {
    "by the book": ([part("", "a", "look"), part(OSLO), part("", "b", "look", 1), part(ROME, index=1)], TWO),
    "two whole calls under one index": ([part(OSLO, "a", "look"), part(ROME, "b", "look")], TWO),
    "two tools under one index": (
        [part(OSLO, "a", "look"), part(ROME, "b", "find")], [("look", OSLO), ("find", ROME)]),
    "two calls in fragments under one index": (
        [part('{"city":', "a", "look"), part('"Oslo"}'), part('{"city":', "b", "look"), part('"Rome"}')], TWO),
    "fragments of two ids in turns": (
        [part('{"city":', "a", "look"), part('{"city":', "b", "look"), part('"Oslo"}', "a"), part('"Rome"}', "b")],
        TWO),
    "no ids": ([part(OSLO, None, "look"), part(ROME, None, "look")], TWO),
    "no ids, two tools, names first": (
        [part("", None, "look"), part(OSLO), part("", None, "find"), part(ROME)], [("look", OSLO), ("find", ROME)]),
    "no index": ([part(OSLO, "a", "look", None), part(ROME, "b", "look", None)], TWO),
    "no index, no ids": ([part(OSLO, None, "look", None), part(ROME, None, "look", None)], TWO),
    "one id for two calls": ([part(OSLO, "a", "look"), part(ROME, "a", "look")], TWO),
    "id and name in each fragment": ([part('{"city":', "a", "look"), part('"Oslo"}', "a", "look")], TWO[:1]),
    "name in each fragment": ([part('{"city":', None, "look"), part('"Oslo"}', None, "look")], TWO[:1]),
    "id in each fragment": ([part("", "a", "look"), part('{"city":', "a"), part('"Oslo"}', "a")], TWO[:1]),
    "id that comes late": ([part("", None, "look"), part(OSLO, "a")], TWO[:1]),
    "name that comes late": ([part("", "a"), part(OSLO, None, "look")], TWO[:1]),
    "name in pieces": ([part("", "a", "lo"), part("", None, "ok"), part(OSLO)], TWO[:1]),
    "a new index for each fragment": (
        [part('{"city":', "a", "look"), part('"Os', None, None, 1), part('lo"}', None, None, 2)], TWO[:1]),
    "the whole call once more": ([part("", "a", "look"), part(OSLO), part(OSLO, "a", "look")], TWO[:1]),
    "empty id": ([part(OSLO, "", "look"), part(ROME, "", "look", 1)], TWO),
    "arguments as an object": ([part({"city": "Oslo"}, "a", "look")], [("look", '{"city": "Oslo"}')]),
    "an empty fragment at the end": ([part(OSLO, "a", "look"), part("", "a", "look"), part("")], TWO[:1]),
}  # fmt: skip


@CHAT
@pytest.mark.parametrize("together", [False, True])
async def test_fragments_of_calls_are_joined_in_chat(provider: str, together: bool) -> None:
    async with model_client_harness() as harness:
        for shape, (fragments, wanted) in SHAPES.items():
            groups = [fragments] if together else [[each] for each in fragments]
            sent = [chunk({"tool_calls": group}) for group in groups]
            harness.llm.add(chat(*sent, chunk({}, "tool_calls", usage=USAGE)))
            reply = await harness.ask(provider, tools=TOOLS)
            assert [(call.name, call.arguments) for call in reply.tool_calls] == wanted, shape
            assert len({call.id for call in reply.tool_calls}) == len(wanted), shape


def use(
    index: int, id: str | None, *parts: str, input: Any = None, stop: bool = True
) -> list[dict[str, Any]]:
    """Give the events of one call in Anthropic's API."""
    call = {"type": "tool_use", "id": id, "name": "look", "input": input or {}}
    deltas = [{"type": "input_json_delta", "partial_json": text} for text in parts]
    sent: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": index, "content_block": call}
    ]
    sent += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*sent, *([{"type": "content_block_stop", "index": index}] if stop else [])]


BLOCKS: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "by the book": ([*use(0, "a", '{"city":', '"Oslo"}'), *use(1, "b", ROME)], [OSLO, ROME]),
    "one index": ([*use(0, "a", OSLO), *use(0, "b", ROME)], [OSLO, ROME]),
    "one index, not stopped": ([*use(0, "a", OSLO, stop=False), *use(0, "b", ROME)], [OSLO, ROME]),
    "begun again": ([*use(0, "a", '{"city":', stop=False), *use(0, "a", '"Oslo"}')], [OSLO]),
    "whole at once": (use(0, "a", input={"city": "Oslo"}), ['{"city": "Oslo"}']),
    "never stopped": (use(0, "a", OSLO, stop=False), [OSLO]),
}


@pytest.mark.parametrize("shape", BLOCKS)
async def test_blocks_of_calls_are_joined_in_messages(shape: str) -> None:
    sent, wanted = BLOCKS[shape]
    async with model_client_harness(messages(*sent, stop="tool_use")) as harness:
        reply = await harness.ask("anthropic", tools=TOOLS)
    assert [call.arguments for call in reply.tool_calls] == wanted


@pytest.mark.parametrize("ids", [("fc_1", "fc_2"), ("fc_1", "fc_1"), (None, None)])
async def test_items_of_calls_are_joined_in_responses(ids: tuple[str | None, str | None]) -> None:
    sent: list[dict[str, Any]] = [{"type": "response.created", "response": response("in_progress")}]
    for number, (item, text) in enumerate(zip(ids, (OSLO, ROME), strict=True)):
        call = {
            "type": "function_call",
            "id": item,
            "call_id": f"c{number}",
            "name": "look",
            "arguments": "",
        }
        at = {"output_index": number, "item_id": item}
        sent += [
            {"type": "response.output_item.added", "item": call, "output_index": number},
            {"type": "response.function_call_arguments.delta", "delta": text[:8], **at},
            {"type": "response.function_call_arguments.delta", "delta": text[8:], **at},
            {"type": "response.output_item.done", "item": {**call, "arguments": text}, "output_index": number},
        ]  # fmt: skip
    sent.append({"type": "response.completed", "response": response("completed")})
    numbered = [{**item, "sequence_number": number} for number, item in enumerate(sent)]
    async with model_client_harness(RawReply(events(numbered, named=True))) as harness:
        reply = await harness.ask("openai", tools=TOOLS, web_search=True)
    assert [call.arguments for call in reply.tool_calls] == [OSLO, ROME]


def response(status: str) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
             "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    return {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "status": status,
            "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}  # fmt: skip


@EVERY
async def test_text_with_the_reason_of_calls_and_no_call_is_the_reply(provider: str) -> None:
    reason = "tool_use" if provider == "anthropic" else "tool_calls"
    step = text_reply(provider, "It is 4.", reason)
    async with model_client_harness(step, step) as harness:
        assert (await harness.ask(provider, tools=TOOLS)).text == "It is 4."
        error = await expect_provider_error(harness, provider, tools=TOOLS, must_call=True)
        assert error.code == "stream-garbage"


async def test_calls_that_a_server_leaves_in_the_text_are_calls() -> None:
    call = f'<tool_call>\n{{"name": "look", "arguments": {OSLO}}}\n</tool_call>'
    async with model_client_harness(TextReply(f"I look.\n{call}", chunks=9)) as harness:
        reply = await harness.ask("box", tools=TOOLS)
    assert (reply.text, [(c.name, json.loads(c.arguments)) for c in reply.tool_calls]) == (
        "I look.", [("look", {"city": "Oslo"})],
    )  # fmt: skip


# -- why replies end --------------------------------------------------------------------------

REASONS = [(word, reason) for reason, words in _WORDS.items() for word in words.split()]
CASES = (str.lower, str.upper, str.title, lambda word: word.replace("_", "-"),
         lambda word: word.title().replace("_", ""), lambda word: f"FinishReason.{word.upper()}")  # fmt: skip


@pytest.mark.parametrize(("word", "reason"), REASONS)
def test_reasons_of_all_apis_are_known_in_any_case_of_letters(word: str, reason: str) -> None:
    assert {finish_reason_of(case(word), {}) for case in CASES} == {reason}


@READERS
@pytest.mark.parametrize("reason", _WORDS)
async def test_a_reply_ends_for_the_reasons_of_all_apis(reason: str, provider: str) -> None:
    """Each word in one form of letters; that all forms are one word is shown above."""
    known = [word for word, of in REASONS if of == reason]
    words = {CASES[at % len(CASES)](word): None for at, word in enumerate(known)}
    if provider == "anthropic":  # a turn that pauses goes on with another request
        words = {word: None for word in words if "pause" not in word.lower()}
    steps = [text_reply(provider, "half of", word) for word in words]
    async with model_client_harness(*steps) as harness:
        for word in words:
            if reason in ("stop", "length", "tool_calls"):
                reply = await harness.ask(provider)
                wanted = "length" if reason == "length" else "stop"
                assert (reply.text, reply.finish_reason) == ("half of", wanted), word
                continue
            error = await expect_provider_error(harness, provider)
            codes = {
                "content_filter": "content-filtered",
                "refusal": "refused",
                "error": "provider-error",
            }
            assert error.code == codes[reason], word


@EVERY
async def test_unknown_reason_is_the_end_and_a_line_in_the_log(
    provider: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with model_client_harness(text_reply(provider, "whole", "zonk")) as harness:
            assert (await harness.ask(provider)).finish_reason == "stop"
    assert "'zonk'" in caplog.text


async def test_operator_names_reasons_of_a_server() -> None:
    box = ProviderSettings(finish_reasons={"zonk": "length"})
    async with model_client_harness(text_reply("box", "half", "ZONK"), box=box) as harness:
        assert (await harness.ask("box")).finish_reason == "length"


ENDS: dict[str, RawReply] = {
    "null delta": chat(chunk({"content": "hello"}), {"choices": [{"delta": None, "finish_reason": "stop"}]}),
    "no delta": chat(chunk({"content": "hello"}), {"choices": [{"index": 0, "finish_reason": "stop"}]}),
    "empty reason": chat(chunk({"content": "hello"}, ""), chunk({}, "")),
    "typed as JSON": chat(chunk({"content": "hello"}), chunk({}, "stop"), content_type="application/json"),
    "typed as text": chat(chunk({"content": "hello"}), chunk({}, "stop"), content_type="text/plain"),
    "empty data": chat("", chunk({"content": "hello"}), " ", chunk({}, "stop"), ""),
    "only the data field": chat(chunk({"content": "hello"}), chunk({}, "stop"), {}),
    "a byte order mark": RawReply(b"\xef\xbb\xbf" + chat(chunk({"content": "hello"}), chunk({}, "stop")).body),
    "CR": RawReply(chat(chunk({"content": "hello"}), chunk({}, "stop")).body.replace(b"\n", b"\r")),
    "done in other letters": RawReply(
        chat(chunk({"content": "hello"}), chunk({}, "stop")).body.replace(b"[DONE]", b'"[done]"')),
    "CR LF": RawReply(chat(chunk({"content": "hello"}), chunk({}, "stop")).body.replace(b"\n", b"\r\n")),
    "message in place of the delta": chat({"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}),
}  # fmt: skip


@CHAT
async def test_whole_reply_is_taken_however_it_ends(provider: str) -> None:
    async with model_client_harness() as harness:
        for end, step in ENDS.items():
            harness.llm.add(step)
            reply = await harness.ask(provider)
            assert (reply.text, reply.attempts) == ("hello", 1), end


@CHAT
async def test_call_with_an_empty_reason_is_paid_once(provider: str) -> None:
    step = chat(chunk({"tool_calls": [part(OSLO, "a", "look")]}), chunk({}, ""))
    async with model_client_harness(step) as harness:
        reply = await harness.ask(provider, tools=TOOLS)
        assert ([call.arguments for call in reply.tool_calls], reply.attempts) == ([OSLO], 1)


# -- compression ------------------------------------------------------------------------------


def deflate(data: bytes, bits: int) -> bytes:
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(data) + packer.flush()


ENCODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": lambda data: deflate(data, 15),
    "Deflate": lambda data: deflate(data, -15),
    "GZIP": lambda data: b"".join(gzip.compress(data[at : at + 40]) for at in range(0, len(data), 40)),
    "zstd": zstandard.ZstdCompressor().compress,
    "deflate, gzip": lambda data: gzip.compress(deflate(data, 15)),
    "identity": lambda data: data,
}  # fmt: skip


@EVERY
async def test_compressed_reply_is_undone(provider: str) -> None:
    plain = text_reply(provider, "hello", "stop")
    async with model_client_harness() as harness:
        for encoding, pack in ENCODINGS.items():
            headers = (f"content-encoding: {encoding}",)
            words = pack(b'{"detail": "the words"}')
            harness.llm.add(
                RawReply(pack(plain.body), headers=headers),
                RawReply(words, "application/json", 400, headers),
            )
            reply = await harness.ask(provider)
            assert (reply.text, reply.attempts) == ("hello", 1), encoding
            assert "the words" in (await expect_provider_error(harness, provider)).message
        assert {r.headers["accept-encoding"] for r in harness.llm.requests} == {"identity"}


async def test_compressed_data_have_a_bound() -> None:
    """All APIs have the same transport."""
    bomb = gzip.compress(b": " + b"x" * 1_000 + b"\n" * 80_000_000)
    headers = ("content-encoding: gzip",)
    damaged = RawReply(b"not compressed", headers=headers)
    unknown = RawReply(b"x", headers=("content-encoding: lzw",))
    async with model_client_harness(RawReply(bomb, headers=headers), damaged, unknown) as harness:
        for _ in range(3):
            assert (await expect_provider_error(harness, "box")).code == "stream-garbage"


# -- usage ------------------------------------------------------------------------------------


def so_far(made: int) -> dict[str, int]:
    return {"prompt_tokens": 1_000, "completion_tokens": made, "total_tokens": 1_000 + made}


def counted(*counts: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [chunk({"content": "w "}, usage=each) for each in counts]


USAGES: dict[str, RawReply] = {
    "in each chunk": chat(*counted(*map(so_far, range(1, 201))), chunk({}, "stop", usage=so_far(200))),
    "in each chunk and alone": chat(*counted(*map(so_far, (1, 2, 200))), chunk({}, "stop"),
                                    {"choices": [], "usage": so_far(200)}),
    "nulls between": chat(*counted(so_far(1), None, so_far(200), None), chunk({}, "stop", usage=None)),
    "first and last": chat(*counted(so_far(0), None), chunk({}, "stop", usage=so_far(200))),
    "in the choice": chat(*counted(None), {"choices": [{"delta": {}, "finish_reason": "stop", "usage": so_far(200)}]}),
    "zeros at the end": chat(*counted(so_far(200)), chunk({}, "stop", usage={"prompt_tokens": 0, "completion_tokens": 0})),
    "kinds apart": chat(*counted({"prompt_tokens": 1_000}), chunk({}, "stop", usage={"completion_tokens": 200})),
    "after the reason": chat(*counted(None), chunk({}, "stop"), {"choices": [], "usage": so_far(200)}),
    "beside a call": chat(chunk({"tool_calls": [part("", "a", "look")]}, usage=so_far(1)),
                          chunk({"tool_calls": [part(OSLO)]}, usage=so_far(200)), chunk({}, "tool_calls")),
}  # fmt: skip


@CHAT
async def test_counts_so_far_are_never_added_up(provider: str) -> None:
    async with model_client_harness() as harness:
        for form, step in USAGES.items():
            harness.llm.add(step)
            usage = (await harness.ask(provider, tools=TOOLS)).usage
            counts = (usage.input_tokens, usage.output_tokens, usage.estimated)
            assert counts == (1_000, 200, False), form


@pytest.mark.parametrize("last", [{"output_tokens": 5}, {"input_tokens": 10, "output_tokens": 5},
                                  {"input_tokens": 0, "output_tokens": 5}])  # fmt: skip
@pytest.mark.parametrize("cached", [0, 90])
async def test_counts_of_messages_include_the_cache_once(last: dict[str, int], cached: int) -> None:
    step = messages(*block("hello"))
    step.body = step.body.replace(
        b'"usage": {"output_tokens": 5}', b'"usage": ' + json.dumps(last).encode()
    )
    step.body = step.body.replace(
        b'"input_tokens": 10, "output_tokens": 1',
        b'"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": %d' % cached,
    )  # fmt: skip
    async with model_client_harness(step) as harness:
        usage = (await harness.ask("anthropic")).usage
    assert (usage.input_tokens, usage.output_tokens) == (10 + cached, 5)


@CHAT
@pytest.mark.parametrize("broken", [-7, 1e30, True, "x", None])
async def test_counts_that_are_none_are_left_out(provider: str, broken: Any) -> None:
    odd = chunk({}, usage={"prompt_tokens": broken, "completion_tokens": broken})
    step = chat(chunk({"content": "hello"}), odd, chunk({}, "stop", usage=so_far(200)), odd)
    async with model_client_harness(step) as harness:
        usage = (await harness.ask(provider)).usage
    assert (usage.input_tokens, usage.output_tokens) == (1_000, 200)


@pytest.mark.parametrize(("counting", "made"), [("so_far", 300), ("total", 200)])
async def test_operator_says_what_the_counts_of_a_server_are(counting: Any, made: int) -> None:
    step = chat(
        *counted(so_far(300), None, so_far(200)), chunk({}, "stop", usage={"completion_tokens": 0})
    )
    box = ProviderSettings(usage=counting)
    async with model_client_harness(step, box=box) as harness:
        assert (await harness.ask("box", tools=TOOLS)).usage.output_tokens == made


@pytest.mark.parametrize("window", [None, 100_000, 300])
async def test_limit_of_a_reply_is_what_the_prompt_leaves_of_the_context(
    window: int | None,
) -> None:
    box = ProviderSettings(context_window=window)
    async with model_client_harness(TextReply("x"), TextReply("x"), box=box) as harness:
        await harness.ask("box", prompt="word " * 200, max_tokens=200)
        await harness.ask("box", prompt="word " * 2_000, max_tokens=200)
        short, long = [request.body["max_tokens"] for request in harness.llm.requests]
    if window == 300:
        assert 1 < short < 100
        assert long == 1
    else:
        assert (short, long) == (200, 200)


@EVERY
async def test_whole_reply_in_the_place_of_a_stream_is_named_as_such(provider: str) -> None:
    message = {"role": "assistant", "content": "hello"}
    whole = {"object": "chat.completion", "choices": [{"message": message}]}
    said = RawReply(json.dumps(whole).encode(), content_type="application/json")
    async with model_client_harness(*[said] * 4) as harness:
        error = await expect_provider_error(harness, provider)
    assert error.code == "stream-garbage"
    assert "a whole reply instead of an event stream" in error.message
    assert error.hint is not None
    assert "streams its replies" in error.hint


# -- errors -----------------------------------------------------------------------------------

WORDS = "the deployment takes 8 blocks"
BODIES: dict[str, Any] = {
    "openai": {"error": {"message": WORDS, "type": "x", "code": None}},
    "ollama": {"error": WORDS},
    "fastapi": {"detail": WORDS},
    "fastapi fields": {"detail": [{"loc": ["body", "x"], "msg": WORDS, "type": "extra_forbidden"}]},
    "gemini": [{"error": {"code": 400, "message": WORDS, "status": "X"}}],
    "several": {"errors": [{"message": WORDS}]},
    "several texts": {"errors": [WORDS]},
    "problem": {"type": "about:blank", "title": "Bad", "detail": WORDS, "status": 400},
    "message": {"message": WORDS},
    "nested": {"message": {"detail": WORDS}},
    "aws": {"Message": WORDS, "__type": "X"},
    "anthropic": {"type": "error", "error": {"type": "x", "message": WORDS}},
    "mistral": {"object": "error", "message": WORDS, "type": "x"},
    "unknown place": {"oops": {"what": WORDS}},
    "behind a gateway": {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps({"error": WORDS})}}},
    "null beside": {"error": None, "message": WORDS},
    "oauth": {"error": "invalid_request", "error_description": WORDS},
    "code and msg": {"code": 40001, "msg": WORDS},
    "lambda": {"errorMessage": WORDS, "errorType": "X"},
    "apigee": {"fault": {"faultstring": WORDS, "detail": {"errorcode": "x"}}},
    "baidu": {"error_code": 17, "error_msg": WORDS},
    "minimax": {"base_resp": {"status_code": 1004, "status_msg": WORDS}},
    "reason": {"status": "error", "reason": WORDS},
    "cloudflare": {"success": False, "errors": [{"code": 10000, "message": WORDS}], "result": None},
    "error in error": {"error": {"error": {"message": WORDS}}},
    "JSON in a text": {"error": json.dumps({"error": {"message": WORDS}})},
    "tencent": {"Response": {"Error": {"Code": "X", "Message": WORDS}, "RequestId": "1"}},
    "a list of texts": [WORDS],
    "text": WORDS,
}  # fmt: skip
WHOLE_ONLY = ("tencent", "a list of texts")
"""Forms that are known only where they are the whole body."""


PATIENT = Limits(call_attempts=1, provider_failures=100)
"""For many failures in a row: no second attempts, and no circuit that opens."""


@EVERY
@pytest.mark.parametrize("status", [400, 422, 500])
async def test_words_of_an_error_are_shown_whatever_its_form(status: int, provider: str) -> None:
    async with model_client_harness(limits=PATIENT) as harness:
        for form, body in BODIES.items():
            raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            harness.llm.add(RawReply(raw, "application/json", status))
            assert WORDS in (await expect_provider_error(harness, provider)).message, form


@EVERY
@pytest.mark.parametrize("place", ["body", "event", "error event"])
async def test_words_of_an_error_with_status_200_are_shown(place: str, provider: str) -> None:
    name = "event: error\n" if place == "error event" else ""
    kind = "application/json" if place == "body" else "text/event-stream"
    async with model_client_harness(limits=PATIENT) as harness:
        for form, body in BODIES.items():
            if form in ("unknown place", "text") or (place != "body" and form in WHOLE_ONLY):
                continue
            raw = json.dumps(body)
            sent = raw if place == "body" else f"{name}data: {raw}\n\n"
            harness.llm.add(RawReply(sent.encode(), kind))
            error = await expect_provider_error(harness, provider)
            assert WORDS in error.message, form
            assert error.code != "stream-garbage", form


@EVERY
async def test_text_in_the_place_of_an_event_is_an_error_with_its_words(provider: str) -> None:
    for sent in (
        f"data: {WORDS}\n\n",
        f"event: error\ndata: {WORDS}\n\n",
        WORDS,
        f"<title>{WORDS}</title>",
    ):
        async with model_client_harness(*[RawReply(sent.encode())] * 4) as harness:
            assert WORDS in (await expect_provider_error(harness, provider)).message


CODES = [
    ({"error": {"message": "No endpoints", "code": 404}}, "unknown-model", 1),
    ({"error": {"message": "busy", "code": 502}}, "provider-error", 4),
    ({"error": {"message": "slow", "code": 429}}, "rate-limited", 4),
    ({"error": {"message": "slow", "code": "rate_limit_exceeded"}}, "rate-limited", 4),
    ({"error": {"message": "none left", "code": "insufficient_quota"}}, "quota-exhausted", 1),
    ({"error": {"message": "pay", "code": 402}}, "quota-exhausted", 1),
    ({"error": {"message": "who", "code": "401"}}, "provider-auth", 1),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, "provider-overloaded", 4),
    ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, "rate-limited", 4),
    ({"error": {"message": "long", "code": "context_length_exceeded"}}, "context-too-long", 1),
    ([{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}], "provider-overloaded", 4),
    ({"error": {"message": "wrong", "type": "invalid_request_error"}}, "bad-request", 1),
]  # fmt: skip


@EVERY
@pytest.mark.parametrize("place", ["body", "event"])
@pytest.mark.parametrize(("body", "code", "calls"), CODES)
async def test_error_with_status_200_is_what_its_code_names(
    body: Any, code: str, calls: int, place: str, provider: str
) -> None:
    raw = json.dumps(body)
    sent = raw if place == "body" else f"event: error\ndata: {raw}\n\n"
    kind = "application/json" if place == "body" else "text/event-stream"
    async with model_client_harness(*[RawReply(sent.encode(), kind)] * 4) as harness:
        assert (await expect_provider_error(harness, provider)).code == code
        assert len(harness.llm.requests) == calls


def gemini(code: int, status: str, *details: dict[str, Any], message: str = "no") -> list[Any]:
    return [{"error": {"code": code, "message": message, "status": status, "details": [*details]}}]


QUOTA = "You exceeded your current quota, please check your plan and billing details."
GEMINI = [
    (400, gemini(400, "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"}), "provider-auth", 1),
    (400, gemini(400, "INVALID_ARGUMENT", message="API key not valid. Please pass one."), "provider-auth", 1),
    (429, gemini(429, "RESOURCE_EXHAUSTED", message=QUOTA), "quota-exhausted", 1),
    (429, gemini(429, "RESOURCE_EXHAUSTED",
                 {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
                 {"retryDelay": "30s"}, message=QUOTA), "quota-exhausted", 1),
    (429, gemini(429, "RESOURCE_EXHAUSTED",
                 {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]},
                 {"retryDelay": "2s"}, message=QUOTA), "rate-limited", 4),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "code", "calls"), GEMINI)
async def test_errors_of_gemini_are_sorted(status: int, body: Any, code: str, calls: int) -> None:
    step = RawReply(json.dumps(body).encode(), "application/json", status)
    async with model_client_harness(*[step] * 4) as harness:
        assert (await expect_provider_error(harness, "box")).code == code
        assert len(harness.llm.requests) == calls


async def test_words_of_an_error_hold_no_secret_and_have_an_end() -> None:
    raw = {"oops": "Bearer abc.def sk-canary-openai-0123456789 " + "x" * 5_000}
    step = RawReply(json.dumps(raw).encode(), "application/json", 400)
    async with model_client_harness(step) as harness:
        error = await expect_provider_error(harness, "openai")
    assert "[hidden]" in error.message
    assert len(error.message) < 500


# -- what servers refuse ----------------------------------------------------------------------

TALK = (
    PromptMessage("user", "Look."),
    PromptMessage("assistant", "", tool_calls=(ToolCall("a", "look", OSLO), ToolCall("b", "look", ROME))),
    PromptMessage("tool", "12", tool_call_id="a", tool_name="look"),
    PromptMessage("tool", "20", tool_call_id="b", tool_name="look"),
    PromptMessage("user", "And?"),
)  # fmt: skip
CALL: dict[str, Any] = {"system": "Be brief.", "messages": TALK, "prompt": "Now.", "temperature": 0.2,
                        "max_tokens": 99, "reasoning_effort": "low"}  # fmt: skip
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
USES: dict[str, dict[str, Any]] = {
    "json_schema": {"schema": SCHEMA},
    "json_mode": {"schema": SCHEMA},
    "tools_beside_json": {"schema": SCHEMA, "tools": TOOLS},
    "tools": {"schema": SCHEMA},
    "required_tool_choice": {"tools": TOOLS, "must_call": True},
}
ALSO_LACKS = {"json_mode": {"json_schema"}, "tools": {"json_schema", "json_mode"}}


def reply_for(body: dict[str, Any]) -> str:
    return '{"n": 4}' if schema_of(body) is not None or "JSON" in prompt_of(body) else "4"


@CHAT
@pytest.mark.parametrize("feature", FEATURES)
async def test_refused_feature_is_learned_and_not_asked_for_again(
    feature: str, provider: str
) -> None:
    lacks = {feature, *ALSO_LACKS.get(feature, ())}
    more = {**CALL, **USES.get(feature, {})}
    model = "gpt-5.6-luna" if feature == "reasoning_effort" and provider == "openai" else None
    if provider == "openai" and feature == "max_tokens":
        lacks = {"max_completion_tokens"}
    if provider == "openai" and feature == "temperature":
        more |= {"reasoning_effort": None}
    async with model_client_harness(reply_to=reply_for, lacks=lacks) as harness:
        first = await harness.ask(provider, model=model, **more)
        assert first.text in ("4", '{"n": 4}')
        refused = len(harness.llm.requests) - 1
        await harness.ask(provider, model=model, **more)
        assert len(harness.llm.requests) == refused + 2, "it was asked for again"
        assert first.attempts == refused + 1 <= 4
        if feature not in ("reasoning_effort",) or refused:
            assert refused >= (1 if FEATURES[feature].is_used(_first_body(harness)) else 0)
        assert sum(harness.time.slept) == 0
        last = harness.llm.requests[-1].body
        assert not any(FEATURES[name].is_used(last) for name in lacks)
        said = prompt_of(last)
        assert all(text in said for text in ("Be brief.", "Look.", "And?", "Now."))
        assert tool_results_of(last) == {"a": "12", "b": "20"}
        assert len(tool_calls_of(last)) == 2


def _first_body(harness: Any) -> dict[str, Any]:
    return harness.llm.requests[0].body


def test_every_refusal_that_is_known_has_a_server_that_refuses() -> None:
    """A new row of the table fails here until a fake server refuses what it is about."""
    from tests.support.llm.refusals import Refused

    refused: list[Refused] = [feature.refused for feature in FEATURES.values()]
    import re

    for refusal in REFUSALS:
        words = [r.message.lower() or json.dumps(r.body).lower() for r in refused]
        assert any(re.search(refusal.words, text) for text in words), refusal.entry


async def test_learned_answers_are_kept_for_the_model_and_no_other() -> None:
    async with model_client_harness(reply_to=reply_for, lacks={"stream_options"}) as harness:
        await harness.ask("box", model="a")
        await harness.ask("box", model="a")
        assert (await harness.ask("box", model="b")).attempts == 2
        assert ["stream_options" in r.body for r in harness.llm.requests] == [
            True, False, False, True, False,
        ]  # fmt: skip


async def test_refusal_about_a_value_is_the_caller_s() -> None:
    for words in ("temperature must be between 0 and 1", "max_tokens is too large: 99"):
        body = {"error": {"message": words}}
        step = RawReply(json.dumps(body).encode(), "application/json", 400)
        async with model_client_harness(step) as harness:
            error = await expect_provider_error(harness, "box", temperature=0.2, max_tokens=99)
            assert words in error.message


async def test_refusal_without_words_is_a_guess_that_is_taken_back() -> None:
    silent = RawReply(b"", "application/json", 422)
    async with model_client_harness(silent, TextReply("4"), silent, silent) as harness:
        assert (await harness.ask("box", model="a")).text == "4"
        await expect_provider_error(harness, "box", model="b")
        await harness.ask("box", model="b")
        assert ["stream_options" in r.body for r in harness.llm.requests] == [
            True, False, True, False, True,
        ]  # fmt: skip


SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "schema": ({"structured_output": "schema"}, {"schema": SCHEMA}),
    "json": ({"structured_output": "json"}, {"schema": SCHEMA}),
    "tool": ({"structured_output": "tool"}, {"schema": SCHEMA}),
    "none": ({"structured_output": "none"}, {"schema": SCHEMA}),
}


@pytest.mark.parametrize("form", SETTINGS)
async def test_operator_sets_how_json_is_asked_for(form: str) -> None:
    settings, more = SETTINGS[form]
    box = ProviderSettings(**settings)
    async with model_client_harness(reply_to=lambda _: '{"n": 4}', box=box) as harness:
        assert (await harness.ask("box", system="Be brief.", **more)).text == '{"n": 4}'
        (sent,) = [request.body for request in harness.llm.requests]
    asked = (sent.get("response_format") or {}).get("type")
    assert asked == {"schema": "json_schema", "json": "json_object"}.get(form)
    assert bool(tools_of(sent)) == (form == "tool")
    assert ('"required":["n"]' in prompt_of(sent)) == (form in ("json", "none"))


async def test_what_the_operator_set_is_not_learned_anew() -> None:
    box = ProviderSettings(structured_output="schema")
    async with model_client_harness(reply_to=reply_for, box=box, lacks={"json_schema"}) as harness:
        error = await expect_provider_error(harness, "box", schema=SCHEMA)
        assert (error.code, len(harness.llm.requests)) == ("bad-request", 1)


# -- what is never sent -----------------------------------------------------------------------

BLANKS = ("", " ", "\n\n", "\t \n")


@EVERY
@pytest.mark.parametrize("blank", BLANKS)
async def test_no_request_has_a_blank_text(blank: str, provider: str) -> None:
    """The fake server refuses blank blocks, as Anthropic does."""
    turns = (
        PromptMessage("user", blank),
        PromptMessage("user", "Look."),
        PromptMessage("assistant", blank, tool_calls=(ToolCall("a", "look", OSLO),)),
        PromptMessage("tool", blank, tool_call_id="a", tool_name="look"),
        PromptMessage("assistant", blank),
        PromptMessage("system", blank),
        PromptMessage("user", blank, ("data:image/png;base64,iVBORw0KGgo=",)),
    )
    async with model_client_harness(TextReply("fine")) as harness:
        reply = await harness.ask(provider, blank, system=blank, messages=turns, tools=TOOLS)
        assert reply.text == "fine"
        assert tool_results_of(harness.llm.requests[0].body) == {"a": "(no result)"}


@EVERY
async def test_reply_with_blank_text_is_sent_back_without_it(provider: str) -> None:
    called = (("look", {"city": "Oslo"}),)
    first = TextReply("\n\n", calls=called)
    async with model_client_harness(first, TextReply("fine")) as harness:
        reply = await harness.ask(provider, tools=TOOLS)
        turns = (
            PromptMessage("user", "hi"),
            PromptMessage(
                "assistant", reply.text, tool_calls=reply.tool_calls, native=reply.native
            ),
            PromptMessage("tool", "", tool_call_id=reply.tool_calls[0].id, tool_name="look"),
        )
        assert (await harness.ask(provider, "", messages=turns, tools=TOOLS)).text == "fine"


# -- reasoning in the text --------------------------------------------------------------------


@EVERY
async def test_reasoning_in_the_text_is_streamed_and_stored_as_such(provider: str) -> None:
    step = TextReply("<think>two and two</think>4", chunks=99)
    async with model_client_harness(step, TextReply("fine")) as harness:
        reply = await harness.ask(provider)
        assert (reply.text, harness.text) == ("4", "4")
        assert "".join(d.text for d in harness.deltas if d.kind == "reasoning") == "two and two"
        assert "two and two" in json.dumps(reply.native)
        turns = (PromptMessage("user", "hi"), PromptMessage("assistant", "4", native=reply.native))
        await harness.ask(provider, "And?", messages=turns)
        assert "two and two" not in json.dumps(harness.llm.requests[-1].body)


THOUGHTS: dict[str, dict[str, Any]] = {
    "reasoning_content": {"reasoning_content": "two and two"},
    "reasoning": {"reasoning": "two and two"},
    "thinking": {"thinking": "two and two"},
    "reasoning_details": {"reasoning_details": [{"type": "reasoning.text", "text": "two and two"}]},
    "parts of the content": {
        "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "two and two"}]}]
    },
    "a part with text": {"content": [{"type": "thinking", "thinking": "two and two"}]},
}


@CHAT
async def test_reasoning_in_fields_of_any_name_is_streamed_as_such(provider: str) -> None:
    async with model_client_harness() as harness:
        for form, delta in THOUGHTS.items():
            harness.llm.add(chat(chunk(delta), chunk({"content": "4"}), chunk({}, "stop")))
            assert (await harness.ask(provider)).text == "4" == harness.text, form
            thought = "".join(each.text for each in harness.deltas if each.kind == "reasoning")
            assert thought == "two and two", form


@CHAT
async def test_call_of_a_function_in_the_old_field_is_a_call(provider: str) -> None:
    pieces = [{"name": "look", "arguments": '{"city":'}, {"arguments": '"Oslo"}'}]
    sent = [chunk({"function_call": piece}) for piece in pieces]
    step = chat(*sent, chunk({}, "function_call", usage=USAGE))
    async with model_client_harness(step) as harness:
        reply = await harness.ask(provider, tools=TOOLS)
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("look", OSLO)]


@EVERY
async def test_lone_closing_tag_is_learned_for_the_model(provider: str) -> None:
    step = TextReply("two and two\n</think>\n\n4", chunks=99)
    async with model_client_harness(step, step, TextReply("no thought")) as harness:
        assert (await harness.ask(provider)).text == "4"
        assert "discarded" in {delta.kind for delta in harness.deltas}
        assert (await harness.ask(provider)).text == "4" == harness.text
        assert "discarded" not in {delta.kind for delta in harness.deltas}
        assert (await harness.ask(provider)).text == "no thought" == harness.text


# -- system messages between turns ------------------------------------------------------------


@EVERY
async def test_system_message_between_turns_keeps_its_place_where_it_may(provider: str) -> None:
    turns = (
        PromptMessage("user", "One."),
        PromptMessage("assistant", "Two."),
        PromptMessage("system", "Be brief."),
    )
    async with model_client_harness(TextReply("fine")) as harness:
        await harness.ask(provider, "Three.", system="First.", messages=turns)
        sent = harness.llm.requests[0].body
    if provider == "anthropic":
        assert "First.\n\nBe brief." in json.dumps(sent["system"]).replace("\\n", "\n")
        return
    roles = [turn["role"] for turn in sent["messages"]]
    assert roles == ["system", "user", "assistant", "system", "user"]
