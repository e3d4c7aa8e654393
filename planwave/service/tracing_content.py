"""What was said, as attributes of spans: messages, tools, arguments and results as JSON text.

The shapes are those of OpenTelemetry's GenAI conventions (``gen_ai.input.messages`` and its relatives),
which tools such as Phoenix and Langfuse read. Each value is at most 64 kB and without secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from planwave.errors import GraphInvalid
from planwave.graph.model import Json
from planwave.graph.reading.strict_json import parse_strict_json
from planwave.jsonio import dumps_exact
from planwave.providers.protocols import ModelReply, ModelRequest, PromptMessage, ToolCall
from planwave.redaction import Redactor

MAX_BYTES: Final = 65_536
"""Size of one attribute; collectors refuse or cut larger ones, which would leave broken JSON."""
_LEAST_CHARS: Final = 64
"""Texts are never cut to fewer characters; what is too large then is left out from its beginning."""


class SpanContent:
    """Makes the attributes that hold text.

    Args:
        redactor: Withholds secrets.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def of_request(self, request: ModelRequest) -> dict[str, str]:
        """Return what a model is asked: instructions, messages and tools."""
        messages = [*request.messages]
        if request.prompt:
            messages.append(PromptMessage("user", request.prompt))
        attributes = {"gen_ai.input.messages": self.text([_message(each) for each in messages])}
        if request.system:
            system = [{"type": "text", "content": request.system}]
            attributes["gen_ai.system_instructions"] = self.text(system)
        if request.tools:
            tools = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": {**tool.parameters},
                }
                for tool in request.tools
            ]
            attributes["gen_ai.tool.definitions"] = self.text(tools)
        return attributes

    def of_reply(self, reply: ModelReply) -> dict[str, str]:
        """Return what a model replied."""
        message = PromptMessage("assistant", reply.text, tool_calls=reply.tool_calls)
        finished = {**_message(message), "finish_reason": reply.finish_reason}
        return {"gen_ai.output.messages": self.text([finished])}

    def of_goal(self, goal: str) -> dict[str, str]:
        """Return what a planner is asked."""
        return {"gen_ai.input.messages": self.text([_message(PromptMessage("user", goal))])}

    def of_run(self, goal: str, inputs: Mapping[str, Json] | None) -> dict[str, str]:
        """Return what an execution is given: its goal, and its inputs as JSON."""
        given = [goal] if goal else []
        if inputs:
            given.append(dumps_exact(self._redactor.value({**inputs})))
        parts: list[Json] = [{"type": "text", "content": each} for each in given]
        return {"gen_ai.input.messages": self.text([{"role": "user", "parts": parts}])}

    def of_result(self, result: str) -> dict[str, str]:
        """Return what an execution gave, as text."""
        message = _message(PromptMessage("assistant", result))
        return {"gen_ai.output.messages": self.text([{**message, "finish_reason": "stop"}])}

    def text(self, value: Json) -> str:
        """Return JSON as the text of an attribute: without secrets, its texts cut where it is too large."""
        return _within_limit(self._redactor.value(value))


def _message(message: PromptMessage) -> dict[str, Json]:
    parts: list[Json] = []
    if message.role == "tool":
        parts.append(
            {"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}
        )
    elif message.text:
        parts.append({"type": "text", "content": message.text})
    parts += [_image(url) for url in message.images]
    parts += [_call(call) for call in message.tool_calls]
    return {"role": message.role, "parts": parts}


def _image(url: str) -> dict[str, Json]:
    """Return an image by its URL; one in the request itself only by its type, for its bytes are no text."""
    if url.startswith("data:"):
        media_type = url.removeprefix("data:").partition(";")[0]
        return {"type": "blob", "modality": "image", "mime_type": media_type, "content": ""}
    return {"type": "uri", "modality": "image", "uri": url}


def _call(call: ToolCall) -> dict[str, Json]:
    try:
        arguments = parse_strict_json(call.arguments or "{}")
    except GraphInvalid:
        arguments = call.arguments  # no JSON: shown as the model wrote it
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments}


def _within_limit(value: Json) -> str:
    text, chars = dumps_exact(value), MAX_BYTES // 4
    while _size(text) > MAX_BYTES and chars >= _LEAST_CHARS:
        text, chars = dumps_exact(_shortened(value, chars)), chars // 2
    if _size(text) > MAX_BYTES and not isinstance(value, list):
        return dumps_exact(f"{len(dumps_exact(value)):,} bytes left out")
    items = cast("list[Json]", _shortened(value, _LEAST_CHARS)) if _size(text) > MAX_BYTES else []
    while _size(text) > MAX_BYTES:
        items = items[len(items) // 2 + 1 :]  # the last messages tell most
        text = dumps_exact(items)
    return text


def _size(text: str) -> int:
    return len(text.encode())


def _shortened(value: Json, chars: int) -> Json:
    if isinstance(value, str) and len(value) > chars:
        return f"{value[:chars]}… ({len(value) - chars:,} characters left out)"
    if isinstance(value, list):
        return [_shortened(item, chars) for item in cast("Sequence[Json]", value)]
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Json]", value)
        return {key: _shortened(item, chars) for key, item in fields.items()}
    return value
