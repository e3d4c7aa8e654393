"""Answers as objects of the responses API: one response, or its events.

The order of the events is the one that the stream helper of OpenAI's own client needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from planwave.events.chat_chunks import AnswerHead
from planwave.events.stream.parts import End, RequestedCall, Retraction, Text
from planwave.events.usage import UsageTotal
from planwave.interop.openai.answer import Answer, AnswerPart
from planwave.interop.openai.chat_format import finish_reason
from planwave.interop.openai.errors import parts_of
from planwave.jsonio import dumps_trusted

if TYPE_CHECKING:
    from planwave.shapes.openai import ResponsesResponse

_INCOMPLETE: Final = {"reason": "max_output_tokens"}
_CODE: Final = "server_error"
"""The one code of a failed response that clients know and that fits."""


_Status: TypeAlias = Literal["completed", "failed", "in_progress", "incomplete"]


class ResponseObject:
    """Makes the ``response`` object of one answer, in each of its states.

    Args:
        head: What identifies the answer.
        instructions: Of the request, which the object repeats.
        metadata: Of the request, too.
    """

    def __init__(
        self, head: AnswerHead, instructions: str | None, metadata: Mapping[str, Any] | None
    ) -> None:
        self._head = head
        self._instructions, self._metadata = instructions, dict(metadata or {})

    @property
    def suffix(self) -> str:
        """What the ids of the response and of its items end with."""
        return self._head.execution_id.replace("-", "")

    def as_json(
        self,
        status: _Status,
        output: list[dict[str, Any]],
        end: End | None = None,
    ) -> ResponsesResponse:
        """Return the object; ``end`` where it has come."""
        failure = None if end is None else end.error
        return {
            "id": f"resp_{self.suffix}",
            "object": "response",
            "created_at": self._head.created,
            "status": status,
            "model": self._head.model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None if failure is None else _error(failure),
            "incomplete_details": _INCOMPLETE if status == "incomplete" else None,
            "instructions": self._instructions,
            "metadata": self._metadata,
            "usage": None if end is None else _usage(end.usage),
        }

    def whole(self, answer: Answer) -> ResponsesResponse:
        """Return a whole answer."""
        output: list[dict[str, Any]] = []
        status = _status(answer.end)
        if answer.reasoning:
            output.append(self.reasoning_item(answer.reasoning))
        if answer.text or not answer.end.calls:
            output.append(self.message_item(status, answer.text))
        output.extend(self.call_item(call) for call in answer.end.calls)
        return self.as_json(status, output, answer.end)

    def reasoning_item(self, text: str | None) -> dict[str, Any]:
        """Return the item with the reasoning; None before it comes."""
        summary = [] if text is None else [{"type": "summary_text", "text": text}]
        return {"id": f"rs_{self.suffix}", "type": "reasoning", "summary": summary}

    def message_item(self, status: str, text: str | None) -> dict[str, Any]:
        """Return the item with the text; None before it comes."""
        return {
            "id": f"msg_{self.suffix}",
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [] if text is None else [text_part(text)],
        }

    def call_item(self, call: RequestedCall, arguments: str | None = None) -> dict[str, Any]:
        """Return the item of a call; ``arguments`` in place of its own."""
        return {
            "id": f"fc_{call.id}",
            "type": "function_call",
            "status": "completed" if arguments is None else "in_progress",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments if arguments is None else arguments,
        }


def _status(end: End) -> _Status:
    return "incomplete" if finish_reason(end) == "length" else "completed"


class ResponseEvents:
    """Converts the parts of an answer to the server-sent events of a response.

    Text that was sent cannot be taken back: an attempt that fails after it has streamed leaves its text
    before that of the next one, and so does a step that a change of the plan drops, or lets another one read.
    """

    def __init__(self, response: ResponseObject) -> None:
        self._response = response
        self._number = 0
        self._output: list[dict[str, Any]] = []
        self._open: str | None = None
        self._text = ""

    def begin(self) -> bytes:
        """Return the first events."""
        response = self._response.as_json("in_progress", [])
        return self._event("created", response=response) + self._event(
            "in_progress", response=response
        )

    def encode(self, part: AnswerPart) -> bytes:
        """Return the events of a part."""
        match part:
            case Retraction() | Text(is_again=True):
                return b""
            case Text(kind, text):
                return self._delta(kind, text)
            case End():
                return self._end(part) if part.error is None else self.fail(part.error)

    def fail(self, failure: Mapping[str, Any]) -> bytes:
        """Return the event that ends a stream with an error."""
        end = End(error=failure)
        return self._event("failed", response=self._response.as_json("failed", self._output, end))

    def _delta(self, kind: str, text: str) -> bytes:
        opening = b""
        if self._open != kind:
            opening = self._close() + self._begin_item(kind)
        self._text += text
        if kind == "reasoning":
            place = self._summary_place()
            return opening + self._event("reasoning_summary_text.delta", **place, delta=text)
        place = self._text_place()
        return opening + self._event("output_text.delta", **place, delta=text, logprobs=[])

    def _begin_item(self, kind: str) -> bytes:
        self._open, self._text = kind, ""
        if kind == "reasoning":
            item = self._response.reasoning_item(None)
            part = {"type": "summary_text", "text": ""}
            return self._added(item) + self._event(
                "reasoning_summary_part.added", **self._summary_place(), part=part
            )
        item = self._response.message_item("in_progress", None)
        return self._added(item) + self._event(
            "content_part.added", **self._text_place(), part=text_part("")
        )

    def _close(self) -> bytes:
        """Return the events that end the item that is open."""
        kind, text = self._open, self._text
        self._open = None
        if kind is None:
            return b""
        if kind == "reasoning":
            place, part = self._summary_place(), {"type": "summary_text", "text": text}
            closing = self._event("reasoning_summary_text.done", **place, text=text) + self._event(
                "reasoning_summary_part.done", **place, part=part
            )
            return closing + self._done(self._response.reasoning_item(text))
        place = self._text_place()
        closing = self._event("output_text.done", **place, text=text, logprobs=[]) + self._event(
            "content_part.done", **place, part=text_part(text)
        )
        return closing + self._done(self._response.message_item("completed", text))

    def _end(self, end: End) -> bytes:
        events = self._close()
        if not end.calls and not any(item["type"] == "message" for item in self._output):
            events += self._begin_item("text") + self._close()
        for call in end.calls:
            events += self._call(call)
        status = _status(end)
        return events + self._event(
            status, response=self._response.as_json(status, self._output, end)
        )

    def _call(self, call: RequestedCall) -> bytes:
        place = {"item_id": f"fc_{call.id}", "output_index": len(self._output)}
        kind = "function_call_arguments"
        return (
            self._added(self._response.call_item(call, arguments=""))
            + self._event(f"{kind}.delta", **place, delta=call.arguments)
            + self._event(f"{kind}.done", **place, arguments=call.arguments, name=call.name)
            + self._done(self._response.call_item(call))
        )

    def _added(self, item: dict[str, Any]) -> bytes:
        return self._event("output_item.added", output_index=len(self._output), item=item)

    def _done(self, item: dict[str, Any]) -> bytes:
        event = self._event("output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        return event

    def _text_place(self) -> dict[str, Any]:
        item_id = f"msg_{self._response.suffix}"
        return {"item_id": item_id, "output_index": len(self._output), "content_index": 0}

    def _summary_place(self) -> dict[str, Any]:
        item_id = f"rs_{self._response.suffix}"
        return {"item_id": item_id, "output_index": len(self._output), "summary_index": 0}

    def _event(self, kind: str, **fields: Any) -> bytes:
        name = f"response.{kind}"
        data = {"type": name, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: %s\ndata: %s\n\n" % (name.encode(), dumps_trusted(data))


def text_part(text: str) -> dict[str, Any]:
    """Return a part of a message."""
    return {"type": "output_text", "text": text, "annotations": []}


def _error(failure: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": _CODE, "message": failure["message"], **parts_of(failure)}


def _usage(total: UsageTotal) -> dict[str, Any]:
    return {
        "input_tokens": total.input_tokens,
        "input_tokens_details": {"cached_tokens": total.cache_read_tokens},
        "output_tokens": total.output_tokens,
        "output_tokens_details": {"reasoning_tokens": total.reasoning_tokens},
        "total_tokens": total.input_tokens + total.output_tokens,
    }
