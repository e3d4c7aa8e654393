"""A plan that joins all its results twice at the end: the step before the last one, and the last one again.

Small models write such plans: one in four of theirs. The last step has all that the step before it
read, so that step is left out where it does the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from planwave.graph.model import (
    DEFAULT_SOURCE_HANDLE,
    DEFAULT_TARGET_HANDLE,
    FLOW,
    Edge,
    Graph,
    Json,
    Node,
)
from planwave.planner.capabilities import DEFAULT_TYPE

_JOINS: Final = re.compile(
    r"(?:then |finally )?(?:join|combine|merge|compile|assemble|integrate|consolidate|"
    r"summari[sz]e|synthesi[sz]e|gather|collect|unite|"
    r"(?:put|bring) (?:\w+ ){1,6}?together|"
    r"(?:write|create|produce|prepare|give) (?:the|a|one) (?:complete|final|full|whole|overall))\b",
    re.IGNORECASE,
)
"""How a task begins that joins what there is."""
_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_SHARED_WORDS: Final = 1 / 3
"""The part of the shorter text that the two have in common; 0.33 to 0.89 in repeated joins of small models."""


class RepeatedJoin(NamedTuple):
    """A step that joins all results, and the last step, which joins them again."""

    step: Node
    last: Node

    @property
    def fix(self) -> str:
        """What is said of it among the fixes of a plan."""
        return f"left out step {self.step.id!r}: {self.last.id!r} joins the same results"

    def without_step(self, document: Mapping[str, Sequence[Json]]) -> dict[str, Json]:
        """Return the graph document without the step."""
        step = self.step.id
        nodes = [node for node in document["nodes"] if node["id"] != step]
        edges = [edge for edge in document["edges"] if step not in (edge["source"], edge["target"])]
        return {"nodes": nodes, "edges": edges}


def repeated_join(graph: Graph) -> RepeatedJoin | None:
    """Return the step before the last one that does what the last one does; None if there is none.

    Both are plain agents of one model. The step joins every result that nothing else reads, its task
    says so in words that the last one shares, and the last one reads all that it reads.
    """
    leaving = {edge.source for edge in graph.edges}
    ends = [node for node in graph.nodes if node.id not in leaving]
    if len(ends) != 1:
        return None
    last, edges = ends[0], graph.edges
    read = {edge.source for edge in edges if edge.target == last.id}
    for step in graph.nodes:
        own = {edge.source for edge in edges if edge.target == step.id}
        targets = [edge.target for edge in edges if edge.source == step.id]
        if targets != [last.id] or len(own) < 2 or not {step.id, *own} <= read:
            continue
        about = [edge for edge in edges if {step.id, last.id} & {edge.source, edge.target}]
        read_elsewhere = {e.source for e in edges if e.target not in (step.id, last.id)}
        open_ends = graph.by_id.keys() - read_elsewhere - {step.id, last.id}
        if open_ends <= own and all(map(_is_plain, about)) and _do_the_same(step, last):
            return RepeatedJoin(step, last)
    return None


def _is_plain(edge: Edge) -> bool:
    handles = edge.source_handle, edge.target_handle, edge.channel
    return handles == (DEFAULT_SOURCE_HANDLE, DEFAULT_TARGET_HANDLE, FLOW)


def _do_the_same(step: Node, last: Node) -> bool:
    if {step.type, last.type} != {DEFAULT_TYPE} or step.data != last.data:
        return False
    if step.data.keys() - {"provider", "model"} or step.policy != last.policy:
        return False
    if _JOINS.match(step.description.strip()) is None:
        return False
    first, second = _words(step), _words(last)
    shared = len(first & second)
    return shared > 0 and shared >= _SHARED_WORDS * min(len(first), len(second))


def _words(node: Node) -> set[str]:
    return set(_WORD.findall(f"{node.name} {node.description}".lower()))
