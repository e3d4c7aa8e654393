"""An execution as one answer: the parts that a client of the OpenAI API gets, up to a stop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from planwave.events import Event
from planwave.events.stream.parts import End, PartReader, Retraction, Status, Text

AnswerPart = Text | Retraction | End


async def answer_parts(
    events: AsyncIterable[Event], stops: Sequence[str] = ()
) -> AsyncGenerator[AnswerPart]:
    """Yield the parts of the answer that an execution gives; the last one is an ``End``.

    Args:
        events: All events of the execution from the first.
        stops: Texts before which the answer ends; the execution runs on to its end.
    """
    reader, stopping = PartReader(), StopTexts(stops)
    async for event in events:
        for read in reader.read(event):
            if isinstance(read, Status):
                continue
            for part in stopping.apply(read):
                yield part
                if isinstance(part, End):
                    return


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    text: str
    reasoning: str
    end: End


async def whole_answer(parts: AsyncGenerator[AnswerPart]) -> Answer:
    """Return an answer when it is complete."""
    text, reasoning = "", ""
    async with aclosing(parts) as following:
        async for part in following:
            match part:
                case Text("text", piece):
                    text += piece
                case Text(_, piece):
                    reasoning += piece
                case Retraction(chars):
                    text = text[:-chars]
                case End():
                    return Answer(text, reasoning, part)
    return Answer(text, reasoning, End(error={"message": "the execution has no end", "code": None}))


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

    def apply(self, part: AnswerPart) -> Iterator[AnswerPart]:
        """Yield what a part of the whole text is of the text up to the stop."""
        match part:
            case Text("text", text):
                if passed := self.push(text):
                    yield part._replace(text=passed)
            case Text(_, text):
                if text:
                    yield part
            case Retraction(chars, about):
                if passed := self.retract(chars):
                    yield Retraction(passed, about)
            case End():
                if held := self.flush():
                    yield Text("text", held, part.about)
                yield part

    def push(self, text: str) -> str:
        """Return what is certain to come before every stop."""
        if not self._stops:
            return text
        if self._has_stopped:
            self._dropped += len(text)
            return ""
        whole = self._held + text
        positions = [at for stop in self._stops if (at := whole.find(stop)) >= 0]
        if positions:
            first = min(positions)
            self._has_stopped, self._held = True, whole[first:]
            return whole[:first]
        overlap = next(
            (
                size
                for size in range(min(self._longest - 1, len(whole)), 0, -1)
                if any(stop.startswith(whole[-size:]) for stop in self._stops)
            ),
            0,
        )
        cut = len(whole) - overlap
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
