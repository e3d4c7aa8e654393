"""An execution's events as ``chat.completion.chunk`` objects of the OpenAI API.

::

    async for chunk in planwave.chunks(planwave.run(graph)):
        print(chunk["choices"][0]["delta"].get("content") or "", end="")

A client of that API sees one answer: in ``delta.content`` what no other node reads on, and what
nodes say to the caller while the run goes on (``node.event`` of the type ``message``); in
``delta.reasoning_content`` the reasoning that belongs to it; at the end ``finish_reason`` and
``usage``. Several nodes that speak at once are heard one after the other, each to its end, as
paragraphs. Who knows planwave finds everything else in ``extras``:

``meta``
    ``{"node_id", "node_type"?, "name"?, "path", "attempt"?, "visible", "status"?}``: which node the
    chunk is about; ``status`` where that has changed. Of nodes in nested runs only their path is
    known, and their text is not visible: the node they run in tells what came of it. An ``inner``
    node with its graph in its data is looked into.
``delta``
    ``{"kind", "text", "offset"}``: streamed text of a node that is not visible.
``discard``
    That many characters at the end of the content so far do not hold: the attempt that streamed
    them failed.
``event``, ``log``
    ``{"type", "data"}`` and ``{"message", "level"}``: what a node said besides text.
``error``, ``handled``, ``reason``, ``cause``, ``request_id``, ``request``, ``duration_s``
    What goes with a status.
``execution``
    ``{"id", "status", "reason"?, "usage"?}``.
"""

from __future__ import annotations

from calendar import timegm
from collections.abc import AsyncGenerator, AsyncIterable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from planwave.errors import InputError
from planwave.events.charging import Charges
from planwave.events.floor import Floor, Piece
from planwave.events.graphs import Graphs, GraphsInside
from planwave.events.messages import MESSAGE, message_of
from planwave.events.node_state import NOTHING_USED
from planwave.events.showing import Showing
from planwave.events.vocabulary import RUN_GRAPH, TERMINAL, Event
from planwave.graph.model import Graph
from planwave.graph.values import text_of

_BETWEEN: Final = "\n\n"
_INTERNAL: Final = frozenset({"prompt", "wired", "once"})
"""Node events that are between nodes and the engine, and not for whom the answer is for."""
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
_TOLD: Final = (
    "error", "handled", "reason", "cause", "request_id", "request", "duration_s",
)  # fmt: skip
_LOSES: Final = frozenset({"node.started", "node.retrying", "node.failed"})
"""Events after which the text that an attempt has streamed does not hold."""
_OVER: Final = frozenset(
    {"node.completed", "node.failed", "node.skipped", "node.blocked", "node.cancelled"}
)
"""Events after which a node has nothing more to say."""
_KINDS: Final = {"text": "content", "reasoning": "reasoning_content"}


async def chunks(
    events: AsyncIterable[Event] | Iterable[Event],
    *,
    graph: Graph | Mapping[str, Any] | None = None,
    visible: Collection[str] | None = None,
    model: str = "planwave",
) -> AsyncGenerator[dict[str, Any]]:
    """Give the events of one execution as ``chat.completion.chunk`` objects; see this module.

    The last chunk of a completed execution has ``finish_reason: "stop"``. One that failed or was
    cancelled ends with a chunk without it, and with ``error: {"message", "type", "code", "param"}``
    beside ``choices``, which the OpenAI SDK raises as an ``APIError``.

    Args:
        events: From the first on: a ``planwave.Run``, what a client's ``events`` gives, or stored
            ones. Leaving the chunks early leaves the events too.
        graph: What is run; needed only where the events do not tell: not those of a ``Run``, nor
            those that begin with ``execution.created``.
        visible: Ids of the nodes whose text is content; by default those nobody reads on.
        model: What stands as ``model`` in every chunk.

    Raises:
        InputError: The graph is not known (``no-graph``).
    """
    if graph is None:
        graph = getattr(events, "graph", None)
    telling = _Telling(graph, visible, model)
    if isinstance(events, AsyncIterable):
        given = aiter(events)
        try:
            async for event in given:
                for chunk in telling.of(event):
                    yield chunk
        finally:
            if isinstance(given, AsyncGenerator):
                await given.aclose()
    else:
        for event in events:
            for chunk in telling.of(event):
                yield chunk


class _Spoken:
    """What the present attempt of one node has streamed, and how much of that was told."""

    __slots__ = ("_lengths", "_pieces", "attempt", "told")

    def __init__(self, attempt: int | None) -> None:
        self.attempt = attempt
        self.told = 0
        self._pieces: list[str] = []
        self._lengths = dict.fromkeys(_KINDS, 0)

    @property
    def text(self) -> str:
        """All the text."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def is_rewritten(self, kind: str, offset: int, piece: str) -> bool:
        """Say whether a piece takes the place of another text: its node began again."""
        if kind != "text" or offset >= self._lengths[kind]:
            return False
        return not piece.startswith(self.text[offset : offset + len(piece)])

    def fresh(self, kind: str, offset: int, piece: str) -> str:
        """Give what is new of a piece; nothing of one behind a hole."""
        known = self._lengths[kind]
        new = piece[known - offset :] if offset <= known else ""
        self._lengths[kind] += len(new)
        if kind == "text":
            self._pieces.append(new)
        return new


class _Telling:
    """Turns events into chunks one after the other."""

    def __init__(
        self,
        graph: Graph | Mapping[str, Any] | None,
        visible: Collection[str] | None,
        model: str,
    ) -> None:
        self._visible, self._model = visible, model
        self._inside = GraphsInside()
        self._showing: Showing | None = None
        if graph is not None:
            self._look_at(graph.document if isinstance(graph, Graph) else graph)
        self._head: dict[str, Any] = {}
        self._floor = Floor()
        self._spoken: dict[str, _Spoken] = {}
        self._heard: set[str] = set()
        self._called: set[str] = set()
        self._turn: str | None = None
        self._length = 0
        self._usage = NOTHING_USED
        self._charges = Charges()
        self._about: dict[str, tuple[dict[str, Any], bool]] = {}
        """Nodes that are not over: looking one up for each of its tokens would cost more than these."""

    def of(self, event: Event) -> Iterator[dict[str, Any]]:
        """Give the chunks of the next event."""
        self._charges.follow(event)
        created = event.data.get("graph") if event.type == "execution.created" else None
        if created is not None and self._showing is None:
            self._look_at(created)
        if not self._head:
            self._head = {
                "id": f"chatcmpl-{event.execution_id}",
                "object": "chat.completion.chunk",
                "created": timegm(_moment(event.at)),
                "model": self._model,
            }
            execution = {"id": event.execution_id, "status": "starting"}
            yield self._chunk({"role": "assistant", "content": ""}, {"execution": execution})
        if event.type in TERMINAL:
            yield from self._told(self._floor.close())
            yield self._end(event)
        elif event.type in ("execution.started", "execution.paused", "execution.resumed"):
            yield self._chunk({"content": ""}, {"execution": _execution(event)})
        elif event.type == "usage":
            if self._charges.is_paid(event):
                self._usage = self._usage.plus(event.data)
        elif event.path is not None:
            yield from self._of_node(event, event.path)

    def _look_at(self, graph: Mapping[str, Any]) -> None:
        self._showing = Showing(graph, self._visible)
        self._graphs = Graphs(graph, self._inside)

    def _known(self) -> Showing:
        if self._showing is None:
            raise InputError(
                "these events do not say which graph they are of",
                code="no-graph",
                hint="pass graph=…, or begin with the event execution.created",
            )
        return self._showing

    def _of_node(self, event: Event, path: str) -> Iterator[dict[str, Any]]:
        meta, data = self._meta(event, path), event.data
        match event.type:
            case "node.delta":
                yield from self._delta(event, path, meta)
            case "node.log":
                yield self._chunk({"content": ""}, {"meta": meta, "log": data})
            case "node.event" if data["event_type"] == MESSAGE:
                yield from self._message(event, path, meta)
            case "node.event" if data["event_type"] == RUN_GRAPH:
                self._inside.open(path, data["data"])
            case "node.event" if data["event_type"] not in _INTERNAL:
                said = {"type": data["event_type"], "data": data.get("data")}
                yield self._chunk({"content": ""}, {"meta": meta, "event": said})
            case _ if event.type in _STATUS:
                yield from self._change(event, path, meta)
            case _:
                pass

    def _meta(self, event: Event, path: str) -> dict[str, Any]:
        known = self._about.get(path)
        if known is None:
            known = self._about[path] = self._looked_up(path)
        if event.type in _OVER:
            del self._about[path]
        facts, visible = known
        attempt = {} if event.attempt is None else {"attempt": event.attempt}
        return {**facts, **attempt, "visible": visible}

    def _looked_up(self, path: str) -> tuple[dict[str, Any], bool]:
        """Give what is known of a node, and whether what it streams is visible."""
        showing = self._known()
        place = self._graphs.place_of(path)
        name = place.graph.name_of(place.id) if place.is_known else None
        facts = {
            "node_id": place.id,
            "node_type": showing.type_of(path) or place.written.get("type"),
            "name": showing.name_of(path) or name,
            "path": path,
        }
        return {k: v for k, v in facts.items() if v is not None}, showing.streams(path)

    def _delta(self, event: Event, path: str, meta: dict[str, Any]) -> Iterator[dict[str, Any]]:
        data = event.data
        kind, offset, text = data["kind"], data["offset"], data["text"]
        if kind not in _KINDS or not meta["visible"]:
            yield self._chunk({"content": ""}, {"meta": meta, "delta": data})
            return
        spoken = self._spoken.get(path)
        if spoken is not None and spoken.is_rewritten(kind, offset, text):
            if lost := self._lost(path):
                yield self._chunk({"content": ""}, {"meta": meta, "discard": lost})
            offset, text, spoken = 0, spoken.text[:offset] + text, None
        if spoken is None or spoken.attempt != event.attempt:
            spoken = self._spoken[path] = _Spoken(event.attempt)
        if new := spoken.fresh(kind, offset, text):
            turn = f"{path} {event.attempt}"
            yield from self._say(Piece(path, turn, kind, new, {"meta": meta}))

    def _message(self, event: Event, path: str, meta: dict[str, Any]) -> Iterator[dict[str, Any]]:
        said: Any = event.data.get("data")
        about: dict[str, Any] = {"meta": meta, "event": {"type": MESSAGE, "data": said}}
        held = self._floor.holds(path)
        self._called.add(path)
        yield from self._say(Piece(path, f"message {event.seq}", "text", message_of(said), about))
        if not held:
            yield from self._told(self._floor.leave(path))

    def _change(self, event: Event, path: str, meta: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Tell that a node's status has changed, and before that what it has not said so far."""
        meta = {**meta, "status": _STATUS[event.type]}
        about = {"meta": meta, **{name: event.data[name] for name in _TOLD if name in event.data}}
        if event.type in _LOSES and (lost := self._lost(path)):
            about["discard"] = lost
        yield self._chunk({"content": ""}, about)
        if event.type == "node.started":
            return
        if event.data.get("outputs") and (rest := self._rest(event, path)):
            turn, text = rest
            yield from self._say(Piece(path, turn, "text", text, {"meta": meta}))
        if (spoken := self._spoken.get(path)) is not None:
            spoken.told = 0  # others may speak now, so it is not the end of the content any more
        yield from self._told(self._floor.leave(path))

    def _lost(self, path: str) -> int:
        """Take back what a node has streamed; give how many characters of it were told."""
        spoken = self._spoken.pop(path, None)
        if spoken is None:
            return 0
        self._floor.withdraw(path)
        self._heard.discard(path)
        self._length -= spoken.told
        return spoken.told

    def _rest(self, event: Event, path: str) -> tuple[str, str] | None:
        """Give what is still to be told of a node's result: all that it has not streamed."""
        if event.data.get("given") or path in self._called:
            return None
        showing = self._known()
        if not (self._heard | self._called).isdisjoint(showing.spoken_for_by(path)):
            return None
        values = showing.results(path, event.data["outputs"])
        text = _BETWEEN.join(filter(None, map(text_of, values)))
        spoken = self._spoken.get(path)
        streamed = "" if spoken is None else spoken.text
        if text.startswith(streamed):
            text = text[len(streamed) :]
            return (f"{path} {event.attempt}", text) if text else None
        is_text = all(isinstance(value, str) for value in values)
        return (f"{path} result", text) if is_text and text else None

    def _say(self, piece: Piece) -> Iterator[dict[str, Any]]:
        if piece.kind == "text" and piece.text:
            self._heard.add(piece.speaker)
        return self._told(self._floor.say(piece))

    def _told(self, pieces: Iterable[Piece]) -> Iterator[dict[str, Any]]:
        for piece in pieces:
            text = piece.text
            if piece.kind == "text" and text:
                if self._length and self._turn != piece.turn:
                    text = _BETWEEN + text
                self._turn = piece.turn
                self._length += len(text)
                if (spoken := self._spoken.get(piece.speaker)) is not None:
                    spoken.told += len(text)
            yield self._chunk({_KINDS[piece.kind]: text}, piece.about)

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
    """Give how an execution ended as the OpenAI API words a failure."""
    failed = event.type == "execution.failed"
    error: Mapping[str, Any] = event.data.get("error") or {}
    message = error.get("message") or text_of(event.data.get("cause")) or "the execution failed"
    failures: list[str] = event.data.get("failures") or []
    return {
        "message": message,
        "type": "execution_failed" if failed else "execution_cancelled",
        "code": error.get("code") if failed else "cancelled",
        "param": failures[0] if failures else None,
    }


def _moment(at: str) -> tuple[int, ...]:
    """Give a time of an event, UTC, as numbers from the year to the second."""
    return (*map(int, at[:10].split("-")), *map(int, at[11:19].split(":")))
