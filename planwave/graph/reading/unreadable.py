"""The unreadable parts of a document, recorded so that the rest can be checked at the same time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, cast

from planwave.graph.model import Channel, Edge

UNREADABLE: Final = "\0"
"""Placeholder in a node or an edge for a name that could not be read; no valid name contains NUL."""

UNREADABLE_CHANNEL: Final = cast("Channel", UNREADABLE)

UNREADABLE_EDGE: Final = Edge(
    UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE, UNREADABLE_CHANNEL, {}
)
"""Placeholder for an edge of which nothing could be read."""

ALREADY_REPORTED: Final = object()
"""Placeholder in a document for a node, an edge or a field whose error the caller has already
reported: it is not reported again, and counts as unreadable."""


@dataclass(slots=True)
class Unreadable:
    """The unreadable parts of a document.

    Attributes:
        edges: Position and readable part of each edge without an end, a handle or a channel; the
            missing part is ``UNREADABLE``.
        without_id: Placeholder ids of nodes whose own id could not be read.
        invalid_ids: Malformed node ids, to which edges may still refer.
        incomplete: Ids of nodes whose description or data could not be read completely.
        policy_unknown: Ids of nodes whose policy could not be read completely.
        nodes_unreadable: Whether the list of nodes could not be read.
    """

    edges: list[tuple[int, Edge]] = field(default_factory=list[tuple[int, Edge]])
    without_id: set[str] = field(default_factory=set[str])
    invalid_ids: set[str] = field(default_factory=set[str])
    incomplete: set[str] = field(default_factory=set[str])
    policy_unknown: set[str] = field(default_factory=set[str])
    nodes_unreadable: bool = False


def placeholder_id(number: int) -> str:
    """Return the placeholder id of a node without a readable id; it equals no valid id."""
    return f"#{number}"
