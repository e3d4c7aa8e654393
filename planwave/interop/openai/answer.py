"""An execution as one answer: pieces of text and reasoning, calls for the client, an end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from planwave.events import Event
from planwave.events.chat_chunks.encoder import ChunkEncoder
from planwave.events.types import CALLER_TOOL_CALLS, REPLY_CUT

_NO_USAGE: Final[Mapping[str, Any]] = {
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "total_tokens": 0,
    "prompt_tokens_details": {"cached_tokens": 0},
}


class TextPiece(NamedTuple):
    """A piece of the answer, or of the reasoning behind it."""

    kind: Literal["text", "reasoning"]
    text: str


class RequestedCall(NamedTuple):
    """A call that the client is to make; ``arguments`` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """The end of an answer.

    Attributes:
        calls: The calls that the client is to make.
        is_cut: Whether the model reached its limit of tokens before the end of the answer.
        usage: Tokens of the whole execution: ``prompt_tokens``, ``completion_tokens``, ``total_tokens``,
            and ``prompt_tokens_details`` with the ``cached_tokens``.
        failure: ``{"message", "code"}`` of an execution that failed or was cancelled; else None.
    """

    calls: Sequence[RequestedCall] = ()
    is_cut: bool = False
    usage: Mapping[str, Any] = field(default_factory=lambda: dict(_NO_USAGE))
    failure: dict[str, Any] | None = None

    @property
    def finish_reason(self) -> str:
        """Why the answer ends, in OpenAI's words."""
        if self.calls:
            return "tool_calls"
        return "length" if self.is_cut else "stop"


class Retraction(NamedTuple):
    """The last characters of the text so far are void: the attempt that wrote them failed."""

    chars: int


AnswerPart = TextPiece | Retraction | AnswerEnd


async def answer_parts(
    events: AsyncIterable[Event], stops: Sequence[str] = ()
) -> AsyncGenerator[AnswerPart]:
    """Yield the parts of the answer that an execution gives; the last one is an ``AnswerEnd``.

    Args:
        events: All events of the execution from the first.
        stops: Texts before which the answer ends; the execution runs on to its end.
    """
    encoder = ChunkEncoder(None, None, "")
    reader = _ChunkReader(stops)
    async for event in events:
        for chunk in encoder.encode(event):
            for part in reader.read(chunk):
                yield part
                if isinstance(part, AnswerEnd):
                    return


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    text: str
    reasoning: str
    end: AnswerEnd


async def whole_answer(parts: AsyncGenerator[AnswerPart]) -> Answer:
    """Return an answer when it is complete."""
    text, reasoning = "", ""
    async with aclosing(parts) as following:
        async for part in following:
            match part:
                case TextPiece("text", piece):
                    text += piece
                case TextPiece(_, piece):
                    reasoning += piece
                case Retraction(chars):
                    text = text[:-chars]
                case AnswerEnd():
                    return Answer(text, reasoning, part)
    failure = {"message": "the execution has no end", "code": "execution-failed"}
    return Answer(text, reasoning, AnswerEnd(failure=failure))


class _ChunkReader:
    """Reads the chunks of ``events/chat_chunks``."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = StopTexts(stops)
        self._calls: list[RequestedCall] = []
        self._is_cut = False

    def read(self, chunk: dict[str, Any]) -> Iterator[AnswerPart]:
        """Yield the parts in a chunk."""
        extras, (choice,) = chunk["extras"], chunk["choices"]
        emitted = extras.get("event", {})
        if emitted.get("type") == CALLER_TOOL_CALLS and extras["meta"].get("visible"):
            self._calls = [RequestedCall(**call) for call in emitted["data"]["calls"]]
        if extras.get("log", {}).get("kind") == REPLY_CUT and extras["meta"].get("visible"):
            self._is_cut = True
        if lost := extras.get("discard"):
            self._is_cut = False
            yield from self._retract(lost)
        delta = choice["delta"]
        if reasoning := delta.get("reasoning_content"):
            yield TextPiece("reasoning", reasoning)
        if (text := delta.get("content")) and (passed := self._stops.push(text)):
            yield TextPiece("text", passed)
        if "usage" in chunk:
            if held := self._stops.flush():
                yield TextPiece("text", held)
            yield AnswerEnd(
                tuple(self._calls), self._is_cut, chunk["usage"], _failure(chunk.get("error"))
            )

    def _retract(self, chars: int) -> Iterator[Retraction]:
        if passed := self._stops.retract(chars):
            yield Retraction(passed)


class StopTexts:
    """Passes a text on, up to the first of some texts in it, which it may come in pieces."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held: str = ""
        """What may begin a stop, or the piece with the stop that has ended the text."""
        self._dropped = 0
        """Characters that came after that."""
        self._has_stopped = False
        self._longest = max(map(len, stops), default=0)

    def push(self, text: str) -> str:
        """Return what is certain to come before every stop."""
        if not self._stops:
            return text
        if self._has_stopped:
            self._dropped += len(text)
            return ""
        whole = self._held + text
        found = [at for stop in self._stops if (at := whole.find(stop)) >= 0]
        if found:
            first = min(found)
            self._has_stopped, self._held = True, whole[first:]
            return whole[:first]
        kept = next(
            (
                size
                for size in range(min(self._longest - 1, len(whole)), 0, -1)
                if any(stop.startswith(whole[-size:]) for stop in self._stops)
            ),
            0,
        )
        cut = len(whole) - kept
        self._held = whole[cut:]
        return whole[:cut]

    def flush(self) -> str:
        """Return what was held back, at the end of the text."""
        held, self._held = self._held, ""
        return "" if self._has_stopped else held

    def retract(self, chars: int) -> int:
        """Forget the last characters; return how many of these were passed on."""
        dropped = min(chars, self._dropped)
        self._dropped -= dropped
        own = min(chars - dropped, len(self._held))
        self._held = self._held[: len(self._held) - own]
        self._has_stopped = any(stop in self._held for stop in self._stops)
        return chars - dropped - own


def _failure(error: dict[str, Any] | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {"message": error["message"], "code": error["code"] or "execution-failed"}
