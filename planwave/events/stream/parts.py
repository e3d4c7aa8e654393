"""An execution's events as the parts of one answer: text, what is void of it, statuses, an end.

This is the one place that says which text people see, and when. It is the text that no other node reads
(``visibility.py``), and the messages of nodes to the caller. When several nodes stream at once, their texts
follow one after the other, as paragraphs (``turns.py``).

Each part is about something, which a client of planwave finds as ``extras`` of a chunk:

``meta``
    ``{"node_id", "node_type"?, "name"?, "path", "attempt"?, "visible", "status"?}``: which node the
    part is about; ``status`` where that has changed. Text of nodes in nested runs is not visible:
    the result of the node that opened the run is. The exception is a graph in the data of a node that
    runs it under the name of its data field, as ``inner`` does. Type and name are absent where the
    node's graph is not known.
``delta``
    ``{"kind", "text", "offset"}``: streamed text of a node that is not visible.
``event``, ``log``
    ``{"type", "data"}`` and ``{"message", "level"}``: what a node emitted besides text.
``error``, ``handled``, ``reason``, ``cause``, ``request_id``, ``request``, ``duration_s``
    Fields of the event that changed the status.
``execution``
    ``{"id", "status", "reason"?, "usage"?}``.
``change``
    The number of the change of the graph after which text is void.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from planwave.errors import InputError
from planwave.events.budget import Spending
from planwave.events.graphs import GraphLookup, NestedGraphs
from planwave.events.stream.turns import Piece, TurnQueue
from planwave.events.stream.visibility import Visibility
from planwave.events.streamed_text import StreamedText
from planwave.events.types import (
    CALLER_TOOL_CALLS,
    MESSAGE,
    REPLY_CUT,
    TERMINAL,
    TEXT_DISCARDED,
    Event,
    NodeDelta,
    NodeEmitted,
    PlanRevised,
    TypedEvent,
    message_text,
    typed_event,
)  # fmt: skip
from planwave.events.usage import NO_USAGE, UsageTotal
from planwave.expressions.json_text import to_text
from planwave.graph.editing.revision import changed_graph
from planwave.graph.model import Graph

About = Mapping[str, Any]
"""What a part is about; see this module."""
_PARAGRAPH_BREAK: Final = "\n\n"
_INTERNAL: Final = frozenset({"prompt", "wired"})
"""Node events between nodes and the engine, not shown to the client."""
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
"""Events after which the text that an attempt has streamed is void."""
_ENDED: Final = frozenset(
    {"node.completed", "node.failed", "node.skipped", "node.blocked", "node.cancelled"}
)
"""Events after which a node emits no more text."""
_EXECUTION_STATUS: Final = {
    "execution.started": "executing",
    "execution.paused": "paused",
    "execution.resumed": "executing",
}
_KINDS: Final = ("text", "reasoning")
"""Kinds of streamed text that people see."""


class Text(NamedTuple):
    """Text that follows the text so far, or reasoning that follows the reasoning so far.

    ``is_again``: it was retracted with void text before it; a reader who cannot take text back has it already.
    """

    kind: Literal["text", "reasoning"]
    text: str
    about: About
    is_again: bool = False


class Retraction(NamedTuple):
    """The last characters of the text so far are void.

    The attempt that streamed them failed, began again, or discarded them (``event`` of the type
    ``text_discarded``); or a change of the graph (``change``, its number) has dropped their node, or lets another
    read it. What is still valid of them follows once more.
    """

    chars: int
    about: About


class Status(NamedTuple):
    """Something that a node or the execution reports besides text that people see."""

    about: About


class RequestedCall(NamedTuple):
    """A call that the client is to make; ``arguments`` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class End:
    """The end of the execution.

    Attributes:
        about: What the part is about.
        usage: The paid tokens and cost of the whole execution.
        calls: The calls that the client is to make.
        is_cut: Whether the model reached its limit of tokens before the end of the visible text.
        error: ``{"message", "type", "code", "param"}`` of an execution that failed or was cancelled.
    """

    about: About = field(default_factory=dict[str, Any])
    usage: UsageTotal = NO_USAGE
    calls: tuple[RequestedCall, ...] = ()
    is_cut: bool = False
    error: Mapping[str, Any] | None = None


Part = Text | Retraction | Status | End


@dataclass(eq=False, slots=True)
class _Paragraph:
    """Text of one turn that was emitted: its first piece, and all that follow; the first paragraph has no break before it.

    ``kept``: how many of its pieces stay, even if the attempt that streamed them fails.
    """

    first: Piece
    has_break: bool
    texts: list[str] = field(default_factory=list[str])
    kept: int = 0

    def size(self, kept: int = 0) -> int:
        """Return the number of its characters after some pieces, with the break."""
        return sum(map(len, self.texts[kept:]))

    def again(self, kept: int) -> list[Piece]:
        """Return some pieces of it, to be emitted again."""
        texts = self.texts[:kept]
        if texts and self.has_break:
            texts[0] = texts[0].removeprefix(_PARAGRAPH_BREAK)
        return [self.first._replace(text=each) for each in texts]


class _Speech:
    """What the present attempt of a node has streamed, and the paragraphs with text of it that may become void."""

    __slots__ = ("_reasoning_length", "attempt", "paragraphs", "text")

    def __init__(self, attempt: int | None) -> None:
        self.attempt = attempt
        self.text = StreamedText()
        self.paragraphs = list[_Paragraph]()
        self._reasoning_length = 0

    def keep(self) -> None:
        """Let what was emitted stay from now on."""
        for each in self.paragraphs:
            each.kept = len(each.texts)
        self.paragraphs.clear()

    def new_reasoning(self, offset: int, piece: str) -> str:
        """Return the new part of a piece, "" for a piece that begins after a gap; none is ever void."""
        length = self._reasoning_length
        new = piece[length - offset :] if offset <= length else ""
        self._reasoning_length += len(new)
        return new


class PartReader:
    """Converts events to parts, one event at a time.

    Args:
        graph: The graph that is run; None where the events begin with ``execution.created``.
        visible: Paths of the nodes whose text people see; None for the rule of ``Visibility``.
    """

    def __init__(
        self,
        graph: Graph | Mapping[str, Any] | None = None,
        visible: Collection[str] | None = None,
    ) -> None:
        self._visible_ids = visible
        self._nested_graphs = NestedGraphs()
        self._visibility: Visibility | None = None
        self._graph: Mapping[str, Any] | None = None
        self._meta_cache: dict[str, tuple[dict[str, Any], bool]] = {}
        """By path, for nodes that have not ended: a look-up for each token would be slow."""
        if graph is not None:
            self._set_graph(graph.document if isinstance(graph, Graph) else graph)
        self._has_begun = False
        self._turns = TurnQueue()
        self._speeches: dict[str, _Speech] = {}
        self._speakers: set[str] = set()
        self._messaged: set[str] = set()
        self._turn: str | None = None
        self._paragraphs: list[_Paragraph] = []
        self._results: dict[str, Event] = {}
        """The events with what the nodes of the graph itself gave, by path: a change may make it visible."""
        self._calls: tuple[RequestedCall, ...] = ()
        self._is_cut = False
        self._spending = Spending()

    def read(self, event: Event) -> Iterator[Part]:
        """Yield the parts of the next event.

        Raises:
            InputError: The graph is not known (``no-graph``).
        """
        typed = typed_event(event)
        self._spending.observe(typed)
        created = event.data.get("graph") if event.type == "execution.created" else None
        if created is not None and self._visibility is None:
            self._set_graph(created)
        if not self._has_begun:
            self._has_begun = True
            yield Status({"execution": {"id": event.execution_id, "status": "starting"}})
        if typed.type == "plan.revised":
            yield from self._revised(typed)
        if event.type in TERMINAL:
            yield from self._emit(self._turns.close())
            yield self._end(event)
        elif event.type in _EXECUTION_STATUS:
            yield Status({"execution": _execution(event, _EXECUTION_STATUS[event.type])})
        elif event.path is not None and event.type != "usage":
            yield from self._read_node(event, typed, event.path)

    def _set_graph(self, graph: Mapping[str, Any]) -> None:
        self._graph = graph
        self._visibility = Visibility(graph, self._visible_ids)
        self._meta_cache.clear()
        self._graphs = GraphLookup(graph, self._nested_graphs)

    def _require_visibility(self) -> Visibility:
        if self._visibility is None:
            raise InputError(
                "these events do not say which graph they are of",
                code="no-graph",
                hint="pass graph=…, or begin with the event execution.created",
            )
        return self._visibility

    def _read_node(self, event: Event, typed: TypedEvent, path: str) -> Iterator[Part]:
        meta = self._meta(event, path)
        match typed.type:
            case "node.delta":
                yield from self._delta(typed, path, meta)
            case "node.log":
                if meta["visible"] and typed.data.get("kind") == REPLY_CUT:
                    self._is_cut = True
                yield Status({"meta": meta, "log": typed.data})
            case "nested_run.opened":
                self._nested_graphs.record(path, typed.data)
            case "node.event":
                yield from self._emitted(typed, path, meta)
            case _ if event.type in _STATUS:
                yield from self._status_change(event, path, meta)
            case _:
                pass

    def _meta(self, event: Event, path: str) -> dict[str, Any]:
        node_meta = self._meta_cache.get(path)
        if node_meta is None:
            node_meta = self._meta_cache[path] = self._node_meta(path)
        if event.type in _ENDED:
            del self._meta_cache[path]
        facts, visible = node_meta
        attempt = {} if event.attempt is None else {"attempt": event.attempt}
        return {**facts, **attempt, "visible": visible}

    def _node_meta(self, path: str) -> tuple[dict[str, Any], bool]:
        """Return the ``meta`` of a node, and whether its streamed text is visible."""
        visibility = self._require_visibility()
        place = self._graphs.locate(path)
        name = place.graph.name_of(place.id) if place.is_known else None
        facts = {
            "node_id": place.id,
            "node_type": visibility.type_of(path) or place.document.get("type"),
            "name": visibility.name_of(path) or name,
            "path": path,
        }
        return {k: v for k, v in facts.items() if v is not None}, visibility.is_visible(path)

    def _delta(self, event: NodeDelta, path: str, meta: dict[str, Any]) -> Iterator[Part]:
        kind, offset, text = event.data["kind"], event.data["offset"], event.data["text"]
        if kind not in _KINDS or not meta["visible"]:
            yield Status({"meta": meta, "delta": event.data})
            return
        speech = self._speeches.get(path)
        if speech is None or speech.attempt != event.attempt:
            speech = self._speeches[path] = _Speech(event.attempt)
        about = {"meta": meta}
        if kind == "reasoning":
            new = speech.new_reasoning(offset, text)
        else:
            length = len(speech.text)
            change = speech.text.merge(offset, text)
            if change is not None and change.offset < length:  # its node began again
                yield from self._retract(path, about)
                self._speeches[path] = _Speech(event.attempt)
                change = self._speeches[path].text.merge(0, str(speech.text))
            new = "" if change is None else change.content
        if new:
            yield from self._push(Piece(path, f"{path} {event.attempt}", kind, new, about))

    def _emitted(self, event: NodeEmitted, path: str, meta: dict[str, Any]) -> Iterator[Part]:
        kind, data = event.data["event_type"], event.data.get("data")
        about: About = {"meta": meta, "event": {"type": kind, "data": data}}
        if kind == MESSAGE:
            yield from self._message(event, path, about)
        elif kind == TEXT_DISCARDED:
            yield from self._retract(path, about, or_status=True)
        elif kind not in _INTERNAL:
            if kind == CALLER_TOOL_CALLS and meta["visible"]:
                calls: Any = data
                self._calls = tuple(RequestedCall(**call) for call in calls["calls"])
            yield Status(about)

    def _message(self, event: NodeEmitted, path: str, about: About) -> Iterator[Part]:
        had_turn = self._turns.is_speaking(path)
        self._messaged.add(path)
        text = message_text(event.data.get("data"))
        turn = f"message {event.seq}"
        yield from self._push(Piece(path, turn, "text", text, about, is_message=True))
        if not had_turn:
            yield from self._emit(self._turns.finish(path))

    def _status_change(self, event: Event, path: str, meta: dict[str, Any]) -> Iterator[Part]:
        """Yield the change of a status, then the text of the result that the node has not streamed."""
        meta = {**meta, "status": _STATUS[event.type]}
        fields = {name: event.data[name] for name in _STATUS_FIELDS if name in event.data}
        about = {"meta": meta, **fields}
        if event.type in _DISCARDS_TEXT:
            yield from self._retract(path, about, or_status=True)
        else:
            yield Status(about)
        if event.type == "node.started":
            return
        if event.data.get("outputs"):
            if "/" not in path:
                self._results[path] = event
            yield from self._result(event, path, meta)
        if (speech := self._speeches.get(path)) is not None:
            speech.keep()  # other nodes may emit text now
        yield from self._emit(self._turns.finish(path))

    def _result(self, event: Event, path: str, meta: About) -> Iterator[Part]:
        """Yield the text of a node's result that the node has not streamed, if people see it."""
        if rest := self._remaining(event, path):
            turn, text = rest
            yield from self._push(Piece(path, turn, "text", text, {"meta": meta}))

    def _revised(self, event: PlanRevised) -> Iterator[Part]:
        """Make void the text that people see no more with a changed graph, and yield the results that they see now."""
        if self._graph is None:
            return
        before = self._require_visibility()
        self._set_graph(changed_graph(self._graph, event.data["graph_change"]))
        after = self._require_visibility()
        hidden = {each for each in self._speakers if not after.shows(each)}
        yield from self._withdraw(hidden, {"change": event.data["change"]})
        for path, result in list(self._results.items()):
            if after.shows(path) and not before.shows(path):
                yield from self._result(result, path, self._meta(result, path))
                yield from self._emit(self._turns.finish(path))

    def _withdraw(self, paths: Collection[str], about: About) -> Iterator[Part]:
        """Make the texts of nodes void, wherever they stand."""
        for path in paths:
            self._forget(path)
        void: list[_Paragraph] = []
        for each in self._paragraphs:
            if each.first.speaker in paths and not each.first.is_message:
                each.kept = 0
                void.append(each)
        yield from self._take_back(void, about)
        for path in sorted(paths):
            yield from self._emit(self._turns.finish(path))

    def _retract(self, path: str, about: About, *, or_status: bool = False) -> Iterator[Part]:
        """Make the streamed text of a node void; yield how much of it was emitted, if any was.

        Args:
            path: The node.
            about: What the part is about.
            or_status: Whether a status is yielded where no text was emitted.
        """
        speech = self._speeches.get(path)
        if speech is not None:
            self._forget(path)
        if speech is not None and speech.paragraphs:
            yield from self._take_back(speech.paragraphs, about)
        elif or_status:
            yield Status(about)

    def _forget(self, path: str) -> None:
        """Forget what a node has streamed, and drop what of it is not emitted yet."""
        self._turns.discard(path)
        self._speakers.discard(path)
        self._speeches.pop(path, None)

    def _take_back(self, void: Sequence[_Paragraph], about: About) -> Iterator[Part]:
        """Make paragraphs void, apart from what is kept of them; other text after the first is emitted again."""
        if not void:
            return
        texts, first = self._paragraphs, len(self._paragraphs) - 1
        while texts[first] is not void[0]:
            first -= 1
        head, following = texts[first], texts[first + 1 :]
        chars = head.size(head.kept) + sum(each.size() for each in following)
        del texts[first + bool(head.kept) :], head.texts[head.kept :]
        # The break before the void text is void too; what follows what is kept of it is another paragraph.
        self._turn = texts[-1].first.turn if texts and texts[-1] is not head else None
        self._is_cut = False
        yield Retraction(chars, about)
        gone = frozenset(void)
        for each in following:
            kept = each.kept if each in gone else len(each.texts)
            yield from self._emit_again(each, kept)

    def _emit_again(self, paragraph: _Paragraph, kept: int) -> Iterator[Part]:
        """Emit pieces of a paragraph that were retracted with void text before them; they stay or not, as before."""
        speech = self._speeches.get(paragraph.first.speaker)
        may_fail = speech is not None and paragraph in speech.paragraphs
        if speech is not None and may_fail:
            speech.paragraphs.remove(paragraph)
        yield from self._emit(paragraph.again(kept), is_again=True)
        if not kept:
            return
        last = self._paragraphs[-1]
        if paragraph.kept:
            last.kept = len(last.texts) - kept + paragraph.kept
        if speech is not None and not may_fail and last in speech.paragraphs:
            speech.paragraphs.remove(last)

    def _remaining(self, event: Event, path: str) -> tuple[str, str] | None:
        """Return the turn and the text of a node's result that the node has not streamed, or None."""
        if event.data.get("given") or path in self._messaged:
            return None
        visibility = self._require_visibility()
        if not (self._speakers | self._messaged).isdisjoint(visibility.speakers_behind(path)):
            return None
        values = visibility.visible_values(path, event.data["outputs"])
        text = _PARAGRAPH_BREAK.join(filter(None, map(to_text, values)))
        speech = self._speeches.get(path)
        streamed = "" if speech is None else str(speech.text)
        if text.startswith(streamed):
            text = text[len(streamed) :]
            return (f"{path} {event.attempt}", text) if text else None
        is_text = all(isinstance(value, str) for value in values)
        return (f"{path} result", text) if is_text and text else None

    def _push(self, piece: Piece) -> Iterator[Part]:
        if piece.kind == "text" and piece.text:
            self._speakers.add(piece.speaker)
        return self._emit(self._turns.push(piece))

    def _emit(self, pieces: Iterable[Piece], *, is_again: bool = False) -> Iterator[Part]:
        for piece in pieces:
            text = piece.text
            if piece.kind == "text" and text:
                if self._turn != piece.turn or not self._paragraphs:
                    has_break = bool(self._paragraphs)
                    text = _PARAGRAPH_BREAK + text if has_break else text
                    self._paragraphs.append(_Paragraph(piece, has_break))
                self._turn = piece.turn
                paragraph = self._paragraphs[-1]
                paragraph.texts.append(text)
                speech = None if piece.is_message else self._speeches.get(piece.speaker)
                if speech is not None and paragraph not in speech.paragraphs:
                    speech.paragraphs.append(paragraph)
            yield Text(piece.kind, text, piece.about, is_again)

    def _end(self, event: Event) -> End:
        usage = self._spending.total
        execution = _execution(event, event.type.removeprefix("execution."))
        return End(
            {"execution": {**execution, "usage": usage.as_json()}},
            usage,
            self._calls,
            self._is_cut,
            None if event.type == "execution.completed" else _error(event),
        )


def _execution(event: Event, status: str) -> dict[str, Any]:
    fields = {
        name: event.data[name] for name in ("reason", "handled_failures") if name in event.data
    }
    return {"id": event.execution_id, "status": status, **fields}


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
