"""An execution's events as ``chat.completion.chunk`` objects of the OpenAI API.

::

    async for chunk in planwave.chunks(planwave.run(graph)):
        print(chunk["choices"][0]["delta"].get("content") or "", end="")

A client of that API sees one response. ``delta.content`` has the text that no other node reads, and
the messages of nodes to the caller (``node.event`` of the type ``message``).
``delta.reasoning_content`` has the reasoning that belongs to that text. The last chunk has
``finish_reason`` and ``usage``. When several nodes stream at once, their texts are emitted one after
the other, as paragraphs. A client of planwave finds everything else in ``extras``:

``meta``
    ``{"node_id", "node_type"?, "name"?, "path", "attempt"?, "visible", "status"?}``: which node the
    chunk is about; ``status`` where that has changed. Text of nodes in nested runs is not visible:
    the result of the node that opened the run is. The exception is a graph in the data of an
    ``inner`` node. Type and name are absent where the node's graph is not known.
``delta``
    ``{"kind", "text", "offset"}``: streamed text of a node that is not visible.
``discard``
    Number of characters to remove from the end of the content so far: the attempt that streamed
    them failed, began again, or discarded them (``event`` of the type ``text_discarded``).
``event``, ``log``
    ``{"type", "data"}`` and ``{"message", "level"}``: what a node emitted besides text.
``error``, ``handled``, ``reason``, ``cause``, ``request_id``, ``request``, ``duration_s``
    Fields of the event that changed the status.
``execution``
    ``{"id", "status", "reason"?, "usage"?}``.
"""

from __future__ import annotations

from calendar import timegm
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from planwave.errors import InputError
from planwave.events.chat_chunks.turns import Chunk, TurnQueue
from planwave.events.chat_chunks.visibility import Visibility
from planwave.events.graphs import GraphLookup, NestedGraphs
from planwave.events.types import (
    MESSAGE,
    TERMINAL,
    TEXT_DISCARDED,
    Event,
    NodeDelta,
    NodeEmitted,
    message_text,
    typed_event,
)  # fmt: skip
from planwave.events.usage import NO_USAGE, UsageLedger
from planwave.expressions.json_text import to_text
from planwave.graph.model import Graph

_PARAGRAPH_BREAK: Final = "\n\n"
_INTERNAL: Final = frozenset({"prompt", "wired"})
"""Node events between nodes and the engine, not emitted to the client."""
_STATUS: Final = {
    "node.started": "running",
    "node.retrying": "retrying",
    "node.completed": "completed",
    "node.failed": "failed",
    "node.skipped": "skipped",
    "node.blocked": "blocked",
    "node.cancelled": "cancelled",
    "node.waiting": "waiting",
    "node.answered": "running",
    "node.parked": "waiting",
    "node.unparked": "running",
}
_STATUS_FIELDS: Final = (
    "error", "handled", "reason", "cause", "request_id", "request", "duration_s",
)  # fmt: skip
_DISCARDS_TEXT: Final = frozenset({"node.started", "node.retrying", "node.failed"})
"""Events after which the text that an attempt has streamed is discarded."""
_ENDED: Final = frozenset(
    {"node.completed", "node.failed", "node.skipped", "node.blocked", "node.cancelled"}
)
"""Events after which a node emits no more text."""
_DELTA_FIELDS: Final = {"text": "content", "reasoning": "reasoning_content"}


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
    telling = ChunkEncoder(graph, visible, model)
    if isinstance(events, AsyncIterable):
        given = aiter(events)
        try:
            async for event in given:
                for chunk in telling.encode(event):
                    yield chunk
        finally:
            if isinstance(given, AsyncGenerator):
                await given.aclose()
    else:
        for event in events:
            for chunk in telling.encode(event):
                yield chunk


class _StreamedSoFar:
    """The text that the present attempt of a node has streamed, and how much of it was emitted."""

    __slots__ = ("_lengths", "_pieces", "attempt", "emitted")

    def __init__(self, attempt: int | None) -> None:
        self.attempt = attempt
        self.emitted = 0
        self._pieces: list[str] = []
        self._lengths = dict.fromkeys(_DELTA_FIELDS, 0)

    @property
    def text(self) -> str:
        """All the text."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def is_rewritten(self, kind: str, offset: int, piece: str) -> bool:
        """Return whether a piece replaces earlier text by other text, as its node began again."""
        if kind != "text" or offset >= self._lengths[kind]:
            return False
        return not piece.startswith(self.text[offset : offset + len(piece)])

    def new_text(self, kind: str, offset: int, piece: str) -> str:
        """Return the new part of a piece, '' for a piece that begins after a gap."""
        known = self._lengths[kind]
        new = piece[known - offset :] if offset <= known else ""
        self._lengths[kind] += len(new)
        if kind == "text":
            self._pieces.append(new)
        return new


class ChunkEncoder:
    """Converts events to chunks, one event at a time."""

    def __init__(
        self,
        graph: Graph | Mapping[str, Any] | None,
        visible: Collection[str] | None,
        model: str,
    ) -> None:
        self._visible_ids, self._model = visible, model
        self._nested_graphs = NestedGraphs()
        self._visibility: Visibility | None = None
        if graph is not None:
            self._set_graph(graph.document if isinstance(graph, Graph) else graph)
        self._head: dict[str, Any] = {}
        self._turns = TurnQueue()
        self._streamed: dict[str, _StreamedSoFar] = {}
        self._speakers: set[str] = set()
        self._messaged: set[str] = set()
        self._turn: str | None = None
        self._length = 0
        self._usage = NO_USAGE
        self._usage_ledger = UsageLedger()
        self._meta_cache: dict[str, tuple[dict[str, Any], bool]] = {}
        """By path, for nodes that have not ended: a look-up for each token would be slow."""

    def encode(self, event: Event) -> Iterator[dict[str, Any]]:
        """Yield the chunks of the next event."""
        typed = typed_event(event)
        self._usage_ledger.observe(typed)
        created = event.data.get("graph") if event.type == "execution.created" else None
        if created is not None and self._visibility is None:
            self._set_graph(created)
        if not self._head:
            self._head = {
                "id": f"chatcmpl-{event.execution_id}",
                "object": "chat.completion.chunk",
                "created": timegm(_time_parts(event.at)),
                "model": self._model,
            }
            execution = {"id": event.execution_id, "status": "starting"}
            yield self._chunk({"role": "assistant", "content": ""}, {"execution": execution})
        if event.type in TERMINAL:
            yield from self._emit(self._turns.close())
            yield self._end(event)
        elif event.type in ("execution.started", "execution.paused", "execution.resumed"):
            yield self._chunk({"content": ""}, {"execution": _execution(event)})
        elif typed.type == "usage":
            if self._usage_ledger.is_paid(typed):
                self._usage = self._usage.plus(typed.data)
        elif event.path is not None:
            yield from self._encode_node(event, event.path)

    def _set_graph(self, graph: Mapping[str, Any]) -> None:
        self._visibility = Visibility(graph, self._visible_ids)
        self._graphs = GraphLookup(graph, self._nested_graphs)

    def _require_visibility(self) -> Visibility:
        if self._visibility is None:
            raise InputError(
                "these events do not say which graph they are of",
                code="no-graph",
                hint="pass graph=…, or begin with the event execution.created",
            )
        return self._visibility

    def _encode_node(self, event: Event, path: str) -> Iterator[dict[str, Any]]:
        meta, typed = self._meta(event, path), typed_event(event)
        match typed.type:
            case "node.delta":
                yield from self._delta(typed, path, meta)
            case "node.log":
                yield self._chunk({"content": ""}, {"meta": meta, "log": typed.data})
            case "nested_run.opened":
                self._nested_graphs.record(path, typed.data)
            case "node.event" if typed.data["event_type"] == MESSAGE:
                yield from self._message(typed, path, meta)
            case "node.event" if (kind := typed.data["event_type"]) not in _INTERNAL:
                emitted = {"type": kind, "data": typed.data.get("data")}
                about: dict[str, Any] = {"meta": meta, "event": emitted}
                if kind == TEXT_DISCARDED and (lost := self._discard(path)):
                    about["discard"] = lost
                yield self._chunk({"content": ""}, about)
            case _ if event.type in _STATUS:
                yield from self._status_change(event, path, meta)
            case _:
                pass

    def _meta(self, event: Event, path: str) -> dict[str, Any]:
        known = self._meta_cache.get(path)
        if known is None:
            known = self._meta_cache[path] = self._node_meta(path)
        if event.type in _ENDED:
            del self._meta_cache[path]
        facts, visible = known
        attempt = {} if event.attempt is None else {"attempt": event.attempt}
        return {**facts, **attempt, "visible": visible}

    def _node_meta(self, path: str) -> tuple[dict[str, Any], bool]:
        """Return the ``meta`` of a node, and whether its streamed text is visible."""
        showing = self._require_visibility()
        place = self._graphs.locate(path)
        name = place.graph.name_of(place.id) if place.is_known else None
        facts = {
            "node_id": place.id,
            "node_type": showing.type_of(path) or place.document.get("type"),
            "name": showing.name_of(path) or name,
            "path": path,
        }
        return {k: v for k, v in facts.items() if v is not None}, showing.is_visible(path)

    def _delta(self, event: NodeDelta, path: str, meta: dict[str, Any]) -> Iterator[dict[str, Any]]:
        data = event.data
        kind, offset, text = data["kind"], data["offset"], data["text"]
        if kind not in _DELTA_FIELDS or not meta["visible"]:
            yield self._chunk({"content": ""}, {"meta": meta, "delta": data})
            return
        spoken = self._streamed.get(path)
        if spoken is not None and spoken.is_rewritten(kind, offset, text):
            if lost := self._discard(path):
                yield self._chunk({"content": ""}, {"meta": meta, "discard": lost})
            offset, text, spoken = 0, spoken.text[:offset] + text, None
        if spoken is None or spoken.attempt != event.attempt:
            spoken = self._streamed[path] = _StreamedSoFar(event.attempt)
        if new := spoken.new_text(kind, offset, text):
            turn = f"{path} {event.attempt}"
            yield from self._push(Chunk(path, turn, kind, new, {"meta": meta}))

    def _message(
        self, event: NodeEmitted, path: str, meta: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        content: Any = event.data.get("data")
        about: dict[str, Any] = {"meta": meta, "event": {"type": MESSAGE, "data": content}}
        held = self._turns.is_speaking(path)
        self._messaged.add(path)
        yield from self._push(
            Chunk(path, f"message {event.seq}", "text", message_text(content), about)
        )
        if not held:
            yield from self._emit(self._turns.finish(path))

    def _status_change(
        self, event: Event, path: str, meta: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """Yield the chunk of a status change, then the text that the node has not emitted so far."""
        meta = {**meta, "status": _STATUS[event.type]}
        about = {
            "meta": meta,
            **{name: event.data[name] for name in _STATUS_FIELDS if name in event.data},
        }
        if event.type in _DISCARDS_TEXT and (lost := self._discard(path)):
            about["discard"] = lost
        yield self._chunk({"content": ""}, about)
        if event.type == "node.started":
            return
        if event.data.get("outputs") and (rest := self._remaining(event, path)):
            turn, text = rest
            yield from self._push(Chunk(path, turn, "text", text, {"meta": meta}))
        if (spoken := self._streamed.get(path)) is not None:
            spoken.emitted = 0  # other nodes may emit text now, so this text cannot be discarded
        yield from self._emit(self._turns.finish(path))

    def _discard(self, path: str) -> int:
        """Discard the streamed text of a node and return how many characters of it were emitted."""
        spoken = self._streamed.pop(path, None)
        if spoken is None:
            return 0
        self._turns.discard(path)
        self._speakers.discard(path)
        self._length -= spoken.emitted
        if spoken.emitted:
            self._turn = None  # the break before the discarded text is discarded too
        return spoken.emitted

    def _remaining(self, event: Event, path: str) -> tuple[str, str] | None:
        """Return the turn and the text of a node's result that the node has not streamed, or None."""
        if event.data.get("given") or path in self._messaged:
            return None
        showing = self._require_visibility()
        if not (self._speakers | self._messaged).isdisjoint(showing.speakers_behind(path)):
            return None
        values = showing.visible_values(path, event.data["outputs"])
        text = _PARAGRAPH_BREAK.join(filter(None, map(to_text, values)))
        spoken = self._streamed.get(path)
        streamed = "" if spoken is None else spoken.text
        if text.startswith(streamed):
            text = text[len(streamed) :]
            return (f"{path} {event.attempt}", text) if text else None
        is_text = all(isinstance(value, str) for value in values)
        return (f"{path} result", text) if is_text and text else None

    def _push(self, piece: Chunk) -> Iterator[dict[str, Any]]:
        if piece.kind == "text" and piece.text:
            self._speakers.add(piece.speaker)
        return self._emit(self._turns.push(piece))

    def _emit(self, pieces: Iterable[Chunk]) -> Iterator[dict[str, Any]]:
        for piece in pieces:
            text = piece.text
            if piece.kind == "text" and text:
                if self._length and self._turn != piece.turn:
                    text = _PARAGRAPH_BREAK + text
                self._turn = piece.turn
                self._length += len(text)
                if (spoken := self._streamed.get(piece.speaker)) is not None:
                    spoken.emitted += len(text)
            yield self._chunk({_DELTA_FIELDS[piece.kind]: text}, piece.extras)

    def _chunk(
        self, delta: dict[str, Any], extras: Mapping[str, Any], finish: str | None = None
    ) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**self._head, "choices": [choice], "extras": {**extras}}

    def _end(self, event: Event) -> dict[str, Any]:
        total = self._usage
        execution = {**_execution(event), "usage": total.as_json()}
        finish = "stop" if event.type == "execution.completed" else None
        chunk = self._chunk({}, {"execution": execution}, finish)
        chunk["usage"] = {
            "prompt_tokens": total.input_tokens,
            "completion_tokens": total.output_tokens,
            "total_tokens": total.input_tokens + total.output_tokens,
            "prompt_tokens_details": {"cached_tokens": total.cache_read_tokens},
        }
        if finish is None:
            chunk["error"] = _error(event)
        return chunk


def _execution(event: Event) -> dict[str, Any]:
    status = event.type.removeprefix("execution.")
    status = "executing" if status in ("started", "resumed") else status
    told = {name: event.data[name] for name in ("reason", "handled_failures") if name in event.data}
    return {"id": event.execution_id, "status": status, **told}


def _error(event: Event) -> dict[str, Any]:
    """Return the failure or cancellation of an execution as an error of the OpenAI API."""
    failed = event.type == "execution.failed"
    error: Mapping[str, Any] = event.data.get("error") or {}
    message = error.get("message") or to_text(event.data.get("cause")) or "the execution failed"
    failures: list[str] = event.data.get("failures") or []
    return {
        "message": message,
        "type": "execution_failed" if failed else "execution_cancelled",
        "code": error.get("code") if failed else "cancelled",
        "param": failures[0] if failures else None,
    }


def _time_parts(at: str) -> tuple[int, ...]:
    """Return the time of an event, UTC, as numbers from the year to the second."""
    return (*map(int, at[:10].split("-")), *map(int, at[11:19].split(":")))
