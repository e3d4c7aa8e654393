"""Answers as objects of chat completions: one completion, or chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from planwave.interop.openai.answer import (
    Answer,
    AnswerEnd,
    AnswerPart,
    RequestedCall,
    Retraction,
    TextPiece,
)
from planwave.interop.openai.errors import failure_body
from planwave.jsonio import dumps_trusted

_DONE = b"data: [DONE]\n\n"


class AnswerHead(NamedTuple):
    """What all objects of one answer share.

    Attributes:
        execution_id: The execution that answers.
        created: Seconds since the epoch.
        model: The model that the client named.
    """

    execution_id: str
    created: int
    model: str


def chat_completion(head: AnswerHead, answer: Answer) -> dict[str, Any]:
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
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": answer.end.finish_reason,
    }
    return {
        "id": f"chatcmpl-{head.execution_id}",
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": [choice],
        "usage": answer.end.usage,
    }


class ChatChunks:
    """Converts the parts of an answer to server-sent ``chat.completion.chunk`` objects.

    Text that was sent cannot be taken back: an attempt that fails after it has streamed leaves its text
    before that of the next one.

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
            case TextPiece("text", text):
                return self._chunk({"content": text})
            case TextPiece(_, text):
                return self._chunk({"reasoning_content": text})
            case Retraction():
                return b""
            case AnswerEnd():
                return (
                    b"".join(self._end(part)) if part.failure is None else self.fail(part.failure)
                )

    def fail(self, failure: dict[str, Any]) -> bytes:
        """Return the chunk that ends a stream with an error."""
        return _event(failure_body(failure))

    def _end(self, end: AnswerEnd) -> Iterator[bytes]:
        for index, call in enumerate(end.calls):
            opened = _call_json(call._replace(arguments=""))
            yield self._chunk({"tool_calls": [{"index": index, **opened}]})
            function = {"arguments": call.arguments}
            yield self._chunk({"tool_calls": [{"index": index, "function": function}]})
        yield self._chunk({}, end.finish_reason)
        if self._includes_usage:
            yield _event({**self._fields(), "choices": [], "usage": end.usage})
        yield _DONE

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk: dict[str, Any] = {**self._fields(), "choices": [choice]}
        if self._includes_usage:
            chunk["usage"] = None
        return _event(chunk)

    def _fields(self) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self._head.execution_id}",
            "object": "chat.completion.chunk",
            "created": self._head.created,
            "model": self._head.model,
        }


def _call_json(call: RequestedCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _event(data: dict[str, Any] | Sequence[Any]) -> bytes:
    return b"data: %s\n\n" % dumps_trusted(data)
