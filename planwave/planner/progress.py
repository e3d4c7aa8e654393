"""A plan told while it is written: each title, node and edge as soon as it is complete."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final, Literal, NamedTuple, cast

from planwave.graph.model import Graph

ProgressKind = Literal["delta", "title", "node", "edge", "repair", "fix"]

_REPORTED_FIELDS: Final = {
    "nodes": ("node", ("id", "name", "description", "type", "provider", "model")),
    "edges": ("edge", ("source", "target", "channel")),
}
_STRUCTURAL: Final = re.compile(r'["{}\[\],:]')
_STRING_END: Final = re.compile(r'["\\]')
_ITEM_DEPTH: Final = 3
"""Depth at which a node or an edge opens: the plan is 1, its lists are 2."""


class PlanProgress(NamedTuple):
    """Something that happened while a plan was made.

    ``data`` by kind: ``publish_delta`` ``{"text", "reasoning"}``; ``title`` ``{"title"}``; ``node``
    ``{"id", "name", …}``; ``edge`` ``{"source", "target", "channel"}``; ``repair`` ``{"attempt",
    "diagnostics"}``: the plan is written anew, forget what was told of it; ``fix`` ``{"fix"}``.
    """

    kind: ProgressKind
    data: dict[str, Any]


ProgressListener = Callable[[PlanProgress], None]


class PlanScanner:
    """Reads a reply as it comes, each character once, and tells its complete parts.

    It is for showing only: it knows just enough JSON to find where a part ends, and stays silent
    about what it does not understand. The plan itself is read from the whole reply, strictly.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._text: list[str] = []
        """Pieces of the string or part being read; joined once, when it is complete."""
        self._recording = False
        self._last = ""
        self._key = ""

    def feed(self, text: str) -> Iterator[PlanProgress]:
        """Give what became complete with this piece of the reply."""
        at = 0
        while at < len(text):
            if self._escaped:
                self._escaped = False
                at = self._consume(text, at, at + 1)
            elif self._in_string:
                at = yield from self._string(text, at)
            else:
                at = yield from self._structure(text, at)

    def _consume(self, text: str, start: int, end: int) -> int:
        if self._recording:
            self._text.append(text[start:end])
        return end

    def _string(self, text: str, at: int) -> Generator[PlanProgress, None, int]:
        found = _STRING_END.search(text, at)
        if found is None:
            return self._consume(text, at, len(text))
        end = self._consume(text, at, found.end())
        if found[0] == "\\":
            self._escaped = True
            return end
        self._in_string = False
        if self._depth < _ITEM_DEPTH and self._recording:
            self._last = str(self._finish_recording())
            if self._key == "title" and self._depth == 1:
                yield PlanProgress("title", {"title": self._last})
                self._key = ""
        return end

    def _structure(self, text: str, at: int) -> Generator[PlanProgress, None, int]:
        found = _STRUCTURAL.search(text, at)
        if found is None:
            return self._consume(text, at, len(text))
        match found[0]:
            case '"' if self._depth:
                self._in_string = True
                if self._depth == 1:
                    self._start_recording()
            case "{" | "[":
                self._depth += 1
                if self._depth == _ITEM_DEPTH and self._key in _REPORTED_FIELDS and found[0] == "{":
                    self._start_recording()
            case ":" | "," if self._depth == 1:
                self._key = self._last if found[0] == ":" else ""
            case _:
                pass
        end = self._consume(text, at, found.end())
        if found[0] in "}]":
            yield from self._close()
        return end

    def _start_recording(self) -> None:
        self._recording = True
        self._text = []

    def _close(self) -> Iterator[PlanProgress]:
        if self._depth == _ITEM_DEPTH and self._recording and self._key in _REPORTED_FIELDS:
            kind, fields = _REPORTED_FIELDS[self._key]
            part = self._finish_recording()
            if isinstance(part, dict):
                table = cast("dict[str, Any]", part)
                told = {f: table[f] for f in fields if isinstance(table.get(f), str)}
                yield PlanProgress(cast("ProgressKind", kind), told)
        self._depth = max(0, self._depth - 1)

    def _finish_recording(self) -> Any:
        """Give the value whose text was kept, or None where it is not JSON."""
        text = "".join(self._text)
        self._recording = False
        self._text = []
        start = re.search(r'["{]', text)
        try:
            return json.loads(text[start.start() :] if start else "null")
        except (ValueError, RecursionError):
            return None


def graph_progress(graph: Graph) -> Iterator[PlanProgress]:
    """Give every node and edge of a finished plan as the scanner would have told it."""
    for node in graph.nodes:
        told = {
            "id": node.id,
            "name": node.name,
            "description": node.description,
            "type": node.type,
        }
        models = {f: node.data[f] for f in ("provider", "model") if f in node.data}
        yield PlanProgress("node", {**told, **models})
    for edge in graph.edges:
        told = {"source": edge.source, "target": edge.target, "channel": edge.channel}
        yield PlanProgress("edge", told)
