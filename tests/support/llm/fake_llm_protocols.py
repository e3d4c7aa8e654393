"""How the fake model server words its answers: OpenAI chat and responses, Anthropic messages.

Pure: a reply in, event-stream pieces or a JSON body out. ``llm_server.py`` does the sending.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

LlmProtocol = Literal["chat", "responses", "anthropic"]
_CALL_IDS = re.compile(r'"(?:tool_call_id|tool_use_id)": |"type": "function_call_output"')
"""What each result of a tool in a request has once."""
SIGNATURE = "signed-by-the-provider"
"""What proves that reasoning is a provider's own; without it, reasoning is not taken back."""
ANTHROPIC_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class Called(NamedTuple):
    """A call of a tool as it is sent; the arguments are JSON text, what is None is left out."""

    name: str | None
    arguments: str
    id: str | None


ScriptedCall = tuple[str | None, Mapping[str, Any] | str] | tuple[str | None, Any, str | None]
"""``(name, arguments)`` or ``(name, arguments, id)``.

Arguments that are a text are sent as they are. Without an id, the calls of a conversation are
numbered: ``call_1``, ``call_2`` …; the id None sends none.
"""


@dataclass
class ReplyContent:
    """What to say: the part of a step that concerns content, not transport."""

    text: str | None = "ok"
    chunks: int = 1
    finish: str | None = "stop"
    """``stop``, ``length``, ``content_filter``, ``refusal``; None leaves the reason out."""
    usage: tuple[int, int] | None = (11, 7)
    cached: tuple[int, int] = (0, 0)
    """Tokens of the prompt that were read from the cache, and written to it."""
    refusal: str | None = None
    reasoning: str | None = None
    end_marker: bool = True
    """Send ``[DONE]`` / ``message_stop`` at the end."""
    empty_choices: bool = False
    calls: Sequence[ScriptedCall] = ()
    """The tools to call after the text, in this order."""
    sources: Sequence[tuple[str, str]] = ()
    """``(url, title)`` of the pages that the text cites, after a search of the web."""
    extra: dict[str, Any] = field(default_factory=dict)


def stream_chunks(shape: LlmProtocol, content: ReplyContent, body: dict[str, Any]) -> list[bytes]:
    """Give the event stream of a reply; the first ``say.chunks`` text deltas are one piece each."""
    is_forced = _insists_on_tool(body) and not content.calls
    tool = reply_tool(body) if is_forced else None
    match shape:
        case "chat":
            return _chat_stream(content, body, tool)
        case "responses":
            return _responses_stream(content, body)
        case "anthropic":
            return _anthropic_stream(content, body, tool)


def response_body(
    shape: LlmProtocol, content: ReplyContent, body: dict[str, Any]
) -> dict[str, Any]:
    """Give the JSON body of a reply that was not asked to stream."""
    model = body.get("model", "m")
    taken, given = content.usage or (0, 0)
    calls = _calls_of(content, body)
    if shape == "responses":
        return _responses_object(content, body, _responses_items(content, calls))
    if shape == "anthropic":
        blocks = [block for block, _ in _anthropic_blocks(content, None, calls, is_whole=True)]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": blocks,
            "stop_reason": ANTHROPIC_STOP_REASONS.get(_finish_of(content), content.finish),
            "stop_sequence": None,
            "usage": {"input_tokens": taken, "output_tokens": given},
        }
    message = {"role": "assistant", "content": content.text, "refusal": content.refusal}
    if calls:
        message["tool_calls"] = [_chat_call(call) for call in calls]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": _finish_of(content)}],
        "usage": {
            "prompt_tokens": taken,
            "completion_tokens": given,
            "total_tokens": taken + given,
        },
    }


def _finish_of(content: ReplyContent, *, calls: bool = False) -> str:
    """Give the finish reason, in the words of OpenAI chat; empty for none."""
    is_call = content.finish == "stop" and (calls or bool(content.calls))
    return "tool_calls" if is_call else content.finish or ""


def _calls_of(content: ReplyContent, body: dict[str, Any]) -> list[Called]:
    """Give the calls with their ids, which count on from the calls that the request holds."""
    number = len(_CALL_IDS.findall(json.dumps(body)))
    calls: list[Called] = []
    for name, arguments, *given in content.calls:
        number += 1
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls.append(Called(name, text, given[0] if given else f"call_{number}"))
    return calls


def error_body(shape: LlmProtocol, kind: str, message: str) -> dict[str, Any]:
    """Give the JSON of an error answer in the provider's own shape."""
    if shape == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}}
    return {"error": {"message": message, "type": kind, "code": kind, "param": None}}


def error_event(shape: LlmProtocol, kind: str, message: str) -> bytes:
    """Give an error inside a stream that began with 200."""
    if shape == "anthropic":
        return _event(error_body(shape, kind, message), "error")
    return _event(error_body(shape, kind, message))


def split_text(text: str, parts: int) -> list[str]:
    """Cut a text into so many pieces, none of them empty where the text is long enough."""
    size = max(1, -(-len(text) // max(1, parts)))
    return [text[i : i + size] for i in range(0, len(text), size)]


def _event(data: Any, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    text = json.dumps(data, ensure_ascii=False)
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = json.dumps(data)  # half a character can only be escaped
    return f"{head}data: {text}\n\n".encode()


def offered_tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the tools of a request, whatever its protocol; one of the provider's own has no schema."""
    return [tool.get("function", tool) for tool in body.get("tools") or []]


def reply_tool(body: dict[str, Any]) -> str | None:
    """Name the tool by which a request asks for JSON: planwave's, or one that it insists on."""
    tools = [tool for tool in offered_tools(body) if "parameters" in tool or "input_schema" in tool]
    own = [tool["name"] for tool in tools if tool.get("description") == "Give the reply."]
    return own[-1] if own else tools[-1]["name"] if tools and _insists_on_tool(body) else None


def _insists_on_tool(body: dict[str, Any]) -> bool:
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    return kind in ("any", "tool", "required", "function")


def _chat_stream(say: ReplyContent, body: dict[str, Any], tool: str | None) -> list[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return _event(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": body.get("model", "m"),
                "choices": [] if say.empty_choices else choices,
                **say.extra,
                **more,
            }
        )

    sent = [chunk({"role": "assistant", "content": None})]
    if say.reasoning:
        sent.append(chunk({"reasoning_content": say.reasoning}))
    parts = split_text(say.text or "", say.chunks)
    if tool is None:
        sent += [chunk({"content": part}) for part in parts]
    else:
        sent += [chunk(delta) for delta in _chat_tool(0, Called(tool, "", "call_1"), parts)]
    for index, call in enumerate(_calls_of(say, body)):
        sent += [
            chunk(delta) for delta in _chat_tool(index, call, split_text(call.arguments, 2) or [""])
        ]
    if say.refusal:
        sent.append(chunk({"refusal": say.refusal}))
    if say.finish:
        sent.append(chunk({}, _finish_of(say, calls=bool(tool))))
    if say.usage:
        taken, given = say.usage
        usage = {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}
        if any(say.cached):
            read, written = say.cached
            usage["prompt_tokens_details"] = {"cached_tokens": read, "cache_write_tokens": written}
        sent.append(chunk({}, usage=usage, choices=[]))
    if say.end_marker:
        sent.append(b"data: [DONE]\n\n")
    return sent


def _chat_tool(index: int, call: Called, parts: list[str]) -> list[dict[str, Any]]:
    """Give the deltas of a tool call whose arguments come in these parts; none without a part."""
    pieces: list[dict[str, Any]] = [
        {"index": index, "function": {"arguments": part}} for part in parts
    ]
    for first in pieces[:1]:
        first |= _chat_call(call._replace(arguments=parts[0]))
    return [{"tool_calls": [piece]} for piece in pieces]


def _chat_call(call: Called) -> dict[str, Any]:
    called = {"arguments": call.arguments} | ({} if call.name is None else {"name": call.name})
    identity = {} if call.id is None else {"id": call.id}
    return {"type": "function", "function": called, **identity}


def _responses_object(
    say: ReplyContent, body: dict[str, Any], items: list[dict[str, Any]]
) -> dict[str, Any]:
    taken, given = say.usage or (0, 0)
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": body.get("model", "m"),
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed" if say.finish == "stop" else "incomplete",
        "incomplete_details": None if say.finish == "stop" else {"reason": "max_output_tokens"},
        "usage": {
            "input_tokens": taken,
            "output_tokens": given,
            "total_tokens": taken + given,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _responses_items(say: ReplyContent, calls: list[Called]) -> list[dict[str, Any]]:
    """Give the output of a response: reasoning, search, message, calls."""
    items: list[dict[str, Any]] = []
    if say.reasoning:
        summary = [{"type": "summary_text", "text": say.reasoning}]
        items.append(
            {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": SIGNATURE}
        )
    if say.sources:
        action = {"type": "search", "query": "news", "queries": ["news"]}
        items.append(
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action}
        )
    if say.text or not calls:
        end = len(say.text or "")
        annotations = [
            {"type": "url_citation", "url": url, "title": title, "start_index": 0, "end_index": end}
            for url, title in say.sources
        ]
        text = {"type": "output_text", "text": say.text or "", "annotations": annotations}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**message, "content": [text]})
    for number, call in enumerate(calls, 1):
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        items.append({name: value for name, value in item.items() if value is not None})
    return items


def _responses_stream(say: ReplyContent, body: dict[str, Any]) -> list[bytes]:
    items = _responses_items(say, _calls_of(say, body))
    response = _responses_object(say, body, items)
    events: list[dict[str, Any]] = [
        {
            "type": "response.created",
            "response": {**response, "output": [], "status": "in_progress"},
        }
    ]
    for index, item in enumerate(items):
        events += _responses_item_events(say, item, {"item_id": item["id"], "output_index": index})
    if say.finish:
        ended = "completed" if say.finish == "stop" else "incomplete"
        events.append({"type": f"response.{ended}", "response": response})
    return [
        _event({**event, "sequence_number": number}, event["type"])
        for number, event in enumerate(events)
    ]


def _responses_item_events(
    say: ReplyContent, item: dict[str, Any], at: dict[str, Any]
) -> list[dict[str, Any]]:
    """Give the events that stream one item of a response."""
    index = {"output_index": at["output_index"]}
    events: list[dict[str, Any]] = []
    match item["type"]:
        case "message":
            (content,) = item["content"]
            begun = {**item, "content": []}
            place = {**at, "content_index": 0}
            empty = {**content, "text": "", "annotations": []}
            events.append({"type": "response.content_part.added", "part": empty, **place})
            for part in split_text(content["text"], say.chunks):
                delta = {"type": "response.output_text.delta", "delta": part, "logprobs": []}
                events.append({**delta, **place})
            for number, each in enumerate(content["annotations"]):
                kind = "response.output_text.annotation.added"
                events.append(
                    {"type": kind, "annotation": each, "annotation_index": number, **place}
                )
            done = {"type": "response.output_text.done", "text": content["text"], "logprobs": []}
            ended = {"type": "response.content_part.done", "part": content}
            events += [{**done, **place}, {**ended, **place}]
        case "reasoning":
            begun = {**item, "summary": [], "encrypted_content": None}
            place = {**at, "summary_index": 0}
            empty = {"type": "summary_text", "text": ""}
            events.append({"type": "response.reasoning_summary_part.added", "part": empty, **place})
            delta = {"type": "response.reasoning_summary_text.delta", **place}
            events += [
                {**delta, "delta": part} for part in split_text(item["summary"][0]["text"], 2)
            ]
        case "function_call":
            begun = {**item, "arguments": ""}
            delta = {"type": "response.function_call_arguments.delta", **at}
            events += [{**delta, "delta": part} for part in split_text(item["arguments"], 2)]
        case _:
            begun = {**item, "status": "in_progress"}
    return [
        {"type": "response.output_item.added", "item": begun, **index},
        *events,
        {"type": "response.output_item.done", "item": item, **index},
    ]


def _anthropic_stream(say: ReplyContent, body: dict[str, Any], tool: str | None) -> list[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return _event({"type": kind, **fields}, kind)

    taken, given = say.usage or (0, 0)
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "m"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**_anthropic_input(taken, say.cached), "output_tokens": 0},
    }
    sent = [event("message_start", message=message)]
    blocks = [] if say.empty_choices else _anthropic_blocks(say, tool, _calls_of(say, body))
    for index, (block, deltas) in enumerate(blocks):
        sent.append(event("content_block_start", index=index, content_block=block))
        sent += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        sent.append(event("content_block_stop", index=index))
    reason = "refusal" if say.refusal else _finish_of(say, calls=bool(tool))
    if reason:
        delta = {"stop_reason": ANTHROPIC_STOP_REASONS.get(reason, reason), "stop_sequence": None}
        sent.append(event("message_delta", delta=delta, usage={"output_tokens": given}))
    if say.end_marker:
        sent.append(event("message_stop"))
    return sent


def _anthropic_input(taken: int, cached: tuple[int, int]) -> dict[str, int]:
    """Give the counts of a prompt: ``input_tokens`` are those beside the cache."""
    if not any(cached):
        return {"input_tokens": taken}
    read, written = cached
    return {
        "input_tokens": taken - read - written,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }


def _anthropic_blocks(
    say: ReplyContent, tool: str | None, calls: list[Called], *, is_whole: bool = False
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Give the content blocks, each with the deltas that follow its beginning; whole ones have none."""
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if say.reasoning:
        thoughts = [
            {"type": "thinking_delta", "thinking": part} for part in split_text(say.reasoning, 2)
        ]
        signed = {"type": "signature_delta", "signature": SIGNATURE}
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]))
    if say.sources:
        blocks += _anthropic_search(say.sources)
    parts = split_text(say.text or "", say.chunks)
    if tool is not None:
        blocks.append(_anthropic_call(Called(tool, "", "toolu_1"), parts))
    elif say.text or not calls:
        texts = [{"type": "text_delta", "text": part} for part in parts]
        cited = [{"type": "citations_delta", "citation": _citation(*each)} for each in say.sources]
        blocks.append(({"type": "text", "text": ""}, [*cited, *texts]))
    blocks += [_anthropic_call(call, split_text(call.arguments, 2)) for call in calls]
    return [(_whole_block(*each), []) for each in blocks] if is_whole else blocks


def _anthropic_call(call: Called, parts: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
    begun = {name: value for name, value in block.items() if value is not None}
    return begun, [{"type": "input_json_delta", "partial_json": part} for part in parts]


def _anthropic_search(
    sources: Sequence[tuple[str, str]],
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Give a search of the web and what it found."""
    found = [
        {
            "type": "web_search_result",
            "url": url,
            "title": title,
            "encrypted_content": "sealed",
            "page_age": None,
        }
        for url, title in sources
    ]
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found}
    query = {"type": "input_json_delta", "partial_json": '{"query": "news"}'}
    return [(search, [query]), (result, [])]


def _citation(url: str, title: str) -> dict[str, Any]:
    kind = "web_search_result_location"
    about = {"type": kind, "url": url, "title": title}
    return {**about, "cited_text": "so it is", "encrypted_index": "sealed"}


def _whole_block(block: dict[str, Any], deltas: list[dict[str, Any]]) -> dict[str, Any]:
    """Give a content block with what its deltas add."""
    whole = dict(block)
    for name in ("text", "thinking", "signature"):
        whole[name] = "".join(delta.get(name, "") for delta in deltas) or whole.get(name)
    inputs = "".join(delta.get("partial_json", "") for delta in deltas)
    if inputs:
        whole["input"] = json.loads(inputs)
    return {name: value for name, value in whole.items() if value is not None}
