"""What of a document could not be read, kept so that all the rest can be checked at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, cast

from planwave.graph.model import Channel, Edge

UNREADABLE: Final = "\0"
"""Stands in a node or an edge for a word that could not be read. No word that was read holds NUL."""

UNREADABLE_CHANNEL: Final = cast("Channel", UNREADABLE)

UNREADABLE_EDGE: Final = Edge(
    UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE_CHANNEL, {}
)
"""An edge of which nothing is known but that it is there."""

ALREADY_REPORTED: Final = object()
"""Stands in a document for a node, an edge or a field of theirs in which the caller has found a
fault already: it is not reported again, and counts as unreadable."""


@dataclass(slots=True)
class Unreadable:
    """What could not be read.

    Attributes:
        edges: Number and rest of each edge that lacks an end, a handle or its channel; these are
            ``UNREADABLE`` there.
        without_id: Ids given to nodes whose own could not be read: ``#`` and the node's number.
        invalid_ids: Ids that no node may have, but that edges can go by all the same.
        incomplete: Ids of nodes that may have a description or data that were not read.
        policy_unknown: Ids of nodes that may have a policy that was not read, or not to the end.
        nodes_unreadable: Whether there may be nodes that were not read at all.
    """

    edges: list[tuple[int, Edge]] = field(default_factory=list[tuple[int, Edge]])
    without_id: set[str] = field(default_factory=set[str])
    invalid_ids: set[str] = field(default_factory=set[str])
    incomplete: set[str] = field(default_factory=set[str])
    policy_unknown: set[str] = field(default_factory=set[str])
    nodes_unreadable: bool = False


def placeholder_id(number: int) -> str:
    """Give the id of a node whose own could not be read; no id and no other node is like it."""
    return f"#{number}"
