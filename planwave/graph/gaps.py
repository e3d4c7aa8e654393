"""What of a document could not be read, kept so that all the rest can be checked at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, cast

from planwave.graph.model import Channel, Edge

UNREAD: Final = "\0"
"""Stands in a node or an edge for a word that could not be read. No word that was read holds NUL."""

UNREAD_CHANNEL: Final = cast("Channel", UNREAD)

UNREAD_EDGE: Final = Edge(UNREAD, UNREAD, UNREAD, UNREAD, UNREAD, UNREAD_CHANNEL, {})
"""An edge of which nothing is known but that it is there."""

REPORTED: Final = object()
"""Stands in a document for a node, an edge or a field of theirs in which the caller has found a
fault already: it is not reported again, and counts as unreadable."""


@dataclass(slots=True)
class Gaps:
    """What could not be read.

    Attributes:
        edges: Number and rest of each edge that lacks an end, a handle or its channel; these are
            ``UNREAD`` there.
        nameless: Ids given to nodes whose own could not be read: ``#`` and the node's number.
        misnamed: Ids that no node may have, but that edges can go by all the same.
        incomplete: Ids of nodes that may have a description or data that were not read.
        unruled: Ids of nodes that may have a policy that was not read, or not to the end.
        no_nodes: Whether there may be nodes that were not read at all.
    """

    edges: list[tuple[int, Edge]] = field(default_factory=list[tuple[int, Edge]])
    nameless: set[str] = field(default_factory=set[str])
    misnamed: set[str] = field(default_factory=set[str])
    incomplete: set[str] = field(default_factory=set[str])
    unruled: set[str] = field(default_factory=set[str])
    no_nodes: bool = False


def stand_in(number: int) -> str:
    """Give the id of a node whose own could not be read; no id and no other node is like it."""
    return f"#{number}"
