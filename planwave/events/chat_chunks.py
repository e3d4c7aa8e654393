"""An execution's events as ``chat.completion.chunk`` objects of the OpenAI API.

::

    async for chunk in planwave.chunks(planwave.run(graph)):
        print(chunk["choices"][0]["delta"].get("content") or "", end="")

A client of that API sees one response. ``delta.content`` has the text that no other node reads, and
the messages of nodes to the caller (``node.event`` of the type ``message``).
``delta.reasoning_content`` has the reasoning that belongs to that text. The last chunk has
``finish_reason`` and ``usage``. A client of planwave finds in ``extras`` what each chunk is about
(``events/stream/parts.py``), and as ``discard`` the number of characters to remove from the end of the
content so far.
"""

from __future__ import annotations

from calendar import timegm
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from planwave.events.stream.parts import End, Part, PartReader, Retraction, Status, Text
from planwave.events.types import Event
from planwave.events.usage import UsageTotal
from planwave.graph.model import Graph

DELTA_FIELDS: Final = {"text": "content", "reasoning": "reasoning_content"}
"""Fields of a ``delta``, by the kind of the text."""


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

    def completion(self, kind: str, choice: Mapping[str, Any]) -> dict[str, Any]:
        """Return a ``chat.completion`` or one of its chunks.

        Args:
            kind: Its ``object``.
            choice: What the only choice has besides its index.
        """
        return {
            "id": f"chatcmpl-{self.execution_id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": [{"index": 0, **choice}],
        }

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        """Return a ``chat.completion.chunk``; ``finish`` is the ``finish_reason`` of the last one."""
        choice = {"delta": delta, "logprobs": None, "finish_reason": finish}
        return self.completion("chat.completion.chunk", choice)


async def chunks(
    events: AsyncIterable[Event] | Iterable[Event],
    *,
    graph: Graph | Mapping[str, Any] | None = None,
    visible: Collection[str] | None = None,
    model: str = "planwave",
) -> AsyncGenerator[dict[str, Any]]:
    """Yield the events of one execution as ``chat.completion.chunk`` objects; see this module.

    The last chunk of a completed execution has ``finish_reason: "stop"``. The last chunk of a failed
    or cancelled execution has none, but ``error: {"message", "type", "code", "param"}`` beside
    ``choices``, which the OpenAI SDK raises as an ``APIError``.

    Args:
        events: All events from the first: a ``planwave.Run``, the ``events`` of a client, or
            stored events. Closing the chunks early closes an async generator of events too.
        graph: The graph that is run. Not needed with a ``Run``, nor with events that begin
            with ``execution.created``.
        visible: Ids of the nodes whose text is content; by default, of nodes that no other node reads.
        model: The ``model`` of every chunk.

    Raises:
        InputError: The graph is not known (``no-graph``).
    """
    if graph is None:
        graph = getattr(events, "graph", None)
    encoder = _ChunkEncoder(PartReader(graph, visible), model)
    if isinstance(events, AsyncIterable):
        source = aiter(events)
        try:
            async for event in source:
                for chunk in encoder.encode(event):
                    yield chunk
        finally:
            if isinstance(source, AsyncGenerator):
                await source.aclose()
    else:
        for event in events:
            for chunk in encoder.encode(event):
                yield chunk


class _ChunkEncoder:
    """Converts events to chunks, one event at a time."""

    def __init__(self, parts: PartReader, model: str) -> None:
        self._parts = parts
        self._model = model
        self._head: AnswerHead | None = None

    def encode(self, event: Event) -> Iterator[dict[str, Any]]:
        """Yield the chunks of the next event."""
        role = {"role": "assistant"} if self._head is None else {}
        if self._head is None:
            created = timegm(_time_parts(event.at))
            self._head = AnswerHead(event.execution_id, created, self._model)
        for part in self._parts.read(event):
            yield self._chunk(self._head, part, role)
            role = {}

    @staticmethod
    def _chunk(head: AnswerHead, part: Part, role: Mapping[str, str]) -> dict[str, Any]:
        extras = {**part.about}
        finish: str | None = None
        match part:
            case Text(kind, text):
                delta = {DELTA_FIELDS[kind]: text}
            case Retraction(chars):
                delta, extras["discard"] = {"content": ""}, chars
            case Status():
                delta = {**role, "content": ""}
            case End(error=error):
                delta, finish = {}, "stop" if error is None else None
        chunk = {**head.chunk(delta, finish), "extras": extras}
        if isinstance(part, End):
            chunk["usage"] = token_usage(part.usage)
            if part.error is not None:
                chunk["error"] = part.error
        return chunk


def token_usage(total: UsageTotal) -> dict[str, Any]:
    """Return tokens as the ``usage`` of a chat completion."""
    usage: dict[str, Any] = {
        "prompt_tokens": total.input_tokens,
        "completion_tokens": total.output_tokens,
        "total_tokens": total.input_tokens + total.output_tokens,
        "prompt_tokens_details": {"cached_tokens": total.cache_read_tokens},
    }
    if total.reasoning_tokens:
        usage["completion_tokens_details"] = {"reasoning_tokens": total.reasoning_tokens}
    return usage


def _time_parts(at: str) -> tuple[int, ...]:
    """Return the time of an event, UTC, as numbers from the year to the second."""
    return (*map(int, at[:10].split("-")), *map(int, at[11:19].split(":")))
