"""Answers as objects of chat completions: one completion, or chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from planwave.events.chat_chunks import DELTA_FIELDS, AnswerHead, token_usage
from planwave.events.stream.parts import End, RequestedCall, Retraction, Text
from planwave.interop.openai.answer import Answer, AnswerPart
from planwave.interop.openai.errors import failure_body
from planwave.jsonio import dumps_trusted

if TYPE_CHECKING:
    from planwave.shapes.openai import ChatCompletionResponse

_DONE = b"data: [DONE]\n\n"


def chat_completion(head: AnswerHead, answer: Answer) -> ChatCompletionResponse:
    """Return a whole answer as a ``chat.completion``."""
    calls = answer.end.calls
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text if answer.text or not calls else None,
        "refusal": None,
    }
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if calls:
        message["tool_calls"] = [_call_json(call) for call in calls]
    choice = {"message": message, "logprobs": None, "finish_reason": finish_reason(answer.end)}
    whole = {**head.completion("chat.completion", choice), "usage": token_usage(answer.end.usage)}
    return cast("ChatCompletionResponse", whole)


class ChatChunks:
    """Converts the parts of an answer to server-sent ``chat.completion.chunk`` objects.

    Text that was sent cannot be taken back: an attempt that fails after it has streamed leaves its text
    before that of the next one, and so does a step that a change of the plan drops, or lets another one read.

    Args:
        head: What the chunks share.
        includes_usage: Whether the client wants the tokens, in a chunk of their own.
    """

    def __init__(self, head: AnswerHead, *, includes_usage: bool) -> None:
        self._head = head
        self._includes_usage = includes_usage

    def begin(self) -> bytes:
        """Return the first chunk."""
        return self._chunk({"role": "assistant", "content": ""})

    def encode(self, part: AnswerPart) -> bytes:
        """Return the chunks of a part."""
        match part:
            case Retraction() | Text(is_again=True):
                return b""
            case Text(kind, text):
                return self._chunk({DELTA_FIELDS[kind]: text})
            case End():
                return b"".join(self._end(part)) if part.error is None else self.fail(part.error)

    def fail(self, failure: Mapping[str, Any]) -> bytes:
        """Return the chunk that ends a stream with an error."""
        return _event(failure_body(failure))

    def _end(self, end: End) -> Iterator[bytes]:
        for index, call in enumerate(end.calls):
            opened = _call_json(call._replace(arguments=""))
            yield self._chunk({"tool_calls": [{"index": index, **opened}]})
            function = {"arguments": call.arguments}
            yield self._chunk({"tool_calls": [{"index": index, "function": function}]})
        yield self._chunk({}, finish_reason(end))
        if self._includes_usage:
            yield _event({**self._head.chunk({}), "choices": [], "usage": token_usage(end.usage)})
        yield _DONE

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        chunk = self._head.chunk(delta, finish)
        if self._includes_usage:
            chunk["usage"] = None
        return _event(chunk)


def finish_reason(end: End) -> str:
    """Return why an answer ends."""
    if end.calls:
        return "tool_calls"
    return "length" if end.is_cut else "stop"


def _call_json(call: RequestedCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _event(data: dict[str, Any] | Sequence[Any]) -> bytes:
    return b"data: %s\n\n" % dumps_trusted(data)
