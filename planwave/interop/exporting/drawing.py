"""A graph as shapes, lines and groups: the one walk that all pictures are written from.

What a node is drawn as follows from the facts of its type, so types of other packages need no entry here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    LINK,
    Edge,
    Graph,
    Node,
)
from planwave.graph.ports import find_port, is_numbered
from planwave.graph.protocols import NodeTypes
from planwave.graph.subgraphs import subgraphs_of

HandleLabels = Mapping[str, Mapping[str, str]]
"""Labels of outputs by node id and handle: ``{"kind": {"case-0": "refund"}}``."""


class Shape(Enum):
    """What a node does, as its outline.

    ``ENTRY``: a run begins there. ``END``: its value is the result. ``MODEL``: it calls a language model. ``BRANCH``:
    one of its outputs is taken. ``PERSON``: it waits for a person or an event. ``NESTED``: it runs a graph inside it.
    ``GIVER``: other nodes use it over links. ``UNKNOWN``: it keeps the place of a step that is not known here.
    ``STEP``: all others.
    """

    ENTRY = "entry"
    END = "end"
    MODEL = "model"
    BRANCH = "branch"
    PERSON = "person"
    NESTED = "nested"
    GIVER = "giver"
    UNKNOWN = "unknown"
    STEP = "step"


class Box(NamedTuple):
    """One node of a drawing.

    Attributes:
        key: Its name in the text; unique in the drawing.
        label: What people read.
        shape: Its outline.
        path: Its path, as in an execution, without the numbers of rounds.
    """

    key: str
    label: str
    shape: Shape
    path: str


class Line(NamedTuple):
    """One edge of a drawing; ``is_link`` where it gives what the target uses on demand."""

    source: str
    target: str
    label: str
    is_link: bool


class Group(NamedTuple):
    """The drawing of a graph inside a node.

    Attributes:
        key: Its name in the text; unique in the drawing.
        box: The node.
        inside: The drawing; it has at least one box.
    """

    key: str
    box: Box
    inside: Drawing


@dataclass(frozen=True)
class Drawing:
    """Boxes, lines between them, and the groups inside boxes, in document order."""

    boxes: list[Box] = field(default_factory=list[Box])
    lines: list[Line] = field(default_factory=list[Line])
    groups: list[Group] = field(default_factory=list[Group])

    def all_boxes(self) -> Iterator[Box]:
        """Yield the boxes, those of the groups behind them."""
        yield from self.boxes
        for group in self.groups:
            yield from group.inside.all_boxes()


_ENDS: Final = frozenset({"end", "webhook_reply"})
"""Types whose value is the result of a run; no fact of a type says so."""
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:[-.][A-Za-z0-9_]+)*")
_RESERVED: Final = frozenset(
    {
        "graph", "flowchart", "subgraph", "end", "style", "linkstyle", "classdef", "class", "click", "href",
        "call", "default", "direction", "interpolate", "acctitle", "accdescr", "title", "digraph", "node",
        "edge", "strict",
    }
)  # fmt: skip
"""Words that a first part of a key may not be: Mermaid or DOT would read them as something else."""


def draw(graph: Graph, types: NodeTypes, labels: HandleLabels | None = None) -> Drawing:
    """Return the drawing of a graph.

    A node keeps its id as its key where that can be written in Mermaid and DOT, else the key is ``n1``, ``n2``, ….

    Args:
        graph: The graph.
        types: The node types; nodes of other types are drawn as steps.
        labels: Labels of the outputs of the outermost graph that are numbered, such as ``case-0``.
    """
    return _Artist(types).draw(graph, "", labels or {})


def shape_of(node_type: str, types: NodeTypes) -> Shape:
    """Return what nodes of a type are drawn as."""
    facts = types.type_info(node_type)
    if facts is None:
        return Shape.STEP
    implementation = types.implementation(node_type)
    chooses = facts.chooses or any(map(is_numbered, facts.outputs))
    found = {
        Shape.UNKNOWN: facts.stands_in,
        Shape.ENTRY: facts.entry,
        Shape.END: node_type in _ENDS,
        Shape.NESTED: bool(facts.graph_fields),
        Shape.PERSON: hasattr(implementation, "resume"),
        Shape.BRANCH: chooses,
        Shape.GIVER: not facts.executes,
        Shape.MODEL: bool(getattr(implementation, "calls_model", False)),
    }
    return next((shape for shape, is_so in found.items() if is_so), Shape.STEP)


class _Artist:
    """Draws graphs, with keys that are unique in the whole drawing."""

    def __init__(self, types: NodeTypes) -> None:
        self._types = types
        self._used: set[str] = set()

    def draw(self, graph: Graph, prefix: str, labels: HandleLabels) -> Drawing:
        """Draw a graph; ``prefix`` is the path of what it is inside of, with a slash."""
        drawing = Drawing()
        keys: dict[str, str] = {}
        for node in graph.nodes:
            key = keys[node.id] = self._key(node.id)
            shape = shape_of(node.type, self._types)
            drawing.boxes.append(Box(key, _label(node), shape, f"{prefix}{node.id}"))
        for edge in graph.edges:
            if edge.source in keys and edge.target in keys:
                label = self._line_label(edge, graph, labels)
                ends = keys[edge.source], keys[edge.target]
                drawing.lines.append(Line(*ends, label, edge.channel == LINK))
        for node, box in zip(graph.nodes, drawing.boxes, strict=True):
            for inside in subgraphs_of(node, self._types):
                if inside.nodes:
                    key = self._key(f"{box.key}_inside")
                    drawing.groups.append(Group(key, box, self.draw(inside, f"{box.path}/", {})))
        return drawing

    def _key(self, node_id: str) -> str:
        first = re.split(r"[-.]", node_id, maxsplit=1)[0].lower()
        key = node_id if _KEY.fullmatch(node_id) and first not in _RESERVED else ""
        number = len(self._used)
        while not key or key in self._used:
            number += 1
            key = f"n{number}"
        self._used.add(key)
        return key

    def _line_label(self, edge: Edge, graph: Graph, labels: HandleLabels) -> str:
        """Return the handles of an edge that are not the default ones."""
        out, into = edge.source_handle, edge.target_handle
        facts = self._types.type_info(graph.by_id[edge.source].type)
        port = None if facts is None else find_port(facts.outputs, out, edge.channel)
        if port is not None and is_numbered(port):
            out = labels.get(edge.source, {}).get(out) or out
        is_only = facts is not None and len(facts.outputs) == 1 and port in facts.outputs
        shown = "" if out == DEFAULT_SOURCE_HANDLE or (is_only and edge.channel == LINK) else out
        return one_line(shown if into == DEFAULT_TARGET_HANDLE else f"{shown} → {into}")


def _label(node: Node) -> str:
    return one_line(node.name) or node.id


def one_line(text: str) -> str:
    """Return a text on one line, without characters that are not printable."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def statuses_by_path(nodes: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Return one status for each path of a graph from the nodes of an execution's document.

    Of the rounds of a loop the status that most needs attention counts.
    """
    found: dict[str, str] = {}
    for node in nodes:
        path, status = _ROUND.sub("", str(node["path"])), str(node["status"])
        before = found.get(path)
        if before is None or _rank(status) < _rank(before):
            found[path] = status
    return found


_ROUND: Final = re.compile(r"\[[^\]/]*\]")
_RANKS: Final = (
    "failed", "waiting", "running", "retrying", "blocked", "cancelled", "completed", "skipped", "pending",
)  # fmt: skip


def _rank(status: str) -> int:
    return _RANKS.index(status) if status in _RANKS else len(_RANKS)
