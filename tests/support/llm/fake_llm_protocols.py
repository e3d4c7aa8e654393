"""How the fake model server words its answers: OpenAI chat and responses, Anthropic messages.

Pure: a reply in, event-stream pieces or a JSON body out. ``llm_server.py`` does the sending.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

LlmProtocol = Literal["chat", "responses", "anthropic"]
ANTHROPIC_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


@dataclass
class ReplyContent:
    """What to say: the part of a step that concerns content, not transport."""

    text: str | None = "ok"
    chunks: int = 1
    finish: str | None = "stop"
    """``stop``, ``length``, ``content_filter``, ``refusal``; None leaves the reason out."""
    usage: tuple[int, int] | None = (11, 7)
    refusal: str | None = None
    reasoning: str | None = None
    end_marker: bool = True
    """Send ``[DONE]`` / ``message_stop`` at the end."""
    empty_choices: bool = False
    tool_call: tuple[str, str] | None = None
    """A tool nobody asked to be called, and the text of its arguments."""
    extra: dict[str, Any] = field(default_factory=dict)


def stream_chunks(shape: LlmProtocol, content: ReplyContent, body: dict[str, Any]) -> list[bytes]:
    """Give the event stream of a reply; the first ``say.chunks`` text deltas are one piece each."""
    tool = _forced_tool(shape, body)
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
    if shape == "anthropic":
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": content.text or ""}],
            "stop_reason": ANTHROPIC_STOP_REASONS.get(content.finish or "", content.finish),
            "stop_sequence": None,
            "usage": {"input_tokens": taken, "output_tokens": given},
        }
    message = {"role": "assistant", "content": content.text, "refusal": content.refusal}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": content.finish}],
        "usage": {
            "prompt_tokens": taken,
            "completion_tokens": given,
            "total_tokens": taken + given,
        },
    }


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
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _forced_tool(shape: LlmProtocol, body: dict[str, Any]) -> str | None:
    """Name the one tool the request insists on, which is how some clients ask for JSON."""
    tools, choice = body.get("tools") or [], body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if not tools or kind not in ("any", "tool", "required", "function"):
        return None
    first = tools[0]
    return first["name"] if shape == "anthropic" else first["function"]["name"]


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
        sent += [chunk(delta) for delta in _chat_tool(0, tool, parts)]
    if say.tool_call:
        name, arguments = say.tool_call
        sent += [chunk(delta) for delta in _chat_tool(1, name, [arguments])]
    if say.refusal:
        sent.append(chunk({"refusal": say.refusal}))
    if say.finish:
        sent.append(chunk({}, "tool_calls" if tool and say.finish == "stop" else say.finish))
    if say.usage:
        taken, given = say.usage
        usage = {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}
        sent.append(chunk({}, usage=usage, choices=[]))
    if say.end_marker:
        sent.append(b"data: [DONE]\n\n")
    return sent


def _chat_tool(index: int, name: str, parts: list[str]) -> list[dict[str, Any]]:
    """Give the deltas of a tool call whose arguments come in these parts."""
    calls: list[dict[str, Any]] = [
        {"index": index, "function": {"arguments": part}} for part in parts
    ]
    for first in calls[:1]:
        first |= {"id": f"call_{index + 1}", "type": "function"}
        first["function"]["name"] = name
    return [{"tool_calls": [call]} for call in calls]


def _responses_stream(say: ReplyContent, body: dict[str, Any]) -> list[bytes]:
    taken, given = say.usage or (0, 0)
    content = {"type": "output_text", "text": say.text or "", "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": body.get("model", "m"),
        "output": [{**message, "content": [content]}],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed" if say.finish == "stop" else "incomplete",
        "usage": {
            "input_tokens": taken,
            "output_tokens": given,
            "total_tokens": taken + given,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }
    at: dict[str, Any] = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "output": []}}
    ]
    for part in split_text(say.text or "", say.chunks):
        events.append({"type": "response.output_text.delta", "delta": part, "logprobs": [], **at})
    if say.finish:
        events.append({"type": "response.completed", "response": response})
    return [
        _event({**event, "sequence_number": number}, event["type"])
        for number, event in enumerate(events)
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
        "usage": {"input_tokens": taken, "output_tokens": 0},
    }
    sent = [event("message_start", message=message)]
    if tool is None:
        block: dict[str, Any] = {"type": "text", "text": ""}
    else:
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}}
    if not say.empty_choices:
        sent.append(event("content_block_start", index=0, content_block=block))
        for part in split_text(say.text or "", say.chunks):
            delta = (
                {"type": "text_delta", "text": part}
                if tool is None
                else {"type": "input_json_delta", "partial_json": part}
            )
            sent.append(event("content_block_delta", index=0, delta=delta))
        sent.append(event("content_block_stop", index=0))
    if say.tool_call:
        name, arguments = say.tool_call
        called = {"type": "tool_use", "id": "toolu_2", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
        sent.append(event("content_block_start", index=1, content_block=called))
        sent.append(event("content_block_delta", index=1, delta=delta))
        sent.append(event("content_block_stop", index=1))
    reason = "refusal" if say.refusal else say.finish
    if reason:
        stop = (
            "tool_use" if tool and reason == "stop" else ANTHROPIC_STOP_REASONS.get(reason, reason)
        )
        delta = {"stop_reason": stop, "stop_sequence": None}
        sent.append(event("message_delta", delta=delta, usage={"output_tokens": given}))
    if say.end_marker:
        sent.append(event("message_stop"))
    return sent
